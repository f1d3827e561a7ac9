"""The catalog of capabilities for attributes and commands of devices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from appliance.home import values
from appliance.home.values import Value
from appliance.tables.checks import one_of


class Capability(Struct, frozen=True, kw_only=True):
    """A property or function of devices, with the type of its value and the actions that change it.

    `type` is a key of `values.CHECKS`, or `enum` with a list of `values`. `unit` is the usual unit of a number;
    `period` is the usual period of an accumulation. A device may report a different unit or period.
    """

    domain: str
    key: str
    type: str
    values: tuple[str, ...] = ()
    actions: tuple[str, ...] = ("get",)
    unit: str | None = None
    period: str | None = None
    description: str

    @property
    def read_only(self) -> bool:
        """Return whether no action changes the capability."""
        return self.actions in ((), ("get",))

    def check(self, value: Value) -> Value:
        """Return the value in canonical form. Raise `Invalid` with the expected type."""
        if self.type == "enum":
            return one_of(*self.values)(value)
        return values.CHECKS[self.type].run(value)


_TABLE = """
weather:
temperature_outdoor | measurement | get | °C | Air temperature outside.
temperature_apparent | measurement | get | °C | Apparent air temperature outside.
temperature_high | measurement | get | °C | Highest air temperature forecast for the day.
temperature_low | measurement | get | °C | Lowest air temperature forecast for the day.
wind_speed | measurement | get | m/s | Mean speed of the wind.
wind_gust | measurement | get | m/s | Speed of the strongest gusts.
visibility | measurement | get | km | Distance of the farthest visible objects.
wind_direction | integer_or_string | get | ° | Direction of the origin of the wind, in degrees or as a name.
rainfall | accumulation | get | mm / day | Rain within a period.
uv_index | number | get | UV index | Strength of the ultraviolet light, as an index.
weather_condition | string | get | | The weather in one or two words.
cloud_coverage | integer | get | % | Share of the sky that clouds cover, in percent.
lighting:
power | on off | on off toggle | | Whether the device is switched on.
state | online offline unavailable unknown | get | | Whether the hub can reach the device.
brightness | percentage | set increase decrease | % | Brightness of the light.
color_rgb | rgb_color | set | | Colour as red, green and blue.
color_hex | hex_color | set | | Colour in hexadecimal notation.
color_xy | xy_color | set | | Colour as a point in the CIE 1931 diagram.
color_hs | hs_color | set | | Colour as hue and saturation.
color_temperature | color_temperature | set increase decrease | kelvin | Colour temperature, in kelvin or mireds.
color_mode | color_temp rgb xy hs white | set | | The active colour mode.
effect | none flash strobe colorloop random | set stop | | The active light effect.
transition | number | set | s | Duration of a fade, in seconds.
illuminance | integer | get | lx | Brightness at the sensor, in lux.
led_indication | boolean | get set | | Whether the device's indicator light is on.
sensor:
battery | percentage | get | % | Remaining charge of the battery.
temperature | measurement | get | °C | Temperature at the sensor.
humidity | measurement | get | % | Relative humidity at the sensor.
pressure | measurement | get | hPa | Air pressure at the sensor.
co2 | measurement | get | ppm | Concentration of carbon dioxide in the air.
air_quality | unknown excellent good moderate poor unhealthy hazardous | get | | Quality of the air.
motion | detected clear | get | | Whether motion is detected.
contact | open closed | get | | Whether the contact is open or closed.
occupancy | occupied unoccupied | get | | Whether a person is present.
smoke | boolean | get | | Whether smoke is detected.
water_leak | boolean | get | | Whether leaked water is detected.
climate:
target_temperature | measurement | set | °C | The temperature to reach.
hvac_mode | off heat cool auto heat_cool dry fan_only | set | | The requested mode of the unit.
hvac_state | off idle heating cooling fan_only dry | get | | The current activity of the unit.
fan_mode | string | set | | Mode of the fan, in the vendor's words.
swing_mode | string | set | | Movement of the vanes, in the vendor's words.
preset_mode | string | set | | The vendor's active preset.
energy:
power_consumption | measurement | get | W | Power that the device uses at the moment.
voltage | measurement | get | V | Supply voltage.
current | measurement | get | A | Electric current at the moment.
energy_total | accumulation | reset | kWh / total | Energy used since the counter was reset.
energy_today | accumulation | get | kWh / today | Energy used today.
energy_yesterday | accumulation | get | kWh / yesterday | Energy used yesterday.
energy_month | accumulation | get | kWh / month | Energy used this month.
media:
volume | percentage | set increase decrease | % | Volume of the player.
muted | boolean | set mute unmute | | Whether the sound is muted.
media_source | string | set | | The input in use.
media_app | string | set | | The app in use.
media_title | string | get | | The title that is playing.
media_playback | playing paused stopped buffering idle | play pause stop next previous | | The state of the player.
access-control:
lock | locked unlocked jammed | lock unlock | | Whether the lock is locked.
door | open closed opening closing stopped jammed | open close stop | | Position of the door.
garage_door | open closed opening closing stopped jammed | open close stop | | Position of the garage door.
cover_position | percentage | open close stop set | % | Position of the cover; 100 is open.
cover_tilt | percentage | open close stop set | % | Position of the slats; 100 is open.
"""
"""The capabilities by domain. The columns are: key; type, or the values of an enum; actions; unit and period;
description."""


def _read_table() -> Iterator[Capability]:
    domain = ""
    for line in _TABLE.split("\n"):
        if line.endswith(":"):
            domain = line.removesuffix(":")
        elif line:
            key, kind, actions, measure, description = (each.strip() for each in line.split("|"))
            options = tuple(kind.split()) if " " in kind else ()
            unit, _, period = measure.partition(" / ")
            yield Capability(
                domain=domain,
                key=key,
                type="enum" if options else kind,
                values=options,
                actions=tuple(actions.split()),
                unit=unit or None,
                period=period or None,
                description=description,
            )


CAPABILITIES: Mapping[str, Capability] = {entry.key: entry for entry in _read_table()}
"""All capabilities by key, in catalog order."""

UNITS: Mapping[str, str] = {entry.key: entry.unit for entry in CAPABILITIES.values() if entry.unit is not None}

PRESENCE = Capability(
    domain="access-control",
    key="presence",
    type="boolean",
    actions=(),
    description="Whether the person is at home.",
)
"""An attribute outside the catalog, for devices that represent people."""

KNOWN_ATTRIBUTES: Mapping[str, Capability] = {**CAPABILITIES, PRESENCE.key: PRESENCE}
"""The capability of each known attribute. Custom attributes (`custom.<adapter>.<field>`) are not included."""

_CUSTOM = re.compile(r"custom\.[^.\s]{1,100}\.[^\s]{1,150}")


def is_custom(key: str) -> bool:
    """Return whether a key has the form `custom.<adapter>.<field>`."""
    return _CUSTOM.fullmatch(key) is not None and key.isprintable()


OWNERSHIP: Mapping[str, Value] = {
    "canonical_attribute_location": "device.attributes.<capability_key>",
    "custom_attribute_prefix": "custom.",
    "vendor_metadata_field": "metadata.vendor_specific",
    "rules": [
        "If the key of an attribute is in this catalog, the value follows the schema of the capability.",
        "The key of any other attribute has the form custom.<adapter>.<field>.",
        "Data from the vendor is in metadata.vendor_specific. A change of this data does not change updated_at.",
        "A command consists of a capability in this catalog and one of its actions.",
    ],
}
"""Describes which fields of a device contain canonical data, custom data, and vendor data."""

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
"""Maps a capability and an action to the value that the action sets on a virtual device. Only actions that take no
value are included."""
