"""Reads the fields of an external table, and collects all faults. A table is a section of the configuration, a
definition in Lua, or a JSON object."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from keyword import iskeyword
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Struct, StructMeta, field

from appliance.errors import Fault, Invalid
from appliance.tables.checks import JSON, LUA, Mismatch, Words, format_value, nearest, suggest

T = TypeVar("T")
C = TypeVar("C", bound=Callable[[Any], Any])

MAX_UNKNOWN = 20
"""Maximum number of unknown names per table that are reported individually. One more fault reports the number of
remaining names."""

Path = tuple[str | int, ...]
"""The path of a value: field names, and positions in lists. Positions start at 1."""


class Field(Struct, Generic[C], frozen=True):
    """A field of a table, with the check and the default of its value. A missing required field without a default is
    a fault.

    - `secret`: the value is hidden in `repr` and in the sentences of faults.
    - `has_rows`: the field is a list of tables; `check` is the `Settings` subclass of each table.
    - `is_section`: the field is a section of the file; `check` is the `Settings` subclass of the section.
    """

    check: C
    default: Any = None
    required: bool = True
    secret: bool = False
    has_rows: bool = False
    is_section: bool = False

    @property
    def is_needed(self) -> bool:
        return self.required and self.default is None


Fields = Mapping[str, Field[Any]]
"""The known fields of a table by name."""


class Redacted(Struct, frozen=True):
    """A value whose `repr` hides the fields in `HIDDEN`, so that secrets never appear in log lines and tracebacks."""

    HIDDEN: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name not in self.HIDDEN)
        return f"{type(self).__name__}({', '.join(shown)})"


def key(check: Callable[[Any], Any], default: Any = None, *, required: bool = True, secret: bool = False) -> Any:
    """Return a field of `Settings` for a value. See `Field` for the arguments."""
    return Field(check, default, required, secret)


def rows(of: type[Settings]) -> Any:
    """Return a field of `Settings` for a list of tables. A missing list is empty."""
    return Field(of, (), has_rows=True)


def section(of: type[Settings]) -> Any:
    """Return a field of `Settings` for a section. All keys of the section must have defaults."""
    return Field(of, of(), is_section=True)


class SettingsMeta(StructMeta):
    """Creates Structs from classes with `key(…)` fields. `FIELDS` contains these fields, including inherited fields.

    If a field's name is a Python keyword, append `_` in the class; `FIELDS` contains the name without `_`.
    `attribute_of` returns the name in the class.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any) -> Any:
        own = {name: each for name, each in body.items() if isinstance(each, Field)}
        given = {name: each.default for name, each in own.items() if each.default is not None or not each.required}
        kept = {name: each for name, each in body.items() if name not in own}
        inherited = {name: each for base in bases for name, each in getattr(base, "FIELDS", {}).items()}
        fields = inherited | own
        hidden = tuple(name for name, each in fields.items() if each.secret)
        more = {"FIELDS": {name.rstrip("_"): each for name, each in fields.items()}, "HIDDEN": hidden}
        return super().__new__(cls, name, bases, kept | given | more, **options)


def attribute_of(field_name: str) -> str:
    """Return the attribute of `Settings` for a name in `FIELDS`."""
    return f"{field_name}_" if iskeyword(field_name) else field_name


class Settings(Redacted, metaclass=SettingsMeta, frozen=True, kw_only=True):
    """The content of a table as a frozen value. Subclasses declare a `key(…)` for each possible field."""

    FIELDS: ClassVar[Fields]


S = TypeVar("S", bound=Settings)


class Problem(Struct, frozen=True):
    """A fault of the value at a path. `str()` begins with the path, if any."""

    path: Path
    message: str
    is_missing: bool = False

    def __str__(self) -> str:
        return f"{dotted(self.path)} {self.message}" if self.path else self.message


class Findings(Struct):
    """The faults and warnings of a table. `words` contains the type names of the table's language."""

    words: Words = JSON
    faults: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)


