"""Requests to a Matter server for commands, and checks of their results.

Results are compared in Matter's units, because requests clamp values to the endpoint's range.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from appliance.adapters.matter.clusters import (
    COLOR,
    COOLING_SETPOINT,
    COOLS,
    COVER,
    DOOR_LOCK,
    FAN,
    FAN_MODES,
    HEATING_SETPOINT,
    HEATS,
    HIGHEST_LEVEL,
    IDENTIFY,
    IS_AUTO,
    LEVEL_CONTROL,
    ON_OFF,
    PERCENT_SETTING,
    SETPOINTS,
    SYSTEM_MODE,
    THERMOSTAT,
    kelvin_of_mireds,
    setpoint_of,
)
from appliance.adapters.matter.nodes import Endpoint
from appliance.home.command_specs import CommandSpec
from appliance.home.commands import Command
from appliance.home.values import level_of, mireds_in

MAX_FADE_TENTHS = 65_534

TIMED_REQUEST_MS = 1000
"""Maximum time in milliseconds between the announcement of a timed request and the command for a lock. Locks
accept only timed requests."""

_EVEN_IF_OFF = {"optionsMask": 1, "optionsOverride": 1}
"""The option ExecuteIfOff. Without this option, a light that is off confirms a command but ignores it."""

_OPEN, _CLOSED = 0, 10_000
_ENDS = {"open": 100, "close": 0}
_LIFT, _TILT = 2, 4
"""Positions of the bits for lift and tilt in OperationalStatus."""
_OFF, _ON, _TOGGLE = 0, 1, 2

_MODE_NUMBERS = {"off": 0, "heat_cool": 1, "cool": 3, "heat": 4}
_FAN_NUMBERS = {name: number for number, name in FAN_MODES.items()}
_FAN_SEQUENCES = (
    ("off", "low", "medium", "high"),
    ("off", "low", "high"),
    ("off", "low", "medium", "high", "auto"),
    ("off", "low", "high", "auto"),
    ("off", "high", "auto"),
    ("off", "high"),
)
"""Fan modes by FanModeSequence."""

USUAL_FAN_PERCENT = 50
"""Speed of a fan that is switched on while its speed is unknown."""

IsDone = Callable[[Endpoint], bool]


class ClusterRequest(Struct, frozen=True):
    """One request to a cluster, and a check whether the endpoint reports the request's result."""

    cluster: int
    command: str
    arguments: Mapping[str, Any]
    is_done: IsDone


def request_for(endpoint: Endpoint, command: Command) -> ClusterRequest:
    return _REQUESTS[command.capability](endpoint, command)


def command_specs_of(endpoint: Endpoint) -> tuple[CommandSpec, ...]:
    """Return the endpoint's commands, derived from its features and accepted commands."""
    return tuple(spec for offered in _OFFERS for spec in offered(endpoint))


def identify(endpoint: Endpoint, seconds: int) -> ClusterRequest:
    return _invoke(endpoint, IDENTIFY, "Identify", {"identifyTime": seconds}, lambda _: True)


def _invoke(
    endpoint: Endpoint,
    cluster: int,
    name: str,
    payload: Mapping[str, Any],
    is_done: IsDone,
    **more: Any,
) -> ClusterRequest:
    arguments = {"endpoint_id": endpoint.number, "cluster_id": cluster, "command_name": name, "payload": {**payload}}
    return ClusterRequest(cluster, "device_command", {**arguments, **more}, is_done)


def _write(endpoint: Endpoint, cluster: int, attribute: int, value: int) -> ClusterRequest:
    path = f"{endpoint.number}/{cluster}/{attribute}"
    is_done = _shows(cluster, attribute, value)
    return ClusterRequest(cluster, "write_attribute", {"attribute_path": path, "value": value}, is_done)


def _shows(cluster: int, attribute: int, value: Any, tolerance: int = 0) -> IsDone:
    def is_shown(endpoint: Endpoint) -> bool:
        seen = endpoint.get(cluster, attribute)
        if tolerance and isinstance(seen, int):
            return bool(abs(seen - value) <= tolerance)
        return bool(seen == value)

    return is_shown


