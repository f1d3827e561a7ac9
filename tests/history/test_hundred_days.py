"""Simulates many days in a home with 200 devices. Each day stays within its budget, memory does not grow, and the
history is readable.

`PROOF_HISTORY_DAYS=365 python3 build.py test -m release -k each_day_stays` simulates a whole year in five minutes.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path

import pytest

from appliance.allocator import resident_bytes
from appliance.clock import Clock, to_millis
from appliance.history.card_history import CardHistory
from appliance.history.collector import Collector
from appliance.history.day_budget import Written
from appliance.history.execution_history import ExecutionEntry, ExecutionStatus
from appliance.history.period import Period
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.events import CommandEnded
from appliance.settings import HistorySettings
from appliance.store.disk import Disk
from appliance.store.month_files import MonthFiles

SENSORS, METERS, SWITCHES, SWITCHINGS = 150, 30, 20, 500
BEAT_SECS, DAY_SECS = 300, 86_400
START = datetime(2027, 1, 1, tzinfo=UTC)


class Year(Clock):
    """A clock that the test advances."""

    elapsed = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed


class Home:
    """A home with reports of temperatures every minute, reports of power every ten seconds, and switches. The
    collector decides what is written."""

    def __init__(self, clock: Year, bus: Bus, collector: Collector) -> None:
        chance = random.Random(1)
        self._clock, self._bus, self._collector, self._chance = clock, bus, collector, chance
        self._degrees = cycle([round(chance.gauss(21, 2), 1) for _ in range(9973)])
        self._watts = cycle([round(chance.uniform(1, 900), 1) for _ in range(9967)])
        self._is_on = [False] * SWITCHES

    def live(self) -> None:
        """Simulate one period of five minutes."""
        at = to_millis(self._clock.now())
        for number in range(SENSORS):
            hours = self._collector._find_numbers((f"virtual:d{number}", "temperature"), {"unit": "celsius"})
            assert hours is not None
            for step in range(0, BEAT_SECS * 1000, 60_000):
                hours.report(at + step, next(self._degrees))
        for number in range(SENSORS, SENSORS + METERS):
            hours = self._collector._find_numbers((f"virtual:d{number}", "power_consumption"), {"unit": "W"})
            assert hours is not None
            for step in range(0, BEAT_SECS * 1000, 10_000):
                hours.report(at + step, next(self._watts))
        for _ in range(SWITCHINGS * BEAT_SECS // DAY_SECS + (self._chance.random() < 0.74)):
            self._switch(at + self._chance.randrange(BEAT_SECS * 1000))

    def _switch(self, at: int) -> None:
        number = self._chance.randrange(SWITCHES)
        device_id, is_on = f"virtual:d{SENSORS + METERS + number}", not self._is_on[number]
        self._is_on[number] = is_on
        sent = Command(capability="power", action="on" if is_on else "off")
        source, now = "automation:evening_lights", self._clock.now()
        self._bus.publish(
            CommandEnded(
                at=now, source=source, room_id="hall", device_id=device_id, command=sent, status="ok", message=None
            )
        )
        self._collector._add_change((device_id, "power"), at, sent.action)
        status = ExecutionStatus.OK
        run = ExecutionEntry(
            subject="evening_lights", executed_at=now, status=status, error=None, results=(), duration_ms=7
        )
        self._collector.note_execution("automation", run)


DAYS = int(os.environ.get("PROOF_HISTORY_DAYS", "100"))
"""Number of simulated days in a release test. The days include three month ends, and are three times the kept
period."""


@pytest.mark.slow
@pytest.mark.parametrize("days", [12, pytest.param(DAYS, marks=pytest.mark.release)])
async def test_each_day_stays_within_its_budget_and_memory_does_not_grow(tmp_path: Path, days: int) -> None:
    settings, clock, bus = HistorySettings(), Year(), Bus()

    async def write_on(work: Callable[[], Written]) -> Written:
        return work()

    budget = settings.card_kb_per_day << 10
    months = MonthFiles(Disk(tmp_path))
    card = CardHistory(settings, months, bus, clock, write_on, lambda: True)
    home = Home(clock, bus, card.collector)
    written, held, writings = [], [], []
    async with card:
        for day in range(days):
            before = card.figures()
            for _ in range(DAY_SECS // BEAT_SECS):
                home.live()
                clock.elapsed += BEAT_SECS
                await card.beat()
            after = card.figures()
            written.append(after["bytes"] - before["bytes"])
            writings.append(after["writings"] - before["writings"])
            held.append(resident_bytes())
            assert written[-1] <= budget and after["lost"] == after["untracked"] == after["bad_lines"] == 0
            if day % 30 == 29 or day == days - 1:
                print(f"day {day + 1}: {written[-1] >> 10} KiB, {held[-1] / 1e6:.1f} MB, {after['files']}")
        assert after["thinned"] is None and max(writings) <= 4 and len(after["files"]) <= 3
        period = Period(start=clock.now() - timedelta(days=30), limit=1000)
        began = time.perf_counter()
        values = await card.read_attribute(("virtual:d7", "temperature"), period, 3000, lambda each: each)
        print(f"30 days of one attribute: {1000 * (time.perf_counter() - began):.0f} ms, {len(values.hours)} parts")
        assert len({hour.start for _, hour in values.hours}) == 24 * min(days, 30)
    print(f"at most {max(written) >> 10} KiB a day, {sum(written) / days / 1024:.0f} in the mean; {after}")
    settled = held[min(60, days - 8) :]  # the size is stable after the first days have been removed
    assert max(settled) - settled[0] < 4 << 20, "memory grows"
