"""The effects of commands and colour modes on attributes."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.home.capabilities import STATES_AFTER
from appliance.home.commands import Command
from appliance.home.values import KELVIN_RANGE, MIRED_RANGE, Value, kelvin_in, mireds_in
from appliance.tables.checks import is_number

_COLOR_MODES = {
    "color_rgb": "rgb",
    "color_hex": "rgb",
    "color_xy": "xy",
    "color_hs": "hs",
    "color_temperature": "color_temp",
}
"""Maps each colour capability to the `color_mode` after a command for this capability."""


def ended_colors(changes: Mapping[str, Value], attributes: Mapping[str, Value]) -> dict[str, Value]:
    """Return None for each colour in `attributes` that a new `color_mode` in `changes` ends."""
    mode = changes.get("color_mode")
    if mode is None:
        return {}
    return {key: None for key, of in _COLOR_MODES.items() if of != mode and key in attributes and key not in changes}


def changes_of(command: Command, attributes: Mapping[str, Value]) -> dict[str, Value]:
    """Return the new values of the attributes that the command changes. Return an empty mapping if the effect is
    unknown."""
    value = _value_after(command, attributes.get(command.capability))
    if value is None:
        return {}
    mode = _COLOR_MODES.get(command.capability)
    changes = {command.capability: value}
    return {**changes, "color_mode": mode} if mode is not None and "color_mode" in attributes else changes


def _value_after(command: Command, now: Value) -> Value:
    match command.action:
        case "set":
            return command.value
        case "toggle":
            return "off" if now == "on" else "on"
        case "reset":
            return {**now, "value": 0} if isinstance(now, Mapping) else None
        case "increase" | "decrease":
            return _step(command, now)
        case "stop" if now in ("opening", "closing"):
            return "stopped"
        case action:
            return STATES_AFTER.get((command.capability, action), now)


def _step(command: Command, now: Value) -> Value:
    """Return the value after `increase` or `decrease`, limited to the range. The result for a colour temperature
    has the command's unit."""
    sign = 1 if command.action == "increase" else -1
    if not isinstance(command.value, Mapping):
        return _clamp(now + sign * command.value, 0, 100) if is_number(now) else None
    if not isinstance(now, Mapping):
        return None
    unit, step = command.value["unit"], command.value["value"]
    read, bounds = (kelvin_in, KELVIN_RANGE) if unit == "kelvin" else (mireds_in, MIRED_RANGE)
    return {"value": _clamp(read(now) + sign * step, *bounds), "unit": unit}


def _clamp(number: int, low: int, high: int) -> int:
    return min(max(number, low), high)
