"""Checks translated parts and files with the hub's own checks, so that each written file can be loaded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from appliance.automations.automations import build_automation_catalog
from appliance.automations.conditions.kinds import parse_conditions
from appliance.automations.triggers.kinds import parse_trigger
from appliance.cli.homeassistant.lua_file import LuaFile
from appliance.cli.homeassistant.not_translated import NotTranslated
from appliance.cli.owner import as_owner
from appliance.clock import Clock
from appliance.config import Config
from appliance.errors import Fault, ScriptFailed
from appliance.home_locale import Locale
from appliance.lua.files.catalog import Catalog, fault_of, load_folder
from appliance.lua.files.folder import Contents
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua.text.source import Source
from appliance.scenes import build_scene_catalog
from appliance.shortening import join_first
from appliance.tables.checks import LUA
from appliance.tables.fields import Findings, Table

MAX_SHOWN_FAULTS = 3


def check_trigger(table: Mapping[str, Any], locale: Locale) -> None:
    """Raise `NotTranslated` with the faults of a trigger."""
    findings = Findings(LUA)
    parse_trigger(Table(table, findings), locale, Clock().now())
    _refuse([str(each) for each in findings.faults])


def check_condition(table: Mapping[str, Any], locale: Locale) -> None:
    """Raise `NotTranslated` with the faults of a condition."""
    findings = Findings(LUA)
    parse_conditions(Table({"conditions": [table]}, findings), locale)
    _refuse([str(each).removeprefix("conditions[1].") for each in findings.faults])


async def find_faults(
    files: Iterable[LuaFile], settings: Config, pool: WorkerPool, home: tuple[Path, ...]
) -> dict[LuaFile, str]:
    """Check the files like `lares check` and `lares reload`. Return the faults of the files that the hub cannot
    load."""
    clock, runner = Clock(), settings.automations.runner
    texts = {_source_of(each, settings): each for each in files}
    with as_owner(*home):
        scenes = build_scene_catalog(settings.scenes, settings.root, pool, runner.default_max_concurrent)
        automations = build_automation_catalog(
            settings.automations, settings.root, pool.describe, settings.locale, clock
        )
        faults = [
            *await _faults_in("automations", automations, texts),
            *await _faults_in("scenes", scenes, texts),
            *await _faults_in_scripts(pool, texts),
        ]
    found = defaultdict[str, list[str]](list)
    for each in sorted(faults):
        found[each.file].append(each.message)
    return {file: _joined(found[source.name]) for source, file in texts.items() if source.name in found}


def _source_of(file: LuaFile, settings: Config) -> Source:
    folder = getattr(settings, file.folder).directory
    return Source(name=str(Path(folder, f"{file.id}.lua")), text=file.text.encode())


async def _faults_in(folder: str, catalog: Catalog[Any], texts: Mapping[Source, LuaFile]) -> list[Fault]:
    sources = tuple(source for source, file in texts.items() if file.folder == folder)
    if not sources:
        return []
    loaded = await load_folder(Contents(sources=sources, faults=()), catalog.check_text, repeats_faulty=True)
    present = {each.definition.id: each.source.name for each in (await catalog.check()).valid}
    clashes = (
        Fault(each.source.name, 0, f"{present[each.definition.id]} already has the id {each.definition.id}")
        for each in loaded.files
        if each.definition.id in present
    )
    return [*loaded.faults, *clashes]


async def _faults_in_scripts(pool: WorkerPool, texts: Mapping[Source, LuaFile]) -> list[Fault]:
    found = []
    for source, file in texts.items():
        if file.folder == "scripts":
            try:
                await pool.compile(source)
            except ScriptFailed as failed:
                found.append(fault_of(failed, source))
    return found


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise NotTranslated(_joined(faults))


def _joined(faults: Sequence[str]) -> str:
    return join_first(faults, MAX_SHOWN_FAULTS, "; ")
