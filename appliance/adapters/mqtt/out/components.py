"""The components of Home Assistant's discovery format that represent a device of this hub.

Each function `describe_…` returns a component's fields for a device or an attribute. The function returns None if
another component represents the device or attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from appliance.adapters.mqtt.home_assistant_classes import BINARY_SENSORS, SENSORS
from appliance.adapters.mqtt.out.published_device import (
    Fields,
    PublishedDevice,
    command_text,
    expression,
    if_defined,
    shown_text,
)
from appliance.home.capabilities import KNOWN_ATTRIBUTES
from appliance.home.values import KELVIN_RANGE
from appliance.tables.checks import is_number

LIGHT_KEYS = (
    "brightness", "color_temperature", "color_rgb", "color_hs", "color_xy", "color_hex", "color_mode", "effect",
)  # fmt: skip
"""All attributes of a light except its power."""


def describe_light(device: PublishedDevice) -> Fields | None:
    if device.keys.isdisjoint(LIGHT_KEYS) or not ("power" in device.keys or "brightness" in device.specs):
        return None
    fields = device.power() if "power" in device.keys else _dimmed(device)
    fields["state_value_template"] = fields.pop("value_template")
    if "brightness" in device.keys:
        fields |= device.show_and_set("brightness", "brightness", "{{ value }}") | {"brightness_scale": 100}
    if (spec := device.specs.get("color_temperature")) is not None:
        shown = expression("color_temperature")
        kelvin = (
            f"{{% if {shown}.unit == 'kelvin' %}}{{{{ {shown}.value }}}}{{% else %}}"
            f"{{{{ (1000000 / {shown}.value) | round | int }}}}{{% endif %}}"
        )
        value, kelvin = '{"value":{{ value }},"unit":"kelvin"}', if_defined("color_temperature", kelvin)
        fields |= device.show_and_set("color_temp", "color_temperature", value, kelvin)
        low, high = spec.min or KELVIN_RANGE[0], spec.max or KELVIN_RANGE[1]
        fields |= {"color_temp_kelvin": True, "min_kelvin": low, "max_kelvin": high}
    for name, parts, value in (
        ("rgb", ("r", "g", "b"), '{"r":{{ red }},"g":{{ green }},"b":{{ blue }}}'),
        ("hs", ("hue", "saturation"), '{"hue":{{ hue | round }},"saturation":{{ sat | round }}}'),
        ("xy", ("x", "y"), '{"x":{{ x }},"y":{{ y }}}'),
    ):
        key = f"color_{name}"
        if key in device.specs:
            joined = ",".join(f"{{{{ {expression(key)}.{part} }}}}" for part in parts)
            fields |= device.show_and_set(name, key, value, if_defined(key, joined))
    if (spec := device.specs.get("effect")) is not None:
        fields |= device.show_and_set("effect", "effect", '"{{ value }}"')
        fields["effect_list"] = list(spec.schema()["values"])
    return fields


def _dimmed(device: PublishedDevice) -> Fields:
    """Return the fields of a light without power. A brightness above 0 switches the light on, and 0 switches the
    light off."""
    full, dark = (command_text("brightness", "set", value) for value in ("100", "0"))
    state = f"{{% if {expression('brightness')} > 0 %}}{full}{{% else %}}{dark}{{% endif %}}"
    return {
        "payload_on": full, "payload_off": dark, "command_topic": device.set_topic,
        "value_template": if_defined("brightness", state), "on_command_type": "brightness",
    }  # fmt: skip


COVER_KEYS = ("garage_door", "door", "cover_position", "cover_tilt")


def describe_cover(device: PublishedDevice) -> Fields | None:
    if device.keys.isdisjoint(COVER_KEYS):
        return None
    door = next((key for key in ("garage_door", "door") if key in device.keys), "")
    main = door or "cover_position"
    actions = device.specs[main].actions if main in device.specs else ()
    state = {"state_topic": device.state_topic}
    fields: Fields = {"command_topic": device.set_topic} if actions else {}
    for action in ("open", "close", "stop"):
        fields[f"payload_{action}"] = command_text(main, action) if action in actions else None
    if door:
        fields["device_class"] = "garage" if door == "garage_door" else door
        fields |= state | {"value_template": shown_text(door)}
    if "cover_position" in device.keys:
        fields |= {"position_topic": device.state_topic, "position_template": shown_text("cover_position")}
        if device.settable("cover_position"):
            fields |= device.sends("set_position", "cover_position", "{{ position }}")
        if not door:
            shown = expression("cover_position")
            ends = f"{{% if {shown} == 0 %}}closed{{% elif {shown} is defined %}}open{{% endif %}}"
            fields |= state | {"value_template": ends}
    if "cover_tilt" in device.keys:
        fields |= {"tilt_status_topic": device.state_topic, "tilt_status_template": shown_text("cover_tilt")}
        fields |= device.sends("tilt_command", "cover_tilt", "{{ tilt_position }}")
    return fields


CLIMATE_KEYS = ("hvac_mode", "hvac_state", "target_temperature", "fan_mode", "swing_mode", "preset_mode")


def describe_climate(device: PublishedDevice) -> Fields | None:
    if device.specs.keys().isdisjoint(("target_temperature", "hvac_mode")):
        return None
    fields: Fields = {}
    if (target := device.specs.get("target_temperature")) is not None:
        unit = target.unit or "°C"
        bounds = {"min_temp": target.min, "max_temp": target.max, "temp_step": target.step}
        fields |= {"temperature_unit": "F" if "F" in unit else "C"}
        fields |= {key: value for key, value in bounds.items() if value is not None}
        value, shown = f'{{"value":{{{{ value }}}},"unit":"{unit}"}}', shown_text("target_temperature", ".value")
        fields |= device.show_and_set("temperature", "target_temperature", value, shown, "state_template")
    for key in ("hvac_mode", "fan_mode", "swing_mode", "preset_mode"):
        if key in device.keys:
            name = key.removeprefix("hvac_")
            template = "value_template" if name == "preset_mode" else "state_template"
            fields |= device.show_and_set(name, key, '"{{ value }}"', template=template)
            values = device.specs[key].schema()["values"] if key in device.specs else ()
            if options := [each for each in values if each != "none"]:
                fields[f"{name}s"] = options
    if "hvac_state" in device.keys:
        words = {"dry": "drying", "fan_only": "fan"}
        shown = expression("hvac_state")
        template = f"{{% set words = {words} %}}{{{{ words.get({shown}, {shown}) }}}}"
        fields |= {"action_topic": device.state_topic, "action_template": template}
    return fields


def describe_lock(device: PublishedDevice, key: str) -> Fields | None:
    if key != "lock":
        return None
    payloads = {f"payload_{action}": command_text(key, action) for action in ("lock", "unlock")}
    states = {f"state_{state}": state for state in ("locked", "unlocked", "jammed")}
    return {"command_topic": device.set_topic, "value_template": shown_text(key), **payloads, **states}


def describe_switch(device: PublishedDevice, key: str) -> Fields | None:
    if key == "power":
        return device.power()
    if device.settable(key).get("type") != "boolean":
        return None
    return device.switched(key, {value: command_text(key, "set", value) for value in ("true", "false")})


def describe_button(device: PublishedDevice, key: str) -> Fields | None:
    if key not in device.specs or "press" not in device.specs[key].actions:
        return None
    return {"command_topic": device.set_topic, "payload_press": command_text(key, "press")}


def describe_select(device: PublishedDevice, key: str) -> Fields | None:
    if not (options := device.settable(key).get("values")):
        return None
    sends = device.sends("command", key, '"{{ value }}"')
    return {"options": list(options), "value_template": shown_text(key), **sends}


def describe_number(device: PublishedDevice, key: str) -> Fields | None:
    schema = device.settable(key)
    if schema.get("type") not in ("number", "integer", "percentage"):
        return None
    bounds = {"min": 0, "max": 100} | {each: schema[each] for each in ("min", "max", "step") if each in schema}
    return {**bounds, "value_template": shown_text(key), **device.sends("command", key, "{{ value }}")}


def describe_text(device: PublishedDevice, key: str) -> Fields | None:
    if device.settable(key).get("type") != "string":
        return None
    return {"value_template": shown_text(key), **device.sends("command", key, "{{ value | to_json }}")}


_CLASSES = {
    **{each.capability: name for name, each in reversed(SENSORS.items()) if name != "wind_direction"},
    **dict.fromkeys(("energy_today", "energy_yesterday", "energy_month"), "energy"),
    "temperature_outdoor": "temperature",
    "wind_gust": "wind_speed",
}
"""Device class of each attribute. `wind_direction` is missing, because its value may be a word, but Home Assistant's
class allows only numbers."""


_STATE_CLASSES = {
    **dict.fromkeys(("energy_total", "energy_today"), "total_increasing"),
    **dict.fromkeys(("energy_yesterday", "energy_month", "rainfall"), "total"),
}
"""State class of each attribute whose value is a sum."""


def describe_sensor(device: PublishedDevice, key: str) -> Fields | None:
    value = device.attributes.get(key)
    if value is None:
        return None
    is_measured = isinstance(value, dict) and "unit" in value
    fields: Fields = {"value_template": shown_text(key, ".value" if is_measured else "")}
    known = KNOWN_ATTRIBUTES.get(key) if is_number(value) else None
    if unit := value["unit"] if is_measured else known and known.unit:
        fields["unit_of_measurement"] = unit
    if key in _CLASSES:
        fields["device_class"] = _CLASSES[key]
    if key in _CLASSES or is_number(value):
        fields["state_class"] = _STATE_CLASSES.get(key, "measurement")
    return fields


_BINARY_CLASSES = {
    **{each.capability: (name, str(each.on), str(each.off)) for name, each in reversed(BINARY_SENSORS.items())},
    "presence": ("presence", "True", "False"),
}
"""Device class of each capability, and the texts for on and off in templates."""


def describe_binary_sensor(device: PublishedDevice, key: str) -> Fields | None:
    device_class, on, off = _BINARY_CLASSES.get(key, (None, "True", "False"))
    if device_class is None and not isinstance(device.attributes.get(key), bool):
        return None
    named = {"device_class": device_class} if device_class else {}
    return {"value_template": shown_text(key), **named, "payload_on": on, "payload_off": off}


def describe_events(topic: str, names: Sequence[str]) -> Fields:
    return {"state_topic": topic, "event_types": list(names), "value_template": "{{ value_json | to_json }}"}


_JOINED = {
    "light": (describe_light, ("power", *LIGHT_KEYS)),
    "cover": (describe_cover, COVER_KEYS),
    "climate": (describe_climate, CLIMATE_KEYS),
}
"""For each component that combines several attributes: the function that describes it, and the attributes."""

_SINGLE: Mapping[str, Callable[[PublishedDevice, str], Fields | None]] = {
    "lock": describe_lock,
    "button": describe_button,
    "switch": describe_switch,
    "select": describe_select,
    "number": describe_number,
    "text": describe_text,
    "binary_sensor": describe_binary_sensor,
    "sensor": describe_sensor,
}
"""Components for one attribute. An attribute gets the first component that accepts it."""


def components_of(device: PublishedDevice) -> Iterator[tuple[str, Fields]]:
    """Yield the object id and the fields of each component of a device."""
    left = set(device.keys)
    for platform, (describe, keys) in _JOINED.items():
        if (fields := describe(device)) is not None:
            yield platform, {"platform": platform, "name": None, **fields}
            left -= set(keys)
    for key in sorted(left):
        own = key.rpartition(".")[2]
        name = None if key in ("power", "lock") else own.replace("_", " ").capitalize()
        for platform, describe_one in _SINGLE.items():
            if (fields := describe_one(device, key)) is not None:
                yield own if key.startswith("custom.") else key, {"platform": platform, "name": name, **fields}
                break
