"""Conditions of Home Assistant: as a condition of Lares if possible, otherwise as a Lua expression.

Condition types and their fields are those of Home Assistant's documentation of conditions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from msgspec import Struct

from appliance.cli.homeassistant import templates
from appliance.cli.homeassistant.entities import Comparison, Entities, NotTranslated, Target, Variable
from appliance.cli.homeassistant.lua import literal, negated
from appliance.cli.homeassistant.source import as_list, is_template, words
from appliance.cli.homeassistant.templates import Scope

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

SECONDS: Mapping[str, float] = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1, "milliseconds": 0.001}
"""Seconds of each unit of a duration."""

CONDITION_STATES: Mapping[str, str] = {
    **dict.fromkeys(
        ["is_on", "is_open", "is_motion", "is_occupied", "is_moist", "is_smoke", "is_problem", "is_present"], "on"
    ),
    **dict.fromkeys(
        [
            "is_off",
            "is_closed",
            "is_not_open",
            "is_no_motion",
            "is_not_occupied",
            "is_not_moist",
            "is_no_smoke",
            "is_no_problem",
        ],
        "off",
    ),
    "is_locked": "locked",
    "is_unlocked": "unlocked",
    "is_home": "home",
    "is_not_home": "not_home",
}
"""States that a device condition's type asks for. Covers use the words open and closed."""


class Declared(Struct, frozen=True):
    """A condition that Lares can declare. `lua` is the same as an expression, None if Lua cannot compute it."""

    table: Mapping[str, Any]
    lua: str | None


class Computed(Struct, frozen=True):
    """A condition that only Lua can compute."""

    lua: str


def translate_list(value: Any, scope: Scope) -> list[Declared | Computed]:
    """Translate conditions that must all hold. Raises `NotTranslated` if one of them cannot be translated."""
    return [translate(each, scope) for each in as_list(value)]


def translate(value: Any, scope: Scope) -> Declared | Computed:
    """Translate one condition. Raises `NotTranslated` with the reason."""
    if isinstance(value, bool):
        return Computed(literal(value))
    if is_template(value):
        return Computed(templates.condition(value, scope))
    if not isinstance(value, Mapping):
        _unknown(value)
    if value.get("enabled") is False:
        raise NotTranslated("it is disabled")
    kind = next((each for each in ("and", "or", "not") if each in value), str(value.get("condition", "")))
    methods: Mapping[str, Callable[[Mapping[str, Any], Scope], Declared | Computed]] = {
        "state": _state,
        "numeric_state": _numeric_state,
        "time": _time,
        "sun": _sun,
        "zone": _zone,
        "trigger": _trigger,
        "device": _device,
        "template": lambda each, scope: Computed(templates.condition(str(each.get("value_template", "")), scope)),
        **{each: partial(_combine, each) for each in ("and", "or", "not")},
    }
    if kind not in methods and kind.partition(".")[2] in CONDITION_STATES:
        return _by_name(value, scope)
    if kind not in methods:
        _unknown(value)
    return methods[kind](value, scope)


def in_lua(value: Any, scope: Scope) -> str:
    """Return the Lua expression of conditions that must all hold. Raises `NotTranslated`."""
    made = []
    for each in translate_list(value, scope):
        if each.lua is None:
            raise NotTranslated("a condition of this type is possible only at the top of an automation")
        made.append(each.lua)
    return " and ".join(made) or "true"


def seconds(value: Any) -> float:
    """Return a duration: HH:MM:SS, seconds, or a mapping. Raises `NotTranslated` for a template."""
    if isinstance(value, Mapping):
        try:
            return sum(float(each) * SECONDS[str(unit)] for unit, each in value.items())
        except (KeyError, TypeError, ValueError):
            raise NotTranslated("a duration that is computed is not translated") from None
    if isinstance(value, bool) or value is None:
        raise NotTranslated("the duration is missing")
    if isinstance(value, int | float):
        return float(value)
    if found := re.fullmatch(r"\s*([+-]?)(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d+)?))?\s*", str(value)):
        sign = -1 if found[1] == "-" else 1
        return sign * (int(found[2]) * 3600 + int(found[3]) * 60 + float(found[4] or 0))
    try:
        return float(value)
    except ValueError:
        raise NotTranslated("a duration that is computed is not translated") from None


def whole(secs: float) -> int | float:
    return int(secs) if float(secs).is_integer() else secs


def time_of_day(value: Any) -> str:
    """Return a time of day as HH:MM:SS. Raises `NotTranslated` for the time of a helper or sensor."""
    if isinstance(value, int):
        value = f"{value // 3600:02}:{value // 60 % 60:02}:{value % 60:02}"
    if not re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", str(value)):
        raise NotTranslated(f"the time of {value} is not translated; write a time of day")
    return templates.full_time(value)


