"""The configuration: one TOML file and the environment, checked completely and returned as frozen data."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli
from msgspec.structs import asdict, replace

import appliance
from appliance.adapters.address_hints import hint_of_addresses
from appliance.adapters.kinds import KINDS, kind_of
from appliance.adapters.lua_kinds.definition import KIND_NAME, list_bundled_kinds
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.errors import ConfigFailed, Fault, Invalid
from appliance.home.texts import MAX_ID_CHARS
from appliance.settings import SECTIONS, Auth, Sections, check_master_key
from appliance.tables.checks import TOML, boolean, format_value, nearest, string, suggest
from appliance.tables.fields import Field, Fields, Findings, Problem, S, Table, dotted, hint_of_keys, line_at, located
from appliance.tables.fields import Path as ValuePath
from appliance.tables.plain_files import MAX_SECRET_BYTES, read_plain
from appliance.tables.toml_lines import line_finder
from appliance.tables.toml_syntax import explain

MIN_MASTER_KEY_CHARS = 16

MASTER_KEY_PATH = ("auth", "master_key")
BIND_ADDRESS = ("api", "bind_address")


class Config(Sections, frozen=True, kw_only=True):
    """The whole configuration.

    - `adapters`: the enabled sections by name. A section of a kind in Lua is a `LuaSection`, which the kind's Lua
      file checks later.
    - `watch_adapters`: whether the hub reloads kinds when their files change.
    - `root`: the parent of the configuration folder. Relative paths in the configuration start in this folder.
    """

    file: str
    root: Path
    adapters: Mapping[str, Any]
    adapter_names: frozenset[str]
    watch_adapters: bool
    warnings: tuple[str, ...]


MAX_CONFIG_BYTES = 1 << 20
"""The size limit of the configuration's main file."""

MAX_SECTION_NAME_CHARS = MAX_ID_CHARS // 2
"""Maximum length of a section's name. The ids of the section's devices begin with the name."""


def bundled_config() -> Path:
    """Return the folder of the bundled configuration."""
    package = Path(appliance.__file__).parent
    installed = package / "bundled"
    return installed if installed.is_dir() else package.parent / "config"