class Table:
    """A table and its path. `findings` collects the faults of the table and its inner tables."""

    def __init__(self, raw: Mapping[str, Any], findings: Findings, path: Path = ()) -> None:
        self.findings = findings
        self.path = path
        is_lua = findings.words is LUA  # in Lua, nil means missing
        self._raw = {name: value for name, value in raw.items() if value is not None} if is_lua else raw
        self._asked: dict[str, None] = {}

    def has(self, name: str) -> bool:
        return name in self._raw

    def raw(self, name: str) -> Any:
        self._asked[name] = None
        return self._raw.get(name)

    def take(self, name: str, check: Callable[[Any], T], *, is_secret: bool = False) -> T | None:
        """Return the field's checked value. If the value is missing, return None. If the value is invalid, record
        a fault and return None. The fault does not contain a secret value."""
        self._asked[name] = None
        if name not in self._raw:
            return None
        try:
            return check(self._raw[name])
        except Mismatch as mismatch:
            self.fault(name, mismatch.without_value if is_secret else mismatch.in_words(self.findings.words))
        except Invalid as fault:
            self.fault(name, str(fault))
        return None

    def need(self, name: str, check: Callable[[Any], T], *, is_secret: bool = False) -> T | None:
        if name not in self._raw:
            self._asked[name] = None
            self.findings.faults.append(Problem((*self.path, name), "is missing", is_missing=True))
        return self.take(name, check, is_secret=is_secret)

    def read(self, fields: Fields, *, is_needed: bool = True) -> dict[str, Any]:
        """Return the values of these fields, or their defaults if they are missing or invalid. Record faults for
        invalid fields. If `is_needed` is false, missing required fields are not faults."""
        return {name: self._read(name, each, is_needed) for name, each in fields.items()}

    def _read(self, name: str, each: Field[Any], is_needed: bool) -> Any:
        if each.has_rows:
            header = ".".join(map(str, (*self.path, name)))
            built = [table.build(each.check) for table in self.tables(name, f"[[{header}]]")]
            return tuple(row for row in built if row is not None)
        is_needed = is_needed and each.is_needed
        count = len(self.findings.faults)
        value = (self.need if is_needed else self.take)(name, each.check, is_secret=each.secret)
        is_stated = name in self._raw and len(self.findings.faults) == count
        return value if is_stated else each.default

    def build(self, settings: type[S]) -> S | None:
        """Return the settings in this table. If the table has faults, record them and return None."""
        count = len(self.findings.faults)
        found = self.read(settings.FIELDS)
        self.refuse_others("a key of Lares")
        return self.create(settings, found) if len(self.findings.faults) == count else None

    def create(self, settings: type[S], found: Mapping[str, Any]) -> S | None:
        """Return the settings with these values of `FIELDS`. If the class rejects this combination of values, record
        a fault and return None."""
        try:
            return settings(**{attribute_of(name): found[name] for name in settings.FIELDS})
        except Invalid as fault:
            self.findings.faults.append(Problem(self.path, str(fault)))
            return None

    def table(self, name: str, expected: str = "a table") -> Table | None:
        """Return the field's table, or an empty table if the field is missing. If the value is not a table, record
        a fault and return None."""
        raw = self.raw(name)
        return self._inner((name,), {} if raw is None else raw, expected)

    def tables(self, name: str, example: str, expected: str = "a table") -> list[Table]:
        """Return the field's list of tables, or an empty list if the field is missing. If the value is not a list,
        record a fault and return an empty list. Omit an entry that is not a table, and record that it must be
        `expected`."""
        raw = self.raw(name)
        if raw is None or raw in ({}, []):
            return []
        if isinstance(raw, Mapping):
            self.fault(name, f"must be a list of tables: {example}")
            return []
        if not isinstance(raw, list | tuple):
            self.fault(name, f"must be a list of tables, not {format_value(raw, self.findings.words)}")
            return []
        found = [self._inner((name, number), each, expected) for number, each in enumerate(raw, 1)]
        return [table for table in found if table is not None]

    def _inner(self, path: Path, raw: Any, expected: str = "a table") -> Table | None:
        path = (*self.path, *path)
        if raw == [] and self.findings.words is LUA:  # in Lua, an empty table is also an empty list
            raw = {}
        if isinstance(raw, Mapping):
            return Table(raw, self.findings, path)
        self.findings.faults.append(
            Problem(path, f"must be {expected}, not {format_value(raw, self.findings.words)}")
        )
        return None

    def fault(self, name: str, message: str) -> None:
        self.findings.faults.append(Problem((*self.path, name), message))

    def warn(self, name: str, message: str) -> None:
        self.findings.warnings.append(Problem((*self.path, name), message))

    def refuse_others(
        self,
        what: str,
        hint: Callable[[str, list[str]], str] | None = None,
        more: Iterable[str] = (),
    ) -> None:
        """Record a fault for each field that was not read and is not in `more`: `{name} is not {what}`.

        `hint` is called with the unknown name and the known names, and returns the end of the message.
        """
        known = list(dict.fromkeys([*self._asked, *more]))
        unknown = [str(name) for name in self._raw if name not in known]
        for name in unknown[:MAX_UNKNOWN]:
            self.fault(name, f"is not {what}{(hint or _hint)(name, known)}")
        if len(unknown) > MAX_UNKNOWN:
            message = f"{len(unknown) - MAX_UNKNOWN} further names are unknown"
            self.findings.faults.append(Problem(self.path, message))


