"""Tasmota's native discovery: `tasmota/discovery/<MAC>/config` and `/sensors` are turned into announcements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from appliance.adapters.mqtt.announcements import MAX_COMPONENTS, Announcement, DeviceFacts
from appliance.adapters.mqtt.payloads import is_topic
from appliance.errors import Invalid

SensorPath = tuple[str, ...]
"""Where a value stands in a sensor message: `("BME280", "Temperature")`."""

MAX_KEYS = 100
"""Keys of one object that are read."""

MAX_PATH_KEYS = 4
"""Levels of objects that are read."""

_SENSORS: Mapping[str, tuple[str, str]] = {
    "Temperature": ("temperature", "°C"),
    "Humidity": ("humidity", "%"),
    "Pressure": ("pressure", "hPa"),
    "Illuminance": ("illuminance", "lx"),
    "CarbonDioxide": ("carbon_dioxide", "ppm"),
    "Power": ("power", "W"),
    "Voltage": ("voltage", "V"),
    "Current": ("current", "A"),
    "Total": ("energy", "kWh"),
    "Today": ("energy", "kWh"),
    "Yesterday": ("energy", "kWh"),
    "ApparentPower": ("apparent_power", "VA"),
    "ReactivePower": ("reactive_power", "var"),
    "Factor": ("power_factor", ""),
}
"""Device class and unit of what Tasmota's sensors call their values."""

_KEY = re.compile(r"[A-Za-z0-9_.-]{1,60}")


def sensor_paths(found: Mapping[str, Any], path: SensorPath = ()) -> Iterator[SensorPath]:
    """The paths of all numbers that stand inside an object of what was found."""
    for key, value in list(found.items())[:MAX_KEYS]:
        if not _KEY.fullmatch(key) or len(path) >= MAX_PATH_KEYS:
            continue
        if isinstance(value, dict):
            yield from sensor_paths(value, (*path, key))
        elif path and isinstance(value, int | float) and not isinstance(value, bool):
            yield (*path, key)


def sensor_fields(path: SensorPath) -> dict[str, Any]:
    """The fields of an announcement that say where the value stands and what it is."""
    keys = "".join(f"['{key}']" for key in path)
    source = "(value_json.StatusSNS if value_json.StatusSNS is defined else value_json)"
    fields: dict[str, Any] = {"value_template": f"{{{{ {source}{keys} | is_defined }}}}"}
    device_class, unit = _SENSORS.get(path[-1], ("", ""))
    if device_class:
        fields |= {"device_class": device_class, "state_class": "measurement"}
        fields |= {"unit_of_measurement": unit} if unit else {}
    return fields


DISCOVERY_PREFIX = "tasmota/discovery"
DISCOVERY_FILTERS = (f"{DISCOVERY_PREFIX}/+/config", f"{DISCOVERY_PREFIX}/+/sensors")

_STATE_MODES = (1, 2, 9, 10, 13, 14)
"""Values of `SwitchMode` in which the switch has a state; in the others it reports presses."""

_MAC = re.compile(r"[0-9A-Fa-f]{12}")


def mac_of(topic: str) -> tuple[str, str]:
    """The address and `config` or `sensors`, of a discovery topic; `Invalid` if it is none."""
    levels = topic.removeprefix(f"{DISCOVERY_PREFIX}/").split("/")
    if len(levels) != 2 or not _MAC.fullmatch(levels[0]) or levels[1] not in ("config", "sensors"):
        raise Invalid("is no topic of Tasmota's discovery")
    return levels[0].upper(), levels[1]


def announced(mac: str, config: Mapping[str, Any], sensors: Mapping[str, Any]) -> list[Announcement]:
    """The announcements in both messages of one Tasmota; none without the first. Raises `Invalid`."""
    return list(_Tasmota(mac, config).announcements(sensors)) if config else []


