"""The engine fires exactly once for each due time and each event, across reloads, restarts, and clock changes."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from appliance.api.limits import MAX_HOOK_BYTES
from appliance.byte_budget import JSON_VALUE_BYTES
from appliance.home.events import AdapterStarted, HookCalled, SystemErrorReported
from appliance.lua.running.executor import EVENTS_FULL, MAX_EVENT_BYTES
from tests.automations.homes import NOW
from tests.fakes.automations import LAMP, ON, TV, Card, automation, bench, secs
from tests.fakes.clock import BusyClock
from tests.fakes.patience import until

RESUMES: dict[str, Any] = {"state": {"resumable_schedule": True}}
BOOT = datetime(1970, 1, 1, tzinfo=UTC)

DEBOUNCE = {"type": "device_state_change", "device_id": LAMP, "attribute": "brightness", "debounce_secs": 60}
DURATION = {**ON, "duration_secs": 60}


def stamp(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def after(**span: float) -> str:
    """Return the instant that is this long after the start, in the format of events."""
    return stamp(NOW + timedelta(**span))


def every(seconds: float) -> dict[str, Any]:
    return {"type": "interval", "every_secs": seconds}


def cron(expression: str) -> dict[str, Any]:
    return {"type": "cron", "expression": expression}


def wall(hour: int, minute: int) -> dict[str, Any]:
    """Return a trigger at a time of day in Berlin, which is two hours ahead of UTC in June."""
    return {"type": "wall_clock", "hour": hour, "minute": minute}


async def test_a_change_of_the_triggers_attribute_fires_with_both_values(tmp_path: Path) -> None:
    async with bench(tmp_path, automation()) as it:
        it.show(power="on")
        it.show(power="on", brightness=21)
        it.show(power="off")
        it.show(TV, power="on")
        await it.drain()
        attributes = {"power": "on", "brightness": 20, "state": "online"}
        expected = {"attribute": "power", "value": "on", "previous_value": "off", "attributes": attributes}
        assert it.events == [{"type": "device_state_change", "device_id": LAMP, **expected}]


@pytest.mark.parametrize(
    ("trigger", "happens", "fires"),
    [
        ({"type": "device_state_change", "device_id": LAMP}, lambda it: it.show(brightness=3), 1),
        ({"type": "device_state_change", "device_id": LAMP}, lambda it: it.show(TV, power="on"), 0),
        (
            {"type": "weather_state", "device_id": LAMP, "attribute": "temperature_outdoor", "above": 20},
            lambda it: [
                it.show(temperature_outdoor={"value": value, "unit": "celsius"}) for value in (19, 21, 22, 20, 20.5)
            ],
            2,
        ),
        ({"type": "adapter_lifecycle"}, lambda it: it.bus.publish(AdapterStarted(adapter="tv")), 1),
        (
            {"type": "adapter_lifecycle", "adapter": "tv", "event": "started"},
            lambda it: [it.bus.publish(AdapterStarted(adapter=name)) for name in ("desk", "tv")],
            1,
        ),
        ({"type": "system_error"}, lambda it: it.bus.publish(SystemErrorReported(message="oh")), 1),
        (
            {"type": "system_error", "contains": "tv:"},
            lambda it: [it.bus.publish(SystemErrorReported(message=text)) for text in ("tv: gone", "desk: gone")],
            1,
        ),
    ],
)
async def test_an_event_fires_its_triggers(trigger: dict[str, Any], happens: Any, fires: int, tmp_path: Path) -> None:
    async with bench(tmp_path, automation(trigger)) as it:
        happens(it)
        await it.drain()
        assert len(it.fired) == fires
        assert all(event["type"] == trigger["type"] for event in it.events)


@pytest.mark.parametrize(
    ("trigger", "within", "instants", "more"),
    [
        (wall(18, 30), 24, [after(hours=4.5)], {"hour": 18, "minute": 30, "timezone": "Europe/Berlin"}),
        (cron("0 0 */8 * * *"), 24, [after(hours=each) for each in (4, 12, 20)], {"expression": "0 0 */8 * * *"}),
        (every(36_000), 24, [after(hours=10), after(hours=20)], {"every_secs": 36_000}),
        ({"type": "sunset", "offset_mins": -30}, 24, ["2026-06-01T18:49"], {"offset_mins": -30}),
        ({"type": "sunrise"}, 24, ["2026-06-02T02:48"], {"offset_mins": 0}),
    ],
)
async def test_schedules_fire_at_their_instant(
    trigger: dict[str, Any], within: float, instants: list[str], more: dict[str, Any], tmp_path: Path
) -> None:
    async with bench(tmp_path, automation(trigger)) as it:
        it.clock.recheck_secs = 3600.0
        await it.pass_by(secs(hours=within))
        assert [each[: len(expected)] for each, expected in zip(it.instants, instants, strict=True)] == instants
        assert all(more.items() <= event.items() and event["type"] == trigger["type"] for event in it.events)
        for entry, at in zip(it.entries(), it.instants, strict=True):
            assert abs((entry.executed_at - datetime.fromisoformat(at)).total_seconds()) < 1


async def test_debounce_waits_for_a_stable_value_and_reports_the_last_one(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(DEBOUNCE)) as it:
        for value in (30, 40, 50):
            it.show(brightness=value)
            await it.pass_by(59)
        assert it.fired == []
        await it.pass_by(1)
        assert [(event["value"], event["previous_value"]) for event in it.events] == [(50, 40)]
        await it.pass_by(600)
        assert it.fired == ["a"]


async def test_any_interruption_cancels_a_duration(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(DURATION)) as it:
        for _ in range(20):
            it.show(power="on")
            await it.pass_by(59.9)
            it.show(power="off")
        it.show(power="on")
        await it.pass_by(59.9)
        assert it.fired == []
        await it.pass_by(0.2)
        assert it.fired == ["a"]


@pytest.mark.parametrize("trigger", [DEBOUNCE, DURATION])
async def test_a_wait_ends_with_its_device(trigger: dict[str, Any], tmp_path: Path) -> None:
    async with bench(tmp_path, automation(trigger)) as it:
        it.show(power="on", brightness=30)
        await it.pass_by(30)
        it.remove()
        it.show(power="on", brightness=30)
        await it.pass_by(600)
        assert it.fired == []


async def test_a_wait_uses_no_place_of_the_runs(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(DURATION, mode="single")) as it:
        it.stage.ends_at_once = False
        it.show(power="on")
        await it.pass_by(60)
        it.show(power="off")
        it.show(power="on")
        await it.pass_by(30)
        it.stage.plays[0].end()
        await it.pass_by(30)
        assert it.fired == ["a", "a"]


async def test_an_interval_keeps_its_phase_over_reloads_and_restarts_when_changed(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(every(600))) as it:
        await it.pass_by(500)
        await it.reload(automation(every(600), name="Renamed"), automation(id_="b"))
        await it.pass_by(100)
        assert it.instants == [after(seconds=600)]
        await it.reload(automation(every(700)))
        await it.pass_by(1400)
        assert it.instants[1:] == [after(seconds=1300), after(seconds=2000)]


async def test_an_interval_restarts_with_the_hub_unless_it_resumes(tmp_path: Path) -> None:
    card = Card()
    both = (automation(every(600)), automation(every(600), "r", **RESUMES))
    async with bench(tmp_path, *both, card=card) as it:
        await it.pass_by(700)
        assert it.fired == ["a", "r"]
    async with bench(tmp_path, *both, start=NOW + timedelta(seconds=800), card=card) as it:
        await it.pass_by(650)
        assert list(zip(it.fired, it.instants, strict=True)) == [
            ("r", after(seconds=1200)),
            ("a", after(seconds=1400)),
        ]


async def test_schedules_due_before_the_start_of_the_adapters_fire_once_after_it(tmp_path: Path) -> None:
    both = (automation(every(600), **RESUMES), automation(wall(14, 20), "b"), automation(every(600), "c"))
    has_started, card = False, Card()
    async with bench(tmp_path, *both, card=card) as it:
        it.parts.hold_until(lambda: has_started, it.bus)
        await it.pass_by(1900)
        it.bus.publish(AdapterStarted(adapter="desk"))
        await it.reload(*both[:2])
        noted = [*card.values["automation/a"]["fired"].values()]
        assert it.fired == [] and noted == [NOW.timestamp() * 1000]
        has_started = True
        it.bus.publish(AdapterStarted(adapter="tv"))
        await it.pass_by(0)
        assert sorted(zip(it.fired, it.instants, strict=True)) == [
            ("a", after(seconds=1800)),
            ("b", after(seconds=1200)),
        ]
        await it.pass_by(500)
        assert it.instants[2:] == [after(seconds=2400)]


@pytest.mark.parametrize(
    ("before", "start", "after_restart", "later", "fires"),
    [
        (650, 3100, every(600), 600, [after(seconds=3000), after(seconds=3600)]),
        (300, 400, every(600), 300, [after(seconds=600)]),  # a restart before the first occurrence
        (650, 3 * 86_400, every(60), 59, []),  # the last time of another schedule is ignored
        (650, 3 * 86_400, wall(0, 0), 59, []),
        (650, 3 * 86_400, cron("0 0 0 * * *"), 59, []),
    ],
)
async def test_an_interval_that_resumes_keeps_its_phase_over_a_restart(
    before: float, start: float, after_restart: dict[str, Any], later: float, fires: list[str], tmp_path: Path
) -> None:
    card = Card()
    async with bench(tmp_path, automation(every(600), **RESUMES), card=card) as it:
        await it.pass_by(before)
    begins = NOW + timedelta(seconds=start)
    async with bench(tmp_path, automation(after_restart, **RESUMES), start=begins, card=card) as it:
        await it.pass_by(later)
        assert it.instants == fires


async def test_a_resumable_interval_waits_for_the_time(tmp_path: Path) -> None:
    card = Card()
    it_resumes = automation(every(600), **RESUMES)
    async with bench(tmp_path, it_resumes, card=card) as it:
        await it.pass_by(650)
    kept = dict(card.values)
    async with bench(tmp_path, it_resumes, start=BOOT, believed_after=NOW, card=card) as it:
        await it.pass_by(60)
        assert it.fired == [] and card.values == kept
        await it.set(NOW + timedelta(seconds=1990))
        assert it.instants == [after(seconds=1800)]
        await it.pass_by(600)
        assert it.instants[1:] == [after(seconds=2400)]


async def test_an_interval_from_before_the_time_was_known_resumes_too(tmp_path: Path) -> None:
    card = Card()
    it_resumes = automation(every(600), **RESUMES)
    async with bench(tmp_path, it_resumes, start=BOOT, believed_after=NOW, card=card) as it:
        await it.pass_by(300)
        await it.set(NOW + timedelta(hours=1))
        await it.pass_by(85)
        assert it.fired == []
    async with bench(tmp_path, it_resumes, start=NOW + timedelta(seconds=3800), card=card) as it:
        await it.pass_by(50)
        assert it.fired == []
        await it.pass_by(60)
        assert it.fired == ["a"]


async def test_an_interval_needs_no_clock_and_stores_no_wrong_time(tmp_path: Path) -> None:
    card = Card()
    it_resumes = automation(every(600), **RESUMES)
    async with bench(tmp_path, it_resumes, start=BOOT, believed_after=NOW, card=card) as it:
        await it.pass_by(1300)
        assert it.fired == ["a", "a"] and card.values == {}
        await it.set(NOW + timedelta(hours=1))
        assert it.fired == ["a", "a"]
        await it.pass_by(500)
        assert it.fired == ["a", "a", "a"] and card.values != {}


async def test_a_schedule_keeps_its_times_over_reloads(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(wall(15, 0))) as it:
        for minute in range(58, 63):
            await it.pass_by(secs(minutes=minute) - it.clock.monotonic())
            await it.reload(automation(wall(15, 0), name=str(minute)))
        assert it.instants == [after(hours=1)]


async def test_an_error_of_one_automation_affects_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bright = {"type": "device_state", "device_id": LAMP, "attribute": "brightness", "above": 50}
    skipped = automation(id_="b", conditions=[bright])
    async with bench(tmp_path, automation(id_="a"), skipped, automation(id_="c")) as it:
        it.history.fails = True
        it.show(power="on")
        it.history.fails = False
        await it.drain()
        assert it.fired == ["a", "c"]
    assert "automation 'b': RuntimeError: the history takes nothing" in caplog.text


async def test_a_trigger_at_the_end_of_an_execution_waits_in_the_queue(tmp_path: Path) -> None:
    async with bench(tmp_path, automation({"type": "system_error"}, mode={"type": "queued", "max": 1})) as it:
        it.stage.ends_at_once = False
        for _ in range(2):
            it.bus.publish(SystemErrorReported(message="x"))
        it.stage.plays[0].end()
        asyncio.get_running_loop().call_soon(it.bus.publish, SystemErrorReported(message="y"))
        await it.drain()
        it.stage.plays[1].end()
        await it.drain()
        assert [each["message"] for each in it.events] == ["x", "x", "y"]


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_no_waiting_execution_begins_while_all_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_deleted: bool
) -> None:
    monkeypatch.setattr("appliance.event_loop.STEP_SECS", 0.0)
    monkeypatch.setattr("appliance.lua.running.executor.ENDS_AT_ONCE", 1)  # pause after each execution
    async with bench(tmp_path, automation({"type": "system_error"}, mode={"type": "queued", "max": 20})) as it:
        it.stage.ends_at_once = False
        for _ in range(10):
            it.bus.publish(SystemErrorReported(message="x"))
        executor = it.parts.executor
        skips = executor.use_sources({}) if is_deleted else executor.skip_waiting("a", "off")
        skipping = asyncio.ensure_future(skips)
        for _ in range(4):
            await asyncio.sleep(0)
        it.stage.plays[0].end()
        await skipping
        await it.drain()
        assert sorted(status for status, _ in it.outcomes()) == ["ok"] + ["skipped"] * 9


async def test_an_execution_that_is_queued_while_others_are_skipped_begins_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.event_loop.STEP_SECS", 0.0)
    async with bench(tmp_path, automation({"type": "system_error"}, mode={"type": "queued", "max": 400})) as it:
        it.stage.ends_at_once = False
        for _ in range(350):
            it.bus.publish(SystemErrorReported(message="x"))
        executor = it.parts.executor
        skipping = asyncio.ensure_future(executor.skip_waiting("a", "off"))
        await asyncio.sleep(0)
        it.stage.plays[0].end()
        for _ in range(3):
            await asyncio.sleep(0)
        assert not skipping.done() and ("ok", None) in it.outcomes()
        it.bus.publish(SystemErrorReported(message="y"))  # the automation is switched on again
        await skipping
        await it.drain()
        assert it.events[-1]["message"] == "y"
        it.stage.plays[-1].end()


@pytest.mark.parametrize("mode", ["queued", "parallel"])
async def test_events_of_executions_next_to_others_have_a_limit_in_bytes(tmp_path: Path, mode: str) -> None:
    async with bench(tmp_path, automation({"type": "system_error"}, mode={"type": mode, "max": 500})) as it:
        it.stage.ends_at_once = False
        executor, event = it.parts.executor, SystemErrorReported(message="x" * (MAX_EVENT_BYTES // 4))
        for _ in range(6):
            it.bus.publish(event)
        assert executor.count_running("a") == (1 if mode == "queued" else 4)
        assert it.outcomes() == [("dropped", f"mode: {EVENTS_FULL}")] * 2
        await executor.cancel_executions("a")
        await it.drain()
        for _ in range(5):
            it.bus.publish(event)
        assert [status for status, _ in it.outcomes()].count("dropped") == 3, "ended executions hold no event"


@pytest.mark.parametrize("many", ["[],", "{},", '{"a":1},', "[[[[]]]],", "1,", '"a",'])
async def test_the_limit_for_events_counts_the_memory_of_decoded_values(tmp_path: Path, many: str) -> None:
    """Arrays need 30 times the memory of their text, so only a few of these events fit."""
    hook, mode = {"type": "webhook", "hook": "h"}, {"type": "parallel", "max": 1000}
    text = many * (MAX_HOOK_BYTES // len(many) - 1)
    data = orjson.loads(f"[{text}0]")
    async with bench(tmp_path, automation(hook, mode=mode)) as it:
        it.stage.ends_at_once = False
        while not it.outcomes():
            it.bus.publish(HookCalled(hook="h", data=data, query={}))
        counted = it.parts.executor.count_running("a") - 1
        assert 0 < counted <= MAX_EVENT_BYTES / (JSON_VALUE_BYTES * text.count(","))


async def test_a_thousand_small_events_are_within_the_limit(tmp_path: Path) -> None:
    hook, mode = {"type": "webhook", "hook": "h"}, {"type": "parallel", "max": 1000}
    async with bench(tmp_path, automation(hook, mode=mode)) as it:
        it.stage.ends_at_once = False
        data = {f"field_{number}": number for number in range(30)}
        for _ in range(1000):
            it.bus.publish(HookCalled(hook="h", data=data, query={}))
        assert it.parts.executor.count_running("a") == 1000


async def test_large_events_of_others_drop_no_alarm(tmp_path: Path) -> None:
    mode = {"type": "parallel", "max": 99}
    smoke = {"type": "device_state_change", "device_id": LAMP, "attribute": "smoke", "equals": True}
    files = automation({"type": "system_error"}, mode=mode), automation(smoke, "alarm", mode=mode)
    async with bench(tmp_path, *files) as it:
        it.stage.ends_at_once = False
        for size in (*[MAX_EVENT_BYTES // 4 - 600] * 5, *[1] * 30):
            it.bus.publish(SystemErrorReported(message="x" * size))
        assert ("dropped", f"mode: {EVENTS_FULL}") in it.outcomes()
        for smokes in (True, False, True):
            it.show(smoke=smokes)
        assert it.parts.executor.count_running("alarm") == 2


async def test_an_execution_that_cannot_begin_uses_no_place(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(mode="single")) as it:
        it.stage.breaks.add("a")
        it.show(power="on")
        it.show(power="off")
        assert it.outcomes() == [("error", "it could not begin: ZeroDivisionError: by mistake")]
        it.stage.breaks.clear()
        it.show(power="on")
        await it.drain()
        assert it.fired == ["a"]


@pytest.mark.slow
async def test_each_of_hundreds_of_waiting_executions_that_cannot_begin_ends(tmp_path: Path) -> None:
    async with bench(tmp_path, automation({"type": "system_error"}, mode={"type": "queued", "max": 500})) as it:
        it.stage.ends_at_once = False
        for _ in range(501):
            it.bus.publish(SystemErrorReported(message="x"))
        it.stage.breaks.add("a")
        it.stage.plays[0].end()
        await until(lambda: it.parts.figures()["ended"]["error"] == 500)


async def test_a_failing_schedule_affects_only_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def next_after(self, instant: datetime) -> datetime | None:
            raise ZeroDivisionError("by mistake")

    async with bench(tmp_path, automation(every(600)), automation(cron("0 5 * * * *"), "c")) as it:
        it.parts.scheduler.at("automation 'x'", Broken(), lambda due: None)
        await it.pass_by(3600)
        assert it.fired.count("a") == 6 and it.fired.count("c") == 1
    assert "automation 'x': its schedule cannot be computed: ZeroDivisionError: by mistake" in caplog.text


async def test_after_the_end_nothing_fires_or_waits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with bench(tmp_path, automation(DURATION), automation(every(60), "i")) as it:
        it.show(power="on")
        await it.drain()
    it.show(power="off")
    it.show(power="on")
    await it.drain()
    assert it.fired == [] and it.clock.sleepers == 0


async def test_a_step_of_a_request_for_the_next_times_computes_one_time(tmp_path: Path) -> None:
    definition = automation(id_="a", triggers=[{**cron("0 0 12 * * *"), "id": str(number)} for number in range(30)])
    del definition["trigger"]
    async with bench(tmp_path, definition) as it:
        await it.drain()
        assert sum(1 for _ in it.parts.due_times.find_times("a")) == 30 * 10
        times = await it.parts.list_next("a")
        assert len(times) == 10 and times == sorted(set(times))


async def test_figures_show_armed_triggers_waits_and_next_times(tmp_path: Path) -> None:
    both = [automation(DURATION), automation(every(600), "i"), automation(wall(18, 0), "w")]
    async with bench(tmp_path, *both) as it:
        await it.parts.switch("w", is_enabled=False)
        idle = {"armed": True, "waiting": False, "next_fire": None, "last_run": None, "braked_secs": None}
        assert dict(it.parts.due_times.list_figures()) == {
            "a": idle,
            "i": {**idle, "next_fire": after(seconds=600)},
            "w": {**idle, "armed": False, "next_fire": after(hours=4)},
        }
        it.show(power="on")
        assert it.parts.due_times.figures_of("a") == {**idle, "waiting": True, "next_fire": after(seconds=60)}
        await it.pass_by(60)
        assert it.parts.due_times.figures_of("a") == {**idle, "last_run": after(seconds=60)}


async def test_events_during_a_long_reload_fire_each_automation_once(tmp_path: Path) -> None:
    """A reload changes one automation per step, and other tasks run between the steps."""
    mode, clock, events, during = {"type": "parallel", "max": 100}, BusyClock(NOW), 0, 0
    before = [automation(ON, f"a{number:02}", mode=mode) for number in range(20)]
    after_reload = [automation({**ON, "id": "new"}, each["id"], mode=mode) for each in before]
    async with bench(tmp_path, *before, clock=clock) as it:
        reloading = asyncio.create_task(it.reload(*after_reload))
        clock.is_busy = True
        while not reloading.done():
            events += 1
            it.show(power="on")
            it.show(power="off")
            during += 0 < sum(each.trigger.id == "new" for each in it.parts.engine.list_active()) < len(before)
            await asyncio.sleep(0)
        clock.is_busy = False
        await reloading
        await it.drain()
        assert during >= len(before) - 1
        assert Counter(it.fired) == {each["id"]: events for each in before}
        assert {event.get("trigger_id") for event in it.events} == {None, "new"}


async def test_a_list_of_automations_continues_after_a_reload_that_deletes_some(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(), automation(id_="b"), automation(id_="c")) as it:
        views = it.parts.list_timed_views()
        next(views)
        await it.reload(automation())
        assert [view.definition.id for view in views] == ["b", "c"]


async def test_a_reload_changes_only_the_triggers_of_changed_files(tmp_path: Path) -> None:
    files = [automation(ON, id_) for id_ in ("a", "b", "c")]
    async with bench(tmp_path, *files, automation(every(600), "i")) as it:
        before = it.parts.engine.list_active()
        await it.reload(*files, automation(every(600), "i"))
        assert [*map(id, it.parts.engine.list_active())] == [*map(id, before)]
        moved = automation({**ON, "attribute": "brightness", "equals": 7}, "a")
        await it.reload(*[moved, files[1]], automation(every(600), "i"), automation(ON, "b0"))
        kept = {id(each) for each in before} & {id(each) for each in it.parts.engine.list_active()}
        assert kept == {id(each) for each in before if each.id in ("b", "i")}
        it.show(power="on")
        await it.drain()
        assert it.fired == ["b", "b0"]
        it.show(power="on", brightness=7)
        await it.drain()
        assert it.fired == ["b", "b0", "a"]
