"""A flood of wrong keys: what a client with a right one notices, and the memory that the hub needs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

import orjson

from benchmarks._client import one, percentile, request
from benchmarks._frame import Row, Sample
from benchmarks._lag import watched
from benchmarks._processes import KEY, hub

WRONG = 1000
AT_ONCE = 50
CALM_SECS = 2.0
PAUSE = 0.002
SECRET = 43

CALM = Row(label="a good client while nothing else happens, p99", unit="ms")
TOOK = Row(label=f"{WRONG:,} wrong keys with a valid id, {AT_ONCE} at a time", unit="s")
HURRIED = Row(label="a good client meanwhile, p99", unit="ms", at_most=100)
PEAK = Row(label="the hub's peak memory", unit="MB", at_most=120)

FLOOD = "import asyncio, sys; from benchmarks.keys import flood; asyncio.run(flood(int(sys.argv[1]), sys.argv[2]))"
"""The flood comes from a process of its own, so that the good client waits for the hub and not for it."""


def measure(_rounds: int) -> Iterator[Sample]:
    """A good client while nothing else happens, and while wrong keys come."""
    with hub() as home:
        made = asyncio.run(one(home.port, request("POST", "/auth/keys", b'{"label":"x","role":"read"}')))
        stem = orjson.loads(made)["key"][:-SECRET]
        until = time.perf_counter() + CALM_SECS
        calm = asyncio.run(_ask_while(home.port, lambda: time.perf_counter() < until))
        yield CALM.sample(percentile(calm, 99))
        began = time.perf_counter()
        command = [sys.executable, "-c", FLOOD, str(home.port), stem]
        with watched(home.port) as lags, subprocess.Popen(command, stdout=subprocess.PIPE) as flooding:
            assert flooding.stdout is not None
            flooding.stdout.readline()
            hurried = asyncio.run(_ask_while(home.port, lambda: flooding.poll() is None))
        yield TOOK.sample(time.perf_counter() - began)
        yield HURRIED.sample(percentile(hurried, 99))
        yield PEAK.sample(home.peak_mb())
        yield from lags.samples()


async def _ask_while(port: int, is_going_on: Callable[[], bool]) -> list[float]:
    """How long each request of a good client takes while something goes on, in ms."""
    durations: list[float] = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while is_going_on():
        began = time.perf_counter()
        writer.write(request("GET", "/devices"))
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
        durations.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(PAUSE)
    writer.close()
    return durations


async def flood(port: int, stem: str) -> None:
    """Send the wrong keys, each over a connection of its own, and print what they were answered."""
    print("go", flush=True)
    numbers, statuses = iter(range(WRONG)), Counter[int]()

    async def guess() -> None:
        for number in numbers:
            statuses[await _status(port, f"{stem}{number:0{SECRET}}")] += 1

    await asyncio.gather(*(guess() for _ in range(AT_ONCE)))
    print(", ".join(f"{count} × {status}" for status, count in sorted(statuses.items())))


async def _status(port: int, token: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request("GET", "/devices").replace(KEY.encode(), token.encode()))
        head = await reader.readuntil(b"\r\n\r\n")
        return int(head.split(b" ")[1])
    finally:
        writer.close()
