"""A command is complete when the device reports certain values."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from appliance.adapters.confirmation import ExpectedState, failure, wait_for_result
from appliance.clock import Clock
from appliance.event_loop import SHORT_TURN_SECS, loop_lag, run
from appliance.home.command_specs import CommandSpec
from appliance.home.commands import Command
from tests.fakes.rows import each_row


def _kelvin(value: int) -> dict[str, Any]:
    return {"value": value, "unit": "kelvin"}


MIRED_STEP = {"value": 10, "unit": "mireds"}
CASES: tuple[tuple[str, str, Any, Any, Any, bool], ...] = (
    ("power", "on", None, "off", "on", True),
    ("power", "on", None, "off", "off", False),
    ("power", "toggle", None, "off", "on", True),
    ("power", "toggle", None, "off", "off", False),
    ("brightness", "set", 40, 10, 41, False),
    ("brightness", "set", 40, 10, 40, True),
    ("brightness", "set", 40, 10, None, False),
    ("brightness", "increase", 10, 50, 60, True),
    ("brightness", "increase", 10, 100, 100, True),
    ("brightness", "decrease", 10, 50, 50, False),
    ("color_temperature", "increase", _kelvin(100), _kelvin(3000), _kelvin(3100), True),
    ("color_temperature", "increase", _kelvin(100), _kelvin(3000), _kelvin(3000), False),
    ("color_temperature", "increase", MIRED_STEP, _kelvin(3000), _kelvin(2913), True),
    ("color_temperature", "decrease", MIRED_STEP, _kelvin(3000), _kelvin(2913), False),
    ("target_temperature", "set", {"value": 21, "unit": "°C"}, None, {"value": 21.0, "unit": "°C"}, True),
    ("target_temperature", "set", {"value": 21, "unit": "°C"}, None, {"value": 25.0, "unit": "°C"}, False),
    ("target_temperature", "set", {"value": 30, "unit": "°C"}, None, {"value": 29.5, "unit": "°C"}, False),
    ("target_temperature", "set", {"value": 71, "unit": "°F"}, None, {"value": 70, "unit": "°F"}, False),
    ("target_temperature", "set", {"value": 21.3, "unit": "°C"}, None, {"value": 21, "unit": "°C"}, True),
    ("color_temperature", "set", {"value": 250, "unit": "mireds"}, None, {"value": 4000, "unit": "kelvin"}, True),
    ("color_rgb", "set", {"r": 1, "g": 2, "b": 3}, None, {"r": 1, "g": 2, "b": 3}, True),
    ("cover_position", "set", 50, 0, 3, True),
    ("cover_position", "set", 50, 0, 0, False),
    ("cover_position", "open", None, 100, 100, True),
    ("cover_position", "stop", None, 30, 30, True),
    ("garage_door", "open", None, "closed", "opening", True),
    ("garage_door", "open", None, "closed", "closed", False),
    ("muted", "mute", None, False, True, True),
    ("media_playback", "next", None, "playing", "playing", True),
    ("energy_total", "reset", None, {"value": 5}, {"value": 0}, True),
    ("hvac_mode", "set", "heat", "off", "heat", True),
    ("custom.x.scene", "press", None, None, None, True),
)


@each_row(("capability", "action", "value", "before", "seen", "is_done"), CASES)
def test_a_command_is_complete_when_its_result_is_shown(
    capability: str, action: str, value: Any, before: Any, seen: Any, is_done: bool
) -> None:
    command = Command(capability=capability, action=action, value=value)
    expected = ExpectedState(command, (), {} if before is None else {capability: before})
    assert expected.is_shown({} if seen is None else {capability: seen}) is is_done


def test_half_a_step_is_close_enough_and_the_error_names_both_values() -> None:
    specs = [CommandSpec(capability="brightness", actions=("set",), step=5)]
    expected = ExpectedState(Command(capability="brightness", action="set", value=40), specs, {"brightness": 0})
    assert expected.is_shown({"brightness": 42}) and not expected.is_shown({"brightness": 43})
    assert str(failure("a:b", expected.command, {"brightness": 43})) == "a:b was sent brightness 40 but shows 43"
    warmth = CommandSpec(capability="color_temperature", actions=("set",), step=50, unit="kelvin")
    command = Command(capability="color_temperature", action="set", value={"value": 250, "unit": "mireds"})
    for kelvin, is_done in ((4020, True), (4030, False)):
        shown = {"color_temperature": {"value": kelvin, "unit": "kelvin"}}
        assert ExpectedState(command, [warmth], {}).is_shown(shown) is is_done


def test_a_lamp_that_is_off_is_treated_as_dimmed() -> None:
    dark = ExpectedState(
        Command(capability="brightness", action="set", value=0), (), {"power": "on", "brightness": 40}
    )
    assert dark.is_shown({"power": "off", "brightness": 40}) and not dark.is_shown({"power": "on", "brightness": 40})


@pytest.mark.parametrize("is_shown", [True, False])
def test_waits_that_end_together_return_in_separate_turns(*, is_shown: bool) -> None:
    turns: list[int] = []

    async def wait_for_all() -> None:
        shown = asyncio.Event()

        async def wait() -> None:
            assert await wait_for_result(Clock(), shown, 60.0 if is_shown else 0.01) is is_shown
            turns.append(loop_lag().turns)
            time.sleep(2 * SHORT_TURN_SECS)  # noqa: ASYNC251 - the work after a wait

        waits = [asyncio.ensure_future(wait()) for _ in range(4)]
        await asyncio.sleep(0)
        time.sleep(0.02)  # noqa: ASYNC251 - all limits expire in one turn
        if is_shown:
            shown.set()
        await asyncio.gather(*waits)

    run(wait_for_all())
    assert len({*turns}) == 4
