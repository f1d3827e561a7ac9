"""The canonical table: every capability that a device's attributes and commands may name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from appliance.home import values
from appliance.home.values import Value
from appliance.tables.checks import one_of

SchemaType = Literal[
    "measurement",
    "accumulation",
    "number",
    "integer",
    "string",
    "boolean",
    "integer_or_string",
    "percentage",
    "rgb_color",
    "hex_color",
    "xy_color",
    "hs_color",
    "color_temperature",
    "enum",
]
"""The type of a capability's value; `values.CHECKS` has the check of each but `enum`, whose values are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One thing that a device can show or do: its value's type and the actions on it."""

    domain: str
    key: str
    type: SchemaType
    values: tuple[str, ...] = ()
    actions: tuple[str, ...]
    read_only: bool = False
    description: str

    def check(self, value: Value) -> Value:
        """The value in canonical form; raises `Invalid`, which says what the type expects."""
        if self.type == "enum":
            return one_of(*self.values)(value)
        return values.CHECKS[self.type](value)


def _reading(key: str, type_: SchemaType, description: str, *, values: tuple[str, ...] = ()) -> Capability:
    """A capability that can only be read."""
    return Capability(
        domain="", key=key, type=type_, values=values, actions=("get",), read_only=True, description=description
    )


def _control(
    key: str, type_: SchemaType, description: str, *, actions: tuple[str, ...], values: tuple[str, ...] = ()
) -> Capability:
    """A capability that can also be commanded."""
    return Capability(domain="", key=key, type=type_, values=values, actions=actions, description=description)


def _in_domain(domain: str, *rows: Capability) -> tuple[Capability, ...]:
    return tuple(replace(row, domain=domain) for row in rows)


_TABLE = (
    *_in_domain(
        "weather",
        _reading("temperature_outdoor", "measurement", "Air temperature outside."),
        _reading("temperature_apparent", "measurement", "What the air outside feels like on the skin."),
        _reading("temperature_high", "measurement", "Highest air temperature forecast for the day."),
        _reading("temperature_low", "measurement", "Lowest air temperature forecast for the day."),
        _reading("wind_speed", "measurement", "Mean speed of the wind."),
        _reading("wind_gust", "measurement", "Speed of the strongest gusts."),
        _reading("visibility", "measurement", "How far one can see."),
        _reading("wind_direction", "integer_or_string", "Where the wind comes from: degrees or a name."),
        _reading("rainfall", "accumulation", "Rain that fell within a period."),
        _reading("uv_index", "number", "Strength of the ultraviolet light, as an index."),
        _reading("weather_condition", "string", "The weather in a word or two."),
        _reading("cloud_coverage", "integer", "Share of the sky under clouds, in percent."),
    ),
    *_in_domain(
        "lighting",
        _control(
            "power",
            "enum",
            "Whether the device is switched on.",
            values=("on", "off"),
            actions=("on", "off", "toggle"),
        ),
        _reading(
            "state",
            "enum",
            "Whether the hub can reach the device.",
            values=("online", "offline", "unavailable", "unknown"),
        ),
        _control("brightness", "percentage", "How bright the light is.", actions=("set", "increase", "decrease")),
        _control("color_rgb", "rgb_color", "Colour as red, green and blue.", actions=("set",)),
        _control("color_hex", "hex_color", "Colour in hexadecimal notation.", actions=("set",)),
        _control("color_xy", "xy_color", "Colour as a point of the CIE 1931 plane.", actions=("set",)),
        _control("color_hs", "hs_color", "Colour as hue and saturation.", actions=("set",)),
        _control(
            "color_temperature",
            "color_temperature",
            "Warmth of white light, in kelvin or mireds.",
            actions=("set", "increase", "decrease"),
        ),
        _control(
            "color_mode",
            "enum",
            "Which notation of colour is in force.",
            values=("color_temp", "rgb", "xy", "hs", "white"),
            actions=("set",),
        ),
        _control(
            "effect",
            "enum",
            "A pattern that the light plays.",
            values=("none", "flash", "strobe", "colorloop", "random"),
            actions=("set", "stop"),
        ),
        _control("transition", "number", "How long a change fades, in seconds.", actions=("set",)),
        _reading("illuminance", "integer", "Light that falls on the sensor, in lux."),
        _control(
            "led_indication", "boolean", "Whether the device's own indicator light is lit.", actions=("get", "set")
        ),
    ),
    *_in_domain(
        "sensor",
        _reading("battery", "percentage", "Charge left in the battery."),
        _reading("temperature", "measurement", "Temperature at the sensor."),
        _reading("humidity", "measurement", "Relative humidity at the sensor."),
        _reading("pressure", "measurement", "Air pressure at the sensor."),
        _reading("co2", "measurement", "Carbon dioxide in the air."),
        _reading(
            "air_quality",
            "enum",
            "How good the air is to breathe.",
            values=("unknown", "excellent", "good", "moderate", "poor", "unhealthy", "hazardous"),
        ),
        _reading("motion", "enum", "Whether something moves.", values=("detected", "clear")),
        _reading("contact", "enum", "Whether the two halves of the contact touch.", values=("open", "closed")),
        _reading("occupancy", "enum", "Whether somebody is there.", values=("occupied", "unoccupied")),
        _reading("smoke", "boolean", "Whether there is smoke."),
        _reading("water_leak", "boolean", "Whether there is water where none should be."),
    ),
    *_in_domain(
        "climate",
        _control("target_temperature", "measurement", "The temperature to reach.", actions=("set",)),
        _control(
            "hvac_mode",
            "enum",
            "What the unit is asked to do.",
            values=("off", "heat", "cool", "auto", "heat_cool", "dry", "fan_only"),
            actions=("set",),
        ),
        _reading(
            "hvac_state",
            "enum",
            "What the unit is doing.",
            values=("off", "idle", "heating", "cooling", "fan_only", "dry"),
        ),
        _control("fan_mode", "string", "How the fan runs, in the vendor's words.", actions=("set",)),
        _control("swing_mode", "string", "How the vanes swing, in the vendor's words.", actions=("set",)),
        _control("preset_mode", "string", "The vendor's preset in force.", actions=("set",)),
    ),
    *_in_domain(
        "energy",
        _reading("power_consumption", "measurement", "Power drawn at present."),
        _reading("voltage", "measurement", "Voltage of the supply."),
        _reading("current", "measurement", "Current drawn at present."),
        _control("energy_total", "accumulation", "Energy used since the counter was reset.", actions=("reset",)),
        _reading("energy_today", "accumulation", "Energy used today."),
        _reading("energy_yesterday", "accumulation", "Energy used yesterday."),
        _reading("energy_month", "accumulation", "Energy used this month."),
    ),
    *_in_domain(
        "media",
        _control("volume", "percentage", "How loud it plays.", actions=("set", "increase", "decrease")),
        _control("muted", "boolean", "Whether the sound is off.", actions=("set", "mute", "unmute")),
        _control("media_source", "string", "The input in use.", actions=("set",)),
        _control("media_app", "string", "The app in use.", actions=("set",)),
        _reading("media_title", "string", "What is playing."),
        _control(
            "media_playback",
            "enum",
            "What the player is doing.",
            values=("playing", "paused", "stopped", "buffering", "idle"),
            actions=("play", "pause", "stop", "next", "previous"),
        ),
    ),
    *_in_domain(
        "access-control",
        _control(
            "lock",
            "enum",
            "Whether the lock is locked.",
            values=("locked", "unlocked", "jammed"),
            actions=("lock", "unlock"),
        ),
        _control(
            "door",
            "enum",
            "Position of the door.",
            values=("open", "closed", "opening", "closing", "stopped", "jammed"),
            actions=("open", "close", "stop"),
        ),
        _control(
            "garage_door",
            "enum",
            "Position of the garage door.",
            values=("open", "closed", "opening", "closing", "stopped", "jammed"),
            actions=("open", "close", "stop"),
        ),
        _control(
            "cover_position", "percentage", "How far the cover is open.", actions=("open", "close", "stop", "set")
        ),
        _control(
            "cover_tilt", "percentage", "How far the slats are tilted.", actions=("open", "close", "stop", "set")
        ),
    ),
)

CAPABILITIES: Mapping[str, Capability] = {entry.key: entry for entry in _TABLE}
"""Every capability by its key, in the catalog's order."""

