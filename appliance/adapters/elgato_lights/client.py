"""Elgato's local HTTP interface, as its lights speak it on port 9123.

Protocol: `GET`/`PUT /elgato/lights`, `GET /elgato/accessory-info`, `POST /elgato/identify`; JSON both ways. Colour
temperature is in mired, `on` is 0 or 1, a light in colour mode has `hue` and `saturation` instead of `temperature`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from appliance.adapters.device_http import HttpClient
from appliance.errors import BadAnswer, Invalid
from appliance.home.model import Info
from appliance.tables.checks import integer, number, shown

LIGHT_MIRED_RANGE = (143, 344)

RawLight = Mapping[str, Any]

_FIELDS: Mapping[str, Callable[[Any], float]] = {
    "on": partial(integer, low=0, high=1),
    "brightness": partial(integer, low=0, high=100),
    "temperature": partial(integer, low=LIGHT_MIRED_RANGE[0], high=LIGHT_MIRED_RANGE[1]),
    "hue": number,
    "saturation": number,
}
"""What a light shows, by its own names, and the check of each."""


class LightState(Struct, frozen=True, kw_only=True):
    """One light as it describes itself; a field that it does not show, or shows wrongly, is None.

    `brightness` and `saturation` are percentages, `hue` is in degrees. While the light shows a colour `mired` is
    None, otherwise `hue` and `saturation` are. `wrong` has what is wrong by the light's own names, as sentences.
    """

    on: bool | None = None
    brightness: int | None = None
    mired: int | None = None
    hue: float | None = None
    saturation: float | None = None
    wrong: Mapping[str, str] = {}

    @staticmethod
    def parse(raw: Any) -> LightState:
        """The state that one entry of `lights` describes; raises `Invalid` if nothing of it is a light's."""
        if not isinstance(raw, dict):
            raise Invalid(f"is not an object but {shown(raw)}")
        if raw.keys().isdisjoint(_FIELDS):
            raise Invalid(f"has none of {', '.join(_FIELDS)}")
        read: dict[str, Any] = {}
        wrong: dict[str, str] = {}
        unused = ("hue", "saturation") if "temperature" in raw else ()
        for name in (each for each in _FIELDS if each in raw and each not in unused):
            try:
                read[name] = _FIELDS[name](raw[name])
            except Invalid as fault:
                wrong[name] = f"{name} {fault}"
        on, mired = read.pop("on", None), read.pop("temperature", None)
        return LightState(on=None if on is None else on == 1, mired=mired, wrong=wrong, **read)


class ElgatoClient:
    """One Elgato address. Every method raises `Unreachable` or `BadAnswer`."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    async def fetch_lights(self) -> list[Any]:
        """The lights as the device lists them, unchecked: one malformed entry must not fail the others."""
        answer = await self._fetch_object("/elgato/lights")
        lights = answer.get("lights")
        if not isinstance(lights, list):
            raise BadAnswer(f"{self._http.address}/elgato/lights answered without a list of lights")
        return lights

    async def put_lights(self, lights: Sequence[RawLight], *, repeat: bool) -> None:
        """Write the state of every light, in the device's order; `repeat` allows a second try without an answer."""
        body = {"numberOfLights": len(lights), "lights": lights}
        await self._http.request("PUT", "/elgato/lights", json=body, repeat=repeat)

    async def fetch_info(self) -> dict[str, Any]:
        """The answer to `accessory-info`: product, firmware, serial number and so on, as this model gives them."""
        return await self._fetch_object("/elgato/accessory-info")

    async def identify(self) -> None:
        """Make the light blink, so that a person sees which one it is."""
        await self._http.request("POST", "/elgato/identify")

    async def _fetch_object(self, path: str) -> dict[str, Any]:
        answer = await self._http.request_json("GET", path)
        if not isinstance(answer, dict):
            raise BadAnswer(f"{self._http.address} answered with JSON that is not an object")
        return answer


def name_of(facts: Mapping[str, Any]) -> str | None:
    """The name in the answer to `accessory-info`: that of the vendor's app, else the product's; None without both."""
    return _text(facts, "displayName") or _text(facts, "productName")


def info_of(facts: Mapping[str, Any]) -> Info:
    """Maker, model, firmware and serial number, from the answer to `accessory-info`; empty where there was none."""
    return Info(
        manufacturer="Elgato" if facts else None,
        model=_text(facts, "productName"),
        firmware=_text(facts, "firmwareVersion"),
        serial=_text(facts, "serialNumber"),
    )


def _text(facts: Mapping[str, Any], name: str) -> str | None:
    value = facts.get(name)
    return value.strip() or None if isinstance(value, str) else None
