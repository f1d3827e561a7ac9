"""Whether a device shows what it was commanded: for adapters whose vendor only says that a command was taken."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from appliance.home.capabilities import STATES_AFTER
from appliance.home.commands import Command, CommandSpec
from appliance.home.values import Value, kelvin_of
from appliance.tables.checks import is_number, shown

MOVING: Mapping[str, tuple[str, ...]] = {"open": ("open", "opening"), "close": ("closed", "closing")}
"""What a door shows that does what it was told, by action."""

_TOLERANCES = {"r": 8, "g": 8, "b": 8, "hue": 4, "saturation": 4, "x": 0.03, "y": 0.03}
"""How far a part of a colour may be from what was asked for."""

COVERS = ("cover_position", "cover_tilt")
DOORS = ("door", "garage_door")


class Confirmation:
    """What one command makes of a device that showed `before`.

    A number has to be within half a step of the wish. Of a cover it is enough that it moves, or is there; `press`,
    `stop` of what moves, and whatever changes nothing that is shown count as done at once.
    """

    def __init__(self, command: Command, specs: Iterable[CommandSpec], before: Mapping[str, Value]) -> None:
        self.command = command
        self._before = before.get(command.capability)
        self._step = next((each.step for each in specs if each.capability == command.capability), None)

    def is_done(self, attributes: Mapping[str, Value]) -> bool:
        """Whether the device, which shows this now, has done it."""
        capability, action = self.command.capability, self.command.action
        seen = attributes.get(capability)
        if capability in (*COVERS, *DOORS):
            return self._moves(seen)
        match action:
            case "set":
                if capability == "brightness" and self.command.value == 0 and attributes.get("power") == "off":
                    return True  # some lamps remember how bright they were
                return self._is_near(self.command.value, seen)
            case "toggle" | "next" | "previous":
                return bool(action != "toggle" or seen != self._before)
            case "increase" | "decrease":
                return self._has_stepped(seen)
            case "reset":
                return not self._number(seen) > self._number(self._before)
            case _:
                expected = STATES_AFTER.get((capability, action))
                return bool(expected is None or seen == expected)

    def sentence(self, device_id: str, attributes: Mapping[str, Value]) -> str:
        """What is wrong where it was not done in time."""
        wish = self.command.action if self.command.value is None else _brief(self.command.value)
        seen = _brief(attributes.get(self.command.capability))
        return f"{device_id} was told {self.command.capability} {wish} but shows {seen}"

    def _moves(self, seen: Value) -> bool:
        action = self.command.action
        if action == "stop":
            return True
        if isinstance(seen, str):
            return seen in MOVING.get(action, (seen,))
        wish = self.command.value if action == "set" else STATES_AFTER[self.command.capability, action]
        return seen != self._before or self._is_near(wish, seen)

    def _is_near(self, wish: Value, seen: Value) -> bool:
        if self._step and not math.isnan(self._number(wish) + self._number(seen)):
            same_unit = not isinstance(wish, Mapping) or not isinstance(seen, Mapping) or _unit(wish) == _unit(seen)
            return same_unit and abs(self._number(wish) - self._number(seen)) <= self._step / 2 + 1e-9
        if isinstance(wish, Mapping) and wish.get("unit") == "mireds":
            wish = {"value": kelvin_of(wish["value"]), "unit": "kelvin"}
        if is_number(wish) and is_number(seen):
            return bool(abs(wish - seen) <= 0.5)
        return is_shown(wish, seen)

    def _has_stepped(self, seen: Value) -> bool:
        now, then = self._number(seen), self._number(self._before)
        grows = self.command.action == "increase"
        return (now > then or now >= 100) if grows else (now < then or now <= 0)

    def _number(self, value: Value) -> float:
        found = value.get("value") if isinstance(value, Mapping) else value
        return float(found) if found is not None and is_number(found) else math.nan


def _unit(value: Mapping[str, Value]) -> Value:
    return value.get("unit")


def _brief(value: Value) -> str:
    if isinstance(value, Mapping) and "unit" in value:
        return f"{value.get('value')} {value['unit']}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {shown(each)}" for name, each in value.items())
    return "nothing" if value is None else shown(value)


def is_shown(expected: Value, seen: Value) -> bool:
    """Whether a value is the expected one, within the rounding of devices."""
    if isinstance(expected, dict) and isinstance(seen, dict):
        if "unit" in expected:
            if expected["unit"] != seen.get("unit"):
                return False
            return _is_near(expected["value"], seen.get("value"), abs(expected["value"]) * 0.02 + 0.051)
        return all(_is_near(value, seen.get(key), _TOLERANCES.get(key, 0)) for key, value in expected.items())
    if is_number(expected) and is_number(seen):
        return _is_near(expected, seen, 1 if abs(expected) > 2 else 0.01)
    return bool(expected == seen)


def _is_near(expected: Value, seen: Value, tolerance: float) -> bool:
    return is_number(expected) and is_number(seen) and abs(expected - seen) <= tolerance
