"""Translates triggers of Home Assistant to triggers of Lares.

Trigger types and fields follow Home Assistant's documentation of triggers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from msgspec import Struct, structs

from appliance.adapters.mqtt.presses import press_name
from appliance.cli.homeassistant import purpose_specific, templates
from appliance.cli.homeassistant.entities import Comparison, Entities, Target, Variable
from appliance.cli.homeassistant.entity_values import comparison_in_lua
from appliance.cli.homeassistant.hub_checks import check_trigger
from appliance.cli.homeassistant.lua import literal
from appliance.cli.homeassistant.not_translated import WITHOUT_COUNTERPART, NotTranslated, check_part
from appliance.cli.homeassistant.states import (
    GONE,
    TRIGGER,
    change_of,
    limit_of,
    listed,
    numeric_tests,
    state_of,
    state_test,
    table_of,
    zone_test,
)
from appliance.cli.homeassistant.times import (
    WEEKDAYS,
    duration,
    offset_minutes,
    seconds,
    time_of_day,
    weekdays,
    whole,
)
from appliance.cli.homeassistant.values import as_list, as_mapping, shown, word_of, words

TWO_STATES = frozenset({"binary_sensor", "input_boolean", "light", "switch"})
"""Domains of entities with exactly the states on and off."""


class Trigger(Struct, frozen=True, kw_only=True):
    """A trigger in Lares. `guard` is an additional Lua condition on the event, or empty.

    `variables` contains templates by name; the automation sets these variables when the trigger fires.
    """

    table: Mapping[str, Any]
    guard: str = ""
    id: str | None = None
    entities: tuple[str, ...] = ()
    variables: Mapping[str, Any] = {}


def split(value: Any) -> list[Any]:
    """Return one trigger for each of the trigger's entities, times, and events, so that only some of them can be
    refused."""
    key = next((each for each in ("entity_id", "at", "event_type") if each in as_mapping(value)), None)
    if key is None or isinstance(value[key], Mapping):
        return [value]
    rows = as_list(value[key]) if key == "at" else words(value[key])
    return [{**value, key: each} for each in rows] or [value]


def translate(value: Any, entities: Entities) -> list[Trigger]:
    """Translate one trigger. Raise `NotTranslated` with the reason if the trigger cannot be translated."""
    if not isinstance(value, Mapping):
        raise NotTranslated("the trigger is not a YAML mapping")
    check_part(value)
    kind = str(value.get("trigger") or value.get("platform") or "")
    if "triggers" in value:
        return [each for row in as_list(value["triggers"]) for each in translate(row, entities)]
    method = {
        "state": _state,
        "numeric_state": _numeric_state,
        "time": _time,
        "time_pattern": _time_pattern,
        "sun": _sun,
        "zone": _zone,
        "homeassistant": _homeassistant,
        "webhook": _webhook,
        "mqtt": _mqtt,
        "event": _event,
        "template": _template,
        "device": _device,
    }.get(kind)
    if method is None and kind.split(".", maxsplit=1)[0] in ("timer", "schedule"):
        method = _helper
    if method is None and purpose_specific.parse(kind) is not None:
        method = _by_name
    if method is None:
        name = shown(value.get("trigger") or value.get("platform") or "without a type")
        reason = f"the import does not support the trigger {name}; instead, use an attribute or event of the device"
        raise NotTranslated(WITHOUT_COUNTERPART.get(kind.split(".", maxsplit=1)[0], reason))
    id_ = None if value.get("id") is None else str(value["id"])
    variables = as_mapping(value.get("variables"))
    found = [structs.replace(each, id=id_, variables=variables) for each in method(value, entities)]
    if not found:
        raise NotTranslated("the trigger names neither an entity nor a time")
    for each in found:
        check_trigger(each.table if id_ is None else {**each.table, "id": id_}, entities.locale)
    return found


def _state(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    for entity_id in words(value.get("entity_id")):
        if entity_id == "sun.sun" or entity_id.split(".")[0] in ("timer", "schedule"):
            yield from _helper({**value, "entity_id": entity_id, "trigger": entity_id}, entities)
        elif entity_id in entities.installation.groups:
            raise NotTranslated(
                "a trigger cannot use the state of a group; instead, use the states of the group's members"
            )
        elif set(map(str, as_list(value.get("from")))) & GONE:
            yield _returned(value, entities, entity_id)
        else:
            yield from _state_of(value, entities, entity_id)


def _state_of(value: Mapping[str, Any], entities: Entities, entity_id: str) -> Iterator[Trigger]:
    for_secs, attribute = duration(value), value.get("attribute")
    target, test_of = entities.target(entity_id, attribute), partial(state_test, entities, entity_id, attribute)
    states = [each for each in listed(value.get("to")) if each is not None]
    before = [test_of(each) for each in as_list(value.get("from"))]
    is_implied = len(states) == len(before) == 1 and target.domain in TWO_STATES and not attribute
    guard = partial(_guard, value, [] if is_implied else before, test_of)
    for watched in [] if states else _watched(target, before, attribute):
        table = change_of(TRIGGER, watched)
        if for_secs and isinstance(watched, Target):
            table["debounce_secs"] = whole(for_secs)
        yield Trigger(table=table, guard=guard(watched), entities=(entity_id,))
    for test in entities.possible(partial(test_of, each) for each in states):
        yield Trigger(table=table_of(TRIGGER, test, for_secs), guard=guard(test.target), entities=(entity_id,))


def _watched(target: Target | Variable, before: list[Comparison], attribute: str | None) -> list[Target | Variable]:
    """Return the attributes or the variable whose changes fire the trigger."""
    if before:
        return list(dict.fromkeys(each.target for each in before))
    if isinstance(target, Target) and target.domain == "media_player" and not attribute:
        return [target, Target(target.device_id, "media_playback", target.domain)]
    return [target]


def _guard(
    value: Mapping[str, Any],
    before: list[Comparison],
    test_of: Callable[[Any], Comparison],
    target: Target | Variable,
) -> str:
    """Return the Lua condition for `from`, `not_from`, and `not_to` if the trigger watches this target."""
    own = [each for each in before if each.target == target]
    if before and not own:
        raise NotTranslated("in Lares, the states in `from` and `to` belong to different attributes")
    guards = [_any_holds("event.previous_value", own)] if own else []
    for name, field in (("not_from", "event.previous_value"), ("not_to", "event.value")):
        tests = [test_of(each) for each in as_list(value.get(name)) if each is not None and each not in GONE]
        same = [each for each in tests if each.target == target]
        guards += [f"not ({_any_holds(field, same)})"] if same else []
    return " and ".join(guards)


def _any_holds(field: str, tests: list[Comparison]) -> str:
    made = [
        f"{field} == {literal(each.value)}"
        if each.test == "equals"
        else f"ha.is_{each.test}({field}, {literal(each.value)})"
        for each in tests
    ]
    return made[0] if len(made) == 1 else f"({' or '.join(made)})"


def _returned(value: Mapping[str, Any], entities: Entities, entity_id: str) -> Trigger:
    """Return the trigger that fires when an unavailable entity is available again."""
    target = entities.target(entity_id)
    if value.get("to") is not None or value.get("attribute") is not None or isinstance(target, Variable):
        raise NotTranslated(
            "attributes keep their values while a device is unavailable; to detect this, use the attribute `state`"
        )
    online = Comparison(Target(target.device_id, "state", target.domain), "equals", "online")
    return Trigger(table=table_of(TRIGGER, online, duration(value)), entities=(entity_id,))


def _numeric_state(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    for_secs = duration(value)
    if value.get("value_template") is not None:
        raise NotTranslated("a value_template is possible only in a condition")
    if "sun.sun" in entities.members(words(value.get("entity_id"))):
        raise NotTranslated("a trigger cannot use the height of the sun; instead, use sunset with an offset")
    for limit in (value[word] for word in ("above", "below") if value.get(word) is not None):
        if limit_of(limit) is None:
            is_entity = "." in str(limit)
            raise NotTranslated(f"the limit {limit} is {'another entity' if is_entity else 'not a number'}")
    for entity_id, limits in numeric_tests(entities, value):
        if not limits:
            raise NotTranslated("the trigger has neither `above` nor `below`")
        table: dict[str, Any] = {}
        for each in limits:
            table |= table_of(TRIGGER, each, for_secs)
        yield Trigger(table=table, entities=(entity_id,))


def _time(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    days = {"weekdays": weekdays(value["weekday"])} if value.get("weekday") is not None else {}
    for at in as_list(value.get("at")):
        place = str(at["entity_id"] if isinstance(at, Mapping) else at)
        if place.startswith("input_datetime."):
            yield _at_variable(entities, place, at, days)
            continue
        time = time_of_day(place if isinstance(at, Mapping) else at)
        if time.endswith(":00"):
            yield Trigger(table={"type": "wall_clock", "time": time[:5], **days})
        else:
            hour, minute, second = map(int, time.split(":"))
            names = ",".join(each.upper() for each in days.get("weekdays", ())) or "*"
            expression = f"{second} {minute} {hour} * * {names}"
            yield Trigger(table={"type": "cron", "expression": expression, "timezone": "local"})


def _at_variable(entities: Entities, entity_id: str, at: Any, days: Mapping[str, Any]) -> Trigger:
    """Return the trigger for the end of a timer. The automation of `translate_times` starts the timer."""
    helper = entities.target(entity_id)
    if not isinstance(helper, Variable):
        raise NotTranslated("the import does not support a time that comes from a sensor")
    offset = whole(seconds(at["offset"])) if isinstance(at, Mapping) and at.get("offset") is not None else 0
    sign = "before" if offset < 0 else "after"
    timer = f"{helper.name}.{sign}_{abs(offset)}".replace(".", "_")[:64] if offset else helper.name
    entities.timers[timer] = helper, offset
    is_day = f" and ha.is_day({literal(days['weekdays'])})" if days else ""
    return Trigger(table={"type": "timer", "name": timer}, guard=f"ha.is_on_time(event){is_day}")


def _time_pattern(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    """Translate a time pattern. If a unit is missing and a larger unit is given, the missing unit is 0. If no
    larger unit is given, every value of the missing unit matches."""
    fields, default = [], "*"
    for name in ("hours", "minutes", "seconds"):
        part = value.get(name)
        text = default if part is None else str(part).strip()
        default = default if part is None else "0"
        text = text.lstrip("0") or "0" if text.isdigit() else text
        fields.append(f"*{text}" if text.startswith("/") else text)
    if all(value.get(name) is None for name in ("hours", "minutes", "seconds")):
        raise NotTranslated("the trigger names neither hours, minutes, nor seconds")
    expression = " ".join([*reversed(fields), "* * *"])
    yield Trigger(table={"type": "cron", "expression": expression, "timezone": "local"})


def _sun(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    event = str(value.get("event"))
    if event not in ("sunrise", "sunset"):
        raise NotTranslated("the trigger names neither sunrise nor sunset")
    minutes = offset_minutes(value.get("offset"))
    yield Trigger(table={"type": event, **({"offset_mins": minutes} if minutes else {})})


def _zone(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    zone, is_entry = str(value.get("zone", "")), value.get("event", "enter") == "enter"
    for entity_id in words(value.get("entity_id")):
        test = zone_test(entities, entity_id, zone)
        if is_entry:
            yield Trigger(table=table_of(TRIGGER, test, 0), entities=(entity_id,))
        elif isinstance(test.value, bool):
            yield Trigger(table=table_of(TRIGGER, Comparison(test.target, "equals", False), 0), entities=(entity_id,))
        else:
            guard = f"event.previous_value == {literal(test.value)}"
            yield Trigger(table=change_of(TRIGGER, test.target), guard=guard, entities=(entity_id,))


def _homeassistant(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    if value.get("event") != "start":
        raise NotTranslated("Lares has no trigger that fires when the hub stops")
    yield Trigger(table={"type": "adapter_lifecycle", "adapter": entities.section, "event": "started"})


def _by_name(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    """Translate a trigger, such as `light.turned_on`, whose name contains the target's event."""
    meaning = purpose_specific.parse(str(value["trigger"]))
    assert meaning is not None
    options = purpose_specific.options_of(value)
    ids, for_secs = purpose_specific.entities_of(meaning, value, entities), duration(options)
    if meaning.is_measured:
        for each in ids:
            yield from _measured(meaning, each, options, for_secs, entities)
        return
    tests = {each: purpose_specific.state_test(meaning, each, entities) for each in ids}
    for entity_id, test in tests.items():
        others = [comparison_in_lua(each) for id_, each in tests.items() if id_ != entity_id]
        behavior = str(options.get("behavior", "each"))
        if behavior not in ("each", "any", "first", "last", "all"):
            raise NotTranslated(f"the behavior {behavior} is unknown")
        guard = " and ".join(others) if behavior in ("all", "last") else ""
        guard = f"not ({' or '.join(others)})" if behavior == "first" and others else guard
        yield Trigger(table=table_of(TRIGGER, test, for_secs), guard=guard, entities=(entity_id,))


