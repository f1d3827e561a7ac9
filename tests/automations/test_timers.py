"""After a restart, timers continue and fire once. After any change of the clock, the times of timers are correct."""

from __future__ import annotations

import asyncio
import gc
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from appliance.automations.timers import (
    MAX_BYTES_IN_ALL,
    MAX_ENDED_AT_ONCE,
    MAX_TIMER_PAYLOAD_BYTES,
    NO_DEVICES,
    RunningTimer,
)
from appliance.errors import Invalid, NotFound, StoreFailed
from tests.automations.homes import NOW
from tests.fakes.automations import Bench, Card, automation, bench

OFF = {"type": "timer", "name": "off"}
BOOT = datetime(1970, 1, 1, tzinfo=UTC)


class SlowCard(Card):
    """Storage that stores nothing until `may_write` is set. Until then, remembered values wait."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = asyncio.Event()
        self.may_write.set()
        self.later: list[tuple[str, Any]] = []

    async def put_many(self, values: Any) -> None:
        await self.may_write.wait()
        try:
            await super().put_many(values)
        finally:
            for key, value in self.later:
                super().put_later(key, value)

    def put_later(self, key: str, value: Any, *, is_minor: bool = False) -> None:
        if self.may_write.is_set():
            super().put_later(key, value)
        else:
            self.later.append((key, value))


async def start(it: Bench, name: str = "off", secs: float = 600, payload: object = None) -> None:
    await it.parts.timers.start(name, secs, payload, "automation:a")


async def test_a_restarted_timer_is_freed_without_a_garbage_collection(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(OFF)) as it:
        gc.collect()
        gc.disable()
        try:
            for number in range(500):
                await start(it, payload=number)
            assert sum(isinstance(each, RunningTimer) for each in gc.get_objects()) == 1
        finally:
            gc.enable()


async def test_a_timer_fires_once_with_its_payload(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(OFF)) as it:
        await start(it, payload={"lamp": 1})
        [timer] = it.parts.timers.list_all()
        assert (timer.name, timer.due_at, timer.payload) == ("off", NOW + timedelta(seconds=600), {"lamp": 1})
        assert it.parts.timers.list_names() == ["off"]
        await it.pass_by(599)
        assert it.fired == []
        await it.pass_by(1)
        assert it.events == [
            {"type": "timer", "name": "off", "payload": {"lamp": 1}, "scheduled_at": "2026-06-01T12:10:00.000Z"}
        ]
        assert [*it.parts.timers.list_all()] == [] and "timer/off" not in it.card.values
        await it.pass_by(10_000)
        assert len(it.fired) == 1


async def test_a_second_start_restarts_a_timer_and_a_cancel_ends_it(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(OFF)) as it:
        await start(it)
        await it.pass_by(500)
        await start(it)
        await it.pass_by(500)
        assert it.fired == []
        assert await it.parts.timers.cancel("off") is True
        assert await it.parts.timers.cancel("off") is False
        with pytest.raises(NotFound, match="timer 'off' not found"):
            await it.parts.timers.remove("off")
        await it.pass_by(1000)
        assert it.fired == [] and it.card.values == {}


@pytest.mark.parametrize(("secs", "times"), [(0, 10), (0.5, 15)])
async def test_only_timers_without_a_delay_pause_their_automation(tmp_path: Path, secs: float, times: int) -> None:
    async with bench(tmp_path, automation(OFF)) as it:
        for _ in range(15):
            await start(it, secs=secs)
            await it.pass_by(secs)
            await it.drain()
        assert len(it.fired) == times


@pytest.mark.parametrize("trigger", [OFF, {**OFF, "name": " off "}])
async def test_white_space_around_a_name_is_ignored(tmp_path: Path, trigger: dict[str, Any]) -> None:
    async with bench(tmp_path, automation(trigger)) as it:
        await start(it, name=" off ")
        assert await it.parts.timers.cancel("off ") and not await it.parts.timers.cancel(" ")
        await start(it, name="off ")
        await it.pass_by(600)
        assert len(it.fired) == 1


@pytest.mark.parametrize(("hours", "late"), [(0.05, None), (5, 5 * 3600 - 300)])
async def test_a_timer_continues_after_a_restart(hours: float, late: float | None, tmp_path: Path) -> None:
    card = Card()
    async with bench(tmp_path, automation(OFF), card=card) as it:
        await start(it)
        await it.pass_by(300)
    resumed_at = NOW + timedelta(seconds=300, hours=hours)
    async with bench(tmp_path, automation(OFF), card=card, start=resumed_at) as it:
        await it.pass_by(1)
        if late is None:
            assert it.fired == []
            await it.pass_by(119)
        assert [event.get("late_secs") for event in it.events] == [late]
        assert it.events[0]["scheduled_at"] == "2026-06-01T12:10:00.000Z"
    async with bench(tmp_path, automation(OFF), card=card, start=resumed_at + timedelta(hours=1)) as it:
        await it.pass_by(1000)
        assert it.fired == []


async def test_a_clock_step_does_not_move_a_timer_even_after_a_restart(tmp_path: Path) -> None:
    card = Card()
    async with bench(tmp_path, automation(OFF), card=card) as it:
        await start(it, secs=7200)
        await it.set(NOW + timedelta(hours=8))
        await it.pass_by(3585)
        assert it.fired == []
        now = it.clock.now()
    async with bench(tmp_path, automation(OFF), card=card, start=now) as it:
        await it.pass_by(3599)
        assert it.fired == []
        await it.pass_by(2)
        assert it.fired == ["a"] and "late_secs" not in it.events[0]


@pytest.mark.parametrize("secs", [-3600, 3600])
async def test_a_timer_that_ends_before_the_adapters_start_fires_then(tmp_path: Path, secs: float) -> None:
    async with bench(tmp_path, automation(OFF)) as it:
        await start(it, secs=30)
        it.parts.timers.pause(NO_DEVICES)
        await it.pass_by(40)
        await it.set(it.clock.now() + timedelta(seconds=secs))
        [timer] = it.parts.timers.list_all()
        assert it.fired == [] and timer.due_at == NOW + timedelta(seconds=secs + 30)
        it.parts.timers.resume(NO_DEVICES)
        await it.drain()
        assert it.fired == ["a"] and it.events[0]["late_secs"] == 25.0


@pytest.mark.parametrize(("change", "left"), [("restart", 360), ("cancel", None), ("restart in vain", 720)])
async def test_a_clock_step_during_a_write_keeps_the_timer(tmp_path: Path, change: str, left: float | None) -> None:
    card = SlowCard()
    async with bench(tmp_path, automation(OFF), card=card) as it:
        await start(it, secs=720)
        card.may_write.clear()
        changing = asyncio.ensure_future(it.parts.timers.remove("off") if change == "cancel" else start(it, secs=360))
        await it.drain()
        await it.set(NOW + timedelta(hours=8))
        card.is_bad = change == "restart in vain"
        card.may_write.set()
        await asyncio.gather(changing, return_exceptions=True)
        now = it.clock.now()
    card.is_bad = False
    async with bench(tmp_path, automation(OFF), card=card, start=now) as it:
        await it.pass_by(720 if left is None else left - 20)
        assert it.fired == []
        await it.pass_by(10)
        assert [each.get("late_secs") for each in it.events] == ([] if left is None else [None])


async def test_timers_wait_for_the_time_and_earlier_ones_continue(tmp_path: Path) -> None:
    card = Card()
    async with bench(tmp_path, automation(OFF), card=card) as it:
        await start(it, secs=600)
    async with bench(tmp_path, automation(OFF), card=card, start=BOOT, believed_after=NOW) as it:
        await it.pass_by(5000)
        assert it.fired == []
        await start(it, "other", 7200)
        await it.set(NOW + timedelta(seconds=300))
        await it.pass_by(300)
        assert it.fired == ["a"]
        [timer] = it.parts.timers.list_all()
        assert timer.due_at == NOW + timedelta(seconds=300 + 7200)
    assert card.values["timer/other"]["is_dated"] is True


async def test_invalid_timers_are_refused(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(OFF)) as it:
        for name, secs, payload in (
            ("", 1, None),
            ("x" * 257, 1, None),
            ("x", -1, None),
            ("x", 400 * 86400 + 1, None),
        ):
            with pytest.raises(Invalid):
                await start(it, name, secs, payload)
        with pytest.raises(Invalid, match="16384 are allowed"):
            await start(it, payload="x" * 20_000)
        with pytest.raises(Invalid, match="the payload is nested more than 32 levels deep"):
            await start(it, payload=json.loads("[" * 33 + "]" * 33))
        it.card.is_bad = True
        with pytest.raises(StoreFailed):
            await start(it)
        assert [*it.parts.timers.list_all()] == []


async def test_a_failing_card_does_not_prevent_a_timer_from_firing_once(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(OFF)) as it:
        await start(it)
        it.card.is_bad = True
        await it.pass_by(700)
        assert it.fired == ["a"]


async def test_the_payloads_of_all_timers_are_bounded(tmp_path: Path) -> None:
    payload = "x" * (MAX_TIMER_PAYLOAD_BYTES - 2)
    most = MAX_BYTES_IN_ALL // MAX_TIMER_PAYLOAD_BYTES
    async with bench(tmp_path, automation({**OFF, "name": "t0"})) as it:
        for number in range(most):
            await start(it, f"t{number}", 5 + number, payload)
        await start(it, "t9", 30, payload)
        with pytest.raises(Invalid, match="'more': the payloads of all timers exceed 1048576 bytes"):
            await start(it, "more", 5, payload)
        await it.parts.timers.cancel("t9")
        await it.pass_by(5.5)
        for name in ("more", "again"):
            await start(it, name, 5, payload)
        with pytest.raises(Invalid, match="the payloads of all"):
            await start(it, "more yet", 5, payload)


async def test_a_timer_without_a_listener_waits_up_to_a_day(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    card, other = Card(), automation({**OFF, "name": "other"}, "b")
    async with bench(tmp_path, other, card=card) as it:
        it.clock.recheck_secs = 3600.0
        await start(it, secs=60)
        await it.pass_by(3600)
        assert it.fired == [] and [each.name for each in it.parts.timers.list_all()] == ["off"]
        now = it.clock.now()
    async with bench(tmp_path, other, automation(OFF), card=card, start=now) as it:
        it.clock.recheck_secs = 3600.0
        await it.drain()
        assert it.events == [
            {"type": "timer", "name": "off", "scheduled_at": "2026-06-01T12:01:00.000Z", "late_secs": 3540.0}
        ]
        await it.parts.switch("a", is_enabled=False)
        await start(it, secs=60)
        await it.pass_by(61)
        assert len(it.fired) == 1
        await it.parts.switch("a", is_enabled=True)
        await it.drain()
        assert it.fired == ["a", "a"]
        await start(it, secs=60)
        await it.reload(other)
        await it.pass_by(86_000)
        now = it.clock.now()
    async with bench(tmp_path, other, card=card, start=now) as it:
        it.clock.recheck_secs = 3600.0
        assert len([*it.parts.timers.list_all()]) == 1
        await it.pass_by(480)
        assert [*it.parts.timers.list_all()] == [] and it.fired == []
        assert "timer 'off' is removed, because no automation had a trigger for it within a day" in caplog.text


async def test_a_switch_checks_only_the_timers_of_its_automation(tmp_path: Path) -> None:
    """With 10,000 ended timers, a check of all of them takes 8 ms, and a broker can send hundreds of switches."""
    other = automation({**OFF, "name": "other"}, "b")
    async with bench(tmp_path, automation(OFF), other) as it:
        for id_ in ("a", "b"):
            await it.parts.switch(id_, is_enabled=False)
        for name in ("off", "other"):
            await start(it, name, 60)
        await it.pass_by(61)
        asked: list[str] = []

        def has_listener(name: str) -> bool:
            asked.append(name)
            return it.parts.engine.has_timer_listener(name)

        it.parts.timers.begin(has_listener)
        await it.parts.switch("a", is_enabled=True)
        await it.drain()
        assert it.fired == ["a"] and {*asked} == {"off"}
        await it.parts.switch("a", is_enabled=False)
        await it.parts.switch("b", is_enabled=True)
        await it.drain()
        assert it.fired == ["a", "b"]


async def test_a_timer_never_fires_for_an_automation_that_is_added_after_the_day(tmp_path: Path) -> None:
    """The hub is off at the end of the day. A timer with a listener fires after any time."""
    card, other = Card(), automation({**OFF, "name": "other"}, "b")
    async with bench(tmp_path, other, card=card) as it:
        await start(it, secs=60)
        await start(it, name="other", secs=7200)
        await it.pass_by(3600)
        now = it.clock.now() + timedelta(days=90)
    async with bench(tmp_path, other, automation(OFF), card=card, start=now) as it:
        await it.drain()
        assert it.fired == ["b"] and [*it.parts.timers.list_all()] == []
    assert not [key for key in card.values if key.startswith("timer/")]


async def test_a_timer_without_a_listener_waits_a_day_of_real_time(tmp_path: Path) -> None:
    card, other = Card(), automation({**OFF, "name": "other"}, "b")
    async with bench(tmp_path, other, card=card, start=BOOT, believed_after=NOW) as it:
        await start(it, secs=60)
        await it.pass_by(3600)
        await it.set(NOW + timedelta(seconds=300))
        assert len([*it.parts.timers.list_all()]) == 1
        now = it.clock.now()
    async with bench(tmp_path, other, card=card, start=now) as it:
        await it.pass_by(60)
        assert len([*it.parts.timers.list_all()]) == 1
        await it.reload(other, automation(OFF))
        await it.drain()
        assert it.fired == ["a"] and 3600 < it.events[0]["late_secs"] < 3630


async def test_a_timer_that_is_due_when_the_clock_becomes_trusted_ends_once(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(OFF), start=BOOT, believed_after=NOW) as it:
        it.clock.recheck_secs = 3600.0
        await start(it, secs=60)
        await start(it, name="unheard", secs=60)
        await it.pass_by(59)
        it.clock.set(NOW)
        await it.pass_by(1)
        assert it.fired == ["a"] and "late_secs" not in it.events[0]
        await it.reload(automation({**OFF, "name": "unheard"}))
        await it.drain()
        await start(it, name="unheard", secs=2 * 86_400)
        await it.pass_by(86_400)
        assert len([*it.parts.timers.list_all()]) == 1


async def test_a_restarted_timer_is_kept_longer_than_the_old_one(tmp_path: Path) -> None:
    async with bench(tmp_path, automation({**OFF, "name": "other"}), start=BOOT, believed_after=NOW) as it:
        await start(it, secs=60)
        await it.pass_by(100)
        await it.set(NOW + timedelta(seconds=300))
        await start(it, secs=2 * 86_400)
        it.clock.recheck_secs = 3600.0
        await it.pass_by(86_400)
        assert len([*it.parts.timers.list_all()]) == 1


@pytest.mark.parametrize("is_started_anew", [True, False])
async def test_an_expired_timer_is_removed_even_if_the_card_fails_but_not_while_it_restarts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, is_started_anew: bool
) -> None:
    card, other = SlowCard(), automation({**OFF, "name": "other"})
    async with bench(tmp_path, other, card=card) as it:
        it.clock.recheck_secs = 3600.0
        await start(it, secs=0.1)
        await it.pass_by(86_395)
        card.is_bad = not is_started_anew
        if is_started_anew:
            card.may_write.clear()
        starting = asyncio.ensure_future(start(it, secs=600) if is_started_anew else asyncio.sleep(0))
        await it.pass_by(10)
        card.may_write.set()
        await starting
        assert len([*it.parts.timers.list_all()]) == is_started_anew
    assert card.values.keys() == ({"timer/off"} if is_started_anew else set())
    assert "ended: StoreFailed" not in caplog.text


@pytest.mark.parametrize(("count", "puts"), [(MAX_ENDED_AT_ONCE, 1), (2 * MAX_ENDED_AT_ONCE + 1, 3)])
async def test_timers_that_end_together_are_few_records(tmp_path: Path, count: int, puts: int) -> None:
    """Thousands of timers in one record would make a turn of the loop long."""

    class CountingCard(Card):
        puts = 0

        async def put_many(self, values: Any) -> None:
            self.puts += 1
            await super().put_many(values)

    names, card = [f"t{number:03}" for number in range(count)], CountingCard()
    definitions = []
    for first in range(0, count, 100):
        triggers = [{**OFF, "name": name} for name in names[first : first + 100]]
        definition = automation(id_=f"a{first}", triggers=triggers)
        del definition["trigger"]
        definitions.append({**definition, "mode": {"type": "parallel", "max": 100}})
    async with bench(tmp_path, *definitions, card=card) as it:
        for name in names:
            await start(it, name, 60)
        card.puts = 0
        await it.pass_by(60)
        assert len(it.fired) == count and card.puts == puts


async def test_a_timer_follows_the_clock_once_it_is_trusted(tmp_path: Path) -> None:
    card = Card()
    async with bench(tmp_path, automation(OFF), card=card) as it:
        await start(it, secs=86_400)
    async with bench(tmp_path, automation(OFF), card=card, start=BOOT, believed_after=NOW) as it:
        it.parts.timers.pause(NO_DEVICES)
        it.parts.timers.resume(NO_DEVICES)
        await it.set(NOW + timedelta(hours=23))
        [timer] = it.parts.timers.list_all()
        assert timer.due_at == NOW + timedelta(hours=24)
        it.clock.recheck_secs = 3600.0
        await it.pass_by(3600)
        assert it.fired == ["a"]


async def test_a_timer_resumes_in_a_home_without_anything_scheduled_once_the_clock_is_trusted(tmp_path: Path) -> None:
    card = Card()
    async with bench(tmp_path, automation(OFF), card=card) as it:
        await start(it, secs=600)
    async with bench(tmp_path, automation(OFF), card=card, start=BOOT, believed_after=NOW, is_idle=True) as it:
        await it.set(NOW + timedelta(seconds=300))
        await it.clock.run(it.clock.sleep(301))
        await it.drain()
        assert it.fired == ["a"]
