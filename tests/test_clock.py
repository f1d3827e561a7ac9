"""The machine's clock, and the text form of an instant."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest

from appliance.clock import Clock, ClockSteps, timestamp
from appliance.store.clock_trust import ClockTrust
from tests.fakes.clock import START, VirtualClock
from tests.fakes.rows import each_row

EAST, WEST = timezone(timedelta(hours=5, minutes=45)), timezone(timedelta(hours=-8))


@each_row(
    ("instant", "text"),
    [
        (datetime(2026, 11, 20, 8, 9, 11, 42_000, tzinfo=UTC), "2026-11-20T08:09:11.042Z"),
        (datetime(2026, 11, 20, 8, 9, 11, tzinfo=UTC), "2026-11-20T08:09:11.000Z"),
        (datetime(2026, 11, 20, 8, 9, 11, 999, tzinfo=UTC), "2026-11-20T08:09:11.000Z"),
        (datetime(2026, 11, 20, 8, 9, 11, 999_999, tzinfo=UTC), "2026-11-20T08:09:11.999Z"),
        (datetime(2026, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "2026-12-31T23:59:59.999Z"),
        (datetime(2026, 1, 1, 5, 45, tzinfo=EAST), "2026-01-01T00:00:00.000Z"),
        (datetime(2025, 12, 31, 16, 0, 0, 1_000, tzinfo=WEST), "2026-01-01T00:00:00.001Z"),
        (datetime(1970, 1, 1, tzinfo=UTC), "1970-01-01T00:00:00.000Z"),
        (datetime(999, 1, 1, tzinfo=UTC), "0999-01-01T00:00:00.000Z"),
    ],
)
def test_an_instant_is_written_in_utc_with_milliseconds(instant: datetime, text: str) -> None:
    assert timestamp(instant) == text


async def test_sleeping_takes_the_requested_time() -> None:
    clock = Clock()
    began = clock.monotonic()
    await clock.sleep(0.02)
    assert clock.monotonic() - began >= 0.019


@pytest.mark.parametrize("seconds", [0, -1, 0.01, 60])
async def test_waiting_for_a_past_event_ends_at_once(seconds: float) -> None:
    event = asyncio.Event()
    event.set()
    assert await Clock().wait(event, seconds) is True


@pytest.mark.parametrize("seconds", [0, -1, 0.01])
async def test_a_wait_ends_at_its_timeout(seconds: float) -> None:
    assert await Clock().wait(asyncio.Event(), seconds) is False


async def test_a_wait_ends_with_its_event() -> None:
    event = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(Clock().wait(event, 60))
        await asyncio.sleep(0)
        assert not waiting.done()
        event.set()
    assert waiting.result() is True


async def test_an_event_at_the_timeout_counts() -> None:
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    assert await Clock().wait(event, 0) is True


async def test_an_event_that_ends_at_once_has_happened() -> None:
    event = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(Clock().wait(event, 60))
        await asyncio.sleep(0)
        event.set()
        event.clear()
    assert waiting.result() is True


async def test_a_wait_can_be_cancelled() -> None:
    waiting = asyncio.ensure_future(Clock().wait(asyncio.Event(), 60))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@each_row(
    ("shown", "trusted"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), False),
        (START - timedelta(microseconds=1), False),
        (START, False),
        (START + timedelta(microseconds=1), True),
    ],
)
def test_a_clock_later_than_every_stored_time_is_trusted(shown: datetime, trusted: bool) -> None:
    assert ClockTrust(VirtualClock(shown), START).is_trusted() is trusted


def test_a_trusted_clock_is_still_trusted_after_it_is_set_back() -> None:
    clock = VirtualClock(datetime(1970, 1, 1, tzinfo=UTC))
    trust = ClockTrust(clock, START)
    assert not trust.is_trusted()
    clock.set(START + timedelta(hours=1))
    assert trust.is_trusted()
    clock.set(START - timedelta(hours=1))
    assert trust.is_trusted()


def test_a_synchronised_clock_is_trusted_and_later_stored_times_are_ignored() -> None:
    clock = VirtualClock(START)
    trust = ClockTrust(clock, START + timedelta(days=3650))
    assert not trust.is_trusted()
    assert "2035-12-30T12:00:00.000Z" in (trust.distrust_reason() or "") and "lares clock trust" in (
        trust.distrust_reason() or ""
    )
    clock.synchronised = True
    assert trust.is_trusted() and trust.distrust_reason() is None
    assert trust.forgotten == START + timedelta(days=3650)
    assert trust.newest == START


def test_a_synchronised_clock_after_every_stored_time_ignores_no_time() -> None:
    trust = ClockTrust(VirtualClock(START, is_synchronised=True), START - timedelta(days=1))
    assert trust.is_trusted() and trust.forgotten is None


def test_a_confirmed_clock_is_trusted() -> None:
    trust = ClockTrust(VirtualClock(START), START + timedelta(days=1))
    trust.trust_now()
    assert trust.is_trusted() and trust.newest == START


def test_the_kernel_is_asked_about_synchronisation_at_least_every_two_seconds() -> None:
    assert Clock.recheck_secs < 2
    assert Clock().is_synchronised() in (True, False)


def fail(_: timedelta) -> None:
    raise ValueError("a listener that fails")


@pytest.mark.parametrize("hours", [8, -1, 24 * 365 * 56])
async def test_a_clock_step_is_reported_once(hours: int) -> None:
    clock = VirtualClock()
    steps, found = ClockSteps(clock), list[timedelta]()
    steps.listen(fail)
    steps.listen(found.append)
    await clock.advance(3600, sleepers=0)
    steps.poll()
    assert not found
    clock.set(clock.now() + timedelta(hours=hours))
    steps.poll()
    steps.poll()
    assert found == [timedelta(hours=hours)]


def test_drift_and_suspension_are_not_steps() -> None:
    clock = VirtualClock()
    steps, found = ClockSteps(clock), list[timedelta]()
    steps.listen(found.append)
    for _ in range(100):
        clock.set(clock.now() + timedelta(seconds=0.9))
        steps.poll()
    clock.suspend(8 * 3600)
    steps.poll()
    assert not found
