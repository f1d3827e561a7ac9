"""The time from a change until the last reader has received it, and the frames per second, compared with a bare
broadcast and Node-RED.

The bare broadcast receives the strip's pushes with aiohttp, and decodes them. The bare broadcast then encodes the
same frame as the hub, and sends the frame to each reader. The bare broadcast uses the hub's libraries for JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack

from benchmarks._client import FRAME, UPGRADE, Readers, percentile, request, wait_until_ready
from benchmarks._frame import Row, Sample
from benchmarks._node_red import node_red, read_strip, send_to_readers
from benchmarks._processes import hub, peer

READERS = (1, 50, 200)
CHANGES, TURN = 500, 25
BATCHES, BATCH = 40, 20
MAX_RATIOS = {1: 1.3, 50: 1.5, 200: 1.5}
"""Maximum ratios by the number of readers."""

FLOOR = "bare asyncio broadcast that encodes the same frames"
FRAMES = Row(label=f"frames to {READERS[-1]} readers", unit="frames/s", floor=FLOOR, at_least=0.9)


def measure(rounds: int) -> Iterator[Sample]:
    """Measure the hub and a bare broadcast alternately, each with its own strip."""
    with (
        peer("strip") as [strip, push, _],
        peer("strip") as [other_strip, other_push, _],
        peer("strip") as [third_strip, third_push, _],
        hub(strip_section(strip)) as home,
        node_red([*read_strip(third_strip, ["events"]), *send_to_readers()]) as other,
    ):
        until_pushed(home.port, push)
        with peer("broadcast", str(other_strip)) as [bare]:
            sides = [(home.port, push), (bare, other_push), *([(other.port, third_push)] if other else [])]
            for readers in (readers for _ in range(rounds) for readers in READERS):
                durations = asyncio.run(latencies_by_turns(sides, readers))
                for percent in (50, 99):
                    label = f"from a strip's push to the last of {readers} reader{'s' * (readers > 1)}, p{percent}"
                    is_felt = percent == 50 and readers == 1
                    row = Row(label=label, unit="ms", floor=FLOOR, at_most=MAX_RATIOS[readers], is_felt=is_felt)
                    yield row.sample(*(percentile(each, percent) for each in durations))
            for _ in range(rounds):
                yield FRAMES.sample(*[asyncio.run(_rate(*each)) for each in sides])
    with peer("strip") as [strip, push, _], hub(strip_section(strip), is_watched=True) as home:
        until_pushed(home.port, push)
        home.forget_turns()
        asyncio.run(_rate(home.port, push))
        yield home.longest_turn(f"frames to {READERS[-1]} readers")


def strip_section(strip: int) -> str:
    return f'[adapters.strip]\ntype = "wled"\nbase_url = "http://127.0.0.1:{strip}"\npoll_interval_secs = 3600\n'


def until_pushed(port: int, push: int) -> None:
    """Wait until the hub is ready and the strip's pushes arrive."""
    wait_until_ready(port)
    with (
        socket.create_connection(("127.0.0.1", port)) as reader,
        socket.create_connection(("127.0.0.1", push)) as pushing,
    ):
        reader.settimeout(0.1)
        reader.sendall(request("GET", "/events", extra=UPGRADE))
        data = b""
        while FRAME not in data:  # wait until the hub has connected to the strip's WebSocket
            pushing.sendall(b"+")
            with contextlib.suppress(TimeoutError):
                data += reader.recv(1 << 16)


async def latencies_by_turns(sides: Sequence[tuple[int, int]], count: int) -> list[list[float]]:
    """For each side, return the milliseconds from the request for a push until the last reader has received the
    frame.

    A side is a pair of ports: the port of a hub or a bare broadcast, and the port that makes the strip push a change.
    The sides alternate quickly, because the kernel's assignment of processes to cores lasts for some hundred changes.
    """
    async with AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(Readers(port, count)) for port, _ in sides]
        pushing = [(await asyncio.open_connection("127.0.0.1", push))[1] for _, push in sides]
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


async def _rate(port: int, push: int) -> float:
    """Return the frames per second to all readers. The strip pushes a batch as soon as the last reader has received
    the previous batch."""
    async with Readers(port, READERS[-1]) as readers:
        _, pushing = await asyncio.open_connection("127.0.0.1", push)
        began = time.perf_counter()
        for _ in range(BATCHES):
            pushing.write(b"+" * BATCH)
            await readers.read(BATCH)
        took = time.perf_counter() - began
        pushing.close()
    return BATCHES * BATCH * READERS[-1] / took
