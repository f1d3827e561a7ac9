"""A restart of a large home with its journal at its longest."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.layout import Layout
from appliance.home.model import Device, DeviceKind, Group, Metadata, Room
from appliance.home.registry import Registry
from appliance.store.disk import Disk
from appliance.store.document import Document
from appliance.store.records import encode_device, read_devices, read_layout
from benchmarks._card import encode_layout
from benchmarks._frame import Row, Sample

DEVICES, ROOMS, GROUPS = 500, 60, 100
HOME = f"{DEVICES} devices, {ROOMS} rooms, {GROUPS} groups read again"

TOGETHER = Row(label=f"{HOME}, every device a record", unit="ms", at_most=100)
ONE_BY_ONE = Row(label=f"{HOME}, a device a record", unit="ms", at_most=100)


def measure(rounds: int) -> Iterator[Sample]:
    """Write the home until its journal is at its longest, and start again and again."""
    logging.getLogger("store").setLevel(logging.ERROR)
    for row, batch in ((TOGETHER, DEVICES), (ONE_BY_ONE, 1)):
        with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
            asyncio.run(_fill(Path(folder), batch))
            for _ in range(rounds):
                yield row.sample(asyncio.run(_restart(Path(folder))))


def layout() -> Layout:
    """Rooms, groups of five, and every device in a room."""
    ids = [_name(number) for number in range(DEVICES)]
    members = [tuple(ids[each::GROUPS]) for each in range(GROUPS)]
    groups = [Group(id=f"group_{each}", name=f"Group {each}", members=ids_) for each, ids_ in enumerate(members)]
    return Layout(
        rooms={f"room_{each}": Room(id=f"room_{each}", name=f"Room {each}") for each in range(ROOMS)},
        groups={group.id: group for group in groups},
        room_assignments={each: f"room_{number % ROOMS}" for number, each in enumerate(ids)},
    )


def device(number: int, turn: int) -> Device:
    """A lamp as it is at its n-th change."""
    now = Clock().now()
    return Device(
        id=_name(number),
        room_id=None,
        kind=DeviceKind.LIGHT,
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


async def _fill(folder: Path, batch: int) -> None:
    """Write the home and changes to it, until one more would make the journal be compacted."""
    async with Document(Disk(folder), Clock()) as document:
        await document.put_many({**encode_layout(layout()), **_told(0, DEVICES, 0)})
        begun = await _until_compacted(document, batch)
        limit = max(256 * 1024, begun["snapshot_bytes"])
        turn, largest = 0, 0
        while (at := document.figures())["journal_bytes"] + largest <= limit:
            first = turn * batch % DEVICES
            await document.put_many(_states(_told(first, batch, turn)))
            largest, turn = max(largest, document.figures()["journal_bytes"] - at["journal_bytes"]), turn + 1


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


def _states(reported: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in reported.items() if key.startswith("state/")}


async def _restart(folder: Path) -> float:
    """Milliseconds from nothing to a registry that holds the home."""
    began = time.perf_counter()
    clock = Clock()
    registry, disk = Registry(Bus(), clock), Disk(folder)
    async with Document(disk, clock) as document:
        found = read_layout(document)
        registry.restore(found, read_devices(document, found))
        took = 1000 * (time.perf_counter() - began)
        assert (len(registry.list_devices()), len(registry.list_rooms())) == (DEVICES, ROOMS)
        return took
