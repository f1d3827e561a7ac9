"""A minute in which nobody asks for anything: with 100 lamps that are polled, and with no device at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks._client import until_ready
from benchmarks._frame import Row, Sample
from benchmarks._processes import Running, hub, lamps, peer

LAMPS, POLL_SECS = 100, 5
SECONDS, SETTLE_SECS = 60, 10

POLLED = f"{LAMPS} lamps polled every {POLL_SECS} s"
BARE = Row(label=f"{POLLED} by bare aiohttp: processor", unit="% of a core")
KEPT = Row(label=f"{POLLED} by bare aiohttp over kept connections: processor", unit="% of a core")
CPU = Row(label=f"{POLLED}: processor", unit="% of a core", at_most=0.45)
MEMORY = Row(label=f"{LAMPS} lamps: memory of the hub and its Lua worker (PSS)", unit="MB", at_most=60)
WAKEUPS = Row(label="no device: wake-ups of all threads of hub and worker", unit="a second", at_most=0.5)
EMPTY = Row(label="no device: memory of the hub and its Lua worker (PSS)", unit="MB", at_most=45)


def measure(rounds: int) -> Iterator[Sample]:
    """Both at once, for one minute whatever the rounds: what is idle disturbs nobody."""
    with (
        peer("lamps", str(LAMPS), "1") as ports,
        peer("polls", str(POLL_SECS), "1", *map(str, ports)) as [bare_pid],
        peer("polls", str(POLL_SECS), "60", *map(str, ports)) as [kept_pid],
        hub(lamps(ports, POLL_SECS)) as home,
        hub() as empty,
    ):
        seen = (
            home,
            empty,
            *(Running(port=0, pid=pid, started_after=0.0, turns=Path()) for pid in (bare_pid, kept_pid)),
        )
        asyncio.run(until_ready(home.port))
        time.sleep(SETTLE_SECS)
        before = [_figures(each) for each in seen]
        time.sleep(SECONDS)
        after = [_figures(each) for each in seen]
        (cpu, _), (_, wakeups), (bare_cpu, _), (kept_cpu, _) = (
            [(late - early) / SECONDS for early, late in zip(*pair, strict=True)]
            for pair in zip(before, after, strict=True)
        )
        yield CPU.sample(100 * cpu)
        yield BARE.sample(100 * bare_cpu)
        yield KEPT.sample(100 * kept_cpu)
        yield MEMORY.sample(home.pss_mb())
        yield WAKEUPS.sample(wakeups)
        yield EMPTY.sample(empty.pss_mb())


def _figures(running: Running) -> tuple[float, float]:
    return running.cpu_secs(), running.wakeups()
