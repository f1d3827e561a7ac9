"""Devices: listed, read, put into rooms, commanded."""

from __future__ import annotations

from dataclasses import replace

from sanic import HTTPResponse

from appliance.adapters.dispatch import Dispatcher, Status
from appliance.api import payloads, schemas
from appliance.api.answers import json_answer
from appliance.api.auth import Role
from appliance.api.payloads import DeviceEncoder
from appliance.api.route import Call, Route
from appliance.api.shapes import Field, anything, array_of, list_of
from appliance.errors import Invalid, Unsupported
from appliance.home.changes import AssignRoom
from appliance.home.registry import Registry
from appliance.store.changes import Changes


class Devices:
    """What answers the routes under `/devices`."""

    def __init__(
        self, registry: Registry, changes: Changes, dispatcher: Dispatcher, encoder: DeviceEncoder
    ) -> None:
        self._registry = registry
        self._changes = changes
        self._dispatcher = dispatcher
        self._encoder = encoder

    async def list_all(self, call: Call) -> HTTPResponse:
        """Every device by id, or those that `ids` names, in that order."""
        ids = call.query()["ids"]
        found = self._registry.list_devices() if ids is None else self._registry.find_devices(ids)
        return json_answer(self._encoder.encode_list(found))

    async def get(self, call: Call, device_id: str) -> HTTPResponse:
        """One device."""
        return json_answer(self._encoder.encode(self._registry.get_device(device_id)))

    async def assign_room(self, call: Call, device_id: str) -> HTTPResponse:
        """Put the device into a room, or into none; the answer is the device."""
        device = self._registry.get_device(device_id)
        fields = await call.body()
        order = await self._changes.make(AssignRoom(device_id=device_id, room_id=fields["room_id"]))
        [current] = self._registry.find_devices([device_id]) or [device]
        return json_answer(self._encoder.encode(replace(current, room_id=order.places.get(device_id))))

    async def command(self, call: Call, device_id: str) -> HTTPResponse:
        """Command the device, and answer when it has shown the result."""
        device = self._registry.get_device(device_id)
        [outcome] = await self._dispatcher.send([device], await call.body())
        if outcome.status is Status.UNSUPPORTED:
            raise Unsupported(outcome.message)
        if outcome.status is Status.ERROR:
            raise Invalid(outcome.message)
        return json_answer({"status": outcome.status})


ROUTES = (
    Route(
        method="GET",
        path="/devices",
        role=Role.READ,
        handler=Devices.list_all,
        answers=(200,),
        holds=array_of(schemas.DEVICE),
        query={"ids": Field(check=list_of(anything), required=False)},
        summary="Every device by id, or those that the repeated query parameter ids names, in its order.",
    ),
    Route(
        method="GET",
        path="/devices/<device_id>",
        role=Role.READ,
        handler=Devices.get,
        answers=(200, 404),
        holds=schemas.DEVICE,
        summary="One device.",
    ),
    Route(
        method="POST",
        path="/devices/<device_id>/room",
        role=Role.WRITE,
        handler=Devices.assign_room,
        answers=(200, 400, 404, 413, 503),
        holds=schemas.DEVICE,
        body=payloads.ASSIGNMENT,
        summary="Put the device into a room, or (null) into none.",
    ),
    Route(
        method="POST",
        path="/devices/<device_id>/command",
        role=Role.WRITE,
        handler=Devices.command,
        answers=(200, 400, 404, 413, 501),
        holds=schemas.DONE,
        body=schemas.COMMAND,
        summary="Send a command to the device and wait for its result.",
    ),
)
