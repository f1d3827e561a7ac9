"""Changes in the configuration file that the running hub has not applied yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from appliance.adapters.lua_kinds.section import LuaSection
from appliance.clock import timestamp
from appliance.config import WATCH_KEY, Config
from appliance.errors import ConfigFailed, Fault
from appliance.settings import Sections
from appliance.tables.fields import Settings, attribute_of

LoadConfig = Callable[[], Config]
"""Reads the file again; raises `ConfigFailed`."""

SectionChanges = Mapping[str, str]
"""Maps the name of a changed section to `started`, `stopped`, or `replaced`."""


class ConfigChanges(Struct, frozen=True, kw_only=True):
    """The differences between the configuration file and the running hub.

    A reload applies `sections`. The keys in `next_start` need a restart. If there are `faults`, the hub does not use
    the file.
    """

    file: str
    sections: SectionChanges = {}
    next_start: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    changed_at: datetime | None = None

    def sentences(self) -> list[str]:
        """Return a sentence with the required action for each difference."""
        at = "" if self.changed_at is None else f" at {timestamp(self.changed_at)}"
        found = []
        if self.faults:
            found.append(
                f"{self.file} was changed{at} and has faults, so the hub ignores the change; run `lares check`"
            )
        if self.sections:
            names = ", ".join(f"[adapters.{name}]" for name in self.sections)
            found.append(f"{self.file} was changed{at}; run `lares reload` to apply {names}")
        return found + self.at_next_start()

    def at_next_start(self) -> list[str]:
        """Return a list with one sentence about the keys that need a restart, or an empty list if there are none."""
        if not self.next_start:
            return []
        keys = ", ".join(self.next_start)
        return [f"restart the hub to apply changed settings in {self.file}: {keys}"]


def compare_sections(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """Return the changes of the enabled adapter sections by section name."""
    changes = {name: "stopped" for name in before if name not in after}
    changes |= {name: "started" for name in after if name not in before}
    kept = (name for name in after if name in before)
    changes |= {name: "replaced" for name in kept if _key_of(before[name]) != _key_of(after[name])}
    return dict(sorted(changes.items()))


def _key_of(settings: Any) -> Any:
    """Return a value that is equal for equal sections. For a Lua kind, this value contains the kind and the
    unparsed section."""
    return (settings.kind, settings.raw) if isinstance(settings, LuaSection) else settings


def compare_keys(before: Config, after: Config) -> tuple[str, ...]:
    """Return the dotted names of changed keys outside adapter sections."""
    watch = () if before.watch_adapters == after.watch_adapters else (f"adapters.{WATCH_KEY}",)
    return (*_compare(Sections, before, after, ""), *watch)


def _compare(of: type[Settings], before: Any, after: Any, prefix: str) -> Iterator[str]:
    for name, field in of.FIELDS.items():
        attribute = attribute_of(name)
        one, other = getattr(before, attribute), getattr(after, attribute)
        if field.is_section:
            yield from _compare(field.check, one, other, f"{prefix}{name}.")
        elif one != other:
            yield f"{prefix}{name}"


class ConfigFile:
    """The configuration file, and the configuration at the start of this run. `load` is None if no file exists, as in
    tests and simulations."""

    def __init__(self, started: Config, load: LoadConfig | None) -> None:
        self._started = started
        self._load = load
        self._file = Path(started.file)
        self._last: tuple[Any, Config | ConfigFailed] | None = None

    @property
    def is_readable(self) -> bool:
        return self._load is not None

    async def read(self) -> Config:
        """Read the file. Raise `ConfigFailed` with the faults of the file."""
        found = await asyncio.to_thread(self._read)
        try:
            if isinstance(found, ConfigFailed):
                raise found
            return found
        finally:
            del found  # a variable that refers to a raised exception forms a cycle with the exception's traceback

    async def compare(self, running: Mapping[str, Any]) -> ConfigChanges:
        """Compare the file with the running adapter sections and with the configuration at the start. If the file
        has not changed since the last call, do not read it again."""
        if self._load is None:
            return ConfigChanges(file=self._started.file)
        return await asyncio.to_thread(self._compare, running)

    def _compare(self, running: Mapping[str, Any]) -> ConfigChanges:
        file, changed_at = self._started.file, self._changed_at()
        found = self._read_once()
        if isinstance(found, ConfigFailed):
            return ConfigChanges(file=file, faults=tuple(found.faults), changed_at=changed_at)
        return ConfigChanges(
            file=file,
            sections=compare_sections(running, found.adapters),
            next_start=compare_keys(self._started, found),
            changed_at=changed_at,
        )

    def keys_for_next_start(self, found: Config) -> tuple[str, ...]:
        """Return the changed keys that need a restart."""
        return compare_keys(self._started, found)

    def _changed_at(self) -> datetime | None:
        try:
            return datetime.fromtimestamp(int(self._file.stat().st_mtime), UTC)
        except OSError:
            return None

    def _read_once(self) -> Config | ConfigFailed:
        key = self._identify()
        if self._last is None or self._last[0] != key:
            self._last = key, self._read()
        return self._last[1]

    def _identify(self) -> Any:
        """Return a value that changes if the file changes, or if the folder of kinds changes. The folder
        determines the valid section types."""
        found = []
        for path in (self._file, self._file.parent / "adapters"):
            try:
                status = path.stat()
                found.append((status.st_ino, status.st_size, status.st_mtime_ns))
            except OSError:
                found.append((0, 0, 0))
        return found

    def _read(self) -> Config | ConfigFailed:
        assert self._load is not None
        try:
            return self._load()
        except ConfigFailed as failed:
            return failed
