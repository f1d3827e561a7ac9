"""History on the card: writes and their sizes, reads, and faulty clocks and cards."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from secrets import token_hex
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from appliance.clock import to_millis
from appliance.history.card_lines import month_at, month_of
from appliance.history.collector import (
    MAX_ATTRIBUTES,
    MAX_CHANGES_BYTES,
    MAX_ENDED,
    MAX_PACKED_BYTES,
    MAX_UNTRACKED,
    CardEntry,
    Collected,
    CollectedHours,
    Collector,
    Importance,
)
from appliance.history.day_budget import LINE_END_BYTES, Written, allowance, fit
from appliance.history.device_history import AttributeEntry, Resolution
from appliance.history.execution_history import ExecutionEntry, ExecutionStatus
from appliance.history.home_history import HomeHistory
from appliance.history.hours import Hour
from appliance.history.period import Period
from appliance.history.series import SERIES_BYTES
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.events import CommandEnded, DeviceRemoved, DeviceStateChanged
from appliance.home.model import Device, DeviceKind, Metadata, changed_attributes
from appliance.settings import HistorySettings
from appliance.store.month_files import FoundLine, MonthFiles
from tests.fakes.clock import VirtualClock
from tests.fakes.moody_disk import MoodyDisk
from tests.history.test_device_history import _a_device

MONDAY = datetime(2026, 12, 7, tzinfo=UTC)
ALL = Period(limit=1000)
BEFORE_2030 = Period(end=datetime(2030, 1, 1, tzinfo=UTC), limit=1000)


def no_server(url: str, token: str | None) -> Any:
    """Fail, because the test uses no server."""
    raise AssertionError(url)


class Box:
    """A home whose devices change, and its card. At any time, at most one hub runs in this home."""

    def __init__(self, folder: Path, zone: str = "UTC", **settings: Any) -> None:
        self.disk = MoodyDisk(folder)
        self.months = MonthFiles(self.disk)
        self.clock = VirtualClock(MONDAY)
        self.settings = HistorySettings(**settings)
        self.zone: tzinfo = ZoneInfo(zone)
        self.is_trusted = True
        self.fault: Exception | None = None
        self._shape = _a_device()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Box]:
        """Run the hub. The hub writes its history when it ends."""
        self.bus = Bus()
        self.devices: dict[str, Device] = {}

        async def write_on(work: Callable[[], Written]) -> Written:
            if self.fault is not None:
                raise self.fault
            return work()

        self.history = HomeHistory(
            *(self.settings, self.bus, self.clock, self.zone),
            months=self.months,
            write_on=write_on,
            is_trusted=lambda: self.is_trusted,
            lines_to=no_server,
        )
        self.card: Any = self.history.card
        async with self.history:
            yield self

    def show(self, device_id: str = "lamp", **attributes: Any) -> None:
        previous, now = self.devices.get(device_id), self.clock.now()
        shown = {"state": "online", **({} if previous is None else previous.attributes), **attributes}
        device = replace(previous or self._shape, id=device_id, attributes=shown, updated_at=now, last_seen=now)
        self.devices[device_id] = device
        self.bus.publish(
            DeviceStateChanged(device=device, previous=previous, changed=changed_attributes(previous, device))
        )

    def pack(self) -> None:
        """Pack the history of the device, as happens when the device is removed."""
        self.history.devices.pack("lamp")
        self.card.collector.pack("lamp")

    def pass_time(self, **time: float) -> None:
        self.clock.suspend(timedelta(**time).total_seconds())

    async def values(
        self, attribute: str, resolution: Resolution = Resolution.RAW, device_id: str = "lamp", period: Period = ALL
    ) -> list[Any]:
        """Return the values of the entries, newest first. If an entry has a minimum and a maximum, include them."""
        found = await self.history.attributes.list_values(device_id, attribute, period, resolution)
        return [_values_of(entry) for entry in found.entries]


async def test_of_packed_data_beyond_the_limit_the_oldest_are_lost(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.run():
        for number in range(20):
            bulky = {token_hex(MAX_PACKED_BYTES // 20): "on"}
            box.show(f"lamp{number}", brightness=number, power="on", **bulky)
            box.bus.publish(DeviceRemoved(device_id=f"lamp{number}"))
            assert await box.history.pack()
        figures = box.card.collector.figures()
        assert figures["lost"] > 0 and figures["numbers"] == 0
        assert not await box.history.pack()
    async with box.run():
        assert await box.values("power", device_id="lamp19") == ["on"]
        assert await box.values("power", device_id="lamp0") == []


def _values_of(entry: AttributeEntry) -> Any:
    return entry.value if entry.low is None else (entry.low, entry.value, entry.high)


@pytest.mark.parametrize("is_packed", [False, True])
async def test_the_last_hours_before_a_stop_survive_it(tmp_path: Path, *, is_packed: bool) -> None:
    box = Box(tmp_path)
    pack = box.pack if is_packed else lambda: None
    async with box.run():
        box.show(temperature={"value": 20, "unit": "celsius"}, power="off", motion=False)
        pack()
        box.pass_time(minutes=30)
        box.show(temperature={"value": 22, "unit": "celsius"}, power="on")
        pack()
        box.pass_time(minutes=90)
        box.show(temperature={"value": 24, "unit": "celsius"}, motion=True)
        before = await box.values("temperature", Resolution.HOUR)
        pack()
    async with box.run():
        degrees = [{"value": number, "unit": "celsius"} for number in (20, 21, 22, 24)]
        hours = [(degrees[3], degrees[3], degrees[3]), (degrees[0], degrees[1], degrees[2])]
        assert await box.values("temperature", Resolution.HOUR) == before == hours
        assert await box.values("temperature") == hours
        assert await box.values("power") == ["on", "off"] and await box.values("motion") == [True, False]
        assert await box.values("power", period=Period(start=datetime(999, 1, 1, tzinfo=UTC))) == ["on", "off"]
        found = await box.history.attributes.list_values("lamp", "temperature", ALL, Resolution.RAW)
        assert found.resolution is Resolution.HOUR
        found = await box.history.attributes.list_values("lamp", "power", ALL, Resolution.RAW)
        assert found.resolution is Resolution.RAW
        assert await box.values("temperature", Resolution.DAY) == [
            (degrees[0], {**degrees[0], "value": 21.0}, degrees[3])
        ]


async def test_values_in_memory_come_from_memory(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.run():
        box.show(brightness=10)
    box.pass_time(hours=2)
    async with box.run():
        box.show(brightness=30)
        box.pass_time(seconds=1)
        box.show(brightness=40)
        assert await box.values("brightness") == [40, 30, (10, 10, 10)]
        box.show(volume=5)
        box.pass_time(seconds=20)
        box.show(volume=6)
        found = await box.history.attributes.list_values("lamp", "volume", ALL, Resolution.RAW)
        assert ([entry.value for entry in found.entries], found.resolution) == ([6, 5], Resolution.RAW)
        box.pass_time(hours=3)
        assert await box.values("volume") == [6, 5]
        since = Period(start=box.clock.now() - timedelta(hours=3, seconds=21))
        found = await box.history.attributes.list_values("lamp", "brightness", since, Resolution.RAW)
        assert ([entry.value for entry in found.entries], found.resolution) == ([40, 30], Resolution.RAW)


async def test_history_is_written_four_times_a_day_and_at_the_stop(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.run():
        for minute in range(3 * 24 * 60):
            box.show(temperature=minute)
            if minute % 5 == 0:
                await box.card.beat()
            box.pass_time(minutes=1)
        assert box.card.figures()["writings"] == 11, "the first quarter of the first day is the start's"
        syncs = box.disk.syncs
    assert box.disk.syncs == syncs + 1
    async with box.run():
        box.show(temperature=1)
        day = Period(start=MONDAY, end=MONDAY + timedelta(days=1, seconds=-1), limit=1000)
        entries = await box.values("temperature", Resolution.HOUR, period=day)
        assert entries[::-1] == [(60 * hour, 60 * hour + 29.5, 60 * hour + 59) for hour in range(24)]


async def test_days_begin_at_midnight_at_home(tmp_path: Path) -> None:
    for zone, since, midnights in (
        ("Asia/Kolkata", MONDAY, [f"2026-12-0{day}T00:00:00+05:30" for day in (9, 8, 7)]),
        (
            "America/Havana",
            datetime(2027, 11, 6, 5, tzinfo=UTC),
            ["2027-11-07T00:00:00-04:00", "2027-11-06T00:00:00-04:00"],
        ),
    ):  # in this time zone, the first hour of the 7th occurs twice
        box = Box(tmp_path / zone[:4], zone)
        box.clock = VirtualClock(since)
        async with box.run():
            for hour in range(48):
                box.show(brightness=hour)
                box.pass_time(hours=1)
            found = await box.history.attributes.list_values("lamp", "brightness", ALL, Resolution.DAY)
            times = [entry.observed_at.astimezone(box.zone).isoformat() for entry in found.entries]
        assert times == midnights


class WatchedZone(tzinfo):
    """UTC, with the threads that converted times."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def utcoffset(self, _: datetime | None) -> timedelta:
        self.threads.add(threading.get_ident())
        return timedelta()

    def dst(self, _: datetime | None) -> timedelta:
        return timedelta()

    def tzname(self, _: datetime | None) -> str:
        return "UTC"


