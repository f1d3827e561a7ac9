"""Checks whether a device has carried out a command. Computes the expected state, waits for this state, and builds
the error message.

`PollingAdapter.confirm_all` reads polled devices until they report their results. Matter and MQTT compare the values
that they sent, in the units of the protocol, because a device may round or limit a value. The adapter for Roku TVs
treats an accepted key press as a success, and compares only the power.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from appliance.clock import Clock
from appliance.errors import AdapterFailed, BadAnswer, Unanswered
from appliance.event_loop import wait_for_short_turn
from appliance.home.capabilities import STATES_AFTER
from appliance.home.command_specs import CommandSpec
from appliance.home.commands import Command
from appliance.home.model import AWAY, UNAVAILABLE, Report
from appliance.home.values import KELVIN_RANGE, Value, kelvin_in
from appliance.tables.checks import format_value, is_number

CONFIRM_SECS = 3.5
"""Time limit for the device to report the result of a command."""

RESULT_SECS = 5.0
"""Time limit for a device that reports its state without a request, as in Matter and MQTT."""

CONFIRM_MARGIN_SECS = 0.5
"""Seconds between the last reading and the command's time limit. Because of this margin, the reading fails before
the command does."""

MOVING: Mapping[str, tuple[str, ...]] = {"open": ("open", "opening"), "close": ("closed", "closing")}
"""For each action on a cover, the states that confirm the action."""

_TOLERANCES = {"r": 8, "g": 8, "b": 8, "hue": 4, "saturation": 4, "x": 0.03, "y": 0.03}
"""The accepted difference for each component of a colour."""

_MAX_TOLERANCES: Mapping[Value, float] = {"°C": 0.45, "°F": 0.95}
"""The highest accepted difference by unit. It is less than the usual step of a target temperature."""

COVER_CAPABILITIES = ("cover_position", "cover_tilt")
DOORS = ("door", "garage_door")

T = TypeVar("T")


class ExpectedState:
    """The expected state after a command to a device whose attributes were `before`.

    If the command has a step, a number must be within half a step. If the command has no step, the rules of
    `equals_rounded` apply, or a tolerance of 0.5 for numbers without a unit. A cover must move or reach its position.
    `press`, `stop`, and all other actions without a visible effect are confirmed immediately.
    """

    def __init__(self, command: Command, specs: Iterable[CommandSpec], before: Mapping[str, Value]) -> None:
        self.command = command
        self._before = before.get(command.capability)
        spec = next((each for each in specs if each.capability == command.capability), None)
        self._step = None if spec is None else spec.step
        has_unit = isinstance(self._before, Mapping)  # only a colour temperature has a unit and steps
        low, high = KELVIN_RANGE if has_unit else (0, 100)
        self._low = low if spec is None or spec.min is None else spec.min
        self._high = high if spec is None or spec.max is None else spec.max

    def is_shown(self, attributes: Mapping[str, Value]) -> bool:
        """Return whether these attributes confirm the command."""
        capability, action = self.command.capability, self.command.action
        seen = attributes.get(capability)
        if attributes.get("state") in AWAY:
            return False
        if capability in (*COVER_CAPABILITIES, *DOORS):
            return self._moves(seen)
        match action:
            case "set":
                if capability == "brightness" and self.command.value == 0 and attributes.get("power") == "off":
                    return True  # some lamps keep their brightness while they are off
                return self._is_near(self.command.value, seen)
            case "toggle" | "next" | "previous":
                return bool(action != "toggle" or seen != self._before)
            case "increase" | "decrease":
                return self._has_stepped(seen)
            case "reset":
                return not _number(seen) > _number(self._before)
            case _:
                expected = STATES_AFTER.get((capability, action))
                return bool(expected is None or seen == expected)

    def _moves(self, seen: Value) -> bool:
        action = self.command.action
        if action == "stop":
            return True
        if isinstance(seen, str):
            return seen in MOVING.get(action, (seen,))
        goal = self.command.value if action == "set" else STATES_AFTER[self.command.capability, action]
        return seen != self._before or self._is_near(goal, seen)

    def _is_near(self, goal: Value, seen: Value) -> bool:
        if isinstance(goal, Mapping) and goal.get("unit") == "mireds":
            goal = {"value": kelvin_in(goal), "unit": "kelvin"}
        if self._step and not math.isnan(_number(goal) + _number(seen)):
            same_unit = not isinstance(goal, Mapping) or not isinstance(seen, Mapping) or _unit(goal) == _unit(seen)
            return same_unit and abs(_number(goal) - _number(seen)) <= self._step / 2 + 1e-9
        if is_number(goal) and is_number(seen):
            return bool(abs(goal - seen) <= 0.5)
        return equals_rounded(goal, seen)

    def _has_stepped(self, seen: Value) -> bool:
        now, then = _number(seen), _number(self._before)
        is_warmer = isinstance(self.command.value, Mapping) and self.command.value.get("unit") == "mireds"
        grows = (self.command.action == "increase") is not is_warmer  # more mireds are fewer kelvin
        return (now > then or now >= self._high) if grows else (now < then or now <= self._low)


async def wait_for_result(clock: Clock, is_over: asyncio.Event, secs: float) -> bool:
    """Wait for the event, for at most these seconds. Return whether it is set.

    Thousands of waits can end together. They return in short turns of the loop.
    """
    await clock.wait(is_over, secs)
    await wait_for_short_turn()
    return is_over.is_set()


def equals_rounded(expected: Value, seen: Value) -> bool:
    """Return whether a value equals the expected value. Differences that result from rounding in devices are
    ignored."""
    if isinstance(expected, dict) and isinstance(seen, dict):
        if "unit" in expected:
            if expected["unit"] != seen.get("unit"):
                return False
            tolerance = min(abs(expected["value"]) * 0.02 + 0.051, _MAX_TOLERANCES.get(expected["unit"], math.inf))
            return _is_within(expected["value"], seen.get("value"), tolerance)
        return all(_is_within(value, seen.get(key), _TOLERANCES.get(key, 0)) for key, value in expected.items())
    if is_number(expected) and is_number(seen):
        return _is_within(expected, seen, 1 if abs(expected) > 2 else 0.01)
    return bool(expected == seen)


async def read_until(
    clock: Clock,
    read: Callable[[], Awaitable[T]],
    is_done: Callable[[T], bool],
    *,
    within: float,
    pauses: tuple[float, ...],
) -> tuple[T, bool]:
    """Call `read` until `is_done` accepts the reading, for at most `within` seconds. Return the last reading, and
    whether `is_done` accepted the reading.

    `pauses` lists the seconds from the start of one reading to the start of the next. After the last pause, this
    pause is repeated. Raise the exceptions of `read`.
    """
    until, number = clock.monotonic() + within, 0
    while True:
        began = clock.monotonic()
        found = await read()
        if is_done(found):
            return found, True
        now, pause = clock.monotonic(), pauses[min(number, len(pauses) - 1)]
        if now >= until:
            return found, False
        await clock.sleep(min(until - now, max(began + pause - now, pause / 2)))
        number += 1


def secs_to_confirm(within: float, secs_left: float) -> float:
    """Return the time limit of the readings: `within`, or less if the command ends in `secs_left`."""
    return min(within, secs_left - CONFIRM_MARGIN_SECS)


def is_long_fade(command: Command) -> bool:
    """Return whether the command's fade may end after `RESULT_SECS`. If so, a missing result is not an error."""
    return (command.transition_secs or 0) >= RESULT_SECS - 1


