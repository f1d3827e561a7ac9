"""Checks of the records in a backup. The API checks new records in the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from appliance.api.keyring import KEY_BODY
from appliance.api.routes.devices import ALIAS_BODY, ASSIGNMENT_BODY, NAME_BODY
from appliance.api.routes.groups import GROUP_BODY
from appliance.api.routes.preferences import check_preferences
from appliance.api.routes.rooms import ROOM_BODY
from appliance.api.routes.variables import VARIABLE_BODY
from appliance.automations.timers import check_timer
from appliance.automations.variables import check_variable
from appliance.home.texts import identifier
from appliance.home.texts import name as check_name
from appliance.store.record_keys import (
    ALIAS_PREFIX,
    ASSIGNMENT_PREFIX,
    DEVICE_PREFIX,
    GROUP_PREFIX,
    KEY_PREFIX,
    NAME_PREFIX,
    PREFERENCES_PREFIX,
    ROOM_PREFIX,
    STATE_PREFIX,
    TIMER_PREFIX,
    VARIABLE_PREFIX,
)

_CHECKS: Mapping[str, Callable[[str, Any], object]] = {
    ROOM_PREFIX: lambda id_, value: ROOM_BODY({**value, "id": id_}),
    GROUP_PREFIX: lambda id_, value: GROUP_BODY({**value, "id": id_}),
    ASSIGNMENT_PREFIX: lambda _, value: ASSIGNMENT_BODY({"room_id": value}),
    NAME_PREFIX: lambda _, value: NAME_BODY({"name": value}),
    ALIAS_PREFIX: lambda _, value: ALIAS_BODY({"alias": value}),
    KEY_PREFIX: lambda _, value: KEY_BODY({**value}),
    VARIABLE_PREFIX: lambda name, value: check_variable(
        name, VARIABLE_BODY({**value})["value"] if "value" in value else None
    ),
    TIMER_PREFIX: lambda name, value: check_timer(name, 0, value.get("payload")),
    PREFERENCES_PREFIX: lambda _, value: check_preferences(value),
    DEVICE_PREFIX: lambda _, value: value.get("name") is None or check_name(value["name"]),
}
"""The checks of stored records, by key prefix."""

_WITH_IDS = (ROOM_PREFIX, GROUP_PREFIX, ASSIGNMENT_PREFIX, NAME_PREFIX, ALIAS_PREFIX, DEVICE_PREFIX, STATE_PREFIX)


def check_record(key: str, value: Any) -> None:
    """Raise `Invalid` for a record that the API would reject."""
    prefix, slash, id_ = key.partition("/")
    prefix += slash
    if prefix in _WITH_IDS:
        identifier(id_)
    if value is not None and prefix in _CHECKS:
        _CHECKS[prefix](id_, value)