def weekdays(value: Any) -> list[str]:
    found = [each.lower()[:3] for each in words(value)]
    if not set(found) <= set(WEEKDAYS):
        raise NotTranslated(f"the weekdays {', '.join(found)} are not known")
    return found


def table_of(test: Comparison, for_secs: float = 0) -> dict[str, Any]:
    """Return the condition of Lares for one comparison."""
    target = test.target
    if isinstance(target, Variable):
        if for_secs:
            raise NotTranslated("a variable has no duration in a condition")
        return {"type": "variable", "name": target.name, test.test: test.value}
    row = {
        "type": "device_state",
        "device_id": target.device_id,
        "attribute": target.attribute,
        test.test: test.value,
    }
    return {**row, "for_secs": whole(for_secs)} if for_secs else row


def _unknown(value: Any) -> NoReturn:
    name = value.get("condition") if isinstance(value, Mapping) else value
    raise NotTranslated(f"the condition {name} is not translated")


def _combine(kind: str, value: Mapping[str, Any], scope: Scope) -> Declared | Computed:
    parts = translate_list(value.get(kind, value.get("conditions")), scope)
    joint = {"and": " and ", "or": " or ", "not": " or "}[kind]
    lua = None
    if all(each.lua is not None for each in parts):
        lua = joint.join(f"({each.lua})" for each in parts) or "true"
        lua = negated(lua) if kind == "not" else f"({lua})"
    tables = [each.table for each in parts if isinstance(each, Declared)]
    if len(tables) == len(parts) and parts:
        return Declared({"type": {"and": "all", "or": "any", "not": "none"}[kind], "conditions": tables}, lua)
    if lua is None:
        raise NotTranslated("these conditions cannot be combined in Lua")
    return Computed(lua)


def _all(parts: Sequence[Declared], *, is_any: bool = False) -> Declared:
    """Return conditions that must all hold, or any of them, as one."""
    if len(parts) == 1:
        return parts[0]
    lua = None
    if all(each.lua is not None for each in parts):
        lua = f"({(' or ' if is_any else ' and ').join(str(each.lua) for each in parts)})"
    return Declared({"type": "any" if is_any else "all", "conditions": [each.table for each in parts]}, lua)


def _none(part: Declared) -> Declared:
    return Declared({"type": "none", "conditions": [part.table]}, None if part.lua is None else negated(part.lua))


def _test(test: Comparison, for_secs: float = 0) -> Declared:
    return Declared(table_of(test, for_secs), None if for_secs else templates.comparison_in_lua(test))


def _state(value: Mapping[str, Any], scope: Scope) -> Declared:
    for_secs = seconds(value["for"]) if value.get("for") is not None else 0.0
    entities = []
    for entity_id in words(value.get("entity_id")):
        tests = [
            _state_test(scope.entities, entity_id, value.get("attribute"), each)
            for each in as_list(value.get("state"))
        ]
        entities.append(_all([_test(each, for_secs) for each in tests], is_any=True))
    if not entities:
        raise NotTranslated("the condition names no entity")
    return _all(entities, is_any=value.get("match") == "any")


def _state_test(entities: Entities, entity_id: str, attribute: str | None, state: Any) -> Comparison:
    if attribute is None:
        return entities.compare(entity_id, state)
    target = entities.attribute(entity_id, attribute)
    if isinstance(state, int | float) and not isinstance(state, bool):
        state = round(state * target.factor, 3)
    return Comparison(target, "equals", state)


def numeric_tests(entities: Entities, value: Mapping[str, Any]) -> Iterable[list[Comparison]]:
    """Yield the limits of a numeric state for each entity."""
    if value.get("value_template") is not None:
        raise NotTranslated("a value_template is not translated")
    for entity_id in words(value.get("entity_id")):
        attribute = value.get("attribute")
        target = entities.attribute(entity_id, attribute) if attribute else entities.target(entity_id)
        factor = target.factor if isinstance(target, Target) else 1
        limits = []
        for word in ("above", "below"):
            if (limit := value.get(word)) is None:
                continue
            if isinstance(limit, bool) or not isinstance(limit, int | float):
                try:
                    limit = float(limit)
                except (TypeError, ValueError):
                    raise NotTranslated(f"the limit {limit} is another entity's state") from None
            limits.append(Comparison(target, word, whole(round(limit * factor, 3))))
        yield limits


def _numeric_state(value: Mapping[str, Any], scope: Scope) -> Declared:
    found = []
    for limits in numeric_tests(scope.entities, value):
        table: dict[str, Any] = {}
        for each in limits:
            table |= table_of(each)
        found.append(Declared(table, " and ".join(map(templates.comparison_in_lua, limits)) or None))
    if not found or not all(each.table for each in found):
        raise NotTranslated("the condition has no limit or names no entity")
    return _all(found)


