"""Compiling: whether the scripts are Lua at all, without running any of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from appliance.errors import Fault, ScriptFailed
from appliance.lua.catalog import Inspect, fault_of, find_nothing
from appliance.lua.folder import Folder
from appliance.lua.source import Source

log = logging.getLogger("lua")

Compile = Callable[[Source], Awaitable[None]]
"""Raises `ScriptFailed` where the text is not Lua."""


async def check_scripts(
    compile_: Compile, folder: Folder | None, inspect: Inspect = find_nothing
) -> tuple[int, list[Fault]]:
    """Compile every script of the folder and of those inside it: how many there are, and every fault.

    What `inspect` finds in those that are sound is logged.
    """
    if folder is None:
        return 0, []
    contents = await asyncio.to_thread(folder.read)
    faults = list(contents.faults)
    for source in contents.sources:
        try:
            await compile_(source)
        except ScriptFailed as failed:
            faults.append(fault_of(failed, source))
            continue
        for warning in await asyncio.to_thread(_list, inspect, source):
            log.warning("%s", warning)
    return len(contents.sources), sorted(faults)


def _list(inspect: Inspect, source: Source) -> list[Fault]:
    return list(inspect(source))
