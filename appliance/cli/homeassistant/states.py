"""States and comparisons of entities, for triggers and conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from appliance.cli.homeassistant.entities import Comparison, Entities, Target, Variable
from appliance.cli.homeassistant.not_translated import NotTranslated
from appliance.cli.homeassistant.times import whole
from appliance.cli.homeassistant.values import as_list, words

_EVENTS: Mapping[str, str] = {
    **dict.fromkeys(("turned_on", "opened", "became_low"), "on"),
    **dict.fromkeys(("turned_off", "not_opened", "no_longer_low"), "off"),
    "started_playing": "playing",
    "paused_playing": "paused",
    "stopped_playing": "idle",
    "entered_home": "home",
    "left_home": "not_home",
}
"""New states by trigger name, such as `light.turned_on`, or by type of a device trigger."""

_STATES: Mapping[str, str] = {
    **dict.fromkeys(("on", "open", "detected", "smoke_detected", "low"), "on"),
    **dict.fromkeys(("motion", "occupied", "moist", "smoke", "problem", "present"), "on"),
    **dict.fromkeys(("off", "closed", "not_open", "not_detected", "cleared", "smoke_cleared", "not_low"), "off"),
    **dict.fromkeys(("no_motion", "not_occupied", "not_moist", "no_smoke", "no_problem", "not_present"), "off"),
    **{word: word for word in ("locked", "unlocked", "jammed", "disarmed", "triggered")},
    **{word: word for word in ("armed_home", "armed_away", "armed_night", "armed_vacation")},
    **{word: word for word in ("playing", "paused", "home", "not_home")},
}
"""States by the name of a condition without `is_`, or by the type of a device trigger or condition."""

STATES: Mapping[str, str] = {**_EVENTS, **_STATES, **{f"is_{word}": state for word, state in _STATES.items()}}


class Form(Struct, frozen=True):
    """For a trigger or condition in Lares: its type for devices, its type for variables, and the name of its
    duration field."""

    of_device: str
    of_variable: str
    duration: str


CONDITION = Form("device_state", "variable", "for_secs")
TRIGGER = Form("device_state_change", "variable_change", "duration_secs")


GONE = frozenset({"unavailable", "unknown"})
"""States of an entity without a value. In Lares, the attribute keeps its last value, and `state` changes."""


def listed(states: Any) -> list[Any]:
    """Return the compared states. An unavailable device of Home Assistant is unavailable or offline in Lares."""
    found = as_list(states)
    return [*found, "offline"] if any(str(each) in GONE for each in found) else found


def state_of(word: str, domain: str) -> str | None:
    """Return the state that a word means for an entity of this domain, or None if the word is unknown."""
    state = STATES.get(word)
    return None if state is None else word_for(state, domain)


def word_for(state: str, domain: str) -> str:
    """Return the domain's word for a state. Covers use the words open and closed."""
    return {"on": "open", "off": "closed"}.get(state, state) if domain == "cover" else state


def table_of(form: Form, test: Comparison, for_secs: float = 0) -> dict[str, Any]:
    """Return the trigger or condition of Lares. Raise `NotTranslated` for a variable with a duration."""
    if for_secs and isinstance(test.target, Variable):
        raise NotTranslated("the state of a variable cannot have a duration; instead, use a timer")
    more = {form.duration: whole(for_secs)} if for_secs else {}
    return {**change_of(form, test.target), test.test: test.value, **more}


def change_of(form: Form, target: Target | Variable) -> dict[str, Any]:
    """Return the trigger or condition for any change of the value."""
    if isinstance(target, Variable):
        return {"type": form.of_variable, "name": target.name}
    return {"type": form.of_device, "device_id": target.device_id, "attribute": target.attribute}


def numeric_tests(entities: Entities, value: Mapping[str, Any]) -> Iterator[tuple[str, list[Comparison]]]:
    """Yield each entity of a numeric state with its comparisons."""
    for entity_id in entities.members(words(value.get("entity_id"))):
        attribute = value.get("attribute")
        target = entities.target(entity_id, attribute)
        factor = target.factor if isinstance(target, Target) else 1
        limits = [
            Comparison(target, word, whole(round(number * factor, 3)))
            for word in ("above", "below")
            if (number := limit_of(value.get(word))) is not None
        ]
        yield entity_id, limits


def limit_of(limit: Any) -> float | None:
    """Return a limit as a number, or None if it is missing or another entity's state."""
    try:
        return None if isinstance(limit, bool) else float(limit)
    except (TypeError, ValueError):
        return None


def state_test(entities: Entities, entity_id: str, attribute: str | None, state: Any) -> Comparison:
    if attribute is None:
        return entities.compare(entity_id, state)
    target = entities.attribute(entity_id, attribute)
    if isinstance(state, int | float) and not isinstance(state, bool):
        state = round(state * target.factor, 3)
    return Comparison(target, "equals", state)


def zone_test(entities: Entities, entity_id: str, zone: str) -> Comparison:
    """Return the test for the presence of a person in a zone."""
    name = zone.removeprefix("zone.")
    return entities.compare(entity_id, "home" if name == "home" else entities.installation.zones.get(name, name))
