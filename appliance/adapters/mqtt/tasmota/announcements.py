"""Tasmota's native discovery: converts messages at `tasmota/discovery/<MAC>/config` and `/sensors` to
announcements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec import Struct

from appliance.adapters.mqtt.announcements.announcement import MAX_COMPONENTS, Announcement, DiscoveryProtocol
from appliance.adapters.mqtt.fields import Texts
from appliance.adapters.mqtt.tasmota.device import TasmotaDevice
from appliance.adapters.mqtt.tasmota.sensors import (
    CARD_READERS,
    JsonPath,
    JsonPaths,
    at_paths,
    object_id,
    sensor_fields,
    sensor_name,
    sensor_values,
    units_of,
    value_of,
)
from appliance.adapters.mqtt.templates.template import Template
from appliance.errors import Invalid
from appliance.tables.checks import format_value

DISCOVERY_PREFIX = "tasmota/discovery"
PARTS = ("config", "sensors")
DISCOVERY_FILTERS = tuple(f"{DISCOVERY_PREFIX}/+/{each}" for each in PARTS)

RELAY, LIGHT, SHUTTER = 1, 2, 3
"""Values of `rl`."""

DIMMER, CCT, RGB, RGBW, RGBCCT = 1, 2, 3, 4, 5
"""Values of `lt_st`."""

SEPARATE_WHITE = 128
"""Minimum value of SetOption37 that separates colour and white into two lights."""

INVERTED = 1
"""Bit in `sho` of a shutter whose position is counted from the open end."""

PIR_SECS = 1
"""Seconds after which a switch in mode 13 or 14 switches off without a message."""

BUTTON_EVENTS = ("single", "double", "triple", "quad", "penta", "hold")
"""Events of a button. Tasmota sends the names in capitals."""

SWITCH_WORDS = ("off", "on", "toggle", "hold")
"""Meanings of the words in `state`. Users can change the words."""

SWITCH_EVENTS: Mapping[int, Mapping[str, str]] = {
    **{mode: {"toggle": "single"} for mode in (3, 4, 7, 11, 12)},
    **{mode: {"toggle": "single", "hold": "hold"} for mode in (5, 6)},
    8: {"toggle": "single", "hold": "double"},
    **{mode: {"hold": "double"} for mode in (9, 10)},
}
"""Events of a switch by mode and word, if the event's name differs from the word."""

STATE_MODES = frozenset((1, 2, 3, 4, 5, 6, 9, 10, 13, 14, 15, 16))
"""Modes of switches with a state."""

PIR_MODES = frozenset((13, 14))
"""Modes of switches that only report ON."""

_MAC = re.compile(r"[0-9A-Fa-f]{12}")


def is_topic(topic: str) -> bool:
    """Return whether the topic belongs to Tasmota's discovery."""
    return topic.startswith(f"{DISCOVERY_PREFIX}/")


def is_config(topic: str) -> bool:
    return is_topic(topic) and topic.endswith("/config")


def mac_of(topic: str) -> tuple[str, str]:
    """Return the MAC address, and `config` or `sensors`, from a discovery topic. Raise `Invalid` for any other
    topic."""
    levels = topic.removeprefix(f"{DISCOVERY_PREFIX}/").split("/")
    if len(levels) != 2 or not _MAC.fullmatch(levels[0]) or levels[1] not in PARTS:
        raise Invalid("the topic does not belong to Tasmota's discovery")
    return levels[0].upper(), levels[1]


def config_topic(mac: str) -> str:
    """Return the topic of the first of a device's two messages."""
    return f"{DISCOVERY_PREFIX}/{mac}/config"


def build_announcements(mac: str, config: Mapping[str, Any], sensors: Mapping[str, Any]) -> list[Announcement]:
    """Convert a device's two messages to announcements. If the first message is missing, return an empty list. Raise
    `Invalid`."""
    return list(_announcements(TasmotaDevice(mac, config), sensors)) if config else []


