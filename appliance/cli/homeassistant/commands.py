"""Translates services of devices to commands.

Services and fields follow Home Assistant's documentation of integrations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.cli.homeassistant.entities import Target, Variable
from appliance.cli.homeassistant.entity_values import number_in_lua
from appliance.cli.homeassistant.lua import Raw
from appliance.cli.homeassistant.not_translated import NotTranslated
from appliance.cli.homeassistant.scope import Scope
from appliance.cli.homeassistant.statements import lua_value
from appliance.cli.homeassistant.values import is_template, number, shown, word_of

VOLUME_STEP = 5

COLORS: Mapping[str, tuple[int, int, int]] = {
    "red": (255, 0, 0), "green": (0, 128, 0), "lime": (0, 255, 0), "blue": (0, 0, 255), "yellow": (255, 255, 0),
    "orange": (255, 165, 0), "purple": (128, 0, 128), "pink": (255, 192, 203), "magenta": (255, 0, 255),
    "cyan": (0, 255, 255), "turquoise": (64, 224, 208), "white": (255, 255, 255), "gold": (255, 215, 0),
    "violet": (238, 130, 238), "salmon": (250, 128, 114), "coral": (255, 127, 80), "navy": (0, 0, 128),
}  # fmt: skip

Command = tuple[str, str, Any]
"""A command's capability, action, and value. The value None means that the command has no value."""

SIMPLE: Mapping[str, Mapping[str, Command]] = {
    "lock": {"lock": ("lock", "lock", None), "unlock": ("lock", "unlock", None), "open": ("lock", "unlock", None)},
    "media_player": {
        "media_play": ("media_playback", "play", None),
        "media_pause": ("media_playback", "pause", None),
        "media_stop": ("media_playback", "stop", None),
        "media_next_track": ("media_playback", "next", None),
        "media_previous_track": ("media_playback", "previous", None),
        "volume_up": ("volume", "increase", VOLUME_STEP),
        "volume_down": ("volume", "decrease", VOLUME_STEP),
    },
    "climate": {"turn_off": ("hvac_mode", "set", "off"), "turn_on": ("hvac_mode", "set", "heat")},
}
"""Commands for services that take no data, by domain and service."""

POWER = {"turn_on": "on", "turn_off": "off", "toggle": "toggle"}
SWITCHED = frozenset({"light", "switch", "fan", "media_player"})

COLOR_FIELDS = ("color_temp_kelvin", "color_temp", "kelvin", "hs_color", "rgb_color", "xy_color", "color_name")

SETTERS: Mapping[str, Mapping[str, str]] = {
    "climate": {
        "hvac_mode": "hvac_mode",
        "preset_mode": "preset_mode",
        "fan_mode": "fan_mode",
        "swing_mode": "swing_mode",
    },
    "fan": {"percentage": "custom.mqtt.percentage", "preset_mode": "preset_mode"},
    "media_player": {"source": "media_source", "is_volume_muted": "muted"},
    "cover": {"position": "cover_position", "tilt_position": "cover_tilt"},
}
"""Maps a domain and a service field to the capability that the field sets."""

FIELDS = frozenset(
    {
        *("brightness", "brightness_pct", "brightness_step", "brightness_step_pct", "transition", "effect", "value"),
        *("color_temp", "color_temp_kelvin", "kelvin", "rgb_color", "hs_color", "xy_color", "color_name"),
        *("temperature", "volume_level", "option", "code", *(field for each in SETTERS.values() for field in each)),
    }
)
"""The fields of device services that the import translates."""

CUSTOM: Mapping[str, Mapping[str, tuple[str, Any]]] = {
    "button": {"press": ("press", None)},
    "number": {"set_value": ("set", "value")},
    "select": {"select_option": ("set", "option")},
    "text": {"set_value": ("set", "value")},
    "valve": {"open_valve": ("set", Raw('"open"')), "close_valve": ("set", Raw('"closed"'))},
    "siren": {"turn_on": ("set", Raw("true")), "turn_off": ("set", Raw("false"))},
    "alarm_control_panel": {
        "alarm_disarm": ("set", Raw('"disarmed"')),
        "alarm_arm_home": ("set", Raw('"armed_home"')),
        "alarm_arm_away": ("set", Raw('"armed_away"')),
        "alarm_arm_night": ("set", Raw('"armed_night"')),
        "alarm_arm_vacation": ("set", Raw('"armed_vacation"')),
    },
}
"""Actions on `custom` attributes. Each action is mapped to its value, or to the name of the field with the value."""


