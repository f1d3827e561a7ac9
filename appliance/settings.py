"""Settings: what each section of the configuration may hold, as frozen data, and the check of every key."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from appliance.errors import Invalid
from appliance.locale import load_zone
from appliance.sections import Key, boolean, listed, number, one_of, shown, string, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


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


def address(value: Any) -> Address:
    """A check: `address:port`, with IPv6 addresses in brackets."""
    match = re.fullmatch(r"(?:\[([^\[\]]+)\]|([^\[\]:]+)):([0-9]{1,5})", string(value))
    try:
        if match is None or int(match[3]) > 65535:
            raise ValueError
        name = host(match[2]) if match[1] is None else str(ipaddress.IPv6Address(match[1]))
    except ValueError:
        wanted = 'an address and a port like "127.0.0.1:3000" or "[::]:3000"'
        raise ValueError(f"must be {wanted}, not {shown(value)}") from None
    return Address(host=name, port=int(match[3]))


def base_url(value: Any) -> str:
    """A check: the address of an HTTP service."""
    text = string(value).rstrip("/")
    try:
        parts = urlsplit(text)
        sound = parts.scheme in ("http", "https") and bool(host(parts.hostname or "")) and parts.port != 0
    except ValueError:
        sound = False
    is_clean = text.isprintable() and " " not in text
    if not sound or not is_clean or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f'must be an address like "http://192.168.1.20:9123", not {shown(value)}')
    return text


def host(value: Any) -> str:
    """A check: an IP address, or a name that could have one."""
    text = string(value)
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        if re.fullmatch(r"(?=.*[^\W\d_])\w([\w.-]*[\w.])?", text) is None or not _fits_dns(text):
            raise ValueError(f'must be an address like "192.168.1.30", not {shown(value)}') from None
        return text


def _fits_dns(name: str) -> bool:
    try:
        return len(name.encode("idna")) <= 253
    except UnicodeError:
        return False


def master_key(value: Any) -> str:
    """A check that never tells the value."""
    if not isinstance(value, str) or re.fullmatch(r"[\x21-\x7e]+", value) is None:
        wanted = "not be empty" if value == "" else "be a string of visible ASCII characters without spaces"
        raise ValueError(f"must {wanted}")
    return value


def _origin(value: Any) -> str:
    """A check: an origin, exactly as a browser sends it."""
    text = string(value)
    try:
        parts = urlsplit(text)
        port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
        name = host(parts.hostname or "")
        exact = f"{parts.scheme}://{f'[{name}]' if ':' in name else name}{port}"
    except ValueError:
        exact = ""
    if not exact.startswith(("http://", "https://")):
        raise ValueError(f'must be origins like "http://192.168.1.10:8080", without wildcards, not {shown(value)}')
    if text != exact:
        raise ValueError(f"must be origins as browsers send them: {shown(exact)}, not {shown(value)}")
    return text


def _timezone(value: Any) -> ZoneInfo:
    """A check: the name of a time zone."""
    try:
        return load_zone(string(value))
    except Invalid as fault:
        raise ValueError(f'must be the name of a time zone like "Europe/Berlin": {fault}') from None


def _directory(value: Any) -> str:
    text = string(value)
    if not text or "\0" in text:
        raise ValueError(f'must be a folder like "config/scenes", not {shown(value)}')
    return text


def _target(value: Any) -> str:
    """A check: an operation of an adapter, `<section>:<operation>`."""
    if re.fullmatch(r"[a-z0-9_]+:[a-z0-9_]+", string(value)) is None:
        raise ValueError(f'must be operations like "phone:send", not {shown(value)}')
    return string(value)


def _folder(directory: str) -> dict[str, Key]:
    return {
        "enabled": Key(boolean, default=True),
        "directory": Key(_directory, directory),
        "watch": Key(boolean, default=False),
    }


_DEFAULT_PORTS = {"http": 80, "https": 443}

POLL_INTERVAL = Key(whole(1, 86_400), 5)
"""`poll_interval_secs` of the adapters that poll."""

SECTIONS: Mapping[str, Mapping[str, Key]] = {
    "api": {
        "bind_address": Key(address, Address(host="127.0.0.1", port=3000)),
        "max_body_bytes": Key(whole(1024, 1 << 30), 1 << 20),
        "max_connections": Key(whole(1, 1 << 16), 1000),
        "max_connections_per_peer": Key(whole(1, 1 << 16), 600),
    },
    "api.rate_limit": {
        "enabled": Key(boolean, default=False),
        "requests_per_second": Key(number(0.001, 1_000_000), 100),
        "burst_size": Key(whole(1, 1_000_000), 20),
    },
    "api.cors": {"enabled": Key(boolean, default=False), "allowed_origins": Key(listed(_origin), ())},
    "auth": {"master_key": Key(master_key, optional=True)},
    "dashboard": {"enabled": Key(boolean, default=True)},
    "logging": {
        "level": Key(one_of("debug", "info", "warning", "error"), "info"),
        "format": Key(one_of("text", "json"), "text"),
    },
    "runtime": {"event_bus_capacity": Key(whole(1, 1 << 20), 1024)},
    "locale": {
        "timezone": Key(_timezone, load_zone("UTC")),
        "latitude": Key(number(-90, 90), optional=True),
        "longitude": Key(number(-180, 180), optional=True),
    },
    "scenes": _folder("config/scenes"),
    "automations": _folder("config/automations"),
    "automations.runner": {
        "default_max_concurrent": Key(whole(1, 1000), 8),
        "backstop_timeout_secs": Key(number(0.1, 604_800), 3600),
        "brake_runs": Key(whole(1, 1000), 10),
        "brake_secs": Key(number(0.1, 3600), 10),
    },
    "scripts": {
        **_folder("config/scripts"),
        "max_memory_mb": Key(whole(1, 1024), 16),
        "max_cpu_secs": Key(number(0.05, 3600), 5),
    },
    "history": {"max_mb": Key(whole(1, 256), 4)},
    "notify": {"targets": Key(listed(_target), ())},
    "persistence": {"flush_secs": Key(whole(1, 86_400), 300)},
}
"""Every key of every section but the adapters', by the section's dotted name."""
