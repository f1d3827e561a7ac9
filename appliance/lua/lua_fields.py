"""Fields: reads the table that a Lua file returned; each fault has the line where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from appliance.errors import ConfigFailed, Fault
from appliance.lua.hints import ErrorContext, hint_of
from appliance.lua.runner import Function
from appliance.lua.source import Source
from appliance.tables.checks import LUA, Mismatch
from appliance.tables.fields import Findings, Problem, Table, located

T = TypeVar("T")

Parse = Callable[[Table], T | None]
"""Reads what a file returned; None where something is wrong with it, which is noted in the table's findings."""


def read(described: Any, source: Source, parse: Parse[T]) -> tuple[T, tuple[Fault, ...]]:
    """What a file defines that returned this, and warnings; `ConfigFailed` holds every fault."""
    findings = Findings(LUA)
    definition = None
    if isinstance(described, Mapping) or described == []:  # in Lua an empty list is an empty table
        definition = parse(Table(described or {}, findings))
    else:
        findings.faults.append(Problem((), "must return a table with named fields, not a list"))
    if definition is None or findings.faults:
        raise ConfigFailed(_located(findings.faults, source))
    return definition, tuple(_located(findings.warnings, source))


def _located(problems: Iterable[Problem], source: Source) -> list[Fault]:
    """The problems in order of place, with hints; what has no line is at the `return` of the table."""
    faults = located(problems, source.name, lambda path: source.line_of(*map(str, path)))
    at = source.line_of_return
    hinted = ((fault.line or at, fault.message + hint_of(ErrorContext(message=fault.message))) for fault in faults)
    return sorted(Fault(source.name, line, message) for line, message in hinted)


def function(value: Any) -> Function:
    """A check: a Lua function."""
    if not isinstance(value, Function):
        raise Mismatch("a function", value)
    return value