def commands_of(
    entity_id: str, domain: str, verb: str, data: Mapping[str, Any], scope: Scope
) -> list[tuple[Target, Command]]:
    """Return the commands of a service for one entity. Raise `NotTranslated` if the service has no counterpart."""
    if domain == "homeassistant":
        domain = entity_id.split(".", maxsplit=1)[0]
    if verb in CUSTOM.get(domain, {}):
        custom = scope.entities.custom(entity_id)
        action, source = CUSTOM[domain][verb]
        value = source if isinstance(source, Raw) or source is None else Raw(lua_value(data.get(source), scope))
        return [(custom, (custom.attribute, action, value))]
    target = scope.entities.target(entity_id)
    if isinstance(target, Variable):
        raise NotTranslated("a helper does not accept this command")
    found = _by_verb(target, domain, verb, data, scope)
    if domain == "media_player" and data.get("volume_level") is not None:
        found.append(("volume", "set", _scaled(data["volume_level"], 100, scope)))
    for field, capability in SETTERS.get(domain, {}).items():
        if data.get(field) is not None:
            made = number_value if field in ("percentage", "position", "tilt_position") else lua_value
            found.append((capability, "set", Raw(made(data[field], scope))))
    if not found:
        raise NotTranslated(f"the service {domain}.{verb} has no counterpart in Lares")
    return [(target, each) for each in found]


def _by_verb(target: Target, domain: str, verb: str, data: Mapping[str, Any], scope: Scope) -> list[Command]:
    """Return the commands for the service itself, without the commands for its optional fields."""
    if command := SIMPLE.get(domain, {}).get(verb):
        return [command]
    if verb in POWER and domain in SWITCHED:
        more = _light(target, data, scope) if domain == "light" and verb == "turn_on" else []
        return [("power", POWER[verb], None), *more]
    if domain == "cover":
        return _cover(target, verb)
    if domain == "climate" and verb == "set_temperature" and data.get("temperature") is not None:
        unit = "°C" if scope.entities.installation.is_metric else "°F"
        return [("target_temperature", "set", {"value": number_value(data["temperature"], scope), "unit": unit})]
    return []


def _cover(target: Target, verb: str) -> list[Command]:
    verbs = {"open_cover": "open", "close_cover": "close", "stop_cover": "stop"}
    if verb in verbs:
        return [(target.attribute, verbs[verb], None)]
    tilts = {"open_cover_tilt": "open", "close_cover_tilt": "close", "stop_cover_tilt": "stop"}
    if verb in tilts:
        return [("cover_tilt", tilts[verb], None)]
    if verb == "toggle":
        raise NotTranslated(
            "Lares cannot toggle a cover; instead, compare cover_position, then open or close the cover"
        )
    return []


def _light(target: Target, data: Mapping[str, Any], scope: Scope) -> list[Command]:
    found: list[Command] = []
    if data.get("brightness_pct") is not None:
        found.append(("brightness", "set", _scaled(data["brightness_pct"], 1, scope)))
    elif data.get("brightness") is not None:
        found.append(("brightness", "set", _scaled(data["brightness"], 100 / 255, scope)))
    for field, factor in (("brightness_step_pct", 1.0), ("brightness_step", 100 / 255)):
        step = data.get(field)
        if is_template(step):
            raise NotTranslated("the step is a template")
        if step:
            shown = number_in_lua(Target(target.device_id, "brightness", "light"), "0")
            found.append(("brightness", "set", Raw(f"ha.clamp({shown} + {round(float(step) * factor)}, 0, 100)")))
    found += _color(data, scope)
    if data.get("effect") is not None:
        found.append(("effect", "set", Raw(lua_value(data["effect"], scope))))
    return found


