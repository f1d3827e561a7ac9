"""Groups of devices, and commands to all devices of a group."""

from __future__ import annotations

from functools import partial

from appliance.api import schemas
from appliance.api.responses import encode_list
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.api.validation import body_check, list_of
from appliance.home import json_shapes
from appliance.home.texts import identifier, name
from appliance.tables.fields import Field
from appliance.tables.json_schema import array_of

GROUP_BODY = body_check(
    "GroupRequest",
    {"id": Field(identifier), "name": Field(name), "members": Field(list_of(identifier), required=False)},
)
MEMBERS_BODY = body_check("MembersRequest", {"members": Field(list_of(identifier))})


class GroupsApi(ApiResource):
    """Handlers of the routes under `/groups`."""

    @route("GET", "/groups", Role.READ, array_of(json_shapes.GROUP), is_large=True)
    async def list_all(self, call: Call) -> object:
        """Return every group by id."""
        return await encode_list(self.hub.clock, json_shapes.GROUP, self.hub.registry.list_groups())

    @route("POST", "/groups", Role.WRITE, json_shapes.GROUP, statuses=(200, 503), body=GROUP_BODY)
    async def put(self, call: Call) -> object:
        """Create a group, or change the existing group. If `members` is missing, the group keeps its members."""
        group_id, label, members = (await call.read_body()).values()
        make = self.hub.store.layout_changes.make
        layout = await make(lambda layout, devices: layout.put_group(group_id, label, members, devices))
        return layout.groups[group_id]

    @route("GET", "/groups/<group_id>", Role.READ, json_shapes.GROUP)
    async def get(self, call: Call, group_id: str) -> object:
        """Return one group."""
        return self.hub.registry.get_group(group_id)

    @route("DELETE", "/groups/<group_id>", Role.WRITE, statuses=(204, 503))
    async def remove(self, call: Call, group_id: str) -> None:
        """Remove the group. Its devices remain."""
        await self.hub.store.layout_changes.make(lambda layout, _: layout.remove_group(group_id))

    @route(
        "POST", "/groups/<group_id>/members", Role.WRITE, json_shapes.GROUP, statuses=(200, 503), body=MEMBERS_BODY
    )
    async def set_members(self, call: Call, group_id: str) -> object:
        """Replace the group's members."""
        self.hub.registry.get_group(group_id)
        members, make = (await call.read_body())["members"], self.hub.store.layout_changes.make
        layout = await make(lambda layout, devices: layout.set_members(group_id, members, devices))
        return layout.groups[group_id]

    @route("GET", "/groups/<group_id>/devices", Role.READ, array_of(json_shapes.DEVICE), is_large=True)
    async def list_devices(self, call: Call, group_id: str) -> object:
        """Return the group's devices that currently exist, in membership order."""
        find = partial(self.hub.registry.list_group_devices, group_id)
        return await self.parts.encoder.encode_found(find, self.hub.clock, with_commands=False)

    @route("POST", "/groups/<group_id>/command", Role.WRITE, array_of(schemas.OUTCOME), body=json_shapes.ANY_COMMAND)
    async def command(self, call: Call, group_id: str) -> object:
        """Send a command to every device in the group. Return a result for each device."""
        self.hub.registry.get_group(group_id)
        command = await call.read_body()
        return await self.hub.dispatcher.send(self.hub.registry.list_group_devices(group_id), command, "group")
