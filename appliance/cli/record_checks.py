"""Checks of the records of a backup, with the checks of the API and the functions that read records at a start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from appliance.api.keyring import KEY_BODY
from appliance.api.routes.devices import ALIAS_BODY, ASSIGNMENT_BODY, NAME_BODY
from appliance.api.routes.groups import GROUP_BODY
from appliance.api.routes.preferences import check_preferences
from appliance.api.routes.rooms import ROOM_BODY
from appliance.api.routes.variables import VARIABLE_BODY
from appliance.automations.automation_states import read_states, read_switches
from appliance.automations.change_times import read_change_times
from appliance.automations.names.name_watcher import read_past, read_removed
from appliance.automations.timers import check_timer, read_timers
from appliance.automations.variables import check_variable, read_variables
from appliance.cli.log_output import one_line
from appliance.errors import Invalid, LaresError
from appliance.home.texts import identifier
from appliance.home.texts import name as check_name
from appliance.store.record_keys import (
    ADAPTER_PREFIX,
    ALIAS_PREFIX,
    ASSIGNMENT_PREFIX,
    CARD,
    CLOCK,
    CRASHES,
    DEVICE_PREFIX,
    GROUP_PREFIX,
    HOME_STATE_PREFIXES,
    KEY_PREFIX,
    NAME_PREFIX,
    PREFERENCES_PREFIX,
    ROOM_PREFIX,
    RUNNING,
    STATE_PREFIX,
    TIMER_PREFIX,
    TOGGLE_PREFIX,
    VARIABLE_PREFIX,
    VERSION_KEY,
)
from appliance.store.records import OnFault, read_devices, read_layout
from appliance.store.storage import DocumentReader
from appliance.store.stored_keys import read_keys
from appliance.tables.checks import format_value

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

_PREFIXES = (*HOME_STATE_PREFIXES, KEY_PREFIX, PREFERENCES_PREFIX, ADAPTER_PREFIX)
_SINGLE_KEYS = (CARD, CLOCK, CRASHES, RUNNING, VERSION_KEY)

_TEXTS = (ASSIGNMENT_PREFIX, NAME_PREFIX, ALIAS_PREFIX, ADAPTER_PREFIX)
"""The prefixes of keys whose values are strings. The values of other keys are objects, except `TOGGLE_PREFIX`."""

MAX_SHOWN_CHARS = 60
"""Maximum length of a shown key. A shown reason can have twice the length."""

_READERS: tuple[Callable[[DocumentReader, OnFault], object], ...] = (
    read_keys,
    read_states,
    read_switches,
    read_variables,
    read_timers,
    read_change_times,
    read_past,
    read_removed,
)
"""The functions that read the records at a start, except those for devices."""

_WITH_IDS = (ROOM_PREFIX, GROUP_PREFIX, ASSIGNMENT_PREFIX, NAME_PREFIX, ALIAS_PREFIX, DEVICE_PREFIX, STATE_PREFIX)


def check_record(key: str, value: Any) -> None:
    """Raise `Invalid` for a record that the API would reject, and for an unknown kind of record."""
    prefix, slash, id_ = key.partition("/")
    prefix += slash
    if prefix not in _PREFIXES and key not in _SINGLE_KEYS:
        raise Invalid("unknown kind of record")
    expected, word = (str, "text") if prefix in _TEXTS else (dict, "an object")
    if prefix != TOGGLE_PREFIX and not isinstance(value, expected):
        raise Invalid(f"the value must be {word}, not {format_value(value)}")
    if prefix in _WITH_IDS:
        identifier(id_)
    if prefix in _CHECKS:
        _CHECKS[prefix](id_, value)


def find_invalid(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the records that the API would reject, or that a start would ignore: a line for each key, with the key
    and the reason.

    An invalid attribute of a device is not a fault, because the next report of the device replaces the attribute.
    """
    found: dict[str, str] = {}

    def note(key: str, error: Exception) -> None:
        if key in values:  # an invalid attribute has the key of no record
            found.setdefault(key, _describe(key, error))

    for key, value in values.items():
        try:
            check_record(key, value)
        except (LaresError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            note(key, error)
    _check_readable(_Records({key: value for key, value in values.items() if key not in found}), note)
    return found


class _Records:
    """Decoded records as a `DocumentReader`."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        return [(key.removeprefix(prefix), value) for key, value in self._values.items() if key.startswith(prefix)]


def _check_readable(document: DocumentReader, on_fault: OnFault) -> None:
    """Call `on_fault` for each record that a start would ignore."""
    layout = read_layout(document, on_fault)
    for device_id, room_id in layout.room_assignments.items():
        if room_id not in layout.rooms:
            on_fault(ASSIGNMENT_PREFIX + device_id, Invalid(f"room {format_value(room_id)} is unknown"))
    read_devices(document, layout, on_fault)
    for read in _READERS:
        read(document, on_fault)


def _describe(key: str, error: Exception) -> str:
    reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return f"{one_line(key[:MAX_SHOWN_CHARS])}: {one_line(reason[: 2 * MAX_SHOWN_CHARS])}"
