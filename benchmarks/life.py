"""A day of a home, as fast as it goes: what the hub holds at its end, beside what it held after the first hours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks._client import Readers, one, request, until_ready
from benchmarks._frame import Row, Sample
from benchmarks._lag import Lags, watched
from benchmarks._processes import Running, hub, lamps, peer
from benchmarks.stream import strip_section, until_pushed

HOURS = 24
FIRST_HOURS = 6
"""After so many hours caches and histories hold what they may hold."""

PUSHES, LISTINGS, COMMANDS, RENAMES, READERS = 400, 120, 30, 4, 20
"""Of each so many in an hour; a reader comes and goes."""

BESIDE = f"after {FIRST_HOURS} hours"
MEMORY = Row(label="memory of hub and worker after a day (PSS)", unit="MB", beside=BESIDE, at_most=1.05)
FILES = Row(label="open descriptors", beside=BESIDE, at_most=1)
THREADS = Row(label="threads", beside=BESIDE, at_most=1)
WAKEUPS = Row(label="wake-ups in a second without a request, as a sign of tasks", beside=BESIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a hub holds at one time."""

    memory: float
    files: int
    threads: int
    wakeups: int


def measure(_rounds: int) -> Iterator[Sample]:
    """One day, whatever the rounds."""
    with peer("lamps", "10", "1") as ports, peer("strip") as [strip, push]:
        with hub(lamps(ports, 5) + strip_section(strip)) as home:
            asyncio.run(until_ready(home.port))
            asyncio.run(until_pushed(home.port, push))
            with watched(home.port) as first_lags:
                asyncio.run(_live(home.port, push, FIRST_HOURS))
            first = asyncio.run(_look(home))
            with watched(home.port) as last_lags:
                asyncio.run(_live(home.port, push, HOURS - FIRST_HOURS))
            last = asyncio.run(_look(home))
            yield MEMORY.sample(last.memory, first.memory)
            yield FILES.sample(last.files, first.files)
            yield THREADS.sample(last.threads, first.threads)
            yield WAKEUPS.sample(last.wakeups, first.wakeups)
            yield from Lags(first_lags + last_lags).samples()


async def _live(port: int, push: int, hours: int) -> None:
    for hour in range(hours):
        _, pushing = await asyncio.open_connection("127.0.0.1", push)
        async with Readers(port, 1) as reader:
            for number in range(PUSHES):
                pushing.write(b"+")
                if number % 10 == 0:
                    await asyncio.sleep(0.01)
            await reader.read(PUSHES // 4)
        pushing.close()
        for number in range(READERS):
            async with Readers(port, 1 + number % 3):
                pass
        for number in range(LISTINGS):
            await one(port, request("GET", ("/devices", "/rooms", "/automations", "/diagnostics")[number % 4]))
        for number in range(COMMANDS):
            body = json.dumps({"capability": "brightness", "action": "set", "value": 1 + (hour + number) % 100})
            await one(port, request("POST", f"/devices/lamp{number % 10}:light:0/command", body.encode()))
        for number in range(RENAMES):
            body = json.dumps({"id": f"room_{number}", "name": f"Room {hour} {number}"})
            await one(port, request("POST", "/rooms", body.encode()))


async def _look(home: Running) -> Held:
    """What the hub holds once connections that were left are gone, and between polls."""
    await asyncio.sleep(3)
    before, files = home.wakeups(), []
    for _ in range(50):
        await asyncio.sleep(0.1)
        files.append(home.files())
    wakeups = (home.wakeups() - before) // 5
    return Held(memory=home.pss_mb(), files=min(files), threads=home.threads(), wakeups=wakeups)
