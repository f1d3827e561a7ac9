"""What waits: 10,000 timers and 1,000 variables when idle, and a variable that is set every second, on the card."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson

from appliance.automations.environment import Environment
from appliance.automations.scheduler import Scheduler
from appliance.automations.timers import MAX_TIMERS, Timers
from appliance.automations.variables import MAX_VARIABLES, Variables
from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from appliance.store.disk import Disk
from appliance.store.document import Document
from appliance.store.recorder import Recorder
from appliance.store.records import Storage
from benchmarks._card import card
from benchmarks._frame import Row, Sample
from tests.fakes.clock import VirtualClock

AT_ONCE = 100
IDLE_SECS = 5.0
FLUSH_SECS = 300
DAY, HOUR = 86_400, 3_600
SOURCE = "automation:benchmark"
BESIDE = "their names and values as JSON"

TIMER_BYTES = Row(label=f"{MAX_TIMERS:,} timers, memory with what is on the card", unit="MB", beside=BESIDE)
TIMER_MB = Row(label="  the same", unit="MB", at_most=8)
VARIABLE_BYTES = Row(label=f"{MAX_VARIABLES:,} variables, memory with what is on the card", unit="MB", beside=BESIDE)
VARIABLE_MB = Row(label="  the same of variables", unit="MB", at_most=1)
IDLE = Row(label=f"idle with {MAX_TIMERS:,} timers, CPU", unit="ms/s", beside="with one", at_most=1.5)
CARD = Row(label="a variable set every second, written to the card", unit="MiB/day", at_most=10)


def measure(rounds: int) -> Iterator[Sample]:
    """Memory once in a fresh process; idling by turns; a day on the card."""
    timers, in_json = asyncio.run(_memory_of(_start_timers))
    yield TIMER_BYTES.sample(timers, in_json)
    yield TIMER_MB.sample(timers)
    variables, in_json = asyncio.run(_memory_of(_set_variables))
    yield VARIABLE_BYTES.sample(variables, in_json)
    yield VARIABLE_MB.sample(variables)
    for _ in range(rounds):
        yield IDLE.sample(asyncio.run(_idle(_start_timers)), asyncio.run(_idle(_start_one)))
    yield CARD.sample(asyncio.run(_day_on_card()))


@asynccontextmanager
async def _open_parts(clock: Clock, folder: Path) -> AsyncIterator[tuple[Timers, Variables]]:
    """Timers and variables on a card, with a scheduler, as a hub has them."""
    bus = Bus()
    registry, document = Registry(bus, clock), Document(Disk(folder), clock)
    async with document, Recorder(registry, bus, document, clock, flush_secs=FLUSH_SECS) as recorder:
        storage = Storage(stored=document, remember=recorder.remember, put=document.put_many)
        environment = Environment(registry, bus, clock, recorder.trust, storage)
        timers, scheduler = Timers(environment), Scheduler(environment)
        async with environment.variables, timers, scheduler:
            timers.begin(scheduler)
            yield timers, environment.variables


Fill = Callable[[Timers, Variables], Awaitable[int]]
"""Makes what is measured; the bytes of it as JSON."""


async def _start_timers(timers: Timers, _: Variables) -> int:
    size = 0
    for first in range(0, MAX_TIMERS, AT_ONCE):
        payloads = {f"light off {number}": {"lamp": number} for number in range(first, first + AT_ONCE)}
        await asyncio.gather(*(timers.start(name, DAY, payload, SOURCE) for name, payload in payloads.items()))
        size += len(orjson.dumps(payloads))
    return size


async def _set_variables(_: Timers, variables: Variables) -> int:
    values = {f"room.{number}.target": {"celsius": number / 10} for number in range(MAX_VARIABLES)}
    for name, value in values.items():
        variables.set(name, value, SOURCE)
    return len(orjson.dumps(values))


async def _start_one(timers: Timers, _: Variables) -> int:
    await timers.start("light off", DAY, None, SOURCE)
    return 0


async def _memory_of(fill: Fill) -> tuple[float, float]:
    """Megabytes that the process grew by, and those of the values as JSON."""
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
        async with _open_parts(Clock(), Path(folder)) as (timers, variables):
            before = _pss_mb()
            size = await fill(timers, variables)
            return _pss_mb() - before, size / 1e6


async def _idle(fill: Fill) -> float:
    """Milliseconds of CPU a second while nothing happens."""
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
        async with _open_parts(Clock(), Path(folder)) as (timers, variables):
            await fill(timers, variables)
            gc.collect()
            began = time.process_time()
            await asyncio.sleep(IDLE_SECS)
            return 1000 * (time.process_time() - began) / IDLE_SECS


async def _day_on_card() -> float:
    """MiB that a day writes in which a variable is set every second, after a first hour."""
    with card() as each:
        clock = VirtualClock()
        async with _open_parts(clock, each.folder) as (_, variables):
            before = 0
            for second in range(HOUR + DAY):
                if second == HOUR:
                    before = each.written()
                variables.set("power.now", second, SOURCE)
                await clock.advance(1, sleepers=1)
                if second % FLUSH_SECS == FLUSH_SECS // 2:
                    each.settle()
            return (each.written() - before) / (1 << 20)


def _pss_mb() -> float:
    gc.collect()
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("Pss:"))) * 1024 / 1e6
