"""Translates conditions of Home Assistant to conditions of Lares if possible, otherwise to Lua expressions.

Condition types and fields follow Home Assistant's documentation of conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

from msgspec import Struct, structs

from appliance.cli.homeassistant import purpose_specific, templates
from appliance.cli.homeassistant.entities import Comparison, Target
from appliance.cli.homeassistant.entity_values import comparison_in_lua, number_of, value_in_lua
from appliance.cli.homeassistant.hub_checks import check_condition
from appliance.cli.homeassistant.lua import literal, negated
from appliance.cli.homeassistant.not_translated import WITHOUT_COUNTERPART, Disabled, NotTranslated, check_part
from appliance.cli.homeassistant.scope import Scope
from appliance.cli.homeassistant.states import (
    CONDITION,
    limit_of,
    listed,
    numeric_tests,
    state_of,
    state_test,
    table_of,
    zone_test,
)
from appliance.cli.homeassistant.times import duration, offset_minutes, time_of_day, weekdays
from appliance.cli.homeassistant.values import as_list, is_template, shown, word_of, words


class Declared(Struct, frozen=True):
    """A condition that a Lares definition can declare. `lua` is the equivalent Lua expression, if any."""

    table: Mapping[str, Any]
    lua: str | None


class Computed(Struct, frozen=True):
    """A condition that only Lua code can check."""

    lua: str


def translate_list(value: Any, scope: Scope) -> list[Declared | Computed]:
    """Translate a list of conditions, without the disabled conditions. Raise `NotTranslated` if any condition cannot
    be translated."""
    made = []
    for each in as_list(value):
        with suppress(Disabled):
            made.append(translate(each, scope))
    return made


def translate(value: Any, scope: Scope) -> Declared | Computed:
    """Translate one condition. Raise `NotTranslated` with the reason if the condition cannot be translated."""
    made = _translate(value, scope)
    if isinstance(made, Declared):
        check_condition(made.table, scope.entities.locale)
    return made


def _translate(value: Any, scope: Scope) -> Declared | Computed:
    if isinstance(value, bool):
        return Computed(literal(value))
    if is_template(value):
        return Computed(templates.condition(value, scope))
    if not isinstance(value, Mapping):
        _unknown(value)
    check_part(value)
    kind = next((each for each in ("and", "or", "not") if each in value), str(value.get("condition", "")))
    if is_template(kind):
        return Computed(templates.condition(kind, scope))
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
    if kind not in methods and (meaning := purpose_specific.parse(kind)) is not None:
        return _by_name(meaning, value, scope)
    if kind not in methods:
        _unknown(value)
    return methods[kind](value, scope)


def in_lua(value: Any, scope: Scope) -> str:
    """Return a Lua expression for conditions that must all be true. Raise `NotTranslated` if any condition cannot
    be translated."""
    made = []
    for each in translate_list(value, scope):
        if each.lua is None:
            raise NotTranslated("this condition is possible only in an automation's list of conditions")
        made.append(each.lua)
    return made[0] if len(made) == 1 else " and ".join(f"({each})" for each in made) or "true"


def _unknown(value: Any) -> NoReturn:
    name = shown(value.get("condition") or "without a type" if isinstance(value, Mapping) else value)
    reason = f"the import does not support the condition {name}; instead, compare an attribute of the device"
    raise NotTranslated(WITHOUT_COUNTERPART.get(name.split(".")[0], reason))


def _combine(kind: str, value: Mapping[str, Any], scope: Scope) -> Declared | Computed:
    parts = translate_list(value.get(kind, value.get("conditions")), scope)
    lua = _joined_lua(parts, "and" if kind == "and" else "or")
    if lua is not None:
        lua = negated(lua) if kind == "not" else f"({lua})"
    tables = [each.table for each in parts if isinstance(each, Declared)]
    if len(tables) == len(parts) and parts:
        return Declared({"type": {"and": "all", "or": "any", "not": "none"}[kind], "conditions": tables}, lua)
    if lua is None:
        raise NotTranslated("these conditions cannot be combined in Lua")
    return Computed(lua)


def _all(parts: Sequence[Declared]) -> Declared:
    return _declare("all", "and", parts)


def _any(parts: Sequence[Declared]) -> Declared:
    return _declare("any", "or", parts)


def _declare(kind: str, operator: str, parts: Sequence[Declared]) -> Declared:
    """Join conditions to one condition of type `kind`. `operator` is the equivalent in Lua."""
    if not parts:
        raise NotTranslated("the condition has no value to compare")
    if len(parts) == 1:
        return parts[0]
    return Declared({"type": kind, "conditions": [each.table for each in parts]}, _joined_lua(parts, operator))


def _join(parts: Sequence[Declared | Computed], *, is_any: bool) -> Declared | Computed:
    """Join conditions. If one of them is only possible in Lua, join all of them in Lua."""
    declared = [each for each in parts if isinstance(each, Declared)]
    if len(declared) == len(parts):
        return _any(declared) if is_any else _all(declared)
    lua = _joined_lua(parts, "or" if is_any else "and")
    if lua is None:
        raise NotTranslated("these conditions cannot be combined in Lua")
    return Computed(lua)


def _joined_lua(parts: Sequence[Declared | Computed], operator: str) -> str | None:
    """Join the Lua expressions. Return None if a condition has no Lua expression."""
    if any(each.lua is None for each in parts):
        return None
    return f" {operator} ".join(f"({each.lua})" for each in parts) or "true"


def _none(part: Declared) -> Declared:
    return Declared({"type": "none", "conditions": [part.table]}, None if part.lua is None else negated(part.lua))


def _test(test: Comparison, for_secs: float = 0) -> Declared:
    return Declared(table_of(CONDITION, test, for_secs), None if for_secs else comparison_in_lua(test))


def _state(value: Mapping[str, Any], scope: Scope) -> Declared | Computed:
    if "sun.sun" in words(value.get("entity_id")):
        return _of_sun(value, scope)
    for_secs = duration(value)
    entities = []
    if value.get("attribute") is None and any(str(each).startswith("input_") for each in as_list(value.get("state"))):
        return _same_as_helper(value, scope)
    for entity_id in words(value.get("entity_id")):
        if entity_id in scope.entities.installation.schedules:
            entities.append(_scheduled(scope.entities.schedule(entity_id), value.get("state")))
            continue
        if entity_id in scope.entities.installation.groups:
            entities.append(_of_group(entity_id, value.get("state"), for_secs, scope))
            continue
        tests = scope.entities.possible(
            partial(state_test, scope.entities, entity_id, value.get("attribute"), each)
            for each in listed(value.get("state"))
        )
        entities.append(_any([_test(each, for_secs) for each in tests]))
    if not entities:
        raise NotTranslated("the condition names no entity")
    return _any(entities) if value.get("match") == "any" else _all(entities)


def _same_as_helper(value: Mapping[str, Any], scope: Scope) -> Computed:
    """Translate a comparison of a state with a helper's state."""
    tests = []
    for entity_id in words(value.get("entity_id")):
        shown = value_in_lua(scope.entities.target(entity_id))
        helpers = [value_in_lua(scope.entities.target(str(each))) for each in as_list(value.get("state"))]
        tests.append(" or ".join(f"{shown} == {each}" for each in helpers))
    return Computed(" and ".join(f"({each})" for each in tests))


