"""The definition of a kind in its Lua file: settings, defaults, and functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from appliance.adapters.access_settings import DEFAULT_POLL_SECS, max_silence_secs, poll_interval_secs, url_path
from appliance.adapters.lua_kinds.settings import KNOWN_SETTINGS, Setting, read_setting
from appliance.home.texts import MAX_NAME_CHARS, text
from appliance.tables import addresses
from appliance.tables.checks import (
    Function,
    format_value,
    function,
    nearest,
    number_within,
    one_of,
    string,
    suggest,
    whole,
)
from appliance.tables.fields import Field, Fields, Table

BUNDLED_KINDS = Path(__file__).parent / "bundled"
"""Folder of the bundled kinds."""


@cache
def list_bundled_kinds() -> tuple[str, ...]:
    """Return the names of the bundled kinds. The folder is read only once, because it may be unreadable when root
    privileges have been dropped."""
    return tuple(sorted(file.stem for file in BUNDLED_KINDS.glob("*.lua")))


KIND_NAME = re.compile(r"[a-z][a-z0-9_]*")
"""Name of a kind. The file name is this name plus `.lua`."""

MAX_SETTINGS, MAX_ORIGINS, MAX_OPERATIONS = 64, 16, 32
MAX_OPERATION_SECS, DEFAULT_OPERATION_SECS = 300.0, 5.0


class KindDefinition(Struct, frozen=True, kw_only=True):
    """The definition of one kind.

    `settings` are the keys of the kind's sections with their defaults, including the keys that every kind accepts.
    `origins` maps the name of each further address to its URL, or to the setting that contains its URL. `operations`
    maps each operation to its time limit in seconds. `declared` contains the settings that the file itself defines,
    and `descriptions` describes them.
    """

    name: str
    settings: Fields
    declared: frozenset[str] = frozenset()
    descriptions: Mapping[str, str] = {}
    origins: Mapping[str, str | OriginSetting] = {}
    listen: ListenDefinition | None = None
    has_poll: bool = False
    has_hook: bool = False
    has_command: bool = False
    operations: Mapping[str, float] = {}


class ListenDefinition(Struct, frozen=True, kw_only=True):
    """The connection on which a kind listens. `reply` is the name of the field with the message id in a reply.

    If `path` is None, a function of the file returns the path for each section. If this function returns nil, no
    connection is opened.
    """

    path: str | None
    kind: str
    has_hello: bool
    max_message_kb: int
    reply: str | None = None


class OriginSetting(Struct, frozen=True):
    """The setting that contains the URL of an origin."""

    setting: str


_DEFAULTS: Fields = {
    "base_url": Field(addresses.base_url, required=False),
    "poll_interval_secs": Field(poll_interval_secs, DEFAULT_POLL_SECS),
    "max_silence_secs": Field(max_silence_secs, required=False),
}
"""Fields of a kind that are defaults for the settings of the same names."""

_TOP: Fields = {
    "name": Field(text(MAX_NAME_CHARS)),
    "poll": Field(function, required=False),
    "hook": Field(function, required=False),
    "command": Field(function, required=False),
}


def _path(value: Any) -> str | None:
    """Check a path. If the value is a function, return None; the function is called later to get the path."""
    return None if isinstance(value, Function) else url_path(value)


_LISTEN: Fields = {
    "path": Field(_path),
    "kind": Field(one_of("websocket", "sse"), "websocket"),
    "hello": Field(function, required=False),
    "receive": Field(function),
    "reply": Field(text(MAX_NAME_CHARS), required=False),
    "max_message_kb": Field(whole(1, 16_384), 1024),
}


def parse_kind(table: Table) -> KindDefinition | None:
    """Parse the table of a file. Return None if the table has faults."""
    count = len(table.findings.faults)
    found = table.read(_TOP)
    settings = _read_settings(table, table.read(_DEFAULTS))
    origins = _read_origins(table, settings)
    operations = _read_operations(table)
    listen = _read_listen(table)
    table.refuse_others("a field of a kind")
    if len(table.findings.faults) > count:
        return None
    stated: dict[str, Any] = {f"has_{name}": found[name] is not None for name in ("poll", "hook", "command")}
    return KindDefinition(
        name=found["name"],
        settings={name: each.field for name, each in settings.items()},
        declared=frozenset(table.raw("settings") or ()),
        descriptions={name: each.description for name, each in settings.items() if each.description},
        origins=origins,
        operations=operations,
        listen=listen,
        **stated,
    )


def _entries(table: Table, field: str, most: int) -> list[tuple[Table, str]]:
    """Return the field's table, with each of its valid names."""
    outer = table.table(field)
    if outer is None:
        return []
    raw = table.raw(field) or {}
    if len(raw) > most:
        table.fault(field, f"has more than {most} entries")
    return [(outer, name) for name in raw if _is_name(outer, name)]