def _time(value: Mapping[str, Any], scope: Scope) -> Declared:
    parts = []
    if value.get("after") is not None or value.get("before") is not None:
        after = time_of_day(value["after"]) if value.get("after") is not None else "00:00:00"
        before = time_of_day(value["before"]) if value.get("before") is not None else "00:00:00"
        if after != before:
            lua = f'ha.is_between("{after}", "{before}")'
            parts.append(Declared({"type": "time_window", "start": after[:5], "end": before[:5]}, lua))
    if value.get("weekday") is not None:
        days = weekdays(value["weekday"])
        parts.append(Declared({"type": "weekday", "days": days}, f"ha.is_day({literal(days)})"))
    if not parts:
        raise NotTranslated("the condition names no time")
    return _all(parts)


def _sun(value: Mapping[str, Any], scope: Scope) -> Declared:
    """Translate sun times. A single edge divides the local day in Home Assistant; in Lares, the condition holds until
    the other edge."""
    edges = {word: value[word] for word in ("after", "before") if value.get(word) is not None}
    offsets = {f"{word}_offset_mins": _minutes(value.get(f"{word}_offset")) for word in edges}
    offsets = {word: each for word, each in offsets.items() if each}
    row = {"type": "sun_position", **edges, **offsets}
    if set(edges.items()) in (
        {("after", "sunset"), ("before", "sunrise")},
        {("after", "sunrise"), ("before", "sunset")},
    ):
        return Declared(row, None)
    parts = []
    for word, event in edges.items():
        one = {key: each for key, each in row.items() if key == "type" or key.startswith(word)}
        is_evening = event == "sunset"
        half = {
            "type": "time_window",
            **({"start": "12:00", "end": "00:00"} if is_evening else {"start": "00:00", "end": "12:00"}),
        }
        if (word == "after") == is_evening:
            parts.append(_all([Declared(one, None), Declared(half, None)]))
        else:
            other = {"after": "before", "before": "after"}[word]
            moved = {
                "type": "sun_position",
                other: event,
                **{f"{other}_offset_mins": each for each in offsets.values()},
            }
            parts.append(_none(_all([Declared(moved, None), Declared(half, None)])))
    if not parts:
        raise NotTranslated("the condition names neither sunrise nor sunset")
    return _all(parts)


def _minutes(value: Any) -> int:
    return round(seconds(value) / 60) if value is not None else 0


def _zone(value: Mapping[str, Any], scope: Scope) -> Declared:
    zones = words(value.get("zone") or value.get("state"))
    found = []
    for entity_id in words(value.get("entity_id")):
        tests = [_test(zone_test(scope.entities, entity_id, zone)) for zone in zones]
        found.append(_all(tests, is_any=True))
    if not found or not zones:
        raise NotTranslated("the condition names no zone")
    return _all(found)


def zone_test(entities: Entities, entity_id: str, zone: str) -> Comparison:
    """Return the test that a person is in a zone."""
    name = zone.removeprefix("zone.")
    return entities.compare(entity_id, "home" if name == "home" else entities.installation.zones.get(name, name))


def _trigger(value: Mapping[str, Any], scope: Scope) -> Computed:
    ids = [str(each) for each in as_list(value.get("id"))]
    tests = [f"event.trigger_id == {literal(each)}" for each in ids]
    return Computed(tests[0] if len(tests) == 1 else f"({' or '.join(tests) or 'false'})")


def _by_name(value: Mapping[str, Any], scope: Scope) -> Declared:
    """Translate a condition that is named after the state of its target, such as `light.is_on`."""
    domain, _, verb = str(value["condition"]).partition(".")
    state = CONDITION_STATES[verb]
    if domain == "cover":
        state = {"on": "open", "off": "closed"}.get(state, state)
    options, target = value.get("options"), value.get("target")
    behavior = options.get("behavior") if isinstance(options, Mapping) else None
    tests = [_test(scope.entities.compare(each, state)) for each in scope.entities.targeted(domain, target)]
    if not tests:
        raise NotTranslated("the condition names no entity")
    return _all(tests, is_any=behavior != "all")


def _device(value: Mapping[str, Any], scope: Scope) -> Declared:
    entity = scope.entities.entity(str(value.get("entity_id", "")))
    kind = str(value.get("type", ""))
    for_secs = seconds(value["for"]) if value.get("for") is not None else 0.0
    if "above" in value or "below" in value:
        return _numeric_state({**value, "entity_id": entity.entity_id}, scope)
    if kind not in CONDITION_STATES:
        raise NotTranslated(f"the device condition {kind or value.get('domain')} is not translated")
    state = CONDITION_STATES[kind]
    if entity.domain == "cover":
        state = {"on": "open", "off": "closed"}[state]
    return _test(scope.entities.compare(entity.entity_id, state), for_secs)
