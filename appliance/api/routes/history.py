"""History: past values of devices and past commands in a period, newest first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from appliance.api import schemas
from appliance.api.responses import LimitedList, encode_limited
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.api.routes.devices import INCLUDE
from appliance.api.validation import RequestFields, choice, whole_number
from appliance.errors import Invalid
from appliance.history.device_history import AttributeEntry, Resolution
from appliance.history.period import DEFAULT_LIMIT, Period
from appliance.home.json_shapes import DEVICE, DEVICE_WITHOUT_COMMANDS
from appliance.home.texts import identifier
from appliance.tables.checks import format_value
from appliance.tables.fields import Field
from appliance.tables.json_schema import (
    ANY,
    INSTANT,
    OBJECT,
    TEXT,
    Check,
    Record,
    Schema,
    array_of,
    described,
    maybe,
    one_of,
    record,
)

MAX_LIMIT = 1000
"""Maximum number of entries in one response."""

_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+ -]\d\d:\d\d)", re.ASCII)


def _instant(value: Any) -> datetime:
    """Return the instant. A space is treated as `+`, because a `+` that is not percent-encoded arrives as a space."""
    try:
        if _INSTANT.fullmatch(value) is None:
            raise ValueError
        return datetime.fromisoformat(f"{value[:10]}T{value[11:].replace(' ', '+')}".upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid(f"must be a time like 2026-11-20T08:00:00Z, not {format_value(value)}") from None


_MOMENT: Schema = {**INSTANT, "description": "RFC 3339, inclusive."}
_WHEN = Field(Check(schema=_MOMENT, run=_instant), required=False)

_LIMIT = Field(whole_number(1, MAX_LIMIT, default=DEFAULT_LIMIT), required=False)

PERIOD: RequestFields = {"start": _WHEN, "end": _WHEN, "limit": _LIMIT}
"""The query parameters that all history routes share: the fields of `Period`."""


def parse_period(query: Mapping[str, Any]) -> Period:
    """Return the period of a checked query. Raise `Invalid` if its end is before its start."""
    period = Period(**query)
    if period.start is not None and period.end is not None and period.end < period.start:
        raise Invalid("end must not be before start")
    return period


_RESOLUTION = choice(
    *(each.name.lower() for each in Resolution),
    default="raw",
    description="raw: every stored value. minute: the last value of each minute. hour, day: for a number, the "
    "mean, minimum, and maximum; for any other attribute, the last value; for a whole device, the last state. For "
    "raw and minute, numbers that are no longer in the hub's memory are hours.",
)
_DEVICE_QUERY = {**PERIOD, "resolution": Field(_RESOLUTION, required=False)}
_AUDIT_QUERY = {**PERIOD, "device_id": Field(identifier, required=False)}


_STATE = record("DeviceHistoryEntry", observed_at=INSTANT, device=DEVICE)
_STATE_WITHOUT_COMMANDS = record("DeviceHistoryEntry", observed_at=INSTANT, device=DEVICE_WITHOUT_COMMANDS)
_STATES = record("DeviceHistory", device_id=TEXT, entries=array_of(_STATE))
_VALUE = Record(
    "AttributeHistoryEntry",
    {"observed_at": INSTANT, "device_id": TEXT, "attribute": TEXT, "value": ANY},
    {
        "min": ANY,
        "max": ANY,
        "increase": {"description": "The increase of a meter in the hour or day, corrected for resets."},
    },
)
_VALUES = record(
    "AttributeHistory",
    device_id=TEXT,
    attribute=TEXT,
    resolution={
        **one_of(*(each.name.lower() for each in Resolution)),
        "description": "The resolution of the coarsest entry. For `raw` and `minute`, it is `hour` if some "
        "numbers are no longer in the hub's memory.",
    },
    entries=array_of(_VALUE),
)
_SOURCE = {**TEXT, "description": "device, room, group, scene:<id> or automation:<id>."}
_COMMAND = described(
    "CommandAuditEntry",
    recorded_at=INSTANT,
    source=_SOURCE,
    room_id=maybe(TEXT),
    device_id=TEXT,
    command=OBJECT,
    status=schemas.OUTCOME_STATUS,
    message=maybe(TEXT),
)
_AUDIT = record("CommandAudit", entries=array_of(_COMMAND))


class HistoryApi(ApiResource):
    """Handlers of the routes of history and audit."""

    @route(
        "GET",
        "/devices/<device_id>/history",
        Role.READ,
        _STATES,
        query={**_DEVICE_QUERY, **INCLUDE},
        is_large=True,
        is_slow=True,
    )
    async def list_states(self, call: Call, device_id: str) -> object:
        """Return the past states of the device, newest first, with an entry for each change of an attribute."""
        device = self.hub.registry.get_device(device_id)
        encode = _STATE if call.query()["include"] else _STATE_WITHOUT_COMMANDS
        states = self.hub.history.devices.iterate_states(device, *_parse_query(call))
        entries = await encode_limited(self.hub.clock, encode, states)
        return b'{"device_id":%b,"entries":%b}' % (orjson.dumps(device_id), entries)

    @route(
        "GET",
        "/devices/<device_id>/history/<attribute>",
        Role.READ,
        _VALUES,
        query=_DEVICE_QUERY,
        is_large=True,
        is_slow=True,
    )
    async def list_values(self, call: Call, device_id: str, attribute: str) -> object:
        """Return the past values of one attribute of the device, newest first."""
        self.hub.registry.get_device(device_id)
        found = await self.hub.history.attributes.list_values(device_id, attribute, *_parse_query(call))
        of = {"device_id": device_id, "attribute": attribute}
        shown = ({**of, **_show_entry(each)} for each in found.entries)
        entries = await encode_limited(self.hub.clock, _VALUE, shown)
        names = map(orjson.dumps, (device_id, attribute, found.resolution.name.lower()))
        return b'{"device_id":%b,"attribute":%b,"resolution":%b,"entries":%b}' % (*names, entries)

    @route("GET", "/audit/commands", Role.READ, _AUDIT, query=_AUDIT_QUERY, is_large=True, is_slow=True)
    async def list_commands(self, call: Call) -> object:
        """Return the commands with their source, device, and result, newest first."""
        query = call.query()
        word = query.pop("device_id")
        device_id = None if word is None else self.hub.registry.id_of(word)
        entries = LimitedList(lambda entry: entry)
        await self.hub.history.read_commands(parse_period(query), device_id, entries.add)
        return b'{"entries":%b}' % entries.to_json()


def _parse_query(call: Call) -> tuple[Period, Resolution]:
    query = {name: value for name, value in call.query().items() if name != "include"}
    resolution = Resolution[(query.pop("resolution") or "raw").upper()]
    return parse_period(query), resolution


def _show_entry(entry: AttributeEntry) -> dict[str, Any]:
    bounds = {"min": entry.low, "max": entry.high, "increase": entry.gain}
    return {"observed_at": entry.observed_at, "value": entry.value, **bounds}
