"""Shared fixtures of the tests of kinds in Lua: a kind in its own home, without a network."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from appliance.adapters.lua_kinds.adapter import LuaAdapter
from appliance.adapters.lua_kinds.host import LoadedSection, SectionFault
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.errors import ConfigFailed, Unreachable
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.lua.kind_catalog import KindCatalog, build_kind_catalog
from appliance.lua.running.worker_pool import WorkerPool
from tests.adapters.contract import FastClock
from tests.adapters.lua_kinds.vendor import Answer, Vendor
from tests.fakes.context import context_of
from tests.fakes.lua import write
from tests.lua.bench import open_pool

__all__ = ["GONE", "Answer", "KindAtWork", "Vendor", "open_kinds", "section", "start"]

GONE = Unreachable("http://10.0.0.1 does not answer (timed out)")


def section(kind: str, raw: Mapping[str, Any] | None = None, name: str = "it") -> LuaSection:
    stated = {"base_url": "http://10.0.0.1", **(raw or {})}
    stated = {key: value for key, value in stated.items() if value is not None}
    return LuaSection(name=name, kind=kind, raw=stated, file="config/default.toml", line_of=lambda path: 7)


class KindAtWork:
    """One section of a kind. The test polls and commands the section's devices."""

    def __init__(self, catalog: KindCatalog, pool: WorkerPool, stated: LuaSection, vendor: Vendor) -> None:
        self.clock, self.bus = FastClock(20), Bus()
        self.dropped: list[events.ObservationDropped] = []
        self.happened: list[events.DeviceEvent] = []
        self.bus.listen(self._note)
        self.registry = Registry(self.bus, self.clock)
        self.vendor = vendor
        found = catalog.find(stated)
        if isinstance(found, SectionFault):
            raise ConfigFailed(list(found.faults))
        assert isinstance(found, LoadedSection)
        context = context_of(stated.name, None, self.clock, registry=self.registry, bus=self.bus)
        self.adapter = LuaAdapter(context, catalog, found, vendor)

    def _note(self, event: events.Event) -> None:
        if isinstance(event, events.ObservationDropped):
            self.dropped.append(event)
        elif isinstance(event, events.DeviceEvent):
            self.happened.append(event)

    def list_drops(self) -> list[tuple[str, str, str]]:
        """Return the device, the attribute, and the reason of each dropped part."""
        return [(each.device_id, each.attribute, each.reason) for each in self.dropped]

    async def poll(self) -> dict[str, Device]:
        """Poll once, and return the devices by their local ids."""
        self.adapter.publish.report(await self.adapter.poll())
        await self.adapter.publish_events()
        return {each.id.partition(":")[2]: each for each in self.registry.list_devices()}

    async def command(self, local: str, capability: str, action: str, value: Any = None) -> str | None:
        """Command a device. Return the error message, or None."""
        command = Command(capability=capability, action=action, value=value)
        result = await self.adapter.command(f"it:{local}", command)
        if result.report is not None:
            self.registry.apply(result.report)
        return None if result.error is None else str(result.error)


async def start(
    pool: WorkerPool, tmp_path: Any, text: str | None, vendor: Vendor, kind: str = "mine", **raw: Any
) -> KindAtWork:
    """Start the kind with this text, or the bundled kind. Raise `ConfigFailed` on failure."""
    folder = tmp_path / "config"
    (folder / "adapters").mkdir(parents=True, exist_ok=True)
    if text is not None:
        (folder / "adapters" / f"{kind}.lua").write_text(text)
    stated = section(kind, raw)
    catalog = build_kind_catalog(folder / "default.toml", [stated], pool.describe, Bus(), pool)
    await catalog.load()
    it = KindAtWork(catalog, pool, stated, vendor)
    await it.adapter.__aenter__()
    return it


@asynccontextmanager
async def open_kinds(stated: LuaSection, text: str | None = None) -> AsyncIterator[KindCatalog]:
    """Run the kind of a section in its own worker: the kind with this text, or the bundled one."""
    async with open_pool() as pool:
        with tempfile.TemporaryDirectory(prefix="lares-kind-") as folder:
            write(Path(folder), {} if text is None else {f"adapters/{stated.kind}.lua": text})
            file = Path(folder) / "config" / "default.toml"
            catalog = build_kind_catalog(file, [stated], pool.describe, Bus(), pool)
            await catalog.load()
            yield catalog
