"""Tasmota's native discovery: converts messages at `tasmota/discovery/<MAC>/config` and `/sensors` to
announcements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec import Struct

from appliance.adapters.mqtt.announcements import MAX_COMPONENTS, Announcement, DeviceFacts
from appliance.adapters.mqtt.fields import Texts
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
)
from appliance.adapters.mqtt.topic_filters import is_topic
from appliance.errors import Invalid
from appliance.tables.checks import format_value

DISCOVERY_PREFIX = "tasmota/discovery"
PARTS = ("config", "sensors")
DISCOVERY_FILTERS = tuple(f"{DISCOVERY_PREFIX}/+/{each}" for each in PARTS)

MAX_OUTPUTS = 32
"""Maximum number of relays, switches, buttons, and shutters of one device."""

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


def is_config(topic: str) -> bool:
    return topic.startswith(f"{DISCOVERY_PREFIX}/") and topic.endswith("/config")


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


def parse_announcements(mac: str, config: Mapping[str, Any], sensors: Mapping[str, Any]) -> list[Announcement]:
    """Convert a device's two messages to announcements. If the first message is missing, return an empty list. Raise
    `Invalid`."""
    return list(_Tasmota(mac, config).announcements(sensors)) if config else []


def unreadable_relays(config: Mapping[str, Any]) -> str | None:
    """Return an error message if the list of relays contains no number. Return None for a valid, empty, or missing
    list."""
    relays = config.get("rl", [])
    if isinstance(relays, list) and (not relays or any(isinstance(each, int) for each in relays)):
        return None
    return f"rl must be a list of numbers, not {format_value(relays)}"


def state_requests(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return topics and payloads that request a device's state and sensors. Raise `Invalid`."""
    tasmota = _Tasmota("", config)
    return [(tasmota.command("STATE"), ""), (tasmota.command("STATUS"), "10")]


class Presses(Struct, frozen=True, gc=False):
    """The events of a button or switch by word, and the data of these events."""

    events: Mapping[str, str]
    data: Mapping[str, int]