def _both(*each: IsDone) -> IsDone:
    return lambda endpoint: all(is_done(endpoint) for is_done in each)


def _fade(command: Command) -> dict[str, int]:
    return {"transitionTime": min(round((command.transition_secs or 0) * 10), MAX_FADE_TENTHS)}


def _power(endpoint: Endpoint, command: Command) -> ClusterRequest:
    if ON_OFF not in endpoint.clusters:
        return _fan_power(endpoint, command)
    is_on = endpoint.get(ON_OFF, 0)
    if command.action != "toggle":
        is_done = _shows(ON_OFF, 0, command.action == "on")
    elif isinstance(is_on, bool):
        is_done = _shows(ON_OFF, 0, not is_on)
    else:
        is_done = lambda endpoint: isinstance(endpoint.get(ON_OFF, 0), bool)  # noqa: E731
    return _invoke(endpoint, ON_OFF, command.action.capitalize(), {}, is_done)


def _fan_power(endpoint: Endpoint, command: Command) -> ClusterRequest:
    percent, mode = endpoint.get(FAN, 2), endpoint.get(FAN, 0)
    goal = command.action == "on"
    if goal and (mode if percent is None else percent):
        return _write(endpoint, FAN, 0, mode)  # the written value is the reported value
    return _write(endpoint, FAN, 2, USUAL_FAN_PERCENT if goal else 0)


def _brightness(endpoint: Endpoint, command: Command) -> ClusterRequest:
    percent = command.value
    if percent == 0:
        return _power(endpoint, Command(capability="power", action="off"))
    low, high = endpoint.get(LEVEL_CONTROL, 2), endpoint.get(LEVEL_CONTROL, 3)
    level = max(level_of(percent, HIGHEST_LEVEL), low if isinstance(low, int) else 1)
    level = min(level, high if isinstance(high, int) else HIGHEST_LEVEL)
    payload = {"level": level, **_fade(command), "optionsMask": 0, "optionsOverride": 0}
    is_done = _both(_shows(LEVEL_CONTROL, 0, level, tolerance=1), _shows(ON_OFF, 0, value=True))
    return _invoke(endpoint, LEVEL_CONTROL, "MoveToLevelWithOnOff", payload, is_done)


def _color_temperature(endpoint: Endpoint, command: Command) -> ClusterRequest:
    coldest, warmest = _mireds_range(endpoint)
    mireds = min(max(mireds_in(command.value), coldest), warmest)
    payload = {"colorTemperatureMireds": mireds, **_fade(command), **_EVEN_IF_OFF}
    is_done = _both(_shows(COLOR, 7, mireds, tolerance=1), _shows(COLOR, 8, 2))
    return _invoke(endpoint, COLOR, "MoveToColorTemperature", payload, is_done)


def _color_hs(endpoint: Endpoint, command: Command) -> ClusterRequest:
    hue, saturation = round(command.value["hue"] * 254 / 360), round(command.value["saturation"] * 254 / 100)
    payload = {"hue": hue, "saturation": saturation, **_fade(command), **_EVEN_IF_OFF}
    is_done = _both(
        _shows(COLOR, 0, hue, tolerance=1), _shows(COLOR, 1, saturation, tolerance=1), _shows(COLOR, 8, 0)
    )
    return _invoke(endpoint, COLOR, "MoveToHueAndSaturation", payload, is_done)


def _color_xy(endpoint: Endpoint, command: Command) -> ClusterRequest:
    x, y = (min(round(command.value[name] * 65536), 65279) for name in "xy")
    payload = {"colorX": x, "colorY": y, **_fade(command), **_EVEN_IF_OFF}
    is_done = _both(_shows(COLOR, 3, x, tolerance=700), _shows(COLOR, 4, y, tolerance=700), _shows(COLOR, 8, 1))
    return _invoke(endpoint, COLOR, "MoveToColor", payload, is_done)


