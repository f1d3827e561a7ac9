"""The components of a device's announcement: one for each thing that it shows or takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from appliance.adapters.mqtt.out.publishing import HubTopics, discovery_id
from appliance.home.capabilities import KNOWN_ATTRIBUTES
from appliance.home.commands import CommandSpec
from appliance.home.model import Device
from appliance.tables.checks import is_number
from appliance.version import VERSION

_SENSORS: Mapping[str, tuple[str, str]] = {
    "temperature": ("temperature", "measurement"),
    "temperature_outdoor": ("temperature", "measurement"),
    "humidity": ("humidity", "measurement"),
    "pressure": ("pressure", "measurement"),
    "co2": ("carbon_dioxide", "measurement"),
    "illuminance": ("illuminance", "measurement"),
    "battery": ("battery", "measurement"),
    "power_consumption": ("power", "measurement"),
    "voltage": ("voltage", "measurement"),
    "current": ("current", "measurement"),
    "energy_total": ("energy", "total_increasing"),
    "energy_today": ("energy", "total_increasing"),
    "energy_yesterday": ("energy", "total"),
    "energy_month": ("energy", "total"),
    "wind_speed": ("wind_speed", "measurement"),
    "wind_gust": ("wind_speed", "measurement"),
    "rainfall": ("precipitation", "total"),
}
"""Device class and state class of attributes that are numbers."""


_BINARY: Mapping[str, tuple[str, str, str]] = {
    "contact": ("door", "open", "closed"),
    "motion": ("motion", "detected", "clear"),
    "occupancy": ("occupancy", "occupied", "unoccupied"),
    "smoke": ("smoke", "True", "False"),
    "water_leak": ("moisture", "True", "False"),
    "presence": ("presence", "True", "False"),
}
"""Device class of attributes with two values, and how these read."""

_LIGHT = ("brightness", "color_temperature", "color_rgb", "color_hs", "color_xy", "color_hex", "color_mode", "effect")
_COVER = ("garage_door", "door", "cover_position", "cover_tilt")
_CLIMATE = ("hvac_mode", "hvac_state", "target_temperature", "fan_mode", "swing_mode", "preset_mode")

Component = tuple[str, dict[str, Any]]


def _command_text(capability: str, action: str, value: str | None = None) -> str:
    """Return a command as text; `value` is JSON or a template that makes some."""
    head = f'{{"capability":"{capability}","action":"{action}"'
    return head + "}" if value is None else f'{head},"value":{value}}}'


class DeviceComponents:
    """One device, described component by component, in the keys of Home Assistant's MQTT discovery."""

    def __init__(self, device: Device, topics: HubTopics, events: tuple[str, ...]) -> None:
        self._device = device
        self._specs: dict[str, CommandSpec] = {spec.capability: spec for spec in device.commands or ()}
        self._set = topics.of("devices", device.id, "set")
        self._state = topics.of("devices", device.id, "state")
        self._event = topics.of("devices", device.id, "event")
        self._events = events
        self._keys = {*device.attributes, *self._specs} - {"state"}

    def components(self) -> Iterator[Component]:
        """Return every component by its object id."""
        done: set[str] = set()
        is_light = bool(self._keys & set(_LIGHT)) and ("power" in self._keys or "brightness" in self._specs)
        is_climate = bool({"target_temperature", "hvac_mode"} & set(self._specs))
        for platform, is_one, keys, describe in (
            ("light", is_light, ("power", *_LIGHT), self._light),
            ("cover", True, _COVER, self._cover),
            ("climate", is_climate, _CLIMATE, self._climate),
        ):
            used = self._keys & set(keys)
            if used and is_one:
                yield platform, {"platform": platform, "name": None, **describe()}
                done |= used
        for key in sorted(self._keys - done):
            if (found := self._single(key)) is not None:
                yield key.rpartition(".")[2] if key.startswith("custom.") else key, found
        if self._events:
            yield "event", {"platform": "event", "name": "Event", "state_topic": self._event,
                            "event_types": list(self._events),
                            "value_template": "{{ value_json | to_json }}"}  # fmt: skip

    def _attribute(self, key: str) -> str:
        """Return the template expression of an attribute."""
        return f"value_json.attributes['{key}']"

    def _if_defined(self, key: str, text: str) -> str:
        """Return a template that gives the text if the attribute is shown, nothing elsewhere."""
        return f"{{% if {self._attribute(key)} is defined %}}{text}{{% endif %}}"

    def _shown(self, key: str, path: str = "") -> str:
        """Return the template of an attribute, nothing if it is not shown."""
        return self._if_defined(key, f"{{{{ {self._attribute(key)}{path} }}}}")

    def _sends(self, name: str, key: str, value: str) -> dict[str, Any]:
        """Return the fields that let `<name>` set an attribute; `value` is JSON, or a template that makes JSON."""
        return {f"{name}_topic": self._set, f"{name}_template": _command_text(key, "set", value)}

    def _power(self) -> dict[str, Any]:
        on, off = _command_text("power", "on"), _command_text("power", "off")
        return self._switched("power", {"'on'": on, "'off'": off}, "None")

    def _dimmed(self) -> dict[str, Any]:
        """Return the fields of a light that has no power: brightness switches it, and 0 is off."""
        full, dark = (_command_text("brightness", "set", value) for value in ("100", "0"))
        shown = self._attribute("brightness")
        state = self._if_defined("brightness", f"{{% if {shown} > 0 %}}{full}{{% else %}}{dark}{{% endif %}}")
        return {
            "payload_on": full, "payload_off": dark, "command_topic": self._set, "value_template": state,
            "on_command_type": "brightness",
        }  # fmt: skip

    def _switched(self, key: str, payloads: Mapping[str, str], otherwise: str = "") -> dict[str, Any]:
        """Return the fields of a switch: the same text is command and state. On comes first."""
        shown, (on, off) = self._attribute(key), payloads.values()
        is_on, is_off = (f"{shown} == {value}" for value in payloads)
        state = f"{{% if {is_on} %}}{on}{{% elif {is_off} %}}{off}{{% else %}}{otherwise}{{% endif %}}"
        return {"payload_on": on, "payload_off": off, "command_topic": self._set, "value_template": state}

    def _light(self) -> dict[str, Any]:
        fields = self._power() if "power" in self._keys else self._dimmed()
        fields["state_value_template"] = fields.pop("value_template")
        if "brightness" in self._keys:
            fields |= self._property("brightness", "brightness", "{{ value }}") | {"brightness_scale": 100}
        if (spec := self._specs.get("color_temperature")) is not None:
            shown = self._attribute("color_temperature")
            kelvin = (
                f"{{% if {shown}.unit == 'kelvin' %}}{{{{ {shown}.value }}}}{{% else %}}"
                f"{{{{ (1000000 / {shown}.value) | round | int }}}}{{% endif %}}"
            )
            value, kelvin = '{"value":{{ value }},"unit":"kelvin"}', self._if_defined("color_temperature", kelvin)
            fields |= self._property("color_temp", "color_temperature", value, kelvin)
            fields |= {"color_temp_kelvin": True, "min_kelvin": spec.min or 2200, "max_kelvin": spec.max or 7000}
        for name, parts, value in (
            ("rgb", ("r", "g", "b"), '{"r":{{ red }},"g":{{ green }},"b":{{ blue }}}'),
            ("hs", ("hue", "saturation"), '{"hue":{{ hue | round }},"saturation":{{ sat | round }}}'),
            ("xy", ("x", "y"), '{"x":{{ x }},"y":{{ y }}}'),
        ):
            key = f"color_{name}"
            if key in self._specs:
                joined = ",".join(f"{{{{ {self._attribute(key)}.{part} }}}}" for part in parts)
                fields |= self._property(name, key, value, self._if_defined(key, joined))
        if (spec := self._specs.get("effect")) is not None:
            fields |= self._property("effect", "effect", '"{{ value }}"')
            fields["effect_list"] = list(spec.schema()["values"])
        return fields

    def _property(
        self, name: str, key: str, value: str, shown: str = "", template: str = "value_template"
    ) -> dict[str, Any]:
        """Return the fields of one property: how it is shown, and how it is set if it can be commanded."""
        fields = {f"{name}_state_topic": self._state, f"{name}_{template}": shown or self._shown(key)}
        return fields | self._sends(f"{name}_command", key, value) if key in self._specs else fields

    def _cover(self) -> dict[str, Any]:
        door = next((key for key in ("garage_door", "door") if key in self._keys), "")
        main = door or "cover_position"
        actions = self._specs[main].actions if main in self._specs else ()
        fields: dict[str, Any] = {"command_topic": self._set} if actions else {}
        for action in ("open", "close", "stop"):
            fields[f"payload_{action}"] = _command_text(main, action) if action in actions else None
        if door:
            fields["device_class"] = "garage" if door == "garage_door" else door
            fields |= {"state_topic": self._state, "value_template": self._shown(door)}
        if "cover_position" in self._keys:
            fields |= {"position_topic": self._state, "position_template": self._shown("cover_position")}
            if "cover_position" in self._specs and "set" in self._specs["cover_position"].actions:
                fields |= self._sends("set_position", "cover_position", "{{ position }}")
            if not door:
                shown = self._attribute("cover_position")
                ends = f"{{% if {shown} == 0 %}}closed{{% elif {shown} is defined %}}open{{% endif %}}"
                fields |= {"state_topic": self._state, "value_template": ends}
        if "cover_tilt" in self._keys:
            fields |= {"tilt_status_topic": self._state, "tilt_status_template": self._shown("cover_tilt")}
            fields |= self._sends("tilt_command", "cover_tilt", "{{ tilt_position }}")
        return fields

    def _climate(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if (target := self._specs.get("target_temperature")) is not None:
            unit = target.unit or "°C"
            bounds = {"min_temp": target.min, "max_temp": target.max, "temp_step": target.step}
            fields |= {"temperature_unit": "F" if "F" in unit else "C"}
            fields |= {key: value for key, value in bounds.items() if value is not None}
            value, shown = f'{{"value":{{{{ value }}}},"unit":"{unit}"}}', self._shown("target_temperature", ".value")
            fields |= self._property("temperature", "target_temperature", value, shown, "state_template")
        for key in ("hvac_mode", "fan_mode", "swing_mode", "preset_mode"):
            if key in self._keys:
                name = key.removeprefix("hvac_")
                template = "value_template" if name == "preset_mode" else "state_template"
                fields |= self._property(name, key, '"{{ value }}"', template=template)
                values = self._specs[key].schema()["values"] if key in self._specs else ()
                if options := [each for each in values if each != "none"]:
                    fields[f"{name}s"] = options
        if "hvac_state" in self._keys:
            words = {"dry": "drying", "fan_only": "fan"}
            shown = self._attribute("hvac_state")
            template = f"{{% set words = {words} %}}{{{{ words.get({shown}, {shown}) }}}}"
            fields |= {"action_topic": self._state, "action_template": template}
        return fields

    def _single(self, key: str) -> dict[str, Any] | None:
        """Return the one component of an attribute; None if there is nothing to show."""
        value, spec = self._device.attributes.get(key), self._specs.get(key)
        name = {"name": None if key in ("power", "lock") else key.rpartition(".")[2].replace("_", " ").capitalize()}
        shown = {"value_template": self._shown(key)}
        if key == "power":
            return {"platform": "switch", **name, **self._power()}
        if key == "lock":
            payloads = {f"payload_{action}": _command_text(key, action) for action in ("lock", "unlock")}
            states = {f"state_{state}": state for state in ("locked", "unlocked", "jammed")}
            return {"platform": "lock", **name, "command_topic": self._set, **shown, **payloads, **states}
        if key in _BINARY:
            device_class, on, off = _BINARY[key]
            words = {"device_class": device_class, "payload_on": on, "payload_off": off}
            return {"platform": "binary_sensor", **name, **shown, **words}
        if spec is not None and (found := self._input(key, spec)) is not None:
            return name | found
        if isinstance(value, bool):
            return {"platform": "binary_sensor", **name, **shown, "payload_on": "True", "payload_off": "False"}
        return None if value is None else {"platform": "sensor", **name, **self._sensor(key, value)}

    def _sensor(self, key: str, value: Any) -> dict[str, Any]:
        is_measured = isinstance(value, dict) and "unit" in value
        fields: dict[str, Any] = {"value_template": self._shown(key, ".value" if is_measured else "")}
        known = KNOWN_ATTRIBUTES.get(key) if is_number(value) else None
        if unit := value["unit"] if is_measured else known and known.unit:
            fields["unit_of_measurement"] = unit
        if key in _SENSORS:
            fields["device_class"], fields["state_class"] = _SENSORS[key]
        elif is_number(value):
            fields["state_class"] = "measurement"
        return fields

    def _input(self, key: str, spec: CommandSpec) -> dict[str, Any] | None:
        """Return the component of an attribute that can be set or pressed; None if it has no such component."""
        if "press" in spec.actions:
            return {"platform": "button", "command_topic": self._set, "payload_press": _command_text(key, "press")}
        if "set" not in spec.actions:
            return None
        schema, shown = spec.schema(), {"value_template": self._shown(key)}
        if schema["type"] == "boolean":
            payloads = {value: _command_text(key, "set", value) for value in ("true", "false")}
            return {"platform": "switch", **self._switched(key, payloads)}
        if schema["values"]:
            options = {"options": list(schema["values"])}
            return {"platform": "select", **options, **shown, **self._sends("command", key, '"{{ value }}"')}
        if schema["type"] in ("number", "integer", "percentage"):
            bounds = {"min": schema.get("min", 0), "max": schema.get("max", 100)}
            bounds |= {"step": schema["step"]} if "step" in schema else {}
            return {"platform": "number", **bounds, **shown, **self._sends("command", key, "{{ value }}")}
        if schema["type"] == "string":
            return {"platform": "text", **shown, **self._sends("command", key, "{{ value | to_json }}")}
        return None


def announcement(device: Device, room: str | None, topics: HubTopics, events: tuple[str, ...]) -> bytes:
    """Return the configuration of a device; `events` are the names of its events so far."""
    components = {
        key: {**component, "unique_id": f"{topics.identifier(device.id)}_{key}"}
        for key, component in DeviceComponents(device, topics, events).components()
    }
    own = {"value_template": "{{ 'online' if value_json.attributes.state == 'online' else 'offline' }}"}
    info = device.info
    facts = {
        "identifiers": [topics.identifier(device.id)],
        "name": device.name,
        "manufacturer": info.manufacturer,
        "model": info.model,
        "sw_version": info.firmware,
        "serial_number": info.serial,
        "suggested_area": room or info.area,
        "via_device": topics.identifier("hub"),
    }
    return orjson.dumps(
        {
            "device": {key: value for key, value in facts.items() if value is not None},
            "origin": origin(),
            "state_topic": topics.of("devices", device.id, "state"),
            "qos": 1,
            "availability_mode": "all",
            "availability": [{"topic": topics.status}, {"topic": topics.of("devices", device.id, "state"), **own}],
            "components": components,
        }
    )


def origin() -> dict[str, str]:
    """Return the object `origin` of a configuration."""
    return {"name": "Lares", "sw_version": VERSION}


def hub_announcement(scenes: Mapping[str, str], automations: Mapping[str, str], topics: HubTopics) -> bytes:
    """Return the configuration of the hub itself: its scenes and automations, names by their ids."""
    components: dict[str, dict[str, Any]] = {}
    for id_, name in scenes.items():
        key = f"scene_{discovery_id(id_)}"
        components[key] = {"platform": "scene", "name": name, "command_topic": topics.of("scenes", id_, "run"),
                           "payload_on": "run"}  # fmt: skip
    for id_, name in automations.items():
        key = f"automation_{discovery_id(id_)}"
        components[key] = {"platform": "switch", "name": name, "state_topic": topics.of("automations", id_, "state"),
                           "command_topic": topics.of("automations", id_, "set"), "payload_on": "on",
                           "payload_off": "off"}  # fmt: skip
    for key, component in components.items():
        component["unique_id"] = f"{topics.identifier('hub')}_{key}"
    return orjson.dumps(
        {
            "device": {"identifiers": [topics.identifier("hub")], "name": f"Lares {topics.hub_id}",
                       "manufacturer": "Lares", "sw_version": VERSION},
            "origin": origin(),
            "qos": 1,
            "availability": [{"topic": topics.status}],
            "components": components,
        }
    )  # fmt: skip
