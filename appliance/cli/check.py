"""`lares check`: lists the faults of configuration and Lua files."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from appliance import config
from appliance.adapters.kinds import list_operations
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.automations.automations import catalog_of
from appliance.automations.definition import AutomationDefinition
from appliance.automations.names import HomeNames, read_past, read_removed
from appliance.automations.states import TOGGLE_PREFIX
from appliance.automations.timers import TIMER_PREFIX
from appliance.automations.variables import VARIABLE_PREFIX
from appliance.cli.hub_client import HubRequest, ask, read_state
from appliance.cli.owner import as_owner, become_owner, worker_ids
from appliance.cli.paths import HubPaths
from appliance.cli.terminal import counted, say, with_local_times
from appliance.clock import Clock
from appliance.config import Config, line_finder
from appliance.errors import ConfigFailed, Fault, LaresError, StartFailed
from appliance.home.bus import Bus
from appliance.home_locale import Locale, load_zone
from appliance.lua.folder import folder_of
from appliance.lua.kind_catalog import catalog_of_kinds
from appliance.lua.lua_catalog import Asset, check_scripts
from appliance.lua.source import Source, find_undefined
from appliance.lua.worker_pool import WorkerPool, build_pool
from appliance.scenes import build_catalog
from appliance.store.records import DocumentSnapshot, read_devices, read_layout
from appliance.tables.fields import dotted, line_at

ANYWHERE = Locale(timezone=load_zone("UTC"), latitude=0.0, longitude=0.0)
"""The place of a home whose configuration cannot be used, so that no missing coordinates are reported."""


FILE_KEYS = frozenset({"password_file", "token_file", "ca_file", "cert_file", "key_file"})
"""The settings of adapters that name a file."""


def check(arguments: argparse.Namespace) -> int:
    """Print every fault of configuration and Lua files as `file:line: message`; 0 when there is none, else 78."""
    paths = HubPaths.of_process(arguments.config, arguments.data_dir)
    file, data_dir = paths.need_config(), paths.find_data_dir()
    with as_owner(data_dir, file):
        settings, faults = _load(file)
    is_sound = not faults
    in_lua, warnings, off = asyncio.run(_check_lua(settings, data_dir, file))
    faults += [*in_lua, *find_unreadable(file.parent)]
    if not is_sound:  # what Lua names may be in what cannot be read of the configuration
        warnings = []
    warnings = [*find_missing_files(settings), *warnings]
    for fault in faults:
        say(str(fault))
    for warning in (*settings.warnings, *warnings):
        say(f"warning: {with_local_times(str(warning), settings.locale.timezone)}")
    if faults:
        say(f"lares: {counted(len(faults), 'fault')} found", to=sys.stderr)
        return os.EX_CONFIG
    say(*(with_local_times(each, settings.locale.timezone) for each in _list_changes(data_dir)))
    if off:
        say(f"off, as their files say: {', '.join(off)}; fill in the names at the top of each, then switch it on")
    say(f"{file}: no faults")
    return os.EX_OK


def _list_changes(data_dir: Path) -> list[str]:
    """Return what the running hub has not taken over of the configuration; nothing if no hub answers."""
    try:
        changes: list[str] = ask(data_dir, HubRequest(path="/diagnostics/status")).get("config", [])
    except (OSError, StartFailed):
        return []
    return changes


def find_unreadable(folder: Path) -> list[Fault]:
    """What of the configuration this user, who runs the hub, cannot read; a link to nothing is not meant."""
    if folder.name != "config":
        return []
    message = (
        f"cannot be read by user {os.geteuid()}, who runs the hub: `chgrp {os.getegid()}` and `chmod g+rX` let it"
    )
    paths = (path for path in (folder, *sorted(folder.rglob("*"))) if os.access(path, os.F_OK))
    hidden = [path for path in paths if not os.access(path, os.R_OK | os.X_OK if path.is_dir() else os.R_OK)]
    return [Fault(str(path), 0, message) for path in hidden]


def find_missing_files(settings: Config) -> Iterator[Fault]:
    """The files with secrets and certificates that sections name, and that are not there."""
    for name, section in settings.adapters.items():
        stated = section.raw if isinstance(section, LuaSection) else asdict(section)
        for key in sorted(FILE_KEYS & stated.keys()):
            if isinstance(stated[key], str) and not (settings.root / stated[key]).is_file():
                path = ("adapters", name, key)
                line = line_at(path, line_finder(Path(settings.file).read_text()))
                yield Fault(settings.file, line, f"{dotted(path)} names {stated[key]}, and there is no such file")


def _load(file: Path) -> tuple[Config, list[Fault]]:
    """The configuration and its faults; where there are any, the Lua files are looked for in their usual places."""
    try:
        return config.load(file, os.environ), []
    except ConfigFailed as failed:
        return replace(config.parse("", str(file), {}), locale=ANYWHERE), failed.faults


async def _check_lua(settings: Config, data_dir: Path, file: Path) -> tuple[list[Fault], list[Fault], list[str]]:
    """The faults of the Lua files and, where there are none, warnings about them; and the automations that are off
    because their files say so."""
    clock, limits = Clock(), settings.automations.runner
    folders = (
        folder_of(settings.scenes, settings.root),
        folder_of(settings.automations, settings.root),
        folder_of(settings.scripts, settings.root, is_deep=True),
    )
    async with open_pool(settings, clock, data_dir, file) as pool:
        scenes = build_catalog(settings.scenes, settings.root, pool, limits.default_max_concurrent)
        automations = catalog_of(settings.automations, settings.root, pool.describe, settings.locale, clock)
        _, in_scripts = await check_scripts(pool.compile, folders[-1])
        sections = [each for each in settings.adapters.values() if isinstance(each, LuaSection)]
        kinds = catalog_of_kinds(file, sections, pool.describe, Bus())
        checked = [await scenes.check(), await automations.check(), (in_scripts, []), await kinds.check()]
        faults, warnings = ([each for pair in checked for each in pair[n]] for n in (0, 1))
        stored = await asyncio.to_thread(_read_stored, data_dir)
        if not faults:
            sources = [source for folder in folders if folder is not None for source in folder.read().sources]
            warnings += await find_undefined(sources, pool.describe)
            warnings += await find_undefined(kinds.checked, partial(pool.describe, is_kind=True), is_kind=True)
            ids = [each.definition.id for each in scenes.checked]
            operations = {**list_operations(settings.adapters), **kinds.list_operations()}
            warnings += find_wrong_names(settings, stored, automations.checked, ids, sources, operations)
        switched = _switched(stored)
        off = [each.definition.id for each in automations.checked if not each.definition.enabled]
        return faults, warnings, sorted(id_ for id_ in off if id_ not in switched)


def find_wrong_names(
    settings: Config,
    stored: DocumentSnapshot | None,
    automations: Sequence[Asset[AutomationDefinition]],
    scenes: list[str],
    sources: Sequence[Source],
    operations: Mapping[str, Collection[str] | None],
) -> list[Fault]:
    """The names that the home of these stored values does not have; only those of sections where they are None.

    What is switched off is not judged. `operations` are those of each section, None where they are not known.
    """
    at_first = {each.definition.id: each.definition.enabled for each in automations}
    off = {id_ for id_, is_on in {**at_first, **_switched(stored)}.items() if is_on is False}
    idle = {each.source for each in automations if each.definition.id in off}
    armed = [each for each in automations if each.definition.id not in off]
    named = HomeNames(
        adapters=settings.adapter_names,
        operations=operations,
        called=[each for each in sources if each not in idle],
        notify_targets=settings.notify.targets,
    )
    if stored is None or not stored.items(""):
        return replace(named, aliases={}).list_faults(armed)
    layout = read_layout(stored, lambda key, error: None)
    devices = read_devices(stored, layout, lambda key, error: None)
    known = replace(
        named.with_devices(devices, layout, read_past(stored), read_removed(stored)),
        variables=[name for name, _ in stored.items(VARIABLE_PREFIX)],
        timers=[name for name, _ in stored.items(TIMER_PREFIX)],
        scenes=scenes,
        sources=sources,
    )
    return known.list_faults(armed)


def _switched(stored: DocumentSnapshot | None) -> dict[str, Any]:
    """What somebody has switched on or off, by id; nothing where the home has left no store."""
    return {} if stored is None else dict(stored.items(TOGGLE_PREFIX))


def _read_stored(data_dir: Path) -> DocumentSnapshot | None:
    """The state of the hub that runs, or else of its store; None where there is neither."""
    try:
        return DocumentSnapshot(read_state(data_dir))
    except (OSError, LaresError):  # whether the store is sound is for `lares doctor` to say
        return None


@asynccontextmanager
async def open_pool(settings: Config, clock: Clock, *home: Path) -> AsyncIterator[WorkerPool]:
    """The workers; they and from then on this process are the user whose home it is, if root began it.

    The first is started by root, because Python itself may lie where that user may not read.
    """
    ids, limits = worker_ids(*home), settings.automations.runner
    zone = settings.locale.timezone
    async with build_pool(settings.scripts, limits, zone, settings.root, clock, user_ids=ids) as pool:
        if ids:
            await pool.compile(Source(name="the start of Lua", text=b""))
            become_owner(*home)
        yield pool
