"""When a trigger fires, the automation runs, or is skipped for a reason. The end of a run affects the next run."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.errors import Busy
from appliance.home.events import SystemErrorReported
from appliance.lua.running.executor import MAX_BY_CLIENTS, ExecutionRequest
from appliance.lua.running.modes import Mode, ModeType
from appliance.lua.text.source import Source
from tests.automations.homes import NOW
from tests.fakes.automations import LAMP, Bench, Card, automation, bench

TICK = {"type": "system_error"}
COOL: dict[str, Any] = {"state": {"cooldown_secs": 60}}
OK = ("ok", None)


def cooling(secs: int) -> tuple[str, str]:
    """Return the outcome of a trigger that fired this many seconds too early."""
    return "skipped", f"cooldown: {secs} s more"


IN_PROGRESS = ("skipped", "cooldown: a run is in progress, and then a cooldown of 60 s follows")


def burst(it: Bench, times: int = 1) -> None:
    for _ in range(times):
        it.show(power="off")
        it.show(power="on")


async def hold(it: Bench) -> None:
    """Let runs continue until the test ends them."""
    await it.drain()
    it.stage.ends_at_once = False


async def test_conditions_use_the_home_after_the_change(tmp_path: Path) -> None:
    holds = {"type": "device_state", "device_id": LAMP, "attribute": "brightness", "above": 50}
    async with bench(tmp_path, automation(conditions=[holds])) as it:
        it.show(power="on", brightness=51)
        await it.drain()
        assert it.outcomes() == [OK]


async def test_a_disabled_automation_is_reported_and_uses_neither_cooldown_nor_event(tmp_path: Path) -> None:
    both = {"cooldown_secs": 60, "dedupe_window_secs": 60}
    async with bench(tmp_path, automation(TICK, state=both)) as it:
        await it.parts.switch("a", is_enabled=False)
        report_error(it)
        assert it.outcomes() == [("skipped", "disabled: the automation is switched off")]
        await it.parts.switch("a", is_enabled=True)
        report_error(it)
        await it.drain()
        assert it.outcomes()[1:] == [OK]


async def test_a_failed_condition_uses_neither_cooldown_nor_event(tmp_path: Path) -> None:
    state = {"cooldown_secs": 60, "dedupe_window_secs": 60}
    bright = {"type": "device_state", "device_id": LAMP, "attribute": "brightness", "above": 50}
    async with bench(tmp_path, automation(TICK, conditions=[bright], state=state)) as it:
        report_error(it)
        it.show(brightness=60)
        report_error(it)
        await it.drain()
        assert [status for status, _ in it.outcomes()] == ["skipped", "ok"]


def report_error(it: Bench, message: str = "oh") -> None:
    it.bus.publish(SystemErrorReported(message=message))


@pytest.mark.parametrize("clock_is_set_by_hours", [0, 5, -5])
async def test_one_trigger_of_a_burst_runs_and_others_are_explained(
    tmp_path: Path, clock_is_set_by_hours: int
) -> None:
    async with bench(tmp_path, automation(**COOL)) as it:
        burst(it, 50)
        await it.drain()
        it.clock.set(it.clock.now() + timedelta(hours=clock_is_set_by_hours))
        assert it.outcomes() == [IN_PROGRESS] * 49 + [OK]
        await it.pass_by(20)
        burst(it)
        assert cooling(40) in it.outcomes()
        await it.pass_by(39.9)
        burst(it)
        assert cooling(1) in it.outcomes()
        await it.pass_by(0.1)
        burst(it)
        await it.drain()
        assert it.fired == ["a", "a"]


@pytest.mark.parametrize("status", ["error", "timeout"])
async def test_a_failed_run_starts_no_cooldown(status: str, tmp_path: Path) -> None:
    async with bench(tmp_path, automation(**COOL)) as it:
        await hold(it)
        burst(it)
        it.stage.plays[0].fail(status)
        await it.drain()
        assert it.outcomes() == [(status, "x.lua:1: no")]
        burst(it)
        assert len(it.fired) == 2


async def test_a_cooldown_survives_reload_and_restart(tmp_path: Path) -> None:
    card = Card()
    async with bench(tmp_path, automation(**COOL), card=card) as it:
        burst(it)
        await it.drain()
        await it.reload(automation(name="Renamed", **COOL))
        burst(it)
        assert it.outcomes()[-1] == cooling(60)
    async with bench(tmp_path, automation(**COOL), start=NOW + timedelta(seconds=45), card=card) as it:
        it.show()
        burst(it)
        assert it.outcomes() == [cooling(15)]


@pytest.mark.parametrize(
    ("mode", "begin", "reason"),
    [
        ("single", 1, "mode: the limit of mode single is 1; already running: 1"),
        ({"type": "parallel", "max": 2}, 2, "mode: the limit of mode parallel is 2; already running: 2"),
        (None, 3, "mode: the limit of mode parallel is 3; already running: 3"),
        ({"type": "queued", "max": 2}, 1, "mode: the limit of mode queued is 2; already waiting: 2"),
        ("queued", 1, "mode: the limit of mode queued is 3; already waiting: 3"),
    ],
)
async def test_excess_triggers_are_dropped_with_a_reason(mode: Any, begin: int, reason: str, tmp_path: Path) -> None:
    async with bench(tmp_path, automation(mode=mode)) as it:
        await hold(it)
        burst(it, 7)
        assert len(it.fired) == begin
        assert set(it.outcomes()) == {("dropped", reason)}


class CountedId(str):
    """An id that counts the comparisons with equal ids."""

    __slots__ = ()
    __hash__ = str.__hash__
    compared = 0

    def __eq__(self, other: object) -> bool:
        type(self).compared += 1
        return str.__eq__(self, other)


async def test_joining_a_long_queue_does_not_scan_it(tmp_path: Path) -> None:
    source, mode = Source(name="b.lua", text=b""), Mode(type=ModeType.QUEUED, max=1000)
    async with bench(tmp_path, automation()) as it:
        await hold(it)
        for _ in range(100):
            it.parts.executor.submit(
                ExecutionRequest(kind="automation", id=CountedId("b"), name="B", source=source, mode=mode)
            )
    # each request needs only a few comparisons; searching the queue would need 5,000 more
    assert CountedId.compared < 2000


async def test_a_run_in_progress_survives_reloads_and_counts_for_its_mode(tmp_path: Path) -> None:
    async with bench(tmp_path, automation()) as it:
        await hold(it)
        burst(it, 2)
        await it.reload()
        await it.reload(automation(mode="single"))
        burst(it)
        assert it.outcomes() == [("dropped", "mode: the limit of mode single is 1; already running: 2")]
        for play in it.stage.plays:
            play.end()
        await it.drain()
        burst(it)
        assert len(it.fired) == 3


async def by_hand(it: Bench, event: dict[str, Any] | None = None) -> tuple[str, str | None]:
    """Return status and error of a manual run."""
    ending = await it.parts.run_by_hand("a", event or {"type": "manual"})
    return ending.status.value, ending.error


async def test_a_run_by_hand_ignores_switch_cooldown_and_mode(tmp_path: Path) -> None:
    state = {"cooldown_secs": 60, "dedupe_window_secs": 60}
    async with bench(tmp_path, automation(mode="single", state=state)) as it:
        assert await by_hand(it) == OK
        assert await by_hand(it) == OK
        await it.parts.switch("a", is_enabled=False)
        assert await by_hand(it) == OK
        await it.parts.switch("a", is_enabled=True)
        await hold(it)
        burst(it)
        it.stage.ends_at_once = True
        assert await by_hand(it, {"any": ["thing"]}) == OK
        assert it.events[-1] == {"any": ["thing"]} == it.entries()[-1].trigger_payload


async def test_conditions_apply_to_a_run_by_hand(tmp_path: Path) -> None:
    bright = {"type": "device_state", "device_id": LAMP, "attribute": "brightness", "above": 50}
    async with bench(tmp_path, automation(conditions=[bright])) as it:
        reason = "condition 1: brightness was 20, needs above 50"
        assert await by_hand(it) == ("skipped", reason) == it.outcomes()[0]


async def test_a_run_by_hand_uses_no_place_and_no_cooldown(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(mode="single", **COOL)) as it:
        await hold(it)
        running = asyncio.ensure_future(by_hand(it))
        await it.drain()
        burst(it)
        assert len(it.fired) == 2
        it.stage.plays[0].end()
        assert await running == OK
        burst(it)
        assert it.outcomes()[-1] == IN_PROGRESS


async def test_executions_by_hand_are_refused_before_others_lack_memory(tmp_path: Path) -> None:
    async with bench(tmp_path, automation()) as it:
        await hold(it)
        running = [asyncio.ensure_future(by_hand(it)) for _ in range(MAX_BY_CLIENTS)]
        await it.drain()
        with pytest.raises(Busy, match="'a' did not start, because 1000 executions that clients started have not"):
            await by_hand(it)
        others = asyncio.ensure_future(it.parts.run_by_hand("a", {"type": "manual"}, "another key"))
        await it.drain()
        assert len(it.fired) == MAX_BY_CLIENTS + 1
        it.stage.plays[-1].end()
        await others
        burst(it)
        assert len(it.fired) == MAX_BY_CLIENTS + 2
        it.stage.plays[0].end()
        assert await running[0] == OK
        it.stage.ends_at_once = True
        assert await by_hand(it) == OK
        it.stage.is_half_used = True
        with pytest.raises(Busy, match="because the running executions use half of the memory for Lua; cancel some"):
            await by_hand(it)
        burst(it)
        assert len(it.fired) == MAX_BY_CLIENTS + 4


async def test_a_start_by_a_client_without_room_in_the_worker_is_busy(tmp_path: Path) -> None:
    async with bench(tmp_path, automation()) as it:
        await hold(it)
        running = asyncio.ensure_future(by_hand(it))
        await it.drain()
        it.stage.plays[0].end(Busy("there is no room"))
        with pytest.raises(Busy, match="automation 'a' did not start, because there is no room; cancel some"):
            await running
        assert it.outcomes()[-1][0] == "dropped"


async def test_an_execution_may_always_start_a_scene(tmp_path: Path) -> None:
    source, mode = Source(name="s.lua", text=b""), Mode(type=ModeType.PARALLEL, max=8)
    async with bench(tmp_path, automation()) as it:
        it.stage.is_half_used = True
        request = ExecutionRequest(kind="scene", id="s", name="S", source=source, mode=mode, is_waited_for=True)
        with pytest.raises(Busy, match="scene 's' did not start"):
            it.parts.executor.submit(request)
        execution = it.parts.executor.submit(replace(request, chain=("automation:a",)))
        assert (await execution.ended).status == "ok"


async def test_an_unrecorded_end_frees_its_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with bench(tmp_path, automation(mode="single")) as it:
        it.history.fails = True
        assert await by_hand(it) == OK
        assert "'automation:a' has ended, but its end could not be recorded" in caplog.text
        it.history.fails = False
        assert await by_hand(it) == OK == it.outcomes()[-1]


async def test_a_skipped_event_is_not_a_duplicate_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    queued = automation(TICK, mode="queued", state={"dedupe_window_secs": 600, "cooldown_secs": 0})
    async with bench(tmp_path, queued) as it:
        it.stage.ends_at_once = False
        for message in ("one", "two"):
            it.bus.publish(SystemErrorReported(message=message))
        await it.drain()
        caplog.set_level("INFO", "automations")
        for is_enabled in (True, False, False, True):
            await it.parts.switch("a", is_enabled=is_enabled)
        assert [each for each in caplog.messages if "switched" in each] == [
            "automation 'a' is switched off",
            "automation 'a' is switched on",
        ]
        it.stage.plays[0].end()
        it.bus.publish(SystemErrorReported(message="two"))
        await it.drain()
        assert [event["message"] for event in it.events] == ["one", "two"]


async def test_a_cancelled_run_starts_no_cooldown(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(**COOL)) as it:
        await hold(it)
        burst(it)
        it.stage.plays[0].cancel()
        await it.drain()
        burst(it)
        assert (len(it.fired), it.outcomes()[0][0]) == (2, "cancelled")


async def test_automations_wait_for_room_in_the_pool_unless_started_by_hand(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(TICK, mode={"type": "queued", "max": 2})) as it:
        await hold(it)
        it.stage.room.clear()
        executor = it.parts.executor
        for _ in range(3):
            report_error(it)
        views = executor.list_executions("a")
        assert [each.status for each in views] == ["queued"] * 3
        earlier = "waiting for earlier executions"
        room = "waiting for room in the Lua worker until some of 0 executions end"
        assert [each.doing for each in views] == [room, earlier, earlier]
        assert it.stage.plays == []
        running = asyncio.ensure_future(by_hand(it))
        await it.drain()
        assert len(it.stage.plays) == 1
        it.stage.plays[0].end()
        assert await running == OK
        first, *_ = executor.list_executions("a")
        assert executor.cancel_execution(first.id)
        it.stage.room.set()
        await it.drain()
        assert len(it.stage.plays) == 2
        it.stage.ends_at_once = True
        it.stage.plays[1].end()
        await it.drain()
        assert executor.list_executions("a") == []
        assert [status for status, _ in it.outcomes()].count("cancelled") == 1
        assert len(it.stage.plays) == 3
        assert not executor._waiting, "an id without waiting executions needs no memory"


SMOKE = {"type": "device_state_change", "device_id": LAMP, "attribute": "smoke", "equals": True}


async def test_an_alarm_without_room_begins_before_earlier_executions(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(TICK), automation(SMOKE, "alarm")) as it:
        await hold(it)
        it.stage.room.clear()
        it.stage.has_room_for_alarms = False
        report_error(it)
        it.show(smoke=True)
        await it.drain()
        assert it.stage.plays == []
        [view] = it.parts.executor.list_executions("alarm")
        assert view.doing == "waiting for room in the Lua worker until some of 0 executions end"
        it.stage.room.set()
        await it.drain()
        assert [each.name for each in it.stage.plays] == ["alarm", "a"]


@pytest.mark.parametrize("wait", [{}, {"duration_secs": 5}])
async def test_an_alarm_begins_at_once_while_others_wait_for_room(tmp_path: Path, wait: dict[str, Any]) -> None:
    async with bench(tmp_path, automation(TICK), automation({**SMOKE, **wait}, "alarm")) as it:
        await hold(it)
        it.stage.room.clear()
        report_error(it)
        it.show(smoke=True)
        await it.pass_by(6)
        assert [each.name for each in it.stage.plays] == ["alarm"] and it.stage.alarms == ["alarm"]


async def test_an_execution_reports_a_long_wait_for_room(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(TICK)) as it:
        await it.drain()
        it.stage.room.clear()
        it.stage.unended = 256
        report_error(it)
        await it.pass_by(17.5)
        it.stage.room.set()
        await it.drain()
        [entry] = it.entries()
        assert entry.warnings == ("waited 17.5 s to begin, because 256 executions had not ended",)


async def test_replaced_automations_that_waited_for_room_leave_one_wait_for_room(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(TICK, mode="restart")) as it:
        await it.drain()
        it.stage.room.clear()
        for _ in range(3):
            report_error(it)
            await it.drain()
        assert it.stage.waits_for_room == 1
        it.stage.room.set()
        await it.drain()
        assert len(it.stage.plays) == 1
        it.stage.room.clear()
        report_error(it)
        await it.drain()
        assert it.stage.waits_for_room == 2, "after all waiting executions have started, the next one waits again"


async def test_an_automation_that_waits_for_room_does_not_start_after_it_was_switched_off(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(TICK, mode={"type": "queued", "max": 2})) as it:
        await it.drain()
        it.stage.room.clear()
        for _ in range(2):
            report_error(it)
        await it.parts.switch("a", is_enabled=False)
        it.stage.room.set()
        await it.drain()
        assert not it.stage.plays and not it.parts.executor.list_executions("a")
        assert it.outcomes() == [("skipped", "disabled: the automation is switched off")] * 2


@pytest.mark.parametrize(("has_room", "unstarted"), [(True, 1), (False, 2)])
@pytest.mark.parametrize(
    ("edited", "reason"),
    [
        ({"name": "New"}, None),
        ({"trigger": {"type": "variable_change", "name": "x"}}, None),
        ({"enabled": False}, "disabled: the automation is switched off"),
        (None, "disabled: its file was deleted"),
    ],
)
async def test_a_reload_applies_to_executions_that_have_not_started(
    tmp_path: Path, edited: dict[str, Any] | None, reason: str | None, *, has_room: bool, unstarted: int
) -> None:
    queued, other = automation(TICK, mode="queued"), automation(id_="b")
    async with bench(tmp_path, queued, other) as it:
        await hold(it)
        if not has_room:
            it.stage.room.clear()
        for _ in range(2):
            report_error(it)
        earlier = [*it.stage.plays]
        await it.reload(*([] if edited is None else [{**queued, **edited}]), other)
        it.stage.room.set()
        it.stage.ends_at_once = True
        for play in earlier:
            play.end()
        await it.drain()
        later = [play.source.text for play in it.stage.plays[len(earlier) :]]
        if edited is None:
            await it.reload(queued, other)
        if reason is None:
            assert later == [it.parts.catalog.get("a").source.text] * unstarted
        else:
            assert not later and it.outcomes().count(("skipped", reason)) == unstarted