class _Tasmota:
    """A device: its topics, and its announcements."""

    def __init__(self, mac: str, config: Mapping[str, Any]) -> None:
        topic, full, prefixes = config.get("t"), config.get("ft"), config.get("tp")
        if not (
            isinstance(topic, str) and isinstance(full, str) and isinstance(prefixes, list) and len(prefixes) == 3
        ):
            raise Invalid("the configuration lacks the field t, ft, or tp")
        self._mac = mac
        self._config = config
        tokens = {"%topic%": topic, "%hostname%": self._text("hn"), "%id%": mac[-6:]}
        for token, value in tokens.items():
            full = full.replace(token, value)
        self._full = full
        self._prefixes = [str(each) for each in prefixes]
        if not all(is_topic(self._topic(kind, "X")) for kind in range(3)):
            raise Invalid("the fields t, ft, and tp do not form a topic")
        self._words = self._list("state", ["OFF", "ON", "TOGGLE", "HOLD"])
        self._device = DeviceFacts(
            identifiers=(mac,),
            connections=(":".join(mac[at : at + 2] for at in range(0, 12, 2)).lower(),),
            name=self._text("dn"),
            manufacturer="Tasmota",
            model=self._text("md"),
            firmware=self._text("sw"),
        )

    def _text(self, key: str) -> str:
        return str(self._config.get(key) or "")[:200]

    def _list(self, key: str, default: list[str]) -> list[str]:
        """Return a list of texts. Missing texts are replaced with defaults."""
        given = self._config.get(key)
        given = given if isinstance(given, list) else []
        return [str(word) if word else known for word, known in zip(given, default, strict=False)] + default[
            len(given) :
        ]

    def _numbers(self, key: str) -> list[int]:
        values = self._config.get(key)
        numbers = values[:MAX_OUTPUTS] if isinstance(values, list) else []
        return [each if isinstance(each, int) else 0 for each in numbers]

    def _number(self, key: str) -> int:
        value = self._config.get(key)
        return value if isinstance(value, int) else 0

    def _option(self, number: int) -> int:
        options = self._config.get("so")
        value = options.get(str(number)) if isinstance(options, dict) else 0
        return value if isinstance(value, int) else 0

    def _topic(self, kind: int, last: str) -> str:
        return self._full.replace("%prefix%", self._prefixes[kind]) + last

    def command(self, name: str) -> str:
        """Return the topic of a command, such as `cmnd/<topic>/POWER1`."""
        return self._topic(0, name)

    def announcements(self, sensors: Mapping[str, Any]) -> Iterator[Announcement]:
        """Yield relays, lights, shutters, the fan, buttons, switches, and sensors."""
        yield from self._outputs()
        if self._number("if"):
            yield self._fan()
        for number, is_there in enumerate(self._numbers("btn") if self._option(73) else (), 1):
            if is_there:
                yield self._button(number)
        for number, mode in enumerate(self._numbers("swc") if self._option(114) else (), 1):
            if mode >= 0:
                yield from self._switch(number, mode)
        if self._number("bat"):
            yield self._battery()
        found = sensors.get("sn")
        if isinstance(found, dict):
            units = units_of(found)
            # one more than the limit, so that the excess is reported
            values = islice(sensor_values(found), MAX_COMPONENTS + 1)
            for path, value in values:
                yield from self._sensor(path, value, units)

    def _outputs(self) -> Iterator[Announcement]:
        relays = self._numbers("rl")
        if self._number("if"):
            relays = [LIGHT for kind in relays[:1] if kind]  # the other relays control the fan
        shutters = [at for at, kind in enumerate(relays) if kind == SHUTTER and relays[:at].count(SHUTTER) % 2 == 0]
        others = [at for at, kind in enumerate(relays) if kind in (RELAY, LIGHT)]
        is_only = len(shutters) + len(others) == 1
        for at in others:
            name = None if is_only else self._name(at)
            if relays[at] == LIGHT or self._option(30):
                yield self._announcement("light", f"light_{at + 1}", name, self._light(at, relays))
            else:
                yield self._announcement("switch", f"relay_{at + 1}", name, self._power(at + 1))
        for number, at in enumerate(shutters):
            name = None if is_only else self._name(at)
            yield self._announcement("cover", f"shutter_{number + 1}", name, self._shutter(number))

    def _announcement(self, component: str, object_id: str, name: Any, config: Mapping[str, Any]) -> Announcement:
        own: dict[str, Any] = {"unique_id": f"{self._mac}_{object_id}", "name": name}
        if not self._number("dslp"):
            own |= {
                "availability_topic": self._topic(2, "LWT"),
                "payload_available": self._text("onln") or "Online",
                "payload_not_available": self._text("ofln") or "Offline",
            }
        return Announcement(
            key=f"tasmota/{self._mac}/{object_id}",
            source=config_topic(self._mac),
            component=component,
            object_id=object_id,
            config=own | dict(config),
            device=self._device,
            origin="Tasmota",
        )

    def _name(self, at: int, key: str = "fn", default: str = "") -> str:
        """Return the name of an output or switch from the list under `key`. If the name is missing, return a
        default name with a number."""
        names = self._config.get(key)
        name = names[at] if isinstance(names, list) and len(names) > at else None
        return str(name)[:200] if name else f"{default or self._device.name} {at + 1}"

    def _read(self, key: str, commands: Iterable[str], *more: str) -> dict[str, Any]:
        """Return the topics with the responses to these commands, and the topics in `more`.

        If SetOption4 is set, each response arrives at a topic named after its command.
        """
        answers = [self._topic(1, each.upper()) for each in (commands if self._option(4) else ())]
        return {key: self._topic(1, "RESULT"), f"_{key}s": Texts((*answers, *more))}

    @property
    def _state(self) -> str:
        return self._topic(2, "STATE")

    @property
    def _sensors(self) -> tuple[str, str]:
        return self._topic(2, "SENSOR"), self._topic(1, "STATUS10")

    def _power(self, number: int) -> dict[str, Any]:
        names = [f"POWER{number}", *(["POWER"] if number == 1 else [])]
        return {
            **self._read("state_topic", names, self._state),
            "value_template": at_paths(*((name,) for name in names)),
            "command_topic": self.command(f"POWER{number}"),
            "payload_on": self._words[1],
            "payload_off": self._words[0],
        }

    def _light(self, at: int, relays: list[int]) -> dict[str, Any]:
        """Return the light of a relay: one for all channels, one each for colour and white, or one per channel."""
        kind, command, key = self._number("lt_st"), "Dimmer", "Dimmer"
        place = relays[:at].count(LIGHT)
        is_separate = not self._number("lk") or self._option(37) >= SEPARATE_WHITE
        if self._number("if") or relays[at] != LIGHT:
            kind = 0
        elif self._option(68):
            kind, command, key = DIMMER, f"Channel{at + 1}", f"Channel{at + 1}"
        elif kind in (RGBW, RGBCCT) and is_separate and relays.count(LIGHT) > 1:
            kind = RGB if place == 0 else DIMMER if kind == RGBW else CCT
            command = key = f"Dimmer{place + 1}"
        elif self._number("ty"):
            command = "Dimmer3"  # brightness of a Tuya module
        low, high = (200, 380) if self._option(82) else (153, 500)
        power = self._power(at + 1)
        names = [f"POWER{at + 1}", *(["POWER"] if at == 0 else [])]
        commands = (*names, command, "Color", "HSBColor", "CT", "White", "Scheme")
        return {
            **power,
            **self._read("state_topic", commands, self._state),
            "light_type": kind,
            "command_base": self.command(""),
            "power_keys": Texts(tuple(names)),
            "dimmer_command": command,
            "dimmer_key": key,
            "brightness_scale": 100,
            "white_scale": 100,
            "min_mireds": low,
            "max_mireds": high,
            "is_power_separate": bool(self._option(20)),
            "has_fixed_fade": bool(self._option(117)),
            "can_fade": kind > 0 and not self._number("ty"),
        }

    def _shutter(self, index: int) -> dict[str, Any]:
        shutter, options = f"Shutter{index + 1}", self._numbers("sho")
        is_inverted = index < len(options) and bool(options[index] & INVERTED)
        names = [f"Shutter{word}{index + 1}" for word in ("Open", "Close", "Stop", "Position", "Tilt")]
        opened, closed, stopped, position, tilt = map(self.command, names)
        config = {
            "command_topic": opened,
            "_close_topic": closed,
            "_stop_topic": stopped,
            **dict.fromkeys(("payload_open", "payload_close", "payload_stop"), ""),
            **self._read("state_topic", names, *self._sensors),
            "value_template": _anywhere(shutter, "Direction"),
            "state_opening": "-1" if is_inverted else "1",
            "state_closing": "1" if is_inverted else "-1",
            "state_stopped": "0",
            "set_position_topic": position,
            **self._read("position_topic", names, *self._sensors),
            "position_template": _anywhere(shutter, "Position"),
            "position_closed": 100 if is_inverted else 0,
            "position_open": 0 if is_inverted else 100,
        }
        tilts = self._config.get("sht")
        given = tilts[index] if isinstance(tilts, list) and index < len(tilts) else None
        if isinstance(given, list) and len(given) >= 3 and all(isinstance(each, int) for each in given[:3]):
            low, high, secs = given[:3]
            if secs and low != high:
                config |= {
                    "tilt_command_topic": tilt,
                    **self._read("tilt_status_topic", names, *self._sensors),
                    "tilt_status_template": _anywhere(shutter, "Tilt"),
                    "tilt_min": low,
                    "tilt_max": high,
                }
        return config

    def _fan(self) -> Announcement:
        config = {
            **self._read("state_topic", ("FanSpeed",), self._state),
            "state_value_template": at_paths(("FanSpeed",)),
            "command_topic": self.command("FanSpeed"),
            "payload_on": "2",
            "payload_off": "0",
            "_states_on": Texts(("1", "2", "3")),
            "percentage_command_topic": self.command("FanSpeed"),
            **self._read("percentage_state_topic", ("FanSpeed",), self._state),
            "percentage_value_template": at_paths(("FanSpeed",)),
            "speed_range_max": 3,
        }
        return self._announcement("fan", "fan", None, config)

    def _button(self, number: int) -> Announcement:
        """Return a button. SetOption11 swaps single and double presses. SetOption13 allows only single presses."""
        events = {word.upper(): word for word in BUTTON_EVENTS}
        if self._option(13):
            events = {"SINGLE": "single"}
        elif self._option(11):
            events |= {"SINGLE": "double", "DOUBLE": "single"}
        config = self._presses(f"Button{number}", events, {"button": number})
        return self._announcement("event", f"button_{number}", f"Button {number}", config)

    def _switch(self, number: int, mode: int) -> Iterator[Announcement]:
        """Yield a wall switch that is detached from the relays: its state, its presses, or both."""
        name, words = self._name(number - 1, "swn", "Switch"), dict(zip(self._words, SWITCH_WORDS, strict=True))
        key = self._name(number - 1, "swn") if self._has_own_name(number) else f"Switch{number}"
        if mode in STATE_MODES:
            # Motion sensors do not report when they switch off.
            off = {"off_delay": PIR_SECS} if mode in PIR_MODES else {}
            config: dict[str, Any] = {
                **self._read("state_topic", (key,), *(() if off else self._sensors)),
                "value_template": at_paths(("StatusSNS", key), (key, "Action"), (key,)),
                "payload_on": self._words[1],
                "payload_off": self._words[0],
                "_ignored": Texts(tuple(self._words[2:])),
                **off,
            }
            yield self._announcement("binary_sensor", f"switch_{number}", name, config)
        meanings = SWITCH_EVENTS.get(mode, {})
        if mode not in STATE_MODES:
            meanings = {**{word: word for word in SWITCH_WORDS}, **meanings}
        if meanings:
            events = {own: meanings[word] for own, word in words.items() if word in meanings}
            config = self._presses(key, events, {"switch": number})
            id_ = f"switch_{number}_action" if mode in STATE_MODES else f"switch_{number}"
            yield self._announcement("event", id_, name, config)

    def _has_own_name(self, number: int) -> bool:
        """Return whether the switch has a name. The switch's messages then contain the name."""
        names = self._config.get("swn")
        return isinstance(names, list) and len(names) >= number and bool(names[number - 1])

    def _presses(self, key: str, events: Mapping[str, str], data: Mapping[str, int]) -> dict[str, Any]:
        return {
            **self._read("state_topic", (key,)),
            "value_template": at_paths((key, "Action")),
            "presses": Presses(events, data),
        }

    def _battery(self) -> Announcement:
        config = {
            **self._read("state_topic", ("STATE",), self._state, self._topic(1, "STATUS11")),
            "value_template": at_paths(("BatteryPercentage",), ("StatusSTS", "BatteryPercentage")),
            "device_class": "battery",
            "unit_of_measurement": "%",
        }
        return self._announcement("sensor", "battery", "Battery", config)

    def _sensor(self, path: JsonPath, value: Any, units: Mapping[str, str]) -> Iterator[Announcement]:
        """Yield a sensor. For a card reader, also yield an event, because reading the same card twice does not change
        the text."""
        shown, asked = self._sensors
        topics = {"state_topic": shown, "_state_topics": Texts((asked,))}
        place = at_paths(("StatusSNS", *path), path)
        config = {**topics, "value_template": place, **sensor_fields(path, value, units)}
        yield self._announcement("sensor", object_id(path), sensor_name(path), config)
        if path[0] in CARD_READERS and path[-1] == "UID":
            config = {"topic": shown, "value_template": at_paths(path)}
            yield self._announcement("tag", f"{object_id(path)}_tag", sensor_name(path), config)


def _anywhere(*path: str) -> JsonPaths:
    """Return the paths of a value in the sensor message, and in the response that repeats the sensor message."""
    return at_paths(path, ("StatusSNS", *path))
