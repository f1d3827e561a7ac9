"""The definition of a kind in its Lua file: settings, defaults, and functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from appliance.adapters.access_settings import file_path, fingerprint, headers, secret, url_path
from appliance.errors import Invalid
from appliance.home.texts import MAX_NAME_CHARS, text
from appliance.tables import addresses
from appliance.tables.checks import (
    Function,
    Mismatch,
    boolean,
    format_value,
    function,
    is_number,
    nearest,
    number_within,
    one_of,
    string,
    suggest,
    whole,
)
from appliance.tables.fields import Field, Fields, Table
from appliance.tables.json_schema import Check, Schema
from appliance.tables.secret_names import is_secret_name

BUNDLED_KINDS = Path(__file__).parent / "bundled"
"""Folder of the bundled kinds."""


@cache
def list_bundled_kinds() -> tuple[str, ...]:
    """Return the names of the bundled kinds. The folder is read only once, because it may be unreadable when root
    privileges have been dropped."""
    return tuple(sorted(file.stem for file in BUNDLED_KINDS.glob("*.lua")))


KIND_NAME = re.compile(r"[a-z][a-z0-9_]*")
"""Name of a kind. The file name is this name plus `.lua`."""

MAX_SETTINGS, MAX_ORIGINS, MAX_OPERATIONS, MAX_VALUES = 64, 16, 32, 200
MAX_OPERATION_SECS, DEFAULT_OPERATION_SECS = 300.0, 5.0
MAX_SETTING, MAX_DURATION_SECS = float(1 << 53), 400 * 86_400.0

_UNITS = {"s": 1, "m": 60, "h": 3600}


def duration(value: Any) -> float:
    """Parse a duration in seconds, or a text such as `"90s"`, `"5m"`, `"1h"`."""
    if isinstance(value, str) and (found := re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)([smh])", value)):
        value = float(found[1]) * _UNITS[found[2]]
    if not is_number(value) or not 0 <= value <= MAX_DURATION_SECS:
        raise Mismatch('a number of seconds, or a text like "90s", "5m" or "1h"', value)
    return float(value)


KNOWN_SETTINGS: Fields = {
    "type": Field(string, required=False),
    "enabled": Field(boolean, default=True),
    "base_url": Field(addresses.base_url, required=False),
    "poll_interval_secs": Field(whole(1, 86_400), required=False),
    "max_silence_secs": Field(whole(1, 30 * 86_400), required=False),
    "auth": Field(one_of("basic", "digest", "bearer", "none"), required=False),
    "username": Field(secret, required=False),
    "password": Field(secret, required=False, secret=True),
    "password_file": Field(file_path, required=False),
    "token": Field(secret, required=False, secret=True),
    "token_file": Field(file_path, required=False),
    "ca_file": Field(file_path, required=False),
    "fingerprint": Field(fingerprint, required=False),
    "headers": Field(headers, required=False, secret=True),
}
"""Keys that sections of every kind accept."""


class KindDefinition(Struct, frozen=True, kw_only=True):
    """The definition of one kind.

    `settings` are the keys of the kind's sections, including the keys that every kind accepts. `origins` maps the
    name of each further address to its URL, or to the setting that contains its URL. `operations` maps each operation
    to its time limit in seconds. `declared` contains the settings that the file itself defines, and `descriptions`
    describes them.
    """

    name: str
    settings: Fields
    declared: frozenset[str] = frozenset()
    descriptions: Mapping[str, str] = {}
    base_url: str | None = None
    poll_interval_secs: int = 5
    max_silence_secs: int | None = None
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


def _texts(value: Any) -> list[Any]:
    """Check an array of strings, numbers, and booleans."""
    if not isinstance(value, list) and value != {}:
        raise Mismatch("an array", value)
    if any(not isinstance(each, str | int | float | bool) for each in value):
        raise Invalid("must be an array of strings, numbers, and booleans")
    return list(value)


def _values(value: Any) -> list[Any]:
    """Check the list of a setting's allowed values."""
    found = _texts(value)
    if len(found) > MAX_VALUES:
        raise Invalid(f"has more than {MAX_VALUES} entries")
    return found