@pytest.mark.parametrize("keep_days", [30, 0])
async def test_values_are_summarised_on_one_other_thread(tmp_path: Path, keep_days: int) -> None:
    box = Box(tmp_path, keep_days=keep_days)
    box.zone = zone = WatchedZone()
    async with box.run():
        for number in range(3):
            box.show(power=f"on{number}", brightness=number)
            box.pass_time(hours=24)
        zone.threads.clear()
        names = ("power", "brightness") * 10
        found = await asyncio.gather(*(box.values(name, Resolution.DAY) for name in names))
        assert [values[0] for values in found] == ["on2", (2, 2, 2)] * 10
        assert len(zone.threads) == 1 and threading.get_ident() not in zone.threads


@pytest.mark.parametrize("keep_days", [30, 0])
async def test_hours_follow_the_homes_clock_with_a_card_and_without(tmp_path: Path, keep_days: int) -> None:
    box = Box(tmp_path, zone="Asia/Kolkata", keep_days=keep_days)
    async with box.run():
        box.pass_time(minutes=29)  # 5:59 in the home's time zone
        for number, word in enumerate(("on", "off", "on")):
            box.show(brightness=number, power=word)
            box.pass_time(minutes=20 * number + 2)
        assert await box.values("brightness", Resolution.HOUR) == [(0, 1.6, 2), (0, 0, 0)]
        assert await box.values("power", Resolution.HOUR) == ["on", "on"]


