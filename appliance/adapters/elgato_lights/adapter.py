"""Elgato lights as devices: one `Light` for each index behind the address."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from appliance.adapters.base import Adapter, Answer, Operation
from appliance.adapters.elgato_lights.client import MIRED_RANGE, ElgatoClient, LightState, RawLight
from appliance.adapters.http import VendorHttp
from appliance.clock import Clock
from appliance.errors import BadAnswer, Invalid
from appliance.home.commands import Command
from appliance.home.model import Kind, Observation, Report
from appliance.home.values import Value, shown
from appliance.settings import ElgatoLights

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

    def check(self, command: Command) -> None:
        """Refuse a temperature that the capability allows and the lights do not take."""
        if command.capability != "color_temperature":
            return
        low, high = KELVIN_RANGE
        if not low <= (kelvin := _kelvin(command.value)) <= high:
            raise Invalid(f"color_temperature must be from {low} to {high} kelvin for this light, not {kelvin}")

    async def command(self, device_id: str, command: Command) -> Answer:
        """Read, write the one light's change with the others as they are, and read until the change shows."""
        index = int(device_id.rpartition(":")[2])
        lights = await self._client.fetch_lights()
        wanted = CHANGES[command.capability, command.action](command, self._light(lights, index))
        written = [_told_again(light) for light in lights]
        written[index] = _merged(lights[index], wanted)
        await self._client.put_lights(written, repeat=command.action != "toggle")
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
            light = lights[index] if index < len(lights) and isinstance(lights[index], dict) else {}
            amiss = {field: light.get(field) for field, value in wanted.items() if light.get(field) != value}
            if not amiss:
                return Answer(report=self._report(lights))
            if self._clock.monotonic() >= deadline:
                return Answer(report=self._report(lights), complaint=self._complaint(index, wanted, amiss))
            await self._clock.sleep(CONFIRM_EVERY)

    def _complaint(self, index: int, wanted: Mapping[str, int], amiss: Mapping[str, Any]) -> str:
        told = ", ".join(f"{field} {wanted[field]} but shows {shown(read)}" for field, read in amiss.items())
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


def _told_again(raw: Any) -> RawLight:
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
    return Observation(device_id=device_id, kind=Kind.LIGHT, attributes=attributes, vendor_specific=vendor)
