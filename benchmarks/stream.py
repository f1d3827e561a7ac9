"""From a change to the last of its subscribers, and frames a second to all of them."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Iterator

from benchmarks._client import one, percentile, read_frame, request, subscribe
from benchmarks._processes import hub

READERS = (1, 50, 200)
CHANGES = 200
BURST = 500


def measure() -> Iterator[tuple[str, str]]:
    """Labels and figures."""
    with hub() as home:
        for readers in READERS:
            latencies = asyncio.run(_latencies(home.port, readers))
            figure = f"{statistics.median(latencies):.2f} ({percentile(latencies, 99):.2f})"
            yield f"change to last of {readers} readers, p50 ms (p99)", figure
        yield f"frames/s to {READERS[-1]} readers", f"{asyncio.run(_throughput(home.port, READERS[-1])):.0f}"
        yield "resident memory afterwards, MB", f"{home.resident_mb():.1f}"


async def _latencies(port: int, readers: int) -> list[float]:
    streams = [await subscribe(port) for _ in range(readers)]
    latencies = []
    for number in range(CHANGES):
        began = time.perf_counter()
        change = asyncio.ensure_future(one(port, _rename(number)))
        await asyncio.gather(*(read_frame(reader) for reader, _ in streams))
        latencies.append(1000 * (time.perf_counter() - began))
        await change
    for _, writer in streams:
        writer.close()
    return latencies


async def _throughput(port: int, readers: int) -> float:
    """Frames a second, over all readers, while one client changes things as fast as it is answered."""
    streams = [await subscribe(port) for _ in range(readers)]
    began = time.perf_counter()

    async def read_all(reader: asyncio.StreamReader) -> None:
        for _ in range(BURST):
            await read_frame(reader)

    reading = asyncio.gather(*(read_all(reader) for reader, _ in streams))
    for first in range(0, BURST, 10):
        await asyncio.gather(*(one(port, _rename(1000 + number)) for number in range(first, first + 10)))
    await reading
    rate = BURST * readers / (time.perf_counter() - began)
    for _, writer in streams:
        writer.close()
    return rate


def _rename(number: int) -> bytes:
    return request("POST", "/rooms", json.dumps({"id": "kitchen", "name": f"Kitchen {number}"}).encode())