def load(file: Path, environment: Mapping[str, str], *, unsaved_kind: str | None = None) -> Config:
    """Load the configuration from file and environment. Raise `ConfigFailed` with all faults. Sections can also use
    the `unsaved_kind`, a kind in Lua whose file may be missing."""
    try:
        text = read_plain(file, MAX_CONFIG_BYTES).decode()
    except OSError as error:
        raise ConfigFailed([Fault(str(file), 0, f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigFailed([Fault(str(file), line, "is not UTF-8 text")]) from None
    found = parse(text, str(file), environment, unsaved_kind=unsaved_kind)
    return replace(found, warnings=(*found.warnings, *map(str, _absent_folders(found, line_finder(text)))))


def load_or_defaults(file: Path, environment: Mapping[str, str], *, unsaved_kind: str | None = None) -> Config:
    """Like `load`, but return the defaults if the file is missing."""
    if file.exists():
        return load(file, environment, unsaved_kind=unsaved_kind)
    return parse("", str(file), environment)


LUA_FOLDERS = ("scenes", "automations", "scripts")
"""Sections with the path of a Lua folder in `directory`."""


def _absent_folders(found: Config, line_of: Callable[[ValuePath], int]) -> Iterator[Fault]:
    """Return a fault for each missing Lua folder. A default folder may be missing. Any other missing folder is
    probably misspelt, or on a disk that is not mounted."""
    for name in LUA_FOLDERS:
        section, path = getattr(found, name), (name, "directory")
        folder, is_usual = found.root / section.directory, section.directory == section.FIELDS["directory"].default
        if section.enabled and not is_usual and not os.access(folder, os.F_OK):
            yield Fault(found.file, line_at(path, line_of), f"{dotted(path)}: the folder {folder} does not exist")


def parse(text: str, file: str, environment: Mapping[str, str], *, unsaved_kind: str | None = None) -> Config:
    """Like `load`, but parse this text. `file` may be missing; its path determines `root`, the folder with the kinds
    in Lua, and the file in faults."""
    root, line_of = Table(parse_toml(text, file), Findings(TOML)), line_finder(text)
    sections = _read_section(root, Sections)
    _check_pairs(root)
    adapters, adapter_names, watch_adapters = _read_adapters(root, Path(file), unsaved_kind, line_of)
    faults = located(root.findings.faults, file, line_of)
    in_file = replace(sections.auth, source=file, line=line_at(MASTER_KEY_PATH, line_of))
    auth = _choose_key(in_file, environment, faults)
    weaknesses = _weaknesses(auth)
    if not sections.api.bind_address.is_loopback or any(each.path == BIND_ADDRESS for each in root.findings.faults):
        faults += weaknesses
    if faults:
        raise ConfigFailed(sorted(faults))
    return Config(
        **(asdict(sections) | {"auth": auth}),
        file=file,
        root=Path(file).absolute().parent.parent,
        adapters=adapters,
        adapter_names=adapter_names,
        watch_adapters=watch_adapters,
        warnings=tuple(map(str, sorted([*weaknesses, *_risks(adapters, file, line_of)]))),
    )


def _risks(adapters: Mapping[str, Any], file: str, line_of: Callable[[ValuePath], int]) -> Iterator[Fault]:
    """Return warnings about risky settings in adapter sections."""
    for name, settings in adapters.items():
        if (found := kind_of(settings).warn(settings)) is not None:
            path = ("adapters", name, found[0])
            yield Fault(file, line_at(path, line_of), f"{dotted(path)} {found[1]}")


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse a TOML text without checks. If it is not TOML, raise `ConfigFailed` with a fault that contains `name`,
    the name of the text."""
    try:
        return tomli.loads(text.removeprefix("\ufeff"))
    except tomli.TOMLDecodeError as error:
        hint = explain(text, error.msg, error.lineno)
        raise ConfigFailed([Fault(name, error.lineno, f"is not valid TOML: {hint}")]) from None
    except RecursionError:
        raise ConfigFailed([Fault(name, 0, "cannot be read as TOML: it is nested too deeply")]) from None
    except ValueError:
        raise ConfigFailed([Fault(name, 0, "cannot be read as TOML: a number is too long")]) from None


def _read_section(table: Table, of: type[S]) -> S:
    """Return the settings of the section and its inner sections. For each invalid key, record a fault and use the
    default."""
    values = table.read({key: each for key, each in of.FIELDS.items() if not each.is_section})
    for name, each in of.FIELDS.items():
        if each.is_section:
            inner = _section_in(table, name)
            values[name] = each.default if inner is None else _read_section(inner, each.check)
    _refuse_others(table, dotted(table.path), () if table.path else ("adapters",))
    return of(**values)


def _section_in(table: Table, name: str) -> Table | None:
    """Return the inner section. If the value is not a table, record a fault and return None."""
    return table.table(name, f"a section, [{dotted((*table.path, name))}]")


def _refuse_others(table: Table, section: str, more: Iterable[str] = ()) -> None:
    table.refuse_others("a key of Lares", hint_of_keys(section, _EVERY_KEY), more)


_EVERY_KEY = [f"{section}.{key}" for section, keys in SECTIONS.items() for key in keys]


_PAIRS = (
    ("locale", "latitude", "longitude"),
    ("locale", "longitude", "latitude"),
    ("history", "influx_token", "influx_url"),
)
"""Keys that have an effect only if another key is set. Each item contains the section, the key, and the other key."""


def _check_pairs(root: Table) -> None:
    """Record a fault for each key in `_PAIRS` whose other key is missing."""
    for section, key, other in _PAIRS:
        table = root.raw(section)
        if isinstance(table, dict) and key in table and other not in table:
            root.findings.faults.append(Problem((section, key), f"also needs {section}.{other}"))


WATCH_KEY = "watch"
"""The only key of `[adapters]` that is not a section."""

_ADAPTER_FIELDS: Fields = {
    "type": Field(string, required=False),
    "enabled": Field(boolean, default=True),
}


def _read_adapters(
    root: Table, file: Path, unsaved_kind: str | None, line_of: Callable[[ValuePath], int]
) -> tuple[dict[str, Any], frozenset[str], bool]:
    """Return the settings of the enabled sections, the names of all sections, and whether the hub watches the
    kinds."""
    raw = root.raw("adapters")
    if raw is not None and not isinstance(raw, dict):
        root.fault("adapters", "must contain sections like [adapters.elgato_lights]")
        raw = {}
    adapters = Table(raw or {}, root.findings, ("adapters",))
    is_watched = adapters.take(WATCH_KEY, boolean) is not False
    names, kinds = [name for name in raw or {} if name != WATCH_KEY], list_lua_kinds(file, unsaved_kind)
    read = {name: _read_adapter(adapters, name, kinds, file, line_of) for name in names}
    return {name: found for name, found in read.items() if found is not None}, frozenset(names), is_watched


def list_lua_kinds(file: Path, unsaved_kind: str | None = None) -> list[str]:
    """Return the names of all Lua kinds: the bundled kinds, the kinds in the folder of this configuration file, and
    the unsaved kind."""
    saved = {each.stem for each in (file.absolute().parent / "adapters").glob("*.lua")}
    names = {*list_bundled_kinds(), *saved, unsaved_kind or ""}
    return sorted(each for each in names if KIND_NAME.fullmatch(each) and each not in KINDS)


def list_kinds(file: Path) -> list[str]:
    """Return the names of all kinds that sections of this file can use."""
    return [*KINDS, *list_lua_kinds(file)]


def _read_adapter(
    adapters: Table, name: str, lua_kinds: Collection[str], file: Path, line_of: Callable[[ValuePath], int]
) -> Any:
    """Return the settings of a section. Return None if the section is disabled or has faults; record the faults."""
    faults = adapters.findings.faults
    before = len(faults)
    if re.fullmatch(r"[a-z0-9_]+", name) is None:
        adapters.fault(name, "is not a valid adapter name; use only a-z, 0-9, and _")
    elif len(name) > MAX_SECTION_NAME_CHARS:
        adapters.fault(name, f"must have at most {MAX_SECTION_NAME_CHARS} characters, not {len(name)}")
    raw = adapters.raw(name)
    kind = _read_kind(adapters, name, raw, lua_kinds)
    table = None if kind is None else _section_in(adapters, name)
    if kind is None or table is None:
        return None
    is_enabled = raw.get("enabled", True) is not False
    if kind not in KINDS:
        table.read(_ADAPTER_FIELDS)
        if not is_enabled or len(faults) > before:
            return None
        return LuaSection(name=name, kind=kind, raw=raw, file=str(file), line_of=line_of)
    fields = KINDS[kind].settings.FIELDS
    found = table.read({**_ADAPTER_FIELDS, **fields}, is_needed=is_enabled)
    hint = hint_of_keys(dotted(table.path), _EVERY_KEY)
    default_url = fields["url"].default if "url" in fields else None
    table.refuse_others("a key of Lares", hint_of_addresses(raw, hint, default_url))
    if not is_enabled or len(faults) > before:
        return None
    return table.create(KINDS[kind].settings, found)


def _read_kind(adapters: Table, name: str, raw: Any, lua_kinds: Collection[str]) -> str | None:
    """Return the kind from the section's `type`, or from its name. Record a fault and return None for an unknown
    kind."""
    every = (*KINDS, *lua_kinds)
    kinds = " or ".join(every)
    if isinstance(raw, dict) and "type" in raw:
        stated = raw["type"]
        if isinstance(stated, str) and stated in every:
            return stated
        near = nearest(stated, every) if isinstance(stated, str) else None
        adapters.findings.faults.append(
            Problem(("adapters", name, "type"), f"must be {kinds}, not {format_value(stated, TOML)}{suggest(near)}")
        )
    elif name in every:
        return name
    elif near := nearest(name, every):
        adapters.fault(name, f"needs a type: {kinds}; or did you mean adapters.{near}?")
    else:
        adapters.fault(name, f"needs a type: {kinds}")
    return None


def _choose_key(in_file: Auth, environment: Mapping[str, str], faults: list[Fault]) -> Auth:
    """Return the master key from the first source that contains a master key. Append the key's faults to `faults`."""
    key, source = environment.get("LARES_MASTER_KEY"), "LARES_MASTER_KEY"
    try:
        if not key:
            source = environment.get("LARES_MASTER_KEY_FILE", "")
            if not source:
                return in_file
            key = read_plain(Path(source), MAX_SECRET_BYTES).decode("ascii", "replace").strip()
        return Auth(master_key=check_master_key(key), source=source)
    except OSError as error:
        faults.append(Fault(source, 0, f"cannot be read (LARES_MASTER_KEY_FILE names it): {error.strerror}"))
    except Invalid as fault:
        faults.append(Fault(source, 0, f"the master key {fault}"))
    return Auth(master_key=None, source=source)


def _weaknesses(auth: Auth) -> list[Fault]:
    """Return a fault if the key is easy to guess."""
    key = auth.master_key
    if key is None:
        return []
    if len(key) < MIN_MASTER_KEY_CHARS:
        what = f"is shorter than {MIN_MASTER_KEY_CHARS} characters"
    elif re.match("change[-_]?me", key.lower()):
        what = "is a placeholder"
    else:
        return []
    name = "auth.master_key" if auth.line else "the master key"
    return [Fault(auth.source, auth.line, f"{name} {what}; create one with `openssl rand -base64 32`")]
