"""Catalogs of scenes, automations, and kinds. A catalog contains the loaded definitions of a folder with the source
text of their files."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from appliance.computing import compute_alone
from appliance.errors import ConfigFailed, Fault, NotFound, Resource, ScriptFailed
from appliance.event_loop import wait_for_short_turn
from appliance.log_limit import log_warnings
from appliance.lua.files.folder import Contents, Folder, read_folder
from appliance.lua.running.load_limit import limit_load
from appliance.lua.text.hints import ErrorContext, hint_of
from appliance.lua.text.source import FieldLines, Source
from appliance.tables.checks import LUA, nearest, suggest
from appliance.tables.fields import Findings, Problem, Table, located

MAX_CONCURRENT_READS = 4
"""Maximum number of files that run concurrently. Several files run at once, so that an endless file does not block
the others."""

MAX_CONCURRENT_REPEATS = 8
"""Maximum number of files that run concurrently in the second round (see `LoadLimit`)."""

DEFINITIONS_THREAD = "definitions"
"""The thread that checks the tables and texts of files. Several such threads would delay the event loop together."""

MAX_FILE_FAULTS = 50
"""Maximum number of listed faults per file. A file can have thousands."""

MAX_FAULTS = 200
"""Maximum number of listed faults per reload. A folder can have thousands of faulty files."""


class LuaDefinition(Protocol):
    """A definition in a Lua file: a scene, an automation, or an adapter kind."""

    @property
    def id(self) -> str:
        """Return the id, which is unique in the catalog."""


T = TypeVar("T", bound=LuaDefinition)
D = TypeVar("D")

log = logging.getLogger("lua")

Describe = Callable[[Source], Awaitable[Mapping[str, Any]]]

Parse = Callable[[Table], T | None]
"""Parses a file's table. If the table has faults, records them in the table's findings and returns None."""

Inspect = Callable[[Source], Iterable[Fault]]
"""Returns warnings about a file's text."""

Dependencies = Callable[[], Awaitable[object]]
"""Returns a value that changes with the external dependencies of a file's definition, such as the modules that the
file may require."""


class LoadedFile(Struct, Generic[D], frozen=True, kw_only=True):
    """A definition, its source file, and warnings about probable mistakes."""

    definition: D
    source: Source
    warnings: tuple[Fault, ...] = ()


class LoadedFolder(Struct, Generic[D], frozen=True, kw_only=True):
    """The definitions in a folder's valid files, and the faults of its other files.

    - `duplicates`: faults of files that repeat an id. `files` does not contain these files.
    - `unread`: warnings about files that the hub ignores.
    """

    files: tuple[LoadedFile[D], ...]
    faults: tuple[Fault, ...]
    is_missing: bool
    unread: tuple[Fault, ...]
    duplicates: tuple[Fault, ...] = ()

    def list_warnings(self) -> list[Fault]:
        return sorted(self.iterate_warnings())

    def iterate_warnings(self) -> Iterator[Fault]:
        """Yield the warnings about the folder, then the warnings about each loaded file."""
        return chain(self.unread, chain.from_iterable(file.warnings for file in self.files))

    def count_warnings(self) -> int:
        return len(self.unread) + sum(len(file.warnings) for file in self.files)


class CheckResult(Struct, Generic[D], frozen=True, kw_only=True):
    """The faults, warnings, and valid files of a folder."""

    faults: Sequence[Fault]
    warnings: Sequence[Fault]
    valid: Sequence[LoadedFile[D]] = ()


async def load_folder(
    contents: Contents, load: Callable[[Source], Awaitable[LoadedFile[D]]], *, repeats_faulty: bool = False
) -> LoadedFolder[D]:
    """Load the files within the limits of `LoadLimit`. `load` raises `ConfigFailed` with the faults of a file. Load
    late files twice, and if `repeats_faulty` is true, each faulty file."""
    faulty = defaultdict[str, Sequence[Fault]](tuple)
    for fault in contents.faults:
        faulty[fault.file] = (*faulty[fault.file], fault)
    loaded: dict[Source, LoadedFile[D]] = {}

    async def load_next(waiting: Iterator[Source]) -> None:
        for source in waiting:
            await wait_for_short_turn()  # an unchanged file needs no wait
            try:
                loaded[source] = await load(source)
                faulty.pop(source.name, None)
            except ConfigFailed as failed:
                faulty[source.name] = failed.faults

    async def load_all(sources: Iterable[Source], concurrent: int) -> None:
        waiting = iter(sources)
        await asyncio.gather(*(load_next(waiting) for _ in range(concurrent)))

    with limit_load() as limit:
        await load_all(contents.sources, MAX_CONCURRENT_READS)
        again = [each for each in contents.sources if each not in loaded and (repeats_faulty or limit.is_late(each))]
        with limit.second_round(again) as parts:
            for part in parts:
                await load_all(part, MAX_CONCURRENT_REPEATS)

    def collect() -> LoadedFolder[D]:
        return LoadedFolder(
            files=tuple(loaded[source] for source in contents.sources if source in loaded),
            faults=tuple(fault for name in sorted(faulty) for fault in sorted(faulty[name])),
            is_missing=contents.is_missing,
            unread=contents.unread,
        )

    return await asyncio.to_thread(collect)  # thousands of files would make this turn long


