"""Matter's attributes, with the corresponding capabilities and units of Lares.

Numbers and units follow Matter's application cluster specification.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from appliance.adapters.matter.nodes import DESCRIPTIONS, Endpoint
from appliance.errors import Invalid
from appliance.home.model import DeviceKind
from appliance.home.values import Value, clamped_kelvin, kelvin_of, percent_of
from appliance.tables.checks import boolean, format_value, integer, number

ON_OFF, LEVEL_CONTROL, COLOR, COVER, DOOR_LOCK, SMOKE_CO_ALARM = 6, 8, 768, 258, 257, 92
THERMOSTAT, FAN, SWITCH, POWER_SOURCE, BOOLEAN_STATE, IDENTIFY, ENERGY = 513, 514, 59, 47, 69, 3, 145

MODES = {0: "off", 1: "heat_cool", 3: "cool", 4: "heat", 5: "heat", 7: "fan_only", 8: "dry"}
"""Thermostat modes by SystemMode. Number 5 is emergency heat."""

FAN_MODES = {0: "off", 1: "low", 2: "medium", 3: "high", 4: "on", 5: "auto", 6: "smart"}

COLOR_MODES = {0: "hs", 1: "xy", 2: "color_temp"}

HEATS, COOLS, IS_AUTO = 1, 2, 32
"""Feature bits of a thermostat."""

COOLING_SETPOINT, HEATING_SETPOINT, SYSTEM_MODE = 17, 18, 28

NO_UINT8, NO_INT16, NO_UINT16 = 0xFF, -0x8000, 0xFFFF
"""For each integer type, the value that means null."""

HIGHEST_LEVEL, MAX_MIREDS, ABSOLUTE_ZERO, MAX_CELSIUS = 254, 0xFEFF, -273.15, 327.67

PERCENT_SETTING = "custom.matter.fan_control.percent_setting"
SETPOINTS = {
    "custom.matter.thermostat.heating_setpoint": HEATING_SETPOINT,
    "custom.matter.thermostat.cooling_setpoint": COOLING_SETPOINT,
}
"""The two setpoints of a thermostat that automatically switches between heating and cooling."""

CO_ALARM = "custom.matter.smoke_co_alarm.co_alarm"
"""Whether carbon monoxide is present. An alarm has to be a boolean, so that its first value can fire a trigger."""

_ALARMS = ("normal", "warning", "critical")
_RUNNING_BITS = 0x7F
_AIR = ("unknown", "excellent", "good", "moderate", "poor", "unhealthy", "hazardous")
_CONCENTRATION_UNITS = ("ppm", "ppb", "ppt", "mg/m³", "µg/m³", "ng/m³", "Bq/m³")
_LOCK_STATES = {0: "jammed", 1: "locked", 2: "unlocked", 3: "unlocked"}
_DOOR_STATES = {0: "open", 1: "closed", 2: "jammed", 3: "open", 5: "open"}

Convert = Callable[[Any, Endpoint], Value]
"""Converts a value of an endpoint. Returns None if this endpoint does not use the value. Raises `Invalid` if the
value is impossible."""


class ClusterField(Struct, frozen=True):
    """One attribute of a cluster, and its attribute in Lares."""

    cluster: int
    attribute: int
    key: str
    convert: Convert
    missing: int | None = None
    """Number that some devices send instead of null."""


def kelvin_of_mireds(mireds: int) -> int:
    """Convert mireds to kelvin, within the range of the catalog."""
    return clamped_kelvin(kelvin_of(mireds))


def setpoint_of(endpoint: Endpoint) -> int:
    """Return the attribute with the target temperature: the cooling setpoint while cooling, otherwise the heating
    setpoint."""
    is_cooling = endpoint.get(THERMOSTAT, SYSTEM_MODE) == 3 or not endpoint.has_feature(THERMOSTAT, HEATS)
    return COOLING_SETPOINT if is_cooling and endpoint.has_feature(THERMOSTAT, COOLS) else HEATING_SETPOINT


def _amount(divisor: float, unit: str, digits: int = 2, low: float = -math.inf, high: float = math.inf) -> Convert:
    """Return a function that divides a number by `divisor` and adds the unit. Amounts outside `low` to `high` are
    impossible."""

    def convert(value: Any, _: Endpoint) -> Value:
        amount = round(number(value) / divisor, digits)
        if not low <= amount <= high:
            raise Invalid(f"must be from {low} to {high}")
        return {"value": amount, "unit": unit}

    return convert


def _named(names: Mapping[int, str] | tuple[str, ...]) -> Convert:
    def convert(value: Any, _: Endpoint) -> Value:
        known = dict(enumerate(names)) if isinstance(names, tuple) else names
        return known.get(integer(value, 0))

    return convert


def _concentration(cluster: int) -> Convert:
    def convert(value: Any, endpoint: Endpoint) -> Value:
        unit = endpoint.get(cluster, 8)
        known = isinstance(unit, int) and 0 <= unit < len(_CONCENTRATION_UNITS)
        if number(value) < 0:
            raise Invalid("must not be negative")
        return {"value": round(number(value), 3), "unit": _CONCENTRATION_UNITS[unit] if known else ""}

    return convert


def _of_type(device_type: int | None, convert: Convert) -> Convert:
    """Convert a value only for endpoints of this device type. If the type is None, convert only for endpoints
    without a type in `_BOOLEAN_TYPES`."""

    def convert_of_type(value: Any, endpoint: Endpoint) -> Value:
        is_meant = device_type in endpoint.types if device_type else not {*endpoint.types} & _BOOLEAN_TYPES
        return convert(value, endpoint) if is_meant else None

    return convert_of_type


def _in_mode(mode: int, convert: Convert) -> Convert:
    """Convert a value only in this colour mode, because the attributes of other modes are outdated."""

    def convert_in_mode(value: Any, endpoint: Endpoint) -> Value:
        return convert(value, endpoint) if endpoint.get(COLOR, 8) in (mode, None) else None

    return convert_in_mode


def _brightness(value: Any, endpoint: Endpoint) -> Value:
    return percent_of(integer(value, 0, HIGHEST_LEVEL), HIGHEST_LEVEL) if ON_OFF in endpoint.clusters else None


def _hue_and_saturation(value: Any, endpoint: Endpoint) -> Value:
    saturation = integer(endpoint.get(COLOR, 1), 0, 254)
    return {"hue": round(integer(value, 0, 254) * 360 / 254), "saturation": round(saturation * 100 / 254)}


def _xy(value: Any, endpoint: Endpoint) -> Value:
    pair = zip("xy", (value, endpoint.get(COLOR, 4)), strict=True)
    return {name: round(integer(each, 0, 65535) / 65536, 4) for name, each in pair}


_temperature = _amount(100, "°C", low=ABSOLUTE_ZERO, high=MAX_CELSIUS)


def _target(_: Any, endpoint: Endpoint) -> Value:
    value = endpoint.get(THERMOSTAT, setpoint_of(endpoint))
    return None if value in (None, NO_INT16) else _temperature(value, endpoint)


def _setpoint(value: Any, endpoint: Endpoint) -> Value:
    return _temperature(value, endpoint) if endpoint.has_feature(THERMOSTAT, IS_AUTO) else None


def _is_alarm(value: Any, _: Endpoint) -> Value:
    return integer(value, 0, len(_ALARMS) - 1) > 0


def _hvac_state(value: Any, endpoint: Endpoint) -> Value:
    running = integer(value, 0, _RUNNING_BITS)
    states = (("heating", 0b1001), ("cooling", 0b10010), ("fan_only", 0b1100100))
    idle = "off" if endpoint.get(THERMOSTAT, SYSTEM_MODE) == 0 else "idle"
    return next((state for state, bits in states if running & bits), idle)


def _fan_power(mode: Any, endpoint: Endpoint) -> Value:
    """Return the power of a fan from its percentage. If the percentage is missing, derive the power from the mode."""
    percent = endpoint.get(FAN, 2)
    is_on = integer(mode, 0, max(FAN_MODES)) if percent in (None, NO_UINT8) else integer(percent, 0, 100)
    return "on" if is_on else "off"


def _opened(value: Any, _: Endpoint) -> Value:
    return 100 - round(integer(value, 0, 10_000) / 100)


def _kwh(value: Any) -> dict[str, Value]:
    return {"value": round(number(value["0"]) / 1e6, 6), "unit": "kWh"}


def _lux(value: Any, _: Endpoint) -> Value:
    measured = integer(value, 0, 65534)
    return round(10 ** ((measured - 1) / 10_000)) if measured else 0


_FREEZE, _RAIN, _LEAK, _CONTACT = 65, 68, 67, 21
_BOOLEAN_TYPES = {_FREEZE, _RAIN, _LEAK, _CONTACT}

_GASES = {
    1037: "co2",
    1036: "custom.matter.carbon_monoxide_concentration.measured_value",
    1043: "custom.matter.nitrogen_dioxide_concentration.measured_value",
    1045: "custom.matter.ozone_concentration.measured_value",
    1066: "custom.matter.pm2_5_concentration.measured_value",
    1067: "custom.matter.formaldehyde_concentration.measured_value",
    1068: "custom.matter.pm1_concentration.measured_value",
    1069: "custom.matter.pm10_concentration.measured_value",
    1070: "custom.matter.total_volatile_organic_compounds_concentration.measured_value",
    1071: "custom.matter.radon_concentration.measured_value",
}

FIELDS = (
    ClusterField(ON_OFF, 0, "power", lambda value, _: "on" if boolean(value) else "off"),
    ClusterField(LEVEL_CONTROL, 0, "brightness", _brightness, NO_UINT8),
    ClusterField(
        COLOR,
        7,
        "color_temperature",
        _in_mode(2, lambda value, _: {"value": kelvin_of_mireds(integer(value, 1, MAX_MIREDS)), "unit": "kelvin"}),
        0,
    ),
    ClusterField(COLOR, 0, "color_hs", _in_mode(0, _hue_and_saturation)),
    ClusterField(COLOR, 3, "color_xy", _in_mode(1, _xy)),
    ClusterField(COLOR, 8, "color_mode", _named(COLOR_MODES)),
    ClusterField(COVER, 14, "cover_position", _opened, NO_UINT16),
    ClusterField(COVER, 15, "cover_tilt", _opened, NO_UINT16),
    ClusterField(DOOR_LOCK, 0, "lock", _named(_LOCK_STATES)),
    ClusterField(DOOR_LOCK, 3, "door", _named(_DOOR_STATES)),
    ClusterField(THERMOSTAT, 0, "temperature", _temperature, NO_INT16),
    ClusterField(THERMOSTAT, SYSTEM_MODE, "target_temperature", _target),
    *(ClusterField(THERMOSTAT, attribute, key, _setpoint, NO_INT16) for key, attribute in SETPOINTS.items()),
    ClusterField(THERMOSTAT, SYSTEM_MODE, "hvac_mode", _named(MODES)),
    ClusterField(THERMOSTAT, 41, "hvac_state", _hvac_state),
    ClusterField(FAN, 0, "power", _fan_power),
    ClusterField(FAN, 0, "fan_mode", _named(FAN_MODES)),
    ClusterField(FAN, 2, PERCENT_SETTING, lambda value, _: integer(value, 0, 100), NO_UINT8),
    ClusterField(1026, 0, "temperature", _temperature, NO_INT16),
    ClusterField(1029, 0, "humidity", _amount(100, "%", low=0, high=100), NO_UINT16),
    ClusterField(1027, 0, "pressure", _amount(1, "hPa"), NO_INT16),
    ClusterField(1028, 0, "custom.matter.flow_measurement.measured_value", _amount(10, "m³/h"), NO_UINT16),
    ClusterField(1024, 0, "illuminance", _lux, NO_UINT16),
    ClusterField(1030, 0, "occupancy", lambda value, _: "occupied" if integer(value, 0, 7) & 1 else "unoccupied"),
    ClusterField(
        BOOLEAN_STATE, 0, "contact", _of_type(_CONTACT, lambda value, _: "closed" if boolean(value) else "open")
    ),
    ClusterField(BOOLEAN_STATE, 0, "water_leak", _of_type(_LEAK, lambda value, _: boolean(value))),
    ClusterField(
        BOOLEAN_STATE, 0, "custom.matter.boolean_state.freeze", _of_type(_FREEZE, lambda value, _: boolean(value))
    ),
    ClusterField(
        BOOLEAN_STATE, 0, "custom.matter.boolean_state.rain", _of_type(_RAIN, lambda value, _: boolean(value))
    ),
    ClusterField(
        BOOLEAN_STATE, 0, "custom.matter.boolean_state.state_value", _of_type(None, lambda value, _: boolean(value))
    ),
    *(ClusterField(cluster, 0, key, _concentration(cluster)) for cluster, key in _GASES.items()),
    ClusterField(91, 0, "air_quality", _named(_AIR)),
    ClusterField(SMOKE_CO_ALARM, 1, "smoke", _is_alarm),
    ClusterField(SMOKE_CO_ALARM, 2, "custom.matter.smoke_co_alarm.co_state", _named(_ALARMS)),
    ClusterField(SMOKE_CO_ALARM, 2, CO_ALARM, _is_alarm),
    ClusterField(144, 8, "power_consumption", _amount(1000, "W", 3)),
    ClusterField(144, 11, "voltage", _amount(1000, "V", 3)),  # some devices report only effective values
    ClusterField(144, 4, "voltage", _amount(1000, "V", 3)),
    ClusterField(144, 12, "current", _amount(1000, "A", 3)),
    ClusterField(144, 5, "current", _amount(1000, "A", 3)),
    ClusterField(ENERGY, 1, "energy_total", lambda value, _: {**_kwh(value), "period": "total"}),
    ClusterField(
        ENERGY,
        2,
        "custom.matter.electrical_energy_measurement.cumulative_energy_exported",
        lambda value, _: _kwh(value),
    ),
)
"""All attributes that the adapter reads."""

_BATTERY = ClusterField(POWER_SOURCE, 12, "battery", lambda value, _: integer(value, 0, 200) // 2, NO_UINT8)

CLUSTERS = frozenset({SWITCH, *(field.cluster for field in FIELDS)})
"""Clusters that make an endpoint a device."""

READ_CLUSTERS = CLUSTERS | DESCRIPTIONS | {POWER_SOURCE, IDENTIFY}
"""All clusters that the adapter reads."""

_LIGHT_TYPES = {256, 257, 268, 269}

_CLASSES = (
    *((each, "light") for each in sorted(_LIGHT_TYPES)),
    *((each, "plug") for each in (266, 267)),
    (514, "cover"),
    (10, "lock"),
    *((each, "climate") for each in (114, 769)),
    (43, "fan"),
    (15, "button"),
    (21, "contact"),
    (67, "water_leak"),
    (118, "smoke"),
    (263, "occupancy"),
    (262, "illuminance"),
    (770, "temperature"),
    (775, "humidity"),
    (773, "pressure"),
    (774, "flow"),
    (44, "air_quality"),
    (65, "freeze"),
    (68, "rain"),
)
"""Device class by device type."""

_BY_CLUSTER = {
    FAN: "fan",
    THERMOSTAT: "climate",
    COVER: "cover",
    DOOR_LOCK: "lock",
    SWITCH: "button",
    ON_OFF: "switch",
}


def alarms_of(endpoint: Endpoint) -> list[str]:
    """Return the endpoint's custom attributes that report a danger."""
    return [CO_ALARM] if 2 in endpoint.clusters.get(SMOKE_CO_ALARM, {}) else []