def _cover(name: str, attribute: int, field: str, shift: int) -> Callable[[Endpoint, Command], ClusterRequest]:
    """Return a function that makes the requests for lift or tilt. `shift` selects the bits of OperationalStatus.

    A request has succeeded if the cover moves towards its goal, or has reached its goal.
    """

    def request(endpoint: Endpoint, command: Command) -> ClusterRequest:
        if command.action == "stop":
            return _invoke(endpoint, COVER, "StopMotion", {}, _is_still)
        percent = command.value if command.action == "set" else _ENDS[command.action]
        goal = _CLOSED - percent * 100
        is_there = _shows(COVER, attribute, goal, tolerance=50)

        def begins(endpoint: Endpoint) -> bool:
            return is_there(endpoint) or _moves_to(endpoint, attribute, goal, shift)

        by_name = {"open": "UpOrOpen", "close": "DownOrClose"}.get(command.action) if shift == _LIFT else None
        payload = {} if by_name else {field: goal}
        return _invoke(endpoint, COVER, by_name or name, payload, begins)

    return request


def _is_still(endpoint: Endpoint) -> bool:
    return not _moves(endpoint, 0)


def _moves(endpoint: Endpoint, shift: int) -> int:
    """Return 1 while the cover opens, 2 while it closes, otherwise 0."""
    status = endpoint.get(COVER, 10)
    return status >> shift & 3 if isinstance(status, int) else 0


def _moves_to(endpoint: Endpoint, attribute: int, goal: int, shift: int) -> bool:
    now = endpoint.get(COVER, attribute)
    way = 1 if goal == _OPEN or (isinstance(now, int) and goal < now) else 2
    return _moves(endpoint, shift) == way or _moves(endpoint, 0) == way


def _lock(endpoint: Endpoint, command: Command) -> ClusterRequest:
    payload = {} if command.code is None else {"PINCode": base64.b64encode(command.code.encode()).decode()}
    name, state = {"lock": ("LockDoor", 1), "unlock": ("UnlockDoor", 2)}[command.action]
    done = _shows(DOOR_LOCK, 0, state)
    return _invoke(endpoint, DOOR_LOCK, name, payload, done, timed_request_timeout_ms=TIMED_REQUEST_MS)


def _target(endpoint: Endpoint, command: Command) -> ClusterRequest:
    attribute = SETPOINTS.get(command.capability, setpoint_of(endpoint))
    return _write(endpoint, THERMOSTAT, attribute, round(command.value["value"] * 100))


def _hvac_mode(endpoint: Endpoint, command: Command) -> ClusterRequest:
    return _write(endpoint, THERMOSTAT, SYSTEM_MODE, _MODE_NUMBERS[command.value])


_REQUESTS: Mapping[str, Callable[[Endpoint, Command], ClusterRequest]] = {
    "power": _power,
    "brightness": _brightness,
    "color_temperature": _color_temperature,
    "color_hs": _color_hs,
    "color_xy": _color_xy,
    "cover_position": _cover("GoToLiftPercentage", 14, "liftPercent100thsValue", _LIFT),
    "cover_tilt": _cover("GoToTiltPercentage", 15, "tiltPercent100thsValue", _TILT),
    "lock": _lock,
    "target_temperature": _target,
    **dict.fromkeys(SETPOINTS, _target),
    "hvac_mode": _hvac_mode,
    "fan_mode": lambda endpoint, command: _write(endpoint, FAN, 0, _FAN_NUMBERS[command.value]),
    PERCENT_SETTING: lambda endpoint, command: _write(endpoint, FAN, 2, command.value),
}
"""Maps each capability to the function that makes the request for a command."""


def _offers_light(endpoint: Endpoint) -> Iterator[CommandSpec]:
    actions = [
        name for name, number in (("on", _ON), ("off", _OFF), ("toggle", _TOGGLE)) if endpoint.accepts(ON_OFF, number)
    ]
    if actions:
        yield CommandSpec(capability="power", actions=tuple(actions))
        if endpoint.accepts(LEVEL_CONTROL, 4):
            yield CommandSpec(capability="brightness", actions=("set",), min=0, max=100)


