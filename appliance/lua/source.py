"""Source: the text of one Lua file, and the name that people know it by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

LARGEST = 1 << 20
"""Bytes of a Lua file; none that a person wrote comes near."""

_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file. `name` is its path as configured, `config/scenes/evening.lua`; `text` what it holds."""

    name: str
    text: bytes

    @property
    def chunk(self) -> bytes:
        """The text as Lua takes it: without a byte order mark, and with a first line `#!…` left empty."""
        text = self.text.removeprefix(_MARK)
        return text[len(text.split(b"\n", 1)[0]) :] if text.startswith(b"#") else text

    def line_of(self, *path: str) -> int:
        """The line on which the field is set, `("trigger", "above")` inside `trigger`; 0 if it cannot be seen."""
        text, at = _without_comments(self.text.decode(errors="replace")), 0
        for key in path:
            word = re.escape(key)
            found = re.compile(rf"""(?:(?<![\w.])|\[["']){word}(?:["']\])?\s*=(?!=)""").search(text, at)
            if found is None:
                return 0
            at = found.start()
        return text.count("\n", 0, at) + 1

    @property
    def line_of_return(self) -> int:
        """The line of the last `return` that begins one: where the file's table is; 0 if there is none."""
        text = _without_comments(self.text.decode(errors="replace"))
        at = max((found.start() for found in re.finditer(r"^return\b", text, re.MULTILINE)), default=None)
        return 0 if at is None else text.count("\n", 0, at) + 1


def load(file: Path, name: str) -> Source:
    """Read the file; `OSError` if it cannot be read, `ValueError` with a sentence if it is beyond the limit."""
    with file.open("rb") as opened:
        text = opened.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise ValueError("is larger than 1 MiB")
    return Source(name=name, text=text)


def _without_comments(text: str) -> str:
    """The text with line comments blanked; line breaks stay where they are."""
    return re.sub(r"--(?!\[\[)[^\n]*", lambda found: " " * len(found.group()), text)
