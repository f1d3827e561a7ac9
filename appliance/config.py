"""Configuration: one TOML file and the environment, checked in full, as frozen data."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import tomli

from appliance.errors import ConfigFailed, Fault, Invalid
from appliance.home import values

SHORTEST_MASTER_KEY = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return self.host in ("::1", "localhost") or self.host.startswith("127.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """`[api]`."""

    bind_address: Address
    max_body_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Auth:
    """`[auth]` or what the environment says instead; `source` names the file or variable it came from."""

    master_key: str | None
    source: str
    in_file: bool = False


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
    adapters: Mapping[str, AdapterSettings]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Key:
    """One key: the check that types its value, and the value it has when left out (None: it must be given)."""

    check: Callable[[Any], Any]
    default: Any = None
    optional: bool = False


def load(file: Path, environment: Mapping[str, str]) -> Config:
    """The configuration that the file and the environment state together; `ConfigFailed` holds every fault."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigFailed([Fault(str(file), 0, f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise ConfigFailed([Fault(str(file), line, "is not UTF-8 text")]) from None
    return parse(text, str(file), environment)


def parse(text: str, name: str, environment: Mapping[str, str]) -> Config:
    """As `load`, for a text that was read already; `name` is what faults call the file."""
    try:
        raw = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        raise ConfigFailed([Fault(name, error.lineno, f"is not TOML: {error.msg}")]) from None
    lines = _lines_of(text)
    reader = _Reader(raw, lines, name)
    sections = {section: reader.section((section,), keys) for section, keys in SECTIONS.items()}
    reader.refuse_unknown((), raw, [*SECTIONS, "adapters"])
    adapters = _read_adapters(reader, raw.get("adapters", {}))
    if reader.faults:
        raise ConfigFailed(sorted(reader.faults))
    api = Api(**sections["api"])
    auth = _choose_key(sections["auth"]["master_key"], name, environment)
    return Config(
        file=name,
        api=api,
        auth=auth,
        logging=Logging(**sections["logging"]),
        runtime=Runtime(**sections["runtime"]),
        adapters=adapters,
        warnings=_judge_key(auth, api.bind_address, lines.get(("auth", "master_key"), 0)),
    )


def address(value: Any) -> Address:
    """`host:port`, with IPv6 hosts in brackets."""
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.%\w]+)\]|([^\s:\[\]/]+)):(\d{1,5})", values.string(value))
    if match is None or int(match[3]) > 65535:
        wanted = 'an address and a port like "127.0.0.1:3000" or "[::]:3000"'
        raise Invalid(f"must be {wanted}, not {values.shown(value)}")
    return Address(host=match[1] or match[2], port=int(match[3]))


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, float):
            raise Invalid(f"must be a whole number from {low} to {high}, not {values.shown(value)}")
        return values.integer(value, low, high)

    return check


def _one_of(*words: str) -> Callable[[Any], str]:
    return lambda value: values.one_of(value, words)


def _base_url(value: Any) -> str:
    text = values.string(value).rstrip("/")
    try:
        parts = urlsplit(text)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or parts.query or parts.fragment or parts.username is not None or re.search(r"\s", text):
        raise Invalid(f'must be an address like "http://192.168.1.20:9123", not {values.shown(value)}')
    return text


def _host(value: Any) -> str:
    text = values.string(value)
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        if re.fullmatch(r"(?=.*[A-Za-z])[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?", text) is None:
            raise Invalid(f'must be an address like "192.168.1.30", not {values.shown(value)}') from None
        return text


def _master_key(value: Any) -> str:
    key = values.string(value)
    if re.fullmatch(r"[\x21-\x7e]+", key) is None:
        raise Invalid("must consist of visible ASCII characters without spaces")
    return key


_POLL_INTERVAL = Key(_whole(1, 86_400), 5)

SECTIONS: Mapping[str, Mapping[str, Key]] = {
    "api": {
        "bind_address": Key(address, Address(host="127.0.0.1", port=3000)),
        "max_body_bytes": Key(_whole(1024, 1 << 30), 1 << 20),
    },
    "auth": {"master_key": Key(_master_key, optional=True)},
    "logging": {
        "level": Key(_one_of("debug", "info", "warning", "error"), "info"),
        "format": Key(_one_of("text", "json"), "text"),
    },
    "runtime": {"event_bus_capacity": Key(_whole(1, 1 << 20), 1024)},
}
"""Every key of every section but the adapters'."""

ADAPTER_KINDS: Mapping[str, tuple[Callable[..., AdapterSettings], Mapping[str, Key]]] = {
    "elgato_lights": (ElgatoLights, {"base_url": Key(_base_url), "poll_interval_secs": _POLL_INTERVAL}),
    "roku_tv": (
        RokuTv,
        {
            "ip_address": Key(_host),
            "port": Key(_whole(1, 65535), 8060),
            "poll_interval_secs": _POLL_INTERVAL,
        },
    ),
}
"""The settings of each kind of adapter and their keys, beside `type` and `enabled`."""

_ADAPTER_KEYS: Mapping[str, Key] = {
    "type": Key(values.string, optional=True),
    "enabled": Key(values.boolean, default=True),
}


