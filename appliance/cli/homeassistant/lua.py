"""Writes Lua: literals, tables, and indented lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from appliance.lua.text.tokens import KEYWORDS

MAX_LINE_CHARS = 100


class Raw(str):
    """Lua code, which `literal` does not quote."""

    __slots__ = ()


def literal(value: Any) -> str:
    """Return a JSON-like value as Lua on one line."""
    if isinstance(value, Raw):
        return str(value)
    if value is None or isinstance(value, bool):
        return {None: "nil", True: "true", False: "false"}[value]
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float):
        return {"inf": "math.huge", "-inf": "-math.huge", "nan": "0/0"}.get(repr(value), repr(value))
    if isinstance(value, Mapping):
        pairs = [f"{key_of(key)} = {literal(each)}" for key, each in value.items() if each is not None]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"{{ {', '.join(map(literal, value))} }}" if value else "{}"
    return quote(str(value))


def quote(text: str) -> str:
    """Quote a text as a Lua string. JSON and Lua have the same escapes, except for control characters."""
    quoted = json.dumps(text, ensure_ascii=False)
    return re.sub(r"\\\\|\\u([0-9a-f]{4})", lambda found: f"\\u{{{found[1]}}}" if found[1] else found[0], quoted)


def rows(value: Any, indent: str) -> list[str]:
    """Return a list or mapping as Lua: on one line if possible, otherwise with one entry per line."""
    one = literal(value)
    if (
        len(indent) + len(one) <= MAX_LINE_CHARS
        or not isinstance(value, Mapping | Sequence)
        or isinstance(value, str)
    ):
        return [one]
    inner, lines = indent + "  ", ["{"]
    named = isinstance(value, Mapping)
    entries: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, each in entries:
        if each is None:
            continue
        first, *rest = rows(each, inner)
        lines.append(f"{inner}{key_of(key)} = {first}" if named else f"{inner}{first}")
        lines += rest
        lines[-1] += ","
    return [*lines, indent + "}"]


def comment(text: str, indent: str = "") -> list[str]:
    """Return the text as comment lines. Remove characters that could end the comment."""
    lines = [
        "".join(char if char.isprintable() else " " for char in line)[:400] for line in text.splitlines() or [""]
    ]
    return [f"{indent}-- {line}".rstrip() for line in lines]


def name(text: str) -> str:
    """Convert a text to a valid Lua name."""
    made = re.sub(r"\W", "_", text, flags=re.ASCII) or "value"
    return f"_{made}" if made[0].isdigit() or made in KEYWORDS else made


def negated(expression: str) -> str:
    return f"not {expression}" if is_one_call(expression) else f"not ({expression})"


def is_one_call(expression: str) -> bool:
    """Return whether the expression is a single call, or is already in brackets, and therefore needs no further
    brackets."""
    if not re.match(r"[\w.:]*\(", expression):
        return False
    depth = 0
    for at, char in enumerate(expression):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0 and char == ")":
            return at == len(expression) - 1
    return False


def key_of(key: Any) -> str:
    """Return the key of a field in a Lua table: a name, or a text in brackets."""
    text = str(key)
    return text if re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII) and text not in KEYWORDS else f"[{quote(text)}]"


class Lines:
    """The indented lines of a function's body."""

    def __init__(self, depth: int) -> None:
        self.lines: list[str] = []
        self._depth = depth

    @property
    def indent(self) -> str:
        return "  " * self._depth

    def mark(self) -> tuple[int, int]:
        """Return a mark for the current end of the lines. `cut` removes all lines after the mark."""
        return len(self.lines), self._depth

    def cut(self, mark: tuple[int, int]) -> None:
        """Remove the lines after the mark, and close the blocks that these lines opened."""
        del self.lines[mark[0] :]
        self._depth = mark[1]

    def add(self, *lines: str) -> None:
        self.lines += [self.indent + line for line in lines]

    def return_if(self, test: str) -> None:
        """Add lines that return if the test is true."""
        self.open(f"if {test} then")
        self.add("return")
        self.close()

    def note(self, text: str) -> None:
        self.lines += comment(text, self.indent)

    def open(self, line: str) -> None:
        """Add a line that begins a block."""
        self.add(line)
        self._depth += 1

    def turn(self, line: str) -> None:
        """Close a block and open its alternative (`else`)."""
        self._depth -= 1
        self.open(line)

    def close(self, line: str = "end") -> None:
        self._depth -= 1
        self.add(line)
