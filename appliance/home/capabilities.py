"""The canonical table: every capability that a device's attributes and commands may name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

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


class _Stated(Struct, frozen=True):
    key: str
    type: SchemaType
    description: str


class Capability(_Stated, frozen=True, kw_only=True):
    """One thing that a device can show or do: its value's type and the actions on it.

    `unit` is that of its numbers, `period` what an accumulation is counted over; a value may state others.
    """

    domain: str = ""
    values: tuple[str, ...] = ()
    actions: tuple[str, ...] = ("get",)
    unit: str | None = None
    period: str | None = None

    @property
    def read_only(self) -> bool:
        """Whether no action changes it."""
        return self.actions in ((), ("get",))

    def check(self, value: Value) -> Value:
        """The value in canonical form; raises `Invalid`, which says what the type expects."""
        if self.type == "enum":
            return one_of(*self.values)(value)
        return values.CHECKS[self.type].run(value)


def _in_domain(domain: str, *rows: Capability) -> tuple[Capability, ...]:
    return tuple(replace(row, domain=domain) for row in rows)


_POSITIONS = ("open", "closed", "opening", "closing", "stopped", "jammed")
_MOVES = ("open", "close", "stop")

_TABLE = (
    *_in_domain(
        "weather",
        Capability("temperature_outdoor", "measurement", "Air temperature outside.", unit="°C"),
        Capability("temperature_apparent", "measurement", "What the air outside feels like on the skin.", unit="°C"),
        Capability("temperature_high", "measurement", "Highest air temperature forecast for the day.", unit="°C"),
        Capability("temperature_low", "measurement", "Lowest air temperature forecast for the day.", unit="°C"),
        Capability("wind_speed", "measurement", "Mean speed of the wind.", unit="m/s"),
        Capability("wind_gust", "measurement", "Speed of the strongest gusts.", unit="m/s"),
        Capability("visibility", "measurement", "How far one can see.", unit="km"),
        Capability("wind_direction", "integer_or_string", "Where the wind comes from: degrees or a name.", unit="°"),
        Capability("rainfall", "accumulation", "Rain that fell within a period.", unit="mm", period="day"),
        Capability("uv_index", "number", "Strength of the ultraviolet light, as an index.", unit="UV index"),
        Capability("weather_condition", "string", "The weather in a word or two."),
        Capability("cloud_coverage", "integer", "Share of the sky under clouds, in percent.", unit="%"),
    ),
    *_in_domain(
        "lighting",
        Capability(
            "power",
            "enum",
            "Whether the device is switched on.",
            values=("on", "off"),
            actions=("on", "off", "toggle"),
        ),
        Capability(
            "state",
            "enum",
            "Whether the hub can reach the device.",
            values=("online", "offline", "unavailable", "unknown"),
        ),
        Capability(
            "brightness", "percentage", "How bright the light is.", actions=("set", "increase", "decrease"), unit="%"
        ),
        Capability("color_rgb", "rgb_color", "Colour as red, green and blue.", actions=("set",)),
        Capability("color_hex", "hex_color", "Colour in hexadecimal notation.", actions=("set",)),
        Capability("color_xy", "xy_color", "Colour as a point of the CIE 1931 plane.", actions=("set",)),
        Capability("color_hs", "hs_color", "Colour as hue and saturation.", actions=("set",)),
        Capability(
            "color_temperature",
            "color_temperature",
            "Warmth of white light, in kelvin or mireds.",
            actions=("set", "increase", "decrease"),
            unit="kelvin",
        ),
        Capability(
            "color_mode",
            "enum",
            "Which notation of colour is in force.",
            values=("color_temp", "rgb", "xy", "hs", "white"),
            actions=("set",),
        ),
        Capability(
            "effect",
            "enum",
            "A pattern that the light plays.",
            values=("none", "flash", "strobe", "colorloop", "random"),
            actions=("set", "stop"),
        ),
        Capability("transition", "number", "How long a change fades, in seconds.", actions=("set",), unit="s"),
        Capability("illuminance", "integer", "Light that falls on the sensor, in lux.", unit="lx"),
        Capability(
            "led_indication", "boolean", "Whether the device's own indicator light is lit.", actions=("get", "set")
        ),
    ),
    *_in_domain(
        "sensor",
        Capability("battery", "percentage", "Charge left in the battery.", unit="%"),
        Capability("temperature", "measurement", "Temperature at the sensor.", unit="°C"),
        Capability("humidity", "measurement", "Relative humidity at the sensor.", unit="%"),
        Capability("pressure", "measurement", "Air pressure at the sensor.", unit="hPa"),
        Capability("co2", "measurement", "Carbon dioxide in the air.", unit="ppm"),
        Capability(
            "air_quality",
            "enum",
            "How good the air is to breathe.",
            values=("unknown", "excellent", "good", "moderate", "poor", "unhealthy", "hazardous"),
        ),
        Capability("motion", "enum", "Whether something moves.", values=("detected", "clear")),
        Capability("contact", "enum", "Whether the two halves of the contact touch.", values=("open", "closed")),
        Capability("occupancy", "enum", "Whether somebody is there.", values=("occupied", "unoccupied")),
        Capability("smoke", "boolean", "Whether there is smoke."),
        Capability("water_leak", "boolean", "Whether there is water where none should be."),
    ),
    *_in_domain(
        "climate",
        Capability("target_temperature", "measurement", "The temperature to reach.", actions=("set",), unit="°C"),
        Capability(
            "hvac_mode",
            "enum",
            "What the unit is asked to do.",
            values=("off", "heat", "cool", "auto", "heat_cool", "dry", "fan_only"),
            actions=("set",),
        ),
        Capability(
            "hvac_state",
            "enum",
            "What the unit is doing.",
            values=("off", "idle", "heating", "cooling", "fan_only", "dry"),
        ),
        Capability("fan_mode", "string", "How the fan runs, in the vendor's words.", actions=("set",)),
        Capability("swing_mode", "string", "How the vanes swing, in the vendor's words.", actions=("set",)),
        Capability("preset_mode", "string", "The vendor's preset in force.", actions=("set",)),
    ),
    *_in_domain(
        "energy",
        Capability("power_consumption", "measurement", "Power drawn at present.", unit="W"),
        Capability("voltage", "measurement", "Voltage of the supply.", unit="V"),
        Capability("current", "measurement", "Current drawn at present.", unit="A"),
        Capability(
            "energy_total",
            "accumulation",
            "Energy used since the counter was reset.",
            actions=("reset",),
            unit="kWh",
            period="total",
        ),
        Capability("energy_today", "accumulation", "Energy used today.", unit="kWh", period="today"),
        Capability("energy_yesterday", "accumulation", "Energy used yesterday.", unit="kWh", period="yesterday"),
        Capability("energy_month", "accumulation", "Energy used this month.", unit="kWh", period="month"),
    ),
    *_in_domain(
        "media",
        Capability("volume", "percentage", "How loud it plays.", actions=("set", "increase", "decrease"), unit="%"),
        Capability("muted", "boolean", "Whether the sound is off.", actions=("set", "mute", "unmute")),
        Capability("media_source", "string", "The input in use.", actions=("set",)),
        Capability("media_app", "string", "The app in use.", actions=("set",)),
        Capability("media_title", "string", "What is playing."),
        Capability(
            "media_playback",
            "enum",
            "What the player is doing.",
            values=("playing", "paused", "stopped", "buffering", "idle"),
            actions=("play", "pause", "stop", "next", "previous"),
        ),
    ),
    *_in_domain(
        "access-control",
        Capability(
            "lock",
            "enum",
            "Whether the lock is locked.",
            values=("locked", "unlocked", "jammed"),
            actions=("lock", "unlock"),
        ),
        Capability("door", "enum", "Position of the door.", values=_POSITIONS, actions=_MOVES),
        Capability("garage_door", "enum", "Position of the garage door.", values=_POSITIONS, actions=_MOVES),
        Capability("cover_position", "percentage", "How far the cover is open.", actions=(*_MOVES, "set"), unit="%"),
        Capability("cover_tilt", "percentage", "How far the slats are tilted.", actions=(*_MOVES, "set"), unit="%"),
    ),
)

CAPABILITIES: Mapping[str, Capability] = {entry.key: entry for entry in _TABLE}
"""Every capability by its key, in the catalog's order."""

