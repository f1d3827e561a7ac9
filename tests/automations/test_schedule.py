"""The scheduler fires each due time once, across all clock changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from appliance.automations.environment import Environment
from appliance.automations.schedule.clock_watch import ClockWatch
from appliance.automations.schedule.scheduled_calls import CalendarCall
from appliance.automations.schedule.scheduler import Scheduler
from appliance.home.bus import Bus
from appliance.store.clock_trust import ClockTrust
from appliance.tasks import Tasks
from tests.fakes.automations import Card
from tests.fakes.clock import VirtualClock
from tests.fakes.registry import PromptRegistry

FOREVER = 1e9
"""Seconds of a timer that never expires in a test. While such a timer runs, the scheduler sleeps after all other
work, so a test can wait until the scheduler sleeps."""

NOON = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
BOOT = datetime(1970, 1, 1, tzinfo=UTC)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


@dataclass(frozen=True)
class Each:
    """A schedule that is due at every multiple of a span since 1970, shifted by `past`, up to `last`."""

    span: timedelta
    past: timedelta = timedelta()
    last: datetime = datetime(2100, 1, 1, tzinfo=UTC)

    def next_after(self, instant: datetime) -> datetime | None:
        occurrence = BOOT + self.past + ((instant - BOOT - self.past) // self.span + 1) * self.span
        return occurrence if occurrence <= self.last else None


DAILY = Each(timedelta(days=1), past=timedelta(hours=12, minutes=30))


class Bench:
    """A scheduler on a virtual clock, and the fired occurrences."""

    def __init__(self, clock: VirtualClock, scheduler: Scheduler) -> None:
        self.clock = clock
        self.scheduler = scheduler
        self.fired: list[datetime] = []
        self.fired_at: list[datetime] = []
        self.late: list[float] = []

    def note(self, occurrence: datetime) -> None:
        self.fired.append(occurrence)
        self.fired_at.append(self.clock.now())

    def note_late(self, late: float) -> None:
        self.late.append(late)
        self.fired_at.append(self.clock.now())

    async def pass_by(self, span: timedelta) -> None:
        await self.clock.advance(span.total_seconds(), sleepers=1)

    async def set(self, instant: datetime) -> None:
        """Set the clock, and wait until the scheduler has detected the change."""
        self.clock.set(instant)
        await self.pass_by(15 * SECOND)


def environment_of(clock: VirtualClock, believed_after: datetime, stopped_at: datetime | None = None) -> Environment:
    bus, nothing = Bus(), Card()
    watch = ClockWatch(clock, ClockTrust(clock, believed_after), stopped_at=stopped_at)
    return Environment(PromptRegistry(bus, clock), bus, watch, nothing)


@asynccontextmanager
async def bench(
    start: datetime = NOON, believed_after: datetime = LONG_AGO, stopped_at: datetime | None = None
) -> AsyncIterator[Bench]:
    clock = VirtualClock(start)
    async with environment_of(clock, believed_after, stopped_at).scheduler as scheduler:
        scheduler.after("the end of time", FOREVER, lambda late: None)
        yield Bench(clock, scheduler)


async def test_a_cancelled_alarm_does_not_fire() -> None:
    async with bench() as it:
        alarm = it.scheduler.at("a", Each(HOUR), it.note)
        await it.pass_by(HOUR)
        it.scheduler.cancel(alarm)
        it.scheduler.cancel(alarm)
        await it.pass_by(HOUR)
        assert it.fired == [NOON + HOUR]


async def test_alarms_can_cancel_and_start_each_other_while_they_fire() -> None:
    async with bench() as it:

        def swap(occurrence: datetime) -> None:
            it.note(occurrence)
            it.scheduler.cancel(second)
            it.scheduler.at("c", Each(HOUR, past=MINUTE), it.note)

        it.scheduler.at("a", Each(2 * HOUR, past=HOUR), swap)
        second = it.scheduler.at("b", Each(HOUR), it.note)
        await it.pass_by(HOUR + MINUTE)
        assert it.fired == [NOON + HOUR, NOON + HOUR + MINUTE]


async def test_a_failed_alarm_does_not_stop_others(caplog: pytest.LogCaptureFixture) -> None:
    async with bench() as it:

        def fail(occurrence: datetime) -> None:
            raise ZeroDivisionError("by mistake")

        it.scheduler.at("a", Each(HOUR), fail)
        it.scheduler.at("b", Each(HOUR), it.note)
        await it.pass_by(2 * HOUR)
        assert len(it.fired) == 2
    assert "a schedule failed: ZeroDivisionError: by mistake" in caplog.text


@pytest.mark.parametrize(
    ("schedule", "keeps", "moves", "fires"),
    [
        # set forward: an occurrence missed by at most five minutes fires once, immediately, but an older occurrence
        # never fires
        (Each(HOUR), False, [("set", 8 * HOUR + 30 * MINUTE)], []),
        (Each(HOUR), False, [("set", 8 * HOUR + 4 * MINUTE)], [8 * HOUR]),
        (Each(HOUR), False, [("set", 8 * HOUR + 6 * MINUTE)], []),
        (Each(SECOND), False, [("set", 4 * MINUTE)], [4 * MINUTE]),
        (DAILY, True, [("set", 8 * HOUR)], []),
        (DAILY, True, [("set", 33 * MINUTE)], [30 * MINUTE]),
        # set back: an hourly schedule follows the clock, but a daily schedule fires once on the same day
        (Each(HOUR), False, [("pass", HOUR), ("set", -HOUR), ("pass", 90 * MINUTE)], [HOUR, HOUR]),
        (Each(HOUR), False, [("pass", HOUR), ("set", -6 * SECOND), ("pass", 90 * MINUTE)], [HOUR, 2 * HOUR]),
        (Each(HOUR), False, [("pass", HOUR), ("set", -73 * SECOND), ("pass", 90 * MINUTE)], [HOUR, 2 * HOUR]),
        (Each(HOUR), False, [("pass", HOUR), ("set", -299 * SECOND), ("pass", 90 * MINUTE)], [HOUR, 2 * HOUR]),
        (
            Each(MINUTE),
            False,
            [("pass", MINUTE), ("set", -2 * MINUTE), ("pass", 4 * MINUTE)],
            [MINUTE, 2 * MINUTE, 3 * MINUTE],
        ),
        # set back to just before an occurrence, which is due before the scheduler notices the change
        (
            Each(HOUR),
            False,
            [("pass", 1.5 * HOUR), ("set", -0.5 * HOUR - 10 * SECOND), ("pass", HOUR)],
            [HOUR, HOUR, 2 * HOUR],
        ),
        (DAILY, True, [("pass", HOUR), ("set", -HOUR), ("pass", 2 * HOUR)], [30 * MINUTE]),
        pytest.param(
            *(DAILY, True, [("pass", HOUR), ("set", -HOUR), ("pass", 26 * HOUR)], [30 * MINUTE, 24.5 * HOUR]),
            marks=pytest.mark.slow,
        ),
        # set forward by mistake, and back: occurrences that never fired still fire
        (DAILY, True, [("set", 8 * HOUR), ("set", -8 * HOUR), ("pass", HOUR)], [30 * MINUTE]),
        # a jump of a year by mistake, one occurrence, and a jump back: the schedule still fires
        (
            DAILY,
            True,
            [("set", 400 * 24 * HOUR), ("pass", HOUR), ("set", -400 * 24 * HOUR - HOUR), ("pass", HOUR)],
            [400 * 24 * HOUR + 30 * MINUTE, 30 * MINUTE],
        ),
        # sleep of the machine has the same effect as a clock that is set forward
        (Each(HOUR), False, [("sleep", 8 * HOUR + 30 * MINUTE)], []),
        (Each(HOUR), False, [("sleep", 8 * HOUR + 3 * MINUTE)], [8 * HOUR]),
    ],
)
async def test_clock_steps_cause_neither_a_burst_nor_missing_alarms(
    schedule: Each, keeps: bool, moves: list[tuple[str, timedelta]], fires: list[timedelta]
) -> None:
    async with bench() as it:
        it.scheduler.at("a", schedule, it.note, never_repeats=keeps)
        await it.pass_by(timedelta())
        for how, span in moves:
            if how == "pass":
                await it.pass_by(span)
            elif how == "sleep":
                it.clock.suspend(span.total_seconds())
                await it.pass_by(15 * SECOND)
            else:
                await it.set(it.clock.now() + span)
        if schedule == Each(SECOND):
            assert it.fired[0] - NOON < 5 * MINUTE and len(it.fired) <= 16
        else:
            assert [occurrence - NOON for occurrence in it.fired] == fires


async def test_alarms_follow_a_clock_step_that_another_part_notices_first() -> None:
    clock = VirtualClock(NOON)
    environment = environment_of(clock, LONG_AGO)
    async with environment.scheduler as scheduler:
        it = Bench(clock, scheduler)
        scheduler.at("a", Each(HOUR), it.note)
        await it.pass_by(timedelta())
        clock.set(NOON - 2 * HOUR)
        environment.clock_watch.steps.poll()
        await it.pass_by(HOUR)
        assert it.fired == [NOON - HOUR]
        assert [each["seconds"] for each in scheduler.figures()["steps"]] == [-7200]


async def until(happened: Callable[[], bool]) -> None:
    """Run the event loop until the condition is true."""
    async with asyncio.timeout(20):
        while not happened():  # noqa: ASYNC110 - the log has no event to await
            await asyncio.sleep(0)


async def test_missed_times_are_counted_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with bench() as it:
        it.scheduler.at("automation 'bell'", Each(HOUR), it.note)
        it.scheduler.at("automation 'tick'", Each(SECOND), it.note)
        await it.pass_by(timedelta())
        await it.set(NOON + 8.5 * HOUR)
        assert len(it.fired) <= 16
        assert "not be repeated: 100" not in caplog.text, "many are counted in the background"
        await until(lambda: "not be repeated: 100" in caplog.text)
    assert "the clock was changed by +30600.0 s" in caplog.text
    assert "automation 'bell': missed runs that will not be repeated: 8" in caplog.text
    assert "automation 'tick': missed runs that will not be repeated: 100 or more" in caplog.text


class Costly:
    """A daily schedule whose computation takes two milliseconds. Notes the turn of the loop of each computation."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.turn = 0
        self.turns: list[int] = []

    def next_after(self, instant: datetime) -> datetime | None:
        self._clock.suspend(0.002)
        self.turns.append(self.turn)
        return DAILY.next_after(instant)

    async def count_turns(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_hundreds_of_schedules_begin_and_are_counted_in_steps(
    caplog: pytest.LogCaptureFixture, *, is_trusted: bool
) -> None:
    clock, count = VirtualClock(NOON + MINUTE if is_trusted else BOOT), 300
    async with environment_of(clock, NOON).scheduler as scheduler, Tasks() as tasks:
        schedule = Costly(clock)
        tasks.start(schedule.count_turns(), "turns")
        for number in range(count):
            scheduler.at(f"a{number}", schedule, lambda _: None, never_repeats=True, last=NOON - timedelta(days=9.5))
        assert schedule.turns == []
        clock.set(NOON + MINUTE)
        scheduler.recheck()
        await until(lambda: caplog.text.count("not be repeated: 9") == count)
    assert max(Counter(schedule.turns).values()) <= 5, "the first occurrences of a schedule, and a counted one"


async def test_an_untrusted_clock_fires_nothing_until_it_is_trusted() -> None:
    async with bench(BOOT, believed_after=NOON) as it:
        alarm = it.scheduler.at("a", Each(HOUR), it.note)
        timed: list[float] = []
        it.scheduler.every("b", 600, timed.append)
        await it.pass_by(2 * HOUR)
        assert it.fired == [] and alarm.due is None and len(timed) == 12
        assert it.scheduler.figures()["trusted"] is False
        await it.set(NOON + HOUR + MINUTE)
        assert it.fired == [] and alarm.due == NOON + 2 * HOUR
        assert it.scheduler.figures()["trusted"] is True
        await it.pass_by(HOUR)
        assert it.fired == [NOON + 2 * HOUR]
        [step] = it.scheduler.figures()["steps"]
        assert step["seconds"] == pytest.approx((NOON - BOOT).total_seconds() - 3540)


async def test_a_persistent_schedule_resumes_and_counts_missed_times(caplog: pytest.LogCaptureFixture) -> None:
    async with bench() as it:
        it.scheduler.at("a", Each(HOUR), it.note, never_repeats=True, last=NOON - 5 * HOUR)
        await it.pass_by(HOUR)
        assert it.fired == [NOON + HOUR]
    assert "a: missed runs that will not be repeated: 5" in caplog.text


@pytest.mark.parametrize(
    ("last", "first"),
    [(1, 2), (1000, 1)],  # no occurrence fires twice, and those that only a wrong clock made due are dropped
)
async def test_a_persistent_schedule_fires_after_its_last_time(last: int, first: int) -> None:
    async with bench() as it:
        it.scheduler.at("a", Each(HOUR), it.note, never_repeats=True, last=NOON + last * HOUR)
        await it.pass_by(first * HOUR)
        assert it.fired == [NOON + first * HOUR]


async def test_a_timer_fires_once_after_its_real_time_whatever_the_clock_shows() -> None:
    async with bench() as it:
        it.scheduler.after("a", 600, it.note_late)
        await it.set(NOON + 8 * HOUR)
        await it.set(NOON)
        assert it.late == []
        await it.pass_by(600 * SECOND)
        assert it.late == [0.0]


@pytest.mark.parametrize("step", [8 * HOUR, -HOUR, -1000 * HOUR])
async def test_an_interval_uses_real_time_when_the_clock_is_set(step: timedelta) -> None:
    async with bench() as it:
        it.scheduler.every("a", 600, it.note_late)
        await it.pass_by(25 * MINUTE)
        it.clock.set(it.clock.now() + step)
        await it.pass_by(35 * MINUTE)
        assert it.late == [0.0] * 6


async def test_an_interval_keeps_its_phase_over_the_machines_sleep(caplog: pytest.LogCaptureFixture) -> None:
    async with bench() as it:
        it.scheduler.every("automation 'beat'", 3600, it.note_late)
        await it.pass_by(MINUTE)
        it.clock.suspend(8.5 * 3600)
        await it.pass_by(15 * SECOND)
        assert it.late == [], "half an hour late is too late"
        await it.pass_by(30 * MINUTE)
        assert [at - NOON for at in it.fired_at] == [9 * HOUR]
    assert "automation 'beat': missed runs that will not be repeated: 8" in caplog.text


async def test_an_interval_that_was_missed_by_little_fires_once_at_once() -> None:
    async with bench() as it:
        it.scheduler.every("a", 60, it.note_late)
        await it.pass_by(30 * SECOND)
        it.clock.suspend(3 * 3600)
        await it.pass_by(15 * SECOND)
        assert len(it.late) == 1 and it.late[0] < 60


async def test_missed_times_are_counted_once_after_a_step_back(caplog: pytest.LogCaptureFixture) -> None:
    async with bench() as it:
        it.scheduler.at("a", Each(HOUR), it.note, never_repeats=True, last=NOON - 5 * HOUR)
        await it.pass_by(MINUTE)
        for _ in range(3):
            await it.set(it.clock.now() - 5 * SECOND)
        await it.pass_by(HOUR)
        assert it.fired == [NOON + HOUR]
    assert caplog.text.count("not be repeated") == 1


@pytest.mark.parametrize("is_during_step", [True, False])
async def test_a_replaced_schedule_does_not_count_missed_times_again(
    caplog: pytest.LogCaptureFixture, *, is_during_step: bool
) -> None:
    async with bench() as it:

        def start() -> CalendarCall:
            return it.scheduler.at("a", Each(HOUR), it.note, never_repeats=True, last=NOON)

        def replace(_: datetime) -> None:
            it.scheduler.cancel(replaced)
            start()

        reload = Each(HOUR, past=29 * MINUTE if is_during_step else 40 * MINUTE)
        it.scheduler.at("reload", reload, replace, last=NOON)
        replaced = start()
        await it.pass_by(MINUTE)
        await it.set(NOON + 5.5 * HOUR)
        await it.pass_by(HOUR)
        assert it.fired == [NOON + 6 * HOUR]
    assert caplog.text.count("a: missed runs that will not be repeated: 5") == 1
    assert caplog.text.count(" a: missed runs") == 1


async def test_a_schedule_that_a_reload_replaces_at_the_start_counts_missed_times_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with bench(believed_after=NOON + MINUTE) as it:

        def start() -> CalendarCall:
            return it.scheduler.at("a", Each(HOUR), it.note, never_repeats=True, last=NOON - 5 * HOUR)

        class Reload:
            def next_after(self, _: datetime) -> datetime | None:
                """Replace the first schedule, while the scheduler begins the second."""
                it.scheduler.cancel(replaced)
                start()
                return None

        replaced = start()
        it.scheduler.at("reload", Reload(), it.note)
        await it.set(NOON + 2 * MINUTE)
        await it.pass_by(MINUTE)
    assert caplog.text.count("not be repeated") == 1


async def test_without_schedules_nothing_wakes_and_later_ones_start_at_once() -> None:
    clock = VirtualClock(NOON)
    fired: list[datetime] = []
    async with environment_of(clock, NOON + HOUR).scheduler as scheduler:
        await clock.advance(600, sleepers=0)
        for _ in range(9):
            await asyncio.sleep(0)
        assert clock.sleepers == 0
        await clock.advance(3 * 3600, sleepers=0)
        clock.set(clock.now() - MINUTE)
        scheduler.at("a", Each(HOUR), fired.append)
        await clock.advance(3600, sleepers=1)
    assert fired == [NOON + 4 * HOUR]


@pytest.mark.parametrize(("minutes", "fires"), [(1, True), (5, True), (5.1, False), (60, False)])
async def test_a_time_missed_by_at_most_five_minutes_fires_once(minutes: float, fires: bool) -> None:
    start = NOON + 20 * SECOND
    async with bench(start, stopped_at=start - minutes * MINUTE) as it:
        alarm = it.scheduler.at("a", Each(HOUR), it.note)
        it.scheduler.at("b", Each(20 * SECOND), lambda due: None)
        await it.pass_by(SECOND)
        assert it.fired == ([NOON] if fires else []) and alarm.find_missed() == (None if fires else NOON)
        assert it.scheduler.at("c", Each(HOUR), it.note).find_missed() is None
        await it.pass_by(MINUTE)
        assert len(it.fired) == fires, "a schedule armed by a reload begins now"


async def test_a_missed_time_fires_when_the_clock_is_synchronised_soon_after_the_start() -> None:
    async with bench(BOOT, believed_after=NOON - MINUTE, stopped_at=NOON - MINUTE) as it:
        it.scheduler.at("a", Each(HOUR), it.note)
        await it.pass_by(MINUTE)
        await it.set(NOON + MINUTE)
        assert it.fired == [NOON]


async def test_a_stop_dated_in_the_future_fires_nothing() -> None:
    async with bench(NOON + SECOND, stopped_at=NOON + HOUR) as it:
        it.scheduler.at("a", Each(HOUR), it.note)
        await it.pass_by(MINUTE)
        assert it.fired == []
