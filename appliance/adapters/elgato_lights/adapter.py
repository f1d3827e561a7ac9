"""Elgato lights: one device for each index at the address.

The adapter uses `GET` and `PUT /elgato/lights`, `GET /elgato/accessory-info`, and `POST /elgato/identify` on port
9123. Requests and responses are JSON. Colour temperature is in mired. `on` is 0 or 1. In colour mode, a light has
`hue` and `saturation` instead of `temperature`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from appliance.adapters.base import CommandResult, Operation
from appliance.adapters.confirmation import ExpectedState
from appliance.adapters.polling import PollingAdapter
from appliance.errors import AdapterFailed, BadAnswer, Invalid, Unanswered, Unreadable
from appliance.home.command_specs import CommandSpec, check_offered
from appliance.home.commands import Command, without_toggle
from appliance.home.model import DeviceKind, Info, Observation, Report
from appliance.home.values import Value, kelvin_in, kelvin_of, mireds_of
from appliance.tables.checks import format_value, integer, is_number, number
from appliance.tasks import time_limit

LIGHT_MIRED_RANGE = (143, 344)
LIGHT_KELVIN_RANGE = (2900, 7000)

LIGHT_CONFIRM_SECS = 1.0
"""Time limit for a light to report a change."""

INFO_INTERVAL_SECS = 600.0
"""Seconds between two readings of name, model, and firmware."""

INFO_TIMEOUT_SECS = 2.0
"""Time limit for the reading of name, model, firmware, and battery during a poll."""

BATTERY_MODEL = "Elgato Key Light Mini"

log = logging.getLogger("adapters")

_ATTRIBUTES = {"on": "power", "temperature": "color_temperature"}
"""Maps fields of a light to capabilities with different names."""

_FIELDS: Mapping[str, Callable[[Any], float]] = {
    "on": partial(integer, low=0, high=1),
    "brightness": partial(integer, low=0, high=100),
    "temperature": partial(integer, low=LIGHT_MIRED_RANGE[0], high=LIGHT_MIRED_RANGE[1]),
    "hue": number,
    "saturation": number,
}


class LightState(Struct, frozen=True, kw_only=True):
    """One light. Missing and invalid fields are None.

    `brightness` and `saturation` are percentages, `hue` is in degrees. `mired` is None in colour mode. `hue` and
    `saturation` are None outside of colour mode. `wrong` has a message for each invalid field.
    """

    on: bool | None = None
    brightness: int | None = None
    mired: int | None = None
    hue: float | None = None
    saturation: float | None = None
    wrong: Mapping[str, str] = {}

    @staticmethod
    def parse(raw: Any) -> LightState:
        """Parse one entry of `lights`. Raise `Invalid` if no field of a light is readable."""
        if not isinstance(raw, dict):
            raise Invalid(f"must be an object, not {format_value(raw)}")
        if raw.keys().isdisjoint(_FIELDS):
            raise Invalid(f"must have at least one of the fields {', '.join(_FIELDS)}")
        read: dict[str, Any] = {}
        wrong: dict[str, str] = {}
        is_coloured = "hue" in raw and raw.get("temperature") in (0, None)  # some strips report 0 in colour mode
        unused = ("temperature",) if is_coloured else ("hue", "saturation") if "temperature" in raw else ()
        for name, check in _FIELDS.items():
            if name not in raw or name in unused:
                continue
            try:
                read[name] = check(raw[name])
            except Invalid as fault:
                wrong[name] = f"{name} {fault}"
        if not read:
            raise Invalid(next(iter(wrong.values())))
        on, mired = read.pop("on", None), read.pop("temperature", None)
        return LightState(on=None if on is None else on == 1, mired=mired, wrong=wrong, **read)


def clamped_mireds(kelvin: int) -> int:
    """Convert kelvin to mired, and clamp the result to the lights' range."""
    low, high = LIGHT_MIRED_RANGE
    return min(max(mireds_of(kelvin), low), high)


_CHANGES: Mapping[tuple[str, str], Callable[[Any], dict[str, int]]] = {
    ("power", "on"): lambda _: {"on": 1},
    ("power", "off"): lambda _: {"on": 0},
    ("brightness", "set"): lambda percent: {"brightness": percent},
    ("color_temperature", "set"): lambda white: {"temperature": clamped_mireds(kelvin_in(white))},
}
"""Maps each command to a function that converts the command's value to changed fields."""