def _is_name(table: Table, name: str) -> bool:
    if KIND_NAME.fullmatch(name) is None:
        table.fault(name, "is not a valid name; use a-z, 0-9, and _, and begin with a letter")
        return False
    return True


def _read_settings(table: Table, defaults: Mapping[str, Any]) -> dict[str, Setting]:
    settings = {name: Setting(field) for name, field in KNOWN_SETTINGS.items()}
    for outer, name in _entries(table, "settings", MAX_SETTINGS):
        inner = outer.table(name)
        if inner is not None and (setting := read_setting(inner, name)) is not None:
            settings[name] = setting
    for name, default in defaults.items():
        field = settings[name].field
        if field.default is None:
            settings[name] = settings[name]._replace(field=replace(field, default=default))
    return settings


def _read_origins(table: Table, settings: Mapping[str, Setting]) -> dict[str, str | OriginSetting]:
    origins: dict[str, str | OriginSetting] = {}
    for outer, name in _entries(table, "origins", MAX_ORIGINS):
        raw = outer.raw(name)
        if isinstance(raw, str):
            found = outer.take(name, addresses.base_url)
            origins |= {} if found is None else {name: found}
            continue
        inner = outer.table(name, 'an address, or { setting = "the_setting_with_the_address" }')
        if inner is None:
            continue
        setting = inner.need("setting", string)
        inner.refuse_others("a field of an origin")
        if setting is not None and setting not in settings:
            near = nearest(setting, settings)
            inner.fault("setting", f"names an unknown setting: {format_value(setting)}{suggest(near)}")
        elif setting is not None:
            origins[name] = OriginSetting(setting)
    return origins


def _read_listen(table: Table) -> ListenDefinition | None:
    inner = None if table.raw("listen") is None else table.table("listen")
    if inner is None:
        return None
    count = len(inner.findings.faults)
    found = inner.read(_LISTEN)
    inner.refuse_others("a field of listen")
    if found["kind"] == "sse" and (found["hello"] or found["reply"]) is not None:
        inner.fault("kind", "is sse, which is receive-only; remove hello and reply")
    if len(inner.findings.faults) > count:
        return None
    stated = {name: found[name] for name in ("path", "kind", "reply", "max_message_kb")}
    return ListenDefinition(has_hello=found["hello"] is not None, **stated)


def _read_operations(table: Table) -> dict[str, float]:
    operations: dict[str, float] = {}
    for outer, name in _entries(table, "operations", MAX_OPERATIONS):
        if isinstance(outer.raw(name), Function):
            operations[name] = DEFAULT_OPERATION_SECS
            continue
        inner = outer.table(name, "a function, or { run = function(ctx, payload) … end }")
        if inner is not None:
            inner.need("run", function)
            limit = inner.take("timeout_secs", number_within(0.1, MAX_OPERATION_SECS))
            inner.refuse_others("a field of an operation")
            operations[name] = limit or DEFAULT_OPERATION_SECS
    return operations
