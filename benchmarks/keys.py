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
from benchmarks._processes import KEY, Running, hub

WRONG = 1000
AT_ONCE = 50
SLOWEST_MS = 100
MOST_MB = 120
CALM_SECS = 2.0
PAUSE = 0.002
SECRET = 43

FLOOD = "import asyncio, sys; from benchmarks.keys import flood; asyncio.run(flood(int(sys.argv[1]), sys.argv[2]))"
"""The flood comes from a process of its own, so that the good client waits for the hub and not for it."""


def measure() -> Iterator[tuple[str, str]]:
    """Labels and figures."""
    with hub() as home:
        made = asyncio.run(one(home.port, request("POST", "/auth/keys", b'{"label":"x","role":"read"}')))
        stem = orjson.loads(made)["key"][:-SECRET]
        until = time.perf_counter() + CALM_SECS
        calm = asyncio.run(_ask_while(home.port, lambda: time.perf_counter() < until))
        yield "a good client while nothing else happens, p50 / p99 in ms", _shown(calm)
        yield from _figures_of_flood(home, stem)


def _figures_of_flood(home: Running, stem: str) -> Iterator[tuple[str, str]]:
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", FLOOD, str(home.port), stem], stdout=subprocess.PIPE) as flooding:
        assert flooding.stdout is not None
        flooding.stdout.readline()
        hurried = asyncio.run(_ask_while(home.port, lambda: flooding.poll() is None))
        told = flooding.stdout.read().decode().strip()
    took = time.perf_counter() - began
    yield f"{WRONG} wrong keys with a valid id, {AT_ONCE} at a time, seconds", f"{took:.1f} ({told})"
    yield f"  a good client meanwhile, p50 / p99 in ms (p99 below {SLOWEST_MS})", _shown(hurried)
    yield f"  the hub's peak memory, MB (below {MOST_MB})", f"{home.peak_mb():.1f}"


def _shown(durations: list[float]) -> str:
    return f"{percentile(durations, 50):.1f} / {percentile(durations, 99):.1f} of {len(durations)} requests"


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
