"""Configuration: one TOML file and the environment, checked in full, as frozen data."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import tomli

from appliance.errors import ConfigFailed, Fault
from appliance.sections import Key, Reader, boolean, nearest, one_of, shown, string, whole

SHORTEST_MASTER_KEY = 16

MASTER_KEY = ("auth", "master_key")

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
class Api:
    """`[api]`."""

    bind_address: Address
    max_body_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Auth:
    """`[auth]` or what the environment says instead; `source` and `line` tell where it came from (0: no line)."""

    master_key: str | None
    source: str
    line: int = 0


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
class Persistence:
    """`[persistence]`."""

    flush_secs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ElgatoLights:
    """An enabled adapter of the kind `elgato_lights`."""

    base_url: str
    poll_interval_secs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RokuTv:
    """An enabled adapter of the kind `roku_tv`."""

    ip_address: str
    port: int
    poll_interval_secs: int


AdapterSettings = ElgatoLights | RokuTv


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole configuration. `adapters` holds those that are enabled, by section name."""

    file: str
    api: Api
    auth: Auth
    logging: Logging
    runtime: Runtime
    persistence: Persistence
    adapters: Mapping[str, AdapterSettings]
    warnings: tuple[str, ...]


def load(file: Path, environment: Mapping[str, str]) -> Config:
    """The configuration that the file and the environment state together; `ConfigFailed` holds every fault."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigFailed([Fault(str(file), 0, f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigFailed([Fault(str(file), line, "is not UTF-8 text")]) from None
    return parse(text, str(file), environment)


def parse(text: str, name: str, environment: Mapping[str, str]) -> Config:
    """As `load`, for a text that was read already; `name` is what faults call the file."""
    raw = parse_toml(text, name)
    reader = Reader(raw, text, [f"{section}.{key}" for section, keys in SECTIONS.items() for key in keys])
    sections = {section: reader.section((section,), keys) for section, keys in SECTIONS.items()}
    reader.refuse_unknown((), raw, [*SECTIONS, "adapters"])
    adapters = _read_adapters(reader, raw.get("adapters", {}))
    faults = [Fault(name, line, message) for line, message in reader.faults]
    api = Api(**sections["api"])
    in_file = Auth(**sections["auth"], source=name, line=reader.line_of(MASTER_KEY))
    auth = _choose_key(in_file, environment, faults)
    weaknesses = _weaknesses(auth)
    if not api.bind_address.is_loopback or any("api.bind_address" in message for _, message in reader.faults):
        faults += weaknesses
    if faults:
        raise ConfigFailed(sorted(faults))
    return Config(
        file=name,
        api=api,
        auth=auth,
        logging=Logging(**sections["logging"]),
        runtime=Runtime(**sections["runtime"]),
        persistence=Persistence(**sections["persistence"]),
        adapters=adapters,
        warnings=tuple(str(weakness) for weakness in weaknesses),
    )


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """A TOML text as it stands, unchecked; `ConfigFailed` where it is none."""
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        raise ConfigFailed([Fault(name, error.lineno, f"is not TOML: {error.msg}")]) from None
    except RecursionError as error:
        raise ConfigFailed([Fault(name, 0, f"is not TOML that Lares can read: {error}")]) from None
    except ValueError:
        raise ConfigFailed([Fault(name, 0, "is not TOML that Lares can read: a number is too long")]) from None


def address(value: Any) -> Address:
    """A check: `address:port`, with IPv6 addresses in brackets."""
    match = re.fullmatch(r"(?:\[([^\[\]]+)\]|([^\[\]:]+)):([0-9]{1,5})", string(value))
    try:
        if match is None or int(match[3]) > 65535:
            raise ValueError
        host = _host(match[2]) if match[1] is None else str(ipaddress.IPv6Address(match[1]))
    except ValueError:
        wanted = 'an address and a port like "127.0.0.1:3000" or "[::]:3000"'
        raise ValueError(f"must be {wanted}, not {shown(value)}") from None
    return Address(host=host, port=int(match[3]))


def _base_url(value: Any) -> str:
    text = string(value).rstrip("/")
    try:
        parts = urlsplit(text)
        sound = parts.scheme in ("http", "https") and bool(_host(parts.hostname or "")) and parts.port != 0
    except ValueError:
        sound = False
    is_clean = text.isprintable() and " " not in text
    if not sound or not is_clean or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f'must be an address like "http://192.168.1.20:9123", not {shown(value)}')
    return text


def _host(value: Any) -> str:
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


def _master_key(value: Any) -> str:
    """A check that never tells the value."""
    if not isinstance(value, str) or re.fullmatch(r"[\x21-\x7e]+", value) is None:
        wanted = "not be empty" if value == "" else "be a string of visible ASCII characters without spaces"
        raise ValueError(f"must {wanted}")
    return value


_POLL_INTERVAL = Key(whole(1, 86_400), 5)

SECTIONS: Mapping[str, Mapping[str, Key]] = {
    "api": {
        "bind_address": Key(address, Address(host="127.0.0.1", port=3000)),
        "max_body_bytes": Key(whole(1024, 1 << 30), 1 << 20),
    },
    "auth": {"master_key": Key(_master_key, optional=True)},
    "logging": {
        "level": Key(one_of("debug", "info", "warning", "error"), "info"),
        "format": Key(one_of("text", "json"), "text"),
    },
    "runtime": {"event_bus_capacity": Key(whole(1, 1 << 20), 1024)},
    "persistence": {"flush_secs": Key(whole(1, 86_400), 300)},
}
"""Every key of every section but the adapters'."""

