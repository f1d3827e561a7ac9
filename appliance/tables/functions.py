"""Functions in what a Lua file returned: what stands for one as data."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from appliance.tables.checks import Mismatch


class Function(Struct, frozen=True):
    """Stands for a function in what a file describes; `line` is where the function begins."""

    line: int

    def __str__(self) -> str:
        return "a function"


def function(value: Any) -> Function:
    """A check: a Lua function."""
    if not isinstance(value, Function):
        raise Mismatch("a function", value)
    return value
