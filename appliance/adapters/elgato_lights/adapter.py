"""Elgato lights as devices: one `Light` for each index behind the address."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from appliance.adapters.base import Adapter, Answer, Operation
from appliance.adapters.elgato_lights.client import MIRED_RANGE, ElgatoClient, LightState, RawLight
from appliance.adapters.http import VendorHttp
from appliance.clock import Clock
from appliance.config import ElgatoLights
from appliance.errors import BadAnswer, Invalid
from appliance.home.commands import Command
from appliance.home.model import Kind, Observation, Report
from appliance.home.values import Value

KELVIN_RANGE = (2900, 7000)
CONFIRM_WITHIN = 1.0
"""Seconds that a light has to show what it was told."""

CONFIRM_EVERY = 0.1

log = logging.getLogger("adapters")

Change = Callable[[Command, LightState], dict[str, int]]


def kelvin_of(mired: int) -> int:
    """Colour temperature in kelvin; one mired is a millionth of a reciprocal kelvin."""
    return round(1_000_000 / mired)


def mired_of(kelvin: int) -> int:
    """Colour temperature in mired, held within what the lights take."""
    low, high = MIRED_RANGE
    return min(max(round(1_000_000 / kelvin), low), high)


def _temperature(command: Command, _: LightState) -> dict[str, int]:
    wanted = command.value
    kelvin = wanted["value"] if wanted["unit"] == "kelvin" else kelvin_of(wanted["value"])
    low, high = KELVIN_RANGE
    if not low <= kelvin <= high:
        raise Invalid(f"color_temperature must be from {low} to {high} kelvin for this light, not {kelvin}")
    return {"temperature": mired_of(kelvin)}


CHANGES: Mapping[tuple[str, str], Change] = {
    ("power", "on"): lambda _, light: {"on": 1},
    ("power", "off"): lambda _, light: {"on": 0},
    ("power", "toggle"): lambda _, light: {"on": 0 if light.on else 1},
    ("brightness", "set"): lambda command, _: {"brightness": command.value},
    ("color_temperature", "set"): _temperature,
}
"""What each command writes, given the light as it was just read."""

_ANY_LIGHT = LightState(on=False, brightness=0)


class ElgatoAdapter(Adapter):
    """The lights behind one Elgato address."""

    def __init__(self, name: str, settings: ElgatoLights, http: VendorHttp, clock: Clock) -> None:
        super().__init__(name, settings.poll_interval_secs, http)
        self._client = ElgatoClient(http)
        self._clock = clock
        self._unreadable: set[str] = set()

    async def poll(self) -> Report:
        """Every light that the address lists; one that cannot be read is present without an observation."""
        return self._report(await self._client.fetch_lights())

    def offers(self, command: Command) -> bool:
        """Power, brightness `set` and color_temperature `set`."""
        return (command.capability, command.action) in CHANGES

    async def command(self, device_id: str, command: Command) -> Answer:
        """Read, write the one light's change with the others as they are, and read until the change shows."""
        change = CHANGES[command.capability, command.action]
        change(command, _ANY_LIGHT)  # a value that the light cannot take is refused before anything is sent
        index = int(device_id.rpartition(":")[2])
        lights = await self._client.fetch_lights()
        wanted = change(command, self._light(lights, index))
        lights[index] = _merged(lights[index], wanted)
        await self._client.put_lights(lights, repeat=command.action != "toggle")
        return await self._confirm(index, wanted)

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

    async def _confirm(self, index: int, wanted: Mapping[str, int]) -> Answer:
        deadline = self._clock.monotonic() + CONFIRM_WITHIN
        while True:
            lights = await self._client.fetch_lights()
            shown = lights[index] if index < len(lights) and isinstance(lights[index], dict) else {}
            amiss = {field: shown.get(field) for field, value in wanted.items() if shown.get(field) != value}
            if not amiss:
                return Answer(report=self._report(lights))
            if self._clock.monotonic() >= deadline:
                return Answer(report=self._report(lights), complaint=self._complaint(index, wanted, amiss))
            await self._clock.sleep(CONFIRM_EVERY)

    def _complaint(self, index: int, wanted: Mapping[str, int], amiss: Mapping[str, Any]) -> str:
        told = ", ".join(f"{field} {wanted[field]} but shows {read}" for field, read in amiss.items())
        return f"{self.http.address}: light {index} was told {told}"

    def _light(self, lights: list[Any], index: int) -> LightState:
        if index >= len(lights):
            raise BadAnswer(f"{self.http.address}: light {index} is not there any more")
        try:
            return LightState.parse(lights[index])
        except Invalid as fault:
            raise BadAnswer(f"{self.http.address}: light {index} {fault}") from None

    def _report(self, lights: list[Any]) -> Report:
        seen = [self._observe(index, raw) for index, raw in enumerate(lights)]
        return Report(
            adapter=self.name,
            present=frozenset(f"{self.name}:light:{index}" for index in range(len(lights))),
            observations=tuple(observation for observation in seen if observation is not None),
        )

    def _observe(self, index: int, raw: Any) -> Observation | None:
        device_id = f"{self.name}:light:{index}"
        try:
            light = LightState.parse(raw)
        except Invalid as fault:
            if device_id not in self._unreadable:
                log.warning("%s: cannot be read: %s", device_id, fault)
            self._unreadable.add(device_id)
            return None
        self._unreadable.discard(device_id)
        return _observation(device_id, index, light)


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
    return Observation(device_id=device_id, kind=Kind.LIGHT, attributes=attributes, vendor_specific=vendor)