def _measured(
    meaning: purpose_specific.Named, entity_id: str, options: Mapping[str, Any], for_secs: float, entities: Entities
) -> Iterator[Trigger]:
    attribute = purpose_specific.measured(meaning, entity_id)
    target = entities.target(entity_id, attribute)
    if isinstance(target, Variable):
        raise NotTranslated("a helper has no measured value")
    if str(options.get("trigger")).endswith("changed"):
        yield Trigger(table=change_of(TRIGGER, target), entities=(entity_id,))
        return
    for limits in purpose_specific.ranges(options, target, entities):
        row = {"entity_id": entity_id, "attribute": attribute, "for": for_secs, **limits}
        yield from _numeric_state(row, entities)


def _helper(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    """Translate a trigger, such as `timer.finished`, for a change of a timer, a schedule, or the sun."""
    domain, _, name = str(value["trigger"]).partition(".")
    states = [str(word_of(each)) for each in as_list(value.get("to"))]
    ids = words(value.get("entity_id")) or entities.targeted(domain, value.get("target"))
    if domain == "sun" and states and {*states} <= {"above_horizon", "below_horizon"} and value.get("for") is None:
        for state in states:
            yield Trigger(table={"type": {"above_horizon": "sunrise", "below_horizon": "sunset"}[state]})
        return
    if domain == "timer" and (name == "finished" or states == ["idle"]):
        for each in ids:
            yield Trigger(table={"type": "timer", "name": each.removeprefix("timer.")})
        return
    states += {"turned_on": ["on"], "turned_off": ["off"]}.get(name, [])
    if domain != "schedule" or not {*states} <= {"on", "off"} or not states:
        raise NotTranslated(
            f"the import does not support this change of a {domain}, because a timer fires only at its end"
        )
    for each in ids:
        for day, start, end in entities.schedule(each):
            for state in states:
                time = (start if state == "on" else end)[:5]
                next_day = WEEKDAYS[(WEEKDAYS.index(day) + 1) % 7]
                at, on = ("00:00", next_day) if time == "24:00" else (time, day)
                yield Trigger(table={"type": "wall_clock", "time": at, "weekdays": [on]}, entities=())


def _webhook(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    yield Trigger(table={"type": "webhook", "hook": str(value.get("webhook_id", ""))})


def _mqtt(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    """Translate a trigger on Zigbee2MQTT's topic for button presses, `zigbee2mqtt/<name>/action`."""
    found = re.fullmatch(r"[^/]+/(.+)/action", str(value.get("topic", "")))
    names = {each.name: each for each in entities.installation.devices.values()}
    device_id = entities.device_id(names[found[1]]) if found is not None and found[1] in names else None
    if device_id is None:
        raise NotTranslated(
            "Lares has no trigger for a topic; instead, use the device's attribute or event, or a hook"
        )
    payload = value.get("payload")
    event = {} if payload is None else {"event": press_name(str(payload))}
    yield Trigger(table={"type": "device_event", "device_id": device_id, **event})


def _event(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    fields = as_mapping(value.get("event_data"))
    for kind in words(value.get("event_type")):
        if kind == "timer.finished" and str(fields.get("entity_id", "")).startswith("timer."):
            yield Trigger(table={"type": "timer", "name": str(fields["entity_id"]).removeprefix("timer.")})
        elif kind == "mobile_app_notification_action" and fields.get("action"):
            yield Trigger(table={"type": "webhook", "hook": str(fields["action"]).lower()})
        elif kind in ("homeassistant_started", "homeassistant_start"):
            yield Trigger(table={"type": "adapter_lifecycle", "adapter": entities.section, "event": "started"})
        else:
            raise NotTranslated(WITHOUT_COUNTERPART["event"])


def _template(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    test = templates.comparison(str(value.get("value_template", "")), entities)
    yield Trigger(table=table_of(TRIGGER, test, duration(value)))


def _device(value: Mapping[str, Any], entities: Entities) -> Iterator[Trigger]:
    kind, domain = str(value.get("type", "")), str(value.get("domain", ""))
    if value.get("entity_id"):
        entity = entities.entity(str(value["entity_id"]))
        if "above" in value or "below" in value:
            yield from _numeric_state({**value, "entity_id": entity.entity_id}, entities)
            return
        if kind == "changed_states":
            yield Trigger(table=change_of(TRIGGER, entities.target(entity.entity_id)), entities=(entity.entity_id,))
            return
        state = state_of(kind, entity.domain)
        if state is None:
            raise NotTranslated(f"the import does not support the device trigger {kind} of {domain}")
        test = entities.compare(entity.entity_id, state)
        yield Trigger(table=table_of(TRIGGER, test, duration(value)), entities=(entity.entity_id,))
        return
    ha_device = entities.installation.devices.get(str(value.get("device_id", "")))
    device_id = entities.device_id(ha_device) if ha_device is not None else None
    if device_id is None:
        raise NotTranslated("Lares does not know the trigger's device")
    subtype = str(value.get("subtype", ""))
    raw = "_".join(filter(None, (kind, subtype)))
    yield Trigger(table={"type": "device_event", "device_id": device_id, "event": press_name(raw)})
