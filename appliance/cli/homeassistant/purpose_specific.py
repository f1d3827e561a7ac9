"""Purpose-specific triggers and conditions, which are named after an event or state: `door.opened`, `light.is_on`.

Names, options, and thresholds follow Home Assistant's documentation of triggers and conditions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from appliance.cli.homeassistant.entities import NAMED_CLASSES, Comparison, Entities, Target
from appliance.cli.homeassistant.not_translated import NotTranslated
from appliance.cli.homeassistant.states import STATES, word_for
from appliance.cli.homeassistant.values import as_mapping

ACTIONS: Mapping[str, str] = {
    f"{start}_{verb}": verb for verb in ("heating", "cooling", "drying") for start in ("started", "is")
}
"""Values of `hvac_action` by the second part of the name."""

MEASURED: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("crossed_threshold", "changed", "is_value", "level_crossed_threshold", "is_level"), ("", "")),
    **dict.fromkeys(("level_changed", "level_crossed"), ("", "")),
    **dict.fromkeys(("brightness_crossed_threshold", "brightness_changed", "is_brightness"), ("light", "brightness")),
    **dict.fromkeys(
        ("target_temperature_crossed_threshold", "target_temperature_changed", "is_target_temperature"),
        ("climate", "temperature"),
    ),
}
"""The domain and attribute of the compared number, by the second part of the name. Domain and attribute are empty
if the number is a sensor's state."""

CLIMATE = {"temperature": "current_temperature", "humidity": "current_humidity"}
"""Attributes of climate devices by the equivalent sensor class."""

SHADES = re.compile(r"(?:awning|blind|curtain|shade|shutter)_(opened|closed|is_open|is_closed)")


class Named(Struct, frozen=True, kw_only=True):
    """The meaning of a name: a state, an attribute's value or, if `is_measured` is true, a measured number."""

    domain: str
    state: str | None = None
    attribute: str | None = None
    is_measured: bool = False


def parse(kind: str) -> Named | None:
    """Return the meaning of a name, or None if it is unknown."""
    domain, _, verb = kind.partition(".")
    if domain == "cover" and (shade := SHADES.fullmatch(verb)):
        return Named(domain=domain, state=STATES[shade[1]])
    if domain == "climate" and verb in ACTIONS:
        return Named(domain=domain, state=ACTIONS[verb], attribute="hvac_action")
    if domain == "air_quality" and verb.removeprefix("is_").startswith("smoke_"):
        return Named(domain="smoke", state=STATES[verb])
    if verb in MEASURED and MEASURED[verb][0] in ("", domain) and (domain in NAMED_CLASSES or MEASURED[verb][0]):
        return Named(domain=domain, attribute=MEASURED[verb][1] or None, is_measured=True)
    if verb in STATES and domain not in ("button", "climate", "schedule", "valve", "vacuum"):
        return Named(domain=domain, state=STATES[verb])
    return None


def options_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options. In older releases of Home Assistant, the options are not in a separate mapping."""
    options = value.get("options")
    return {**value, **options} if isinstance(options, Mapping) else value


def entities_of(named: Named, value: Mapping[str, Any], entities: Entities) -> list[str]:
    """Return the entities in the target. Raise `NotTranslated` if the target contains no known entity."""
    found = entities.targeted(named.domain, value.get("target"))
    if named.is_measured and named.domain == "battery":
        found = [each for each in found if each.startswith("sensor.")]
    if not found:
        raise NotTranslated("the target contains no known entity")
    return found


def state_test(named: Named, entity_id: str, entities: Entities) -> Comparison:
    if named.attribute:
        return Comparison(entities.attribute(entity_id, named.attribute), "equals", named.state)
    return entities.compare(entity_id, word_for(named.state or "", entity_id.partition(".")[0]))


def measured(named: Named, entity_id: str) -> str | None:
    """Return the attribute with the compared number, or None if the entity's state is compared."""
    if named.attribute is None and entity_id.startswith("climate."):
        return CLIMATE.get(named.domain)
    return named.attribute


def ranges(options: Mapping[str, Any], target: Target, entities: Entities) -> list[dict[str, Any]]:
    """Return the ranges of a threshold. The number must be in one of these ranges. A limit can be an entity id."""
    row = as_mapping(options.get("threshold"))
    kind = row.get("type")
    keys = {"above": ("value", ""), "below": ("", "value"), "between": ("value_min", "value_max")}
    if kind == "outside":
        return [
            {"below": _limit(row, "value_min", target, entities)},
            {"above": _limit(row, "value_max", target, entities)},
        ]
    if kind not in keys:
        raise NotTranslated("the threshold is unknown")
    low, high = keys[kind]
    limits = {"above": low, "below": high}
    return [{word: _limit(row, key, target, entities) for word, key in limits.items() if key}]


def _limit(row: Mapping[str, Any], key: str, target: Target, entities: Entities) -> Any:
    value = row.get(key)
    if not isinstance(value, Mapping):
        return value
    choice = value.get("active_choice")
    if value.get("entity") is not None and choice != "number":
        return value["entity"]
    number, unit = value.get("number"), value.get("unit_of_measurement")
    if unit == "°F" and entities.installation.is_metric and isinstance(number, int | float):
        return round((number - 32) / 1.8, 2)
    if unit == "°C" and not entities.installation.is_metric and isinstance(number, int | float):
        return round(number * 1.8 + 32, 2)
    # options are in percent; the state's brightness is 0 to 255
    return number / target.factor if target.attribute == "brightness" and isinstance(number, int | float) else number
