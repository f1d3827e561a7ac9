"""`lares import homecmdr`: takes over what another hub left, overwrites nothing, and says what it did."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from appliance import config
from appliance.adapters.kinds import KINDS
from appliance.cli.homecmdr import LUA_FOLDERS, Home, HomecmdrInstallation, find_source, read_home
from appliance.cli.owner import as_owner, as_owner_of_all, become_owner_of_both, give_new_files
from appliance.cli.paths import HubPaths, bundled_config, config_folder, make_data_dir, read_template, write_config
from appliance.cli.terminal import say
from appliance.clock import Clock
from appliance.errors import ConfigFailed, Invalid
from appliance.home.texts import identifier
from appliance.home.texts import name as checked_name
from appliance.store.disk import Disk, write_file
from appliance.store.document import Document
from appliance.store.lock import DirectoryLock
from appliance.store.records import GROUP_PREFIX, PLACE_PREFIX, ROOM_PREFIX
from appliance.store.replacement import finish_at_start
from appliance.tables.checks import shown
from appliance.tables.plain_files import read_plain

_KEYS = ("locale.timezone", "locale.latitude", "locale.longitude", "logging.level", "api.bind_address")
"""Keys of its configuration that mean the same here, beside those of the adapters."""

ADAPTER_KEYS = ("base_url", "ip_address", "port", "poll_interval_secs", "enabled")
"""Keys of an adapter that mean the same here; `enabled` last, for an enabled one needs the others."""

INSTEAD = {
    "zigbee2mqtt": "its devices come over MQTT: set [adapters.mqtt] by hand",
    "open_meteo": "Lares has no such adapter",
    "ollama": "Lares has no such adapter",
}

Steps = Iterator[tuple[bool, str]]
"""What was done, or (false) not done and why."""


def import_(arguments: argparse.Namespace) -> int:
    """Take over what is at the path, and print what was taken and what not; the exit code."""
    path = Path(arguments.path)
    with as_owner_of_all(path):
        source = find_source(path)
        home = None if source.database is None else read_home(source.database)
        lua = [(kind, name, text) for kind in LUA_FOLDERS for name, text in source.read_lua(kind)]
    paths = HubPaths.of_process(arguments.config, arguments.data_dir)
    file, data_dir = paths.find_config(), paths.find_data_dir()
    become_owner_of_both(file, data_dir)
    with as_owner(data_dir):
        make_data_dir(data_dir)
        lock = DirectoryLock(data_dir, is_brief=True)
    try:
        with as_owner(data_dir):
            finish_at_start(data_dir, Clock().now())
        with give_new_files(file.parent):
            steps = [*_take_config(source, file), *_take_lua(lua, config_folder(file))]
        with as_owner(data_dir):
            steps += asyncio.run(_take_home(home, data_dir))
    finally:
        lock.release()
    for is_taken, sentence in steps:
        say(f"{'took' if is_taken else 'left'}  {sentence}")
    say("`lares check` says whether all of it is valid here")
    return os.EX_OK


def _take_config(source: HomecmdrInstallation, file: Path) -> Steps:
    stated = dict(_list_keys(source.config))
    if file.exists():
        yield from ((False, f"{key} = {toml_value(value)}: {file} is there already") for key, value in stated.items())
    elif source.config:
        write_config(file.parent, read_template(bundled_config()))
        text = read_plain(file).decode()
        for group in _together(stated):
            text, sentences = _try_keys(text, group)
            yield from sentences
        file.write_text(text, encoding="utf-8")
    yield from _describe_not_taken(source.config)


def _together(stated: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The keys, those that need each other at once: the coordinates, and each adapter's."""
    groups: dict[str, dict[str, Any]] = {}
    for key, value in stated.items():
        section, _, name = key.rpartition(".")
        is_one = section.startswith("adapters.") or name in ("latitude", "longitude")
        groups.setdefault(section + "*" if is_one else key, {})[key] = value
    yield from groups.values()


def _try_keys(text: str, keys: Mapping[str, Any]) -> tuple[str, list[tuple[bool, str]]]:
    """The text with these keys, if that is sound; and what was done."""
    changed = text
    for key, value in keys.items():
        changed = set_key(changed, *key.rpartition(".")[::2], value)
    try:
        config.parse(changed, "default.toml", {})
    except ConfigFailed as failed:
        return text, [(False, f"{', '.join(keys)}: {failed.faults[0].message}")]
    return changed, [(True, f"{key} = {toml_value(value)}") for key, value in keys.items()]