class _Reader:
    """Walks the parsed file against the table of keys and gathers every fault with its line."""

    def __init__(self, raw: dict[str, Any], lines: Mapping[tuple[str, ...], int], name: str) -> None:
        self._raw = raw
        self._lines = lines
        self._name = name
        self.faults: list[Fault] = []

    def fault(self, path: tuple[str, ...], message: str) -> None:
        """Note a fault at the line of the key, or of the nearest section that has one."""
        known = next((self._lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._lines), 1)
        self.faults.append(Fault(self._name, known, f"{'.'.join(path)} {message}"))

    def refuse_unknown(self, path: tuple[str, ...], table: dict[str, Any], known: list[str]) -> None:
        """Note every key of the table that is not a known one, with the nearest that is."""
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1, cutoff=0.4)
                names = near or known
                hint = ", ".join(".".join((*path, name)) for name in names)
                lead = "did you mean" if near else "there are"
                self.fault((*path, key), f"is not a key of Lares; {lead} {hint}")

    def section(self, path: tuple[str, ...], keys: Mapping[str, Key], needed: bool = True) -> dict[str, Any]:
        """The section's values, typed, with defaults; a key without one is a fault when the section is needed."""
        table = self._table(path)
        self.refuse_unknown(path, table, list(keys))
        found = {}
        for name, key in keys.items():
            if name in table:
                found[name] = self._value((*path, name), key, table[name])
            else:
                found[name] = key.default
                if needed and key.default is None and not key.optional:
                    self.fault((*path, name), "is missing")
        return found

    def _value(self, path: tuple[str, ...], key: Key, value: Any) -> Any:
        try:
            return key.check(value)
        except Invalid as fault:
            self.fault(path, str(fault))
            return key.default

    def _table(self, path: tuple[str, ...]) -> dict[str, Any]:
        table: Any = self._raw
        for step in path:
            table = table.get(step, {})
            if not isinstance(table, dict):
                self.fault(path, "must be a section")
                return {}
        return table  # type: ignore[no-any-return]


def _read_adapters(reader: _Reader, tables: Any) -> dict[str, AdapterSettings]:
    if not isinstance(tables, dict):
        reader.fault(("adapters",), "must hold sections like [adapters.elgato_lights]")
        return {}
    read = {name: _read_adapter(reader, name, table) for name, table in tables.items()}
    return {name: settings for name, settings in read.items() if settings is not None}


def _read_adapter(reader: _Reader, name: str, table: Any) -> AdapterSettings | None:
    """The settings of one section, or None when it is not enabled or has faults, which are noted."""
    path = ("adapters", name)
    kind = table.get("type", name) if isinstance(table, dict) else name
    if re.fullmatch(r"[a-z0-9_]+", name) is None:
        reader.fault(path, "is not a name for an adapter; use a-z, 0-9 and _ only")
        return None
    if not isinstance(kind, str) or kind not in ADAPTER_KINDS:
        kinds = ", ".join(ADAPTER_KINDS)
        where = (*path, "type") if isinstance(table, dict) and "type" in table else path
        reader.fault(where, f"is no kind of adapter; say one of {kinds} as its type")
        return None
    build, keys = ADAPTER_KINDS[kind]
    enabled = not isinstance(table, dict) or table.get("enabled", True) is not False
    before = len(reader.faults)
    found = reader.section(path, {**_ADAPTER_KEYS, **keys}, needed=enabled)
    if not enabled or len(reader.faults) > before:
        return None
    return build(**{key: found[key] for key in keys})


def _lines_of(text: str) -> dict[tuple[str, ...], int]:
    """The line of each section header and key, as far as one can tell without a second TOML parser."""
    lines: dict[tuple[str, ...], int] = {}
    section: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\[?\s*([^\[\]]+?)\s*\]", line):
            section = _path(header[1])
            lines.setdefault(section, number)
        elif key := re.match(r"\s*([\w\"'.\- ]+?)\s*=", line):
            lines.setdefault((*section, *_path(key[1])), number)
    return lines


def _path(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _choose_key(from_file: str | None, name: str, environment: Mapping[str, str]) -> Auth:
    if environment.get("LARES_MASTER_KEY"):
        return _sound_key(environment["LARES_MASTER_KEY"], "LARES_MASTER_KEY")
    if key_file := environment.get("LARES_MASTER_KEY_FILE"):
        try:
            return _sound_key(Path(key_file).read_text(encoding="ascii", errors="replace").strip(), key_file)
        except OSError as error:
            raise ConfigFailed([Fault(key_file, 0, f"(LARES_MASTER_KEY_FILE) {error.strerror}")]) from None
    return Auth(master_key=from_file, source=name, in_file=True)


def _sound_key(key: str, source: str) -> Auth:
    try:
        return Auth(master_key=_master_key(key), source=source)
    except Invalid as fault:
        raise ConfigFailed([Fault(source, 0, f"the master key {fault}")]) from None


def _judge_key(auth: Auth, listening: Address, line: int) -> tuple[str, ...]:
    """A warning about a key that anybody could guess; `ConfigFailed` where others than the box can try it."""
    key = auth.master_key
    if key is None or (len(key) >= SHORTEST_MASTER_KEY and not key.lower().startswith(("change-me", "changeme"))):
        return ()
    what = "a placeholder" if len(key) >= SHORTEST_MASTER_KEY else f"shorter than {SHORTEST_MASTER_KEY} characters"
    message = f"the master key is {what}; `openssl rand -base64 32` makes a good one"
    if not listening.is_loopback:
        raise ConfigFailed([Fault(auth.source, line if auth.in_file else 0, message)])
    return (f"{auth.source}: {message}",)
