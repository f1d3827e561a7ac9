"""Lua: what calls, scenes and automations cost, how many can sleep, and how late the loop is beside hostile ones."""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from appliance.clock import Clock
from appliance.errors import LaresError
from appliance.home.commands import Command
from appliance.lua.context import Context
from appliance.lua.execution import LuaExecution
from appliance.lua.execution_limits import ExecutionLimits
from appliance.lua.source import Source
from appliance.lua.worker_pool import WorkerPool
from benchmarks._frame import Row, Sample
from benchmarks._lag import watched_here
from benchmarks.automations import AUTOMATION, device_id, open_stage
from tests.fakes.instant import InstantHome, open_home

SCENES, CALLS, CHANGES = 300, 1_000, 100
AT_ONCE = 16
SLEEPERS = 1_000
SPINNERS = 40
HOSTILE_SECS = 2.5
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
MANY = f"for _ = 1, {CALLS} do ctx:command('lamp:0', {{capability = 'power', action = 'on'}}) end"
COMMANDS = """
return {{
  id = "a{number}",
  name = "Automation {number}",
  trigger = {{ type = "device_state_change", device_id = "{device}", attribute = "brightness" }},
  execute = function(ctx, event)
    ctx:command(event.device_id, {{ capability = "brightness", action = "set", value = event.value }})
  end,
}}
"""
BARE = """
import socket
from appliance.lua_worker.worker_execution import WorkerExecution
from appliance.lua_worker.protocol import TIMING, FrameKind, Reason

TEXT = b"return {execute = function(ctx) ctx:get_device('a') end}"
hub = socket.socket(fileno=0)
while hub.recv(100):
    execution = WorkerExecution(16 << 20, hub.sendall, print)
    execution.begin(FrameKind.EXECUTE, (TIMING.pack(5.0, Reason.CPU, 0.0), TEXT, b"x.lua", b""))
    execution.dispose()
"""
"""A worker and nothing else: for each message a fresh Lua state, a script up to its first request, and that one."""

BESIDE = "bare round trip to a worker with a fresh Lua state"
WHY = (
    "the way through engine, conditions and modes takes as long as Lua; where another has the second core, both wait"
)
FIRST = Row(label="change → first Lua instruction, p50", unit="ms", beside=BESIDE, at_most=1.5, why=WHY)
SENT = Row(label="change → command sent by Lua, p50", unit="ms", beside=BESIDE, at_most=1.5, why=WHY)
CALL = Row(label="ctx:command, p50", unit="ms")
PLAIN = Row(label="the same command without Lua, p50", unit="ms")
SCENE = Row(label="a scene of two commands, p50", unit="ms")
ONE_BY_ONE = Row(label="scenes of two commands, one after another", unit="a second")
TOGETHER = Row(label=f"scenes of two commands, {AT_ONCE} at a time", unit="a second")
SLEEPING = Row(label=f"each of {SLEEPERS:,} executions that sleep, hub and worker", unit="KiB", at_most=120)
SPUN = Row(label=f"a scene of two commands while {SPINNERS} scripts spin, p50", unit="ms")


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
    """A home and a pool."""

    def __init__(self, home: InstantHome, pool: WorkerPool) -> None:
        self.home = home
        self.pool = pool

    def start(self, body: str, context: Context | None = None) -> LuaExecution:
        """Begin an execution of the body."""
        text = f"return {{id = 'x', name = 'X', execute = function(ctx)\n{body}\nend}}"
        source = Source(name="config/scenes/benchmark.lua", text=text.encode())
        return self.pool.start(source, context or Timed(self.home), name="scene:benchmark")

    async def play(self, body: str, context: Context | None = None) -> None:
        """Run the body to its end."""
        await self.start(body, context).wait()


def measure(rounds: int) -> Iterator[Sample]:
    """What a call, a scene and an automation cost, by turns; then what many cost."""
    logging.disable(logging.CRITICAL)
    try:
        for _ in range(rounds):
            yield from asyncio.run(_costs())
            bare = _bare_trips()
            yield FIRST.sample(asyncio.run(_automation(AUTOMATION)), bare)
            yield SENT.sample(asyncio.run(_automation(COMMANDS)), bare)
        for part in (_sleepers, _hostile, _spinners):
            yield from asyncio.run(part())
    finally:
        logging.disable(logging.NOTSET)


