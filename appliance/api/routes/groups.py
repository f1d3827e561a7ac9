"""Groups: chosen sets of devices, and commands to all of one."""

from __future__ import annotations

from sanic import HTTPResponse

from appliance.adapters.dispatch import Dispatcher
from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.device_encoder import DeviceEncoder
from appliance.api.responses import json_response, no_content
from appliance.api.route import Call, route
from appliance.api.validation import body, list_of
from appliance.home import json_shapes
from appliance.home.changes import PutGroup, RemoveGroup, SetMembers
from appliance.home.layout import Edit
from appliance.home.model import Group
from appliance.home.registry import Registry
from appliance.home.texts import identifier, name
from appliance.store.change_queue import Changes
from appliance.tables.fields import Field
from appliance.tables.json_schema import array_of

GROUP_BODY = body(
    "GroupRequest",
    {"id": Field(identifier), "name": Field(name), "members": Field(list_of(identifier), required=False)},
)
MEMBERS_BODY = body("MembersRequest", {"members": Field(list_of(identifier))})


class GroupsApi:
    """Handlers of the routes under `/groups`."""

    def __init__(self, registry: Registry, changes: Changes, dispatcher: Dispatcher, encoder: DeviceEncoder) -> None:
        self._registry = registry
        self._changes = changes
        self._dispatcher = dispatcher
        self._encoder = encoder

    @route("GET", "/groups", Role.READ, array_of(json_shapes.GROUP))
    async def list_all(self, call: Call) -> HTTPResponse:
        """Every group by id."""
        return json_response(json_shapes.GROUP.each(self._registry.list_groups()))

    @route("POST", "/groups", Role.WRITE, json_shapes.GROUP, statuses=(200, 503), body=GROUP_BODY)
    async def put(self, call: Call) -> HTTPResponse:
        """Create a group, or change the one that has this id; members left out stay as they are."""
        fields = await call.body()
        change = PutGroup(group_id=fields["id"], name=fields["name"], members=fields["members"])
        edit = await self._changes.make(change)
        return json_response(json_shapes.GROUP(_group_of(edit)))

    @route("GET", "/groups/<group_id>", Role.READ, json_shapes.GROUP)
    async def get(self, call: Call, group_id: str) -> HTTPResponse:
        """One group."""
        return json_response(json_shapes.GROUP(self._registry.get_group(group_id)))

    @route("DELETE", "/groups/<group_id>", Role.WRITE, statuses=(204, 503))
    async def remove(self, call: Call, group_id: str) -> HTTPResponse:
        """Remove the group; its devices stay."""
        await self._changes.make(RemoveGroup(group_id=group_id))
        return no_content()

    @route(
        "POST", "/groups/<group_id>/members", Role.WRITE, json_shapes.GROUP, statuses=(200, 503), body=MEMBERS_BODY
    )
    async def set_members(self, call: Call, group_id: str) -> HTTPResponse:
        """Replace the group's members."""
        self._registry.get_group(group_id)
        fields = await call.body()
        edit = await self._changes.make(SetMembers(group_id=group_id, members=fields["members"]))
        return json_response(json_shapes.GROUP(_group_of(edit)))

    @route("GET", "/groups/<group_id>/devices", Role.READ, array_of(json_shapes.DEVICE))
    async def list_devices(self, call: Call, group_id: str) -> HTTPResponse:
        """The group's devices that exist at present, in membership order."""
        return json_response(self._encoder.encode_list(self._registry.list_group_devices(group_id)))

    @route("POST", "/groups/<group_id>/command", Role.WRITE, array_of(schemas.OUTCOME), body=json_shapes.ANY_COMMAND)
    async def command(self, call: Call, group_id: str) -> HTTPResponse:
        """Send a command to every device of the group; each has its own result."""
        self._registry.get_group(group_id)
        command = await call.body()
        devices = self._registry.list_group_devices(group_id)
        outcomes = await self._dispatcher.send(devices, command, "group")
        return json_response(schemas.OUTCOME.each(outcomes))


def _group_of(edit: Edit) -> Group:
    """The one group that the change has put."""
    [group] = (each for each in edit.groups.values() if each is not None)
    return group
