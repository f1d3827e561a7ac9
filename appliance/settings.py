"""Settings: what each section of the configuration may hold, as frozen data, and the check of every key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from appliance.errors import Invalid
from appliance.locale import load_zone
from appliance.tables.addresses import Address, address, origin
from appliance.tables.checks import Mismatch, boolean, listed, number_within, one_of, string, whole
from appliance.tables.fields import Field, Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """`[api.rate_limit]`: what one key may write."""

    enabled: bool
    requests_per_second: float
    burst_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cors:
    """`[api.cors]`: the web pages of other origins that may use the API in a browser."""

    enabled: bool
    allowed_origins: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """`[api]`."""

    bind_address: Address
    max_body_bytes: int
    max_connections: int
    max_connections_per_peer: int
    rate_limit: RateLimit
    cors: Cors


@dataclass(frozen=True, slots=True, kw_only=True)
class Auth:
    """`[auth]` or what the environment says instead; `source` and `line` tell where it came from (0: no line)."""

    master_key: str | None = field(repr=False)
    source: str
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """`[dashboard]`."""

    enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Logging:
    """`[logging]`."""

    level: str
    format: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """`[runtime]`."""

    event_bus_capacity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """`[history]`."""

    max_mb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """`[notify]`: the operations that `ctx:notify` invokes, `<section>:<operation>`."""

    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Persistence:
    """`[persistence]`."""

    flush_secs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LuaFolder:
    """A section about a folder of Lua files; `directory` as configured."""

    enabled: bool
    directory: str
    watch: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenes(LuaFolder):
    """`[scenes]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomationRunner:
    """`[automations.runner]`: what holds for every execution, of scenes too."""

    default_max_concurrent: int
    backstop_timeout_secs: float
    brake_runs: int
    brake_secs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Automations(LuaFolder):
    """`[automations]`."""

    runner: AutomationRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripts(LuaFolder):
    """`[scripts]`. The limits hold for every execution of Lua."""

    max_memory_mb: int
    max_cpu_secs: float


def master_key(value: Any) -> str:
    """A check that never tells the value."""
    if not isinstance(value, str) or re.fullmatch(r"[\x21-\x7e]+", value) is None:
        wanted = "not be empty" if value == "" else "be a string of visible ASCII characters without spaces"
        raise Invalid(f"must {wanted}")
    return value


def _timezone(value: Any) -> ZoneInfo:
    """A check: the name of a time zone."""
    name = string(value)
    try:
        return load_zone(name)
    except Invalid as fault:
        raise Invalid(f'must be the name of a time zone like "Europe/Berlin": {fault}') from None


def _directory(value: Any) -> str:
    text = string(value)
    if not text or "\0" in text:
        raise Mismatch('a folder like "config/scenes"', value)
    return text


def _target(value: Any) -> str:
    """A check: an operation of an adapter, `<section>:<operation>`."""
    if re.fullmatch(r"[a-z0-9_]+:[a-z0-9_]+", string(value)) is None:
        raise Mismatch('operations like "phone:send"', value)
    return string(value)


def _folder(directory: str) -> dict[str, Field[Any]]:
    return {
        "enabled": Field(boolean, default=True),
        "directory": Field(_directory, directory),
        "watch": Field(boolean, default=False),
    }


POLL_INTERVAL = Field(whole(1, 86_400), 5)
"""`poll_interval_secs` of the adapters that poll."""

SECTIONS: Mapping[str, Fields] = {
    "api": {
        "bind_address": Field(address, Address(host="127.0.0.1", port=3000)),
        "max_body_bytes": Field(whole(1024, 1 << 30), 1 << 20),
        "max_connections": Field(whole(1, 1 << 16), 1000),
        "max_connections_per_peer": Field(whole(1, 1 << 16), 600),
    },
    "api.rate_limit": {
        "enabled": Field(boolean, default=False),
        "requests_per_second": Field(number_within(0.001, 1_000_000), 100),
        "burst_size": Field(whole(1, 1_000_000), 20),
    },
    "api.cors": {"enabled": Field(boolean, default=False), "allowed_origins": Field(listed(origin), ())},
    "auth": {"master_key": Field(master_key, required=False)},
    "dashboard": {"enabled": Field(boolean, default=True)},
    "logging": {
        "level": Field(one_of("debug", "info", "warning", "error"), "info"),
        "format": Field(one_of("text", "json"), "text"),
    },
    "runtime": {"event_bus_capacity": Field(whole(1, 1 << 20), 1024)},
    "locale": {
        "timezone": Field(_timezone, load_zone("UTC")),
        "latitude": Field(number_within(-90, 90), required=False),
        "longitude": Field(number_within(-180, 180), required=False),
    },
    "scenes": _folder("config/scenes"),
    "automations": _folder("config/automations"),
    "automations.runner": {
        "default_max_concurrent": Field(whole(1, 1000), 8),
        "backstop_timeout_secs": Field(number_within(0.1, 604_800), 3600),
        "brake_runs": Field(whole(1, 1000), 10),
        "brake_secs": Field(number_within(0.1, 3600), 10),
    },
    "scripts": {
        **_folder("config/scripts"),
        "max_memory_mb": Field(whole(1, 1024), 16),
        "max_cpu_secs": Field(number_within(0.05, 3600), 5),
    },
    "history": {"max_mb": Field(whole(1, 256), 4)},
    "notify": {"targets": Field(listed(_target), ())},
    "persistence": {"flush_secs": Field(whole(1, 86_400), 300)},
}
"""Every key of every section but the adapters', by the section's dotted name."""
