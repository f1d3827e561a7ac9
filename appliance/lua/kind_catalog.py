"""The adapter kinds in Lua: the home's files and the bundled files. Each file is loaded separately."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from appliance.adapters.kinds import KINDS
from appliance.adapters.lua_calls import LuaCalls
from appliance.adapters.lua_kinds.definition import (
    BUNDLED_KINDS,
    KIND_NAME,
    KindDefinition,
    list_bundled_kinds,
    parse_kind,
)
from appliance.adapters.lua_kinds.host import LoadedSection, SectionFault
from appliance.adapters.lua_kinds.section import LuaSection, SectionFaults, SectionSettings, read_section
from appliance.errors import ConfigFailed, Fault
from appliance.home import events
from appliance.home.bus import Bus
from appliance.log_limit import log_warnings
from appliance.lua.catalog import CheckResult, LoadedFile, load_file, load_folder
from appliance.lua.folder import Contents, Folder, read_folder
from appliance.lua.source import Source
from appliance.lua.worker_pool import WorkerPool

log = logging.getLogger("lua")

MAX_CALL_RUNNING_SECS = 2.0
"""Maximum time in seconds that a function may compute without waiting. This limit must be shorter than the time limit
of a poll, because only the error message for this limit contains the Lua line."""

_BUNDLED = "bundled"
"""The folder name of the bundled kinds in messages."""


class DescribeKind(Protocol):
    """Runs a file's top-level code and returns its result. Raises `ScriptFailed` on failure."""

    async def __call__(self, source: Source, *, is_kind: bool) -> Mapping[str, Any]: ...


LuaKind = LoadedFile[KindDefinition]
"""An adapter kind in Lua. The name of a kind is the name of its file."""


