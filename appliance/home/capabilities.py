"""The canonical table: every capability that a device's attributes and commands may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from appliance.home import values
from appliance.home.values import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One thing that a device can show or do: its value's type and the actions on it."""

    domain: str
    key: str
    type: str
    values: tuple[str, ...] = ()
    actions: tuple[str, ...]
    read_only: bool = False
    description: str

    def check(self, value: Value) -> Value:
        """The value in canonical form; `Invalid` says what the type wants instead."""
        if self.type == "enum":
            return values.one_of(value, self.values)
        return values.CHECKS[self.type](value)


def _domain(domain: str, *rows: tuple[str, str, str, str]) -> tuple[Capability, ...]:
    return tuple(_capability(domain, *row) for row in rows)


def _capability(domain: str, key: str, schema: str, actions: str, description: str) -> Capability:
    """A row of the table: `enum on off` is an enum of two, `get!` an action of what is read only."""
    type_, *listed = schema.split()
    return Capability(
        domain=domain,
        key=key,
        type=type_,
        values=tuple(listed),
        actions=tuple(actions.rstrip("!").split()),
        read_only=actions.endswith("!"),
        description=description,
    )


_TABLE = (
    *_domain(
        "weather",
        ("temperature_outdoor", "measurement", "get!", "Air temperature outside."),
        ("temperature_apparent", "measurement", "get!", "What the air outside feels like on the skin."),
        ("temperature_high", "measurement", "get!", "Highest air temperature forecast for the day."),
        ("temperature_low", "measurement", "get!", "Lowest air temperature forecast for the day."),
        ("wind_speed", "measurement", "get!", "Mean speed of the wind."),
        ("wind_gust", "measurement", "get!", "Speed of the strongest gusts."),
        ("visibility", "measurement", "get!", "How far one can see."),
        ("wind_direction", "integer_or_string", "get!", "Where the wind comes from: degrees or a name."),
        ("rainfall", "accumulation", "get!", "Rain that fell within a period."),
        ("uv_index", "number", "get!", "Strength of the ultraviolet light, as an index."),
        ("weather_condition", "string", "get!", "The weather in a word or two."),
        ("cloud_coverage", "integer", "get!", "Share of the sky under clouds, in percent."),
    ),
    *_domain(
        "lighting",
        ("power", "enum on off", "on off toggle", "Whether the device is switched on."),
        ("state", "enum online offline unavailable unknown", "get!", "Whether the hub can reach the device."),
        ("brightness", "percentage", "set increase decrease", "How bright the light is."),
        ("color_rgb", "rgb_color", "set", "Colour as red, green and blue."),
        ("color_hex", "hex_color", "set", "Colour in hexadecimal notation."),
        ("color_xy", "xy_color", "set", "Colour as a point of the CIE 1931 plane."),
        ("color_hs", "hs_color", "set", "Colour as hue and saturation."),
        (
            "color_temperature",
            "color_temperature",
            "set increase decrease",
            "Warmth of white light, in kelvin or mireds.",
        ),
        ("color_mode", "enum color_temp rgb xy hs white", "set", "Which notation of colour is in force."),
        ("effect", "enum none flash strobe colorloop random", "set stop", "A pattern that the light plays."),
        ("transition", "number", "set", "How long a change fades, in seconds."),
        ("illuminance", "integer", "get!", "Light that falls on the sensor, in lux."),
        ("led_indication", "boolean", "get set", "Whether the device's own indicator light is lit."),
    ),
    *_domain(
        "sensor",
        ("battery", "percentage", "get!", "Charge left in the battery."),
        ("temperature", "measurement", "get!", "Temperature at the sensor."),
        ("humidity", "measurement", "get!", "Relative humidity at the sensor."),
        ("pressure", "measurement", "get!", "Air pressure at the sensor."),
        ("co2", "measurement", "get!", "Carbon dioxide in the air."),
        (
            "air_quality",
            "enum unknown excellent good moderate poor unhealthy hazardous",
            "get!",
            "How good the air is to breathe.",
        ),
        ("motion", "enum detected clear", "get!", "Whether something moves."),
        ("contact", "enum open closed", "get!", "Whether the two halves of the contact touch."),
        ("occupancy", "enum occupied unoccupied", "get!", "Whether somebody is there."),
        ("smoke", "boolean", "get!", "Whether there is smoke."),
        ("water_leak", "boolean", "get!", "Whether there is water where none should be."),
    ),
    *_domain(
        "climate",
        ("target_temperature", "measurement", "set", "The temperature to reach."),
        ("hvac_mode", "enum off heat cool auto heat_cool dry fan_only", "set", "What the unit is asked to do."),
        ("hvac_state", "enum off idle heating cooling fan_only dry", "get!", "What the unit is doing."),
        ("fan_mode", "string", "set", "How the fan runs, in the vendor's words."),
        ("swing_mode", "string", "set", "How the vanes swing, in the vendor's words."),
        ("preset_mode", "string", "set", "The vendor's preset in force."),
    ),
    *_domain(
        "energy",
        ("power_consumption", "measurement", "get!", "Power drawn at present."),
        ("voltage", "measurement", "get!", "Voltage of the supply."),
        ("current", "measurement", "get!", "Current drawn at present."),
        ("energy_total", "accumulation", "reset", "Energy used since the counter was reset."),
        ("energy_today", "accumulation", "get!", "Energy used today."),
        ("energy_yesterday", "accumulation", "get!", "Energy used yesterday."),
        ("energy_month", "accumulation", "get!", "Energy used this month."),
    ),
    *_domain(
        "media",
        ("volume", "percentage", "set increase decrease", "How loud it plays."),
        ("muted", "boolean", "set mute unmute", "Whether the sound is off."),
        ("media_source", "string", "set", "The input in use."),
        ("media_app", "string", "set", "The app in use."),
        ("media_title", "string", "get!", "What is playing."),
        (
            "media_playback",
            "enum playing paused stopped buffering idle",
            "play pause stop next previous",
            "What the player is doing.",
        ),
    ),
    *_domain(
        "access-control",
        ("lock", "enum locked unlocked jammed", "lock unlock", "Whether the lock is locked."),
        ("door", "enum open closed opening closing stopped jammed", "open close stop", "Position of the door."),
        (
            "garage_door",
            "enum open closed opening closing stopped jammed",
            "open close stop",
            "Position of the garage door.",
        ),
        ("cover_position", "percentage", "open close stop set", "How far the cover is open."),
        ("cover_tilt", "percentage", "open close stop set", "How far the slats are tilted."),
    ),
)

CAPABILITIES: Mapping[str, Capability] = {entry.key: entry for entry in _TABLE}
"""Every capability by its key, in the catalog's order."""

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