async def test_a_meter_counts_over_resets_and_restarts(tmp_path: Path) -> None:
    box = Box(tmp_path)

    def meter(value: float) -> dict[str, Any]:
        return {"value": value, "unit": "kWh", "period": "total"}

    async with box.run():
        for value in (100, 101, 103):
            box.show(energy_total=meter(value))
            box.pass_time(minutes=20)
        shown = box.devices
    box.pass_time(hours=3)
    async with box.run():
        box.devices = shown
        for value in (104, 0, 2):
            box.show(energy_total=meter(value))
            box.pass_time(minutes=20)
        found = await box.history.attributes.list_values("lamp", "energy_total", ALL, Resolution.DAY)
    assert [entry.gain for entry in found.entries] == [meter(3 + 1 + 0 + 2)]
    assert [entry.value for entry in found.entries] == [meter(2)]


async def test_commands_and_executions_survive_a_restart(tmp_path: Path) -> None:
    box = Box(tmp_path)
    sent = Command(capability="power", action="on")
    async with box.run():
        for status in ("ok", "error"):
            box.bus.publish(
                CommandEnded(
                    at=box.clock.now(),
                    source="room",
                    room_id="attic",
                    device_id="lamp",
                    command=sent,
                    status=status,
                    message=None if status == "ok" else "x" * 500,
                )
            )
            box.pass_time(minutes=1)
        box.history.new_executions("scene").add(
            ExecutionEntry(
                subject="evening",
                executed_at=box.clock.now(),
                status=ExecutionStatus.ERROR,
                error="it failed",
                results=({"status": "ok"},),
                duration_ms=12,
            )
        )
        known = [*map(time_of, box.history.commands.iterate_commands(ALL))]
        assert await box.card.older_commands(known, ALL, None) == []
    async with box.run():
        newest, oldest = await box.card.older_commands([], ALL, "lamp")
        assert len(newest["message"]) == 200 and oldest == {
            "recorded_at": "2026-12-07T00:00:00.000Z",
            "source": "room",
            "room_id": "attic",
            "device_id": "lamp",
            "command": {"capability": "power", "action": "on"},
            "status": "ok",
            "message": None,
        }
        assert await box.card.older_commands([], ALL, "lam") == []
        assert await box.card.older_commands([], Period(limit=1), None) == [newest]
        assert await box.card.older_commands([time_of(newest)], ALL, None) == [oldest]
        [run] = await box.card.older_executions([], ALL, "scene", "evening")
        assert (run.status, run.error, run.duration_ms, run.results) == (ExecutionStatus.ERROR, "it failed", 12, ())
        assert await box.card.older_executions([], ALL, "automation", "evening") == []
        assert await box.card.older_commands([0], ALL, None) == [newest, oldest]
        unset = replace(run, executed_at=datetime(1970, 1, 1, tzinfo=UTC))
        box.history.new_executions("scene").add(unset)
        assert await list_executions(box, ALL) == [unset, run]
        assert await list_executions(box, ALL, enough=1) == [unset]


