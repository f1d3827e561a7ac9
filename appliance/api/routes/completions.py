"""The names for completion in editors of Lua files."""

from __future__ import annotations

from appliance.api.auth import Role
from appliance.api.route import ApiResource, Call, route
from appliance.files.completions import list_methods
from appliance.home.json_shapes import DEVICE_COMMANDS
from appliance.tables.json_schema import TEXT, Schema, array_of, maybe, record

_NAMED = record("NamedPlace", id=TEXT, name=TEXT)
_COMPLETED_DEVICE: Schema = record(
    "CompletedDevice",
    id=TEXT,
    alias=maybe(TEXT),
    name=TEXT,
    room=maybe(TEXT),
    attributes=array_of(TEXT),
    commands=DEVICE_COMMANDS,
    events=array_of(TEXT),
)
COMPLETIONS = record(
    "Completions",
    devices=array_of(_COMPLETED_DEVICE),
    rooms=array_of(_NAMED),
    groups=array_of(_NAMED),
    scenes=array_of(_NAMED),
    variables=array_of(TEXT),
    timers=array_of(TEXT),
    operations=array_of(TEXT),
    ctx=array_of(record("CtxMethod", name=TEXT, arguments=array_of(TEXT), description=TEXT)),
)


class CompletionsApi(ApiResource):
    """The handler of `/completions`."""

    needs_files = True

    @route("GET", "/completions", Role.ADMIN, COMPLETIONS)
    async def list_all(self, call: Call) -> object:
        """Return the names that Lua files can currently use, for editors."""
        hub = self.hub
        names = await hub.names.find_known()
        attributes, events = names.devices or {}, names.events
        devices = [
            {
                "id": device.id,
                "alias": device.alias,
                "name": device.name,
                "room": device.room_id,
                "attributes": sorted(attributes.get(device.id, ())),
                "commands": device.commands or (),
                "events": sorted(events.get(device.id, ())),
            }
            for device in hub.registry.list_devices()
        ]
        layout = hub.registry.layout
        return {
            "devices": devices,
            "rooms": [layout.rooms[id_] for id_ in sorted(layout.rooms)],
            "groups": [layout.groups[id_] for id_ in sorted(layout.groups)],
            "scenes": hub.scenes.list_scenes(),
            "variables": sorted(names.list_variables()),
            "timers": sorted(names.list_timers()),
            "operations": sorted(
                f"{section}:{each}" for section, operations in names.operations.items() for each in operations or ()
            ),
            "ctx": list_methods(),
        }
