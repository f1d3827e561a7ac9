"""Rooms: named places, and commands to all that is in one."""

from __future__ import annotations

from sanic import HTTPResponse

from appliance.adapters.dispatch import Dispatcher
from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.device_encoder import DeviceEncoder
from appliance.api.responses import json_response, no_content
from appliance.api.route import Call, route
from appliance.api.validation import body
from appliance.home import json_shapes
from appliance.home.changes import PutRoom, RemoveRoom
from appliance.home.model import Room
from appliance.home.registry import Registry
from appliance.home.texts import identifier, name
from appliance.store.change_queue import Changes
from appliance.tables.fields import Field
from appliance.tables.json_schema import array_of

ROOM_BODY = body("RoomRequest", {"id": Field(identifier), "name": Field(name)})


class RoomsApi:
    """Handlers of the routes under `/rooms`."""

    def __init__(self, registry: Registry, changes: Changes, dispatcher: Dispatcher, encoder: DeviceEncoder) -> None:
        self._registry = registry
        self._changes = changes
        self._dispatcher = dispatcher
        self._encoder = encoder

    @route("GET", "/rooms", Role.READ, array_of(json_shapes.ROOM))
    async def list_all(self, call: Call) -> HTTPResponse:
        """Every room by id."""
        return json_response(json_shapes.ROOM.each(self._registry.list_rooms()))

    @route("POST", "/rooms", Role.WRITE, json_shapes.ROOM, statuses=(200, 503), body=ROOM_BODY)
    async def put(self, call: Call) -> HTTPResponse:
        """Create a room, or rename the one that has this id."""
        room = Room(**await call.body())
        await self._changes.make(PutRoom(room=room))
        return json_response(json_shapes.ROOM(room))

    @route("GET", "/rooms/<room_id>", Role.READ, json_shapes.ROOM)
    async def get(self, call: Call, room_id: str) -> HTTPResponse:
        """One room."""
        return json_response(json_shapes.ROOM(self._registry.get_room(room_id)))

    @route("DELETE", "/rooms/<room_id>", Role.WRITE, statuses=(204, 503))
    async def remove(self, call: Call, room_id: str) -> HTTPResponse:
        """Remove the room; its devices are in none afterwards."""
        await self._changes.make(RemoveRoom(room_id=room_id))
        return no_content()

    @route("GET", "/rooms/<room_id>/devices", Role.READ, array_of(json_shapes.DEVICE))
    async def list_devices(self, call: Call, room_id: str) -> HTTPResponse:
        """The devices in the room by id."""
        return json_response(self._encoder.encode_list(self._registry.list_room_devices(room_id)))

    @route("POST", "/rooms/<room_id>/command", Role.WRITE, array_of(schemas.OUTCOME), body=json_shapes.ANY_COMMAND)
    async def command(self, call: Call, room_id: str) -> HTTPResponse:
        """Send a command to every device in the room; each has its own result."""
        self._registry.get_room(room_id)
        command = await call.body()
        devices = self._registry.list_room_devices(room_id)
        outcomes = await self._dispatcher.send(devices, command, "room")
        return json_response(schemas.OUTCOME.each(outcomes))