class Catalog(Generic[T]):
    """The loaded definitions. If there is no folder, the catalog is empty.

    - `what`: the word for a definition in messages, such as "scene".
    - `inspect`: returns warnings about the text of a valid file.
    - `omits_copies`: whether the first load ignores files that repeat an id.
    - `dependencies`: returns the external dependencies of the files. A reload runs a valid file again only if its
      text or these dependencies have changed. If `dependencies` is None, each reload runs every file again.
    - `rejected`: the first faults found by the latest load.
    - `is_refused`: whether these faults prevented the latest reload.
    - `is_complete`: whether the folder exists, and the latest load found no faults.
    """

    def __init__(
        self,
        what: Resource,
        folder: Folder | None,
        describe: Describe,
        parse: Parse[T],
        inspect: Inspect | None = None,
        *,
        omits_copies: bool = False,
        dependencies: Dependencies | None = None,
    ) -> None:
        self.rejected: tuple[Fault, ...] = ()
        self.is_complete = self.is_refused = False
        self.what = what
        self._folder = folder
        self._describe = describe
        self._parse = parse
        self._inspect = inspect
        self._omits_copies = omits_copies
        self._dependencies = dependencies
        self._last_dependencies: object = None
        self._valid: Mapping[str, LoadedFile[T]] = {}
        """The valid files of the latest load by name, even if the load was refused."""
        self._outdated: Mapping[str, LoadedFile[T]] = {}
        """During a load after a change of dependencies, the valid files of the load before."""
        self._files: Mapping[str, LoadedFile[T]] = {}
        """The loaded files, sorted by id."""
        self.revision = 0
        """A number that changes with the loaded files."""

    def get(self, id_: str) -> LoadedFile[T]:
        """Return the file. Raise `NotFound` for an unknown id."""
        if id_ not in self._files:
            raise NotFound(self.what, id_, self._files)
        return self._files[id_]

    def list_files(self) -> list[LoadedFile[T]]:
        """Return the loaded files by id."""
        return [*self._files.values()]

    def list_definitions(self) -> list[T]:
        """Return all definitions, sorted by id."""
        return [file.definition for file in self._files.values()]

    async def load(self) -> None:
        """Load every valid file at the start. If several files have the same id, and `omits_copies` is false, raise
        `ConfigFailed`.

        Load a faulty file twice, because a valid file may fail while the machine is busy.
        """
        reading = await self._read(repeats_faulty=True)
        if reading.duplicates and not self._omits_copies:
            raise ConfigFailed(list(reading.duplicates))
        self._accept(reading)

    async def reload(self) -> tuple[int, list[Fault]]:
        """Load every file if all are valid; otherwise, change nothing. Return the number of loaded files, and every
        fault."""
        reading = await self._read()
        faults = [*reading.faults, *reading.duplicates]
        if reading.is_missing and self._files and self._folder is not None:
            faults.append(Fault(self._folder.name, 0, f"the folder is missing; its {self.what}s remain loaded"))
        self.is_refused = bool(faults)
        if faults:
            self.rejected = list_first(faults)
            return 0, faults
        self._accept(reading)
        return len(reading.files), []

    async def reload_valid(self) -> int:
        """Load every valid file. For each faulty file, keep the loaded definition. Return the number of loaded files,
        and log every fault.

        The API calls this method after it has saved a file, so that a fault in another file does not block the save.
        """
        reading = await self._read()
        faults = [*reading.faults, *reading.duplicates]
        ids, used = {file.definition.id for file in reading.files}, {file.source.name for file in reading.files}
        faulty = {fault.file for fault in faults} - used
        kept = [each for id_, each in self._files.items() if each.source.name in faulty and id_ not in ids]
        self._accept(reading, kept)
        self.is_refused = False
        for fault in list_first(faults):
            log.warning("unchanged: %s", fault)
        return len(self._files)

    async def check_text(self, source: Source) -> LoadedFile[T]:
        """Return the definition in this text without saving it. Raise `ConfigFailed` with the faults of the text."""
        loaded = await self._load(source)
        others = [each for each in self._files.values() if each.source.name != source.name]
        if others and (same := next((each for each in others if each.definition.id == loaded.definition.id), None)):
            raise ConfigFailed([_repeats(loaded, same.source.name)])
        return loaded

    async def read(self, id_: str) -> LoadedFile[T]:
        """Return the definition from the file on disk without loading it. Raise `ConfigFailed` with the faults of the
        file."""
        name = self.get(id_).source.name
        contents = await read_folder(self._folder)
        if faults := [fault for fault in contents.faults if fault.file == name]:
            raise ConfigFailed(faults)
        source = next((source for source in contents.sources if source.name == name), None)
        if source is None:
            raise ConfigFailed([Fault(name, 0, "no longer exists; restore the file, or reload")])
        return await self.check_text(source)

    async def find_unloaded(self, word: str) -> list[Fault]:
        """Return the reasons why files are not loaded. Select the files by file name, id, or name."""
        contents = await read_folder(self._folder)
        encoded = word.encode()
        found = [fault for fault in contents.faults if PurePath(fault.file).stem == word]
        loaded = {file.source.name for file in self._files.values()}
        for source in contents.sources:
            if source.name not in loaded and (PurePath(source.name).stem == word or _states(source, encoded)):
                try:
                    await self.check_text(source)
                    found.append(Fault(source.name, 0, "is valid, but not loaded yet; run `lares reload`"))
                except ConfigFailed as failed:
                    found += failed.faults
        return found

    def list_copies(self, file: LoadedFile[T]) -> list[Fault]:
        """Return a fault for each other file that repeats the id of this loaded file."""
        same = [each for each in self._valid.values() if each.definition.id == file.definition.id]
        return sorted(_repeats(each, file.source.name) for each in same if each.source.name != file.source.name)

    async def is_outdated(self, source: Source) -> bool:
        """Return whether a loaded file has since been changed or deleted on disk."""
        return source not in (await read_folder(self._folder)).sources

    async def check(self) -> CheckResult[T]:
        """Check the files on disk without changing the loaded definitions."""
        reading = await self._read()
        faults = sorted([*reading.faults, *reading.duplicates])
        return CheckResult(faults=faults, warnings=reading.list_warnings(), valid=reading.files)

    def _accept(self, reading: LoadedFolder[T], kept: Iterable[LoadedFile[T]] = ()) -> None:
        """Use the read files, and continue to use the files in `kept`."""
        self._files = _by_id([*reading.files, *kept])
        self.revision += 1
        log_warnings(log, reading.iterate_warnings(), reading.count_warnings())
        self.rejected = list_first((*reading.faults, *reading.duplicates))
        self.is_complete = self._folder is not None and not reading.is_missing and not self.rejected

    async def _read(self, *, repeats_faulty: bool = False) -> LoadedFolder[T]:
        await self._check_dependencies()
        loaded = await load_folder(await read_folder(self._folder), self._load_changed, repeats_faulty=repeats_faulty)
        self._valid, self._outdated = {file.source.name: file for file in loaded.files}, {}
        files, duplicates = await asyncio.to_thread(_without_copies, loaded.files)
        return replace(loaded, files=files, duplicates=duplicates)

    async def _check_dependencies(self) -> None:
        """If the dependencies have changed, arrange for every file to be run again."""
        dependencies = None if self._dependencies is None else await self._dependencies()
        if dependencies is None or dependencies != self._last_dependencies:
            self._outdated, self._valid = self._valid, {}
        self._last_dependencies = dependencies

    async def _load_changed(self, source: Source) -> LoadedFile[T]:
        """Return the loaded file unless it must be run again. If its definition then is the same, return the same
        object, so that callers can recognize changed files by identity."""
        if (known := self._valid.get(source.name)) is not None and known.source == source:
            return known
        loaded, before = await self._load(source), self._outdated.get(source.name)
        return before if before is not None and _is_same(before, loaded) else loaded

    async def _load(self, source: Source) -> LoadedFile[T]:
        return await load_file(source, self._describe, self._parse, self._inspect)


