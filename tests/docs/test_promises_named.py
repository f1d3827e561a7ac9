"""Each promise of the README and of a page of docs/ names the test that keeps it, and none goes without."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
import tomli

ROOT = Path(__file__).parents[2]
NAMED: Mapping[str, Mapping[str, str]] = tomli.loads(Path(__file__).with_name("promises.toml").read_text())
PAGES = ("README.md", *sorted(f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md")))

PROMISING = re.compile(
    r"\b([Nn]ever|[Nn]othing|[Aa]lways|[Oo]nly|at most|at once|within|once|none|cannot|without|no other|by itself"
    r"|until|stays?|kept|keeps|stored|outlives?|restarts?|again|refuse[sd]?|removed|removes|ignored|closed|every|whatever"
    r"|lists|counts?|answer(ed|s))\b"
)
"""A sentence with one of these is taken for a promise."""


def promises(page: str) -> list[tuple[str, str]]:
    """The page's promises with their tests, from the table or, where the page itself names tests, from its rows."""
    rows = [line for line in (ROOT / page).read_text().splitlines() if line.startswith("| ") and "`tests/" in line]
    own = [(row.split(" | ")[0].strip("| "), test) for row in rows for test in re.findall(r"`(tests/\S+::\w+)`", row)]
    return [*NAMED.get(page, {}).items(), *own]


def sentences(page: str) -> Iterator[str]:
    """Each sentence of the page; a row of a table is one, and begins with the table's head."""
    text = re.sub(r"```.*?```|<img[^>]*>|^#.*?$", "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    head = ""
    for block in re.split(r"\n\s*\n|\n(?=\||- )", text):
        line = " ".join(block.split())
        if line.startswith("|"):
            head = head or line
            yield f"{head} {line}"
        else:
            head = ""
            yield from re.split(r"(?<=[.;])\s", line)


@cache
def names_in(file: str) -> frozenset[str]:
    """The names of the tests in this file; empty where there is no such file."""
    path = ROOT / file
    tree = ast.parse(path.read_text() if path.exists() else "")
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


def test_there_is_no_promise_of_a_page_that_is_gone() -> None:
    assert set(NAMED) <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_each_promise_is_on_its_page_and_its_test_is_there(page: str) -> None:
    text = " ".join((ROOT / page).read_text().split())
    gone = [words for words, _ in promises(page) if words not in text]
    missing = [test for _, test in promises(page) if test.split("::")[-1] not in names_in(test.split("::")[0])]
    assert (gone, missing) == ([], [])


@pytest.mark.parametrize("page", PAGES)
def test_each_sentence_that_promises_something_and_each_section_is_named(page: str) -> None:
    named = [words for words, _ in promises(page)]
    there = [each for each in sentences(page) if PROMISING.search(each)]
    unnamed = [each for each in there if not any(words in each for words in named)]
    _, *sections = re.split(r"^#+ ", (ROOT / page).read_text(), flags=re.MULTILINE)
    texts = [" ".join(section.split()) for section in sections if section.strip().count("\n")]
    empty = [text[:60] for text in texts if not any(words in text for words in named)]
    assert texts and (unnamed, empty) == ([], [])
