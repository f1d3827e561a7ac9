"""The errors and warnings of the configuration and the Lua files."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from appliance import config
from appliance.adapters.kinds import list_operations
from appliance.adapters.lua_kinds.section import LuaSection, list_lua_sections
from appliance.automations.automations import build_automation_catalog
from appliance.automations.definition import AutomationDefinition
from appliance.automations.names.home_names import HomeNames
from appliance.automations.names.name_watcher import read_past, read_removed
from appliance.automations.variables import read_variables
from appliance.cli.homeassistant.lua_file import MARK
from appliance.cli.hub_client import read_snapshot
from appliance.cli.lua_pool import open_pool
from appliance.cli.owner import as_owner
from appliance.clock import Clock
from appliance.config import Config
from appliance.errors import ConfigFailed, Fault, LaresError
from appliance.files.recipes import check_recipes, own_recipes
from appliance.home_locale import Locale, load_zone
from appliance.lua.files.catalog import LoadedFile
from appliance.lua.files.folder import Contents, find_stray, folder_of, read_folder
from appliance.lua.files.kind_files import KindFiles, folder_of_kinds
from appliance.lua.files.scripts import Scripts
from appliance.lua.text.undefined_names import find_undefined
from appliance.scenes import Scene, build_scene_catalog
from appliance.store.disk import user_name
from appliance.store.record_keys import TIMER_PREFIX, TOGGLE_PREFIX
from appliance.store.records import read_devices, read_layout
from appliance.store.storage import DocumentSnapshot
from appliance.tables.fields import dotted, line_at
from appliance.tables.toml_lines import line_finder

SUBSTITUTE_LOCALE = Locale(timezone=load_zone("UTC"), latitude=0.0, longitude=0.0)
"""A location that replaces an invalid one. The location has coordinates, so that the check does not report missing
coordinates."""


FILE_KEYS = frozenset({"password_file", "token_file", "ca_file", "cert_file", "key_file"})
"""Adapter settings whose value is a file path."""


class Examined(Struct, frozen=True, kw_only=True):
    """The result of a check. `off` contains the automations with `enabled = false`."""

    settings: Config
    faults: Sequence[Fault]
    warnings: Sequence[str]
    off: Sequence[str]


def examine(file: Path, data_dir: Path) -> Examined:
    """Return errors and warnings of the configuration and its Lua files. If root started this process, the process
    switches to the user that owns the home."""
    with as_owner(data_dir, file):
        settings, faults = load_or_default(file)
    in_lua, warnings, off = asyncio.run(_check_lua(settings, data_dir, file))
    if faults:  # skip the names, because Lua files may use names from the unreadable part of the configuration
        warnings = []
    return Examined(
        settings=settings,
        faults=[*faults, *in_lua, *find_unreadable(file.parent, data_dir)],
        warnings=[*map(str, (*settings.warnings, *find_missing_files(settings), *warnings))],
        off=off,
    )


def find_unreadable(folder: Path, data_dir: Path) -> list[Fault]:
    """Return configuration files that this process cannot read. Ignore broken links."""
    if folder.name != "config":
        return []
    paths = (path for path in (folder, *sorted(folder.rglob("*"))) if os.access(path, os.F_OK))
    hidden = [path for path in paths if not os.access(path, os.R_OK | os.X_OK if path.is_dir() else os.R_OK)]
    if not hidden:
        return []
    user = _find_hub_user(data_dir)
    return [Fault(str(path), 0, _explain_unreadable(path, user)) for path in hidden]


def _find_hub_user(data_dir: Path) -> int:
    """Return the owner of the data directory. If there is no data directory, return the user of this process."""
    try:
        return data_dir.stat().st_uid
    except OSError:
        return os.geteuid()


def _explain_unreadable(path: Path, hub_user: int) -> str:
    """Return the reason and the remedy for a file that this process cannot read."""
    uid = os.geteuid()
    if uid != hub_user:
        return f"cannot be read by user {user_name(uid)}, and the hub's user is {user_name(hub_user)}; use sudo"
    file = shlex.quote(str(path))
    remedy = f"run `sudo chgrp {os.getegid()} {file}` and `sudo chmod g+rX {file}`"
    return f"cannot be read by user {user_name(uid)}, the hub's user; {remedy}"


def find_missing_files(settings: Config) -> Iterator[Fault]:
    """Yield an error for each missing or special secret or certificate file of a section."""
    for name, section in settings.adapters.items():
        stated = section.raw if isinstance(section, LuaSection) else asdict(section)
        for key in sorted(FILE_KEYS & stated.keys()):
            if isinstance(stated[key], str) and not (file := settings.root / stated[key]).is_file():
                path = ("adapters", name, key)
                line = line_at(path, line_finder(Path(settings.file).read_text()))
                reason = "is not a regular file" if file.exists() else "file does not exist"
                yield Fault(settings.file, line, f"{dotted(path)} names {stated[key]}, but this {reason}")


def load_or_default(file: Path) -> tuple[Config, list[Fault]]:
    """Return the configuration and its errors. If there are errors, use the default Lua folders."""
    try:
        return config.load(file, os.environ), []
    except ConfigFailed as failed:
        return replace(config.parse("", str(file), {}), locale=SUBSTITUTE_LOCALE), failed.faults


async def _check_lua(settings: Config, data_dir: Path, file: Path) -> tuple[list[Fault], list[Fault], list[str]]:
    """Return the errors in Lua files or, if there are none, the warnings. Also return the disabled automations."""
    clock, limits = Clock(), settings.automations.runner
    async with open_pool(settings, clock, data_dir, file) as pool:
        scenes = build_scene_catalog(settings.scenes, settings.root, pool, limits.default_max_concurrent)
        automations = build_automation_catalog(
            settings.automations, settings.root, pool.describe, settings.locale, clock
        )
        _, in_scripts = await Scripts(pool.compile, folder_of(settings.scripts, settings.root)).check()
        sections = list_lua_sections(settings.adapters.values())
        _, of_recipes = await asyncio.to_thread(check_recipes, own_recipes(file))
        of_folder = await read_folder(folder_of(settings.scripts, settings.root))
        of_scenes, of_automations = await scenes.check(), await automations.check()
        kinds = await KindFiles(folder_of_kinds(file), pool.describe).read(sections)
        of_kinds = kinds.check()
        faults = [*of_scenes.faults, *of_automations.faults, *in_scripts, *of_kinds.faults, *of_recipes]
        warnings = [*of_scenes.warnings, *of_automations.warnings, *of_folder.unread, *of_kinds.warnings]
        stored = await asyncio.to_thread(_read_stored, data_dir)
        if not faults:
            loaded = [*(each.source for each in of_scenes.valid), *(each.source for each in of_automations.valid)]
            warnings += await find_undefined([*loaded, *of_folder.sources], pool.describe)
            own_kinds = [each.source for each in of_kinds.valid]
            warnings += await find_undefined(own_kinds, partial(pool.describe, is_kind=True), is_kind=True)
            warnings += find_stray(file.parent)
            operations = {**list_operations(settings.adapters), **kinds.list_operations()}
            warnings += find_wrong_names(
                settings, stored, of_automations.valid, of_scenes.valid, of_folder, operations
            )
        switched = _switched(stored)
        off = [each.definition.id for each in of_automations.valid if not each.definition.enabled]
        return faults, warnings, sorted(id_ for id_ in off if id_ not in switched)


def find_wrong_names(
    settings: Config,
    stored: DocumentSnapshot | None,
    automations: Sequence[LoadedFile[AutomationDefinition]],
    scenes: Sequence[LoadedFile[Scene]],
    scripts: Contents,
    operations: Mapping[str, Collection[str] | None],
) -> list[Fault]:
    """Return a fault for each unknown name in Lua files. If there are no stored values, check only the names of
    sections.

    Of the disabled automations, include only imported ones, because people check these before they switch them on.
    """
    at_first = {each.definition.id: each.definition.enabled for each in automations}
    off = {id_ for id_, is_on in {**at_first, **_switched(stored)}.items() if is_on is False}
    mark = MARK.encode()
    checked = [each for each in automations if each.definition.id not in off or mark in each.source.text]
    named = HomeNames.of_files(settings, operations, scenes, automations, checked, scripts)
    if stored is None:
        return replace(named, aliases={}).list_faults(checked)
    layout = read_layout(stored, lambda key, error: None)
    devices = read_devices(stored, layout, lambda key, error: None)
    known = replace(
        named.with_devices(devices, layout, read_past(stored), read_removed(stored)),
        variables={name for name, each in read_variables(stored).items() if each.value is not None},
        timers=[name for name, _ in stored.items(TIMER_PREFIX)],
    )
    return known.list_faults(checked)


def _switched(stored: DocumentSnapshot | None) -> dict[str, Any]:
    """For each automation that a person has switched on or off, return its state by id."""
    return {} if stored is None else dict(stored.items(TOGGLE_PREFIX))


def _read_stored(data_dir: Path) -> DocumentSnapshot | None:
    """Return the stored values. If there are no values, or if they cannot be read, return None."""
    try:
        return read_snapshot(data_dir)
    except (OSError, LaresError):  # `lares doctor` reports problems of the store
        return None
