"""Finds the names of variables that files set, and of timers that files start."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from appliance.lua.text.called_names import called_names
from appliance.lua.text.source import Source

_GIVEN = re.compile(r""":\s*(set|start_timer)\s*\(\s*(?:(["'])([^"'\\]*)\2\s*(?:[,)]|(\.\.)))?""")
"""Matches a call that sets a variable or starts a timer. The groups are the method, the quote, the literal name, and
`..` if an expression continues the name."""

_DECLARED = re.compile(r"^\s*---\s*@variable\s+([a-z0-9_.]+)", re.MULTILINE)
"""Matches a comment that declares a variable. People or other programs may set this variable."""


class GivenNames(NamedTuple):
    """The literal names in calls, and the prefixes of computed names."""

    names: frozenset[str]
    prefixes: tuple[str, ...]


def find_given(
    sources: Collection[Source], called: Collection[Source], modules: Mapping[str, Source]
) -> Mapping[str, GivenNames]:
    """Return the names in calls that set variables or start timers, by method. `called` are the files that can run. A
    module counts as such a file only if one of these files requires it, directly or indirectly.

    The prefixes of computed names come only from files that can run. The names for `set` include declared variables.
    """
    names: dict[str, set[str]] = {"set": set(), "start_timer": set()}
    computed: list[tuple[str, str, str]] = []
    for source in sources:
        text = source.text.decode(errors="replace")
        names["set"].update(_DECLARED.findall(text))
        for call, quote, name, is_continued in _GIVEN.findall(text):
            if quote and not is_continued:
                names[call].add(name)
            else:
                computed.append((source.name, call, name))
    prefixes: dict[str, set[str]] = {"set": set(), "start_timer": set()}
    reachable = _list_reachable(called, modules) if computed else set()  # slow, because it reads every file's calls
    for file, call, name in computed:
        if file in reachable:
            prefixes[call].add(name)
    return {call: GivenNames(frozenset(names[call]), tuple(sorted(prefixes[call]))) for call in names}


def _list_reachable(called: Collection[Source], modules: Mapping[str, Source]) -> set[str]:
    """Return the names of the files that can run; see `find_given`."""
    files = {each.name for each in modules.values()}
    waiting = [each for each in called if each.name not in files]
    reachable = {each.name for each in waiting}
    while waiting:
        required = {each.name for each in called_names(waiting.pop()) if each.kind == "module"}
        found = [modules[name] for name in required & modules.keys() if modules[name].name not in reachable]
        reachable.update(each.name for each in found)
        waiting += found
    return reachable