def located(problems: Iterable[Problem], file: str, line_of: Callable[[Path], int]) -> list[Fault]:
    """Return the problems of a file as faults. A fault's line is the line of its path, or of the nearest enclosing
    table.

    `line_of` returns 0 if a path has no line. If no enclosing table has a line, the fault gets the line 0.
    """
    return [Fault(file, line_at(each.path, line_of), str(each)) for each in problems]


def line_at(path: Path, line_of: Callable[[Path], int]) -> int:
    """Return the line of the path, or of the nearest enclosing table, or 0."""
    return next((line for n in range(len(path), 0, -1) if (line := line_of(path[:n]))), 0)


def dotted(path: Path) -> str:
    """Return the path for sentences: `conditions[2].attribute`."""
    written = "".join(f"[{step}]" if isinstance(step, int) else f".{_written(step)}" for step in path)
    return written.removeprefix(".")


def _written(name: str) -> str:
    """Return a field's name for sentences. Quote names with unusual characters."""
    return name if re.fullmatch(r"[\w-]{1,60}", name) else format_value(name)


def _hint(name: str, known: list[str]) -> str:
    return suggest(nearest(name, known), f"use one of {', '.join(known)}")


def hint_of_keys(section: str, elsewhere: Iterable[str]) -> Callable[[str, list[str]], str]:
    """Return a function that suggests one of the section's keys for an unknown key.

    `elsewhere` contains the dotted names of all keys of the file. If a key belongs to another section, the hint names
    that section.
    """
    prefix = f"{section}." if section else ""

    def hint(key: str, siblings: list[str]) -> str:
        near = nearest(key, siblings, 0.6)
        if near is None:
            by_last = _unique_by_last_part(elsewhere)
            if (far := nearest(key, by_last, 0.8)) is not None:
                return suggest(by_last[far])
        near = near or nearest(key, siblings, 0.4)
        return suggest(near and prefix + near, f"use one of {', '.join(prefix + name for name in siblings)}")

    return hint


def _unique_by_last_part(names: Iterable[str]) -> dict[str, str]:
    """Return the dotted names whose last part is unique, keyed by their last part."""
    by_last: dict[str, list[str]] = {}
    for name in names:
        by_last.setdefault(name.rpartition(".")[2], []).append(name)
    return {last: among[0] for last, among in by_last.items() if len(among) == 1}
