"""Rooms: named places, and commands to all that is in one."""

from __future__ import annotations

from sanic import HTTPResponse

from appliance.adapters.dispatch import Dispatcher
from appliance.api import device_schemas, schemas
from appliance.api.auth import Role
from appliance.api.device_encoder import DeviceEncoder
from appliance.api.responses import json_response, no_content
from appliance.api.route import Call, Route, routes_of
from appliance.api.shapes import array_of
from appliance.api.validation import body, identifier, name
from appliance.home.changes import PutRoom, RemoveRoom
from appliance.home.model import Room
from appliance.home.registry import Registry
from appliance.store.change_queue import Changes
from appliance.tables.fields import Field

ROOM_BODY = body("RoomRequest", {"id": Field(identifier), "name": Field(name)})


class RoomsApi:
    """What answers the routes under `/rooms`."""

    def __init__(self, registry: Registry, changes: Changes, dispatcher: Dispatcher, encoder: DeviceEncoder) -> None:
        self._registry = registry
        self._changes = changes
        self._dispatcher = dispatcher
        self._encoder = encoder

    async def list_all(self, call: Call) -> HTTPResponse:
        """Every room by id."""
        return json_response(schemas.ROOM.each(self._registry.list_rooms()))

    async def put(self, call: Call) -> HTTPResponse:
        """Create a room, or rename the one that has this id."""
        room = Room(**await call.body())
        await self._changes.make(PutRoom(room=room))
        return json_response(schemas.ROOM(room))

    async def get(self, call: Call, room_id: str) -> HTTPResponse:
        """One room."""
        return json_response(schemas.ROOM(self._registry.get_room(room_id)))

    async def remove(self, call: Call, room_id: str) -> HTTPResponse:
        """Remove the room; its devices are in none afterwards."""
        await self._changes.make(RemoveRoom(room_id=room_id))
        return no_content()

    async def list_devices(self, call: Call, room_id: str) -> HTTPResponse:
        """The devices in the room by id."""
        return json_response(self._encoder.encode_list(self._registry.list_room_devices(room_id)))

    async def command(self, call: Call, room_id: str) -> HTTPResponse:
        """Send a command to every device in the room; each has its own result."""
        self._registry.get_room(room_id)
        command = await call.body()
        devices = self._registry.list_room_devices(room_id)
        outcomes = await self._dispatcher.send(devices, command, "room")
        return json_response(schemas.OUTCOME.each(outcomes))


ROUTES = routes_of(
    RoomsApi,
    Route("GET", "/rooms", Role.READ, RoomsApi.list_all, (200,), array_of(schemas.ROOM)),
    Route("POST", "/rooms", Role.WRITE, RoomsApi.put, (200, 400, 413, 503), schemas.ROOM, body=ROOM_BODY),
    Route("GET", "/rooms/<room_id>", Role.READ, RoomsApi.get, (200, 404), schemas.ROOM),
    Route("DELETE", "/rooms/<room_id>", Role.WRITE, RoomsApi.remove, (204, 404, 503)),
    Route(
        "GET",
        "/rooms/<room_id>/devices",
        Role.READ,
        RoomsApi.list_devices,
        (200, 404),
        array_of(device_schemas.DEVICE),
    ),
    Route(
        "POST",
        "/rooms/<room_id>/command",
        Role.WRITE,
        RoomsApi.command,
        (200, 400, 404, 413),
        array_of(schemas.OUTCOME),
        body=device_schemas.ANY_COMMAND,
    ),
)