def _color(data: Mapping[str, Any], scope: Scope) -> list[Command]:
    found: list[Command] = []
    for field, unit in (("color_temp_kelvin", "kelvin"), ("kelvin", "kelvin"), ("color_temp", "mireds")):
        if data.get(field) is not None:
            found.append(("color_temperature", "set", {"value": number_value(data[field], scope), "unit": unit}))
    for field, capability, keys in (
        ("rgb_color", "color_rgb", ("r", "g", "b")),
        ("hs_color", "color_hs", ("hue", "saturation")),
        ("xy_color", "color_xy", ("x", "y")),
    ):
        if (values := data.get(field)) is None:
            continue
        if not isinstance(values, list) or len(values) != len(keys) or any(map(is_template, values)):
            raise NotTranslated("the colour is a template")
        if values:
            exact = [each if capability == "color_xy" else round(each) for each in values]
            found.append((capability, "set", dict(zip(keys, exact, strict=True))))
    if (color := data.get("color_name")) is not None:
        if color not in COLORS:
            raise NotTranslated(f"the colour {color} is unknown; instead, use color_rgb")
        found.append(("color_rgb", "set", dict(zip("rgb", COLORS[color], strict=True))))
    return found


def _scaled(value: Any, factor: float, scope: Scope) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return round(value * factor)
    made = number_value(value, scope)
    return Raw(f"ha.round({made})" if factor == 1 else f"ha.round(({made}) * {factor:g})")


def number_value(value: Any, scope: Scope) -> Raw:
    """Return a number or a template as Lua. Raise `NotTranslated` for any other value."""
    if not is_template(value) and type(number(value)) not in (int, float):
        raise NotTranslated(f"{shown(value)} is not a number")
    return Raw(lua_value(value, scope))


def service_for(entity_id: str, state: Any) -> tuple[str, dict[str, Any]]:
    """Return a service that sets an entity to a scene's state, and the data for the service. Raise `NotTranslated` if
    there is no such service."""
    row = dict(state) if isinstance(state, Mapping) else {"state": state}
    domain, shown = entity_id.partition(".")[0], row.pop("state", None)
    word = str(word_of(shown))
    if domain == "light" and word == "on":
        mode = {"color_temp": ("color_temp_kelvin", "color_temp"), "hs": ("hs_color",), "xy": ("xy_color",)}
        colors = mode.get(str(row.get("color_mode")), ("rgb_color",) if "color_mode" in row else COLOR_FIELDS)
        color = next((each for each in colors if row.get(each) is not None), None)
        keys = ("brightness", "effect", color)
        data = {str(key): row[key] for key in keys if key is not None and row.get(key) not in (None, "None", "none")}
        return "light.turn_on", data
    more = _only(row, *SCENE_FIELDS.get(domain, ()))
    if domain in {*SWITCHED, "input_boolean"} and word in ("on", "off"):
        return f"{domain}.turn_{word}", more if word == "on" else {}
    if domain == "climate":
        return "climate.set_temperature", {"hvac_mode": word, **more}
    position, tilt = (row.get(f"current_{each}", row.get(each)) for each in ("position", "tilt_position"))
    if domain == "cover" and (position is not None or tilt is not None):
        return "cover.set_cover_position", _only({"position": position, "tilt_position": tilt}, *SCENE_FIELDS[domain])
    fixed = {
        "cover": {"open": "open_cover", "closed": "close_cover"},
        "lock": {"locked": "lock", "unlocked": "unlock"},
        "media_player": {"playing": "media_play", "paused": "media_pause", "idle": "media_stop"},
    }
    if (verb := fixed.get(domain, {}).get(word)) is not None:
        return f"{domain}.{verb}", more
    set_ = {
        **dict.fromkeys(["input_number", "number", "input_text", "text"], ("set_value", "value")),
        **dict.fromkeys(["input_select", "select"], ("select_option", "option")),
        "input_datetime": ("set_datetime", "datetime"),
    }
    if domain in set_:
        verb, field = set_[domain]
        return f"{domain}.{verb}", {field: word}
    raise NotTranslated(f"Lares has no command that sets {entity_id} to {word}")


SCENE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "climate": ("temperature", "preset_mode", "fan_mode", "swing_mode"),
    "fan": ("percentage", "preset_mode"),
    "media_player": ("volume_level", "is_volume_muted", "source"),
    "cover": ("position", "tilt_position"),
}
"""The attributes that a scene sets, by domain. The other attributes in a scene describe the entity."""


def _only(row: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: row[key] for key in keys if row.get(key) is not None}
