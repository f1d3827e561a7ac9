"""The names for completion in editors of Lua files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import orjson
from msgspec.structs import asdict

from appliance.api.roles import Role
from appliance.api.route import ApiParts, ApiResource, Call, route
from appliance.automations.names.home_names import HomeNames
from appliance.files.lua_library import list_automation_fields, list_methods, list_typed_fields
from appliance.home.json_shapes import DEVICE_COMMANDS
from appliance.home.layout import Layout
from appliance.home.model import Device
from appliance.home.values import to_bytes
from appliance.scenes import Scene
from appliance.tables.json_schema import TEXT, Schema, array_of, maybe, record
from appliance.tasks import SharedRun, Tasks

_NAMED = record("NamedPlace", id=TEXT, name=TEXT)
_COMPLETED_DEVICE = record(
    "CompletedDevice",
    id=TEXT,
    alias=maybe(TEXT),
    name=TEXT,
    room=maybe(TEXT),
    attributes=array_of(TEXT),
    commands=DEVICE_COMMANDS,
    events=array_of(TEXT),
)
_OTHERS: dict[str, Schema] = {
    "rooms": array_of(_NAMED),
    "groups": array_of(_NAMED),
    "scenes": array_of(_NAMED),
    "variables": array_of(TEXT),
    "timers": array_of(TEXT),
    "operations": array_of(TEXT),
    "ctx": array_of(record("CtxMethod", name=TEXT, arguments=array_of(TEXT), description=TEXT)),
    "automation": {**array_of(TEXT), "description": "The fields of an automation."},
    "types": {
        "type": "object",
        "additionalProperties": array_of(TEXT),
        "description": "The fields of each type of trigger and condition.",
    },
}
COMPLETIONS = record("Completions", devices=array_of(_COMPLETED_DEVICE), **_OTHERS)
_OTHER_PART = record("OtherCompletions", **_OTHERS)


class CompletionsApi(ApiResource):
    """The handler of `/completions`. Clients that request it at the same time share one computation."""

    needs_files = True

    def __init__(self, parts: ApiParts) -> None:
        super().__init__(parts)
        self._all = SharedRun(self._encode_all, Tasks(), "completions")

    @route("GET", "/completions", Role.ADMIN, COMPLETIONS, is_large=True)
    async def list_all(self, call: Call) -> object:
        """Return the names that Lua files can currently use, for editors."""
        return await self._all.result()

    async def _encode_all(self) -> bytes:
        hub = self.hub
        names, layout = await hub.names.find_known(), hub.registry.layout
        devices, scenes = hub.registry.list_devices(), hub.scenes.catalog.list_definitions()
        return await asyncio.to_thread(_encode, names, devices, layout, scenes)


def _encode(names: HomeNames, devices: Sequence[Device], layout: Layout, scenes: Sequence[Scene]) -> bytes:
    attributes, events = names.devices or {}, names.events
    completed = (
        {
            "id": device.id,
            "alias": device.alias,
            "name": device.name,
            "room": device.room_id,
            "attributes": sorted(attributes.get(device.id, ())),
            "commands": device.commands or (),
            "events": sorted(events.get(device.id, ())),
        }
        for device in devices
    )
    shown = {
        "rooms": [layout.rooms[id_] for id_ in sorted(layout.rooms)],
        "groups": [layout.groups[id_] for id_ in sorted(layout.groups)],
        "scenes": scenes,
        "variables": sorted(names.all_variables),
        "timers": sorted(names.all_timers),
        "operations": sorted(
            f"{section}:{each}" for section, operations in names.operations.items() for each in operations or ()
        ),
        "ctx": list_methods(),
        "automation": list_automation_fields(),
        "types": list_typed_fields(),
    }
    # one call for all devices would block other threads while it encodes megabytes
    encoded = b",".join(to_bytes(_COMPLETED_DEVICE(each), default=asdict) for each in completed)
    others = orjson.dumps(_OTHER_PART(shown), default=asdict)
    return b"".join((b'{"devices":[', encoded, b"],", others[1:]))
