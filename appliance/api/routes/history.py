"""History: what devices showed and who commanded them, from memory; newest first, within a period."""

from __future__ import annotations

from typing import Any

from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.periods import PERIOD
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.api.routes.devices import INCLUDE
from appliance.api.validation import choice
from appliance.history.device_history import AttributeEntry, Resolution
from appliance.history.home_history import HomeHistory
from appliance.history.period import Period
from appliance.home.json_shapes import DEVICE
from appliance.home.registry import Registry
from appliance.home.texts import identifier
from appliance.tables.fields import Field
from appliance.tables.json_schema import (
    ANY,
    INSTANT,
    OBJECT,
    TEXT,
    Part,
    Record,
    array_of,
    described,
    maybe,
    one_of,
    record,
)

_RESOLUTION = choice(
    *(each.name.lower() for each in Resolution),
    default="raw",
    description="raw: every value that is kept; minute: the last of each. hour, day: of a number the mean, min and "
    "max of each, of anything else the last value; of a device as a whole the last state.",
)
_DEVICE_QUERY = {
    **PERIOD,
    "resolution": Field(_RESOLUTION, required=False),
}
_AUDIT_QUERY = {**PERIOD, "device_id": Field(identifier, required=False)}


def _device_of(entry: Any) -> Any:
    return DEVICE(entry.device)


_STATES = record(
    "DeviceHistory",
    device_id=TEXT,
    entries=array_of(record("DeviceHistoryEntry", observed_at=INSTANT, device=Part(dict(DEVICE), _device_of))),
)
_VALUE = Record(
    "AttributeHistoryEntry",
    {"observed_at": INSTANT, "device_id": TEXT, "attribute": TEXT, "value": ANY},
    {"min": ANY, "max": ANY, "increase": {"description": "What a meter counted in the hour or day, resets known."}},
)
_VALUES = record(
    "AttributeHistory",
    device_id=TEXT,
    attribute=TEXT,
    resolution={
        **one_of(*(each.name.lower() for each in Resolution)),
        "description": "That of the coarsest entry: hour where memory does not reach as far back as was asked for.",
    },
    entries={"type": "array", "items": _VALUE},
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


class HistoryApi:
    """Handlers of the routes of history and audit."""

    def __init__(self, registry: Registry, history: HomeHistory) -> None:
        self._registry = registry
        self._history = history

    @route("GET", "/devices/<device_id>/history", Role.READ, _STATES, query={**_DEVICE_QUERY, **INCLUDE})
    async def list_states(self, call: Call, device_id: str) -> HTTPResponse:
        """How the device was, newest first, an entry for each change of an attribute."""
        device = self._registry.get_device(device_id)
        period, resolution = _parse_query(call)
        entries = self._history.devices.list_states(device, period, resolution)
        shown = _STATES.of(device_id=device_id, entries=entries)
        if not call.query()["include"]:
            for each in shown["entries"]:
                each["device"].pop("commands", None)
        return json_response(shown)

    @route("GET", "/devices/<device_id>/history/<attribute>", Role.READ, _VALUES, query=_DEVICE_QUERY)
    async def list_values(self, call: Call, device_id: str, attribute: str) -> HTTPResponse:
        """What one attribute of the device showed, newest first."""
        self._registry.get_device(device_id)
        period, resolution = _parse_query(call)
        found = await self._history.attributes.list_values(device_id, attribute, period, resolution)
        entries = [_encode_entry(device_id, attribute, entry) for entry in found.entries]
        name = found.resolution.name.lower()
        return json_response(_VALUES.of(device_id=device_id, attribute=attribute, resolution=name, entries=entries))

    @route("GET", "/audit/commands", Role.READ, _AUDIT, query=_AUDIT_QUERY)
    async def list_commands(self, call: Call) -> HTTPResponse:
        """Who commanded which device, and what came of it, newest first."""
        query = call.query()
        device_id = query.pop("device_id")
        period = Period(**query)
        entries = self._history.commands.list_commands(period, device_id)
        if self._history.card is not None:
            entries += await self._history.card.older_commands(entries, period, device_id)
        return json_response(_AUDIT.of(entries=entries))


def _parse_query(call: Call) -> tuple[Period, Resolution]:
    query = {name: value for name, value in call.query().items() if name != "include"}
    resolution = Resolution[(query.pop("resolution") or "raw").upper()]
    return Period(**query), resolution


def _encode_entry(device_id: str, attribute: str, entry: AttributeEntry) -> dict[str, Any]:
    made = _VALUE.of(observed_at=entry.observed_at, device_id=device_id, attribute=attribute, value=entry.value)
    beside = {"min": entry.low, "max": entry.high, "increase": entry.gain}
    return made | {name: value for name, value in beside.items() if value is not None}
