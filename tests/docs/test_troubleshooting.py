"""docs/troubleshooting.md: what it says that Lares says, Lares says."""

from __future__ import annotations

import ast
import errno
import os
import re
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


def texts(file: Path) -> list[str]:
    """Each text that stands in the file; where a value is put in there is `…`."""
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            found.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    """What Lares can say."""
    with pytest.raises(ConfigFailed) as mistyped:
        config.parse('[logging]\nlevle = "info"\n', "default.toml", {})
    by_the_system = [os.strerror(number).lower() for number in errno.errorcode]
    ours = [text for file in (ROOT / "appliance").rglob("*.py") for text in texts(file)]
    return [str(mistyped.value), str(NotFound("automation", "x")), *by_the_system, *ours]


def test_there_are_many() -> None:
    assert len(EXPLAINED) >= 14


@pytest.mark.parametrize("said", EXPLAINED)
def test_each_sentence_that_the_page_explains_is_said(said: str, sentences: list[str]) -> None:
    words = ".*".join(re.escape(part.strip()) for part in re.split(r"…|'x'|\bN\b", said))
    assert any(re.search(words, sentence) for sentence in sentences), said
