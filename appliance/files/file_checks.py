"""Checks a file's new text for faults, and for warnings such as unknown names."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from appliance import config
from appliance.adapters.lua_kinds.section import list_lua_sections
from appliance.automations.automations import Automations, View
from appliance.automations.definition import AutomationDefinition
from appliance.automations.names.home_names import HomeNames
from appliance.computing import compute_alone
from appliance.config import Config
from appliance.errors import ConfigFailed, Fault, ScriptFailed
from appliance.files.file_locations import FileLocation
from appliance.lua.files.catalog import Catalog, LoadedFile, fault_of
from appliance.lua.files.folder import Folder
from appliance.lua.kind_catalog import KindCatalog
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua.text.source import Source
from appliance.lua.text.undefined_names import find_undefined
from appliance.scenes import Scene
from appliance.tasks import Tasks

T = TypeVar("T")

MAX_FAULTS = 200
"""Maximum number of errors, and of warnings, in the result of a check."""


FILES_THREAD = "files"
"""The thread that checks files and hides their secrets."""


class CheckedText(Struct, frozen=True, kw_only=True):
    """The faults and warnings of a text."""

    errors: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()


class FileChecks:
    """Checks texts against the current home. `names` returns the names in the home."""

    def __init__(
        self,
        settings: Config,
        pool: WorkerPool,
        scenes: Catalog[Scene],
        automations: Automations,
        kinds: KindCatalog,
        folders: Sequence[Folder],
        names: Callable[[], Awaitable[HomeNames]],
    ) -> None:
        self._config = settings
        self._pool = pool
        self._scenes = scenes
        self._automations = automations
        self._kinds = kinds
        self._folders = folders
        self._names = names
        self._tasks = Tasks()
        self._turn = asyncio.Lock()

    async def check(self, location: FileLocation, text: bytes) -> CheckedText:
        """Return the text's faults or, if there are none, the warnings."""
        return await self._run_alone(partial(self._check_text, location, text), f"check of {location.path}")

    async def validate(self, automation_id: str) -> View:
        """Check the automation's file on disk. Raise `ConfigFailed` with the file's faults."""
        check = partial(self._automations.validate, automation_id)
        return await self._run_alone(check, f"check of automation '{automation_id}'")

    async def _run_alone(self, check: Callable[[], Awaitable[T]], name: str) -> T:
        """Return the result of the check. Only one check runs at a time, because several would use much memory,
        and their threads would delay the event loop. A check that has begun ends before the next check, even if its
        caller is cancelled."""

        async def release_after() -> T:
            try:
                return await check()
            finally:
                self._turn.release()

        await self._turn.acquire()
        return await self._tasks.finish(release_after(), name)

    async def _check_text(self, location: FileLocation, text: bytes) -> CheckedText:
        source = Source(name=location.path, text=text)
        checks = {
            "scene": self._check_scene,
            "automation": self._check_automation,
            "script": self._check_script,
            "adapter": self._check_kind,
            "config": self._check_config,
        }
        if b"\0" in text:
            return CheckedText(errors=(Fault(location.path, 1, "is UTF-16, or not text; save it as UTF-8"),))
        try:
            text.decode()
            found = await checks[location.kind](source)
        except UnicodeDecodeError:
            return CheckedText(errors=(Fault(location.path, 1, "is not UTF-8 text"),))
        except ConfigFailed as failed:
            return CheckedText(errors=await compute_alone(FILES_THREAD, first_faults, failed.faults))
        except ScriptFailed as failed:
            return CheckedText(errors=(fault_of(failed, source),))
        own = (each for each in found if each.file == location.path)
        return CheckedText(warnings=await compute_alone(FILES_THREAD, first_faults, own))

    async def _check_scene(self, source: Source) -> list[Fault]:
        file = await self._scenes.check_text(source)
        return [*file.warnings, *await self._inspect(source), *await self._find_undefined(source)]

    async def _check_automation(self, source: Source) -> list[Fault]:
        file = await self._automations.catalog.check_text(source)
        found = await self._inspect(source, file)
        return [*file.warnings, *found, *await self._find_undefined(source)]

    async def _check_script(self, source: Source) -> list[Fault]:
        await self._pool.compile(source)
        return [*await self._inspect(source), *await self._find_undefined(source)]

    async def _check_kind(self, source: Source) -> list[Fault]:
        kind, refused = await self._kinds.files.check_text(source, self._kinds.sections)
        undefined = await find_undefined([source], partial(self._pool.describe, is_kind=True), is_kind=True)
        return [*kind.warnings, *undefined, *refused]

    async def _check_config(self, source: Source) -> list[Fault]:
        def parse() -> Config | list[Fault]:
            try:
                return config.parse(source.text.decode(), self._config.file, os.environ)
            except ConfigFailed as failed:  # its traceback refers to all parsed sections, so free it on this thread
                return self._own_faults(failed.faults, source.name)

        found = await compute_alone(FILES_THREAD, parse)
        if not isinstance(found, Config):
            raise ConfigFailed(found)
        sections = list_lua_sections(found.adapters.values())
        if faults := await self._kinds.files.check_sections(sections):
            raise ConfigFailed(self._own_faults(faults, source.name))
        return [_split(warning, self._config.file, source.name) for warning in found.warnings]

    def _own_faults(self, faults: Sequence[Fault], name: str) -> list[Fault]:
        """Return copies of the faults that name this file."""
        own = [replace(each, file=name) for each in faults if each.file == self._config.file]
        return [*own, *(Fault(name, 0, str(each)) for each in faults if each.file != self._config.file)]

    async def _inspect(self, source: Source, file: LoadedFile[AutomationDefinition] | None = None) -> list[Fault]:
        """Return a fault for each unknown name in the text and in the automation that the text defines. Check the
        names as if the text were saved."""
        known = await self._names()

        def inspect() -> list[Fault]:
            names = known.with_source(source)
            return [*(() if file is None else names.faults_of(file)), *names.inspect(source)]

        return await compute_alone(FILES_THREAD, inspect)

    async def _find_undefined(self, source: Source) -> list[Fault]:
        def read() -> list[Source]:
            return [each for folder in self._folders for each in folder.read().sources if each.name != source.name]

        return await find_undefined([source], self._pool.describe, read_others=read)


def _split(warning: str, file: str, name: str) -> Fault:
    """Parse a warning in the form `file:line: message`."""
    line, _, message = warning.removeprefix(f"{file}:").partition(": ")
    return Fault(name, int(line), message) if line.isdecimal() else Fault(name, 0, warning.removeprefix(f"{file}: "))


def first_faults(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return the first faults by line, without duplicates. If there are more than `MAX_FAULTS`, the last fault
    states how many are omitted."""
    found = sorted(dict.fromkeys(each for each in faults))  # most faults are in order, so the sort is short
    if len(found) <= MAX_FAULTS:
        return tuple(found)
    rest = Fault(found[0].file, 0, f"has {len(found) - MAX_FAULTS} further faults; correct the listed ones first")
    return (*found[:MAX_FAULTS], rest)