async def load_file(
    source: Source, describe: Describe, parse: Callable[[Table], D | None], inspect: Inspect | None = None
) -> LoadedFile[D]:
    """Load the file. Raise `ConfigFailed` with every fault."""
    try:
        described = await describe(source)
    except ScriptFailed as failed:
        raise ConfigFailed([fault_of(failed, source)]) from None

    def check() -> LoadedFile[D]:
        definition, warnings = read_definition(described, source, parse)
        inspected = () if inspect is None else inspect(source)
        return LoadedFile(definition=definition, source=source, warnings=(*warnings, *inspected))

    return await compute_alone(DEFINITIONS_THREAD, check)


def list_first(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """Return the first `MAX_FAULTS` faults. If there are more, the last fault in the result states their number."""
    more = len(faults) - MAX_FAULTS
    if more <= 0:
        return tuple(faults)
    message = f"{more} further faults begin in this file; correct the listed ones first"
    return (*faults[:MAX_FAULTS], Fault(faults[MAX_FAULTS].file, 0, message))


def fault_of(failed: ScriptFailed, source: Source) -> Fault:
    """Convert the failure to a fault of this file, even if it happened in a required script."""
    if failed.file == source.name:
        return Fault(failed.file, failed.line, failed.message)
    return Fault(source.name, 0, str(failed))


def _is_same(before: LoadedFile[D], loaded: LoadedFile[D]) -> bool:
    """Return whether the files are equal. Compare the definitions as text, because `True == 1`."""
    return (
        before.source == loaded.source
        and before.warnings == loaded.warnings
        and repr(before.definition) == repr(loaded.definition)
    )


def _by_id(files: Iterable[LoadedFile[T]]) -> dict[str, LoadedFile[T]]:
    """Return the files, sorted by id."""
    return dict(sorted({file.definition.id: file for file in files}.items()))


def _without_copies(files: Sequence[LoadedFile[T]]) -> tuple[tuple[LoadedFile[T], ...], tuple[Fault, ...]]:
    """Return one file per id in file order, and a fault for each file with a repeated id. The file with the shortest
    path wins, because a copy usually has a longer name."""
    if len({file.definition.id for file in files}) == len(files):
        return tuple(files), ()
    counted: dict[str, LoadedFile[T]] = {}
    faults = []
    for file in sorted(files, key=lambda each: (len(each.source.name), each.source.name)):
        first = counted.setdefault(file.definition.id, file)
        if first is not file:
            faults.append(_repeats(file, first.source.name))
    return tuple(sorted(counted.values(), key=lambda each: each.source.name)), tuple(sorted(faults))


_STATED = re.compile(rb"""\b(?:id|name)\s*=\s*(["'])(.*?)\1""")


def _states(source: Source, word: bytes) -> bool:
    """Return whether the text states the word as an id or name. A pattern of each word would stay in the cache of
    `re`."""
    return any(stated[2] == word for stated in _STATED.finditer(source.text))


def _repeats(file: LoadedFile[T], first: str) -> Fault:
    taken = f"{first} already has the id '{file.definition.id}'"
    message = f"{taken} and takes precedence; give this file another id"
    return Fault(file.source.name, FieldLines(file.source).find("id"), message)


def read_definition(
    described: Any, source: Source, parse: Callable[[Table], D | None]
) -> tuple[D, tuple[Fault, ...]]:
    """Return the definition in a file's table, and warnings about the definition. Raise `ConfigFailed` with every
    fault."""
    findings = Findings(LUA)
    definition = None
    if isinstance(described, Mapping) or described == []:  # Lua cannot distinguish empty lists and tables
        definition = parse(Table(described or {}, findings))
    else:
        findings.faults.append(Problem((), "must return a table with named fields, not a list"))
    if definition is None or findings.faults:
        found = _located(findings.faults[:MAX_FILE_FAULTS], source)
        if (more := len(findings.faults) - MAX_FILE_FAULTS) > 0:
            found.append(Fault(source.name, 0, f"has {more} further faults; correct the listed ones first"))
        raise ConfigFailed(found)
    return definition, tuple(_located(findings.warnings, source))


_EXECUTE = frozenset({"action", "actions", "callback", "handler", "on_trigger", "run", "sequence"})
"""Field names that users write instead of `execute`, some from other hubs."""


def hint_of_field(name: str, known: list[str]) -> str:
    near = "execute" if name in _EXECUTE else nearest(name, known)
    return suggest(near, f"use one of {', '.join(known)}")


def _located(problems: Iterable[Problem], source: Source) -> list[Fault]:
    """Convert the problems to faults with hints, sorted by line.

    A problem without a line gets the line of the table's `return`.
    """
    lines = FieldLines(source)
    faults = located(problems, source.name, lambda path: lines.find(*map(str, path)))
    hinted = (
        (fault.line or lines.of_return, fault.message + hint_of(ErrorContext(message=fault.message)))
        for fault in faults
    )
    return sorted(Fault(source.name, line, message) for line, message in hinted)