def _list_keys(stated: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keys that can be taken, with their values."""
    for key in _KEYS:
        section, _, name = key.partition(".")
        if isinstance(table := stated.get(section), Mapping) and name in table:
            yield key, table[name]
    adapters = stated.get("adapters", {})
    for kind in KINDS:
        table = adapters.get(kind, {}) if isinstance(adapters, Mapping) else {}
        if isinstance(table, Mapping):
            yield from ((f"adapters.{kind}.{name}", table[name]) for name in ADAPTER_KEYS if name in table)


def _describe_not_taken(stated: Mapping[str, Any]) -> Steps:
    """What of its configuration is not taken."""
    adapters = stated.get("adapters", {})
    for kind in sorted(adapters) if isinstance(adapters, Mapping) else ():
        if kind not in KINDS:
            yield False, f"adapters.{kind}: {INSTEAD.get(kind, 'Lares has no such adapter')}"
    if isinstance(auth := stated.get("auth"), Mapping) and "master_key" in auth:
        yield False, "auth.master_key: a secret stays where it is; the first start makes one, or set your own"
    if isinstance(api := stated.get("api"), Mapping) and "cors" in api:
        yield False, "api.cors: name the pages that may use this hub yourself"


def _take_lua(lua: Iterable[tuple[str, Path, bytes | str]], folder: Path) -> Steps:
    """Write the Lua files that are not there; a text instead of bytes says why there are none."""
    for kind, name, text in lua:
        target = folder / kind / name
        if isinstance(text, str):
            yield False, f"{kind}/{name}: {text}"
        elif target.exists() or target.is_symlink():
            yield False, f"{kind}/{name}: {target} is there already"
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_file(target, text, 0o644)
            yield True, f"{kind}/{name}"


async def _take_home(home: Home | None, data_dir: Path) -> list[tuple[bool, str]]:
    """Store the rooms, groups and places that are not there."""
    if home is None:
        return [(False, "rooms and groups: there is no database")]
    steps: list[tuple[bool, str]] = []
    async with Document(Disk(data_dir), Clock()) as document:
        changes: dict[str, Any] = {}
        for what, key, value in _entries(home, steps):
            if document.get(key) is not None:
                steps.append((False, f"{what}: it is there already"))
            else:
                changes[key] = value
                steps.append((True, what))
        await document.put_many(changes)
    if home.keys:
        steps.append((False, f"API keys ({home.keys}): only hashes of another kind are stored; make new ones"))
    if home.persons:
        steps.append((False, f"persons ({home.persons}): Lares has no such thing"))
    return steps


def _entries(home: Home, steps: list[tuple[bool, str]]) -> Iterator[tuple[str, str, Any]]:
    """What each thing is called, its key, and its value; what may not be called so is left."""
    for id_, name in home.rooms.items():
        if _is_sound(f"room {shown(id_)}", id_, name, [], steps):
            yield f"room {id_!r} ({name})", ROOM_PREFIX + id_, {"name": name.strip()}
    for id_, (name, members) in home.groups.items():
        if _is_sound(f"group {shown(id_)}", id_, name, members, steps):
            unique = list(dict.fromkeys(members))
            yield (
                f"group {id_!r} ({name}), {len(unique)} members",
                GROUP_PREFIX + id_,
                {"name": name.strip(), "members": unique},
            )
    for device_id, room_id in home.room_assignments.items():
        if room_id in home.rooms and _is_sound(f"room of {shown(device_id)}", device_id, room_id, [], steps):
            yield f"{device_id} is in {room_id!r}", PLACE_PREFIX + device_id, room_id


def _is_sound(what: str, id_: Any, name: Any, members: Iterable[Any], steps: list[tuple[bool, str]]) -> bool:
    """Whether the API would take it; if not, that is a step."""
    try:
        for each in (id_, *members):
            if identifier(each) != each:
                raise Invalid("an id must not have white space around it")
        checked_name(name)
    except Invalid as fault:
        steps.append((False, f"{what}: {fault}"))
        return False
    return True


def set_key(text: str, section: str, name: str, value: Any) -> str:
    """The text in which the section states this key; in place of the line, commented out or not, that states it."""
    lines = text.split("\n")
    header = f"[{section}]"
    if header not in lines:
        return "\n".join([*lines, header, f"{name} = {toml_value(value)}", ""])
    begin = lines.index(header) + 1
    end = next((at for at in range(begin, len(lines)) if lines[at].startswith("[")), len(lines))
    stated = re.compile(rf"(?:# )?{re.escape(name)}\s*=")
    at = next((at for at in range(begin, end) if stated.match(lines[at])), None)
    line = f"{name} = {toml_value(value)}"
    if at is None:
        lines.insert(begin, line)
    else:
        lines[at] = line
    return "\n".join(lines)


def toml_value(value: Any) -> str:
    """A string, number, boolean or array of them, as TOML writes it."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