_TOP: Fields = {
    "name": Field(text(MAX_NAME_CHARS)),
    "base_url": Field(addresses.base_url, required=False),
    "poll_interval_secs": Field(whole(1, 86_400), 5),
    "max_silence_secs": Field(whole(1, 30 * 86_400), required=False),
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
_SETTING: Fields = {
    "type": Field(one_of("string", "integer", "number", "boolean", "duration", "list")),
    "default": Field(lambda value: value, required=False),
    "required": Field(boolean, default=False),
    "min": Field(number_within(-MAX_SETTING, MAX_SETTING), required=False),
    "max": Field(number_within(-MAX_SETTING, MAX_SETTING), required=False),
    "values": Field(_values, required=False),
    "secret": Field(boolean, default=False),
    "description": Field(string, required=False),
}


def parse_kind(table: Table) -> KindDefinition | None:
    """Parse the table of a file. Return None if the table has faults."""
    count = len(table.findings.faults)
    found = table.read(_TOP)
    settings = _read_settings(table)
    origins = _read_origins(table, settings)
    operations = _read_operations(table)
    listen = _read_listen(table)
    table.refuse_others("a field of a kind")
    if len(table.findings.faults) > count:
        return None
    stated: dict[str, Any] = {f"has_{name}": found[name] is not None for name in ("poll", "hook", "command")}
    stated |= {name: found[name] for name in ("name", "base_url", "poll_interval_secs", "max_silence_secs")}
    return KindDefinition(
        settings={name: field for name, (field, _) in settings.items()},
        declared=frozenset(table.raw("settings") or ()),
        descriptions={name: description for name, (_, description) in settings.items() if description},
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


_Setting = tuple[Field[Any], str | None]
"""A setting and its description."""


def _read_settings(table: Table) -> dict[str, _Setting]:
    settings: dict[str, _Setting] = {name: (field, None) for name, field in KNOWN_SETTINGS.items()}
    for outer, name in _entries(table, "settings", MAX_SETTINGS):
        inner = outer.table(name)
        if inner is not None and (setting := _read_setting(inner, name)) is not None:
            settings[name] = setting
    return settings


def _read_setting(table: Table, name: str) -> _Setting | None:
    count = len(table.findings.faults)
    stated = table.read(_SETTING)
    table.refuse_others("a field of a setting")
    if len(table.findings.faults) > count:
        return None
    known = KNOWN_SETTINGS.get(name)
    is_secret = stated["secret"] or is_secret_name(name)
    try:
        check = known.check if known is not None else _check_of(stated, is_secret=is_secret)
        if known is not None and any(stated[limit] is not None for limit in ("min", "max", "values")):
            check = _both(known.check, _check_of(stated, is_secret=is_secret))
        check = Check(schema=_schema_of(stated), run=check)
    except Invalid as fault:
        table.fault("type", str(fault))
        return None
    default = stated["default"]
    if default is not None:
        try:
            default = check(default)
        except Invalid as fault:
            table.fault("default", str(fault))
    is_secret = is_secret or (known is not None and known.secret)
    return Field(check, default, required=stated["required"], secret=is_secret), stated["description"]


def _schema_of(stated: Mapping[str, Any]) -> Schema:
    """Return the JSON schema of a setting. A duration has the format `duration`."""
    limits = {"minimum": stated["min"], "maximum": stated["max"], "enum": stated["values"] or None}
    schema = {name: limit for name, limit in limits.items() if limit is not None}
    if stated["type"] == "list":
        return {"type": "array", "items": schema}
    if stated["type"] == "duration":
        return {"format": "duration", **schema}
    return {"type": stated["type"], **schema}


def _both(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: second(first(value))


def _check_of(stated: Mapping[str, Any], *, is_secret: bool) -> Callable[[Any], Any]:
    kind, low, high, values = (stated[name] for name in ("type", "min", "max", "values"))
    is_numeric = kind in ("integer", "number", "duration")
    if not is_numeric and (low is not None or high is not None):
        raise Invalid(f"is {kind}, which cannot have min or max; only integer, number, and duration can")
    if low is not None and high is not None and low > high:
        raise Invalid(f"is {kind}, but min ({low:g}) is greater than max ({high:g})")
    if values is not None and kind == "boolean":
        raise Invalid("is boolean, which cannot have values; it is always true or false")
    if is_secret and kind == "string":
        return secret if not values else _both(secret, _without_value(_one_of(string, values, is_list=False), kind))
    widest = (0.0, MAX_DURATION_SECS) if kind == "duration" else (-MAX_SETTING, MAX_SETTING)
    bounds = (widest[0] if low is None else low, widest[1] if high is None else high)
    checks: Mapping[str, Callable[[Any], Any]] = {
        "string": string,
        "integer": whole(int(bounds[0]), int(bounds[1])),
        "number": number_within(*bounds),
        "boolean": boolean,
        "duration": _bounded_duration(*bounds),
        "list": _texts,
    }
    check = checks[kind] if not values else _one_of(checks[kind], values, is_list=kind == "list")
    return _without_value(check, kind) if is_secret else check


def _one_of(check: Callable[[Any], Any], values: Sequence[Any], *, is_list: bool) -> Callable[[Any], Any]:
    """Restrict a check to these values, or to lists of these values. Raise `Invalid` if the check refuses one of
    the values."""
    known = values if is_list else [check(each) for each in values]

    def checked(value: Any) -> Any:
        found = check(value)
        for each in found if is_list else [found]:
            if each not in known:
                near = nearest(each, map(str, values)) if isinstance(each, str) else None
                raise Mismatch(f"one of {', '.join(map(str, values))}", each, suggest(near))
        return found

    return checked


def _without_value(check: Callable[[Any], Any], kind: str) -> Callable[[Any], Any]:
    """Return a check of a secret. The error message of the check does not contain the secret."""

    def checked(value: Any) -> Any:
        try:
            return check(value)
        except Invalid:
            raise Invalid(f"must be of type {kind}, and within the setting's limits") from None

    return checked


def _bounded_duration(low: float, high: float) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        secs = duration(value)
        if not low <= secs <= high:
            raise Invalid(f"must be from {low:.10g} to {high:.10g} seconds, not {format_value(value)}")
        return secs

    return check


def _read_origins(table: Table, settings: Mapping[str, _Setting]) -> dict[str, str | OriginSetting]:
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
