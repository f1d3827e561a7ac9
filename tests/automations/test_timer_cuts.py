"""No timer fires twice after a power cut at any time. The test cuts the power at every iteration of the event loop,
and at every write.

No run of a timer begins before the end of the timer is durable. If the power is cut earlier, the timer fires at the
next start.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from appliance.automations.safe_mode import SafeMode
from appliance.clock import Clock
from appliance.errors import StoreFailed
from appliance.lua.running.context import Context
from tests.automations.homes import NOW
from tests.fakes.automations import Card, Play, Stage, automation, bench
from tests.fakes.clock import BusyClock

SECS = 600
OFF = {"type": "timer", "name": "off"}
AUTOMATIONS = (
    automation(OFF),
    automation(OFF, id_="b", state={"cooldown_secs": 3600}),
    automation(OFF, id_="c", state={"dedupe_window_secs": 3600}),
)
IDS = {"a", "b", "c"}
NEVER = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The state after a power cut: the stored values, the automations whose runs had begun, and the automations whose
    runs had acted. All earlier starts are included."""

    card: str
    begun: frozenset[str]
    acted: tuple[str, ...]


@dataclass
class SlowCard(Card):
    """Storage that stores values in order. Each write takes `slow` iterations of the event loop.

    Remembered values wait for the flush, as in the recorder. `look` is called before and after each write.
    """

    slow: int = 2
    handed: dict[str, Any] = field(default_factory=dict)
    look: Callable[[], None] = lambda: None
    last: asyncio.Event = field(default_factory=asyncio.Event)

    def put_later(self, key: str, value: Any, *, is_minor: bool = False) -> None:
        self.handed[key] = value

    async def flush(self) -> None:
        """Write the remembered values. Values that could not be written are retried at the next flush."""
        handed, self.handed = self.handed, {}
        try:
            await self.put_many(handed)
        except StoreFailed:
            self.handed = handed | self.handed

    async def put_many(self, values: Mapping[str, Any]) -> None:
        before, done = self.last, asyncio.Event()
        self.last = done
        void = {key: self.handed.pop(key) for key in values if key in self.handed}
        try:
            await before.wait()
            await _steps(self.slow)
            if self.is_bad:
                self.handed = void | self.handed
                raise StoreFailed("the card is full")
            self.look()
            for key, value in values.items():
                super().put_later(key, value)
            self.look()
            await _steps(self.slow)
        finally:
            done.set()

    def __post_init__(self) -> None:
        self.last.set()


class Acting(Stage):
    """Runs that call one method of `ctx` as soon as they begin. `acted` lists the automations that have made this
    call."""

    def __init__(self, look: Callable[[], None]) -> None:
        super().__init__()
        self.ends_at_once = False
        self.acted: list[str] = []
        self._look = look
        self._acts: set[asyncio.Task[None]] = set()

    def begin(self, source: Any, context: Any, event: Mapping[str, Any], *, name: str, **given: Any) -> Play:
        play = super().begin(source, context, event, name=name, **given)
        context = Context(Clock(), "automation", name.partition(":")[2], {"act": self._act})
        self._acts.add(asyncio.get_running_loop().create_task(self._play(play, context)))
        return play

    async def _play(self, play: Play, context: Context) -> None:
        await context.call("act", (play.name,))
        play.end()

    async def _act(self, context: Context, name: str) -> None:
        self._look()
        self.acted.append(name)
        self._look()


async def _steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Life:
    """One run of the hub after a power cut. `cuts` contains each state that another power cut can leave."""

    def __init__(self, before: Cut) -> None:
        self._before = before
        self.cuts: dict[Cut, None] = {}
        self.card = SlowCard(values=json.loads(before.card), look=self.look)
        self.stage = Acting(self.look)

    def look(self) -> None:
        """Record the state that a power cut would leave at this moment."""
        begun = self._before.begun | {play.name for play in self.stage.plays}
        acted = tuple(sorted((*self._before.acted, *self.stage.acted)))
        self.end = Cut(card=json.dumps(self.card.values, sort_keys=True), begun=begun, acted=acted)
        self.cuts[self.end] = None

    async def step(self, work: Coroutine[object, object, object], flush_after: int) -> None:
        """Do the work step by step, and record the state after each step. The flush comes after `flush_after`
        steps."""
        tasks = [asyncio.ensure_future(work)]
        for number in range(80):
            if number == flush_after:
                tasks.append(asyncio.ensure_future(self.card.flush()))
            self.look()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        self.look()