PRESENCE = Capability(
    domain="access-control",
    key="presence",
    type="boolean",
    actions=(),
    read_only=True,
    description="Whether the person that the device stands for is at home.",
)
"""An attribute beside the catalog, for devices that stand for people."""

ATTRIBUTES: Mapping[str, Capability] = {**CAPABILITIES, PRESENCE.key: PRESENCE}
"""What describes the value of each attribute but `custom.<adapter>.<field>`."""

_CUSTOM = re.compile(r"custom\.[^.\s]{1,100}\.[^\s]{1,150}")


def is_custom(key: str) -> bool:
    """Whether an attribute or capability is named `custom.<adapter>.<field>`."""
    return _CUSTOM.fullmatch(key) is not None and key.isprintable()


OWNERSHIP: Mapping[str, Value] = {
    "canonical_attribute_location": "device.attributes.<capability_key>",
    "custom_attribute_prefix": "custom.",
    "vendor_metadata_field": "metadata.vendor_specific",
    "rules": [
        "An attribute whose key stands in this catalog holds a value of that capability's schema.",
        "What no capability covers may be an attribute named custom.<adapter>.<field>.",
        "A vendor's own data lives under metadata.vendor_specific and never moves updated_at.",
        "Commands name a capability of this catalog and one of its actions, nothing else.",
    ],
}
"""Where canonical, custom and vendor data live in a device."""
