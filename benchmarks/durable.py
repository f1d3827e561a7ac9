"""The duration of a change that survives a power cut, compared with `append` and `fdatasync` of the same bytes."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.layout import Change
from appliance.home.model import Room
from appliance.home.registry import Registry
from appliance.store.disk import Disk
from appliance.store.document import open_document
from appliance.store.layout_changes import LayoutChanges
from benchmarks._client import ask
from benchmarks._frame import Row, Sample
from benchmarks._processes import hub

TIMES, TURN = 1_000, 25
FLOOR = "append and fdatasync of the same bytes"
ONE = Row(label="a change in the store, p50", unit="ms", floor=FLOOR, at_most=2.2)
HANDED = Row(label="append and fdatasync of the same bytes in a thread, p50", unit="ms", floor=FLOOR)
OVER_HTTP = Row(
    label="a durable change over HTTP, p50", unit="ms", floor=FLOOR, at_most=5, is_absolute=True, is_felt=True
)


def measure(rounds: int) -> Iterator[Sample]:
    """Measure the store and the bare file alternately. Afterwards, measure the hub over HTTP."""
    with hub() as home:
        for number in range(rounds):
            store, bare, handed = asyncio.run(_changes())
            yield ONE.sample(store, bare)
            yield HANDED.sample(handed, bare)
            yield OVER_HTTP.sample(_over_http(home.port, number), bare)


async def _changes() -> Sequence[float]:
    """Return the median milliseconds of a change in the store, in a bare file, and in a bare file on a thread.

    The three measurements alternate quickly, because the kernel's scheduling varies over longer times.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lares-benchmark-")))
        (folder / "data").mkdir()
        document = await stack.enter_async_context(open_document(Disk(folder / "data"), Clock()))
        changes = LayoutChanges(Registry(Bus(), Clock()), document, Clock())
        await changes.make(_renamed(0))
        before = document.figures()["journal_bytes"]
        await changes.make(_renamed(TIMES))
        data = b"x" * (document.figures()["journal_bytes"] - before)
        file = stack.enter_context((folder / "file").open("wb", 0))

        def append() -> None:
            file.write(data)
            os.fdatasync(file.fileno())

        async def append_here(_: Change) -> None:
            append()

        async def append_there(_: Change) -> None:
            await asyncio.to_thread(append)

        ways: Sequence[Callable[[Change], Awaitable[object]]] = changes.make, append_here, append_there
        took: Sequence[list[float]] = [[] for _ in ways]
        for number in range(TIMES // TURN * len(ways)):
            for each in range(TURN):
                change = _renamed(number * TURN + each)
                began = time.perf_counter()
                await ways[number % len(ways)](change)
                took[number % len(ways)].append(1000 * (time.perf_counter() - began))
        return [statistics.median(each) for each in took]


def _renamed(number: int) -> Change:
    return lambda layout, _: layout.put_room(Room(id="room", name=f"Room {number}"))


def _over_http(port: int, turn: int) -> float:
    durations = []
    for number in range(TIMES // 10):
        body = b'{"id":"den","name":"Den %d"}' % (1000 * turn + number)
        began = time.perf_counter()
        ask(port, "POST", "/rooms", body)
        durations.append(1000 * (time.perf_counter() - began))
    return statistics.median(durations)
