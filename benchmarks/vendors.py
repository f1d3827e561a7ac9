"""Measures the delay that malicious devices of a kind in Lua cause to polls of another adapter (the neighbour)."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Iterator

from appliance.adapters.polling import PollingAdapter
from benchmarks._frame import Row, Sample
from benchmarks._processes import peer
from tests.attacks.hostile_vendor import BODIES, SOCKETS, STREAMS
from tests.attacks.test_vendor import Neighbours, hostile_vendor, neighbours

PATHS = (*BODIES, *STREAMS, *SOCKETS)
MESSAGES, SECS, PAUSE_SECS = 1_000_000, 2.0, 0.01
MAX_COST_MS = 50

IDLE = Row(label="longest poll of another device without an attack", unit="ms")
ATTACKED = Row(label=f"longest poll of another device during the worst of {len(PATHS)} attacks", unit="ms")
COST = Row(label=f"delay of another device by the worst of {len(PATHS)} attacks", unit="ms", at_most=MAX_COST_MS)


def measure(_rounds: int) -> Iterator[Sample]:
    """Run each attack once, immediately after a measurement without the attack. Print how much each attack costs."""
    gc.freeze()  # the same setting as in `lares run`
    with peer("lamps", "1", "1") as [port], hostile_vendor(MESSAGES) as url:
        found = [asyncio.run(_attack(url, path, f"http://127.0.0.1:{port}")) for path in PATHS]
    yield IDLE.sample(max(idle for idle, _ in found))
    yield ATTACKED.sample(max(attacked for _, attacked in found))
    yield COST.sample(max(attacked - idle for idle, attacked in found))


async def _attack(url: str, path: str, lamp_url: str) -> tuple[float, float]:
    """Return the longest poll in milliseconds without the attack, and the longest poll during the attack."""
    async with neighbours(url, path, lamp_url) as home:
        idle = await _longest(home)
        async with home.victim:
            attacked = await _longest(home)
    print(f"{path}: {attacked:.1f} ms, {idle:.1f} without", file=sys.stderr)
    return idle, attacked


async def _longest(home: Neighbours) -> float:
    """Return the longest time in milliseconds from the due time of a neighbour's poll until the publication of the
    poll's result."""
    longest, until = 0.0, time.perf_counter() + SECS
    assert isinstance(home.lamp.adapter, PollingAdapter)
    while (began := time.perf_counter()) < until:
        home.answered.clear()
        home.lamp.adapter.poll_now()
        await home.answered.wait()
        longest = max(longest, 1000 * (time.perf_counter() - began))
        await asyncio.sleep(PAUSE_SECS)
    return longest
