"""The recorder collects values that a power cut may lose. The recorder writes a value rarely, only if the value has
changed, and with the value's time."""

from __future__ import annotations

import asyncio
import errno
import shutil
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from appliance.clock import timestamp
from appliance.errors import StoreFailed
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.command_specs import CommandSpec
from appliance.home.model import OFFLINE, ONLINE, Device, DeviceKind, Observation, Report
from appliance.home.registry import Registry
from appliance.store.clock_trust import ClockTrust, newest_time
from appliance.store.disk import Disk
from appliance.store.document import Document, open_document
from appliance.store.record_keys import CARD, DEVICE_PREFIX, STATE_PREFIX
from appliance.store.recorder import (
    COMPLETE_FLUSHES,
    MAX_ENCODED_AT_ONCE,
    MAX_STOPPED_BYTES,
    MAX_STOPPED_DEVICES,
    Recorder,
)
from appliance.store.records import SectionKind
from appliance.store.store import Store
from appliance.version import MADE_AT
from tests.fakes.clock import VirtualClock
from tests.fakes.disk import RecordingDisk
from tests.fakes.moody_disk import MoodyDisk

LATER = MADE_AT + timedelta(days=30)


def new_recorder(registry: Registry, bus: Bus, document: Document, clock: VirtualClock) -> Recorder:
    trust = ClockTrust(clock, newest_time(document))
    return Recorder(registry, bus, document, clock, trust, flush_secs=300, sections={})


@asynccontextmanager
async def observed(
    folder: Path, clock: VirtualClock, disk: Disk | None = None
) -> AsyncIterator[tuple[Registry, Recorder, Document]]:
    """Provide a registry, its recorder, and a document in the folder. At the end, close the recorder and the document
    in the same way as the hub."""
    async with open_document(disk or Disk(folder), clock) as document:
        bus = Bus()
        registry = Registry(bus, clock)
        async with new_recorder(registry, bus, document, clock) as recorder:
            yield registry, recorder, document


@asynccontextmanager
async def recording(
    folder: Path, clock: VirtualClock, disk: Disk | None = None
) -> AsyncIterator[tuple[Recorder, Document]]:
    """Provide a recorder with a document in the folder."""
    async with observed(folder, clock, disk) as (_, recorder, document):
        yield recorder, document


def report(devices: int, attributes: Mapping[str, Any], vendor_specific: Mapping[str, Any] | None = None) -> Report:
    """Return a report of the sensors `a:0`, `a:1`, and so on, with equal attributes."""
    ids, specific = [f"a:{number}" for number in range(devices)], dict(vendor_specific or {})
    seen = (
        Observation(device_id=each, kind=DeviceKind.SENSOR, attributes=attributes, vendor_specific=specific)
        for each in ids
    )
    return Report(adapter="a", observations=tuple(seen))


def stored(document: Document, key: str) -> Any:
    value = document.get(key)
    return None if value is None else orjson.loads(value)


