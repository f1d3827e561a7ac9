"""The loaded adapter kinds in Lua: the kinds that the home's sections use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct, field

from appliance.adapters.lua_calls import LuaCalls
from appliance.adapters.lua_kinds.host import LoadedSection, SectionFault
from appliance.adapters.lua_kinds.section import LuaSection, SectionSettings, list_lua_sections
from appliance.errors import ConfigFailed, Fault
from appliance.home import events
from appliance.home.bus import Bus
from appliance.log_limit import log_warnings
from appliance.lua.files.kind_files import DescribeKind, KindFiles, KindReading, LuaKind, folder_of_kinds
from appliance.lua.running.worker_pool import WorkerPool

log = logging.getLogger("lua")

MAX_CALL_CPU_SECS = 2.0
"""Maximum processor time in seconds that a function may use without waiting. This limit is shorter than the time
limit of a poll, because only the error message for this limit contains the Lua line. On a busy machine, the poll's
limit can end the function first; its error message contains the file and the function."""


class _SectionState(Struct, kw_only=True):
    """The state of a section.

    - `kind`, `settings`: the loaded kind, and the section's settings as this kind reads them.
    - `faults`: the faults of the latest load; the section then continues with its earlier kind.
    - `changed`: an event that is set when the kind changes.
    """

    kind: LuaKind | None = None
    settings: SectionSettings | None = None
    faults: tuple[Fault, ...] = ()
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def use(self, kind: LuaKind, settings: SectionSettings) -> None:
        """Use the kind, unless its text is unchanged."""
        if self.kind is None or self.kind.source != kind.source:
            self.kind, self.settings = kind, settings
            self.notify_change()

    def notify_change(self) -> None:
        before, self.changed = self.changed, asyncio.Event()
        before.set()


class KindCatalog:
    """The kinds that the home's sections use, and the `KindHost` of their adapters.

    If a file has a fault, its previously loaded kind remains. Each load publishes an event for each section.

    - `pool`: the workers in which functions of kinds run. If `pool` is None, the first section with a Lua kind starts
      workers with `open_pool`.
    """

    def __init__(
        self,
        files: KindFiles,
        sections: Sequence[LuaSection],
        bus: Bus,
        *,
        pool: WorkerPool | None = None,
        open_pool: Callable[[], Awaitable[WorkerPool]] | None = None,
    ) -> None:
        self.files = files
        self.sections = sections
        self._states = {section.name: _SectionState() for section in sections}
        self._bus = bus
        self._replaced: set[Fault] = set()
        self.rejected: tuple[Fault, ...] = ()
        self.pool = pool
        self._open_pool = open_pool
        self.large_messages = asyncio.Lock()

    async def load(self) -> None:
        """Load every valid kind at the start. Raise `ConfigFailed` for sections that their kinds reject."""
        reading = await self.files.read(self.sections, repeats_faulty=True)
        if reading.refused:
            raise ConfigFailed(sorted(chain(*reading.refused.values())))
        self._accept(reading)
        await self._start_workers()

    async def reload(self) -> tuple[int, list[Fault]]:
        """Load the valid files again. Return the number of loaded files, and every fault of the other files. If a
        changed kind rejects a section, the section does not change."""
        reading = await self.files.read(self.sections)
        self._accept(reading)
        return len(reading.kinds), reading.list_faults()

    async def use_sections(self, sections: Sequence[LuaSection], changed: Collection[str]) -> None:
        """Replace the sections. `changed` contains the names of the changed sections. Call `reload` afterwards."""
        before = self._states
        self.sections, self._states = sections, {}
        for name in (each.name for each in sections):
            state = before.get(name, _SectionState())
            self._states[name] = _SectionState(changed=state.changed) if name in changed else state
        await self._start_workers()

    async def _start_workers(self) -> None:
        if self.sections and self.pool is None and self._open_pool is not None:
            self.pool = await self._open_pool()

    def find(self, section: LuaSection) -> LoadedSection | SectionFault:
        """Return the section's settings, parsed by the loaded kind."""
        state = self._states.get(section.name, _SectionState())
        if state.kind is None or state.settings is None:
            missing = Fault(
                section.file, section.line_of(("adapters", section.name)), "the kind of this section is not loaded"
            )
            return SectionFault(faults=state.faults or (missing,), changed=state.changed)
        definition = state.kind.definition
        return LoadedSection(section=section, definition=definition, settings=state.settings, changed=state.changed)

    async def call(
        self, section: LuaSection, calls: LuaCalls, path: Sequence[str], given: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Run a function of the section's loaded kind; see `KindHost`."""
        kind, name = self._states[section.name].kind, f"{section.name} {'.'.join(path)}"
        assert self.pool is not None and kind is not None
        answer = await self.pool.call(kind.source, calls, {"path": path, **given}, name=name)
        found: Mapping[str, Any] = orjson.loads(answer)
        return found

    def list_secrets(self) -> dict[str, frozenset[str]]:
        """Return the names of the secret settings of each section with a loaded kind."""
        return {
            name: frozenset(key for key, setting in kind.definition.settings.items() if setting.secret)
            for name, kind in self._list_loaded()
        }

    def list_operations(self) -> dict[str, frozenset[str]]:
        """Return the operations of each section with a loaded kind."""
        return {name: frozenset(kind.definition.operations) for name, kind in self._list_loaded()}

    def _list_loaded(self) -> list[tuple[str, LuaKind]]:
        """Return the name and the kind of each section with a loaded kind."""
        return [(name, each.kind) for name, each in self._states.items() if each.kind is not None]

    def _accept(self, reading: KindReading) -> None:
        """Replace the loaded kinds. Adapters of changed kinds restart."""
        self.rejected = reading.omitted
        log_warnings(log, reading.warnings, len(reading.warnings))
        for each in sorted(set(reading.replaced) - self._replaced):
            log.info("%s %s", each.file, each.message)
        self._replaced = set(reading.replaced)
        for section in self.sections:
            state = self._states[section.name]
            state.faults = reading.faults.get(section.kind) or reading.refused.get(section.name) or ()
            if not state.faults:
                state.use(reading.kinds[section.kind], reading.settings[section.name])
            elif state.kind is None:
                state.notify_change()
            fault = str(state.faults[0]) if state.faults else None
            self._bus.publish(events.AdapterFileChecked(adapter=section.name, fault=fault))


def build_kind_catalog(
    file: Path, sections: Sequence[LuaSection], describe: DescribeKind, bus: Bus, pool: WorkerPool | None = None
) -> KindCatalog:
    """Return a catalog of the folder next to this configuration file. The catalog is empty until it is loaded."""
    return KindCatalog(KindFiles(folder_of_kinds(file), describe), sections, bus, pool=pool)


async def open_kind_catalog(
    stack: AsyncExitStack,
    file: Path,
    adapters: Mapping[str, Any],
    describe: DescribeKind,
    bus: Bus,
    build_pool: Callable[[float], WorkerPool],
) -> KindCatalog:
    """Load the kinds in Lua. If a section uses a kind in Lua, the kind's functions run in separate workers until the
    stack closes.

    The argument of `build_pool` is the maximum processor time in seconds that a function may use without waiting.
    Raise `ConfigFailed` if a kind rejects a section.
    """
    sections = list_lua_sections(adapters.values())
    pools = await stack.enter_async_context(AsyncExitStack())

    def open_pool() -> Awaitable[WorkerPool]:
        return pools.enter_async_context(build_pool(MAX_CALL_CPU_SECS))

    catalog = KindCatalog(KindFiles(folder_of_kinds(file), describe), sections, bus, open_pool=open_pool)
    await catalog.load()
    return catalog
