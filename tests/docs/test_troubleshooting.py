"""docs/troubleshooting.md: what it says that Lares says, Lares says."""

from __future__ import annotations

import ast
import errno
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from appliance import config
from appliance.errors import ConfigFailed, NotFound
from tests.docs.pages import DOCS
from tests.fakes.process import ROOT

PAGE = (DOCS / "troubleshooting.md").read_text()
TABLES = re.findall(r"^\| It.*? says \| Do \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
EXPLAINED = [
    said for table in TABLES for row in table.splitlines() for said in re.findall(r"`(.+?)`", row.split(" | ")[0])
]


SOURCES = {file: file.read_text() for file in (ROOT / "appliance").rglob("*.py")}


@cache
def texts(file: Path) -> list[str]:
    """Each text that stands in the file; where a value is put in there is `…`."""
    found = []
    for node in ast.walk(ast.parse(SOURCES[file])):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            found.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


def sentences(words: list[str]) -> Iterator[str]:
    """What Lares can say with these words in it, and what the system says."""
    with pytest.raises(ConfigFailed) as mistyped:
        config.parse('[logging]\nlevle = "info"\n', "default.toml", {})
    yield from (str(mistyped.value), str(NotFound("automation", "x")))
    yield from (os.strerror(number).lower() for number in errno.errorcode)
    for file, text in SOURCES.items():
        if all(word in text for word in words):
            yield from texts(file)


def test_each_sentence_that_the_page_explains_is_said() -> None:
    assert len(EXPLAINED) >= 14
    for said in EXPLAINED:
        parts = [part.strip() for part in re.split(r"…|'x'|\bN\b", said)]
        pattern = re.compile(".*".join(map(re.escape, parts)))
        assert any(map(pattern.search, sentences(re.findall("[a-z]{4,}", said)))), said
