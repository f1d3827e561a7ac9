"""Undefined names: globals that a file uses and nobody gives a value, which is most often a typo inside `execute`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from appliance.errors import Fault
from appliance.lua.bytecode import Function, functions_of
from appliance.lua.catalog import Describe
from appliance.lua.source import Source
from appliance.sections import nearest

_GETUPVAL, _GETTABUP, _GETFIELD, _SETTABUP, _SETFIELD, _JMP = 9, 11, 14, 15, 18, 56
_ENVIRONMENT = "_ENV"
_MAKERS = frozenset({"_G", "load", "rawset"})
"""Whoever uses one of these may give values to globals in ways that cannot be seen."""

_NAMES = b"""
local libraries = {}
for name, value in pairs(_G) do
  local members = {}
  if type(value) == 'table' and value ~= _G then for member in pairs(value) do members[member] = true end end
  libraries[name] = members
end
return libraries"""


async def find_undefined(sources: Sequence[Source], describe: Describe) -> list[Fault]:
    """A sentence for each line with such a name; none at all where globals are made in ways that cannot be seen."""
    known = await describe(Source(name="names", text=_NAMES))
    functions = {source: functions_of(source) for source in sources}
    every = [each for found in functions.values() for each in found]
    if any(_makes_globals(each) for each in every):
        return []
    given = {name for each in every for name in _given(each)}
    faults = {
        Fault(source.name, line, sentence)
        for source, found in functions.items()
        for each in found
        for line, sentence in _sentences(each, known, given)
    }
    return sorted(faults)


def _makes_globals(function: Function) -> bool:
    """Whether the function has another environment, the whole of it in its hands, or uses one of `_MAKERS`."""
    if _ENVIRONMENT in function.locals or _MAKERS & {name for _, _, name in _read(function)}:
        return True
    return any(each.op == _GETUPVAL and function.upvalues[each.b] == _ENVIRONMENT for each in function.code)


def _given(function: Function) -> Iterator[str]:
    """The globals, and the fields of any table, that the function gives values."""
    for each in function.code:
        if each.op == _SETFIELD or (each.op == _SETTABUP and function.upvalues[each.a] == _ENVIRONMENT):
            yield function.constants[each.b] or ""


def _read(function: Function) -> Iterator[tuple[int, int, str]]:
    """The globals that the function reads: which step it is, the line, the name."""
    for index, each in enumerate(function.code):
        if each.op == _GETTABUP and function.upvalues[each.b] == _ENVIRONMENT:
            yield index, each.line, function.constants[each.c] or ""


def _sentences(
    function: Function, known: Mapping[str, Mapping[str, bool]], given: set[str]
) -> Iterator[tuple[int, str]]:
    reached = {index + 1 + each.jump for index, each in enumerate(function.code) if each.op == _JMP}
    for index, line, name in _read(function):
        if name not in known and name not in given:
            yield line, f"{name} is given no value in any file, so it is nil{_near(name, [*known, *given])}"
        following = function.code[index + 1]
        is_member = following.op == _GETFIELD and following.b == function.code[index].a and index + 1 not in reached
        member = function.constants[following.c] if is_member else None
        if member is not None and known.get(name) and member not in known[name] and member not in given:
            yield line, f"{name} has no {member}{_near(member, known[name], f'{name}.')}"


def _near(name: str, names: Iterable[str], prefix: str = "") -> str:
    near = nearest(name, names)
    return "" if near is None else f"; did you mean {prefix}{near}"