class SteppingClock(VirtualClock):
    """A clock on which every step of long work takes a second. Other work can therefore run between two steps."""

    def monotonic(self) -> float:
        self._elapsed += 1
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Return in the next iteration of the event loop. If the sleep is for the next flush, never return."""
        await (asyncio.Event().wait() if seconds >= 300 else asyncio.sleep(0))


@pytest.mark.parametrize("turns", range(12))
async def test_a_device_that_is_stored_during_a_flush_keeps_its_newest_state(tmp_path: Path, turns: int) -> None:
    clock = SteppingClock(LATER)
    async with observed(tmp_path, clock) as (registry, recorder, document):
        registry.apply(report(4, {"battery": 1}))
        flushing = asyncio.create_task(recorder.flush())
        for _ in range(turns):
            await asyncio.sleep(0)
        registry.apply(report(4, {"battery": 2}))
        await recorder.record(registry.list_devices(), {})
        await flushing
        assert [stored(document, f"{STATE_PREFIX}a:{each}")["is"] for each in range(4)] == [{"battery": 2}] * 4


async def test_an_unchanged_description_of_a_device_is_not_stored_again(tmp_path: Path) -> None:
    async with observed(tmp_path, VirtualClock(LATER)) as (registry, recorder, document):
        found = []
        for battery in (1, 2):
            registry.apply(report(1, {"battery": battery}))
            await recorder.record(registry.list_devices(), {})
            found.append(document.get(f"{DEVICE_PREFIX}a:0"))
        assert found[0] is not None and found[0] is found[1]
        assert stored(document, f"{STATE_PREFIX}a:0")["is"] == {"battery": 2}


class CountingRegistry(Registry):
    """Counts the devices that the recorder looks up."""

    found = 0

    def find_devices(self, ids: Iterable[str]) -> list[Device]:
        self.found += 1
        return super().find_devices(ids)


@pytest.mark.parametrize("turns", [10, 100, 190])
async def test_devices_that_change_during_a_flush_are_encoded_in_steps(tmp_path: Path, turns: int) -> None:
    clock, bus = SteppingClock(LATER), Bus()
    registry, most = CountingRegistry(bus, clock), 0

    async with (
        open_document(Disk(tmp_path), clock) as document,
        new_recorder(registry, bus, document, clock) as recorder,
    ):
        registry.apply(report(200, {"custom.a.b": "old"}))
        flushing = asyncio.create_task(recorder.flush())
        for turn in range(5000):
            registry.found = 0
            await asyncio.sleep(0)
            most = max(most, registry.found)
            if turn == turns:
                registry.apply(report(200, {"custom.a.b": "new"}))
            if flushing.done():
                break
        await flushing
        stored_words = [stored(document, f"{STATE_PREFIX}a:{each}")["is"] for each in range(200)]
        assert stored_words == [{"custom.a.b": "new"}] * 200
        assert most <= MAX_ENCODED_AT_ONCE


@pytest.mark.parametrize(
    ("attributes", "flushes"),
    [
        ({"battery": 3}, COMPLETE_FLUSHES),
        ({"temperature": {"value": 3, "unit": "celsius"}}, COMPLETE_FLUSHES),
        ({"power": "on"}, 1),
    ],
)
async def test_only_the_first_new_number_of_an_hour_is_written_soon(
    tmp_path: Path, attributes: Mapping[str, Any], flushes: int
) -> None:
    clock = VirtualClock(LATER)
    async with observed(tmp_path, clock) as (registry, recorder, document):
        registry.apply(report(2, {"battery": 1}))
        await recorder.flush()
        registry.apply(report(2, {"battery": 2}))
        await clock.advance(300, sleepers=1)
        before = document.get(f"{STATE_PREFIX}a:1")
        assert before is not None and orjson.loads(before)["is"] == {"battery": 2}, "the first new number"
        registry.apply(report(2, {"battery": 2, **attributes}))
        for number in range(2, flushes + 2):
            await clock.advance(300, sleepers=1)
            is_written = flushes == 1 or number >= COMPLETE_FLUSHES
            assert (document.get(f"{STATE_PREFIX}a:1") != before) == is_written, number


@pytest.mark.parametrize("is_new", [True, False])
async def test_the_numbers_of_a_new_or_returning_device_are_first_numbers(tmp_path: Path, *, is_new: bool) -> None:
    clock = VirtualClock(LATER)
    async with observed(tmp_path, clock) as (registry, recorder, document):
        if not is_new:
            registry.apply(report(1, {"battery": 1}))
            await recorder.flush()
            registry.set_state("a", OFFLINE)
        for number in range(1, COMPLETE_FLUSHES + 1):
            registry.apply(report(1, {"battery": 1 + number}))
            await clock.advance(300, sleepers=1)
            is_written = number in (1, COMPLETE_FLUSHES)
            assert stored(document, f"{STATE_PREFIX}a:0")["is"] == {"battery": 1 + (number if is_written else 1)}


async def test_an_outage_does_not_count_as_a_number(tmp_path: Path) -> None:
    clock = VirtualClock(LATER)
    async with observed(tmp_path, clock) as (registry, recorder, document):
        registry.apply(report(1, {"battery": 1}))
        await recorder.flush()
        for state in (OFFLINE, ONLINE):
            registry.set_state("a", state)
            await clock.advance(300, sleepers=1)
        registry.apply(report(1, {"battery": 2}))
        await clock.advance(300, sleepers=1)
        assert stored(document, f"{STATE_PREFIX}a:0")["is"] == {"battery": 2}


async def test_new_details_of_a_device_are_written_by_the_complete_flush(tmp_path: Path) -> None:
    clock = VirtualClock(LATER)
    async with observed(tmp_path, clock) as (registry, recorder, document):
        seen = Observation(device_id="a:1", kind=DeviceKind.SENSOR, attributes={})
        registry.apply(Report(adapter="a", observations=(seen,)))
        await recorder.flush()
        commands = (CommandSpec(capability="power", actions=("on",)),)
        seen = replace(seen, commands=commands, vendor_specific={"note": 1})
        registry.apply(Report(adapter="a", observations=(seen,)))
        for number in range(1, COMPLETE_FLUSHES + 1):
            await clock.advance(300, sleepers=1)
            written = stored(document, f"{DEVICE_PREFIX}a:1")
            is_written = (bool(written["commands"]), written["vendor_specific"]) == (True, {"note": 1})
            assert is_written == (number == COMPLETE_FLUSHES), number


@pytest.mark.parametrize("is_kept", [False, True])
async def test_values_of_a_stopped_section_remain_even_if_a_flush_is_running(
    tmp_path: Path, *, is_kept: bool
) -> None:
    clock = SteppingClock(LATER)
    async with observed(tmp_path, clock) as (registry, recorder, document):
        for battery in (1, 2):
            registry.apply(report(4, {"battery": battery}))
            flushing = asyncio.create_task(recorder.flush())
            await (asyncio.sleep(0) if battery == 2 else flushing)
        for device_id in [*registry.ids_of("a")]:
            registry.remove("a", device_id, is_kept=is_kept)
        await flushing
        await recorder.flush()
        assert registry.list_devices() == ()
        assert [document.get(f"{STATE_PREFIX}a:{each}") is not None for each in range(4)] == [is_kept] * 4


@pytest.mark.parametrize("is_kept", [False, True])
async def test_no_ids_of_absent_devices_are_kept_after_a_flush(tmp_path: Path, *, is_kept: bool) -> None:
    clock = VirtualClock(LATER)
    async with observed(tmp_path, clock) as (registry, recorder, _):
        registry.apply(report(4, {"battery": 1}))
        await recorder.flush()
        for device_id in [*registry.ids_of("a")]:
            registry.remove("a", device_id, is_kept=is_kept)
        await recorder.flush()
        assert not any(vars(recorder._changed).values())


async def test_stored_devices_of_stopped_sections_are_limited(tmp_path: Path) -> None:
    """Otherwise, the store would grow with each new section name."""
    async with recording(tmp_path, VirtualClock(LATER)) as (recorder, document):
        recorder.sections = {"running": SectionKind("x", ())}
        times = {f"old{number % 100}:{number}": 10 + number for number in range(MAX_STOPPED_DEVICES)}
        times |= {f"running:{number}": 1 for number in range(10)}
        values = {prefix + each: {"at": at} for each, at in times.items() for prefix in (DEVICE_PREFIX, STATE_PREFIX)}
        await document.put_many(values)
        await recorder.delete_oldest_stopped()
        assert len(document.list_encoded((DEVICE_PREFIX, STATE_PREFIX))) == len(values)
        odd = {f"{STATE_PREFIX}odd:{number}": each for number, each in enumerate((7, {"at": "x"}))}
        await document.put_many({**odd, STATE_PREFIX + "new:1": {"at": 10_000}})
        await recorder.delete_oldest_stopped()
        left = document.list_encoded((DEVICE_PREFIX, STATE_PREFIX))
        assert values.keys() - left.keys() == {"device/old0:0", "state/old0:0"}
        assert not odd.keys() & left.keys() and STATE_PREFIX + "new:1" in left
        await document.put_many({STATE_PREFIX + "new:2": {"at": 10_000}})
    bus, clock = Bus(), VirtualClock(LATER)
    async with Store(Disk(tmp_path), Registry(bus, clock), bus, clock, flush_secs=60, sections={}) as store:
        # the sections were removed from the configuration while no hub ran
        assert len(store.document.list_encoded((STATE_PREFIX,))) == MAX_STOPPED_DEVICES


async def test_large_stored_devices_of_stopped_sections_are_limited(tmp_path: Path) -> None:
    async with recording(tmp_path, VirtualClock(LATER)) as (recorder, document):
        recorder.sections = {"running": SectionKind("x", ())}
        half = "x" * (MAX_STOPPED_BYTES // 8)
        for at, device_id in ((1, "running:1"), (4, "c:1"), (2, "a:1"), (3, "b:1"), (6, "e:1"), (5, "d:1")):
            await document.put_many(
                {DEVICE_PREFIX + device_id: {"name": half}, STATE_PREFIX + device_id: {"at": at, "is": {"x": half}}}
            )
        await recorder.delete_oldest_stopped()
        left = document.list_encoded((DEVICE_PREFIX, STATE_PREFIX))
        assert {each.partition("/")[2] for each in left} == {"running:1", "c:1", "d:1", "e:1"}


@pytest.mark.parametrize("is_killed", [True, False])
async def test_after_a_kill_stored_values_are_doubtful_until_the_device_reports(
    tmp_path: Path, *, is_killed: bool
) -> None:
    stopped, killed = tmp_path / "stopped", tmp_path / "killed"
    stopped.mkdir()
    bus, clock, repeated, crashes = Bus(), VirtualClock(LATER), list[Any](), list[bool]()
    bus.listen(repeated.append, events.DoubtfulValuesRepeated)
    later = killed if is_killed else stopped
    for folder, has_report in ((stopped, True), (later, False), (later, False), (later, True), (later, True)):
        registry = Registry(bus, clock)
        sections = {"a": SectionKind("x", (DeviceKind.SENSOR,))}
        async with Store(Disk(folder), registry, bus, clock, flush_secs=60, sections=sections) as store:
            if has_report:
                registry.apply(report(1, {"smoke": True}))
            await store.recorder.flush()
            crashes.append(store.has_crashed)
            if not killed.exists():
                shutil.copytree(stopped, killed)  # like the card at the time of a kill
    assert [each.attributes for each in repeated] == [{"smoke"}] * is_killed
    assert crashes == [False, is_killed, False, False, False]


@pytest.mark.parametrize("is_virtual", [True, False])
@pytest.mark.parametrize("is_killed", [True, False])
@pytest.mark.parametrize("begins", ["by a reload", "at a start", "at the second start"])
async def test_after_a_kill_the_values_of_a_disabled_section_are_doubtful_once_it_is_enabled(
    tmp_path: Path, begins: str, *, is_killed: bool, is_virtual: bool
) -> None:
    stopped, killed = tmp_path / "stopped", tmp_path / "killed"
    stopped.mkdir()
    bus, clock, repeated = Bus(), VirtualClock(LATER), list[Any]()
    bus.listen(repeated.append, events.DoubtfulValuesRepeated)
    later, enabled = killed if is_killed else stopped, {"a": SectionKind("x", (DeviceKind.SENSOR,))}
    disabled: dict[str, SectionKind] = {}
    seen = report(1, {"smoke": True}, vendor_specific={"virtual": True} if is_virtual else {})
    for folder, sections, has_report in (
        (stopped, enabled, True),
        (later, disabled, begins == "by a reload"),
        *[(later, disabled, False)] * (begins == "at the second start"),
        (later, enabled, True),
    ):
        registry = Registry(bus, clock)
        async with Store(Disk(folder), registry, bus, clock, flush_secs=60, sections=sections) as store:
            if has_report and sections is disabled:
                store.recorder.sections = enabled
                await store.restore_section("a")
            if has_report:
                registry.apply(seen)
            await store.recorder.flush()
            if not killed.exists():
                shutil.copytree(stopped, killed)  # like the card at the time of a kill
    assert [each.attributes for each in repeated] == [{"smoke"}] * (is_killed and not is_virtual)


@pytest.mark.parametrize("due", ["none", "before", "after"])
async def test_minor_values_wait_for_a_complete_flush_unless_another_value_of_their_key_is_due(
    tmp_path: Path, due: str
) -> None:
    clock = VirtualClock(LATER)
    async with recording(tmp_path, clock) as (_, document):
        if due == "before":
            document.put_later("automation/a", {"waits": 1})
        document.put_later("automation/a", {"run": 1}, is_minor=True)
        if due == "after":
            document.put_later("automation/a", {"run": 1, "waits": 1})
        expected = {"run": 1, "waits": 1} if due == "after" else {"run": 1}
        assert document.list_later() == {"automation/a": expected}
        for number in range(1, COMPLETE_FLUSHES + 1):
            await clock.advance(300, sleepers=1)
            is_written = due != "none" or number == COMPLETE_FLUSHES
            assert stored(document, "automation/a") == (expected if is_written else None)
        document.put_later("automation/a", {"run": 2}, is_minor=True)
    async with recording(tmp_path, clock) as (_, document):
        assert stored(document, "automation/a") == {"run": 2}, "the stop writes everything"


async def test_values_that_change_while_a_flush_encodes_others_are_stored_in_their_newest_form(
    tmp_path: Path,
) -> None:
    class Hasty(VirtualClock):
        """A clock that lets other tasks run after each step."""

        def monotonic(self) -> float:
            self.suspend(1)
            return super().monotonic()

    async with recording(tmp_path, Hasty(LATER)) as (recorder, document):
        for number in range(100):
            document.put_later(f"automation/{number}", {"run": 1})
        flushing = asyncio.ensure_future(recorder.flush())
        for number in (0, 99):
            await asyncio.sleep(0)
            document.put_later(f"automation/{number}", {"run": 2})
        assert not flushing.done()
        await flushing
        assert [stored(document, f"automation/{number}")["run"] for number in (0, 1, 99)] == [2, 1, 2]


async def test_a_minor_value_survives_failed_writes_of_its_key(tmp_path: Path) -> None:
    disk = MoodyDisk(tmp_path)
    async with recording(tmp_path, VirtualClock(LATER), disk) as (recorder, document):
        for key in ("automation/a", "automation/b"):
            document.put_later(key, {"run": 2}, is_minor=True)
        disk.mood = errno.ENOSPC
        putting = asyncio.ensure_future(document.put_many({"automation/a": {"waits": 1}}))
        await asyncio.sleep(0)
        document.put_later("automation/b", {"run": 3}, is_minor=True)
        with pytest.raises(StoreFailed):
            await putting
        await recorder.flush()
        disk.mood = None
        assert document.list_later() == {"automation/a": {"run": 2}, "automation/b": {"run": 3}}


async def test_none_removes_a_value_and_leaving_writes_the_rest(tmp_path: Path) -> None:
    async with recording(tmp_path, VirtualClock(LATER)) as (recorder, document):
        document.put_later("fired/dusk", {"last": 1})
        document.put_later("fired/dawn", {"last": 1})
    async with recording(tmp_path, VirtualClock(LATER)) as (recorder, document):
        assert stored(document, "fired/dusk") == {"last": 1}
        document.put_later("fired/dusk", None)
        await recorder.flush()
        assert stored(document, "fired/dusk") is None


async def test_a_half_written_entry_is_written_at_the_stop(tmp_path: Path) -> None:
    disk = MoodyDisk(tmp_path)
    async with recording(tmp_path, VirtualClock(LATER), disk) as (recorder, document):
        document.put_later("fired/dusk", {"last": 1})
        disk.mood = errno.EIO
        flush = asyncio.create_task(recorder.flush())
        await asyncio.sleep(0)
        flush.cancel()
        await asyncio.gather(flush, return_exceptions=True)
        disk.mood = None
    async with recording(tmp_path, VirtualClock(LATER)) as (_, document):
        assert stored(document, "fired/dusk") == {"last": 1}


async def test_the_next_flush_has_the_failed_entries(tmp_path: Path) -> None:
    disk = MoodyDisk(tmp_path)
    async with recording(tmp_path, VirtualClock(LATER), disk) as (recorder, document):
        document.put_later("fired/dusk", {"last": 1})
        document.put_later("fired/dawn", {"last": 1})
        disk.mood = errno.ENOSPC
        await recorder.flush()
        disk.mood = None
        document.put_later("fired/dawn", {"last": 2})
        await recorder.flush()
        assert (stored(document, "fired/dusk"), stored(document, "fired/dawn")) == ({"last": 1}, {"last": 2})


@pytest.mark.parametrize("is_full", [True, False])
async def test_a_stop_on_a_full_card_names_the_loss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_full: bool
) -> None:
    disk = MoodyDisk(tmp_path)
    async with recording(tmp_path, VirtualClock(LATER), disk) as (recorder, document):
        document.put_later("fired/dusk", {"last": 1})
        disk.mood = errno.ENOSPC
        await recorder.flush()
        disk.mood = errno.ENOSPC if is_full else None
    assert ("since the last flush are lost" in caplog.text) is is_full


async def written_at(folder: Path, clock: VirtualClock, number: int) -> tuple[bool, str]:
    """Start the recorder, write something, and stop it. Return two values: whether the clock was trusted, and the
    stored time."""
    async with recording(folder, clock) as (recorder, document):
        trust = ClockTrust(clock, newest_time(document))
        document.put_later("some/thing", {"number": number})
        await recorder.flush()
        return trust.is_trusted(), stored(document, CARD)["at"]


async def test_a_clock_before_the_newest_stored_time_is_not_trusted(tmp_path: Path) -> None:
    assert await written_at(tmp_path, VirtualClock(LATER), 1) == (True, timestamp(LATER))
    reset = VirtualClock(datetime(1970, 1, 1, tzinfo=UTC))
    assert await written_at(tmp_path, reset, 2) == (False, timestamp(LATER))
    behind = VirtualClock(LATER - timedelta(seconds=1))
    assert await written_at(tmp_path, behind, 3) == (False, timestamp(LATER))
    ahead = VirtualClock(LATER + timedelta(seconds=1))
    assert await written_at(tmp_path, ahead, 4) == (True, timestamp(LATER + timedelta(seconds=1)))


async def test_a_clock_before_the_date_of_this_version_is_not_trusted(tmp_path: Path) -> None:
    early = VirtualClock(MADE_AT - timedelta(days=1))
    assert await written_at(tmp_path, early, 1) == (False, timestamp(MADE_AT))


async def test_a_corrected_clock_is_trusted_after_a_restart(tmp_path: Path) -> None:
    clock = VirtualClock(LATER + timedelta(days=3650))
    async with recording(tmp_path, clock) as (recorder, document):
        document.put_later("some/thing", {"number": 1})
        await recorder.flush()
        clock.set(LATER)
        document.put_later("some/thing", {"number": 2})
    assert await written_at(tmp_path, VirtualClock(LATER + timedelta(seconds=1)), 3) == (
        True,
        timestamp(LATER + timedelta(seconds=1)),
    )


async def test_a_value_without_json_is_reported_once_and_blocks_no_other(caplog: pytest.LogCaptureFixture) -> None:
    bus, clock = Bus(), VirtualClock()
    async with open_document(RecordingDisk(), clock) as document:
        async with new_recorder(Registry(bus, clock), bus, document, clock) as recorder:
            for turn in range(2):
                document.put_later("automation/bad", {"text": "\ud800", "turn": turn})
                document.put_later("automation/good", {"turn": turn})
                await recorder.flush()
        assert dict(document.items("automation/")) == {"good": {"turn": 1}}
    assert len([each for each in caplog.messages if "'automation/bad' cannot be stored" in each]) == 1


async def test_a_durable_value_replaces_a_waiting_one_unless_it_fails(tmp_path: Path) -> None:
    clock, disk = VirtualClock(LATER), RecordingDisk()
    async with open_document(disk, clock) as document:
        bus = Bus()
        async with new_recorder(Registry(bus, clock), bus, document, clock):
            document.put_later("timer/a", {"end": 1})
            await document.put_many({"timer/a": {"end": 2}})
            document.put_later("timer/b", {"end": 1})
            putting = asyncio.ensure_future(document.put_many({"timer/b": {"end": 2}}))
            await asyncio.sleep(0)
            document.put_later("timer/b", {"end": 3})
            await putting
            document.put_later("timer/c", {"end": 1})
            with pytest.raises(TypeError):
                await document.put_many({"timer/c": {"end": "\ud800"}})
        assert dict(document.items("timer/")) == {"a": {"end": 2}, "b": {"end": 3}, "c": {"end": 1}}


async def test_a_waiting_value_survives_two_failures(tmp_path: Path) -> None:
    disk = MoodyDisk(tmp_path)
    async with recording(tmp_path, VirtualClock(LATER), disk) as (recorder, document):
        document.put_later("timer/a", {"end": 1})
        disk.mood = errno.ENOSPC
        flushing = asyncio.ensure_future(recorder.flush())
        putting = asyncio.ensure_future(document.put_many({"timer/a": {"end": 2}}))
        with pytest.raises(StoreFailed):
            await putting
        await flushing
        disk.mood = None
        await recorder.flush()
        assert stored(document, "timer/a") == {"end": 1}


@pytest.mark.parametrize("is_put", [True, False])
async def test_the_last_value_wins_while_an_earlier_one_is_being_saved(tmp_path: Path, *, is_put: bool) -> None:
    async with recording(tmp_path, VirtualClock(LATER)) as (recorder, document):
        await document.put_many({"timer/a": {"end": 1}})
        document.put_later("timer/a", {"end": 2})
        on_its_way = asyncio.ensure_future(document.put_many({"timer/a": {"end": 2}}) if is_put else recorder.flush())
        await asyncio.sleep(0)
        document.put_later("timer/a", {"end": 1})
        await recorder.flush()
        await on_its_way
        assert stored(document, "timer/a") == {"end": 1}
