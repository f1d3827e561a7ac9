"""Checks a file's new text for faults, and for warnings such as unknown names."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from appliance import config
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.automations.automations import Automations
from appliance.automations.names import HomeNames
from appliance.config import Config
from appliance.errors import ConfigFailed, Fault, ScriptFailed
from appliance.files.file_locations import FileLocation
from appliance.lua.catalog import Catalog, fault_of
from appliance.lua.folder import Folder
from appliance.lua.kind_catalog import KindCatalog
from appliance.lua.source import Source
from appliance.lua.undefined import find_undefined
from appliance.lua.worker_pool import WorkerPool
from appliance.scenes import Scene


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

    async def check(self, location: FileLocation, text: bytes) -> CheckedText:
        """Return the text's faults or, if it has none, its warnings."""
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
            return CheckedText(errors=tuple(sorted(set(failed.faults))))
        except ScriptFailed as failed:
            return CheckedText(errors=(fault_of(failed, source),))
        own = {each for each in found if each.file == location.path}
        return CheckedText(warnings=tuple(sorted(own)))

    async def _check_scene(self, source: Source) -> list[Fault]:
        asset = await self._scenes.judge(source)
        names = await self._names_with(source)
        return [*asset.warnings, *names.inspect(source), *await self._find_undefined(source)]

    async def _check_automation(self, source: Source) -> list[Fault]:
        asset = await self._automations.catalog.judge(source)
        names = await self._names_with(source)
        found = await asyncio.to_thread(lambda: [*names.faults_of(asset), *names.inspect(source)])
        return [*asset.warnings, *found, *await self._find_undefined(source)]

    async def _check_script(self, source: Source) -> list[Fault]:
        await self._pool.compile(source)
        names = await self._names_with(source)
        return [*names.inspect(source), *await self._find_undefined(source)]

    async def _check_kind(self, source: Source) -> list[Fault]:
        kind, refused = await self._kinds.judge(source)
        undefined = await find_undefined([source], partial(self._pool.describe, is_kind=True), is_kind=True)
        return [*kind.warnings, *undefined, *refused]

    async def _check_config(self, source: Source) -> list[Fault]:
        def parse() -> Config:
            return config.parse(source.text.decode(), self._config.file, os.environ)

        try:
            found = await asyncio.to_thread(parse)
            sections = [each for each in found.adapters.values() if isinstance(each, LuaSection)]
            if faults := await self._kinds.judge_sections(sections):
                raise ConfigFailed(faults)
        except ConfigFailed as failed:
            own = [replace(each, file=source.name) for each in failed.faults if each.file == self._config.file]
            others = [Fault(source.name, 0, str(each)) for each in failed.faults if each.file != self._config.file]
            raise ConfigFailed([*own, *others]) from None
        return [_split(warning, self._config.file, source.name) for warning in found.warnings]

    async def _names_with(self, source: Source) -> HomeNames:
        """Return the names in the home as if this text were saved."""
        return (await self._names()).with_source(source)

    async def _find_undefined(self, source: Source) -> list[Fault]:
        def read() -> list[Source]:
            return [each for folder in self._folders for each in folder.read().sources if each.name != source.name]

        others = await asyncio.to_thread(read)
        return await find_undefined([source], self._pool.describe, others=others)


def _split(warning: str, file: str, name: str) -> Fault:
    """Parse a warning in the form `file:line: message`."""
    line, _, message = warning.removeprefix(f"{file}:").partition(": ")
    return Fault(name, int(line), message) if line.isdecimal() else Fault(name, 0, warning.removeprefix(f"{file}: "))
