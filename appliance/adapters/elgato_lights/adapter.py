"""Elgato lights as devices: one `Light` for each index behind the address."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from appliance.adapters.base import AdapterContext, CommandResult, Operation
from appliance.adapters.elgato_lights.client import (
    MIRED_RANGE,
    ElgatoClient,
    LightState,
    RawLight,
    info_of,
    name_of,
)
from appliance.adapters.http import HttpClient
from appliance.adapters.polling import PollingAdapter
from appliance.errors import AdapterFailed, BadAnswer, Invalid
from appliance.home.command_specs import CommandSpec, check_offered
from appliance.home.commands import Command
from appliance.home.model import DeviceKind, Info, Observation, Report
from appliance.home.values import Value, kelvin_of
from appliance.tables.checks import shown

KELVIN_RANGE = (2900, 7000)
CONFIRM_WITHIN = 1.0
"""Seconds that a light has to show what it was told."""

CONFIRM_EVERY = 0.1

FACTS_EVERY = 600.0
"""Seconds between two readings of name, model and firmware."""

FACTS_WITHIN = 2.0
"""Seconds that such a reading may take of a poll."""

log = logging.getLogger("adapters")

Change = Callable[[Command, LightState], dict[str, int]]


def mired_of(kelvin: int) -> int:
    """Colour temperature in mired, held within what the lights take."""
    low, high = MIRED_RANGE
    return min(max(round(1_000_000 / kelvin), low), high)


def _kelvin(wanted: Value) -> int:
    """The kelvin that a canonical color_temperature states in one unit or the other."""
    value: int = wanted["value"]
    return value if wanted["unit"] == "kelvin" else kelvin_of(value)


CHANGES: Mapping[tuple[str, str], Change] = {
    ("power", "on"): lambda _, light: {"on": 1},
    ("power", "off"): lambda _, light: {"on": 0},
    ("power", "toggle"): lambda _, light: {"on": 0 if light.on else 1},
    ("brightness", "set"): lambda command, _: {"brightness": command.value},
    ("color_temperature", "set"): lambda command, _: {"temperature": mired_of(_kelvin(command.value))},
}
"""What each command writes, given the light as it was just read."""

COMMANDS = (
    CommandSpec(capability="brightness", actions=("set",), min=0, max=100),
    CommandSpec(
        capability="color_temperature", actions=("set",), min=KELVIN_RANGE[0], max=KELVIN_RANGE[1], unit="kelvin"
    ),
    CommandSpec(capability="power", actions=("on", "off", "toggle")),
)
"""What every light takes."""


class ElgatoAdapter(PollingAdapter):
    """The lights behind one Elgato address."""

    takes_many = True

    def __init__(self, context: AdapterContext, http: HttpClient, poll_interval: float) -> None:
        super().__init__(context, http, poll_interval)
        self._client = ElgatoClient(http)
        self._unreadable: set[str] = set()
        self._facts: Mapping[str, Any] = {}
        self._facts_due_at = self.clock.monotonic()

    async def poll(self) -> Report:
        """Every light that the address lists; one that cannot be read is present without an observation."""
        lights = await self._client.fetch_lights()
        await self._refresh_facts()
        return self._report(lights)

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """As `command_many`, for one light."""
        [result] = await self.command_many([device_id], command)
        return result

    async def command_many(self, device_ids: Sequence[str], command: Command) -> list[CommandResult]:
        """Read, write these lights' change at once with the others as they are, and read until it shows."""
        for device_id in device_ids:
            check_offered(device_id, COMMANDS, command)
        lights = await self._client.fetch_lights()
        wanted, results = self._wanted(device_ids, command, lights)
        if wanted:
            written = [_written(raw, wanted.get(index)) for index, raw in enumerate(lights)]
            await self._client.put_lights(written, repeat=command.action != "toggle")
            results |= await self._confirm(wanted)
        return [results[_index(device_id)] for device_id in device_ids]

    def _wanted(
        self, device_ids: Sequence[str], command: Command, lights: list[Any]
    ) -> tuple[dict[int, dict[str, int]], dict[int, CommandResult]]:
        """What is to be written of each light, by its index; and the results of those of which nothing can be."""
        wanted: dict[int, dict[str, int]] = {}
        results: dict[int, CommandResult] = {}
        for index in map(_index, device_ids):
            try:
                wanted[index] = CHANGES[command.capability, command.action](command, self._light(lights, index))
            except BadAnswer as error:
                results[index] = CommandResult(error=str(error))
        return wanted, results

    @property
    def operations(self) -> Mapping[str, Operation]:
        """`identify` makes the device's light blink, `info` tells what the vendor says of it."""
        return {"identify": self._identify, "info": self._info}

    async def _identify(self, payload: Mapping[str, Value]) -> Value:
        prefix, _, index = str(payload.get("device_id", "")).rpartition(":")
        if prefix != f"{self.name}:light" or not index.isdecimal():
            raise Invalid(f"identify needs the device_id of a light of {self.name}")
        await self._client.identify()
        return None

    async def _info(self, _: Mapping[str, Value]) -> Value:
        return await self._client.fetch_info()

    async def _refresh_facts(self) -> None:
        """Read now and then what the device says of itself; where that fails, what was read before stays."""
        if self.clock.monotonic() < self._facts_due_at:
            return
        try:
            async with asyncio.timeout(FACTS_WITHIN):
                self._facts = await self._client.fetch_info()
        except (AdapterFailed, TimeoutError) as error:
            log.debug("%s: accessory-info: %s", self.name, error)
        self._facts_due_at = self.clock.monotonic() + FACTS_EVERY

    async def _confirm(self, wanted: Mapping[int, Mapping[str, int]]) -> dict[int, CommandResult]:
        """Read until every light shows what it was told, at most a second; the result of each."""
        deadline = self.clock.monotonic() + CONFIRM_WITHIN
        while True:
            lights = await self._client.fetch_lights()
            wrong = {index: _mismatch(lights, index, fields) for index, fields in wanted.items()}
            if not any(wrong.values()) or self.clock.monotonic() >= deadline:
                report = self._report(lights)
                return {
                    index: CommandResult(report=report, error=self._complaint(index, wanted[index], wrong[index]))
                    for index in wanted
                }
            await self.clock.sleep(CONFIRM_EVERY)

    def _complaint(self, index: int, wanted: Mapping[str, int], wrong: Mapping[str, Any]) -> str | None:
        if not wrong:
            return None
        told = ", ".join(f"{field} {wanted[field]} but shows {shown(read)}" for field, read in wrong.items())
        return f"{self.http.address}: light {index} was told {told}"

    def _light(self, lights: list[Any], index: int) -> LightState:
        if index >= len(lights):
            raise BadAnswer(f"{self.http.address}: light {index} is not there any more")
        try:
            return LightState.parse(lights[index])
        except Invalid as fault:
            raise BadAnswer(f"{self.http.address}: light {index} {fault}") from None

    def _report(self, lights: list[Any]) -> Report:
        name, info = name_of(self._facts), info_of(self._facts)
        names = [
            name if name is None or len(lights) == 1 else f"{name} {number + 1}" for number in range(len(lights))
        ]
        seen = [self._observe(index, raw, names[index], info) for index, raw in enumerate(lights)]
        return Report(
            adapter=self.name,
            present=frozenset(f"{self.name}:light:{index}" for index in range(len(lights))),
            observations=tuple(observation for observation in seen if observation is not None),
        )

    def _observe(self, index: int, raw: Any, name: str | None, info: Info) -> Observation | None:
        device_id = f"{self.name}:light:{index}"
        try:
            light = LightState.parse(raw)
        except Invalid as fault:
            if device_id not in self._unreadable:
                log.warning("%s: cannot be read: %s", device_id, fault)
            self._unreadable.add(device_id)
            return None
        self._unreadable.discard(device_id)
        return replace(_observation(device_id, index, light), name=name, info=info, commands=COMMANDS)


