"""Compiling: whether the scripts are Lua at all, without running any of them."""

from __future__ import annotations

import asyncio

from lupa import lua54

from appliance.errors import Fault, ScriptFailed
from appliance.lua.catalog import fault_of
from appliance.lua.failures import failure_of
from appliance.lua.folder import Folder
from appliance.lua.limits import Limits
from appliance.lua.source import Source
from appliance.lua.state import Failed


async def check_scripts(folder: Folder | None) -> tuple[int, list[Fault]]:
    """Compile every script of the folder and of those inside it: how many there are, and every fault."""
    return await asyncio.to_thread(_check, folder) if folder is not None else (0, [])


def _check(folder: Folder) -> tuple[int, list[Fault]]:
    contents = folder.read()
    faults = [fault for source in contents.sources if (fault := _compile(source)) is not None]
    return len(contents.sources), sorted([*contents.faults, *faults])


def _compile(source: Source) -> Fault | None:
    runtime = lua54.LuaRuntime(encoding=None, source_encoding="utf-8", register_eval=False, register_builtins=False)
    try:
        runtime.compile(source.chunk, name=f"@{source.name}".encode(), mode="t")
    except lua54.LuaError as error:
        message = error.args[0].decode(errors="replace")
        failed = failure_of(Failed(message, "", ""), [source], Limits())
        assert isinstance(failed, ScriptFailed)
        return fault_of(failed, source)
    return None
