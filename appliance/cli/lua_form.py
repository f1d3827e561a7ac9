"""Values and commands in Lua syntax, as examples for automations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from appliance.home.capabilities import CAPABILITIES, UNITS
from appliance.home.command_specs import CommandSpec, options_of, type_of
from appliance.home.commands import VALUED_ACTIONS
from appliance.home.values import KELVIN_RANGE
from appliance.tables.checks import rounded

_EXAMPLES: Mapping[str, Any] = {
    "percentage": 50,
    "number": 1,
    "integer": 1,
    "integer_or_string": 1,
    "string": "…",
    "boolean": True,
    "rgb_color": {"r": 255, "g": 180, "b": 80},
    "hex_color": "#ffb450",
    "xy_color": {"x": 0.45, "y": 0.41},
    "hs_color": {"hue": 30, "saturation": 80},
}
"""An example value for each schema type without a unit."""

_TYPICAL_NUMBERS: Mapping[str, float] = {"measurement": 20, "color_temperature": 4000}

STEPS: Mapping[str, Any] = {"percentage": 10, "color_temperature": {"value": 500, "unit": "kelvin"}}
"""The value of `increase` and `decrease` in the examples, by schema type."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def lua_value(value: Any) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        fields = (
            f"{key if _NAME.fullmatch(key) else f'[{lua_value(key)}]'} = {lua_value(each)}"
            for key, each in value.items()
        )
        return "{ " + ", ".join(fields) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return "{ " + ", ".join(map(lua_value, value)) + " }" if value else "{}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(rounded(value))


def example_of(spec: CommandSpec) -> Any:
    kind, options = type_of(spec), options_of(spec)
    if options:
        return options[0]
    if kind not in _TYPICAL_NUMBERS and not _is_bounded(spec):
        return _EXAMPLES.get(kind, 1)
    number = _number_in(spec, _TYPICAL_NUMBERS.get(kind, 50))
    if kind not in _TYPICAL_NUMBERS:
        return number
    entry = CAPABILITIES.get(spec.capability)
    return {"value": number, "unit": spec.unit or (None if entry is None else entry.unit) or ""}


def lua_commands(device: str, spec: CommandSpec) -> Iterator[tuple[str, str]]:
    """Yield a call of `ctx:command` for each action of the capability, with the range of the action's value."""
    for action in spec.actions:
        fields: dict[str, Any] = {"capability": spec.capability, "action": action}
        range_ = ""
        if action in VALUED_ACTIONS:
            fields["value"] = example_of(spec)
            range_ = range_of(spec) if action == "set" else ""
            if action != "set":
                fields["value"] = STEPS.get(type_of(spec), fields["value"])
        yield f"ctx:command({lua_value(device)}, {lua_value(fields)})", range_


def range_of(spec: CommandSpec) -> str:
    """Return the allowed words of a `set` command, or the range and the unit of the command's number."""
    if options := options_of(spec):
        return ", ".join(options)
    kind = type_of(spec)
    if _is_bounded(spec):
        unit = UNITS.get(spec.capability) if spec.unit is None else None
        return spec.range_text() + ("" if unit is None else f" {unit}")
    if kind == "color_temperature":
        return f"from {KELVIN_RANGE[0]} to {KELVIN_RANGE[1]} kelvin"
    if kind == "percentage":
        return "from 0 to 100 %"
    return {"boolean": "true or false", "string": "a text"}.get(kind, "")


def _is_bounded(spec: CommandSpec) -> bool:
    return any(each is not None for each in (spec.min, spec.max, spec.step))


def _number_in(spec: CommandSpec, typical: float) -> float:
    """Return the typical number if it is in the range. If the typical number is outside, return the middle of the
    range, rounded to a step."""
    low = 0.0 if spec.min is None else spec.min
    high = max(low, typical) if spec.max is None else spec.max
    number = typical if low <= typical <= high else (low + high) / 2
    if spec.step:
        number = low + int((number - low) / spec.step) * spec.step
    elif number % 1 and high - low >= 1:
        number = float(int(number))
    found: float = rounded(number)
    return int(found) if found == int(found) else found
