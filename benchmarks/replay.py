"""A restart of a large home with its journal at its longest, and how long one durable change takes."""

from __future__ import annotations

import asyncio
import logging
import statistics
import tempfile
import time
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.changes import PutRoom
from appliance.home.layout import Layout
from appliance.home.model import Device, Group, Kind, Metadata, Room
from appliance.home.registry import Registry
from appliance.store.changes import Changes
from appliance.store.disk import Disk
from appliance.store.document import Document
from appliance.store.records import encode_device, encode_layout, read_devices, read_layout
from benchmarks._client import percentile

DEVICES, ROOMS, GROUPS = 500, 60, 100
MOST_MS = 100
ROUNDS = 15
CHANGES = 200
AT_ONCE = 16


def measure() -> Iterator[tuple[str, str]]:
    """Labels and figures."""
    logging.getLogger("store").setLevel(logging.ERROR)
    for label, batch in (("a flush of every device a record", DEVICES), ("a device a record", 1)):
        with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
            at_end = asyncio.run(_fill(Path(folder), batch))
            rounds = [asyncio.run(_restart(Path(folder))) for _ in range(ROUNDS)]
        yield f"{label}: journal, snapshot, KiB", f"{_kib(at_end, 'journal')}, {_kib(at_end, 'snapshot')}"
        yield "  records replayed", f"{rounds[-1][1]}"
        median = statistics.median(each[0] for each in rounds)
        verdict = "met" if median < MOST_MS else "MISSED"
        least, most = min(each[0] for each in rounds), max(each[0] for each in rounds)
        shown = f"{median:.1f} ({least:.1f} to {most:.1f}; {verdict})"
        yield f"  {DEVICES} devices, {ROOMS} rooms, {GROUPS} groups back, ms (target: under {MOST_MS})", shown
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
        single, together = asyncio.run(_change(Path(folder)))
    yield "one durable change, p50 ms (p99)", _percentiles(single)
    yield f"{AT_ONCE} changes at once until the last is stored, p50 ms (p99)", _percentiles(together)


def layout() -> Layout:
    """Rooms, groups of five, and every device in a room."""
    ids = [_name(number) for number in range(DEVICES)]
    members = [tuple(ids[each::GROUPS]) for each in range(GROUPS)]
    groups = [Group(id=f"group_{each}", name=f"Group {each}", members=ids_) for each, ids_ in enumerate(members)]
    return Layout(
        rooms={f"room_{each}": Room(id=f"room_{each}", name=f"Room {each}") for each in range(ROOMS)},
        groups={group.id: group for group in groups},
        places={each: f"room_{number % ROOMS}" for number, each in enumerate(ids)},
    )


def device(number: int, turn: int) -> Device:
    """A lamp as it is at its n-th change."""
    now = Clock().now()
    return Device(
        id=_name(number),
        room_id=None,
        kind=Kind.LIGHT,
        attributes={
            "power": "on" if turn % 2 else "off",
            "brightness": turn % 101,
            "color_temperature": {"value": 2900 + turn % 4000, "unit": "kelvin"},
        },
        metadata=Metadata(source="elgato_lights", vendor_specific={"light_index": number}),
        updated_at=now,
        last_seen=now,
    )


def _name(number: int) -> str:
    return f"elgato_lights:light:{number}"


async def _fill(folder: Path, batch: int) -> Mapping[str, Any]:
    """Write the home and changes to it, until one more would make the journal be compacted; where the files stand."""
    async with Document(Disk(folder), Clock()) as document:
        await document.put_many({**encode_layout(layout()), **_told(0, DEVICES, 0)})
        begun = await _until_compacted(document, batch)
        limit = max(256 * 1024, begun["snapshot_bytes"])
        turn, largest = 0, 0
        while (at := document.figures())["journal_bytes"] + largest <= limit:
            first = turn * batch % DEVICES
            await document.put_many(_states(_told(first, batch, turn)))
            largest, turn = max(largest, document.figures()["journal_bytes"] - at["journal_bytes"]), turn + 1
        return document.figures()


async def _until_compacted(document: Document, batch: int) -> Mapping[str, Any]:
    """Change devices until the next generation begins, so that the home is in its snapshot."""
    generation, turn = document.figures()["generation"], 0
    while document.figures()["generation"] == generation:
        await document.put_many(_states(_told(0, DEVICES, turn)))
        turn += 1
    return document.figures()


def _told(first: int, count: int, turn: int) -> dict[str, Any]:
    devices = (device(number, turn) for number in range(first, first + count))
    return {key: value for each in devices for key, value in encode_device(each).items()}


def _states(told: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key.startswith("state/")}


async def _restart(folder: Path) -> tuple[float, int]:
    """Milliseconds from nothing to a registry that holds the home, and the records that were replayed."""
    began = time.perf_counter()
    clock = Clock()
    registry, disk = Registry(Bus(), clock), Disk(folder)
    async with Document(disk, clock) as document:
        found = read_layout(document)
        registry.restore(found, read_devices(document, found))
        took = 1000 * (time.perf_counter() - began)
        assert (len(registry.list_devices()), len(registry.list_rooms())) == (DEVICES, ROOMS)
        return took, document.recovered.records


async def _change(folder: Path) -> tuple[list[float], list[float]]:
    """Milliseconds of changes one by one, and of several at once."""
    clock = Clock()
    registry = Registry(Bus(), clock)
    async with Document(Disk(folder), clock) as document, Changes(registry, document) as changes:

        async def rename(room: int, turn: int) -> None:
            await changes.make(PutRoom(room=Room(id=f"room_{room}", name=f"Room {turn}")))

        async def rename_many(turn: int) -> None:
            await asyncio.gather(*(rename(room, turn) for room in range(AT_ONCE)))

        single = [await _time(rename(0, turn)) for turn in range(CHANGES)]
        return single, [await _time(rename_many(-1 - turn)) for turn in range(CHANGES)]


async def _time(work: Coroutine[Any, Any, None]) -> float:
    began = time.perf_counter()
    await work
    return 1000 * (time.perf_counter() - began)


def _kib(figures: Mapping[str, Any], what: str) -> str:
    return f"{figures[f'{what}_bytes'] / 1024:.0f}"


def _percentiles(figures: list[float]) -> str:
    return f"{statistics.median(figures):.2f} ({percentile(figures, 99):.2f})"