class KindReading(Struct, frozen=True, kw_only=True):
    """The result of reading kinds: the valid kinds and the settings of their sections.

    - `faults`: the faults in kinds.
    - `refused`: the faults in sections.
    - `replaced`: the bundled kinds that files of the home replace.
    """

    kinds: Mapping[str, LuaKind]
    settings: Mapping[str, SectionSettings]
    faults: Mapping[str, tuple[Fault, ...]]
    refused: Mapping[str, tuple[Fault, ...]]
    replaced: Sequence[str]
    warnings: Sequence[Fault]

    @property
    def omitted(self) -> tuple[Fault, ...]:
        return tuple(sorted(chain(*self.faults.values())))

    def list_faults(self) -> list[Fault]:
        return sorted({*self.omitted, *chain(*self.refused.values())})


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

    If a file has a fault, its previously loaded kind remains. A bundled kind is loaded only if a section uses the
    kind. Each load publishes an event for each section.

    - `folder`: the home's folder of kinds, which may be missing.
    - `unsaved`: a text that is used instead of the file with the same name.
    - `pool`: the workers in which functions of kinds run. If `pool` is None, the first section with a Lua kind starts
      workers with `open_pool`.
    """

    def __init__(
        self,
        folder: Folder,
        sections: Sequence[LuaSection],
        describe: DescribeKind,
        bus: Bus,
        unsaved: Source | None = None,
        *,
        pool: WorkerPool | None = None,
        open_pool: Callable[[], Awaitable[WorkerPool]] | None = None,
    ) -> None:
        self._unsaved = unsaved
        self.folder = folder.path
        self._folder = folder
        self._sections = sections
        self._describe_any = describe
        self._describe = partial(describe, is_kind=True)
        self._states = {section.name: _SectionState() for section in sections}
        self._bus = bus
        self._replaced: set[str] = set()
        self.rejected: tuple[Fault, ...] = ()
        self.pool = pool
        self._open_pool = open_pool

    async def load(self) -> None:
        """Load every valid kind at the start. Raise `ConfigFailed` for sections that their kinds reject."""
        reading = await self.read(tries=2)
        if reading.refused:
            raise ConfigFailed(sorted(chain(*reading.refused.values())))
        self._accept(reading)
        await self._start_workers()

    async def reload(self) -> tuple[int, list[Fault]]:
        """Load the valid files again. Return the number of loaded files, and every fault of the other files. If a
        changed kind rejects a section, the section does not change."""
        reading = await self.read()
        self._accept(reading)
        return len(reading.kinds), reading.list_faults()

    async def use_sections(self, sections: Sequence[LuaSection], changed: Collection[str]) -> None:
        """Replace the sections. `changed` contains the names of the changed sections. Call `reload` afterwards."""
        before = self._states
        self._sections, self._states = sections, {}
        for name in (each.name for each in sections):
            state = before.get(name, _SectionState())
            self._states[name] = _SectionState(changed=state.changed) if name in changed else state
        await self._start_workers()

    async def _start_workers(self) -> None:
        if self._sections and self.pool is None and self._open_pool is not None:
            self.pool = await self._open_pool()

    async def check(self) -> CheckResult[KindDefinition]:
        """Check all files and sections. The result contains the home's valid files, but no bundled files.

        Call this method only on a catalog without adapters, because the check replaces the operations.
        """
        reading = await self.read()
        for section in self._sections:
            self._states[section.name].kind = reading.kinds.get(section.kind)
        own = [each for each in reading.kinds.values() if not each.source.name.startswith(f"{_BUNDLED}/")]
        replaces = "replaces the bundled kind with this name"
        warnings = [Fault(f"{self._folder.name}/{name}.lua", 0, replaces) for name in reading.replaced]
        return CheckResult(faults=reading.list_faults(), warnings=sorted([*reading.warnings, *warnings]), valid=own)

    async def check_text(self, source: Source) -> tuple[LuaKind, list[Fault]]:
        """Return the kind in this text, and a warning for each fault of a section of this kind. Do not load the kind.

        Raise `ConfigFailed` with the faults of the text.
        """
        kind = await self._load(source)
        sections = [each for each in self._sections if each.kind == _kind_of_file(source.name)]
        read = [read_section(each, kind.definition) for each in sections]
        faults = [fault for each in read if isinstance(each, SectionFaults) for fault in each.faults]
        return kind, [Fault(source.name, 0, str(each)) for each in faults]

    async def read_all(self) -> tuple[Mapping[str, KindDefinition], Mapping[str, tuple[Fault, ...]]]:
        """Return every valid kind (of the home and bundled), and the faults of invalid files. Do not load the
        kinds."""
        sections = [
            LuaSection(name=name, kind=name, raw={}, file="", line_of=lambda _: 0) for name in list_bundled_kinds()
        ]
        reading = await KindCatalog(self._folder, sections, self._describe_any, Bus()).read()
        return {name: each.definition for name, each in reading.kinds.items()}, reading.faults

    async def check_sections(self, sections: Sequence[LuaSection]) -> list[Fault]:
        """Return the faults that the kinds find in these sections."""
        if not sections:
            return []
        others = KindCatalog(self._folder, sections, self._describe_any, Bus())
        return sorted(chain(*(await others.read()).refused.values()))

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

    async def read(self, tries: int = 1) -> KindReading:
        """Read the home's files, and the bundled files that sections use."""
        contents = await read_folder(self._folder)
        if (unsaved := self._unsaved) is not None:
            saved = [each for each in contents.sources if each.name != unsaved.name]
            contents = replace(contents, sources=(*saved, unsaved))
        named = {section.kind for section in self._sections}
        own = {_kind_of_file(each.name) for each in contents.sources}
        bundled = {_kind_of_file(each.name): each for each in (await asyncio.to_thread(read_bundled_kinds)).sources}
        absent = named - own - {_kind_of_file(each.file) for each in contents.faults}
        used = [bundled[name] for name in sorted(absent & bundled.keys())]
        loaded = await load_folder(replace(contents, sources=(*contents.sources, *used)), self._load, tries)
        kinds = {_kind_of_file(each.source.name): each for each in loaded.files}
        faults: dict[str, tuple[Fault, ...]] = {}
        for fault in loaded.faults:
            name = _kind_of_file(fault.file)
            faults[name] = (*faults.get(name, ()), fault)
        for name in sorted(absent - bundled.keys()):
            missing = f"is missing, and Lares has no bundled kind {name}"
            faults[name] = (Fault(f"{self._folder.name}/{name}.lua", 0, missing),)
        read = {
            each.name: read_section(each, kinds[each.kind].definition)
            for each in self._sections
            if each.kind in kinds
        }
        return KindReading(
            kinds=kinds,
            settings={name: each for name, each in read.items() if isinstance(each, SectionSettings)},
            faults=faults,
            refused={name: each.faults for name, each in read.items() if isinstance(each, SectionFaults)},
            replaced=sorted(own & bundled.keys()),
            warnings=loaded.list_warnings(),
        )

    async def _load(self, source: Source) -> LuaKind:
        """Load the kind. Raise `ConfigFailed` with the faults of the text."""
        name = _kind_of_file(source.name)
        if KIND_NAME.fullmatch(name) is None:
            wrong = "is not a valid name for a kind; use a-z, 0-9, and _, and begin with a letter"
            raise ConfigFailed([Fault(source.name, 0, wrong)])
        if name in KINDS:
            wrong = f"cannot replace the kind {name}, which is not written in Lua; rename this file"
            raise ConfigFailed([Fault(source.name, 0, wrong)])
        return await load_file(source, self._describe, parse_kind)

    def _accept(self, reading: KindReading) -> None:
        """Replace the loaded kinds. Adapters of changed kinds restart."""
        self.rejected = reading.omitted
        log_warnings(log, reading.warnings)
        for name in sorted(set(reading.replaced) - self._replaced):
            log.info("%s/%s.lua replaces the bundled kind with this name", self._folder.name, name)
        self._replaced = set(reading.replaced)
        for section in self._sections:
            state = self._states[section.name]
            state.faults = reading.faults.get(section.kind) or reading.refused.get(section.name) or ()
            if not state.faults:
                state.use(reading.kinds[section.kind], reading.settings[section.name])
            elif state.kind is None:
                state.notify_change()
            fault = str(state.faults[0]) if state.faults else None
            self._bus.publish(events.AdapterFileChecked(adapter=section.name, fault=fault))