ADAPTER_KINDS: Mapping[str, tuple[Callable[..., AdapterSettings], Mapping[str, Key]]] = {
    "elgato_lights": (ElgatoLights, {"base_url": Key(_base_url), "poll_interval_secs": _POLL_INTERVAL}),
    "roku_tv": (
        RokuTv,
        {
            "ip_address": Key(_host),
            "port": Key(whole(1, 65535), 8060),
            "poll_interval_secs": _POLL_INTERVAL,
        },
    ),
}
"""The settings of each kind of adapter and their keys, beside `type` and `enabled`."""

_ADAPTER_KEYS: Mapping[str, Key] = {
    "type": Key(string, optional=True),
    "enabled": Key(boolean, default=True),
}


def _read_adapters(reader: Reader, tables: Any) -> dict[str, AdapterSettings]:
    if not isinstance(tables, dict):
        reader.fault(("adapters",), "must hold sections like [adapters.elgato_lights]")
        return {}
    read = {name: _read_adapter(reader, name, table) for name, table in tables.items()}
    return {name: settings for name, settings in read.items() if settings is not None}


def _read_adapter(reader: Reader, name: str, table: Any) -> AdapterSettings | None:
    """The settings of one section, or None when it is not enabled or has faults, which are noted."""
    path = ("adapters", name)
    before = len(reader.faults)
    if re.fullmatch(r"[a-z0-9_]+", name) is None:
        reader.fault(path, "is not a name for an adapter; use a-z, 0-9 and _ only")
    kind = _read_kind(reader, name, table)
    if kind is None:
        return None
    build, keys = ADAPTER_KINDS[kind]
    is_enabled = not isinstance(table, dict) or table.get("enabled", True) is not False
    found = reader.section(path, {**_ADAPTER_KEYS, **keys}, needed=is_enabled)
    if not is_enabled or len(reader.faults) > before:
        return None
    return build(**{key: found[key] for key in keys})


def _read_kind(reader: Reader, name: str, table: Any) -> str | None:
    """The kind that the section states or is named after, or None when there is no such kind, which is noted."""
    kinds = " or ".join(ADAPTER_KINDS)
    if isinstance(table, dict) and "type" in table:
        if isinstance(table["type"], str) and table["type"] in ADAPTER_KINDS:
            return table["type"]
        reader.fault(("adapters", name, "type"), f"must be {kinds}, not {shown(table['type'])}")
    elif name in ADAPTER_KINDS:
        return name
    elif near := nearest(name, ADAPTER_KINDS):
        reader.fault(("adapters", name), f"needs a type, {kinds}; or did you mean adapters.{near}")
    else:
        reader.fault(("adapters", name), f"needs a type, {kinds}")
    return None


def _choose_key(in_file: Auth, environment: Mapping[str, str], faults: list[Fault]) -> Auth:
    """The key that counts; what is wrong with it is added to the faults."""
    key, source = environment.get("LARES_MASTER_KEY"), "LARES_MASTER_KEY"
    try:
        if not key:
            source = environment.get("LARES_MASTER_KEY_FILE", "")
            if not source:
                return in_file
            key = Path(source).read_text(encoding="ascii", errors="replace").strip()
        return Auth(master_key=_master_key(key), source=source)
    except OSError as error:
        faults.append(Fault(source, 0, f"cannot be read (LARES_MASTER_KEY_FILE names it): {error.strerror}"))
    except ValueError as fault:
        faults.append(Fault(source, 0, f"the master key {fault}"))
    return Auth(master_key=None, source=source)


def _weaknesses(auth: Auth) -> list[Fault]:
    """What makes the key one that anybody could guess."""
    key = auth.master_key
    if key is None:
        return []
    if len(key) < SHORTEST_MASTER_KEY:
        what = f"is shorter than {SHORTEST_MASTER_KEY} characters"
    elif re.match("change[-_]?me", key.lower()):
        what = "is a placeholder"
    else:
        return []
    name = "auth.master_key" if auth.line else "the master key"
    return [Fault(auth.source, auth.line, f"{name} {what}; `openssl rand -base64 32` makes a good one")]