def _of_group(entity_id: str, state: Any, for_secs: float, scope: Scope) -> Declared:
    """Translate a group's state."""
    members = list(scope.entities.members([entity_id]))
    word = word_of(state)
    if word not in ("on", "off", "home", "not_home"):
        raise NotTranslated(f"the import does not support the state {word} of a group")
    tests = [_test(scope.entities.compare(each, word), for_secs) for each in members]
    return _any(tests) if scope.entities.is_any(entity_id, word) else _all(tests)


def _scheduled(blocks: Sequence[tuple[str, str, str]], state: Any) -> Declared:
    """Translate a schedule's state. A schedule is on during its blocks."""
    rows = []
    for day, start, end in blocks:
        at, until = time_of_day(start), time_of_day("00:00:00" if end.startswith("24") else end)
        window = {"type": "time_window", "start": at[:5], "end": until[:5]}
        rows.append(
            _all(
                [
                    Declared({"type": "weekday", "days": [day]}, f"ha.is_day({literal([day])})"),
                    Declared(window, f'ha.is_between("{at}", "{until}")'),
                ]
            )
        )
    if not rows:
        raise NotTranslated("the schedule has no times")
    return _any(rows) if state in ("on", True) else _none(_any(rows))


def _of_sun(value: Mapping[str, Any], scope: Scope) -> Declared:
    """Translate the state of `sun.sun`: above or below the horizon."""
    edges = {"above_horizon": ("sunrise", "sunset"), "below_horizon": ("sunset", "sunrise")}.get(
        str(value.get("state"))
    )
    if edges is None or value.get("for") is not None:
        raise NotTranslated(
            "the import does not support this state of the sun; instead, use the condition sun_position"
        )
    return _sun({"after": edges[0], "before": edges[1]}, scope)


