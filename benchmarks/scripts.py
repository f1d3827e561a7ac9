"""Lua: what an execution costs, how many can sleep, and what the loop feels while hostile ones run."""

from __future__ import annotations

import asyncio
import logging
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from zoneinfo import ZoneInfo

from lupa import lua54

from appliance.clock import Clock
from appliance.lua import prelude
from appliance.lua.context import Context
from appliance.lua.limits import Limits
from appliance.lua.pool import IDLE_SECS
from appliance.lua.runner import Runner
from appliance.lua.source import Source
from benchmarks._client import percentile
from tests.fakes.instant import InstantHome, open_home

ROUNDS = 1_500
CALLS = 3_000
SLEEPERS = 1_000
SPINNERS = 40
HOSTILE = (
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "while true do local t = {} for i = 1, 1000 do t[i] = {} end end",
    "while true do local _ = ('x'):rep(1000000):upper() end",
    "while true do ctx:list_devices() end",
    "while true do print('x') pcall(require, 'missing') end",
)
TWO = "ctx:command('lamp:0', {capability = 'power', action = 'on'}) ctx:command('lamp:1', {capability = 'power', action = 'on'})"
MOST_RATIO, MOST_KIB, MOST_LAG_MS = 2.0, 120, 50


def measure() -> Iterator[tuple[str, str]]:
    """Labels and figures."""
    logging.disable(logging.CRITICAL)
    try:
        for part in (_costs, _sleepers, _hostile):
            yield from asyncio.run(part())
    finally:
        logging.disable(logging.NOTSET)


async def _costs() -> list[tuple[str, str]]:
    async with _stage(Limits()) as (home, play):
        bare = _bare()
        two = await _time(lambda: play(TWO), ROUNDS)
        calls: list[float] = []
        await play(_CALLING, calls)
        single, plain = await _time(lambda: play("ctx:get_device('lamp:0')"), ROUNDS), await _direct(home)
        began = time.perf_counter()
        for _ in range(ROUNDS // 16):
            await asyncio.gather(*[play(TWO) for _ in range(16)])
        together = ROUNDS // 16 * 16 / (time.perf_counter() - began)
    ratio = statistics.median(single) / statistics.median(bare)
    verdict = "met" if ratio <= MOST_RATIO else "MISSED"
    return [
        ("a scene of two commands, one after another, per second", f"{len(two) / (sum(two) / 1000):.0f}"),
        ("  sixteen at a time, per second", f"{together:.0f}"),
        ("  one, p50 ms (p99)", _percentiles(two)),
        ("one ctx:command, p50 ms (p99)", _percentiles(calls)),
        ("  the same command without Lua", _percentiles(plain)),
        ("a fresh state with its prelude, p50 ms (p99)", _percentiles(_fresh())),
        ("bare mechanism: state, prelude, one call, on a thread, p50 ms (p99)", _percentiles(bare)),
        ("an execution of one call, p50 ms (p99)", _percentiles(single)),
        (f"  times the bare mechanism (target: at most {MOST_RATIO:g})", f"{ratio:.2f} ({verdict})"),
    ]
