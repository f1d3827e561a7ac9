"""The host of kinds in Lua: finds the kind of a section, and runs its functions in the worker of kinds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from appliance.adapters.lua_kinds.kind import KindDefinition
from appliance.adapters.lua_kinds.section import LuaSection, SectionSettings
from appliance.errors import Fault


class LuaCalls(Protocol):
    """What Lua reaches in the hub. `counted_secs` is for how long, as their backstops count, what it ran has run."""

    counted_secs: float

    async def call(self, operation: str, arguments: Any) -> Any:
        """Do what `ctx:<operation>` asks and answer in JSON data; a `LaresError` is raised at the user's line."""

    def log(self, level: str, message: str, fields: Any) -> None:
        """Take a line that Lua logs or prints."""


class LoadedSection(Struct, frozen=True, kw_only=True):
    """A section whose kind is sound: both as they are in force. `changed` is set when that is no longer so."""

    section: LuaSection
    definition: KindDefinition
    settings: SectionSettings
    changed: asyncio.Event


class SectionFault(Struct, frozen=True, kw_only=True):
    """A section whose kind cannot be used, and why; `changed` is set when that may be different."""

    faults: tuple[Fault, ...]
    changed: asyncio.Event


class KindHost(Protocol):
    """Runs the functions of kinds; methods may be called concurrently."""

    def find(self, section: LuaSection) -> LoadedSection | SectionFault:
        """The section as its kind is loaded now."""

    async def call(
        self, section: LuaSection, calls: LuaCalls, path: Sequence[str], given: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Run the function at this path of the kind's table: `{first, second, memory}`. Raises `ScriptFailed`.

        `given` is `{settings, memory, first?, second?, bytes?, repeat?}`; `bytes` become `first`, or its `body`.
        What may be repeated is, where another's fault cut it off. Cancelling the call ends the function.
        """