async def live(folder: Path, before: Cut, start: datetime, flush_after: int) -> tuple[list[Cut], Cut]:
    """Start a hub from this state, and run it until long after the timer is due. Return all possible cuts, and the
    state at the end."""
    life = Life(before)
    async with bench(folder, *AUTOMATIONS, card=life.card, start=start, stage=life.stage) as it:
        await life.step(it.pass_by(SECS), flush_after)
        return [*life.cuts], life.end


async def begin(folder: Path) -> Cut:
    """Return a home with a running timer."""
    life = Life(Cut(card="{}", begun=frozenset(), acted=()))
    async with bench(folder, *AUTOMATIONS, card=life.card, stage=life.stage) as it:
        await it.parts.timers.start("off", SECS, {"lamp": 1}, "automation:x")
        life.look()
        assert "timer/off" in json.loads(life.end.card), "on the card before the call returns"
    return life.end


def judge(cut: Cut, end: Cut) -> list[str]:
    """Return what was wrong with a hub that started after the cut and ended in this state."""
    wrong = [f"{id_} acted twice" for id_, count in Counter(end.acted).items() if count > 1]
    if "timer/off" in json.loads(cut.card) and cut.begun:
        wrong.append("runs began before the end of the timer was durable")
    if "timer/off" in json.loads(cut.card):  # no run had acted before, so all runs must still act
        wrong += [f"{id_} never acted" for id_ in IDS - set(end.acted)]
    if "timer/off" in json.loads(end.card):
        wrong.append("the timer is there still")
    return wrong


@pytest.mark.parametrize(
    "flush_after",
    [0, 9, *(pytest.param(turns, marks=pytest.mark.slow) for turns in (3, 6, 12, 15, 18, 21)), NEVER],
)
async def test_no_timer_fires_twice_wherever_two_cuts_fall(flush_after: int, tmp_path: Path) -> None:
    first, end = await live(tmp_path, await begin(tmp_path), NOW, flush_after)
    assert len(first) > 4 and end.acted == ("a", "b", "c")
    offenders: list[object] = []
    for cut in first:
        second, end = await live(tmp_path, cut, NOW + timedelta(seconds=2 * SECS), flush_after)
        offenders += [(cut, wrong) for wrong in judge(cut, end)]
        for again in second:
            _, end = await live(tmp_path, again, NOW + timedelta(seconds=4 * SECS), NEVER)
            offenders += [(cut, again, wrong) for wrong in judge(again, end)]
    assert offenders == []


async def test_a_timer_that_ends_during_a_stop_or_safe_mode_fires_at_the_next_start(tmp_path: Path) -> None:
    card = Card()
    async with bench(tmp_path, automation(OFF), card=card) as it:
        await it.parts.timers.start("off", SECS, None, "automation:x")
        it.parts.timers.pause()
        it.parts.engine.disarm()
        await it.pass_by(2 * SECS)
        assert it.fired == [] and "timer/off" in card.values
    async with bench(tmp_path, automation(OFF), card=card, start=NOW + timedelta(seconds=SECS / 2)) as it:
        it.parts.timers.pause()
        await it.pass_by(2 * SECS)
        assert it.fired == []
        it.parts.timers.resume()
        await it.pass_by(1)
        assert [event["late_secs"] for event in it.events] == [1.5 * SECS] and "timer/off" not in card.values


async def test_a_stop_during_the_end_of_the_safe_mode_keeps_due_timers(tmp_path: Path) -> None:
    """Triggers become active in steps, and the stop deactivates them again before the last step."""
    card, clock, safe_mode = Card(), BusyClock(NOW), SafeMode()
    safe_mode.begin_after_crashes(cast("Any", SimpleNamespace(end_series=lambda: None)))
    automations = [automation(OFF, id_) for id_ in ("a", "b", "c")]
    async with bench(tmp_path, *automations, card=card, clock=clock, safe_mode=safe_mode) as it:
        await it.parts.timers.start("off", SECS, None, "automation:x")
        clock.is_busy = True
        reloading = asyncio.create_task(it.reload(*automations))
        while not it.parts.engine.list_active():  # noqa: ASYNC110 - the reload must not end in the meantime
            await asyncio.sleep(0)
        clock.is_busy = False
        it.parts.timers.pause()
        it.parts.engine.disarm()
        await reloading
        assert 0 < len(it.parts.engine.list_active()) < len(automations)
        await it.pass_by(2 * SECS)
        assert it.fired == [] and "timer/off" in card.values and safe_mode.reason is not None
