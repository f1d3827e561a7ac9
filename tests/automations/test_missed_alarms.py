"""Alarms and waits while no automation can run, because the hub is in safe mode or was killed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from appliance.automations.safe_mode import SafeMode
from appliance.home.model import DeviceKind, Observation, Report
from tests.automations.homes import NOW, device
from tests.automations.test_gaps import GAP, SENSOR, VALUE, Pushed, observe, replace_section, trigger_of
from tests.fakes.automations import Card, automation, bench

CRASHES, SAFE = "after crashes", "--safe"
RELOAD, RESTART, SECTION = "reload", "restart", "section"

SMOKE = trigger_of("smoke", equals=True)
OPEN = trigger_of(VALUE, equals="open", at_start=True)


def begin_safe_mode(reason: str) -> SafeMode:
    safe_mode = SafeMode(is_requested=reason == SAFE)
    safe_mode.begin_after_crashes(cast("Any", SimpleNamespace(end_series=lambda: None)))
    return safe_mode


@pytest.mark.parametrize(
    ("trigger", "reason", "steps", "fires"),
    [
        (SMOKE, CRASHES, [False, True, RELOAD], 1),
        (SMOKE, CRASHES, [False, Pushed(True), RELOAD], 1),
        (SMOKE, CRASHES, [True, RELOAD], 1),
        (SMOKE, CRASHES, [False, True, GAP, RELOAD, GAP, True], 1),
        (SMOKE, CRASHES, [False, True, RELOAD, True, RELOAD, True, RESTART, True], 1),
        (SMOKE, CRASHES, [False, True, False, True, RELOAD], 1),
        (SMOKE, CRASHES, [False, True, False, RELOAD, False, True], 1),
        (SMOKE, CRASHES, [False, True, False, RELOAD], 0),
        (SMOKE, CRASHES, [False, True, RELOAD, False, True], 2),
        (SMOKE, CRASHES, [False, True, SECTION, RELOAD, True, True], 1),
        (SMOKE, CRASHES, [False, True, RESTART, True, True, RESTART, True], 1),
        (SMOKE, SAFE, [False, True, RESTART, True, True], 1),
        (SMOKE, SAFE, [False, True, RESTART, GAP, RESTART, GAP, True], 1),
        (SMOKE, SAFE, [False, True, False, RESTART, False], 0),
        ({**SMOKE, "device_id": "*"}, CRASHES, [False, True, RELOAD], 1),
        ({**SMOKE, "duration_secs": 0.001}, CRASHES, [False, True, RELOAD, "1 s"], 1),
        (OPEN, CRASHES, ["closed", "open", RELOAD], 1),
        (trigger_of(VALUE, equals="open"), CRASHES, ["closed", "open", RELOAD, "open"], 0),
        (trigger_of(VALUE, equals="open"), CRASHES, ["closed", "open", RELOAD, "closed", "open"], 1),
    ],
)
async def test_an_alarm_that_began_in_safe_mode_fires_once_afterwards(
    trigger: dict[str, Any], reason: str, steps: list[Any], fires: int, tmp_path: Path
) -> None:
    card, fired, safe_mode = Card(devices=[device({}, "desk:other")]), 0, begin_safe_mode(reason)
    remaining = list(steps)
    while remaining:
        async with bench(tmp_path, automation(trigger), card=card, stopped_at=NOW, safe_mode=safe_mode) as it:
            while remaining and (step := remaining.pop(0)) != RESTART:
                if step == RELOAD:
                    await it.reload(automation(trigger))
                elif step == SECTION:
                    replace_section(it.registry)
                elif step == "1 s":
                    await it.pass_by(1)
                else:
                    observe(it, trigger["attribute"], step)
                await it.drain()
            fired += len(it.fired)
        safe_mode = SafeMode()
    assert fired == fires


@pytest.mark.parametrize("was_kept", [False, True])
async def test_an_alarm_that_was_doubtful_at_the_start_of_safe_mode_fires_after_it(
    was_kept: bool, tmp_path: Path
) -> None:
    """After a crash, an alarm with the stored value may have ended and begun again."""
    stored = device({"smoke": was_kept}, "desk:sensor")
    card = Card(devices=[stored], was_cut_off=True)
    async with bench(tmp_path, automation(SMOKE), card=card, safe_mode=begin_safe_mode(CRASHES)) as it:
        observe(it, "smoke", True)
        await it.drain()
        assert it.fired == []
        await it.reload(automation(SMOKE))
        await it.drain()
        assert it.fired == ["a"] and "late_secs" in it.events[0]


@pytest.mark.parametrize(
    ("reports", "fires_after"),
    [(["open"], [0, 1]), (["open", GAP], [0, 1]), (["open", "closed"], [0, 0]), (["closed"], [0, 0])],
)
async def test_a_wait_from_before_safe_mode_continues_after_it(
    reports: list[Any], fires_after: list[int], tmp_path: Path
) -> None:
    waiting, card = trigger_of(VALUE, equals="open", duration_secs=60), Card()
    async with bench(tmp_path, automation(waiting), card=card) as it:
        observe(it, VALUE, "closed")
        observe(it, VALUE, "open")
        await it.pass_by(10)
    safe_mode, start = begin_safe_mode(CRASHES), NOW + timedelta(seconds=20)
    async with bench(tmp_path, automation(waiting), card=card, start=start, safe_mode=safe_mode) as it:
        for each in reports:
            observe(it, VALUE, each)
        await it.pass_by(10)
        await it.reload(automation(waiting))
        fired = []
        for secs in (29, 2):
            await it.pass_by(secs)
            fired.append(len(it.fired))
        assert fired == fires_after


@pytest.mark.parametrize("reports_again", [True, False])
@pytest.mark.parametrize("has_ended", [False, True])
@pytest.mark.parametrize("wait", ["duration_secs", "debounce_secs"])
async def test_the_wait_of_an_alarm_continues_after_a_kill_although_the_last_flush_is_older(
    wait: str, has_ended: bool, reports_again: bool, tmp_path: Path
) -> None:
    """After the kill, an adapter such as MQTT repeats the stored value."""
    waiting, card = automation(trigger_of("smoke", equals=True, **{wait: 60})), Card()
    async with bench(tmp_path, waiting, card=card) as it:
        for value in (False, True, False) if has_ended else (False, True):
            observe(it, "smoke", value)
        await it.pass_by(20)
    card.devices, card.was_cut_off = [*card.recorded.values()], True
    async with bench(tmp_path, waiting, card=card, start=NOW + timedelta(seconds=30)) as it:
        (stored,) = card.devices
        assert stored.attributes["smoke"] is not has_ended
        repeated = Observation(
            device_id=SENSOR, kind=DeviceKind.SENSOR, attributes=stored.attributes, kept=frozenset({"smoke"})
        )
        it.registry.apply(Report(adapter="desk", observations=(repeated,)))
        await it.drain()
        if reports_again:
            observe(it, "smoke", not has_ended)
        await it.pass_by(29)
        assert it.fired == []
        await it.pass_by(2)
        assert it.fired == ([] if has_ended else ["a"])