LIGHT_COMMANDS = (
    CommandSpec(capability="brightness", actions=("set",), min=0, max=100),
    CommandSpec(
        capability="color_temperature",
        actions=("set",),
        min=LIGHT_KELVIN_RANGE[0],
        max=LIGHT_KELVIN_RANGE[1],
        unit="kelvin",
    ),
    CommandSpec(capability="power", actions=("on", "off", "toggle")),
)
"""Commands that every light accepts."""


MAX_BATTERY_PERCENT = 110
"""Highest reported level of a battery. A full battery can report a little more than 100 %. A higher or negative
level is unknown."""


class ElgatoAdapter(PollingAdapter):
    """Polls and commands the lights at one Elgato address."""

    takes_many = True

    _unreadable: frozenset[str] = frozenset()
    _accessory_info: Mapping[str, Any] = {}
    _battery_info: Mapping[str, Any] = {}
    _info_due_at = 0.0
    _answer: Mapping[str, Any] = {}

    async def poll(self) -> Report:
        """Read all lights at the address. If a light has no readable field, report it as present without an
        observation."""
        lights = await self._fetch_lights()
        await self._refresh_info()
        return self._report([_parse(raw) for raw in lights])

    async def poll_state(self) -> Report:
        """Read the lights without their names and models."""
        return self._report([_parse(raw) for raw in await self._fetch_lights()])

    async def command_many(self, device_ids: Sequence[str], command: Command) -> list[CommandResult]:
        """Read the lights, write them all with the changes, and wait up to one second until they report the
        changes."""
        began = self.clock.monotonic()
        for device_id in device_ids:
            command = check_offered(device_id, LIGHT_COMMANDS, command)
        lights = await self._fetch_lights()
        states = [_parse(raw) for raw in lights]
        changes: dict[int, dict[str, int]] = {}
        previous: dict[str, Mapping[str, Value]] = {}
        results: dict[str, CommandResult] = {}
        for device_id in device_ids:
            index = _index(device_id)
            try:
                before = _attributes_of(self._require_readable(states, index))
                goal = without_toggle(command, before.get("power"), f"{self.http.address}: light {index}")
            except BadAnswer as error:
                results[device_id] = CommandResult(error=error)
                continue
            changes[index] = _CHANGES[goal.capability, goal.action](goal.value)
            previous[device_id] = before
        if changes:
            written = [
                _with_change(raw, state, changes.get(index, {}))
                for index, (raw, state) in enumerate(zip(lights, states, strict=True))
            ]
            body = {"numberOfLights": len(written), "lights": written}
            with suppress(Unreadable, Unanswered):  # the next reading shows the result
                await self.http.request("PUT", "/elgato/lights", json=body, repeat=command.can_repeat)
            expected = {each: ExpectedState(command, LIGHT_COMMANDS, before) for each, before in previous.items()}
            results |= await self.confirm_all(expected, began, LIGHT_CONFIRM_SECS)
        return [results[device_id] for device_id in device_ids]

    @property
    def operations(self) -> Mapping[str, Operation]:
        """`identify` makes the light blink. `info` returns the answer to `accessory-info`."""
        return {"identify": self._identify, "info": self._info}

    async def _identify(self, payload: Mapping[str, Value]) -> Value:
        prefix, _, index = str(payload.get("device_id", "")).rpartition(":")
        if prefix != f"{self.name}:light" or not index.isdecimal():
            raise Invalid(f"the operation identify needs the device_id of a light of {self.name}")
        await self.http.request("POST", "/elgato/identify")
        return None

    async def _info(self, _: Mapping[str, Value]) -> Value:
        return await self._fetch_object("/elgato/accessory-info")

    async def _fetch_lights(self) -> list[Any]:
        """Return the entries of the light list unchecked, so that one malformed entry does not affect the other
        lights."""
        self._answer = await self._fetch_object("/elgato/lights")
        lights = self._answer.get("lights")
        if not isinstance(lights, list):
            raise BadAnswer(f"{self.http.address}/elgato/lights answered without a list of lights")
        return self.first_parts(lights)

    def describe_answer(self) -> str:
        return ", ".join(f"{name}: {format_value(value)}" for name, value in self._answer.items())

    async def _fetch_object(self, path: str) -> dict[str, Any]:
        answer = await self.http.request_json("GET", path)
        if not isinstance(answer, dict):
            raise BadAnswer(f"{self.http.address} answered with JSON that is not an object")
        return answer

    async def _refresh_info(self) -> None:
        """Read `accessory-info`, and the battery of a Key Light Mini, every `INFO_INTERVAL_SECS`. If a request fails,
        keep the result of the previous request."""
        if self.clock.monotonic() < self._info_due_at:
            return
        self._battery_info = {}  # without an answer, the level is unknown
        try:
            async with time_limit(INFO_TIMEOUT_SECS):
                self._accessory_info = await self._fetch_object("/elgato/accessory-info")
                if _text(self._accessory_info, "productName") == BATTERY_MODEL:
                    self._battery_info = await self._fetch_object("/elgato/battery-info")
        except (AdapterFailed, TimeoutError) as error:
            log.debug("%s: the details of the device cannot be read: %s", self.name, error)
        self._info_due_at = self.clock.monotonic() + INFO_INTERVAL_SECS

    def _require_readable(self, states: list[LightState | Invalid], index: int) -> LightState:
        if index >= len(states):
            raise BadAnswer(f"{self.http.address}: light {index} no longer exists")
        if isinstance(state := states[index], Invalid):
            raise BadAnswer(f"{self.http.address}: light {index} {state}")
        return state

    def _report(self, lights: Sequence[LightState | Invalid]) -> Report:
        ids = [f"{self.name}:light:{index}" for index in range(len(lights))]
        seen = [self._observe(index, ids, light) for index, light in enumerate(lights)]
        observations = tuple(observation for observation in seen if observation is not None)
        return Report(adapter=self.name, present=frozenset(ids), observations=observations)

    def _observe(self, index: int, ids: list[str], light: LightState | Invalid) -> Observation | None:
        """Return the observation of a light. An unreadable field keeps its value. If the whole light is unreadable,
        log the fault once and return None."""
        device_id = ids[index]
        name = _text(self._accessory_info, "displayName") or _text(self._accessory_info, "productName")
        if isinstance(light, Invalid):
            if device_id not in self._unreadable:
                log.warning("%s: cannot be read: %s", device_id, light)
            self._unreadable |= {device_id}
            return None
        self._unreadable -= {device_id}
        wrong = {_ATTRIBUTES.get(name, name): sentence for name, sentence in light.wrong.items()}
        known = self.publish.find(device_id)
        before = {} if known is None else known.attributes
        kept = {name: before[name] for name in wrong if name in before}
        attributes = {**kept, **_attributes_of(light)}
        vendor: dict[str, Value] = {"light_index": index}
        level: Any = self._battery_info.get("level")
        if is_number(level) and 0 <= level <= MAX_BATTERY_PERCENT:
            attributes["battery"] = round(min(level, 100))
        if light.mired is None and (light.hue is not None or light.saturation is not None):
            vendor |= {"hue": light.hue, "saturation": light.saturation}
        return Observation(
            device_id=device_id,
            kind=DeviceKind.LIGHT,
            attributes=attributes,
            wrong=wrong,
            kept=frozenset(kept),
            vendor_specific=vendor,
            name=name if name is None or len(ids) == 1 else f"{name} {index + 1}",
            info=Info(
                manufacturer="Elgato" if self._accessory_info else None,
                model=_text(self._accessory_info, "productName"),
                firmware=_text(self._accessory_info, "firmwareVersion"),
                serial=_text(self._accessory_info, "serialNumber"),
            ),
            commands=LIGHT_COMMANDS,
        )


