"""Lists the settings of all adapter kinds, for forms. The settings come from each kind's code or Lua file, and
from the bundled configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from appliance.adapters.access_settings import headers
from appliance.adapters.kinds import KINDS
from appliance.adapters.lua_kinds.definition import KindDefinition
from appliance.adapters.lua_kinds.settings import KNOWN_SETTINGS
from appliance.config import bundled_config, parse_toml
from appliance.lua.files.kind_files import KindFiles
from appliance.tables.checks import boolean
from appliance.tables.fields import Field, Fields

RARE = frozenset(
    {
        *("poll_interval_secs", "max_silence_secs", "auth", "headers", "fingerprint", "ca_file", "tls"),
        *("password_file", "token_file", "cert_file", "key_file", "hook_keys", "hub_url", "max_per_hour"),
        *("discovery_prefix", "tasmota", "publish", "hub_id", "include_config_entities", "method", "body"),
    }
)
"""Settings that most sections omit. A form shows these settings last."""

_NOT_IN_FORMS = ("type", "enabled")
_COMMENTED = re.compile(r"(?:# )?([a-z][a-z0-9_]*) = (.*)")
_TYPES = {"integer": "integer", "number": "number", "boolean": "boolean", "array": "list", "object": "table"}


class KindSetting(Struct, frozen=True, kw_only=True):
    """A setting of a section. `example` is a typical value. If `is_rare` is true, most sections omit the setting."""

    name: str
    type: str
    is_required: bool
    is_secret: bool
    is_rare: bool
    default: Any = None
    example: Any = None
    min: float | None = None
    max: float | None = None
    values: list[Any] | None = None
    description: str | None = None


class KindForm(Struct, frozen=True, kw_only=True):
    """A kind with its settings, required settings first. `fault` is the reason why the kind's Lua file is
    unusable."""

    name: str
    title: str
    is_lua: bool
    settings: list[KindSetting] = []
    fault: str | None = None


class Note(Struct, frozen=True):
    """The description and example value of a key, from the bundled configuration."""

    description: str
    example: Any


async def list_kind_forms(files: KindFiles) -> list[KindForm]:
    """Return all kinds that are available for sections, sorted by name."""
    forms = [_form_of_python(name) for name in KINDS]
    definitions, faults = await files.read_all()
    forms += [_form_of_lua(name, each) for name, each in definitions.items()]
    forms += [
        KindForm(name=name, title=name, is_lua=True, fault=str(each[0]))
        for name, each in faults.items()
        if name not in KINDS
    ]
    return sorted(forms, key=lambda each: each.name)


def _form_of_python(name: str) -> KindForm:
    kind, notes = KINDS[name], read_manual().get(name, {})
    settings = [_setting(key, field, notes.get(key)) for key, field in kind.settings.FIELDS.items()]
    return KindForm(name=name, title=kind.title, is_lua=False, settings=_sorted(settings))


def _form_of_lua(name: str, kind: KindDefinition) -> KindForm:
    common = read_manual()["wled"]
    settings = []
    for key, field in kind.settings.items():
        if key in _NOT_IN_FORMS:
            continue
        stated = kind.descriptions.get(key)
        note = common.get(key) if key in RARE else None
        is_fixed = key == "base_url" and field.default is not None
        is_rare = key not in kind.declared and (key in RARE or is_fixed or key in ("username", "token"))
        note = note if stated is None else Note(stated, None)
        settings.append(_setting(key, field, note, is_rare=is_rare))
    settings.sort(key=lambda each: (each.name not in kind.declared, each.name * (each.name in kind.declared)))
    return KindForm(name=name, title=kind.name, is_lua=True, settings=_sorted(settings))


def _sorted(settings: Iterable[KindSetting]) -> list[KindSetting]:
    return sorted(settings, key=lambda each: (each.is_rare, not each.is_required))


def _setting(name: str, field: Field[Any], note: Note | None, *, is_rare: bool | None = None) -> KindSetting:
    schema: Mapping[str, Any] = getattr(field.check, "schema", {})
    items = schema.get("items", schema)
    is_required = field.is_needed and not field.has_rows
    return KindSetting(
        name=name,
        type="table" if note is not None and isinstance(note.example, dict) else _type_of(field, schema),
        is_required=is_required,
        is_secret=field.secret,
        is_rare=name in RARE and not is_required if is_rare is None else is_rare,
        default=None if field.secret or field.has_rows else field.default,
        example=None if note is None or field.secret else note.example,
        min=items.get("minimum"),
        max=items.get("maximum"),
        values=items.get("enum"),
        description=None if note is None else note.description,
    )


def _type_of(field: Field[Any], schema: Mapping[str, Any]) -> str:
    if field.has_rows or field.check is headers:
        return "table"
    if field.check is boolean:
        return "boolean"
    return "duration" if schema.get("format") == "duration" else _TYPES.get(schema.get("type", ""), "string")


@cache
def read_manual() -> Mapping[str, Mapping[str, Note]]:
    """Return the notes about each kind's keys, from the comments in the bundled configuration."""
    known: dict[str, Fields] = {name: kind.settings.FIELDS for name, kind in KINDS.items()}
    found: dict[str, dict[str, Note]] = {name: {} for name in KINDS}
    section, words = "", list[str]()
    for line in (bundled_config() / "default.toml").read_text("utf-8").splitlines():
        if line.startswith("["):
            section, words = line.strip("[]").removeprefix("adapters."), []
        elif (stated := _COMMENTED.fullmatch(line)) is not None and stated[1] in known.get(section, KNOWN_SETTINGS):
            if section in known:
                found[section][stated[1]] = Note(
                    " ".join(words), parse_toml(f"value = {stated[2]}", section)["value"]
                )
            words = []
        elif line.startswith("# "):
            words.append(line.removeprefix("# "))
        else:
            words = []
    return found