def _bare_trips() -> float:
    """Milliseconds of one, p50."""
    ours, theirs = socket.socketpair()
    durations = []
    with ours, theirs, subprocess.Popen([sys.executable, "-c", BARE], stdin=theirs.fileno()) as worker:
        theirs.close()  # so that its end ends the reading
        for _ in range(CHANGES):
            time.sleep(0.002)  # as the automations' worker it has nothing to do in between
            began = time.perf_counter()
            ours.sendall(b"x")
            if not ours.recv(1000):
                raise RuntimeError("the bare worker has ended")
            durations.append(1000 * (time.perf_counter() - began))
        worker.kill()
    return statistics.median(durations)


async def _automation(text: str) -> float:
    """Milliseconds until its Lua is heard of first, p50."""
    device = device_id(0)
    async with open_stage([device], text) as stage:
        for number in range(CHANGES):
            stage.change(device, 1 + number)
            await stage.rest()
        return statistics.median(stage.latencies())


@asynccontextmanager
async def _stage(limits: ExecutionLimits) -> AsyncIterator[Stage]:
    async with open_home(Clock(), lamps=20) as home:
        async with WorkerPool(limits=limits, scripts=None, timezone=ZoneInfo("UTC"), clock=Clock()) as pool:
            yield Stage(home, pool)


async def _costs() -> list[Sample]:
    async with _stage(ExecutionLimits()) as stage:
        context = Timed(stage.home)
        await stage.play(MANY, context)
        calls = [1000 * (later - earlier) for earlier, later in itertools.pairwise(context.times)]
        two = await _time(lambda: stage.play(TWO), SCENES)
        lamp, command = stage.home.registry.get_device("lamp:0"), Command(capability="power", action="on")
        plain = await _time(lambda: stage.home.dispatcher.send([lamp], command, "device"), CALLS)
        began = time.perf_counter()
        for _ in range(SCENES // AT_ONCE):
            await asyncio.gather(*[stage.play(TWO) for _ in range(AT_ONCE)])
        together = SCENES // AT_ONCE * AT_ONCE / (time.perf_counter() - began)
    values = (
        (CALL, statistics.median(calls)),
        (PLAIN, statistics.median(plain)),
        (SCENE, statistics.median(two)),
        (ONE_BY_ONE, 1000 * len(two) / sum(two)),
        (TOGETHER, together),
    )
    return [row.sample(value) for row, value in values]


async def _sleepers() -> Iterable[Sample]:
    async with _stage(ExecutionLimits()) as stage:
        await stage.play(TWO)
        pids = ["self", stage.pool.figures()["workers"][0]["pid"]]
        before = sum(map(_pss_kib, pids))
        contexts = [Timed(stage.home) for _ in range(SLEEPERS)]
        for context in contexts:
            stage.start("ctx:sleep(3600)", context)
        while not all(context.times for context in contexts):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        return [SLEEPING.sample((sum(map(_pss_kib, pids)) - before) / SLEEPERS)]


async def _hostile() -> Iterable[Sample]:
    async with _stage(ExecutionLimits(max_cpu_secs=3.0, backstop_secs=3.0)) as stage:
        runs = [stage.start(body) for body in HOSTILE]
        async with watched_here() as lags:
            await asyncio.sleep(HOSTILE_SECS)
        for each in runs:
            with suppress(LaresError):
                await each.wait()
    return lags.samples(f"{len(HOSTILE)} hostile scripts run")


async def _spinners() -> Iterable[Sample]:
    async with _stage(ExecutionLimits(max_cpu_secs=60.0)) as stage:
        for _ in range(SPINNERS):
            stage.start("while true do end")
        async with watched_here() as lags:
            durations = await _time(lambda: stage.play(TWO), 300)
    return [SPUN.sample(statistics.median(durations)), *lags.samples(f"{SPINNERS} scripts spin")]


async def _time(work: Callable[[], Awaitable[Any]], rounds: int) -> list[float]:
    figures = []
    for _ in range(rounds):
        began = time.perf_counter()
        await work()
        figures.append(1000 * (time.perf_counter() - began))
    return figures


def _pss_kib(pid: int | str) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