def _offers_color(endpoint: Endpoint) -> Iterator[CommandSpec]:
    if endpoint.has_feature(COLOR, 16) and endpoint.accepts(COLOR, 10):
        warmest, coldest = (kelvin_of_mireds(each) for each in reversed(_mireds_range(endpoint)))
        yield CommandSpec(capability="color_temperature", actions=("set",), min=warmest, max=coldest, unit="kelvin")
    if endpoint.has_feature(COLOR, 1) and endpoint.accepts(COLOR, 6):
        yield CommandSpec(capability="color_hs", actions=("set",))
    if endpoint.has_feature(COLOR, 8) and endpoint.accepts(COLOR, 7):
        yield CommandSpec(capability="color_xy", actions=("set",))


def _offers_cover(endpoint: Endpoint) -> Iterator[CommandSpec]:
    moves = [name for name, number in (("open", 0), ("close", 1), ("stop", 2)) if endpoint.accepts(COVER, number)]
    goes_to = ["set"] if endpoint.accepts(COVER, 5) else []
    if endpoint.has_feature(COVER, 1) and moves:
        yield CommandSpec(capability="cover_position", actions=(*moves, *goes_to))
    if endpoint.has_feature(COVER, 2) and endpoint.accepts(COVER, 8):
        yield CommandSpec(capability="cover_tilt", actions=(*moves, "set"))


def _offers_lock(endpoint: Endpoint) -> Iterator[CommandSpec]:
    actions = [name for name, number in (("lock", 0), ("unlock", 1)) if endpoint.accepts(DOOR_LOCK, number)]
    if actions:
        yield CommandSpec(capability="lock", actions=tuple(actions))


def _offers_thermostat(endpoint: Endpoint) -> Iterator[CommandSpec]:
    heats, cools, by_itself = (endpoint.has_feature(THERMOSTAT, each) for each in (HEATS, COOLS, IS_AUTO))
    modes = [name for name, is_there in (("heat", heats), ("cool", cools), ("heat_cool", by_itself)) if is_there]
    if not modes:
        return
    limits = [_setpoint_range(endpoint, each) for each in (HEATING_SETPOINT, COOLING_SETPOINT)]
    used = [each for each, is_there in zip(limits, (heats, cools), strict=True) if is_there]
    low, high = min(each[0] for each in used), max(each[1] for each in used)
    yield CommandSpec(capability="target_temperature", actions=("set",), min=low, max=high, unit="°C")
    yield CommandSpec(capability="hvac_mode", actions=("set",), values=("off", *modes))
    for key, (low, high) in zip(SETPOINTS, limits, strict=True) if by_itself else ():
        yield CommandSpec(capability=key, actions=("set",), type="measurement", min=low, max=high, unit="°C")


def _offers_fan(endpoint: Endpoint) -> Iterator[CommandSpec]:
    if FAN in endpoint.clusters:
        sequence = endpoint.get(FAN, 1)
        is_known = isinstance(sequence, int) and 0 <= sequence < len(_FAN_SEQUENCES)
        if ON_OFF not in endpoint.clusters:
            yield CommandSpec(capability="power", actions=("on", "off", "toggle"))
        yield CommandSpec(capability="fan_mode", actions=("set",), values=_FAN_SEQUENCES[sequence if is_known else 0])
        yield CommandSpec(capability=PERCENT_SETTING, actions=("set",), type="percentage", min=0, max=100)


_OFFERS = (_offers_light, _offers_color, _offers_cover, _offers_lock, _offers_thermostat, _offers_fan)


def _mireds_range(endpoint: Endpoint) -> tuple[int, int]:
    """Return the range of white in mireds: the coldest value, then the warmest."""
    found = [endpoint.get(COLOR, each) for each in (16395, 16396)]
    coldest, warmest = (each if isinstance(each, int) and each > 0 else None for each in found)
    return coldest or 153, max(warmest or 454, coldest or 153)


def _setpoint_range(endpoint: Endpoint, setpoint: int) -> tuple[float, float]:
    """Return the range of a setpoint in °C. If the device does not report the range, return the range of the
    Matter specification."""
    attributes, usual = ((21, 22), (7.0, 30.0)) if setpoint == HEATING_SETPOINT else ((23, 24), (16.0, 32.0))
    found = [endpoint.get(THERMOSTAT, each) for each in attributes]
    low, high = (usual[n] if not isinstance(each, int) else each / 100 for n, each in enumerate(found))
    return low, high
