"""Devices: listed, read, put into rooms, commanded."""

from __future__ import annotations

from email.utils import format_datetime
from enum import StrEnum

from msgspec.structs import replace
from sanic import HTTPResponse

from appliance.adapters.dispatch import Dispatcher
from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.device_encoder import DeviceEncoder
from appliance.api.responses import Response, json_response
from appliance.api.route import Call, route
from appliance.api.validation import anything, body, list_of, member_of, nullable
from appliance.errors import UnfitValue
from appliance.home import json_shapes
from appliance.home.changes import AssignRoom, RenameDevice
from appliance.home.command_specs import check_stated
from appliance.home.registry import Registry
from appliance.home.texts import identifier, name
from appliance.store.change_queue import Changes
from appliance.tables.fields import Field
from appliance.tables.json_schema import TEXT, array_of

NAME_BODY = body("NamingRequest", {"name": Field(nullable(name))})
ASSIGNMENT_BODY = body("AssignmentRequest", {"room_id": Field(nullable(identifier))})


class Include(StrEnum):
    """What a device may be asked to hold beside its fields."""

    COMMANDS = "commands"


INCLUDE = {"include": Field(list_of(member_of(Include)), required=False)}
"""The query's parameter that asks for more of each device."""


PICTURE_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
}
"""So that a picture is nothing but a picture, whatever its announcer put into it, and no browser keeps it."""

ANY_PICTURE = "image/*"


class DevicesApi:
    """Handlers of the routes under `/devices`."""

    def __init__(self, registry: Registry, changes: Changes, dispatcher: Dispatcher, encoder: DeviceEncoder) -> None:
        self._registry = registry
        self._changes = changes
        self._dispatcher = dispatcher
        self._encoder = encoder

    @route(
        "GET",
        "/devices",
        Role.READ,
        array_of(json_shapes.DEVICE),
        query={"ids": Field(list_of(anything), required=False), **INCLUDE},
    )
    async def list_all(self, call: Call) -> HTTPResponse:
        """Every device by id, or those that the repeated query parameter ids names, in its order."""
        query = call.query()
        ids = query["ids"]
        found = self._registry.list_devices() if ids is None else self._registry.find_devices(ids)
        if query["include"]:
            return json_response(b"[%b]" % b",".join([self._encoder.encode_with_commands(each) for each in found]))
        return json_response(self._encoder.encode_list(found))

    @route("GET", "/devices/<device_id>", Role.READ, json_shapes.DEVICE, query=INCLUDE)
    async def get(self, call: Call, device_id: str) -> HTTPResponse:
        """One device."""
        device = self._registry.get_device(device_id)
        encode = self._encoder.encode_with_commands if call.query()["include"] else self._encoder.encode
        return json_response(encode(device))

    @route(
        "GET",
        "/devices/<device_id>/picture",
        Role.READ,
        {**TEXT, "format": "binary"},
        query={"attribute": Field(identifier, required=False)},
        media_type=ANY_PICTURE,
    )
    async def picture(self, call: Call, device_id: str) -> HTTPResponse:
        """The newest still picture of the device; of the attribute that the query names, where it shows several."""
        device = self._registry.get_device(device_id)
        found = await self._dispatcher.picture(device, call.query()["attribute"])
        taken = {"content-type": found.media_type, "last-modified": format_datetime(found.at, usegmt=True)}
        return Response(found.body, 200, {**taken, **PICTURE_HEADERS})

    @route("POST", "/devices/<device_id>/name", Role.WRITE, json_shapes.DEVICE, statuses=(200, 503), body=NAME_BODY)
    async def rename(self, call: Call, device_id: str) -> HTTPResponse:
        """Give the device the name that people use, or (null) take it away."""
        device = self._registry.get_device(device_id)
        fields = await call.body()
        edit = await self._changes.make(RenameDevice(device_id=device_id, name=fields["name"]))
        [current] = self._registry.find_devices([device_id]) or [device]
        return json_response(self._encoder.encode(replace(current, person_name=edit.names[device_id])))

    @route(
        "POST", "/devices/<device_id>/room", Role.WRITE, json_shapes.DEVICE, statuses=(200, 503), body=ASSIGNMENT_BODY
    )
    async def assign_room(self, call: Call, device_id: str) -> HTTPResponse:
        """Put the device into a room, or (null) into none."""
        device = self._registry.get_device(device_id)
        fields = await call.body()
        edit = await self._changes.make(AssignRoom(device_id=device_id, room_id=fields["room_id"]))
        [current] = self._registry.find_devices([device_id]) or [device]
        return json_response(self._encoder.encode(replace(current, room_id=edit.room_assignments[device_id])))

    @route(
        "POST",
        "/devices/<device_id>/command",
        Role.WRITE,
        schemas.DONE,
        statuses=(200, 501),
        body=json_shapes.ANY_COMMAND,
    )
    async def command(self, call: Call, device_id: str) -> HTTPResponse:
        """Send a command to the device and wait for its result."""
        device = self._registry.get_device(device_id)
        try:
            command = await call.body()
        except UnfitValue as unfit:
            check_stated(device.commands or (), unfit)
            raise
        [outcome] = await self._dispatcher.send([device], command, "device")
        if outcome.error is not None:
            raise outcome.error
        return json_response({"status": outcome.status})
