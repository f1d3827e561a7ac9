"""Runs hostile scripts under random limits of memory; as a process of its own.

`python -m tests.lua.memory SEED COUNT` prints how they ended, and by how much the worker grew beyond them.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from appliance.errors import ScriptFailed
from appliance.lua.execution_limits import ExecutionLimits
from appliance.lua.source import Source
from tests.lua.bench import TRIVIAL, Notes, file, open_pool, run, scene

BODIES = (
    "local t = {} while true do t[#t + 1] = {} end",
    "local t = {} while true do pcall(function() t[#t + 1] = ('x'):rep(1000) .. #t end) end",
    "local s = 'x' while true do s = s .. s end",
    "local t = {} while true do t[#t + 1] = coroutine.create(print) end",
    "local t = {} while true do t[#t + 1] = ctx:list_devices() end",
    "local t = {} for i = 1, 1000 do t[i] = ('y'):rep(i) end ctx:invoke('much') error(table.concat(t))",
    "ctx:invoke('much') local t = {} while true do t[#t + 1] = ctx:invoke('some') end",
    "local t = {} while true do local ok, v = pcall(ctx.invoke, ctx, 'some') t[#t + 1] = v end",
    "local t = {} while true do t[#t + 1] = #t ctx:log('info', 'x', {t = #t}) end",
    "local s = ('x'):rep(10000) while true do s = s .. ('x'):rep(10000) print(#s) end",
    "error(('x'):rep(200000))",
    "error(setmetatable({}, {__tostring = function() return ('x'):rep(1 << 22) end}))",
    "local function f() return 1 + f() end f()",
    "local t = {} while true do t[#t + 1] = 'x' .. #t pcall(require, 'missing' .. #t) end",
    "local t = {} while true do t[#t + 1] = 'x' .. #t require('big') end",
    "xpcall(function() local t = {} while true do t[#t + 1] = {} end end, debug.traceback)",
    "local t = {} while true do t[#t + 1] = load('return ' .. #t) end",
    "local s = ('a '):rep(1000) while true do s = s:gsub('a', 'aa') end",
    "local s = ('a '):rep(1000) while true do s = s:gsub('a', function(x) return x .. x end) end",
    "local t = {} for i = 1, 100000 do t[i] = 100000 - i end table.sort(t, function(a, b) return a < b end)",
    "table.concat({('x'):rep(100000), ('y'):rep(100000), ('z'):rep(100000)}) error('end')",
    "local t = {} while true do t[#t + 1] = os.date('*t') end",
    "return string.format('%s%s', ('x'):rep(300000), ('x'):rep(300000)):upper():reverse():find(('%w'):rep(100))",
)
LEAST_KIB, MAX_KIB = 50, 4096


def answer(operation: str, arguments: Any) -> Any:
    """Little, more, and much."""
    if operation == "list_devices":
        return [{"id": f"lamp:{number}", "attributes": {"power": "on"}} for number in range(20)]
    return ["x" * 100] * {"much": 30_000, "some": 100}.get(arguments[0], 1)


async def main(seed: int, count: int) -> None:
    """Run, and print."""
    dice, ends = random.Random(seed), Counter[str]()
    scripts = Path(__file__).parent
    beyond = 0.0
    for _ in range(count):
        mib = dice.uniform(LEAST_KIB, MAX_KIB) / 1024
        body = dice.choice(BODIES)
        async with open_pool(
            ExecutionLimits(max_memory_mb=mib, max_cpu_secs=1.0, backstop_secs=1.0), scripts
        ) as pool:
            for source in (scene(body), file(body.replace("ctx", "_G"))):
                await run(pool, "")
                pid = pool.figures()["workers"][-1]["pid"]
                forget_peak(pid)
                before = resident_kib(pid)
                ends[await end_of(pool, source)] += 1
                beyond = max(beyond, (resident_peak_kib(pid, before) - before) / 1024 - mib)
            ends["trivial"] += len((await run(pool, TRIVIAL)).asked)
            ends["killed"] += pool.figures()["kills"]
    killed, trivial = ends.pop("killed"), ends.pop("trivial")
    print(f"killed {killed}, trivial {trivial}, beyond the limit {beyond:.1f} MiB, {dict(ends)}")


async def end_of(pool: Any, source: Source) -> str:
    """How it ended, in a word."""
    try:
        await pool.start(source, Notes(answer), name="x").wait()
    except ScriptFailed as failure:
        assert str(failure).startswith("config/"), str(failure)[:200]
        return "memory" if "of memory" in str(failure) else failure.status
    return "ok"


def resident_kib(pid: int) -> int:
    """Resident memory of the worker now."""
    return _status(pid, "VmRSS")


def resident_peak_kib(pid: int, default: int) -> int:
    """Its peak of resident memory; the default where it has ended."""
    try:
        return _status(pid, "VmHWM")
    except (OSError, StopIteration):
        return default


def forget_peak(pid: int) -> None:
    """Reset the peak to the present resident memory; see proc(5), clear_refs."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _status(pid: int, field: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
