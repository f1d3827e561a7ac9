"""Fields: what a definition's table may hold, checked, each fault with the line where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from appliance.errors import ConfigFailed, Fault, Invalid
from appliance.home.texts import cut
from appliance.lua.hints import Trouble, hint_of
from appliance.lua.runner import Function
from appliance.lua.source import Source
from appliance.sections import Key, nearest

MAX_UNKNOWN = 20
"""Names of one table that are no fields and are told one by one."""


class Reader:
    """Reads the table that one file returned against tables of keys, and gathers what is wrong with it."""

    def __init__(self, source: Source, described: Mapping[str, Any]) -> None:
        self.described = described
        self._source = source
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []

    def fields(self, keys: Mapping[str, Key]) -> dict[str, Any]:
        """The values of the whole table, by key; what has a fault, which is noted, is its default."""
        return self.table((), self.described, keys)

    def table(self, path: tuple[str, ...], raw: Any, keys: Mapping[str, Key]) -> dict[str, Any]:
        """The values of a table inside it; `path` are the names that lead there."""
        if not isinstance(raw, Mapping):
            if raw != []:
                self.fault(path, f"must be a table with names like {next(iter(keys))}, not {_list_or(raw)}")
                return {name: key.default for name, key in keys.items()}
            raw = {}
        unknown = [name for name in raw if name not in keys]
        for name in unknown[:MAX_UNKNOWN]:
            self.fault((*path, name), _unknown(name, keys))
        if len(unknown) > MAX_UNKNOWN:
            self.fault(path, f"has {len(unknown) - MAX_UNKNOWN} further names that are no fields")
        return {name: self._value((*path, name), key, raw) for name, key in keys.items()}

    def fault(self, path: tuple[str, ...], message: str) -> None:
        """Note what is wrong with the field at this path; the message goes on after the field's name."""
        sentence = f"{'.'.join(map(_written, path))} {message}" if path else f"what the file returns {message}"
        self.faults.append(Fault(self._source.name, self.line_of(*path), sentence))

    def refuse(self, sentence: str) -> None:
        """Note what is wrong, in a sentence that begins with the field's path: `trigger.above must …`."""
        self.faults.append(self._at(sentence))

    def warn(self, sentence: str) -> None:
        """Note what may not be meant, in such a sentence."""
        self.warnings.append(self._at(sentence))

    def _at(self, sentence: str) -> Fault:
        path = re.split(r"[.\[\]]+", sentence.split(" ", 1)[0])
        return Fault(self._source.name, self.line_of(*path), sentence)

    def line_of(self, *path: str) -> int:
        """The line of the field at this path, or of the nearest table around it that has one; 0 if none has."""
        return next((line for n in range(len(path), 0, -1) if (line := self._source.line_of(*path[:n]))), 0)

    def finish(self) -> None:
        """Raise `ConfigFailed` if anything was wrong; what no line can be found for is at the one that returns."""
        if self.faults:
            at = self._source.line_of_return
            raise ConfigFailed(
                sorted(Fault(each.file, each.line or at, _hinted(each.message)) for each in self.faults)
            )

    def _value(self, path: tuple[str, ...], key: Key, table: Mapping[str, Any]) -> Any:
        if table.get(path[-1]) is None:
            if key.default is None and not key.optional:
                self.fault(path, "is missing")
            return key.default
        try:
            return key.check(table[path[-1]])
        except ValueError as fault:
            self.fault(path, str(fault))
            return key.default


def _list_or(raw: Any) -> str:
    return "a list" if isinstance(raw, list) else shown(raw)


def _written(name: str) -> str:
    """A field's name as a sentence bears it, whatever somebody called it."""
    return name if re.fullmatch(r"\w{1,60}", name) else shown(name)


def _hinted(message: str) -> str:
    return message + hint_of(Trouble(message=message))


def _unknown(name: str, names: Iterable[str]) -> str:
    near = nearest(name, names, 0.5)
    return "is not a field; " + (f"there are {', '.join(names)}" if near is None else f"did you mean {near}")


def string(value: Any) -> str:
    """A check: any string."""
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {shown(value)}")
    return value


def text(longest: int) -> Key:
    """The key of a non-empty string of at most so many characters, without control characters around or in it."""

    def check(value: Any) -> str:
        try:
            return cut(string(value), longest)
        except Invalid as fault:
            raise ValueError(str(fault)) from None

    return Key(check)


def function(value: Any) -> Any:
    """A check: a Lua function."""
    if not isinstance(value, Function):
        raise ValueError(f"must be a function, not {shown(value)}")
    return value


def shown(value: Any) -> str:
    """A Lua value as a sentence shows it, never longer than a line bears."""
    if isinstance(value, Function):
        return "a function"
    if isinstance(value, Mapping | list | tuple):
        return "a table"
    if value is None or isinstance(value, bool):
        return "nil" if value is None else str(value).lower()
    described = repr(value)
    return described if len(described) <= 60 else f"{described[:57]}…"
