"""A change that outlives the power, beside `append` and `fdatasync` of the same bytes; a large home read again."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
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
from appliance.store.records import read_layout
from benchmarks._card import encode_layout
from benchmarks._client import one, percentile, request
from benchmarks._frame import Row, Sample
from benchmarks._lag import Lags, watched_here
from benchmarks._processes import hub

SMALL, LARGE = 100, 25_000
TIMES, TURN, WRITERS = 1_000, 25, 16
BESIDE = "append and fdatasync of the same bytes"

ONE = Row(
    label="a change in the store, p50",
    unit="ms",
    beside=BESIDE,
    at_most=1.5,
    why="a thread syncs, so that the loop is never held; handing it the same bytes and waiting for it takes twice as "
    "long by itself (the next row), and 15 µs more are the check of the change, its record and its events",
)
HANDED = Row(label="the same bytes from a thread that asyncio waits for, p50", unit="ms", beside=BESIDE)
ONE_P99 = Row(label="a change in the store, p99", unit="ms", beside=BESIDE)
MANY = Row(label=f"changes of {WRITERS} at once", unit="changes/s", beside="of one after another", at_least=4)
AMONG = Row(label=f"a change among {LARGE:,} entries, p50", unit="ms", beside=f"among {SMALL}", at_most=1.1)
OVER_HTTP = Row(label="the same change over HTTP, p50", unit="ms", beside=BESIDE)
RESTART = Row(label=f"{LARGE:,} entries read at a start", unit="ms")


def measure(rounds: int) -> Iterator[Sample]:
    """The store as it stands in the hub and the bare file by short turns; the hub over HTTP."""
    lags = Lags()
    with hub() as home:
        for number in range(rounds):
            took, rate, late = asyncio.run(_changes())
            lags += late
            small, large, bare, handed = (statistics.median(each) for each in took)
            yield ONE.sample(small, bare)
            yield HANDED.sample(handed, bare)
            yield ONE_P99.sample(percentile(took[0], 99), percentile(took[2], 99))
            yield MANY.sample(rate, 1000 * len(took[0]) / sum(took[0]))
            yield AMONG.sample(large, small)
            yield OVER_HTTP.sample(asyncio.run(_over_http(home.port, number)), bare)
            yield RESTART.sample(asyncio.run(_restart()))
    yield from lags.samples(f"{LARGE:,} entries, compactions included")


async def _changes() -> tuple[Sequence[list[float]], float, Lags]:
    """Milliseconds of changes in a small and a large home, and of the bare file without and with a thread; rate; lag.

    The four take short turns, for whom the kernel lets run beside whom lasts longer than that. The rate is that of
    changes a second of several at once.
    """
    async with AsyncExitStack() as stack:
        document, small = await stack.enter_async_context(_opened(SMALL))
        _, large = await stack.enter_async_context(_opened(LARGE))
        before = document.figures()["journal_bytes"]
        await small.make(_renamed(0, TIMES))
        append = stack.enter_context(_appending(document.figures()["journal_bytes"] - before))
        thread = stack.enter_context(ThreadPoolExecutor(1))

        async def append_here(_: PutRoom) -> None:
            append()

        async def append_there(_: PutRoom) -> None:
            await asyncio.get_running_loop().run_in_executor(thread, append)

        ways: Sequence[Callable[[PutRoom], Awaitable[object]]] = small.make, large.make, append_here, append_there
        took: Sequence[list[float]] = [[] for _ in ways]
        async with watched_here() as lags:
            for number in range(TIMES // TURN * len(ways)):
                for each in range(TURN):
                    change = _renamed(0, number * TURN + each)
                    began = time.perf_counter()
                    await ways[number % len(ways)](change)
                    took[number % len(ways)].append(1000 * (time.perf_counter() - began))
            began = time.perf_counter()
            await asyncio.gather(*(_rename(small, room) for room in range(WRITERS)))
            rate = TIMES // WRITERS * WRITERS / (time.perf_counter() - began)
        return took, rate, lags


async def _rename(changes: Changes, room: int) -> None:
    for number in range(TIMES // WRITERS):
        await changes.make(_renamed(room, TIMES + number))


def _renamed(room: int, number: int) -> PutRoom:
    return PutRoom(room=Room(id=f"room_{room}", name=f"Room {number}"))


@asynccontextmanager
async def _opened(entries: int) -> AsyncIterator[tuple[Document, Changes]]:
    """A home of so many rooms."""
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
        async with _filled(Path(folder), entries) as opened:
            yield opened


@asynccontextmanager
async def _filled(folder: Path, entries: int) -> AsyncIterator[tuple[Document, Changes]]:
    clock, registry = Clock(), Registry(Bus(), Clock())
    async with AsyncExitStack() as stack:
        document = await stack.enter_async_context(Document(Disk(folder), clock))
        rooms = {f"room_{each}": Room(id=f"room_{each}", name=f"Room {each}") for each in range(entries)}
        layout = Layout(rooms=rooms, groups={})
        await document.put_many(encode_layout(layout))
        registry.restore(layout, [])
        yield document, await stack.enter_async_context(Changes(registry, document))


@contextmanager
def _appending(size: int) -> Iterator[Callable[[], None]]:
    """What appends so many bytes to a file and waits until they are on the card."""
    with (
        tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder,
        (Path(folder) / "file").open("wb", 0) as file,
    ):

        def append() -> None:
            file.write(b"x" * size)
            os.fdatasync(file.fileno())

        yield append


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
        async with _filled(Path(folder), LARGE):
            pass
        began = time.perf_counter()
        async with Document(Disk(Path(folder)), Clock()) as document:
            Registry(Bus(), Clock()).restore(read_layout(document), [])
            return 1000 * (time.perf_counter() - began)
