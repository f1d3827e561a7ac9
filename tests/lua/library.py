"""Reads the stub for editors, `config/library/lares.lua`, as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
STUB = ROOT / "config" / "library" / "lares.lua"

_FIELD = re.compile(r"---@field (?P<name>\w+)(?P<optional>\??) (?P<type>\S+)(?: (?P<text>.*))?\Z")
_PARAM = re.compile(r"---@param (?P<name>\w+)(?P<optional>\??) (?P<type>\S+)")
_LITERAL = re.compile(r"---\| \"(?P<word>[^\"]+)\"\s*# (?P<text>.+)\Z")
_FUNCTION = re.compile(r"function (?P<name>[\w.:]+)\((?P<parameters>[^)]*)\) end\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a class, or a parameter of a function."""

    type: str
    is_optional: bool
    text: str = ""

    @property
    def words(self) -> list[str]:
        """Return the strings in a type that consists only of strings, such as `"on"|"off"`."""
        return [each.strip('"') for each in self.type.split("|")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function, with the annotations of its parameters, and the names of the parameters in its declaration."""

    parameters: tuple[str, ...]
    annotated: Mapping[str, Field]
    is_deprecated: bool


@dataclass(slots=True)
class Library:
    """All declarations of the stub."""

    classes: dict[str, dict[str, Field]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    words: dict[str, dict[str, str]] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)


def read() -> Library:
    """Parse the stub. Raise an exception if a line has an unknown format."""
    found = Library()
    for block in STUB.read_text("utf-8").split("\n\n"):
        _read_block(block.strip().splitlines(), found)
    return found


def _read_block(lines: list[str], found: Library) -> None:
    subject, annotated, is_deprecated = "", {}, False
    for line in lines:
        if line.startswith("---@class "):
            subject, _, base = line.removeprefix("---@class ").partition(": ")
            found.classes[subject] = dict(found.classes[base]) if base else {}
        elif line.startswith("---@alias "):
            subject, _, type_ = line.removeprefix("---@alias ").partition(" ")
            found.aliases[subject] = type_
        elif line.startswith("---@field ["):
            assert subject == "Attributes"
        elif line.startswith("---@field "):
            match = _FIELD.match(line)
            assert match is not None, line
            found.classes[subject][match["name"]] = _field(match)
        elif line.startswith("---| "):
            match = _LITERAL.match(line)
            assert match is not None, line
            found.words.setdefault(subject, {})[match["word"]] = match["text"]
        elif line.startswith("---@param "):
            match = _PARAM.match(line)
            assert match is not None, line
            annotated[match["name"]] = _field(match)
        elif line == "---@deprecated":
            is_deprecated = True
        elif line.startswith("function "):
            match = _FUNCTION.match(line)
            assert match is not None, line
            names = tuple(name for name in match["parameters"].split(", ") if name)
            found.functions[match["name"]] = Function(
                parameters=names, annotated=annotated, is_deprecated=is_deprecated
            )


def _field(match: re.Match[str]) -> Field:
    groups = match.groupdict()
    return Field(type=groups["type"], is_optional=groups["optional"] == "?", text=groups.get("text") or "")