def state_requests(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Topics and payloads that request the state and the sensors of a Tasmota. Raises `Invalid`."""
    tasmota = _Tasmota("", config)
    return [(tasmota.command("STATE"), ""), (tasmota.command("STATUS"), "10")]


class _Tasmota:
    """One Tasmota: its topics, and what it announces."""

    def __init__(self, mac: str, config: Mapping[str, Any]) -> None:
        topic, full, prefixes = config.get("t"), config.get("ft"), config.get("tp")
        if not (
            isinstance(topic, str) and isinstance(full, str) and isinstance(prefixes, list) and len(prefixes) == 3
        ):
            raise Invalid("the configuration lacks t, ft or tp")
        self._mac = mac
        self._config = config
        self._full = full.replace("%topic%", topic)
        self._prefixes = [str(each) for each in prefixes]
        if not all(is_topic(self._topic(kind, "X")) for kind in range(3)):
            raise Invalid("t, ft and tp make no topic")
        states = config.get("state")
        self._off, self._on = ("OFF", "ON")
        if isinstance(states, list) and len(states) >= 2:
            self._off, self._on = str(states[0]), str(states[1])
        name = config.get("dn")
        self._device = DeviceFacts(
            identifiers=(mac,),
            connections=(":".join(mac[at : at + 2] for at in range(0, 12, 2)).lower(),),
            name=str(name)[:200] if name else "",
            manufacturer="Tasmota",
            model=str(config.get("md") or "")[:200],
            firmware=str(config.get("sw") or "")[:200],
        )

    def _topic(self, kind: int, last: str) -> str:
        return self._full.replace("%prefix%", self._prefixes[kind]) + last

    def command(self, name: str) -> str:
        """The topic of a command, such as `cmnd/<topic>/POWER1`."""
        return self._topic(0, name)

    def announcements(self, sensors: Mapping[str, Any]) -> Iterator[Announcement]:
        """Relays, lights, shutters, the fan, buttons, switches and sensors."""
        yield from self._outputs()
        if self._config.get("if"):
            yield self._fan()
        for number, is_there in enumerate(self._numbers("btn") if self._option("73") else (), 1):
            if is_there:
                yield self._button(number)
        for number, mode in enumerate(self._numbers("swc") if self._option("114") else (), 1):
            if mode >= 0:
                yield self._switch(number, shows_state=mode in _STATE_MODES)
        found = sensors.get("sn")
        if isinstance(found, dict):
            yield from map(self._sensor, islice(sensor_paths(found), MAX_COMPONENTS + 1))  # one more: that is said

    def _outputs(self) -> Iterator[Announcement]:
        relays = self._numbers("rl")
        is_only, shutters = sum(map(bool, relays)) == 1, 0
        for number, kind in enumerate(relays, 1):
            name = None if is_only else self._name(number)
            if kind == 2:
                yield self._announcement("light", f"light_{number}", name, self._light(number))
            elif kind == 3:
                shutters += 1
                if shutters % 2:
                    yield self._shutter(shutters // 2 + 1)
            elif kind:
                yield self._announcement("switch", f"relay_{number}", name, self._power(number))

    def _numbers(self, key: str) -> list[int]:
        values = self._config.get(key)
        return [each if isinstance(each, int) else 0 for each in values[:32]] if isinstance(values, list) else []

    def _option(self, number: str) -> bool:
        options = self._config.get("so")
        return isinstance(options, dict) and bool(options.get(number))

    def _announcement(self, component: str, object_id: str, name: Any, config: Mapping[str, Any]) -> Announcement:
        return Announcement(
            key=f"tasmota/{self._mac}/{object_id}",
            source=f"{DISCOVERY_PREFIX}/{self._mac}/config",
            component=component,
            object_id=object_id,
            config={
                "unique_id": f"{self._mac}_{object_id}",
                "availability_topic": self._topic(2, "LWT"),
                "payload_available": str(self._config.get("onln") or "Online"),
                "payload_not_available": str(self._config.get("ofln") or "Offline"),
                "name": name,
                **config,
            },
            device=self._device,
            origin="Tasmota",
        )

    def _name(self, number: int, key: str = "fn", default: str = "") -> str:
        """The name of an output or a switch, in the list that stands under the key."""
        names = self._config.get(key)
        name = names[number - 1] if isinstance(names, list) and len(names) >= number else None
        return str(name)[:200] if name else f"{default or self._device.name} {number}"

    def _states(self, key: str = "state_topic") -> dict[str, Any]:
        return {key: self._topic(1, "RESULT"), f"_{key}s": [self._topic(2, "STATE")]}

    def _power(self, number: int) -> dict[str, Any]:
        named = f"value_json.POWER{number}"
        if number == 1:
            named = f"({named} if {named} is defined else value_json.POWER)"
        return {
            **self._states(),
            "value_template": f"{{{{ {named} | is_defined }}}}",
            "command_topic": self.command(f"POWER{number}"),
            "payload_on": self._on,
            "payload_off": self._off,
        }

    def _light(self, number: int) -> dict[str, Any]:
        return {
            **self._power(number),
            "schema": "tasmota",
            "brightness_command_topic": self.command("Dimmer"),
            "brightness_scale": 100,
            "brightness_value_template": "{{ value_json.Dimmer | is_defined }}",
            **self._states("brightness_state_topic"),
            **self._colors(self._config.get("lt_st")),
        }

    def _colors(self, kind: Any) -> dict[str, Any]:
        config: dict[str, Any] = {}
        if kind in (2, 5):
            low, high = (200, 380) if self._option("82") else (153, 500)
            when = (
                "{% if value_json.White is not defined or value_json.White > 0 %}" if kind == 5 else "{% if true %}"
            )
            config |= {
                "color_temp_command_topic": self.command("CT"),
                "color_temp_value_template": f"{when}{{{{ value_json.CT | is_defined }}}}{{% endif %}}",
                **self._states("color_temp_state_topic"),
                "min_mireds": low,
                "max_mireds": high,
            }
        if kind in (3, 4, 5):
            when = "{% if value_json.White is not defined or value_json.White == 0 %}"
            config |= {
                "hs_command_topic": self.command("HsbColor"),
                "hs_value_template": when + "{{ value_json.HSBColor.split(',')[0:2] | join(',') }}{% endif %}",
                **self._states("hs_state_topic"),
            }
        return config

    def _shutter(self, number: int) -> Announcement:
        config = {
            "command_topic": self.command("Backlog"),
            "payload_open": f"ShutterOpen{number}",
            "payload_close": f"ShutterClose{number}",
            "payload_stop": f"ShutterStop{number}",
            "set_position_topic": self.command(f"ShutterPosition{number}"),
            "position_topic": self._topic(1, "RESULT"),
            "_position_topics": [self._topic(2, "SENSOR")],
            "position_template": f"{{{{ value_json.Shutter{number}.Position | is_defined }}}}",
        }
        return self._announcement("cover", f"shutter_{number}", self._name(number), config)

    def _fan(self) -> Announcement:
        config = {
            **self._states(),
            "state_value_template": "{{ ('ON' if value_json.FanSpeed | is_defined > 0 else 'OFF') }}",
            "command_topic": self.command("FanSpeed"),
            "payload_on": "2",
            "payload_off": "0",
            "state_on": "ON",
            "state_off": "OFF",
            "percentage_command_topic": self.command("FanSpeed"),
            "percentage_value_template": "{{ value_json.FanSpeed | is_defined }}",
            **self._states("percentage_state_topic"),
            "speed_range_max": 3,
        }
        return self._announcement("fan", "fan", None, config)

    def _button(self, number: int) -> Announcement:
        action = f"value_json.Button{number}.Action"
        text = f"{{{{ {{'event_type': ({action} | is_defined | lower), 'button': {number}}} | to_json }}}}"
        config = {"state_topic": self._topic(1, "RESULT"), "value_template": text}
        return self._announcement("event", f"button_{number}", f"Button {number}", config)

    def _switch(self, number: int, *, shows_state: bool) -> Announcement:
        """A wall switch that is detached from the relays (SetOption114): its state, or its presses."""
        shown, at = f"value_json.Switch{number}", self._topic(1, "RESULT")
        if shows_state:
            action = f"{shown}.Action if {shown}.Action is defined else {shown}"
            value = f"value_json.StatusSNS.Switch{number} if value_json.StatusSNS is defined else ({action})"
            config = {
                "state_topic": at,
                "_state_topics": [self._topic(2, "SENSOR"), self._topic(1, "STATUS10")],
                "value_template": f"{{{{ ({value}) | is_defined }}}}",
                "payload_on": self._on,
                "payload_off": self._off,
            }
        else:
            action = f"{shown}.Action | is_defined | lower"
            text = f"{{{{ {{'event_type': ({action}), 'switch': {number}}} | to_json }}}}"
            config = {"state_topic": at, "value_template": text}
        component = "binary_sensor" if shows_state else "event"
        return self._announcement(component, f"switch_{number}", self._name(number, "swn", "Switch"), config)

    def _sensor(self, path: SensorPath) -> Announcement:
        config = {
            "state_topic": self._topic(2, "SENSOR"),
            "_state_topics": [self._topic(1, "STATUS10")],
            **sensor_fields(path),
        }
        object_id = re.sub(r"[^A-Za-z0-9_-]", "_", "_".join(path))
        return self._announcement("sensor", object_id, " ".join(path), config)
