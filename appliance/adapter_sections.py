"""Starts, stops, and replaces adapter sections as the configuration file changes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any

from appliance.adapters.dispatch import Dispatcher
from appliance.adapters.kinds import kind_name_of, section_kinds_of
from appliance.adapters.lua_kinds.section import list_lua_sections
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.out.section_publishers import Publishers, SectionPublishers
from appliance.adapters.running_adapters import RunningAdapters
from appliance.clock import Clock
from appliance.config import Config
from appliance.config_changes import ConfigChanges, ConfigFile, SectionChanges, compare_sections
from appliance.errors import ConfigFailed, Fault
from appliance.event_loop import in_steps
from appliance.health import Health
from appliance.home.registry import Registry
from appliance.lua.kind_catalog import KindCatalog
from appliance.store.store import Store

log = logging.getLogger("hub")

BuildPublishers = Callable[[str, Mqtt, Collection[str]], Awaitable[Publishers]]
"""Returns the publishers for one MQTT section. The arguments are the section's name, its settings, and the names
of all MQTT sections."""


class AdapterSections:
    """Changes the running sections, and publishes the home on the brokers of MQTT sections.

    - `settings`: the running sections
    - `names`: all section names, including disabled sections
    - `last_changes`: the sections that the last reload changed
    """

    def __init__(
        self,
        config: Config,
        file: ConfigFile,
        running: RunningAdapters,
        dispatcher: Dispatcher,
        kinds: KindCatalog,
        health: Health,
        registry: Registry,
        store: Store,
        clock: Clock,
        build_publishers: BuildPublishers,
    ) -> None:
        self.settings: Mapping[str, Any] = config.adapters
        self.names = config.adapter_names
        self.last_changes: dict[str, Any] = {}
        self._file = file
        self._running = running
        self._dispatcher = dispatcher
        self._kinds = kinds
        self._health = health
        self._registry = registry
        self._store = store
        self._clock = clock
        self._build_publishers = build_publishers
        self._brokers = {name for name, each in config.adapters.items() if isinstance(each, Mqtt)}

    async def publish_home(self) -> None:
        """Publish the home on the brokers of all MQTT sections. Reloads extend this to new sections."""
        for name, settings in self.settings.items():
            await self._publish_home_on(name, settings)

    async def find_config_changes(self) -> ConfigChanges:
        return await self._file.compare(self.settings)

    async def reload(self) -> tuple[int, list[Fault]]:
        """Start, stop, or replace the sections that have changed in the file, and reload the kinds in Lua."""
        self.last_changes = {}
        found, changes, faults = await self._read()
        if found is not None:
            await self._stop_changed(found, changes)
        count, in_files = await self._kinds.reload()
        for name in changes:
            if name in self.settings:
                await self._start_section(name, self.settings[name])
        if found is not None:
            next_start = self._file.keys_for_next_start(found)
            self.last_changes = {"sections": changes, "next_start": next_start}
            for name, change in changes.items():
                log.info("%s: %s", name, change)
            for sentence in ConfigChanges(file=found.file, next_start=next_start).sentences():
                log.warning("%s", sentence)
        return count, [*faults, *in_files]

    async def _read(self) -> tuple[Config | None, SectionChanges, list[Fault]]:
        """Return the configuration, the changed sections, and the faults. If the file is unusable, the
        configuration is None."""
        if not self._file.is_readable:
            return None, {}, []
        try:
            found = await self._file.read()
        except ConfigFailed as failed:
            return None, {}, failed.faults
        changes = compare_sections(self.settings, found.adapters)
        changed = [found.adapters[name] for name in changes if name in found.adapters]
        refused = await self._kinds.files.check_sections(list_lua_sections(changed))
        return (None, {}, refused) if refused else (found, changes, [])

    async def _stop_changed(self, found: Config, changes: SectionChanges) -> None:
        """Stop the changed sections, and use the new settings from the file."""
        for name, change in changes.items():
            if change != "started":
                await self._stop_section(name, found.adapters.get(name))
        self.settings, self.names = found.adapters, found.adapter_names
        self._store.recorder.sections = section_kinds_of(self.settings)
        if "stopped" in changes.values():
            await self._store.recorder.delete_oldest_stopped()
        await self._kinds.use_sections(list_lua_sections(self.settings.values()), changes)
        for name in changes:
            if name in self.settings:
                self._health.add(name)

    async def _start_section(self, name: str, settings: Any) -> None:
        if isinstance(settings, Mqtt):
            self._brokers.add(name)
        await self._store.restore_section(name)
        self._dispatcher.add(await self._running.start(name, settings))
        await self._publish_home_on(name, settings)

    async def _stop_section(self, name: str, successor: Any) -> None:
        """Stop the section. If a section of the same kind replaces this section, the devices remain. Otherwise, the
        devices remain only in storage."""
        self._dispatcher.remove(name)
        await self._running.stop(name)
        self._health.remove(name)
        self._brokers.discard(name)
        if successor is None or kind_name_of(successor) != kind_name_of(self.settings[name]):
            await self._store.recorder.flush(self._registry.ids_of(name))
            await in_steps(self._clock, self._registry.remove_section(name))

    async def _publish_home_on(self, name: str, settings: Any) -> None:
        if isinstance(settings, Mqtt):
            open_ = partial(self._build_publishers, name, settings, self._brokers)
            await self._running.enter(name, SectionPublishers(name, open_, self._clock))
