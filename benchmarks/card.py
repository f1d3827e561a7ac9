"""What a busy home writes to its card in a day, beside SQLite with a commit for each change, and the bare payload."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import orjson

from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.changes import AssignRoom, Change, PutGroup, PutRoom, SetMembers
from appliance.home.model import DeviceKind, Observation, Report, Room
from appliance.home.registry import Registry
from appliance.store.change_queue import Changes
from appliance.store.disk import Disk
from appliance.store.document import Document
from appliance.store.recorder import Recorder
from benchmarks._card import Card, card
from benchmarks._frame import Row, Sample
from tests.fakes.clock import VirtualClock

DEVICES = 50
POLL_SECS = 5
FLUSH_SECS = 300
PEOPLE_SECS = 720
DAY = 86_400
HOUR = 3600

WRITTEN = Row(label="written to the card in a day", unit="MiB", at_most=10)
PAYLOAD = Row(label="the bare values of it", unit="MB")
SYNCS = Row(label="syncs a day", beside="a flush every five minutes, and changes", at_most=1)
TIMES_OF = {
    mode: Row(label=f"SQLite ({name}), a commit a change, in a day", unit="MB", beside="Lares", at_least=least)
    for mode, name, least in (("DELETE", "as it comes", 50.0), ("WAL", "WAL", None))
}


class House:
    """The lamps as they are; one of them is changed every second, always in the same way."""

    def __init__(self) -> None:
        self._dice = random.Random(1)
        self.lamps = [self._look() for _ in range(DEVICES)]

    def change(self) -> int:
        """Change a lamp; its number."""
        number = self._dice.randrange(DEVICES)
        self.lamps[number] = self._look()
        return number

    def report(self) -> Report:
        """What a poll of all lamps tells."""
        seen = tuple(_see(number, lamp) for number, lamp in enumerate(self.lamps))
        return Report(adapter="elgato_lights", present=frozenset(each.device_id for each in seen), observations=seen)

    def _look(self) -> dict[str, Any]:
        return {
            "power": self._dice.choice(("on", "off")),
            "brightness": self._dice.randrange(101),
            "color_temperature": {"value": self._dice.randrange(2900, 7000), "unit": "kelvin"},
        }


def _see(number: int, lamp: Mapping[str, Any]) -> Observation:
    vendor_specific = {"light_index": number}
    return Observation(
        device_id=name(number), kind=DeviceKind.LIGHT, attributes=lamp, vendor_specific=vendor_specific
    )


def name(number: int) -> str:
    """The id of a lamp."""
    return f"elgato_lights:light:{number}"


def body(number: int) -> Change:
    """What somebody wants as the n-th thing; each is something new."""
    room = Room(id=f"room_{number // 4 % 12}", name=f"Room {number}")
    if number % 4 == 0:
        return PutRoom(room=room)
    if number % 4 == 1:
        return AssignRoom(device_id=name(number % DEVICES), room_id=room.id)
    if number % 4 == 2:
        return PutGroup(group_id=f"group_{number % 12}", name=f"Group {number}", members=None)
    return SetMembers(group_id=f"group_{(number - 1) % 12}", members=tuple(name(each) for each in range(number % 10)))


class CountingDocument(Document):
    """A document that counts the JSON of what it is given, as the bare payload."""

    payload = 0

    async def put_many(self, changes: Mapping[str, Any]) -> None:
        """Count and put."""
        self.payload += sum(len(key) + len(orjson.dumps(value)) for key, value in changes.items())
        await super().put_many(changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A day's figures."""

    written: float
    payload: float
    syncs: int
    flushes: float | None
    changes: int
    compactions: int


def measure(_rounds: int) -> Iterator[Sample]:
    """A day of the hub's store, and an hour of a database that commits each change, told as a day."""
    with card() as each:
        ours = asyncio.run(_live(each))
    others = {}
    for mode in ("DELETE", "WAL"):
        with card() as each:
            others[mode] = _commit_each(each, mode)
    yield WRITTEN.sample(ours.written / (1 << 20))
    yield PAYLOAD.sample(ours.payload / 1e6)
    yield SYNCS.sample(ours.syncs, DAY / FLUSH_SECS + ours.changes + 3 * ours.compactions)
    for mode, row in TIMES_OF.items():
        yield row.sample(others[mode].written / 1e6, ours.written / 1e6)


async def _live(each: Card) -> Day:
    """Live a day on the card, through the parts that a hub has."""
    clock, bus = VirtualClock(), Bus()
    registry, document = Registry(bus, clock), CountingDocument(Disk(each.folder), clock)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(document)
        await stack.enter_async_context(Recorder(registry, bus, document, clock, flush_secs=FLUSH_SECS))
        changes = await stack.enter_async_context(Changes(registry, document))
        await _pass(clock, registry, changes, House(), HOUR, each)  # a first hour, for what is written but once
        before, written, flushes, payload = document.figures(), each.written(), each.flushes(), document.payload
        await _pass(clock, registry, changes, House(), DAY, each)
        after = document.figures()
        return Day(
            written=each.written() - written,
            payload=document.payload - payload,
            syncs=after["syncs"] - before["syncs"],
            flushes=None if flushes is None else (each.flushes() or 0) - flushes,
            changes=DAY // PEOPLE_SECS,
            compactions=after["generation"] - before["generation"],
        )


async def _pass(
    clock: VirtualClock, registry: Registry, changes: Changes, house: House, seconds: int, each: Card
) -> None:
    """Let so many seconds pass in the house."""
    for second in range(1, seconds + 1):
        house.change()
        if second % POLL_SECS == 0:
            registry.apply(house.report())
        if second % PEOPLE_SECS == 0:
            await changes.make(body(int(clock.monotonic()) // PEOPLE_SECS))
        await clock.advance(1, sleepers=1)
        if second % FLUSH_SECS == FLUSH_SECS // 2:
            each.settle()


def _commit_each(each: Card, mode: str) -> Day:
    """An hour of the same with a commit for each change, told as a day."""
    house = House()
    database = sqlite3.connect(each.folder / "home.db", isolation_level=None)
    try:
        database.execute(f"PRAGMA journal_mode={mode}")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT)")
        for number in range(DEVICES):
            _put(database, house, number)
        written, flushes = each.written(), each.flushes()
        for second in range(1, HOUR + 1):
            _put(database, house, house.change())
            if second % PEOPLE_SECS == 0:
                database.execute("REPLACE INTO state VALUES (?, ?)", (f"room/{second}", '{"name":"Room"}'))
            if second % FLUSH_SECS == FLUSH_SECS // 2:
                each.settle()
        scale = DAY / HOUR
        return Day(
            written=(each.written() - written) * scale,
            payload=0,
            syncs=0,
            flushes=None if flushes is None else ((each.flushes() or 0) - flushes) * scale,
            changes=0,
            compactions=0,
        )
    finally:
        database.close()


def _put(database: sqlite3.Connection, house: House, number: int) -> None:
    value = {"attributes": house.lamps[number], "updated_at": Clock().now()}
    database.execute("REPLACE INTO state VALUES (?, ?)", (f"state/{name(number)}", orjson.dumps(value).decode()))
