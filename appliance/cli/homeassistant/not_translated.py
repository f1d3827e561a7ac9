"""The reasons why parts of the configuration are not translated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.cli.homeassistant.values import as_list, is_template
from appliance.cli.homeassistant.yaml_parser import Tagged

WITHOUT_COUNTERPART: Mapping[str, str] = {
    **dict.fromkeys(["assist_satellite", "conversation", "tts"], "Lares has no voice assistant"),
    **dict.fromkeys(["shell_command", "python_script"], "Lares does not run other programs"),
    "rest_command": "the import does not support web requests; use a `notify` section or an adapter kind in Lua",
    **dict.fromkeys(["todo", "shopping_list"], "Lares has no to-do lists"),
    **dict.fromkeys(["camera", "image", "image_processing"], "Lares has no cameras"),
    **dict.fromkeys(["recorder", "update", "backup", "hassio"], "Lares does this automatically"),
    "automation": "an automation cannot switch another automation on or off; instead, use a variable and a condition",
    "calendar": "Lares has no calendars",
    "event": "Lares has no custom events; instead, use device_event, a hook, or a timer",
    "geo_location": "Lares has no geolocation",
    "persistent_notification": "Lares does not store notifications",
    "tag": "Lares has no tags; instead, call a hook from the program that reads the tag",
    "timer": "Lua cannot read a timer; instead, set a variable when you start the timer",
    "weather": "Lares has no forecasts",
}
"""Reasons why triggers, conditions, and actions cannot be translated, by the first part of the name."""


MISSING_BLUEPRINT = "the blueprint is not in this folder; in Home Assistant, choose 'Take control' first"


class NotTranslated(Exception):
    """Raised if a part cannot be translated. The message contains the reason."""


class TooLarge(Exception):
    """Raised if a file, or the whole import, would become too large. The import then omits the whole file."""


class Disabled(NotTranslated):
    """Raised if a part is disabled. Home Assistant ignores a disabled trigger, condition, or action."""


class ImpossibleState(NotTranslated):
    """Raised if an attribute never has the compared value."""


def check_part(value: Mapping[str, Any]) -> None:
    """Raise `Disabled` if a trigger or condition is disabled, and `NotTranslated` if it contains a secret."""
    if str(value.get("enabled", True)).strip().lower() in ("false", "no", "off"):
        raise Disabled("this part is disabled")
    if is_template(value.get("enabled")):
        raise NotTranslated("the key `enabled` is a template")
    for each in (each for row in value.values() for each in as_list(row)):
        if isinstance(each, Tagged):
            raise NotTranslated(f"the YAML tag {each.tag} is not supported; instead, write the value")
