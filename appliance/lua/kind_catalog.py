"""The kinds of adapter in Lua: the files of the home and those that come with Lares, loaded each for itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import orjson
from msgspec import Struct

from appliance.adapters.kinds import KINDS
from appliance.adapters.lua_kinds.kind_definition import BUNDLED_KINDS, KIND_NAME, KindDefinition, parse_kind
from appliance.adapters.lua_kinds.section import (
    KindCalls,
    LoadedSection,
    LuaSection,
    SectionFault,
    SectionFaults,
    SectionSettings,
    read_section,
)
from appliance.errors import ConfigFailed, Fault, ScriptFailed
from appliance.home import events
from appliance.home.bus import Bus
from appliance.lua.folder import Contents, Folder, read_folder
from appliance.lua.lua_catalog import fault_of, read_definition
from appliance.lua.source import Source
from appliance.lua.worker_pool import WorkerPool

log = logging.getLogger("lua")

MAX_CALL_CPU_SECS = 2.0
"""Seconds that a function may compute without waiting: less than a poll may take, so that its line is known."""

_BUNDLED = "bundled"
"""What the folder of the kinds that come with Lares is called."""


class DescribeKind(Protocol):
    """Runs a file's top-level code and gives what it returned; raises `ScriptFailed` where that fails."""

    async def __call__(self, source: Source, *, is_kind: bool) -> Mapping[str, Any]: ...


class LuaKind(Struct, frozen=True, kw_only=True):
    """One kind: its definition, the text that made it and that is run, and warnings about it."""

    name: str
    definition: KindDefinition
    source: Source
    warnings: tuple[Fault, ...] = ()


class KindReading(Struct, frozen=True, kw_only=True):
    """What files of kinds say: those that are sound, the faults of the others by kind, and faults of no kind."""

    kinds: Mapping[str, LuaKind]
    faults: Mapping[str, tuple[Fault, ...]]
    others: tuple[Fault, ...] = ()
    replaced: Sequence[str] = ()


class _InUse(Struct, frozen=True, kw_only=True):
    """A section whose kind and settings are sound."""

    kind: LuaKind
    settings: SectionSettings


