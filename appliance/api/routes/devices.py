"""Devices: list, read, rename, place, and command them, and find the automations and scenes that use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from email.utils import format_datetime
from enum import StrEnum
from functools import partial
from typing import Any

from appliance.api import schemas
from appliance.api.responses import Response
from appliance.api.roles import Role
from appliance.api.route import ApiParts, ApiResource, Call, route
from appliance.api.validation import any_text, body_check, list_of, member_of, nullable
from appliance.errors import UnfitValue
from appliance.event_loop import wait_for_short_turn
from appliance.home import json_shapes
from appliance.home.command_specs import check_device_range
from appliance.home.layout import Change
from appliance.home.model import Device
from appliance.home.texts import alias, identifier, name
from appliance.lua.files.catalog import LoadedFile
from appliance.tables.fields import Field
from appliance.tables.json_schema import TEXT, array_of, record
from appliance.tasks import SharedRun, Tasks

NAME_BODY = body_check("NamingRequest", {"name": Field(nullable(name))})
ALIAS_BODY = body_check("AliasRequest", {"alias": Field(nullable(alias))})
ASSIGNMENT_BODY = body_check("AssignmentRequest", {"room_id": Field(nullable(identifier))})


class Include(StrEnum):
    """Additional device fields that a client can request."""

    COMMANDS = "commands"


INCLUDE = {"include": Field(list_of(member_of(Include)), required=False)}
"""The query parameter that requests additional fields of each device."""

_IDS = {"ids": Field(list_of(any_text), required=False)}

PICTURE_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
}
"""Headers for pictures from unknown senders. Browsers show the bytes only as a picture, and do not store them."""

_PICTURE_QUERY = {"attribute": Field(identifier, required=False)}
_USES = record("Uses", device_id=TEXT, automations=array_of(TEXT), scenes=array_of(TEXT))


class DevicesApi(ApiResource):
    """Handlers of the routes under `/devices`."""

    def __init__(self, parts: ApiParts) -> None:
        super().__init__(parts)
        self._with_commands = SharedRun(self._encode_with_commands, Tasks(), "devices with commands")

    @route("GET", "/devices", Role.READ, array_of(json_shapes.DEVICE), query={**_IDS, **INCLUDE})
    async def list_all(self, call: Call) -> object:
        """Return every device by id, or only the devices in the repeated query parameter `ids`, in this order."""
        query, registry = call.query(), self.hub.registry
        ids, with_commands = query["ids"], bool(query["include"])
        if ids is None:
            return await (self._with_commands.result() if with_commands else self._encode(registry.list_devices))
        async with self.parts.unsent.room_for_answer():
            return await self._encode(partial(registry.find_devices, ids), with_commands=with_commands)

    async def _encode(self, find: Callable[[], Sequence[Device]], *, with_commands: bool = False) -> bytes:
        return await self.parts.encoder.encode_found(find, self.hub.clock, with_commands=with_commands)

    async def _encode_with_commands(self) -> bytes:
        async with self.parts.unsent.room_for_answer():
            return await self._encode(self.hub.registry.list_devices, with_commands=True)

    @route("GET", "/devices/<device_id>", Role.READ, json_shapes.DEVICE, query=INCLUDE)
    async def get(self, call: Call, device_id: str) -> object:
        """Return one device."""
        device, encoder = self.hub.registry.get_device(device_id), self.parts.encoder
        return (encoder.encode_with_commands if call.query()["include"] else encoder.encode)(device)

    @route(
        "GET", "/devices/<device_id>/picture", Role.READ, schemas.BINARY, query=_PICTURE_QUERY, media_type="image/*"
    )
    async def picture(self, call: Call, device_id: str) -> object:
        """Return the device's newest still picture, or the picture of the attribute in the query."""
        device = self.hub.registry.get_device(device_id)
        found = await self.hub.dispatcher.picture(device, call.query()["attribute"])
        await wait_for_short_turn()  # the copies for several clients would make one turn long
        taken = {"content-type": found.media_type, "last-modified": format_datetime(found.at, usegmt=True)}
        return Response(found.body, 200, {**taken, **PICTURE_HEADERS})

    @route("POST", "/devices/<device_id>/name", Role.WRITE, json_shapes.DEVICE, statuses=(200, 503), body=NAME_BODY)
    async def rename(self, call: Call, device_id: str) -> object:
        """Give the device a name for people. null restores the vendor's name."""
        device = self.hub.registry.get_device(device_id)
        name = (await call.read_body())["name"]
        changed = await self._change(device, lambda layout, devices: layout.rename_device(device_id, name, devices))
        return self.parts.encoder.encode(changed)

    @route(
        "POST",
        "/devices/<device_id>/alias",
        Role.WRITE,
        json_shapes.DEVICE,
        statuses=(200, 409, 503),
        body=ALIAS_BODY,
    )
    async def set_alias(self, call: Call, device_id: str) -> object:
        """Give the device a short id that can replace its id everywhere. null removes the short id."""
        device = self.hub.registry.get_kept(device_id)
        alias = (await call.read_body())["alias"]
        changed = await self._change(device, lambda layout, devices: layout.set_alias(device_id, alias, devices))
        return self.parts.encoder.encode(changed)

    @route(
        "POST", "/devices/<device_id>/room", Role.WRITE, json_shapes.DEVICE, statuses=(200, 503), body=ASSIGNMENT_BODY
    )
    async def assign_room(self, call: Call, device_id: str) -> object:
        """Move the device to a room. null removes it from its room."""
        device = self.hub.registry.get_device(device_id)
        room_id = (await call.read_body())["room_id"]
        changed = await self._change(device, lambda layout, devices: layout.assign_room(device_id, room_id, devices))
        return self.parts.encoder.encode(changed)

    async def _change(self, device: Device, change: Change) -> Device:
        """Make the change. Return the device in its current state with the new layout. If the device was removed
        meanwhile, return the given device with the new layout."""
        layout = await self.hub.store.layout_changes.make(change)
        return layout.apply_to(self.hub.registry.find_device(device.id) or device)

    @route(
        "POST",
        "/devices/<device_id>/command",
        Role.WRITE,
        schemas.DONE,
        statuses=(200, 501),
        body=json_shapes.ANY_COMMAND,
    )
    async def command(self, call: Call, device_id: str) -> object:
        """Send a command to the device and wait for its result."""
        device = self.hub.registry.get_device(device_id)
        try:
            command = await call.read_body()
        except UnfitValue as unfit:
            check_device_range(device.commands or (), unfit)
            raise
        [outcome] = await self.hub.dispatcher.send([device], command, "device")
        if outcome.error is not None:
            try:
                raise outcome.error
            finally:
                del outcome  # a variable that refers to a raised exception forms a cycle with its traceback
        return {"status": outcome.status}


class UsesApi(ApiResource):
    """Handler of `/devices/{id}/uses`."""

    @route("GET", "/devices/<device_id>/uses", Role.READ, _USES)
    async def show(self, call: Call, device_id: str) -> object:
        """Return the automations and scenes whose files name the device."""
        device = self.hub.registry.get_device(device_id)
        automations, scenes = self.hub.automations.catalog.list_files(), self.hub.scenes.catalog.list_files()
        found = {"automations": _naming(device, automations), "scenes": _naming(device, scenes)}
        return {"device_id": device_id, **found}


def _naming(device: Device, files: Iterable[LoadedFile[Any]]) -> list[str]:
    words = [device.id] if device.alias is None else [device.id, device.alias]
    quoted = [quote + word.encode() + quote for quote in (b'"', b"'") for word in words]
    return [file.definition.id for file in files if any(each in file.source.text for each in quoted)]
