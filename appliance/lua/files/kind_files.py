"""The files of adapter kinds in Lua: the home's files and the bundled files. Each file is loaded separately."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from appliance.adapters.kinds import KINDS
from appliance.adapters.lua_kinds.definition import (
    BUNDLED_KINDS,
    KIND_NAME,
    KindDefinition,
    list_bundled_kinds,
    parse_kind,
)
from appliance.adapters.lua_kinds.section import LuaSection, SectionFaults, SectionSettings, read_section
from appliance.computing import compute_alone
from appliance.errors import ConfigFailed, Fault
from appliance.lua.files.catalog import DEFINITIONS_THREAD, CheckResult, LoadedFile, load_file, load_folder
from appliance.lua.files.folder import Contents, Folder, read_folder
from appliance.lua.text.source import Source

_BUNDLED = "bundled"
"""The folder name of the bundled kinds in messages."""

_REPLACES = "replaces the bundled kind with this name"


class DescribeKind(Protocol):
    """Runs a file's top-level code and returns its result. Raises `ScriptFailed` on failure."""

    async def __call__(self, source: Source, *, is_kind: bool) -> Mapping[str, Any]: ...


LuaKind = LoadedFile[KindDefinition]
"""An adapter kind in Lua. The name of a kind is the name of its file."""


class KindReading(Struct, frozen=True, kw_only=True):
    """The valid kinds, and the settings of their sections.

    - `used`: the valid kind of each section.
    - `faults`: the faults in kinds.
    - `refused`: the faults in sections.
    - `replaced`: a warning for each file of the home that replaces a bundled kind.
    """

    kinds: Mapping[str, LuaKind]
    used: Mapping[str, LuaKind]
    settings: Mapping[str, SectionSettings]
    faults: Mapping[str, tuple[Fault, ...]]
    refused: Mapping[str, tuple[Fault, ...]]
    replaced: Sequence[Fault]
    warnings: Sequence[Fault]

    @property
    def omitted(self) -> tuple[Fault, ...]:
        return tuple(sorted(chain(*self.faults.values())))

    def list_faults(self) -> list[Fault]:
        return sorted({*self.omitted, *chain(*self.refused.values())})

    def list_operations(self) -> dict[str, frozenset[str]]:
        """Return the operations of each section with a valid kind."""
        return {name: frozenset(kind.definition.operations) for name, kind in self.used.items()}

    def check(self) -> CheckResult[KindDefinition]:
        """Return the faults and warnings, and the home's valid files without bundled files."""
        own = [each for each in self.kinds.values() if not each.source.name.startswith(f"{_BUNDLED}/")]
        return CheckResult(faults=self.list_faults(), warnings=sorted([*self.warnings, *self.replaced]), valid=own)


class KindFiles:
    """The files of kinds. A bundled kind is read only if a section uses the kind. `folder` is the home's folder of
    kinds, which may be missing."""

    def __init__(self, folder: Folder, describe: DescribeKind) -> None:
        self.folder = folder
        self._describe = partial(describe, is_kind=True)

    async def read(self, sections: Sequence[LuaSection], *, repeats_faulty: bool = False) -> KindReading:
        """Read the home's files, and the bundled files that the sections use. For `repeats_faulty`, see
        `load_folder`."""
        contents = await read_folder(self.folder)
        named = {section.kind for section in sections}
        own = {_kind_of_file(each.name) for each in contents.sources}
        bundled = {_kind_of_file(each.name): each for each in (await asyncio.to_thread(read_bundled_kinds)).sources}
        absent = named - own - {_kind_of_file(each.file) for each in contents.faults}
        used = [bundled[name] for name in sorted(absent & bundled.keys())]
        contents = replace(contents, sources=(*contents.sources, *used))
        loaded = await load_folder(contents, self.load, repeats_faulty=repeats_faulty)
        kinds = {_kind_of_file(each.source.name): each for each in loaded.files}
        faults: dict[str, tuple[Fault, ...]] = {}
        for fault in loaded.faults:
            name = _kind_of_file(fault.file)
            faults[name] = (*faults.get(name, ()), fault)
        for name in sorted(absent - bundled.keys()):
            faults[name] = (self._fault(name, f"is missing, and Lares has no bundled kind {name}"),)
        valid = [each for each in sections if each.kind in kinds]

        def read_sections() -> dict[str, SectionSettings | SectionFaults]:
            return {each.name: read_section(each, kinds[each.kind].definition) for each in valid}

        read = await compute_alone(DEFINITIONS_THREAD, read_sections)  # there can be hundreds of sections
        return KindReading(
            kinds=kinds,
            used={each.name: kinds[each.kind] for each in valid},
            settings={name: each for name, each in read.items() if isinstance(each, SectionSettings)},
            faults=faults,
            refused={name: each.faults for name, each in read.items() if isinstance(each, SectionFaults)},
            replaced=[self._fault(name, _REPLACES) for name in sorted(own & bundled.keys())],
            warnings=loaded.list_warnings(),
        )

    async def load(self, source: Source) -> LuaKind:
        """Load the kind. Raise `ConfigFailed` with the faults of the text."""
        name = _kind_of_file(source.name)
        if KIND_NAME.fullmatch(name) is None:
            wrong = "is not a valid name for a kind; use a-z, 0-9, and _, and begin with a letter"
            raise ConfigFailed([Fault(source.name, 0, wrong)])
        if name in KINDS:
            wrong = f"cannot replace the kind {name}, which is not written in Lua; rename this file"
            raise ConfigFailed([Fault(source.name, 0, wrong)])
        return await load_file(source, self._describe, parse_kind)

    def _fault(self, kind: str, message: str) -> Fault:
        return Fault(f"{self.folder.name}/{kind}.lua", 0, message)

    async def check_text(self, source: Source, sections: Sequence[LuaSection]) -> tuple[LuaKind, list[Fault]]:
        """Return the kind in this text, and a warning for each fault of a section of this kind.

        Raise `ConfigFailed` with the faults of the text.
        """
        kind = await self.load(source)
        its = [each for each in sections if each.kind == _kind_of_file(source.name)]
        read = [read_section(each, kind.definition) for each in its]
        faults = [fault for each in read if isinstance(each, SectionFaults) for fault in each.faults]
        return kind, [Fault(source.name, 0, str(each)) for each in faults]

    async def read_all(self) -> tuple[Mapping[str, KindDefinition], Mapping[str, tuple[Fault, ...]]]:
        """Return every valid kind (of the home and bundled), and the faults of invalid files."""
        sections = [
            LuaSection(name=name, kind=name, raw={}, file="", line_of=lambda _: 0) for name in list_bundled_kinds()
        ]
        reading = await self.read(sections)
        return {name: each.definition for name, each in reading.kinds.items()}, reading.faults

    async def check_sections(self, sections: Sequence[LuaSection]) -> list[Fault]:
        """Return the faults that the kinds find in these sections."""
        return sorted(chain(*(await self.read(sections)).refused.values())) if sections else []


def folder_of_kinds(file: Path) -> Folder:
    """Return the folder of kinds, which is next to this configuration file."""
    return Folder(path=file.absolute().parent / "adapters", name=f"{file.absolute().parent.name}/adapters")


@cache
def read_bundled_kinds() -> Contents:
    """Return the files of the bundled kinds. The files are cached, because the hub may later run as a user without
    permission to read them."""
    return Folder(path=BUNDLED_KINDS, name=_BUNDLED).read()


def _kind_of_file(name: str) -> str:
    return Path(name).stem