class KindCatalog:
    """The kinds of the home's sections. A file with a fault leaves the kind as it was, where there was one.

    `folder` is the home's, which may be missing. Of those that come with Lares only what a section names is loaded.
    Each loading is published for each section.
    """

    def __init__(
        self,
        folder: Folder,
        sections: Sequence[LuaSection],
        describe: DescribeKind,
        bus: Bus,
    ) -> None:
        self.folder = folder.path
        self._folder = folder
        self._sections = sections
        self._describe = describe
        self._in_use: dict[str, _InUse] = {}
        self._known: dict[str, LuaKind] = {}
        self._faults: dict[str, tuple[Fault, ...]] = {}
        self._changed = {section.name: asyncio.Event() for section in sections}
        self._bus = bus
        self.rejected: tuple[Fault, ...] = ()
        self.pool: WorkerPool | None = None
        """Where the functions of kinds run; None where there is no section of one."""
        self.checked: tuple[Source, ...] = ()

    async def load(self) -> None:
        """Use every kind that is sound, for the start; raises `ConfigFailed` for sections that their kinds refuse."""
        reading = await self.read()
        refused = [fault for faults in self._refused(reading).values() for fault in faults]
        if refused:
            raise ConfigFailed(sorted(refused))
        for name in reading.replaced:
            log.info("%s/%s.lua replaces the kind of that name that comes with Lares", self._folder.name, name)
        self._accept(reading)

    async def reload(self) -> tuple[int, list[Fault]]:
        """Read the files again and use those that are sound: how many there are, and every fault of the others."""
        reading = await self.read()
        refused = self._refused(reading)
        self._accept(reading, refused)
        faults = [*reading.others, *(each for faults in reading.faults.values() for each in faults)]
        faults += [each for faults in refused.values() for each in faults]
        return len(reading.kinds), sorted(set(faults))

    async def check(self) -> tuple[list[Fault], list[Fault]]:
        """Every fault of files and sections, and every warning; what is in use does not change.

        `checked` are the home's files that are sound.
        """
        reading = await self.read()
        self._known = {each.name: reading.kinds[each.kind] for each in self._sections if each.kind in reading.kinds}
        sources = [each.source for each in reading.kinds.values()]
        self.checked = tuple(each for each in sources if not each.name.startswith(f"{_BUNDLED}/"))
        faults = [*reading.others, *(each for faults in reading.faults.values() for each in faults)]
        faults += [each for faults in self._refused(reading).values() for each in faults]
        warnings = [each for kind in reading.kinds.values() for each in kind.warnings]
        told = "takes the place of the kind of that name that comes with Lares"
        warnings += [Fault(f"{self._folder.name}/{name}.lua", 0, told) for name in reading.replaced]
        return sorted(set(faults)), sorted(warnings)

    def find(self, section: LuaSection) -> LoadedSection | SectionFault:
        """The section as its kind is loaded now."""
        found, changed = self._in_use.get(section.name), self._changed[section.name]
        if found is None:
            missing = Fault(section.file, section.line_of(("adapters", section.name)), "its kind is not loaded")
            return SectionFault(faults=self._faults.get(section.name, (missing,)), changed=changed)
        return LoadedSection(
            section=section, definition=found.kind.definition, settings=found.settings, changed=changed
        )

    def source_of(self, section: LuaSection) -> Source:
        """The text of the section's kind, which is in use."""
        return self._in_use[section.name].kind.source

    def list_operations(self) -> dict[str, frozenset[str]]:
        """The operations of each section whose kind is in use, or sound in the last check."""
        return {name: frozenset(kind.definition.operations) for name, kind in self._known.items()}

    async def read(self) -> KindReading:
        """Read the files anew: those of the home, and of those that come with Lares what sections name."""
        contents = await read_folder(self._folder)
        named = {section.kind for section in self._sections}
        own = {_name_of(source): source for source in contents.sources}
        others = [fault for fault in contents.faults if _kind_of_file(fault.file) not in named]
        faults: dict[str, tuple[Fault, ...]] = {
            _kind_of_file(each.file): (each,) for each in contents.faults if each not in others
        }
        sources: dict[str, Source] = {}
        for name, source in own.items():
            if (wrong := self._name_fault(name, source)) is not None:
                others.append(wrong)
            else:
                sources[name] = source
        bundled = {_name_of(each): each for each in (await asyncio.to_thread(read_bundled_kinds)).sources}
        sources |= {name: each for name, each in bundled.items() if name in named - own.keys() - faults.keys()}
        for name in sorted(named - sources.keys() - faults.keys()):
            missing = f"is not there, and no kind {name} comes with Lares"
            faults[name] = (Fault(f"{self._folder.name}/{name}.lua", 0, missing),)
        loaded = await asyncio.gather(*(self._load(name, source) for name, source in sources.items()))
        kinds = {each.name: each for each in loaded if isinstance(each, LuaKind)}
        faults |= {each[0]: each[1] for each in loaded if isinstance(each, tuple)}
        replaced = sorted(own.keys() & bundled.keys())
        return KindReading(kinds=kinds, faults=faults, others=tuple(others), replaced=replaced)

    def _name_fault(self, name: str, source: Source) -> Fault | None:
        if KIND_NAME.fullmatch(name) is None:
            return Fault(source.name, 0, "is no name for a kind; use a-z, 0-9 and _, a letter first")
        if name in KINDS:
            return Fault(source.name, 0, f"cannot replace the kind {name}, which is not in Lua; give it another name")
        return None

    async def _load(self, name: str, source: Source) -> LuaKind | tuple[str, tuple[Fault, ...]]:
        try:
            described = await self._describe(source, is_kind=True)
            definition, warnings = await asyncio.to_thread(_define, described, source)
        except ConfigFailed as failed:
            return name, tuple(failed.faults)
        except ScriptFailed as failed:
            return name, (fault_of(failed, source),)
        return LuaKind(name=name, definition=definition, source=source, warnings=warnings)

    def _refused(self, reading: KindReading) -> dict[str, tuple[Fault, ...]]:
        """The faults of sections, by the section's name, whose kind is sound."""
        refused = {}
        for section in self._sections:
            if section.kind in reading.kinds:
                read = read_section(section, reading.kinds[section.kind].definition)
                if isinstance(read, SectionFaults):
                    refused[section.name] = read.faults
        return refused

    def _accept(self, reading: KindReading, refused: Mapping[str, tuple[Fault, ...]] | None = None) -> None:
        """Use what is sound; where something else was in use, its adapter is made anew."""
        refused = refused or {}
        self.rejected = (*reading.others, *(each for faults in reading.faults.values() for each in faults))
        for section in self._sections:
            faults = reading.faults.get(section.kind) or refused.get(section.name)
            if faults:
                self._faults[section.name] = faults
                if section.name not in self._in_use:
                    self._renew(section.name)
            else:
                self._use(section, reading.kinds[section.kind])
            fault = str(faults[0]) if faults else None
            self._bus.publish(events.AdapterFileChecked(adapter=section.name, fault=fault))

    def _use(self, section: LuaSection, kind: LuaKind) -> None:
        self._faults.pop(section.name, None)
        before = self._in_use.get(section.name)
        if before is not None and before.kind.source == kind.source:
            return
        settings = read_section(section, kind.definition)
        assert isinstance(settings, SectionSettings)
        self._in_use[section.name] = _InUse(kind=kind, settings=settings)
        self._known[section.name] = kind
        self._renew(section.name)

    def _renew(self, name: str) -> None:
        before, self._changed[name] = self._changed[name], asyncio.Event()
        before.set()


