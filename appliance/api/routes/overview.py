"""The overview: all that a dashboard shows at first, as it is at one moment, in one answer."""

from __future__ import annotations

import orjson
from sanic import HTTPResponse

from appliance.api import payloads, schemas
from appliance.api.auth import Role
from appliance.api.payloads import DeviceEncoder
from appliance.api.responses import json_response
from appliance.api.route import Call, Route, routes_of
from appliance.api.validation import TEXT, array_of, one_of, record
from appliance.automations.automations import Automations
from appliance.health import Health
from appliance.home import plain
from appliance.home.registry import Registry
from appliance.scenes import Scenes
from appliance.version import VERSION

CALLER = record("Caller", key_id=TEXT, role=one_of(*Role))

OVERVIEW = record(
    "Overview",
    version=TEXT,
    caller=CALLER,
    rooms=array_of(schemas.ROOM),
    groups=array_of(schemas.GROUP),
    scenes=array_of(schemas.SCENE),
    automations=array_of(schemas.AUTOMATION),
    adapters=array_of(schemas.ADAPTER),
    devices=array_of(schemas.DEVICE),
)


class Overview:
    """What answers `/overview`."""

    def __init__(
        self, registry: Registry, health: Health, scenes: Scenes, automations: Automations, encoder: DeviceEncoder
    ) -> None:
        self._registry = registry
        self._health = health
        self._scenes = scenes
        self._automations = automations
        self._encoder = encoder

    async def show(self, call: Call) -> HTTPResponse:
        """The home, and whose key asks; nothing can change between two parts of it."""
        assert call.principal is not None
        head = {
            "version": VERSION,
            "caller": {"key_id": call.principal.key_id, "role": call.principal.role},
            "rooms": [plain.room(each) for each in self._registry.list_rooms()],
            "groups": [plain.group(each) for each in self._registry.list_groups()],
            "scenes": [payloads.scene(each) for each in self._scenes.list_scenes()],
            "automations": [payloads.automation(each) for each in self._automations.list_views()],
            "adapters": [{"name": each.name, "status": each.status} for each in self._health.list_adapters()],
        }
        devices = b",".join([self._encoder.encode_with_commands(each) for each in self._registry.list_devices()])
        return json_response(b'%b,"devices":[%b]}' % (orjson.dumps(head)[:-1], devices))


ROUTES = routes_of(
    Overview,
    Route(
        method="GET",
        path="/overview",
        role=Role.READ,
        handler=Overview.show,
        statuses=(200,),
        response_schema=OVERVIEW,
        summary="Devices, rooms, groups, scenes, automations and adapters at one moment, and the role of the key.",
    ),
)
