"""The declarations in `config/library/lares.lua`, for completions in editors."""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from appliance.config import bundled_config

_METHOD = re.compile(r"((?:---.*\n)+)function Context:(\w+)\(")
_CLASS = re.compile(r"---@class (\w+)\n((?:---@field .*\n)+)")
_FIELD = re.compile(r"---@field (\w+)")
_TYPE = re.compile(r'---@field type "(\w+)"')
_PARAMETER = re.compile(r"@param (\w+\??)")


class CtxCompletion(Struct, frozen=True, kw_only=True):
    """A method of `ctx`. The name of an optional argument ends in `?`."""

    name: str
    arguments: list[str]
    description: str


@cache
def list_methods() -> list[CtxCompletion]:
    """Return the methods of `ctx`, sorted by name."""
    found = {match[2]: match[1] for match in _METHOD.finditer(_read_library())}
    return [
        CtxCompletion(name=name, arguments=_PARAMETER.findall(found[name]), description=_description_of(found[name]))
        for name in sorted(found)
    ]


@cache
def list_automation_fields() -> list[str]:
    return _FIELD.findall(_find_classes()["Automation"])


@cache
def list_typed_fields() -> dict[str, list[str]]:
    """Return the fields of each type of trigger and condition, without `type`."""
    return {
        found[1]: _FIELD.findall(fields)[1:] for fields in _find_classes().values() if (found := _TYPE.match(fields))
    }


def _find_classes() -> dict[str, str]:
    """Return the annotations of the fields of each class."""
    return dict(_CLASS.findall(_read_library()))


def _read_library() -> str:
    return (bundled_config() / "library" / "lares.lua").read_text("utf-8")


def _description_of(comment: str) -> str:
    """Return the sentences before the first annotation or example."""
    lines = []
    for line in comment.splitlines():
        text = line.removeprefix("---").strip()
        if text.startswith(("@", "```")):
            break
        lines.append(text)
    return " ".join(lines)
