"""A section of a kind in Lua: as written in the configuration, and as checked by its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from appliance.adapters.access_settings import EXCLUSIVE
from appliance.adapters.address_hints import hint_of_addresses
from appliance.adapters.lua_kinds.definition import KindDefinition
from appliance.adapters.redaction import texts_in
from appliance.errors import Fault, Invalid
from appliance.tables import addresses
from appliance.tables.checks import TOML
from appliance.tables.fields import Findings, Path, Problem, Redacted, Table, dotted, hint_of_keys, located


class LuaSection(Redacted, frozen=True, kw_only=True):
    """An enabled section as written in the configuration. Only the name of the section's kind has been checked.

    `line_of` returns the line of a key path in `file`, or 0 if the line is unknown.
    """

    HIDDEN = ("raw",)
    name: str
    kind: str
    raw: Mapping[str, Any]
    file: str
    line_of: Callable[[Path], int]

    def fault(self, message: str, *path: str) -> Fault:
        at = ("adapters", self.name, *path)
        return Fault(self.file, self.line_of(at) or self.line_of(at[:2]), f"{dotted(at)} {message}")


def list_lua_sections(sections: Iterable[Any]) -> list[LuaSection]:
    return [each for each in sections if isinstance(each, LuaSection)]


class SectionSettings(Redacted, frozen=True, kw_only=True):
    """The values of a section, with defaults. Never log `secrets`."""

    HIDDEN = ("values", "secrets")
    values: Mapping[str, Any]
    secrets: tuple[str, ...]
    origins: Mapping[str, str]


class SectionFaults(Struct, frozen=True):
    """The faults of a section."""

    faults: tuple[Fault, ...]


def read_section(section: LuaSection, definition: KindDefinition) -> SectionSettings | SectionFaults:
    """Check a section with its kind. Return the values, or all faults with their lines and the nearest known
    names."""
    findings = Findings(TOML)
    table = Table(section.raw, findings, ("adapters", section.name))
    values = table.read(definition.settings)
    hint = hint_of_addresses(section.raw, hint_of_keys(dotted(table.path), ()))
    table.refuse_others(f"a setting of the kind {section.kind}", hint)
    for one, other in EXCLUSIVE:
        if values.get(one) is not None and values.get(other) is not None:
            table.fault(other, f"cannot be combined with {one}; keep one of them")
    origins: dict[str, str] = {}
    for name, origin in definition.origins.items():
        if isinstance(origin, str):
            origins[name] = origin
        elif values.get(origin.setting) is not None:
            try:
                origins[name] = addresses.base_url(values[origin.setting])
            except Invalid as fault:
                is_secret = definition.settings[origin.setting].secret
                table.fault(origin.setting, "must be the address of an HTTP service" if is_secret else str(fault))
    if findings.faults:
        explained = [_explain(each, definition) for each in findings.faults]
        return SectionFaults(tuple(located(explained, section.file, section.line_of)))
    secrets = texts_in([values[name] for name, field in definition.settings.items() if field.secret])
    return SectionSettings(values=values, secrets=tuple(secrets), origins=origins)


def _explain(problem: Problem, definition: KindDefinition) -> Problem:
    """If a key is missing, add the key's description to the problem."""
    description = definition.descriptions.get(str(problem.path[-1]))
    if not problem.is_missing or description is None:
        return problem
    return Problem(problem.path, f"{problem.message}: {description}", is_missing=True)