def _numeric_state(value: Mapping[str, Any], scope: Scope) -> Declared | Computed:
    limits = [value[word] for word in ("above", "below") if value.get(word) is not None]
    ids = list(scope.entities.members(words(value.get("entity_id"))))
    if value.get("value_template") is not None or "sun.sun" in ids or any(limit_of(each) is None for each in limits):
        return _computed_number(value, ids, scope)
    found = []
    for _, limits in numeric_tests(scope.entities, value):
        table: dict[str, Any] = {}
        for each in limits:
            table |= table_of(CONDITION, each)
        found.append(Declared(table, " and ".join(map(comparison_in_lua, limits)) or None))
    if not found or not all(each.table for each in found):
        raise NotTranslated("the condition has no limit, or does not name an entity")
    return _all(found)


def _computed_number(value: Mapping[str, Any], ids: Sequence[str], scope: Scope) -> Computed:
    """Translate a numeric condition with a computed value, with limits from other entities, or with the sun's
    elevation."""
    tests = []
    for entity_id in ids:
        shown = number_of(scope.entities, entity_id, value.get("attribute"))
        if (text := value.get("value_template")) is not None:
            shown = templates.expression(text, structs.replace(scope, state_entity=entity_id))
        for word in ("above", "below"):
            if (limit := value.get(word)) is not None:
                number = limit_of(limit)
                other = number_of(scope.entities, str(limit), None) if number is None else literal(number)
                tests.append(f"ha.is_{word}({shown}, {other})")
    if not tests:
        raise NotTranslated("the condition has no limit, or does not name an entity")
    return Computed(" and ".join(tests))


def _time(value: Mapping[str, Any], scope: Scope) -> Declared | Computed:
    parts: list[Declared | Computed] = []
    if value.get("after") is not None or value.get("before") is not None:
        after, before = (_edge(value.get(each), scope) for each in ("after", "before"))
        lua = f"ha.is_between({after.lua}, {before.lua})"
        if after.time is None or before.time is None:
            parts.append(Computed(lua))
        elif after.time != before.time:
            window = {"type": "time_window", "start": after.time[:5], "end": before.time[:5]}
            parts.append(Declared(window, lua))
    if value.get("weekday") is not None:
        days = weekdays(value["weekday"])
        parts.append(Declared({"type": "weekday", "days": days}, f"ha.is_day({literal(days)})"))
    if not parts:
        raise NotTranslated("the condition names no time")
    return _join(parts, is_any=False)


class _Edge(Struct, frozen=True):
    """The start or end of a time window. `time` is None if only Lua can compute the time."""

    lua: str
    time: str | None = None


def _edge(value: Any, scope: Scope) -> _Edge:
    if value is None:
        return _Edge('"00:00:00"', "00:00:00")
    if str(value).startswith("input_datetime."):
        return _Edge(value_in_lua(scope.entities.target(str(value))))
    time = time_of_day(value)
    return _Edge(f'"{time}"', time)


