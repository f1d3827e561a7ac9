"""The interface of the host that runs kinds in Lua. The host finds a section's kind, and runs the kind's functions
in a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from appliance.adapters.lua_calls import LuaCalls
from appliance.adapters.lua_kinds.definition import KindDefinition
from appliance.adapters.lua_kinds.section import LuaSection, SectionSettings
from appliance.errors import Fault


class LoadedSection(Struct, frozen=True, kw_only=True):
    """A section and its loaded kind. `changed` is set when the kind is replaced."""

    section: LuaSection
    definition: KindDefinition
    settings: SectionSettings
    changed: asyncio.Event


class SectionFault(Struct, frozen=True, kw_only=True):
    """A section whose kind cannot be loaded, with the faults. `changed` is set when the kind's file changes."""

    faults: tuple[Fault, ...]
    changed: asyncio.Event


class KindHost(Protocol):
    """Runs the functions of kinds. Methods may be called concurrently. `lua/kind_catalog.KindCatalog`
    implements it. `large_messages` is locked while a large message of a connection is processed."""

    large_messages: asyncio.Lock

    def find(self, section: LuaSection) -> LoadedSection | SectionFault:
        """Return the section with its current kind."""

    async def call(
        self, section: LuaSection, calls: LuaCalls, path: Sequence[str], given: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Run a function of the kind, and return `{first, second, memory}`. Raise `ScriptFailed` on failure.

        `path` is the function's place in the kind's table. `given` is `{settings, memory, first?, second?, bytes?,
        reruns?}`. `bytes` is passed as `first`, or, if `first` is set, as its field `body`. If `reruns` is set, the
        call runs again if another call interrupted it. Cancelling the call stops the function.
        """