def time_of(command: dict[str, Any]) -> int:
    return to_millis(datetime.fromisoformat(command["recorded_at"]))


async def list_executions(box: Box, period: Period, enough: int = 1000) -> list[ExecutionEntry]:
    found: list[ExecutionEntry] = []

    def take(entry: ExecutionEntry) -> bool:
        found.append(entry)
        return len(found) < enough

    await box.history.read_executions("scene", "evening", period, take)
    return found


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
async def test_a_failing_card_stops_only_writes(
    number: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    box = Box(tmp_path)
    with caplog.at_level(logging.INFO):
        async with box.run():
            box.disk.mood = number
            for minute in range(9 * 60):
                box.show(temperature=minute)
                await box.card.beat()
                box.pass_time(minutes=1)
            sentence = [record.message for record in caplog.records]
            assert len(sentence) == 1 and sentence[0].startswith("history cannot be written: "), sentence
            assert await box.values("temperature", Resolution.HOUR, period=Period(limit=2)) == [
                (480, 509.5, 539),
                (420, 449.5, 479),
            ]
            figures = box.card.figures()
            assert figures["failure"] and figures["failures"] == 3 and figures["writings"] == 0
            box.disk.mood = None
            await box.card.beat()
            assert box.card.figures()["failure"] is None
            assert caplog.records[-1].message == "history can be written again" and len(caplog.records) == 2
    async with box.run():
        assert len(await box.values("temperature", Resolution.HOUR)) == 9, "nothing was lost"


async def test_a_stop_on_a_full_card_names_the_loss(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    box = Box(tmp_path)
    async with box.run():
        box.show(temperature=20)
        box.disk.mood = errno.ENOSPC
    assert caplog.records[-1].message.startswith("the hub stops; the history since the last write is lost: ")
    assert "retries" not in caplog.text


async def test_lines_are_kept_after_any_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    box = Box(tmp_path)
    async with box.run():
        box.show(power="on", temperature=20)
        box.pass_time(hours=7)
        box.fault = MemoryError("no room")
        await box.card.beat()
        assert box.card.figures()["failure"] == "MemoryError: no room"
        box.fault = None
    assert "history cannot be written: MemoryError: no room" in caplog.text
    async with box.run():
        assert await box.values("power") == ["on"] and len(await box.values("temperature", Resolution.HOUR)) == 1


async def test_a_damaged_file_loses_its_damaged_lines_which_are_counted(tmp_path: Path) -> None:
    box = Box(tmp_path)
    for number in range(3):
        async with box.run():
            box.show(brightness=number)
        box.pass_time(hours=1)
    file = tmp_path / "history" / "2026-12.jsonl"
    file.write_bytes(file.read_bytes().replace(b",1,1,1]", b",1,1,7]"))
    async with box.run():
        for _ in range(2):
            assert await box.values("brightness") == [(2, 2, 2), (0, 0, 0)]
        assert box.card.figures()["bad_lines"] == 1
        box.show(brightness=5)
    async with box.run():
        assert await box.values("brightness") == [(5, 5, 5), (2, 2, 2), (0, 0, 0)]


async def test_lines_of_an_older_version_are_read(tmp_path: Path) -> None:
    file = tmp_path / "history" / "2026-10.jsonl"
    file.parent.mkdir()
    file.write_bytes(
        b'{"format":1,"kind":"history","month":"2026-10","crc":"e5f3e7ff"}\n'
        b'{"d":"lamp","a":"brightness","u":null,"t":1791936000,"h":[[0,0,1,1,1]],"crc":"40c95f56"}\n'
    )
    box = Box(tmp_path)
    async with box.run():
        assert await box.values("brightness") == [(1, 1, 1)]


async def test_the_clock_can_jump_by_years(tmp_path: Path) -> None:
    box = Box(tmp_path, keep_days=2)
    async with box.run():
        for day, instant in enumerate((MONDAY, datetime(2038, 2, 1, tzinfo=UTC), MONDAY + timedelta(hours=8))):
            box.clock.set(instant)
            for hour in range(7):
                box.show(brightness=10 * day + hour)
                await box.card.beat()
                box.pass_time(hours=1)
        assert len(await box.values("brightness", Resolution.HOUR)) == 21
        assert (
            len(await box.values("brightness", Resolution.HOUR, period=Period(end=datetime(2030, 1, 1, tzinfo=UTC))))
            == 14
        )
    assert sorted(each.name for each in (tmp_path / "history").iterdir()) == ["2026-12.jsonl", "2038-02.jsonl"]
    box.clock.set(datetime(1970, 1, 1, tzinfo=UTC))
    async with box.run():
        box.is_trusted = False
        box.show(brightness=3)
        box.clock.set(MONDAY + timedelta(days=1))
        box.is_trusted = True
        box.show(brightness=99)
        values = await box.values("brightness", period=BEFORE_2030)
        assert (values[0], values[-1], len(values)) == (99, 3, 16), "the card has the older values"
    async with box.run():
        values = await box.values("brightness", period=BEFORE_2030)
        assert values[0] == (99, 99, 99) and len(values) == 15, "1970 was no time at all"


async def test_whole_months_are_deleted_after_days_with_writes(tmp_path: Path) -> None:
    box = Box(tmp_path, keep_days=30)
    async with box.run():
        for day in range(120):
            if day < 10 or day > 70:  # the hub is off for two months
                box.show(brightness=day)
                await box.card.beat()
            box.pass_time(days=1)
            if day == 80:
                assert [*box.card.figures()["files"]] == ["2026-12", "2027-02"]
        assert [*box.card.figures()["files"]] == ["2027-03", "2027-04"]


async def test_months_that_are_not_needed_are_not_read(tmp_path: Path) -> None:
    box = Box(tmp_path, keep_days=3660)
    async with box.run():
        for _ in range(100):
            box.show(brightness=1)
            box.show(brightness=2)
            await box.card.beat()
            box.pass_time(days=1)
    async with box.run():
        asked: list[str] = []
        starts: list[int] = []
        find = MonthFiles.find

        class Watched(MonthFiles):
            def find(
                self, month: str, beginning: bytes, start: int = 0, end: int | None = None
            ) -> Iterator[FoundLine]:
                asked.append(month)
                starts.append(start)
                return find(self, month, beginning, start, end)

        box.card._months = Watched(box.disk)
        assert len(await box.values("brightness", Resolution.HOUR, period=Period(limit=5))) == 5
        assert {*asked} == {"2027-03"}
        asked.clear()
        assert len(await box.values("brightness", Resolution.DAY, period=Period(limit=40))) == 40
        assert len(await box.values("brightness", period=ALL)) == 100
        assert {"2026-12"} <= {*asked}
        asked.clear()
        end = datetime(2027, 1, 20, tzinfo=UTC)
        for _ in range(2):
            asked.clear()
            starts.clear()
            found = await box.values("brightness", period=Period(start=end - timedelta(days=3), end=end))
            assert len(found) == 4 and {*asked} == {"2027-01"} and min(starts) > 1000, "read the latest writes"
        box.show(brightness=7)
        await box.card.write()
        today = Period(start=box.clock.now() - timedelta(days=1), limit=10)
        assert len(await box.values("brightness", Resolution.HOUR, period=today)) >= 1


async def test_without_values_nothing_is_written(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.run():
        await box.card.write()
    assert not (tmp_path / "history").exists()


async def test_values_that_cannot_be_stored_are_omitted(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.run():
        box.show(name="x" * 300, huge=list(range(1000)), big=1 << 70, shape={"r": 1, "g": 2})
        box.bus.publish(DeviceRemoved(device_id="lamp"))
    async with box.run():
        assert await box.values("name") == ["x" * 199 + "…"]
        assert await box.values("huge") == await box.values("big") == []
        assert await box.values("shape") == [{"r": 1, "g": 2}]


async def test_without_a_card_hours_come_from_memory(tmp_path: Path) -> None:
    box = Box(tmp_path, keep_days=0)
    async with box.run():
        box.show(brightness=10, power="on")
        box.pass_time(minutes=30)
        box.show(brightness=20)
        box.pass_time(minutes=30)
        assert await box.values("brightness", Resolution.HOUR) == [(10, 15, 20)]
        assert await box.values("power", Resolution.DAY) == ["on"]
        assert box.card is None


def collected(*, attributes: int, entries: int) -> Collected:
    """Return the collected data of six hours: attributes, the most frequent attributes first, and alternating
    commands and skipped executions."""
    hours = [Hour(start=3600 * hour, secs=3600, low=1.5, value=2.5, high=3.5) for hour in range(6)]
    return Collected(
        hours=[
            CollectedHours(key=("lamp", f"a{number}"), parts=None, hours=hours, reports=1000 - number)
            for number in range(attributes)
        ],
        changes={("lamp", "power"): [(1000 * number, "on") for number in range(50)]},
        entries=[
            CardEntry(number, Importance.COMMAND if number % 2 else Importance.SKIPPED, b"{%d}" % number)
            for number in range(entries)
        ],
    )


def test_beyond_the_budget_the_most_frequent_attributes_are_thinned_first() -> None:
    found = collected(attributes=20, entries=10)
    whole, nothing_left_out = fit(found, 1 << 20, noted := Written()), Written()
    size = sum(len(line) + LINE_END_BYTES for line in whole)
    assert len(whole) == 31 and noted == nothing_left_out
    for share in (0.95, 0.7, 0.5, 0.3, 0.1, 0.02):
        lines = fit(found, int(size * share), noted := Written())
        assert sum(len(line) + LINE_END_BYTES for line in lines) <= size * share
        names = [name for _, name in noted.coarse]
        assert names[: len(names) - 1] == [f"a{number}" for number in range(len(names) - 1)]
        if noted.omitted:
            assert len(names) == 21 and noted.omitted[0] == ("lamp", "a0")
        if noted.omitted_entries:
            assert len(noted.omitted) == 21 and b"{0}" not in lines
    nothing = fit(found, 0, noted := Written())
    assert nothing == [] and noted.omitted_entries == 10


def test_each_quarter_of_a_day_adds_its_part_of_the_budget() -> None:
    hour = 3_600_000
    assert [allowance(1000, 0, at * hour) for at in (0, 5, 6, 12, 23, 24)] == [250, 250, 500, 750, 1000, 250]
    assert allowance(1000, 900, 23 * hour) == 100 and allowance(1000, 900, 0) == 0


@pytest.mark.slow
async def test_a_day_stays_within_its_budget_and_lists_thinned_attributes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    box = Box(tmp_path, card_kb_per_day=16)
    async with box.run():
        for minute in range(2 * 24 * 60):
            for number in range(40 if minute % 10 == 0 else 2):
                box.show(f"d{number}", temperature=minute)
            if minute % 5 == 0:
                await box.card.beat()
            box.pass_time(minutes=1)
            assert box.card.figures()["day_bytes"] <= (16 << 10) + 400, "but for the ends of the writings"
        thinned = box.card.figures()["thinned"]
        [warning] = [each.getMessage() for each in caplog.records if "card_kb_per_day" in each.getMessage()]
        assert "; attributes stored in less detail: " in warning
        assert ": 0" not in warning, "only true parts"
        assert thinned["coarse"] > 0 and thinned["attributes"][0] in ("d0/temperature", "d1/temperature")
    size = (tmp_path / "history" / "2026-12.jsonl").stat().st_size
    assert size <= (3 * 16 << 10), size


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (datetime(2026, 10, 31, 23, 59, 59, 999_000, tzinfo=UTC), "2026-10"),
        (datetime(2026, 11, 1, tzinfo=UTC), "2026-11"),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "1969-12"),
        (datetime(999, 1, 1, tzinfo=UTC), "0999-01"),
        (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), "9999-12"),
    ],
)
def test_each_time_belongs_to_one_month(moment: datetime, expected: str) -> None:
    assert month_of(moment.timestamp()) == month_at(moment) == expected