def _index(device_id: str) -> int:
    return int(device_id.rpartition(":")[2])


def _mismatch(lights: list[Any], index: int, wanted: Mapping[str, int]) -> dict[str, Any]:
    """What a light shows instead of what it was told, by field."""
    light = lights[index] if index < len(lights) and isinstance(lights[index], dict) else {}
    return {field: light.get(field) for field, value in wanted.items() if light.get(field) != value}


def _written(raw: Any, wanted: Mapping[str, int] | None) -> RawLight:
    return _attribute_updates(raw) if wanted is None else _merged(raw, wanted)


def _attribute_updates(raw: Any) -> RawLight:
    """What a write says of a light that it does not mean: the light as it was read, nothing if it was unreadable."""
    try:
        LightState.parse(raw)
    except Invalid:
        return {}
    return raw  # type: ignore[no-any-return]


def _merged(raw: RawLight, wanted: Mapping[str, int]) -> RawLight:
    """The light as it was read with the change; a temperature ends colour mode."""
    dropped = ("hue", "saturation") if "temperature" in wanted else ()
    return {**{field: value for field, value in raw.items() if field not in dropped}, **wanted}


def _observation(device_id: str, index: int, light: LightState) -> Observation:
    attributes: dict[str, Value] = {"power": "on" if light.on else "off", "brightness": light.brightness}
    vendor: dict[str, Value] = {"light_index": index}
    if light.mired is not None:
        attributes["color_temperature"] = {"value": kelvin_of(light.mired), "unit": "kelvin"}
    else:
        vendor |= {"hue": light.hue, "saturation": light.saturation}
    return Observation(device_id=device_id, kind=DeviceKind.LIGHT, attributes=attributes, vendor_specific=vendor)
