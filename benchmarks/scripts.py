"""Lua: what an execution costs, how many can sleep, and what the loop feels while hostile ones run."""

from __future__ import annotations

import asyncio
import logging
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from appliance.clock import Clock
from appliance.errors import LaresError
from appliance.home.commands import Command
from appliance.lua.context import Context
from appliance.lua.execution import LuaExecution
from appliance.lua.limits import Limits
from appliance.lua.runner import Runner
from appliance.lua.source import Source
from benchmarks._client import percentile
from tests.fakes.instant import InstantHome, open_home

ROUNDS = 1_000
CALLS = 2_000
AT_ONCE = 16
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
TWO = """
ctx:command('lamp:0', {capability = 'power', action = 'on'})
ctx:command('lamp:1', {capability = 'power', action = 'on'})
"""
ONE = "ctx:get_device('lamp:0')"
MANY = f"for _ = 1, {CALLS} do ctx:command('lamp:0', {{capability = 'power', action = 'on'}}) end"
MOST_KIB, MOST_LAG_MS = 120, 50


class Timed(Context):
    """A context that notes when each call came; between two calls lie the command, the loop and Lua."""

    def __init__(self, home: InstantHome) -> None:
        super().__init__(home.registry, home.dispatcher, Clock(), "scene:benchmark")
        self.times: list[float] = []

    async def call(self, operation: str, arguments: Any) -> Any:
        """Note the time, and do it."""
        self.times.append(time.perf_counter())
        return await super().call(operation, arguments)


class Stage:
    """A home and a runner."""

    def __init__(self, home: InstantHome, runner: Runner) -> None:
        self.home = home
        self.runner = runner

    def start(self, body: str, context: Context | None = None) -> LuaExecution:
        """Begin an execution of the body."""
        text = f"return {{id = 'x', name = 'X', execute = function(ctx)\n{body}\nend}}"
        source = Source(name="config/scenes/benchmark.lua", text=text.encode())
        return self.runner.start(source, context or Timed(self.home), name="scene:benchmark")

    async def play(self, body: str, context: Context | None = None) -> None:
        """Run the body to its end."""
        await self.start(body, context).wait()


def measure() -> Iterator[tuple[str, str]]:
    """Labels and figures."""
    logging.disable(logging.CRITICAL)
    try:
        for part in (_costs, _sleepers, _hostile, _spinners):
            yield from asyncio.run(part())
    finally:
        logging.disable(logging.NOTSET)


@asynccontextmanager
async def _stage(limits: Limits) -> AsyncIterator[Stage]:
    async with open_home(Clock(), lamps=20) as home:
        async with Runner(
            limits=limits, scripts=None, scripts_name="config/scripts", timezone=ZoneInfo("UTC"), clock=Clock()
        ) as runner:
            yield Stage(home, runner)


async def _costs() -> list[tuple[str, str]]:
    async with _stage(Limits()) as stage:
        context = Timed(stage.home)
        await stage.play(MANY, context)
        calls = [1000 * (later - earlier) for earlier, later in zip(context.times, context.times[1:], strict=False)]
        two = await _time(lambda: stage.play(TWO), ROUNDS)
        lamp, command = stage.home.registry.get_device("lamp:0"), Command(capability="power", action="on")
        plain = await _time(lambda: stage.home.dispatcher.send([lamp], command, "device"), CALLS)
        began = time.perf_counter()
        for _ in range(ROUNDS // AT_ONCE):
            await asyncio.gather(*[stage.play(TWO) for _ in range(AT_ONCE)])
        together = ROUNDS // AT_ONCE * AT_ONCE / (time.perf_counter() - began)
        single = await _time(lambda: stage.play(ONE), ROUNDS)
        [worker] = stage.runner.figures()["workers"]
        idle = (_pss_kib("self"), _pss_kib(worker["pid"]))
    return [
        ("a scene of two commands, one after another, per second", f"{1000 * len(two) / sum(two):.0f}"),
        (f"  {AT_ONCE} at a time, per second", f"{together:.0f}"),
        ("  one of them, p50 ms (p99)", _percentiles(two)),
        ("one ctx:command, p50 ms (p99)", _percentiles(calls)),
        ("  the same command without Lua, p50 ms (p99)", _percentiles(plain)),
        ("an execution of one call, p50 ms (p99)", _percentiles(single)),
        ("this process and its worker, MB (PSS)", f"{idle[0] / 1024:.1f} + {idle[1] / 1024:.1f}"),
    ]


async def _sleepers() -> list[tuple[str, str]]:
    async with _stage(Limits()) as stage:
        await stage.play(TWO)
        pids = ["self", stage.runner.figures()["workers"][0]["pid"]]
        before = sum(map(_pss_kib, pids))
        contexts = [Timed(stage.home) for _ in range(SLEEPERS)]
        for context in contexts:
            stage.start("ctx:sleep(3600)", context)
        while not all(context.times for context in contexts):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        each = (sum(map(_pss_kib, pids)) - before) / SLEEPERS
        threads = _threads_of(pids[1])
    verdict = "met" if each < MOST_KIB else "MISSED"
    return [
        (f"{SLEEPERS} asleep, KiB each in both processes (target: under {MOST_KIB})", f"{each:.0f} ({verdict})"),
        ("  threads of the worker then", f"{threads}"),
    ]


async def _hostile() -> list[tuple[str, str]]:
    async with _stage(Limits(max_cpu_secs=3.0, backstop_secs=3.0)) as stage:
        runs = [stage.start(body) for body in HOSTILE]
        late = await _lag(2.0)
        for each in runs:
            with suppress(LaresError):
                await each.wait()
    verdict = "met" if percentile(late, 99) < MOST_LAG_MS else "MISSED"
    label = f"loop late while {len(HOSTILE)} hostile scripts run, p50 ms (p99; target: under {MOST_LAG_MS})"
    return [(label, f"{_percentiles(late)[:-1]}; {verdict})")]


async def _spinners() -> list[tuple[str, str]]:
    async with _stage(Limits(max_cpu_secs=60.0)) as stage:
        for _ in range(SPINNERS):
            stage.start("while true do end")
        figures = await _time(lambda: stage.play(TWO), 30)
    return [(f"a scene of two commands while {SPINNERS} scripts spin, p50 ms (p99)", _percentiles(figures))]


async def _lag(seconds: float) -> list[float]:
    late, until = [], time.perf_counter() + seconds
    while (now := time.perf_counter()) < until:
        await asyncio.sleep(0.001)
        late.append(1000 * (time.perf_counter() - now - 0.001))
    return late


async def _time(work: Callable[[], Awaitable[Any]], rounds: int) -> list[float]:
    figures = []
    for _ in range(rounds):
        began = time.perf_counter()
        await work()
        figures.append(1000 * (time.perf_counter() - began))
    return figures


def _threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def _pss_kib(pid: int | str) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _percentiles(figures: list[float]) -> str:
    return f"{statistics.median(figures):.2f} ({percentile(figures, 99):.2f})"