build = ElgatoAdapter.of


def _index(device_id: str) -> int:
    return int(device_id.rpartition(":")[2])


def _parse(raw: Any) -> LightState | Invalid:
    """Parse the state of a light. If no field is readable, return the fault."""
    try:
        return LightState.parse(raw)
    except Invalid as fault:
        return fault


def _attributes_of(light: LightState) -> dict[str, Value]:
    attributes: dict[str, Value] = {}
    if light.on is not None:
        attributes["power"] = "on" if light.on else "off"
    if light.brightness is not None:
        attributes["brightness"] = light.brightness
    if light.mired is not None:
        attributes["color_temperature"] = {"value": kelvin_of(light.mired), "unit": "kelvin"}
    return attributes


def _with_change(raw: Any, light: LightState | Invalid, change: Mapping[str, int]) -> Mapping[str, Any]:
    """Return the light with the change applied. A new temperature ends colour mode. Invalid fields are omitted."""
    if isinstance(light, Invalid):
        return {}
    dropped = {*light.wrong, *(("hue", "saturation") if "temperature" in change else ())}
    return {**{name: value for name, value in raw.items() if name not in dropped}, **change}


def _text(info: Mapping[str, Any], name: str) -> str | None:
    value = info.get(name)
    return value.strip() or None if isinstance(value, str) else None
