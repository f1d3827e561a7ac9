"""Collects the names that exist in the home."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from appliance.automations.automations import Automations
from appliance.automations.definition import AutomationDefinition
from appliance.automations.environment import Environment
from appliance.automations.names.home_names import HomeNames, PastNames, RemovedDevice
from appliance.config import Config
from appliance.errors import Fault
from appliance.lua.files.catalog import Catalog, LoadedFile
from appliance.lua.files.folder import Contents, folder_of, read_folder
from appliance.lua.text.source import Source


class NameCollector(Struct, frozen=True, kw_only=True):
    """Collects the `HomeNames` at the time of a call. The fields of function type return the current state of parts
    that start later or can change."""

    config: Config
    environment: Environment
    sections: Callable[[], Collection[str]]
    operations: Callable[[], Mapping[str, Collection[str] | None]]
    scenes: Callable[[], Catalog[Any]]
    automations: Callable[[], Automations]

    def list_for_load(self) -> HomeNames:
        """Return the names that are checked when a file is loaded."""
        layout = self.environment.registry.layout
        return HomeNames(adapters=self.sections(), rooms=layout.rooms, groups=layout.groups)

    def inspect(self, source: Source) -> Iterator[Fault]:
        return self.list_for_load().inspect(source)

    async def list_dependencies(self) -> object:
        """Return the scripts and the names in the home. If the returned value changes, all Lua files must be
        checked again."""
        return (await self._read_scripts()).sources, self.list_for_load()

    async def view(
        self, past: Mapping[str, PastNames], removed: Mapping[str, RemovedDevice]
    ) -> tuple[HomeNames, list[LoadedFile[AutomationDefinition]]]:
        """Return the names in the home, including past device names, and the enabled automations."""
        scripts = await self._read_scripts()
        automations, environment = self.automations(), self.environment
        scenes, files = self.scenes().list_files(), automations.catalog.list_files()
        enabled = [each for each in files if automations.states.of(each.definition.id).is_enabled]
        operations, sections = self.operations(), self.sections()
        variables = {each.name for each in environment.variables.list_all()}
        timers = environment.timers.list_names()
        devices, layout = environment.registry.list_devices(), environment.registry.layout

        def collect() -> HomeNames:
            known = HomeNames.of_files(self.config, operations, scenes, files, enabled, scripts)
            known = replace(known, adapters=sections, variables=variables, timers={*timers})
            return known.with_devices(devices, layout, past, removed)

        return await asyncio.to_thread(collect), enabled

    async def _read_scripts(self) -> Contents:
        return await read_folder(folder_of(self.config.scripts, self.config.root))
