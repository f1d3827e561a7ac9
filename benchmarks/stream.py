"""From a change to the last of its readers, and frames a second, beside a bare broadcast of fixed bytes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import time
from collections.abc import Iterator

from benchmarks._client import NONCE, UPGRADE, Readers, one, percentile, request, until_ready
from benchmarks._frame import Row, Sample
from benchmarks._processes import hub, peer

READERS = (1, 50, 200)
CHANGES = 100
BATCHES, BATCH = 40, 20
BESIDE = "bare asyncio broadcast of the same bytes at the same push"

JUDGED = (
    "the hub parses the push, compares it with what it knew and encodes what changed, 0.13 ms that a broadcast of "
    "fixed bytes does not have; with more readers it weighs less"
)

LATENCIES = {
    (readers, percent): Row(
        label=f"a strip's push → last of {readers} readers, p{percent}",
        unit="ms",
        beside=BESIDE,
        at_most=1.3,
        why=JUDGED,
    )
    for readers in READERS
    for percent in (50, 99)
}
RENAMED = Row(label=f"room renamed (stored) → last of {READERS[-1]} readers, p50", unit="ms")
FRAMES = Row(label=f"frames to {READERS[-1]} readers", unit="frames/s", beside=BESIDE, at_least=0.9)
LAG = Row(label="loop lag, the most of one look a second", unit="ms", at_most=20)


def measure(rounds: int) -> Iterator[Sample]:
    """Hub and bare broadcast by turns, each with a strip of its own."""
    with (
        peer("strip") as [strip, push],
        peer("strip") as [other_strip, other_push],
        hub(strip_section(strip)) as home,
    ):
        asyncio.run(until_ready(home.port))
        frame = asyncio.run(until_pushed(home.port, push))
        with peer("broadcast", str(other_strip), given=frame) as [bare]:
            for readers in (readers for _ in range(rounds) for readers in READERS):
                ours = asyncio.run(latencies_of(home.port, push, readers))
                limit = asyncio.run(latencies_of(bare, other_push, readers, is_hub=False))
                for percent in (50, 99):
                    row = LATENCIES[readers, percent]
                    yield row.sample(percentile(ours, percent), percentile(limit, percent))
            for _ in range(rounds):
                yield RENAMED.sample(asyncio.run(_renames(home.port)))
                ours_rate = asyncio.run(_rate(home.port, push))
                yield FRAMES.sample(ours_rate, asyncio.run(_rate(bare, other_push, is_hub=False)))
        yield LAG.sample(home.loop_lag_ms())


def strip_section(strip: int) -> str:
    """The section of the configuration for the strip at this port."""
    return f'[adapters.strip]\ntype = "wled"\nbase_url = "http://127.0.0.1:{strip}"\npoll_interval_secs = 3600\n'


async def until_pushed(port: int, push: int) -> bytes:
    """Wait until the strip's pushes arrive; the frame of one, as it goes over the wire."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request("GET", "/events", extra=UPGRADE.format(key=NONCE)))
    await reader.readuntil(b"\r\n\r\n")
    _, pushing = await asyncio.open_connection("127.0.0.1", push)
    while True:  # until the hub has found the way to the strip's WebSocket
        pushing.write(b"+")
        with contextlib.suppress(TimeoutError):
            head = await asyncio.wait_for(reader.readexactly(4), 0.1)
            length, rest = (int.from_bytes(head[2:], "big"), b"") if head[1] == 126 else (head[1], head[2:])
            frame = head + await reader.readexactly(length - len(rest))
            writer.close()
            return frame


async def latencies_of(port: int, push: int, count: int, *, is_hub: bool = True) -> list[float]:
    """Milliseconds from asking the strip to push until the last reader has the frame."""
    async with Readers(port, count, is_hub=is_hub) as readers:
        _, pushing = await asyncio.open_connection("127.0.0.1", push)
        durations = []
        for _ in range(CHANGES):
            began = time.perf_counter()
            pushing.write(b"+")
            await readers.read(1)
            durations.append(1000 * (time.perf_counter() - began))
        pushing.close()
    return durations


async def _rate(port: int, push: int, *, is_hub: bool = True) -> float:
    """Frames a second to all readers; the strip pushes a batch as soon as the last reader has the one before."""
    async with Readers(port, READERS[-1], is_hub=is_hub) as readers:
        _, pushing = await asyncio.open_connection("127.0.0.1", push)
        began = time.perf_counter()
        for _ in range(BATCHES):
            pushing.write(b"+" * BATCH)
            await readers.read(BATCH)
        took = time.perf_counter() - began
        pushing.close()
    return BATCHES * BATCH * READERS[-1] / took


async def _renames(port: int) -> float:
    """The median milliseconds from renaming a room until the last reader knows."""
    async with Readers(port, READERS[-1]) as readers:
        durations = []
        for _ in range(CHANGES):
            body = json.dumps({"id": "kitchen", "name": f"Kitchen {time.monotonic_ns()}"}).encode()
            began = time.perf_counter()
            change = asyncio.ensure_future(one(port, request("POST", "/rooms", body)))
            await readers.read(1)
            durations.append(1000 * (time.perf_counter() - began))
            await change
    return statistics.median(durations)
