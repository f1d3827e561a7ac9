"""The settings of a kind: the keys that every section accepts, and the settings that a Lua file defines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from appliance.adapters.access_settings import (
    file_path,
    fingerprint,
    headers,
    max_silence_secs,
    poll_interval_secs,
    secret,
)
from appliance.errors import Invalid
from appliance.tables import addresses
from appliance.tables.checks import (
    Mismatch,
    boolean,
    format_value,
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

MAX_VALUES = 200
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
    "poll_interval_secs": Field(poll_interval_secs, required=False),
    "max_silence_secs": Field(max_silence_secs, required=False),
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


class Setting(NamedTuple):
    """A setting and its description."""

    field: Field[Any]
    description: str | None = None


def read_setting(table: Table, name: str) -> Setting | None:
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
    return Setting(Field(check, default, required=stated["required"], secret=is_secret), stated["description"])


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
