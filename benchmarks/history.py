"""History on the card: a home of 200 devices, simulated, and then a real hub on what that has written."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from appliance.api.hub_metrics import resident_bytes
from appliance.clock import Clock
from appliance.history.card_lines import encode_hours
from appliance.history.card_writer import Written
from appliance.history.home_history import HomeHistory
from appliance.history.hours import Hour
from appliance.history.line_writer import PostLines
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.events import CommandEnded, DeviceStateChanged
from appliance.home.model import Device, DeviceKind, Metadata
from appliance.settings import HistorySettings
from appliance.store.disk import Disk
from appliance.store.month_files import MonthFiles
from benchmarks._client import percentile, until_ready
from benchmarks._frame import Row, Sample
from benchmarks._processes import ask, hub

SENSORS, METERS, SWITCHES = 150, 30, 20
"""Temperatures each minute, power each ten seconds, and what is switched: 200 devices."""

SWITCHINGS = 500
"""A day, each a command and a change."""

DAYS = 3
"""Of the simulation, which passes the bus; a hundred days of the card are in `tests/history/test_hundred_days.py`."""

START = datetime(2027, 1, 1, tzinfo=UTC)
MONTH_OF_HOURS = datetime(2026, 10, 1, tzinfo=UTC)
KIB_PER_DAY = HistorySettings().card_kb_per_day

MOST_A_DAY = Row(label="written to the card on a day, at most", unit="KiB", at_most=KIB_PER_DAY)
USUAL = Row(label="written to the card on a day, in the mean", unit="KiB")
WRITINGS = Row(label="writings a day", unit="", at_most=4)
COST = Row(label="a change of one attribute, noted for memory and card", unit="µs")
GROWTH = Row(label="memory that grew on the last of these days", unit="MB", at_most=2)
MONTH = Row(label="GET a month of hours of one attribute, p50", unit="ms", at_most=100)
MONTH_RAW = Row(label="GET a month of one attribute, raw, p50", unit="ms", at_most=100)
MEMORY = Row(
    label="memory of hub and worker (PSS) with 200 devices, after those months were read", unit="MB", at_most=60
)

VIRTUAL = """
[[adapters.virtual.devices]]
id = "d{number}"
attributes = {attributes}
"""


class SimulatedTime(Clock):
    """Seconds since the start, as the simulation says."""

    def __init__(self) -> None:
        self.elapsed = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed


class SimulatedHome:
    """Devices whose changes reach a history that writes to the folder."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.clock, self.bus = SimulatedTime(), Bus()
        self.history = HomeHistory(HistorySettings(), self.bus, self.clock, UTC)
        self.changes = 0
        self.months = MonthFiles(Disk(folder))
        self._chance = random.Random(seed)
        self._devices: dict[int, Device] = {}
        self.day_bytes: list[int] = []

    async def live(self, days: int, progress: Callable[[int], None] = lambda day: None) -> None:
        """Let so many days pass; the history is written as a hub writes it, and at the end."""

        async def write_on(work: Callable[[], Written]) -> Written:
            return work()

        history = self.history.connect(self.months, write_on, lambda: True, _no_server)
        async with history:
            assert history.card is not None
            for day in range(days):
                before = history.card.figures()["bytes"]
                await self._live_a_day(day)
                self.day_bytes.append(history.card.figures()["bytes"] - before)
                progress(day)
            self.writings = history.card.figures()["writings"]
            self.figures = history.card.figures()

    async def _live_a_day(self, day: int) -> None:
        switchings = sorted(self._chance.uniform(0, 86_400) for _ in range(SWITCHINGS))
        for step in range(8640):
            at = 86_400.0 * day + 10 * step
            self.clock.elapsed = at
            for number in range(METERS):
                self._show(SENSORS + number, "power_consumption", "W", round(self._chance.uniform(1, 900), 1))
            if step % 6 == 0:
                for number in range(SENSORS):
                    self._show(number, "temperature", "celsius", round(self._chance.gauss(21, 2), 1))
            while switchings and switchings[0] <= 10 * step:
                switchings.pop(0)
                self._switch(SENSORS + METERS + self._chance.randrange(SWITCHES))
            if step % 30 == 0:
                await self.history.beat()

    def _show(self, number: int, attribute: str, unit: str, value: float) -> None:
        self._publish(number, {attribute: {"value": value, "unit": unit}})

    def _switch(self, number: int) -> None:
        known = self._devices.get(number)
        action = "on" if known is None or known.attributes["power"] == "off" else "off"
        self.bus.publish(
            CommandEnded(
                at=self.clock.now(),
                source="automation:evening_lights",
                room_id="living_room",
                device_id=f"virtual:d{number}",
                command=Command(capability="power", action=action),
                status="ok",
                message=None,
            )
        )
        self._publish(number, {"power": action})

    def _publish(self, number: int, attributes: dict[str, object]) -> None:
        self.changes += 1
        now, known = self.clock.now(), self._devices.get(number)
        shown = {"state": "online", **attributes}
        made = Device(
            id=f"virtual:d{number}",
            room_id=None,
            kind=DeviceKind.SENSOR,
            attributes=shown,
            metadata=Metadata(source="virtual", vendor_specific={}),
            updated_at=now,
            last_seen=now,
        ) if known is None else replace(known, attributes=shown, updated_at=now)  # fmt: skip
        self._devices[number] = made
        self.bus.publish(DeviceStateChanged(device=made, previous=known))


