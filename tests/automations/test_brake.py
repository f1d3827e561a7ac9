"""The brake pauses an automation that triggers itself repeatedly, but never pauses actions of people."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from appliance.home.commands import Command
from appliance.home.events import CommandStarted, DeviceEvent
from tests.fakes.automations import Bench, automation, bench

OTHERWISE = {"brightness": 7, "power": "off"}
CHANGES = {"type": "device_state_change", "device_id": "desk:light:0", "attribute": "brightness"}
OTHER = {**CHANGES, "device_id": "desk:light:1"}
PRESSES = {"type": "device_event", "device_id": "desk:light:0"}


def command(it: Bench, source: str, device_id: str, value: int) -> None:
    """Send a command from the source to the device, which then reports the value."""
    done = Command.parse({"capability": "brightness", "action": "set", "value": value})
    it.bus.publish(CommandStarted(source=source, device_id=device_id, command=done))
    it.show(device_id, brightness=value)


async def feed_back(it: Bench, times: int, *steps: tuple[str, str]) -> None:
    """Play these rounds. In each round, the sources command their devices."""
    for number in range(times):
        for source, device_id in steps:
            command(it, source, device_id, number % 100)
            await it.drain()


async def test_a_self_triggering_automation_is_paused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with bench(tmp_path, automation(CHANGES)) as it:
        await feed_back(it, 20, ("automation:a", "desk:light:0"))
        assert 10 <= len(it.fired) <= 12
        sentence = "it triggered itself 10 times within 10 s; paused for 60 s"
        assert ("skipped", f"brake: {sentence}") in it.outcomes()
        assert f"automation 'a': {sentence}" in caplog.text
        assert it.parts.due_times.figures_of("a")["braked_secs"] == 60
        count = len(it.fired)
        await it.pass_by(59)
        it.show(brightness=50)
        await it.drain()
        assert len(it.fired) == count
        assert it.outcomes()[-1] == ("skipped", "brake: it triggered itself too often; paused for 1 s more")
        await it.pass_by(2)
        it.show(brightness=51)
        await it.drain()
        assert len(it.fired) == count + 1 and it.parts.due_times.figures_of("a")["braked_secs"] is None


async def test_two_automations_that_trigger_each_other_are_paused_too(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(CHANGES, "a"), automation(OTHER, "b")) as it:
        it.show("desk:light:1", brightness=1)
        await feed_back(it, 40, ("automation:b", "desk:light:0"), ("automation:a", "desk:light:1"))
        assert it.fired.count("a") <= 13 and it.fired.count("b") <= 13


async def test_a_person_who_runs_an_automation_often_pauses_no_other(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(CHANGES, "a"), automation(OTHER, "b")) as it:
        it.show("desk:light:1", brightness=1)
        await feed_back(it, 1, ("automation:a", "desk:light:1"))
        assert it.fired == ["b"]
        await it.pass_by(86_400)
        for number in range(15):
            running = asyncio.ensure_future(it.parts.run_by_hand("b", {"type": "manual"}))
            await it.drain()
            command(it, "automation:b", "desk:light:0", number)
            await it.drain()
            running.cancel()
        assert it.fired.count("a") == 15


@pytest.mark.parametrize("source", ["device", "room", "scene:x", "automation:other"])
async def test_changes_by_others_never_pause_an_automation(source: str, tmp_path: Path) -> None:
    async with bench(tmp_path, automation(CHANGES)) as it:
        await feed_back(it, 50, (source, "desk:light:0"))
        assert len(it.fired) >= 49


@pytest.mark.parametrize(("pause", "runs"), [(1.2, 30), (9, 30), (11, 40)])
async def test_slow_feedback_is_paused_after_thirty_runs(pause: float, runs: int, tmp_path: Path) -> None:
    async with bench(tmp_path, automation(CHANGES)) as it:
        for number in range(40):
            command(it, "automation:a", "desk:light:0", number)
            await it.pass_by(pause)
        is_braked = ("skipped", "brake: it triggered itself 30 times within 300 s; paused for 60 s") in it.outcomes()
        assert is_braked is (runs == 30)
        assert len(it.fired) in (runs, runs + 1) or (pause == 9 and len(it.fired) < 40)


async def test_two_automations_that_mirror_each_other_slowly_are_paused(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(CHANGES, "a"), automation(OTHER, "b")) as it:
        it.show("desk:light:1", brightness=1)
        for number in range(60):
            for source, device_id in (("automation:b", "desk:light:0"), ("automation:a", "desk:light:1")):
                command(it, source, device_id, number % 100)
                await it.pass_by(1.5)
        assert it.fired.count("a") <= 40 and it.fired.count("b") <= 40


async def test_commands_of_a_scene_count_for_the_automation_that_runs_it(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(CHANGES)) as it:
        brake: Any = it.brake
        for number in range(30):
            brake.note_effect("automation:a", "scene", "x")
            await feed_back(it, 1, ("scene:x", "desk:light:0")) if number else None
            await it.drain()
        assert len(it.fired) <= 13


@pytest.mark.parametrize(
    ("trigger", "shown"),
    [
        (CHANGES, {"brightness": 40}),
        ({"type": "device_state_change", "device_id": "desk:light:0"}, {"power": "on"}),
        ({"type": "device_event", "device_id": "desk:light:0"}, {}),
    ],
)
async def test_changes_by_people_to_a_commanded_device_never_pause_an_automation(
    trigger: dict[str, Any], shown: dict[str, Any], tmp_path: Path
) -> None:
    asked = Command.parse({"capability": "brightness", "action": "set", "value": 100})
    async with bench(tmp_path, automation(trigger)) as it:
        it.show(brightness=100, power="on")
        await it.drain()
        before = len(it.fired)
        for number in range(30):
            if shown:
                it.show(**(shown if number % 2 else {name: OTHERWISE[name] for name in shown}))
            else:
                it.bus.publish(DeviceEvent(device_id="desk:light:0", event="press", data={}))
            it.bus.publish(CommandStarted(source="automation:a", device_id="desk:light:0", command=asked))
            await it.drain()
        assert len(it.fired) == before + 30


async def test_an_automation_that_switches_its_trigger_lamp_is_paused(tmp_path: Path) -> None:
    power = {"type": "device_state_change", "device_id": "desk:light:0", "attribute": "power"}
    async with bench(tmp_path, automation(power)) as it:
        for number in range(30):
            action = "on" if number % 2 == 0 else "off"
            done = Command.parse({"capability": "power", "action": action if number % 3 else "toggle"})
            it.bus.publish(CommandStarted(source="automation:a", device_id="desk:light:0", command=done))
            it.show(power=action)
            await it.drain()
        assert len(it.fired) == 10


@pytest.mark.parametrize(
    ("trigger", "sent", "is_braked"),
    [(CHANGES, None, True), (PRESSES, "press", True), (PRESSES, "answered", False)],
)
async def test_an_operation_counts_for_its_caller(
    trigger: dict[str, Any], sent: str | None, is_braked: bool, tmp_path: Path
) -> None:
    async with bench(tmp_path, automation(trigger)) as it:
        it.show(brightness=50)
        for number in range(30):
            stated = {"event": sent} if sent else {"attributes": {"brightness": number}}
            it.brake.note_invoke("automation:a", {"device_id": "desk:light:0", **stated})
            it.show(brightness=number)
            it.bus.publish(DeviceEvent(device_id="desk:light:0", event="press", data={}))
            await it.drain()
        assert 10 <= len(it.fired) <= 12 if is_braked else len(it.fired) == 30


async def test_a_quiet_home_keeps_no_records_of_a_flood(tmp_path: Path) -> None:
    async with bench(tmp_path, automation(CHANGES)) as it:
        for number in range(1000):
            it.brake.note_effect("automation:a", "variable", f"v{number}")
        await it.pass_by(6)
        it.brake.note_effect("automation:a", "variable", "late")
        await it.pass_by(6)
        it.brake.remove_expired()
        assert [*it.brake._effects] == [("variable", "late")]
        await it.pass_by(6)
        it.brake.remove_expired()
        assert not it.brake._effects
