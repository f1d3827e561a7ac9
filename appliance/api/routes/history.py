"""History: what devices showed and who commanded them, from memory; newest first, within a period."""

from __future__ import annotations

from typing import Any

from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.periods import PERIOD
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.api.validation import choice
from appliance.history.command_history import CommandAudit
from appliance.history.device_history import DeviceHistory, Resolution
from appliance.history.period import Period
from appliance.home.json_shapes import DEVICE
from appliance.home.registry import Registry
from appliance.home.texts import identifier
from appliance.tables.fields import Field
from appliance.tables.json_schema import ANY, INSTANT, OBJECT, TEXT, Part, array_of, described, maybe, record

_RESOLUTION = choice(
    *(each.name.lower() for each in Resolution),
    default="all",
    description="minute, hour or day: of each only the last entry.",
)
_DEVICE_QUERY = {
    **PERIOD,
    "resolution": Field(_RESOLUTION, required=False),
}
_AUDIT_QUERY = {**PERIOD, "device_id": Field(identifier, required=False)}


def _without_commands(entry: Any) -> dict[str, Any]:
    return {name: value for name, value in DEVICE(entry.device).items() if name != "commands"}


_STATES = record(
    "DeviceHistory",
    device_id=TEXT,
    entries=array_of(record("DeviceHistoryEntry", observed_at=INSTANT, device=Part(dict(DEVICE), _without_commands))),
)
_VALUE = record("AttributeHistoryEntry", observed_at=INSTANT, device_id=TEXT, attribute=TEXT, value=ANY)
_VALUES = record("AttributeHistory", device_id=TEXT, attribute=TEXT, entries={"type": "array", "items": _VALUE})
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

    def __init__(self, registry: Registry, devices: DeviceHistory, audit: CommandAudit) -> None:
        self._registry = registry
        self._devices = devices
        self._audit = audit

    @route("GET", "/devices/<device_id>/history", Role.READ, _STATES, query=_DEVICE_QUERY)
    async def list_states(self, call: Call, device_id: str) -> HTTPResponse:
        """How the device was, newest first, an entry for each change of an attribute."""
        device = self._registry.get_device(device_id)
        period, resolution = _parse_query(call)
        entries = self._devices.list_states(device, period, resolution)
        return json_response(_STATES.of(device_id=device_id, entries=entries))

    @route("GET", "/devices/<device_id>/history/<attribute>", Role.READ, _VALUES, query=_DEVICE_QUERY)
    async def list_values(self, call: Call, device_id: str, attribute: str) -> HTTPResponse:
        """What one attribute of the device showed, newest first."""
        self._registry.get_device(device_id)
        period, resolution = _parse_query(call)
        entries = [
            _VALUE.of(observed_at=entry.observed_at, device_id=device_id, attribute=attribute, value=entry.value)
            for entry in self._devices.list_values(device_id, attribute, period, resolution)
        ]
        return json_response(_VALUES.of(device_id=device_id, attribute=attribute, entries=entries))

    @route("GET", "/audit/commands", Role.READ, _AUDIT, query=_AUDIT_QUERY)
    async def list_commands(self, call: Call) -> HTTPResponse:
        """Who commanded which device, and what came of it, newest first."""
        query = call.query()
        device_id = query.pop("device_id")
        return json_response(_AUDIT.of(entries=self._audit.list_commands(Period(**query), device_id)))


def _parse_query(call: Call) -> tuple[Period, Resolution]:
    query = call.query()
    resolution = Resolution[(query.pop("resolution") or "all").upper()]
    return Period(**query), resolution