def _no_server(url: str, token: str | None) -> PostLines:
    raise AssertionError(url)


def measure(rounds: int) -> Iterator[Sample]:
    """One simulation, then so many rounds of reading."""
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as place:
        folder = Path(place)
        (folder / "data").mkdir(mode=0o700)
        home, grown = SimulatedHome(folder / "data"), []
        began = time.process_time()
        asyncio.run(home.live(DAYS, lambda day: grown.append((resident_bytes() or 0) / 1e6)))
        yield COST.sample(1e6 * (time.process_time() - began) / home.changes)
        yield MOST_A_DAY.sample(max(home.day_bytes) / 1024)
        yield USUAL.sample(sum(home.day_bytes) / len(home.day_bytes) / 1024)
        yield WRITINGS.sample(home.writings / DAYS)
        yield GROWTH.sample(grown[-1] - grown[-2])
        _write_month(home.months)
        yield from _read(folder, rounds)


def _write_month(months: MonthFiles) -> None:
    """A month of hours of every sensor and meter, as four writings a day leave them."""
    first = int(MONTH_OF_HOURS.timestamp())
    for quarter in range(31 * 4):
        hours = [
            Hour(start=first + 3600 * (6 * quarter + hour), secs=3600, low=18.5, value=20.1234, high=22.5)
            for hour in range(6)
        ]
        lines = []
        for number in range(SENSORS + METERS):
            name, unit = ("temperature", "celsius") if number < SENSORS else ("power_consumption", "W")
            lines += [line for _, line in encode_hours(f"virtual:d{number}", name, {"unit": unit}, hours)]
        months.append(f"{MONTH_OF_HOURS:%Y-%m}", lines)


def _read(folder: Path, rounds: int) -> Iterator[Sample]:
    with hub("[adapters.virtual]\n" + "".join(map(_section, range(200))), folder=folder) as running:
        asyncio.run(until_ready(running.port))
        for row, resolution in ((MONTH, "hour"), (MONTH_RAW, "raw")):
            for number in range(max(rounds, 3)):
                query = f"resolution={resolution}&limit=1000&start=2026-10-01T00:00:00Z&end=2026-10-31T23:59:59Z"
                times = []
                for device in (5, 150 + number):
                    attribute = "temperature" if device < SENSORS else "power_consumption"
                    began = time.perf_counter()
                    body = ask(running.port, f"/devices/virtual:d{device}/history/{attribute}?{query}")
                    times.append(1000 * (time.perf_counter() - began))
                    found = json.loads(body.partition(b"\r\n\r\n")[2])
                    assert len(found["entries"]) == 31 * 24, len(found["entries"])
                yield row.sample(percentile(times, 50))
        yield MEMORY.sample(running.pss_mb())


def _section(number: int) -> str:
    attribute = '{ power = "on" }'
    if number < SENSORS + METERS:
        unit, name = ("celsius", "temperature") if number < SENSORS else ("W", "power_consumption")
        attribute = f'{{ {name} = {{ value = 20.0, unit = "{unit}" }} }}'
    return VIRTUAL.format(number=number, attributes=attribute)