def unreadable_relays(config: Mapping[str, Any]) -> str | None:
    """Return an error message if the list of relays contains no number. Return None for a valid, empty, or missing
    list."""
    relays = config.get("rl", [])
    if isinstance(relays, list) and (not relays or any(isinstance(each, int) for each in relays)):
        return None
    return f"rl must be a list of numbers, not {format_value(relays)}"


def state_requests(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return topics and payloads that request a device's state and sensors. Raise `Invalid`."""
    device = TasmotaDevice("", config)
    return [(device.command("STATE"), ""), (device.command("STATUS"), "10")]


class Presses(Struct, frozen=True, gc=False):
    """The events of a button or switch by word, and the data of these events."""

    events: Mapping[str, str]
    data: Mapping[str, int]


def _announcements(device: TasmotaDevice, sensors: Mapping[str, Any]) -> Iterator[Announcement]:
    """Yield relays, lights, shutters, the fan, buttons, switches, and sensors."""
    yield from _outputs(device)
    if device.number("if"):
        yield _fan(device)
    for number, is_there in enumerate(device.numbers("btn") if device.option(73) else (), 1):
        if is_there:
            yield _button(device, number)
    for number, mode in enumerate(device.numbers("swc") if device.option(114) else (), 1):
        if mode >= 0:
            yield from _switch(device, number, mode)
    if device.number("bat"):
        yield _battery(device)
    found = sensors.get("sn")
    if isinstance(found, dict):
        units = units_of(found)
        # one more than the limit, so that the excess is reported
        values = islice(sensor_values(found), MAX_COMPONENTS + 1)
        for path, value in values:
            yield from _sensor(device, path, value, value_of(found, path), units)


def _outputs(device: TasmotaDevice) -> Iterator[Announcement]:
    relays = device.numbers("rl")
    if device.number("if"):
        relays = [LIGHT for kind in relays[:1] if kind]  # the other relays control the fan
    shutters = [at for at, kind in enumerate(relays) if kind == SHUTTER and relays[:at].count(SHUTTER) % 2 == 0]
    others = [at for at, kind in enumerate(relays) if kind in (RELAY, LIGHT)]
    is_only = len(shutters) + len(others) == 1
    for at in others:
        name = None if is_only else device.name_of(at)
        if relays[at] == LIGHT or device.option(30):
            yield _announcement(device, "light", f"light_{at + 1}", name, _light(device, at, relays))
        else:
            yield _announcement(device, "switch", f"relay_{at + 1}", name, _power(device, at + 1))
    for number, at in enumerate(shutters):
        name = None if is_only else device.name_of(at)
        yield _announcement(device, "cover", f"shutter_{number + 1}", name, _shutter(device, number))


def _announcement(
    device: TasmotaDevice, component: str, object_id: str, name: Any, config: Mapping[str, Any]
) -> Announcement:
    own: dict[str, Any] = {"unique_id": f"{device.mac}_{object_id}", "name": name}
    if not device.number("dslp"):
        own |= {
            "availability_topic": device.telemetry("LWT"),
            "payload_available": device.text("onln") or "Online",
            "payload_not_available": device.text("ofln") or "Offline",
        }
    return Announcement(
        protocol=DiscoveryProtocol.TASMOTA,
        key=f"tasmota/{device.mac}/{object_id}",
        source=config_topic(device.mac),
        component=component,
        object_id=object_id,
        config=own | dict(config),
        device=device.facts,
        origin="Tasmota",
    )


def _power(device: TasmotaDevice, number: int) -> dict[str, Any]:
    names = [f"POWER{number}", *(["POWER"] if number == 1 else [])]
    return {
        **device.responses("state_topic", names, device.telemetry("STATE")),
        "value_template": at_paths(*((name,) for name in names)),
        "command_topic": device.command(f"POWER{number}"),
        "payload_on": device.words[1],
        "payload_off": device.words[0],
    }


def _light(device: TasmotaDevice, at: int, relays: list[int]) -> dict[str, Any]:
    """Return the light of a relay: one for all channels, one each for colour and white, or one per channel."""
    kind, command, key = device.number("lt_st"), "Dimmer", "Dimmer"
    place = relays[:at].count(LIGHT)
    is_separate = not device.number("lk") or device.option(37) >= SEPARATE_WHITE
    if device.number("if") or relays[at] != LIGHT:
        kind = 0
    elif device.option(68):
        kind, command, key = DIMMER, f"Channel{at + 1}", f"Channel{at + 1}"
    elif kind in (RGBW, RGBCCT) and is_separate and relays.count(LIGHT) > 1:
        kind = RGB if place == 0 else DIMMER if kind == RGBW else CCT
        command = key = f"Dimmer{place + 1}"
    elif device.number("ty"):
        command = "Dimmer3"  # brightness of a Tuya module
    low, high = (200, 380) if device.option(82) else (153, 500)
    power = _power(device, at + 1)
    names = [f"POWER{at + 1}", *(["POWER"] if at == 0 else [])]
    commands = (*names, command, "Color", "HSBColor", "CT", "White", "Scheme")
    return {
        **power,
        **device.responses("state_topic", commands, device.telemetry("STATE")),
        "light_type": kind,
        "command_base": device.command(""),
        "power_keys": Texts(tuple(names)),
        "dimmer_command": command,
        "dimmer_key": key,
        "brightness_scale": 100,
        "white_scale": 100,
        "min_mireds": low,
        "max_mireds": high,
        "is_power_separate": bool(device.option(20)),
        "has_fixed_fade": bool(device.option(117)),
        "can_fade": kind > 0 and not device.number("ty"),
    }


def _shutter(device: TasmotaDevice, index: int) -> dict[str, Any]:
    shutter, options = f"Shutter{index + 1}", device.numbers("sho")
    is_inverted = index < len(options) and bool(options[index] & INVERTED)
    names = [f"Shutter{word}{index + 1}" for word in ("Open", "Close", "Stop", "Position", "Tilt")]
    opened, closed, stopped, position, tilt = map(device.command, names)
    config = {
        "command_topic": opened,
        "_close_topic": closed,
        "_stop_topic": stopped,
        **dict.fromkeys(("payload_open", "payload_close", "payload_stop"), ""),
        **device.responses("state_topic", names, *device.sensor_topics),
        "value_template": _anywhere(shutter, "Direction"),
        "state_opening": "-1" if is_inverted else "1",
        "state_closing": "1" if is_inverted else "-1",
        "state_stopped": "0",
        "set_position_topic": position,
        **device.responses("position_topic", names, *device.sensor_topics),
        "position_template": _anywhere(shutter, "Position"),
        "position_closed": 100 if is_inverted else 0,
        "position_open": 0 if is_inverted else 100,
    }
    tilts = device.entries("sht")
    given = tilts[index] if index < len(tilts) else None
    if isinstance(given, list) and len(given) >= 3 and all(isinstance(each, int) for each in given[:3]):
        low, high, secs = given[:3]
        if secs and low != high:
            config |= {
                "tilt_command_topic": tilt,
                **device.responses("tilt_status_topic", names, *device.sensor_topics),
                "tilt_status_template": _anywhere(shutter, "Tilt"),
                "tilt_min": low,
                "tilt_max": high,
            }
    return config


def _fan(device: TasmotaDevice) -> Announcement:
    config = {
        **device.responses("state_topic", ("FanSpeed",), device.telemetry("STATE")),
        "state_value_template": at_paths(("FanSpeed",)),
        "command_topic": device.command("FanSpeed"),
        "payload_on": "2",
        "payload_off": "0",
        "_states_on": Texts(("1", "2", "3")),
        "percentage_command_topic": device.command("FanSpeed"),
        **device.responses("percentage_state_topic", ("FanSpeed",), device.telemetry("STATE")),
        "percentage_value_template": at_paths(("FanSpeed",)),
        "speed_range_max": 3,
    }
    return _announcement(device, "fan", "fan", None, config)


def _button(device: TasmotaDevice, number: int) -> Announcement:
    """Return a button. SetOption11 swaps single and double presses. SetOption13 allows only single presses."""
    events = {word.upper(): word for word in BUTTON_EVENTS}
    if device.option(13):
        events = {"SINGLE": "single"}
    elif device.option(11):
        events |= {"SINGLE": "double", "DOUBLE": "single"}
    config = _presses(device, f"Button{number}", events, {"button": number})
    return _announcement(device, "event", f"button_{number}", f"Button {number}", config)


def _switch(device: TasmotaDevice, number: int, mode: int) -> Iterator[Announcement]:
    """Yield a wall switch that is detached from the relays: its state, its presses, or both."""
    name, words = device.name_of(number - 1, "swn", "Switch"), dict(zip(device.words, SWITCH_WORDS, strict=True))
    key = device.name_of(number - 1, "swn") if device.has_own_name(number) else f"Switch{number}"
    if mode in STATE_MODES:
        # Motion sensors do not report when they switch off.
        off = {"off_delay": PIR_SECS} if mode in PIR_MODES else {}
        config: dict[str, Any] = {
            **device.responses("state_topic", (key,), *(() if off else device.sensor_topics)),
            "value_template": at_paths(("StatusSNS", key), (key, "Action"), (key,)),
            "payload_on": device.words[1],
            "payload_off": device.words[0],
            "_ignored": Texts(tuple(device.words[2:])),
            **off,
        }
        yield _announcement(device, "binary_sensor", f"switch_{number}", name, config)
    meanings = SWITCH_EVENTS.get(mode, {})
    if mode not in STATE_MODES:
        meanings = {**{word: word for word in SWITCH_WORDS}, **meanings}
    if meanings:
        events = {own: meanings[word] for own, word in words.items() if word in meanings}
        config = _presses(device, key, events, {"switch": number})
        id_ = f"switch_{number}_action" if mode in STATE_MODES else f"switch_{number}"
        yield _announcement(device, "event", id_, name, config)


def _presses(device: TasmotaDevice, key: str, events: Mapping[str, str], data: Mapping[str, int]) -> dict[str, Any]:
    return {
        **device.responses("state_topic", (key,)),
        "value_template": at_paths((key, "Action")),
        "presses": Presses(events, data),
    }


def _battery(device: TasmotaDevice) -> Announcement:
    config = {
        **device.responses("state_topic", ("STATE",), device.telemetry("STATE"), device.response("STATUS11")),
        "value_template": at_paths(("BatteryPercentage",), ("StatusSTS", "BatteryPercentage")),
        "device_class": "battery",
        "unit_of_measurement": "%",
    }
    return _announcement(device, "sensor", "battery", "Battery", config)


def _sensor(
    device: TasmotaDevice, path: JsonPath, value: Any, place: Template, units: Mapping[str, str]
) -> Iterator[Announcement]:
    """Yield a sensor. For a card reader, also yield an event, because reading the same card twice does not change
    the text."""
    shown, asked = device.sensor_topics
    topics = {"state_topic": shown, "_state_topics": Texts((asked,))}
    config = {**topics, "value_template": place, **sensor_fields(path, value, units)}
    yield _announcement(device, "sensor", object_id(path), sensor_name(path), config)
    if path[0] in CARD_READERS and path[-1] == "UID":
        config = {"topic": shown, "value_template": at_paths(path)}
        yield _announcement(device, "tag", f"{object_id(path)}_tag", sensor_name(path), config)


def _anywhere(*path: str) -> JsonPaths:
    """Return the paths of a value in the sensor message, and in the response that repeats the sensor message."""
    return at_paths(path, ("StatusSNS", *path))
