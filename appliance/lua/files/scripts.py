"""The Lua modules for `require`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from appliance.errors import Fault, ScriptFailed
from appliance.log_limit import log_warnings
from appliance.lua.files.catalog import Inspect, fault_of
from appliance.lua.files.folder import Folder, read_folder
from appliance.lua.text.source import Source

log = logging.getLogger("lua")


class Scripts:
    """The scripts of a folder. `compile_` raises `ScriptFailed`. `inspect` yields warnings for the log."""

    def __init__(
        self,
        compile_: Callable[[Source], Awaitable[None]],
        folder: Folder | None,
        inspect: Inspect | None = None,
    ) -> None:
        self._compile = compile_
        self._folder = folder
        self._inspect = inspect
        self._valid: frozenset[Source] = frozenset()

    async def check(self) -> tuple[int, list[Fault]]:
        """Compile the scripts that have changed since the last check. Return the number of scripts (0 if any script
        is faulty), and every fault."""
        contents = await read_folder(self._folder)
        faults, valid = list(contents.faults), set()
        for source in contents.sources:
            try:
                if source not in self._valid:
                    await self._check(source)
                valid.add(source)
            except ScriptFailed as failed:
                faults.append(fault_of(failed, source))
        self._valid = frozenset(valid)
        return 0 if faults else len(contents.sources), sorted(faults)

    async def _check(self, source: Source) -> None:
        await self._compile(source)
        found = await asyncio.to_thread(list, self._inspect(source) if self._inspect else ())
        log_warnings(log, found, len(found))
