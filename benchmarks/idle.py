"""A minute in which nobody asks for anything: with 100 lamps that are polled, and with no device at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from benchmarks._client import until_ready
from benchmarks._frame import Row, Sample
from benchmarks._lag import watched
from benchmarks._processes import Running, hub, lamps, peer

LAMPS, POLL_SECS = 100, 5
SECONDS, SETTLE_SECS = 60, 10

CPU = Row(
    label=f"{LAMPS} lamps polled every {POLL_SECS} s: processor",
    unit="% of a core",
    at_most=0.5,
    why="a poll costs 0.27 ms, two thirds of it in aiohttp, which makes a connection each time",
)
MEMORY = Row(label=f"{LAMPS} lamps: memory of the hub and its Lua worker (PSS)", unit="MB", at_most=60)
WAKEUPS = Row(label="no device: wake-ups of all threads of hub and worker", unit="a second", at_most=5)
POLLING = Row(label=f"{LAMPS} lamps: wake-ups, polls among them", unit="a second")
EMPTY_CPU = Row(label="no device: processor", unit="% of a core", at_most=0.5)
EMPTY = Row(label="no device: memory of the hub and its Lua worker (PSS)", unit="MB", at_most=60)
THREADS = Row(label="no device: threads of the hub")


def measure(rounds: int) -> Iterator[Sample]:
    """Both at once, for one minute whatever the rounds: what is idle disturbs nobody."""
    with peer("lamps", str(LAMPS), "1") as ports, hub(lamps(ports, POLL_SECS)) as home, hub() as empty:
        asyncio.run(until_ready(home.port))
        time.sleep(SETTLE_SECS)
        before = [_figures(each) for each in (home, empty)]
        time.sleep(SECONDS)
        after = [_figures(each) for each in (home, empty)]
        (cpu, wakeups), (empty_cpu, empty_wakeups) = (
            [(late - early) / SECONDS for early, late in zip(*pair, strict=True)]
            for pair in zip(before, after, strict=True)
        )
        yield CPU.sample(100 * cpu)
        yield MEMORY.sample(home.pss_mb())
        yield POLLING.sample(wakeups)
        yield WAKEUPS.sample(empty_wakeups)
        yield EMPTY_CPU.sample(100 * empty_cpu)
        yield EMPTY.sample(empty.pss_mb())
        yield THREADS.sample(empty.threads())
        with watched(home.port) as lags:  # only now, since who looks wakes
            time.sleep(SETTLE_SECS)
    yield from lags.samples(f"{LAMPS} lamps")


def _figures(running: Running) -> tuple[float, float]:
    return running.cpu_secs(), running.wakeups()
