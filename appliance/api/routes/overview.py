"""A snapshot of the home, for the dashboard."""

from __future__ import annotations

import asyncio

import orjson

from appliance.api import schemas
from appliance.api.device_encoder import join_parts
from appliance.api.responses import JSON_HEADERS, Response
from appliance.api.roles import Role
from appliance.api.route import ApiParts, ApiResource, Call, route
from appliance.api.routes.preferences import read_preferences
from appliance.api.routes.status import CONFIG_CHANGES
from appliance.home import json_shapes
from appliance.home.capabilities import UNITS
from appliance.lua.running.executor import list_executions
from appliance.tables.json_schema import OBJECT, TEXT, Schema, array_of, maybe, one_of, record
from appliance.tasks import SharedRun, Tasks
from appliance.version import VERSION

_CALLER = record("Caller", key_id=TEXT, role=one_of(*Role))
_OF_CALLER: dict[str, Schema] = {"version": TEXT, "caller": _CALLER, "preferences": OBJECT}
_OF_HOME: dict[str, Schema] = {
    "units": {
        "type": "object",
        "additionalProperties": TEXT,
        "description": "The unit of each capability that has one.",
    },
    "timezone": {**TEXT, "description": "The home's time zone."},
    "rooms": array_of(json_shapes.ROOM),
    "groups": array_of(json_shapes.GROUP),
    "scenes": array_of(schemas.SCENE),
    "automations": array_of(schemas.AUTOMATION),
    "executions": array_of(schemas.EXECUTION),
    "adapters": array_of(schemas.ADAPTER),
    "safe": {
        **maybe(TEXT),
        "description": "The reason why enabled automations do not run, with a remedy, or null.",
    },
    "config": CONFIG_CHANGES,
    "faults": array_of(schemas.FAULT),
}
_OVERVIEW = record("Overview", **_OF_CALLER, **_OF_HOME, devices=array_of(json_shapes.DEVICE))
_CALLER_PART, _HOME_PART = record("CallerPart", **_OF_CALLER), record("HomePart", **_OF_HOME)


class OverviewApi(ApiResource):
    """Handler of `/overview`."""

    def __init__(self, parts: ApiParts) -> None:
        super().__init__(parts)
        self._home = SharedRun(self._encode_home, Tasks(), "overview")

    @route("GET", "/overview", Role.READ, _OVERVIEW)
    async def show(self, call: Call) -> object:
        """Return the current state of the home, and the role and preferences of the key."""
        assert call.principal is not None
        home, caller = await self._home.result(), call.principal
        preferences = read_preferences(self.hub.store.document, caller.key_id)
        shown = {"version": VERSION, "caller": caller, "preferences": preferences}
        start = orjson.dumps(_CALLER_PART(shown))[:-1] + b","
        return Response(home, 200, {**JSON_HEADERS}, start)

    async def _encode_home(self) -> bytes:
        """Return the fields that are the same for all callers, as JSON without the opening brace."""
        async with self.parts.unsent.room_for_answer():
            return await self._encode()

    async def _encode(self) -> bytes:
        hub, encoder = self.hub, self.parts.encoder
        await encoder.prepare(hub.registry.list_devices(), hub.clock, with_commands=True)
        catalogs = (hub.scenes.catalog, hub.automations.catalog, hub.kinds)
        config = (await hub.adapter_sections.find_config_changes()).sentences()
        shown = {
            "units": UNITS,
            "timezone": hub.timezone.key,
            "rooms": hub.registry.list_rooms(),
            "groups": hub.registry.list_groups(),
            "scenes": hub.scenes.catalog.list_definitions(),
            "automations": hub.automations.list_views(),
            "executions": list_executions(hub.executors),
            "adapters": hub.health.list_adapters(),
            "safe": hub.safe_mode.reason,
            "config": config,
            "faults": [fault for catalog in catalogs for fault in catalog.rejected],
        }
        devices = encoder.list_parts(hub.registry.list_devices())

        def encode() -> bytes:
            return b"".join((orjson.dumps(_HOME_PART(shown))[1:-1], b',"devices":', join_parts(devices), b"}"))

        return await asyncio.to_thread(encode)
