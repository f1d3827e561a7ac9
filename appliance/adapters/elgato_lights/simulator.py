"""Simulates a light with Elgato's local HTTP protocol."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from aiohttp import web
from msgspec import Struct

from appliance.adapters.simulated_device import SimulatedDevice


class SimulatedLight(Struct, kw_only=True):
    """One lamp of the device. If a lamp has a hue or saturation, the lamp is in colour mode and has no
    temperature."""

    on: bool = False
    brightness: int = 50
    """Percent."""
    temperature: int | None = None
    """Mired."""
    hue: float | None = None
    """Degrees."""
    saturation: float | None = None
    """Percent."""


RANGES: Mapping[str, tuple[float, float]] = {
    "on": (0, 1),
    "brightness": (0, 100),
    "temperature": (143, 344),
    "hue": (0.0, 360.0),
    "saturation": (0.0, 100.0),
}
"""Range of each field of a light. Numbers are clamped to this range when they are written. Floats keep their
fraction."""

_INFO = {
    "productName": "Elgato Key Light",
    "hardwareBoardType": 53,
    "hardwareRevision": "1",
    "macAddress": "02:00:00:4C:41:52",
    "firmwareBuildNumber": 218,
    "firmwareVersion": "1.0.3",
    "serialNumber": "LARES0000001",
    "displayName": "Simulated light",
    "features": ["lights"],
    "wifi-info": {"ssid": "loopback", "frequencyMHz": 2400, "rssi": -40},
}


class LightSimulator(SimulatedDevice):
    """Simulates an Elgato light with any number of lamps.

    `writes` holds the bodies of all PUT requests in order. A body that is not JSON is stored as text. `identified`
    counts the requests to blink. `writes` and `identified` include requests that an injected fault made ineffective.
    `info` is the answer to `accessory-info`, and `battery` to `battery-info`. A mains-powered light has no battery.
    `base` holds the arguments of `SimulatedDevice`.
    """

    content_type = "application/json"

    def __init__(
        self,
        *,
        lights: Sequence[SimulatedLight] = (SimulatedLight(temperature=213),),
        **base: Any,
    ) -> None:
        super().__init__(**base)
        self.info: dict[str, Any] = deepcopy(_INFO)
        self.battery: dict[str, Any] | None = None
        self.writes: list[Any] = []
        self.identified = 0
        self._lights: list[Any] = [deepcopy(light) for light in lights]

    @property
    def lights(self) -> list[Any]:
        """The lamps' present state. Tests can change the lamps in place.

        An entry that is not a `SimulatedLight` is served unchanged as JSON, and writes do not change it.
        """
        self._apply_due_writes()
        return self._lights

    @lights.setter
    def lights(self, lights: Sequence[Any]) -> None:
        self._lights = list(lights)

    def _routes(self) -> Iterable[web.RouteDef]:
        return [
            web.get("/elgato/lights", self._get_lights),
            web.put("/elgato/lights", self._put_lights),
            web.get("/elgato/accessory-info", self._get_info),
            web.get("/elgato/battery-info", self._get_battery),
            web.post("/elgato/identify", self._identify),
        ]

    def _note(self, request: web.Request, body: bytes) -> None:
        if request.method == "PUT":
            self.writes.append(_decoded(body))
        elif (request.method, request.path) == ("POST", "/elgato/identify"):
            self.identified += 1

    async def _get_lights(self, request: web.Request) -> web.Response:
        return self._state()

    async def _put_lights(self, request: web.Request) -> web.Response:
        try:
            changes = _parsed(await request.json())
        except ValueError as fault:
            return self._refuse(str(fault))
        self._take(lambda: self._merge(changes))
        return self._state()

    def _state(self) -> web.Response:
        lights = [_described(light) for light in self.lights]
        return self._json({"numberOfLights": len(lights), "lights": lights})

    def _merge(self, changes: list[dict[str, float]]) -> None:
        for light, change in zip(self._lights, changes, strict=False):
            if isinstance(light, SimulatedLight):
                _apply(light, change)

    def _refuse(self, message: str) -> web.Response:
        return self._json({"errors": [{"message": message}]}, status=400)

    async def _get_info(self, request: web.Request) -> web.Response:
        self._apply_due_writes()
        return self._json(self.info)

    async def _get_battery(self, request: web.Request) -> web.Response:
        return self._json({}, status=404) if self.battery is None else self._json(self.battery)

    async def _identify(self, request: web.Request) -> web.Response:
        return web.Response()


simulate = LightSimulator


def _described(light: Any) -> Any:
    if not isinstance(light, SimulatedLight):
        return light
    entry: dict[str, Any] = {"on": int(light.on)}
    if light.hue is not None or light.saturation is not None:
        hue, saturation = _colour(light)
        return entry | {"hue": hue, "saturation": saturation, "brightness": light.brightness}
    entry["brightness"] = light.brightness
    return entry if light.temperature is None else entry | {"temperature": light.temperature}


def _parsed(body: Any) -> list[dict[str, float]]:
    if not isinstance(body, dict) or not isinstance(body.get("lights"), list):
        raise ValueError("the body has no list of lights")
    return [_parsed_light(entry) for entry in body["lights"]]


def _parsed_light(entry: Any) -> dict[str, float]:
    if not isinstance(entry, dict):
        raise ValueError("a light is not an object")
    if "temperature" in entry and ("hue" in entry or "saturation" in entry):
        raise ValueError("a light must have either a temperature or a colour, not both")
    return {name: _clamped(name, entry[name]) for name in RANGES if name in entry}


def _clamped(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} is not a number")
    low, high = RANGES[name]
    clamped = min(max(value, low), high)
    return float(clamped) if isinstance(low, float) else round(clamped)


def _apply(light: SimulatedLight, change: Mapping[str, Any]) -> None:
    light.on = bool(change.get("on", light.on))
    light.brightness = change.get("brightness", light.brightness)
    if "temperature" in change:
        light.temperature, light.hue, light.saturation = change["temperature"], None, None
    elif "hue" in change or "saturation" in change:
        hue, saturation = _colour(light)
        light.hue, light.saturation = change.get("hue", hue), change.get("saturation", saturation)
        light.temperature = None


def _colour(light: SimulatedLight) -> tuple[float, float]:
    hue = 0.0 if light.hue is None else light.hue
    return hue, 100.0 if light.saturation is None else light.saturation


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")