def folder_of_kinds(file: Path) -> Folder:
    """Return the folder of kinds, which is next to this configuration file."""
    return Folder(path=file.absolute().parent / "adapters", name=f"{file.absolute().parent.name}/adapters")


def build_kind_catalog(
    file: Path, sections: Sequence[LuaSection], describe: DescribeKind, bus: Bus, pool: WorkerPool | None = None
) -> KindCatalog:
    """Return a catalog of the folder next to this configuration file. The catalog is empty until it is loaded."""
    return KindCatalog(folder_of_kinds(file), sections, describe, bus, pool=pool)


@cache
def read_bundled_kinds() -> Contents:
    """Return the files of the bundled kinds. The files are cached, because the hub may later run as a user without
    permission to read them."""
    return Folder(path=BUNDLED_KINDS, name=_BUNDLED).read()


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

    The argument of `build_pool` is the maximum time in seconds that a function may compute without waiting. Raise
    `ConfigFailed` if a kind rejects a section.
    """
    sections = [each for each in adapters.values() if isinstance(each, LuaSection)]
    pools = await stack.enter_async_context(AsyncExitStack())

    def open_pool() -> Awaitable[WorkerPool]:
        return pools.enter_async_context(build_pool(MAX_CALL_RUNNING_SECS))

    catalog = KindCatalog(folder_of_kinds(file), sections, describe, bus, open_pool=open_pool)
    await catalog.load()
    return catalog


def _kind_of_file(name: str) -> str:
    return Path(name).stem