UNITS: Mapping[str, str] = {entry.key: entry.unit for entry in _TABLE if entry.unit is not None}
"""The unit of each capability that has one."""

PRESENCE = Capability(
    "presence",
    "boolean",
    "Whether the person that the device stands for is at home.",
    domain="access-control",
    actions=(),
)
"""An attribute beside the catalog, for devices that stand for people."""

KNOWN_ATTRIBUTES: Mapping[str, Capability] = {**CAPABILITIES, PRESENCE.key: PRESENCE}
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

STATES_AFTER: Mapping[tuple[str, str], values.Value] = {
    ("power", "on"): "on",
    ("power", "off"): "off",
    ("effect", "stop"): "none",
    ("muted", "mute"): True,
    ("muted", "unmute"): False,
    ("media_playback", "play"): "playing",
    ("media_playback", "pause"): "paused",
    ("media_playback", "stop"): "stopped",
    ("lock", "lock"): "locked",
    ("lock", "unlock"): "unlocked",
    **{(door, "open"): "open" for door in ("door", "garage_door")},
    **{(door, "close"): "closed" for door in ("door", "garage_door")},
    **{(cover, "open"): 100 for cover in ("cover_position", "cover_tilt")},
    **{(cover, "close"): 0 for cover in ("cover_position", "cover_tilt")},
}
"""What an action without a value makes of its capability, for devices that are only software."""
