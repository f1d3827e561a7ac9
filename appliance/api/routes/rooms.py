"""Rooms, and commands to all devices in a room."""

from __future__ import annotations

from functools import partial

from appliance.api import schemas
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.api.validation import body_check
from appliance.home import json_shapes
from appliance.home.model import Room
from appliance.home.texts import identifier, name
from appliance.tables.fields import Field
from appliance.tables.json_schema import array_of

ROOM_BODY = body_check("RoomRequest", {"id": Field(identifier), "name": Field(name)})


class RoomsApi(ApiResource):
    """Handlers of the routes under `/rooms`."""

    @route("GET", "/rooms", Role.READ, array_of(json_shapes.ROOM), is_large=True)
    async def list_all(self, call: Call) -> object:
        """Return every room by id."""
        return self.hub.registry.list_rooms()

    @route("POST", "/rooms", Role.WRITE, json_shapes.ROOM, statuses=(200, 503), body=ROOM_BODY)
    async def put(self, call: Call) -> object:
        """Create a room, or rename the existing room."""
        room = Room(**await call.read_body())
        await self.hub.store.layout_changes.make(lambda layout, _: layout.put_room(room))
        return room

    @route("GET", "/rooms/<room_id>", Role.READ, json_shapes.ROOM)
    async def get(self, call: Call, room_id: str) -> object:
        """Return one room."""
        return self.hub.registry.get_room(room_id)

    @route("DELETE", "/rooms/<room_id>", Role.WRITE, statuses=(204, 503))
    async def remove(self, call: Call, room_id: str) -> None:
        """Remove the room. The devices in the room remain, without a room."""
        await self.hub.store.layout_changes.make(lambda layout, _: layout.remove_room(room_id))

    @route("GET", "/rooms/<room_id>/devices", Role.READ, array_of(json_shapes.DEVICE), is_large=True)
    async def list_devices(self, call: Call, room_id: str) -> object:
        """Return the devices in the room, sorted by id."""
        find = partial(self.hub.registry.list_room_devices, room_id)
        return await self.parts.encoder.encode_found(find, self.hub.clock, with_commands=False)

    @route("POST", "/rooms/<room_id>/command", Role.WRITE, array_of(schemas.OUTCOME), body=json_shapes.ANY_COMMAND)
    async def command(self, call: Call, room_id: str) -> object:
        """Send a command to every device in the room. Return a result for each device."""
        self.hub.registry.get_room(room_id)
        command = await call.read_body()
        return await self.hub.dispatcher.send(self.hub.registry.list_room_devices(room_id), command, "room")
