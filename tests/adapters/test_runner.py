"""The runner: the times of polls, and the pauses while there is no answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.adapters.adapter_runner import AdapterRunner
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.polling import delay_after
from appliance.errors import BadAnswer, Unreachable
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.model import Report
from appliance.tasks import JITTER, MAX_BACK_OFF_SECS
from tests.fakes.adapter import StubAdapter
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of
from tests.fakes.patience import until

GONE = Unreachable("it does not answer")


class Watched(StubAdapter):
    """Answers each poll with `outcome`, after `takes` virtual seconds, and records the time."""

    def __init__(self, session: DeviceSession, clock: VirtualClock, *, interval: float = 10.0) -> None:
        self.bus = Bus()
        self.context = context_of("stub", session, clock, bus=self.bus)
        super().__init__(self.context)
        self.poll_interval = interval
        self.outcome: Report | Exception = self.seen(power="on")
        self.takes = 0.0
        self.times: list[float] = []
        self._time = clock

    async def poll(self) -> Report:
        self.times.append(self._time.monotonic())
        self._stirred.set()
        if self.takes:
            await self._time.sleep(self.takes)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        self.http.answers += 1
        return self.outcome

    async def polled(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.times) < count:
                self._stirred.clear()
                await self._stirred.wait()


class Post:
    """A runner of one watched adapter, and the published events."""

    def __init__(self, adapter: Watched) -> None:
        self.happened: list[events.Event] = []
        adapter.bus.listen(self.happened.append)
        self.runner = AdapterRunner(lambda _: adapter, adapter.context)


@pytest.mark.parametrize(("interval", "takes"), [(1.0, 0.0), (1.0, 3.0), (3600.0, 1.0)])
async def test_polls_begin_one_interval_apart_or_after_the_one_before(
    session: DeviceSession, clock: VirtualClock, interval: float, takes: float
) -> None:
    adapter = Watched(session, clock, interval=interval)
    adapter.takes = takes
    async with Post(adapter).runner:
        await clock.advance(max(interval, takes) * 4, sleepers=1)
    assert adapter.times == pytest.approx([number * max(interval, takes) for number in range(5)])


async def test_a_silent_adapter_is_polled_at_growing_intervals(session: DeviceSession, clock: VirtualClock) -> None:
    adapter = Watched(session, clock, interval=2.0)
    adapter.outcome = GONE
    async with Post(adapter).runner:
        await clock.advance(600.0, sleepers=1)
        gaps = [later - earlier for earlier, later in zip(adapter.times, adapter.times[1:], strict=False)]
        assert gaps[0] == 2.0, "one miss is no outage yet"
        for gap, ideal in zip(gaps[1:], [4.0, 8.0, 16.0, 32.0, *[60.0] * 99], strict=False):
            assert ideal * (1 - JITTER) - 0.001 <= gap <= ideal + 0.001
        assert 12 <= len(gaps) <= 20

        adapter.outcome = adapter.seen(power="on")
        await clock.advance(65.0, sleepers=1)
        assert adapter.times[-1] - adapter.times[-2] == pytest.approx(2.0)
    assert clock.sleepers == 0


async def test_wrong_answers_do_not_slow_the_polling(session: DeviceSession, clock: VirtualClock) -> None:
    adapter = Watched(session, clock, interval=2.0)
    adapter.outcome = BadAnswer("nonsense")
    async with Post(adapter).runner:
        await clock.advance(20.0, sleepers=1)
    assert adapter.times == [2.0 * number for number in range(11)]


async def test_a_poll_that_does_not_end_is_abandoned_and_the_next_one_begins(
    session: DeviceSession, clock: VirtualClock
) -> None:
    adapter, is_over = Watched(session, clock, interval=1.0), asyncio.Event()
    adapter.command_secs = 0.01

    async def refuse_to_end() -> Report:
        adapter.times.append(clock.monotonic())
        while not is_over.is_set():
            with suppress(asyncio.CancelledError):
                await is_over.wait()
        return adapter.seen(power="on")

    adapter.poll = refuse_to_end  # type: ignore[method-assign]
    post = Post(adapter)
    async with post.runner:
        await clock.advance(1.0, sleepers=1)
        await until(lambda: any(isinstance(each, events.SystemErrorReported) for each in post.happened))
        assert adapter.times == [0.0, 1.0]
        [error] = [each.message for each in post.happened if isinstance(each, events.SystemErrorReported)]
        assert error.startswith("stub: http://stub does not answer")
    is_over.set()


@given(st.integers(0, 10_000), st.floats(1, 86_400))
def test_back_off_is_between_the_interval_and_a_minute(misses: int, interval: float) -> None:
    delay = delay_after(misses, interval)
    if misses < 2:
        assert delay == (min(interval, 2.0) if misses else interval), "the second of two unanswered polls comes soon"
        return
    ideal = min(interval * 2.0 ** min(misses - 1, 99), max(interval, MAX_BACK_OFF_SECS))
    assert max(interval, ideal * (1 - JITTER)) <= delay <= max(interval, ideal)
    assert interval <= delay <= max(interval, 60.0)


@pytest.mark.parametrize(("interval", "second"), [(1.0, 1.0), (600.0, 2.0)])
async def test_a_device_that_stops_answering_is_lost_within_seconds_whatever_its_interval(
    session: DeviceSession, clock: VirtualClock, interval: float, second: float
) -> None:
    adapter = Watched(session, clock, interval=interval)
    adapter.outcome = GONE
    async with AdapterRunner(lambda _: adapter, adapter.context):
        await clock.advance(second, sleepers=1)
        assert adapter.times == [0.0, second] and adapter.publish.is_lost


async def test_a_refused_push_connection_causes_a_poll(session: DeviceSession, clock: VirtualClock) -> None:
    @asynccontextmanager
    async def refused() -> AsyncIterator[Any]:
        raise GONE
        yield  # type: ignore[unreachable]

    adapter = Watched(session, clock, interval=600.0)
    adapter.has_push = True
    adapter.open_push = refused  # type: ignore[method-assign]
    async with AdapterRunner(lambda _: adapter, adapter.context):
        await clock.advance(59.0, sleepers=2)
    assert 4 <= len(adapter.times) <= 7


def test_devices_that_were_lost_together_are_not_polled_together() -> None:
    assert len({delay_after(9, 1.0) for _ in range(50)}) > 40
