"""Checks of the records of a backup, with the checks of the API and the functions that read records at a start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from appliance.api.keyring import KEY_BODY, MAX_KEYS
from appliance.api.routes.devices import ALIAS_BODY, ASSIGNMENT_BODY, NAME_BODY
from appliance.api.routes.groups import GROUP_BODY
from appliance.api.routes.preferences import check_preferences
from appliance.api.routes.rooms import ROOM_BODY
from appliance.api.routes.variables import VARIABLE_BODY
from appliance.automations.automation_states import read_states, read_switches, read_waits
from appliance.automations.change_times import read_change_times
from appliance.automations.names.name_watcher import read_past, read_removed
from appliance.automations.timers import MAX_BYTES_IN_ALL, MAX_TIMERS, check_timer, read_timers
from appliance.automations.variables import (
    MAX_TOTAL_BYTES,
    MAX_VARIABLES,
    check_variable,
    read_variables,
    variable_sizes,
)
from appliance.byte_budget import count_json_values
from appliance.cli.log_output import one_line
from appliance.errors import Invalid, LaresError
from appliance.home.layout import MAX_GROUPS, MAX_MEMBERS, MAX_ROOMS
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
    DOUBTFUL,
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
_SINGLE_KEYS = (CARD, CLOCK, CRASHES, DOUBTFUL, RUNNING, VERSION_KEY)

_TEXTS = (ASSIGNMENT_PREFIX, NAME_PREFIX, ALIAS_PREFIX, ADAPTER_PREFIX)
"""The prefixes of keys whose values are strings. The values of other keys are objects, except `TOGGLE_PREFIX`."""

MAX_RECORDS = 100_000
"""Maximum number of records in a backup. A home of 5,000 devices has up to 35,000 records of devices."""

MAX_VALUES = 1_000_000
"""Maximum number of JSON values in the records of a backup, so that decoding them needs little memory."""

MAX_RECORD_VALUES = 200_000
"""Maximum number of JSON values in one record."""

DEVICES_AT_ONCE = 1000
"""Number of devices that are decoded together, so that checking them needs little memory."""

_MAX_COUNTS = (
    (ROOM_PREFIX, "rooms", MAX_ROOMS),
    (GROUP_PREFIX, "groups", MAX_GROUPS),
    (KEY_PREFIX, "API keys", MAX_KEYS),
    (TIMER_PREFIX, "timers", MAX_TIMERS),
)
"""The limits of the API for the number of records, by key prefix."""

MAX_SHOWN_KINDS = 3

MAX_SHOWN_CHARS = 60
"""Maximum length of a shown key. A shown reason can have twice the length."""

_READERS: tuple[Callable[[DocumentReader, OnFault], object], ...] = (
    read_keys,
    read_states,
    read_switches,
    read_waits,
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
    check_record_values(orjson.dumps(value))


def check_value_count(state: bytes, values: Mapping[str, Any] | None = None) -> None:
    """Raise `Invalid` if this JSON can contain too many values. If the decoded records are given, the error names
    their kinds."""
    try:
        _check_count(count_json_values(state), "values", MAX_VALUES)
    except Invalid as error:
        counts = Counter[str]()
        for key, value in (values or {}).items():
            counts[key.partition("/")[0]] += count_json_values(orjson.dumps(value))
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in counts.most_common(MAX_SHOWN_KINDS))
        raise Invalid(f"{error} (most by kind of record: {kinds})" if kinds else str(error)) from None


def check_record_values(record: bytes) -> None:
    """Raise `Invalid` if the JSON of one record can contain too many values."""
    if (count := count_json_values(record)) > MAX_RECORD_VALUES:
        raise Invalid(f"{count:,} values, but a record can have at most {MAX_RECORD_VALUES:,}")


def check_record_counts(keys: Iterable[str]) -> None:
    """Raise `Invalid` if a home cannot have this number of records."""
    counts = Counter(key[: key.find("/") + 1] for key in keys)
    for prefix, kind, limit in _MAX_COUNTS:
        _check_count(counts[prefix], kind, limit)
    _check_count(counts.total(), "records", MAX_RECORDS)


def check_totals(values: Mapping[str, Any]) -> None:
    """Raise `Invalid` if the groups have too many members, if there are too many or too large variables, or if the
    payloads of timers are too large."""
    records = _Records(values)
    sizes, payloads = variable_sizes(records), [each.payload for each in read_timers(records).values()]
    groups = [value for key, value in values.items() if key.startswith(GROUP_PREFIX) and isinstance(value, dict)]
    members = [group["members"] for group in groups if isinstance(group.get("members"), list)]
    _check_count(len(sizes), "variables", MAX_VARIABLES)
    _check_count(sum(sizes.values()), "bytes of variables", MAX_TOTAL_BYTES)
    _check_count(sum(map(len, members)), "members of groups", MAX_MEMBERS)
    _check_count(sum(map(len, payloads)), "bytes of timers", MAX_BYTES_IN_ALL)


def _check_count(count: int, kind: str, limit: int) -> None:
    if count > limit:
        raise Invalid(f"{count:,} {kind}, but a home can have at most {limit:,}")


def find_invalid(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the records that the API would reject, or that a start would ignore: a line for each key, with the key
    and the reason.

    An invalid attribute of a device is not a fault, because the next report of the device replaces the attribute.
    """
    found: dict[str, str] = {}

    def note(key: str, error: Exception) -> None:
        if key in values:  # an invalid attribute has the key of no record
            found.setdefault(key, describe(key, error))

    for key, value in values.items():
        try:
            check_record(key, value)
        except (LaresError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            note(key, error)
    _check_readable({key: value for key, value in values.items() if key not in found}, note)
    return found


class _Records:
    """Decoded records as a `DocumentReader`."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        return [(key.removeprefix(prefix), value) for key, value in self._values.items() if key.startswith(prefix)]


def _check_readable(values: Mapping[str, Any], on_fault: OnFault) -> None:
    """Call `on_fault` for each record that a start would ignore."""
    document = _Records(values)
    layout = read_layout(document, on_fault)
    for device_id, room_id in layout.room_assignments.items():
        if room_id not in layout.rooms:
            on_fault(ASSIGNMENT_PREFIX + device_id, Invalid(f"room {format_value(room_id)} is unknown"))
    prefixes = (DEVICE_PREFIX, STATE_PREFIX)
    ids = list(dict.fromkeys(key.partition("/")[2] for key in values if key.startswith(prefixes)))
    for at in range(0, len(ids), DEVICES_AT_ONCE):
        keys = [prefix + id_ for id_ in ids[at : at + DEVICES_AT_ONCE] for prefix in prefixes]
        read_devices(_Records({key: values[key] for key in keys if key in values}), layout, on_fault)
    for read in _READERS:
        read(document, on_fault)


def describe(key: str, error: Exception) -> str:
    """Return a line with the key of an invalid record and the reason."""
    reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return f"{one_line(key[:MAX_SHOWN_CHARS])}: {one_line(reason[: 2 * MAX_SHOWN_CHARS])}"