def is_device(endpoint: Endpoint) -> bool:
    """Return whether the endpoint has a cluster that Lares supports."""
    return endpoint.number != 0 and not endpoint.is_aggregator and not CLUSTERS.isdisjoint(endpoint.clusters)


def class_of(endpoint: Endpoint) -> str:
    """Return the device's `Info.device_class`."""
    by_type = (name for number, name in _CLASSES if number in endpoint.types)
    by_cluster = (name for number, name in _BY_CLUSTER.items() if number in endpoint.clusters)
    return next(by_type, next(by_cluster, "sensor"))


def kind_of(endpoint: Endpoint, *, has_commands: bool) -> DeviceKind:
    if has_commands and (not _LIGHT_TYPES.isdisjoint(endpoint.types) or COLOR in endpoint.clusters):
        return DeviceKind.LIGHT
    return DeviceKind.SWITCH if has_commands else DeviceKind.SENSOR


def read(endpoint: Endpoint, power_source: Endpoint | None) -> tuple[dict[str, Value], dict[str, str]]:
    """Return the endpoint's readable attributes, and a message for each unreadable attribute. `power_source` is
    the endpoint with the battery."""
    values: dict[str, Value] = {}
    wrong: dict[str, str] = {}
    for field, source in _readable(endpoint, power_source):
        value = source.get(field.cluster, field.attribute)
        if value is None or value == field.missing:
            continue
        try:
            meant = field.convert(value, source)
        except (Invalid, KeyError, TypeError, OverflowError):
            wrong[field.key] = (
                f"cannot be read from {field.cluster}/{field.attribute}, which is {format_value(value)}"
            )
            continue
        if meant is not None:
            values[field.key] = meant
    return values, wrong


def find_nulls(endpoint: Endpoint, power_source: Endpoint | None) -> list[str]:
    """Return the endpoint's attributes that have no value yet."""
    fields = _readable(endpoint, power_source)
    return sorted(
        {
            each.key
            for each, source in fields
            if each.attribute in source.clusters.get(each.cluster, {})
            and source.get(each.cluster, each.attribute) in (None, each.missing)
        }
    )


def _readable(endpoint: Endpoint, power_source: Endpoint | None) -> Iterator[tuple[ClusterField, Endpoint]]:
    for field in FIELDS:
        if field.cluster in endpoint.clusters:
            yield field, endpoint
    if power_source is not None:
        yield _BATTERY, power_source