def _sun(value: Mapping[str, Any], scope: Scope) -> Declared:
    """Translate a condition on sunrise and sunset.

    In Home Assistant, a condition with only one edge begins or ends at midnight. In Lares, the missing edge is the
    opposite event of the sun.
    """
    edges = {word: value[word] for word in ("after", "before") if value.get(word) is not None}
    offsets = {f"{word}_offset_mins": offset_minutes(value.get(f"{word}_offset")) for word in edges}
    offsets = {word: each for word, each in offsets.items() if each}
    row = {"type": "sun_position", **edges, **offsets}
    lua = _sun_in_lua(edges, offsets, scope)
    if set(edges.items()) in (
        {("after", "sunset"), ("before", "sunrise")},
        {("after", "sunrise"), ("before", "sunset")},
    ):
        return Declared(row, lua)
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
    return Declared(_all(parts).table, lua)


def _sun_in_lua(edges: Mapping[str, Any], offsets: Mapping[str, int], scope: Scope) -> str | None:
    """Return a Lua condition on the sun's elevation, or None if the home has no coordinates."""
    if not scope.entities.installation.locale.keys() >= {"latitude", "longitude"}:
        return None
    tests = []
    for word, event in edges.items():
        dark = f"ha.is_dark({-60 * offsets.get(f'{word}_offset_mins', 0)})"
        half = 'ha.is_between("12:00", "00:00")' if event == "sunset" else 'ha.is_between("00:00", "12:00")'
        is_dark = (event == "sunset") == (word == "after")
        tests.append(f"({half} and {dark})" if is_dark else f"not ({half} and {dark})")
    around_midnight = edges.get("after") == "sunset" and edges.get("before") == "sunrise"
    return (" or " if around_midnight else " and ").join(tests)


def _zone(value: Mapping[str, Any], scope: Scope) -> Declared:
    zones = words(value.get("zone") or value.get("state"))
    found = []
    for entity_id in words(value.get("entity_id")):
        tests = [_test(zone_test(scope.entities, entity_id, zone)) for zone in zones]
        found.append(_any(tests))
    if not found or not zones:
        raise NotTranslated("the condition lacks a zone or an entity_id")
    return _all(found)


def _trigger(value: Mapping[str, Any], scope: Scope) -> Computed:
    ids = [str(each) for each in as_list(value.get("id"))]
    tests = [f"event.trigger_id == {literal(each)}" for each in ids]
    return Computed(tests[0] if len(tests) == 1 else f"({' or '.join(tests) or 'false'})")


def _by_name(meaning: purpose_specific.Named, value: Mapping[str, Any], scope: Scope) -> Declared | Computed:
    """Translate a condition, such as `light.is_on`, whose name contains a state of the target."""
    options, entities = purpose_specific.options_of(value), scope.entities
    for_secs = duration(options)
    made: list[Declared | Computed] = []
    for entity_id in purpose_specific.entities_of(meaning, value, entities):
        if not meaning.is_measured:
            made.append(_test(purpose_specific.state_test(meaning, entity_id, entities), for_secs))
            continue
        attribute = purpose_specific.measured(meaning, entity_id)
        target = entities.target(entity_id, attribute)
        assert isinstance(target, Target)
        rows = [
            {"entity_id": entity_id, "attribute": attribute, **each}
            for each in purpose_specific.ranges(options, target, entities)
        ]
        made += [_numeric_state(row, scope) for row in rows]
    return _join(made, is_any=options.get("behavior") != "all")


def _device(value: Mapping[str, Any], scope: Scope) -> Declared | Computed:
    entity = scope.entities.entity(str(value.get("entity_id", "")))
    kind = str(value.get("type", ""))
    for_secs = duration(value)
    if "above" in value or "below" in value:
        return _numeric_state({**value, "entity_id": entity.entity_id}, scope)
    state = state_of(kind, entity.domain)
    if state is None:
        raise NotTranslated(f"the import does not support the device condition {kind or value.get('domain')}")
    return _test(scope.entities.compare(entity.entity_id, state), for_secs)