async def test_values_that_arrive_during_a_write_are_written_by_the_next_write(tmp_path: Path) -> None:
    box, count = Box(tmp_path), 50
    async with box.run():
        for number in range(count):
            box.show(f"lamp{number}", brightness=number, power="on")
        taken, collector = Collected(), box.card.collector
        for step, _ in enumerate(collector.take(taken, box.card._now)):
            box.pass_time(minutes=1)
            for number in (0, step, count - 1):
                box.show(f"lamp{number}", brightness=100 + step, power="off" if step % 2 else "on")
        assert step == count - 1
        later = Collected()
        for _ in collector.take(later, box.card._now):
            pass
        changes = [(each.changes.get(("lamp0", "power"), [])) for each in (taken, later)]
        assert [len(each) for each in changes] == [1, count - 1]
        hours = [
            hour for each in (taken, later) for found in each.hours if found.key[0] == "lamp0" for hour in found.hours
        ]
        assert sum(hour.secs for hour in hours) == count * 60
        for each in (taken, later):
            for _ in collector.put_back(each):
                pass
    async with box.run():
        assert len(await box.values("power", device_id="lamp0")) == count
        assert await box.values("brightness", device_id=f"lamp{count // 2}") == [(25, 73.0, 125)]


async def test_a_device_that_changes_its_unit_with_every_report_fills_no_memory(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.run():
        for number in range(MAX_ENDED + 100):
            box.show(energy={"value": number, "unit": ("Wh", "kWh")[number % 2]})
        taken = Collected()
        for _ in box.card.collector.take(taken, box.card._now):
            pass
        assert len(taken.hours) == MAX_ENDED + 1
        assert box.card.collector.figures()["lost"] == 99


async def test_long_texts_that_change_often_fill_no_memory(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.run():
        box.show("lamp1", custom="quiet")
        for number in range(2 * MAX_CHANGES_BYTES // 250):
            box.show(**{f"text{number % 20}": f"{number} ".ljust(250, "x")})
            box.pass_time(seconds=1)
        collector = box.card.collector
        assert MAX_CHANGES_BYTES / 2 < collector._changes_bytes < MAX_CHANGES_BYTES + 21 * SERIES_BYTES
        assert collector.figures()["lost"] > 0
        taken = Collected()
        for _ in collector.take(taken, box.card._now):
            pass
        assert collector._changes_bytes == 0
        assert [each[1] for each in taken.changes["lamp1", "custom"]] == ["quiet"]
        newest = taken.changes["lamp", f"text{number % 20}"][-1][1]
        assert newest.startswith(f"{number} "), "the newest change remains"
        for _ in collector.put_back(taken):
            pass
        box.pack()
        collector.pack("lamp1")
        assert collector._changes_bytes == 0


def test_attributes_beyond_the_limit_are_counted_once_each_up_to_a_limit() -> None:
    bus = Bus()
    collector = Collector(bus, 0)
    at = datetime(2026, 1, 1, tzinfo=UTC)

    def report(numbers: range, value: str) -> int:
        for number in numbers:
            device = Device(
                id=f"x:{number}",
                room_id=None,
                kind=DeviceKind.SENSOR,
                attributes={"motion": value},
                metadata=Metadata(source="x"),
                updated_at=at,
                last_seen=at,
            )
            bus.publish(DeviceStateChanged(device=device, previous=None, changed=frozenset(device.attributes)))
        return collector.figures()["untracked"]

    assert report(range(MAX_ATTRIBUTES), "clear") == 0
    more = range(MAX_ATTRIBUTES, MAX_ATTRIBUTES + 3)
    assert report(more, "clear") == report(more, "detected") == 3
    assert report(range(MAX_ATTRIBUTES, MAX_ATTRIBUTES + MAX_UNTRACKED + 5), "clear") == MAX_UNTRACKED
    collector.close()
