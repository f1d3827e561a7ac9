"""The library for editors documents automations correctly: definitions, triggers, conditions, and events."""

from __future__ import annotations

from typing import Any

import pytest

from appliance.automations.conditions.kinds import CONDITION_KINDS
from appliance.automations.triggers.kinds import TRIGGER_KINDS
from appliance.home.events import (
    AdapterStarted,
    DeviceEvent,
    HookCalled,
    SystemErrorReported,
    TimerFired,
    VariableChanged,
)
from appliance.tables.checks import Function
from tests.automations import homes
from tests.automations.homes import LAMP, NOW, change
from tests.lua import library

LIBRARY = library.read()

SOUND: dict[str, Any] = {
    "id": "x",
    "name": "X",
    "trigger": {"type": "interval", "every_secs": 1},
    "execute": Function(1),
}


def parse(**fields: Any) -> Any:
    return homes.parse(SOUND | fields)


def classes_of(alias: str) -> dict[str, dict[str, library.Field]]:
    """Return the classes of a union, by their `type`."""
    found = [LIBRARY.classes[name] for name in LIBRARY.aliases[alias].split("|")]
    return {fields["type"].type.strip('"'): fields for fields in found}


def offered(faults: tuple[str, ...], what: str) -> set[str]:
    """Return the fields that the error message for an unknown field lists."""
    [listed] = [fault for fault in faults if fault.startswith(f"{what} is not a field")]
    return set(listed.split("use one of ")[1].split(", "))


EITHER = {
    "sun_position": {"after"},
    "device_state_change": {"device_id"},
    "weather_state": {"device_id"},
    "device_event": {"device_id"},
    "wall_clock": {"time"},
    "variable": {"equals"},
    "room_state": {"min_devices"},
    "group_state": {"min_devices"},
}
"""The error message if one of several fields is required."""


def needed(fields: dict[str, library.Field]) -> set[str]:
    """Return the required fields except `type`, which is always required."""
    return {name for name, each in fields.items() if not each.is_optional} - {"type"}


def missing(faults: tuple[str, ...], path: str) -> set[str]:
    """Return the required fields of the table at this path."""
    named = [fault.split(" ")[0] for fault in faults if " missing" in fault]
    return {name.removeprefix(path) for name in named if name.startswith(path)}


def test_the_fields_of_an_automation_match_the_reader() -> None:
    stub = LIBRARY.classes["Automation"]
    assert offered(parse(**{"0": 1}).faults, "0") == set(stub)
    assert missing(parse(id=None, name=None, trigger=None, execute=None).faults, "") == needed(stub) | {"trigger"}
    assert offered(parse(state={"0": 1}).faults, "state.0") == set(LIBRARY.classes["State"])


def test_the_kinds_of_triggers_and_conditions_match() -> None:
    assert set(classes_of("Trigger")) == set(TRIGGER_KINDS)
    assert set(classes_of("Condition")) == set(CONDITION_KINDS)


@pytest.mark.parametrize(("alias", "path"), [("Trigger", "trigger"), ("Condition", "conditions[1]")])
def test_the_fields_of_each_kind_match_the_reader(alias: str, path: str) -> None:
    for kind, fields in classes_of(alias).items():
        table = {"type": kind, "0": 1}
        faults = parse(**({"trigger": table} if alias == "Trigger" else {"conditions": [table]})).faults
        assert offered(faults, f"{path}.0") == set(fields), kind
        assert missing(faults, f"{path}.") == needed(fields) | EITHER.get(kind, set()), kind


EVENTS: dict[str, dict[str, Any]] = {
    "device_state_change": {"device_id": LAMP, "attribute": "brightness"},
    "weather_state": {"device_id": LAMP, "attribute": "brightness"},
    "device_event": {"device_id": LAMP},
    "variable_change": {"name": "n"},
    "timer": {"name": "t"},
    "webhook": {"hook": "h"},
    "date": {"on": "12-24", "time": "18:00"},
    "adapter_lifecycle": {},
    "system_error": {},
    "wall_clock": {"hour": 7, "minute": 30},
    "cron": {"expression": "0 0 7 * * *"},
    "sunrise": {"offset_mins": -5},
    "sunset": {},
    "interval": {"every_secs": 60},
}
"""A trigger of each kind, and a matching event."""


def test_the_fields_of_an_event_match_the_triggers() -> None:
    given = {"type", "trigger_id"}
    happened = (
        change({"brightness": 1}, {"brightness": 9}),
        AdapterStarted(adapter="lamp"),
        SystemErrorReported(message="no"),
        DeviceEvent(device_id=LAMP, event="single", data={}),
        VariableChanged(name="n", value=2, previous=1),
        TimerFired(name="t", payload=1, due_at=NOW, late_secs=3.0),
        HookCalled(hook="h", data=1, query={}),
    )
    assert set(EVENTS) == set(TRIGGER_KINDS)
    for kind, fields in EVENTS.items():
        trigger = parse(trigger={"type": kind, **fields}).definition.triggers[0]
        if hasattr(trigger, "event_at"):
            event = trigger.event_at(NOW)
        else:
            [event] = [found.event for each in happened if (found := trigger.match(each)) is not None]
        assert event["type"] == kind
        given |= set(event)
    stub = LIBRARY.classes["Event"]
    assert given == set(stub)
    assert needed(stub) == set()