def attributes_in(report: Report, device_id: str) -> Mapping[str, Value]:
    """Return the attributes that a report contains for the device. If the bridge does not reach the device, the
    attributes include `state`."""
    seen = next((each for each in reversed(report.observations) if each.device_id == device_id), None)
    if seen is None:
        return {}
    reported = {name: each for name, each in seen.attributes.items() if name not in seen.kept}
    return reported if seen.is_available else {**reported, "state": UNAVAILABLE}


def failure(device_id: str, command: Command, attributes: Mapping[str, Value]) -> AdapterFailed:
    """Return the error of a command whose effect the device does not report."""
    if (state := attributes.get("state")) in AWAY:
        return Unanswered(f"{device_id} is {state}; the result of {command} is unknown")
    stated = command.action if command.value is None else describe_value(command.value)
    seen = describe_value(attributes.get(command.capability))
    return BadAnswer(f"{device_id} was sent {command.capability} {stated} but shows {seen}")


def describe_value(value: Value) -> str:
    """Format a value for an error message."""
    if isinstance(value, Mapping) and "unit" in value:
        return f"{value.get('value')} {value['unit']}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {format_value(each)}" for name, each in value.items())
    return "nothing" if value is None else format_value(value)


def _number(value: Value) -> float:
    found = value.get("value") if isinstance(value, Mapping) else value
    return float(found) if found is not None and is_number(found) else math.nan


def _unit(value: Mapping[str, Value]) -> Value:
    return value.get("unit")


def _is_within(expected: Value, seen: Value, tolerance: float) -> bool:
    return is_number(expected) and is_number(seen) and abs(expected - seen) <= tolerance
