"""Devices: 2,000 of them push 1,000 attributes a second on one core; and what a push costs among many."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from appliance import config
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.home.command_specs import CommandSpec
from appliance.home.model import DeviceKind, Info, Observation
from appliance.hub import Hub
from appliance.store.disk import Disk
from benchmarks._frame import Row, Sample
from benchmarks._lag import Lags, watched_here

FEW, MANY = 20, 2_000
PUSHES_A_SECOND = 1_000
SECONDS = 30
BATCHES_A_SECOND = 100
ROUNDS = 5_000
STORM = f"{PUSHES_A_SECOND:,} pushes a second of {MANY:,} devices on one core"

BUSY = Row(label=f"{STORM}: processor", unit="% of the core")
COST = Row(label=f"a push among {MANY:,} devices", unit="µs", beside=f"among {FEW}", at_most=1.2)

COMMANDS = (
    CommandSpec(capability="brightness", actions=("set",), min=0, max=100),
    CommandSpec(capability="power", actions=("on", "off", "toggle")),
)


def measure(rounds: int) -> Iterator[Sample]:
    """Loop lag under the pushes, once; and what one push costs among 20 devices and among 2,000, by turns."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        lags, busy = asyncio.run(_storm())
        yield from lags.samples(STORM)
        yield BUSY.sample(100 * busy)
        for _ in range(rounds):
            few, many = asyncio.run(_cost(FEW)), asyncio.run(_cost(MANY))
            yield COST.sample(many * 1e6, few * 1e6)
    finally:
        os.sched_setaffinity(0, cores)


def _observations(count: int) -> list[Observation]:
    return [
        Observation(
            device_id=f"bench:{number}",
            kind=DeviceKind.LIGHT,
            attributes={"power": "on", "brightness": 0, "custom.bench.quality": 0},
            name=f"Lamp {number}",
            info=Info(manufacturer="Lares", model="Benchmark"),
            commands=COMMANDS,
        )
        for number in range(count)
    ]


async def _storm() -> tuple[Lags, float]:
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
        settings = config.parse("", str(Path(folder) / "config" / "default.toml"), {})
        async with Hub(settings, Disk(Path(folder)), Clock()) as hub:
            publish = Publisher("bench", hub.registry, hub.bus, hub.clock)
            publish.full_list(_observations(MANY))
            began, busy = time.perf_counter(), time.process_time()
            each = PUSHES_A_SECOND // BATCHES_A_SECOND
            async with watched_here() as lags:
                for batch in range(SECONDS * BATCHES_A_SECOND):
                    for number in range(batch * each, (batch + 1) * each):
                        publish.attributes(f"bench:{number % MANY}", {"custom.bench.quality": number})
                    await asyncio.sleep(max(0.0, began + (batch + 1) / BATCHES_A_SECOND - time.perf_counter()))
            busy = (time.process_time() - busy) / (time.perf_counter() - began)
    return lags, busy


async def _cost(count: int) -> float:
    """Seconds of one push among so many devices; the best of three tries."""
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
        settings = config.parse("", str(Path(folder) / "config" / "default.toml"), {})
        async with Hub(settings, Disk(Path(folder)), Clock()) as hub:
            publish = Publisher("bench", hub.registry, hub.bus, hub.clock)
            publish.full_list(_observations(count))
            best = float("inf")
            for turn in range(1, 4):
                began = time.perf_counter()
                for number in range(ROUNDS):
                    publish.attributes(f"bench:{number % 20}", {"custom.bench.quality": turn * ROUNDS + number})
                best = min(best, (time.perf_counter() - began) / ROUNDS)
            return best
