"""A change that outlives the power, beside `append` and `fdatasync` of the same bytes; a large home read again."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.changes import PutRoom
from appliance.home.layout import Layout
from appliance.home.model import Room
from appliance.home.registry import Registry
from appliance.store.change_queue import Changes
from appliance.store.disk import Disk
from appliance.store.document import Document
from appliance.store.records import encode_layout, read_layout
from benchmarks._client import one, percentile, request
from benchmarks._frame import Row, Sample
from benchmarks._lag import Lags, watched_here
from benchmarks._processes import hub

SMALL, LARGE = 100, 25_000
TIMES, WRITERS = 1_000, 16
BESIDE = "append and fdatasync of the same bytes"

ONE = Row(
    label="a change in the store, p50",
    unit="ms",
    beside=BESIDE,
    at_most=1.5,
    why="a change is handed to the store's thread and back, some 50 µs, and this machine syncs in 40 µs; real "
    "cards take 130 µs",
)
ONE_P99 = Row(label="a change in the store, p99", unit="ms", beside=BESIDE)
MANY = Row(label=f"changes of {WRITERS} at once", unit="changes/s", beside="of one after another", at_least=4)
AMONG = Row(label=f"a change among {LARGE:,} entries, p50", unit="ms", beside=f"among {SMALL}", at_most=1.1)
OVER_HTTP = Row(label="the same change over HTTP, p50", unit="ms", beside=BESIDE)
RESTART = Row(label=f"{LARGE:,} entries read at a start", unit="ms")


def measure(rounds: int) -> Iterator[Sample]:
    """The store as it stands in the hub, the bare file, and the hub by turns."""
    lags = Lags()
    with hub() as home:
        for number in range(rounds):
            ours, rate, size, _ = asyncio.run(_change(SMALL))
            bare = _append(size)
            large, _, _, held = asyncio.run(_change(LARGE))
            lags += held
            yield ONE.sample(statistics.median(ours), statistics.median(bare))
            yield ONE_P99.sample(percentile(ours, 99), percentile(bare, 99))
            yield MANY.sample(rate, 1000 * len(ours) / sum(ours))
            yield AMONG.sample(statistics.median(large), statistics.median(ours))
            yield OVER_HTTP.sample(asyncio.run(_over_http(home.port, number)), statistics.median(bare))
            yield RESTART.sample(asyncio.run(_restart()))
    yield from lags.samples(f"{LARGE:,} entries, compactions included")


async def _change(entries: int) -> tuple[list[float], float, int, Lags]:
    """Milliseconds of changes one by one; changes a second of several at once; bytes of one; lag."""
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
        async with _opened(Path(folder), entries) as (document, changes):
            before, single = document.figures()["journal_bytes"], []
            async with watched_here() as lags:
                for number in range(TIMES):
                    began = time.perf_counter()
                    await changes.make(_renamed(0, number))
                    single.append(1000 * (time.perf_counter() - began))
                size = (document.figures()["journal_bytes"] - before) // TIMES
                began = time.perf_counter()
                await asyncio.gather(*(_rename(changes, room) for room in range(WRITERS)))
                rate = TIMES // WRITERS * WRITERS / (time.perf_counter() - began)
            return single, rate, max(size, 100), lags


async def _rename(changes: Changes, room: int) -> None:
    for number in range(TIMES // WRITERS):
        await changes.make(_renamed(room, TIMES + number))


def _renamed(room: int, number: int) -> PutRoom:
    return PutRoom(room=Room(id=f"room_{room}", name=f"Room {number}"))


@asynccontextmanager
async def _opened(folder: Path, entries: int) -> AsyncIterator[tuple[Document, Changes]]:
    clock, registry = Clock(), Registry(Bus(), Clock())
    async with AsyncExitStack() as stack:
        document = await stack.enter_async_context(Document(Disk(folder), clock))
        rooms = {f"room_{each}": Room(id=f"room_{each}", name=f"Room {each}") for each in range(entries)}
        layout = Layout(rooms=rooms, groups={})
        await document.put_many(encode_layout(layout))
        registry.restore(layout, [])
        yield document, await stack.enter_async_context(Changes(registry, document))


def _append(size: int) -> list[float]:
    """Milliseconds of appending so many bytes and waiting until they are on the card."""
    durations = []
    with (
        tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder,
        (Path(folder) / "file").open("wb", 0) as file,
    ):
        for _ in range(TIMES):
            began = time.perf_counter()
            file.write(b"x" * size)
            os.fdatasync(file.fileno())
            durations.append(1000 * (time.perf_counter() - began))
    return durations


async def _over_http(port: int, turn: int) -> float:
    durations = []
    for number in range(TIMES // 10):
        body = b'{"id":"den","name":"Den %d"}' % (1000 * turn + number)
        began = time.perf_counter()
        await one(port, request("POST", "/rooms", body))
        durations.append(1000 * (time.perf_counter() - began))
    return statistics.median(durations)


async def _restart() -> float:
    """Milliseconds until a home of that many entries is read again."""
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
        async with _opened(Path(folder), LARGE):
            pass
        began = time.perf_counter()
        async with Document(Disk(Path(folder)), Clock()) as document:
            Registry(Bus(), Clock()).restore(read_layout(document), [])
            return 1000 * (time.perf_counter() - began)
