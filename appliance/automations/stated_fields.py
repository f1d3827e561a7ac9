"""Converts a trigger or condition back to the fields in its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import time
from typing import Any

from appliance.automations import field_checks as check
from appliance.automations.conditions.base import Condition
from appliance.automations.conditions.device import PlaceState
from appliance.automations.conditions.sun import Edge
from appliance.automations.requirement import Requirement
from appliance.automations.schedule.cron import Cron
from appliance.automations.triggers.base import Trigger
from appliance.automations.triggers.device import Devices
from appliance.home.values import Value
from appliance.home_locale import Locale


def state_fields(thing: Trigger | Condition) -> dict[str, Value]:
    """Return the fields of a trigger or condition that are set in its file, as plain data without nested conditions.

    The fields have the same names as in the file, but a date has the fields `month`, `day`, and `year`. `timezone` is
    the zone in use.
    """
    stated: dict[str, Value] = {}
    for name in thing.__struct_fields__:
        value = getattr(thing, name)
        if name != "conditions":
            stated |= _STATED.get(type(value), dict)({_STATED_NAMES.get(name, name): value})
    if isinstance(thing, PlaceState):
        stated[f"{thing.place}_id"] = stated.pop("place_id")
    return {name: value for name, value in stated.items() if value not in (None, [])}


_STATED_NAMES = {"at": "time", "first": "from", "last": "to"}

_STATED: Mapping[type, Callable[[dict[str, Any]], Mapping[str, Value]]] = {
    Requirement: lambda field: next(iter(field.values())).fields(),
    Cron: lambda field: {"expression": field["cron"].expression},
    Devices: lambda field: {**_places(field["devices"]), "device_id": list(field["devices"].ids)},
    Locale: lambda field: {"timezone": field["locale"].timezone.key},
    Edge: lambda field: {
        key: value
        for name, edge in field.items()
        for key, value in ((name, str(edge.event)), (f"{name}_offset_mins", edge.offset_mins))
    },
    frozenset: lambda field: {name: [check.WEEKDAYS[day] for day in sorted(days)] for name, days in field.items()},
    tuple: lambda field: {name: f"{month:02}-{day:02}" for name, (month, day) in field.items()},
    time: lambda field: {name: f"{at:%H:%M}" for name, at in field.items()},
}


def _places(devices: Devices) -> Mapping[str, Value]:
    return {"room_id": devices.room_id, "group_id": devices.group_id}
