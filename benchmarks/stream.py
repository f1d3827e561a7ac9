"""From a change to the last of its readers, and frames a second, beside a bare broadcast of fixed bytes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from benchmarks._client import NONCE, UPGRADE, Readers, percentile, request, until_ready
from benchmarks._frame import Row, Sample
from benchmarks._processes import hub, peer

READERS = (1, 50, 200)
CHANGES, TURN = 500, 25
BATCHES, BATCH = 40, 20
BESIDE = "bare asyncio broadcast of the same bytes at the same push"

LATENCIES = {
    (readers, percent): Row(
        label=f"a strip's push → last of {readers} readers, p{percent}",
        unit="ms",
        beside=BESIDE,
        at_most=1.5,
    )
    for readers in READERS
    for percent in (50, 99)
}
FRAMES = Row(label=f"frames to {READERS[-1]} readers", unit="frames/s", beside=BESIDE, at_least=0.9)


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
            sides = Side(port=home.port, push=push), Side(port=bare, push=other_push, is_hub=False)
            for readers in (readers for _ in range(rounds) for readers in READERS):
                ours, limit = asyncio.run(latencies_by_turns(sides, readers))
                for percent in (50, 99):
                    row = LATENCIES[readers, percent]
                    yield row.sample(percentile(ours, percent), percentile(limit, percent))
            for _ in range(rounds):
                ours_rate = asyncio.run(_rate(home.port, push))
                yield FRAMES.sample(ours_rate, asyncio.run(_rate(bare, other_push, is_hub=False)))
    with peer("strip") as [strip, push], hub(strip_section(strip), is_watched=True) as home:
        asyncio.run(until_ready(home.port))
        asyncio.run(until_pushed(home.port, push))
        home.forget_turns()
        asyncio.run(_rate(home.port, push))
        yield home.longest_turn(f"frames to {READERS[-1]} readers")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What sends frames: a hub or a bare broadcast at a port, and the port that makes its strip push."""

    port: int
    push: int
    is_hub: bool = True


async def latencies_by_turns(sides: Sequence[Side], count: int) -> list[list[float]]:
    """For each side, milliseconds from asking its strip to push until the last of its readers has the frame.

    The sides take short turns: which processes share a core lasts for some hundred changes, and would be compared
    instead of the sides if each had all of its changes at once.
    """
    async with AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(Readers(each.port, count, is_hub=each.is_hub)) for each in sides]
        pushing = [(await asyncio.open_connection("127.0.0.1", each.push))[1] for each in sides]
        durations: list[list[float]] = [[] for _ in sides]
        for number in range(CHANGES // TURN * len(sides)):
            side = number % len(sides)
            for _ in range(TURN):
                began = time.perf_counter()
                pushing[side].write(b"+")
                await readers[side].read(1)
                durations[side].append(1000 * (time.perf_counter() - began))
        for each in pushing:
            each.close()
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