class KindRunner:
    """The `KindHost` of adapters: calls run in workers of their own."""

    def __init__(self, catalog: KindCatalog, pool: WorkerPool) -> None:
        self._catalog = catalog
        self._pool = pool
        self.find = catalog.find

    async def call(
        self, section: LuaSection, calls: KindCalls, path: Sequence[str], given: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Run the function; see `KindHost`."""
        source = self._catalog.source_of(section)
        name = f"{section.name} {'.'.join(path)}"
        found: Mapping[str, Any] = orjson.loads(
            await self._pool.call(source, calls, {"path": path, **given}, name=name)
        )
        return found


def catalog_of_kinds(file: Path, sections: Sequence[LuaSection], describe: DescribeKind, bus: Bus) -> KindCatalog:
    """The catalog of the folder beside this configuration file, empty until it is loaded."""
    folder = Folder(path=file.absolute().parent / "adapters", name=f"{file.absolute().parent.name}/adapters")
    return KindCatalog(folder, sections, describe, bus)


@cache
def read_bundled_kinds() -> Contents:
    """The files of the kinds that come with Lares, read once: a user that root has become may not read them."""
    return Folder(path=BUNDLED_KINDS, name=_BUNDLED).read()


async def enter_kinds(
    stack: AsyncExitStack,
    file: Path,
    adapters: Mapping[str, Any],
    describe: DescribeKind,
    bus: Bus,
    build_pool: Callable[[float], WorkerPool],
) -> tuple[KindCatalog, KindRunner | None]:
    """The kinds in Lua, loaded, and what runs them: workers of their own, which live as long as the stack.

    `build_pool` is told how long a function may compute without waiting.

    Without a section of such a kind there are none. Raises `ConfigFailed` for sections that their kinds refuse.
    """
    sections = [each for each in adapters.values() if isinstance(each, LuaSection)]
    catalog = catalog_of_kinds(file, sections, describe, bus)
    await catalog.load()
    if not sections:
        return catalog, None
    catalog.pool = await stack.enter_async_context(build_pool(MAX_CALL_CPU_SECS))
    return catalog, KindRunner(catalog, catalog.pool)


def _define(described: Mapping[str, Any], source: Source) -> tuple[KindDefinition, tuple[Fault, ...]]:
    return read_definition(described, source, parse_kind)


def _name_of(source: Source) -> str:
    return _kind_of_file(source.name)


def _kind_of_file(name: str) -> str:
    return Path(name).stem
