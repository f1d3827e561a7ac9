"""The overview: all that a dashboard shows at first, as it is at one moment, in one answer."""

from __future__ import annotations

import orjson
from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.device_encoder import DeviceEncoder
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.api.routes.preferences import read_preferences
from appliance.automations.automations import Automations
from appliance.health import Health
from appliance.home import json_shapes
from appliance.home.capabilities import UNITS
from appliance.home.registry import Registry
from appliance.scenes import Scenes
from appliance.store.document import Document
from appliance.tables.json_schema import OBJECT, TEXT, array_of, one_of, record
from appliance.version import VERSION

CALLER = record("Caller", key_id=TEXT, role=one_of(*Role))

OVERVIEW = record(
    "Overview",
    version=TEXT,
    caller=CALLER,
    preferences=OBJECT,
    units={"type": "object", "additionalProperties": TEXT, "description": "Of each capability that has one."},
    rooms=array_of(json_shapes.ROOM),
    groups=array_of(json_shapes.GROUP),
    scenes=array_of(schemas.SCENE),
    automations=array_of(schemas.AUTOMATION),
    adapters=array_of(schemas.ADAPTER),
    devices=array_of(json_shapes.DEVICE),
)


class OverviewApi:
    """Handler of `/overview`."""

    def __init__(
        self,
        registry: Registry,
        health: Health,
        scenes: Scenes,
        automations: Automations,
        document: Document,
        encoder: DeviceEncoder,
    ) -> None:
        self._registry = registry
        self._health = health
        self._scenes = scenes
        self._automations = automations
        self._document = document
        self._encoder = encoder

    @route("GET", "/overview", Role.READ, OVERVIEW)
    async def show(self, call: Call) -> HTTPResponse:
        """The home at one moment, and the role and the preferences of the key."""
        assert call.principal is not None
        head = OVERVIEW.of(
            version=VERSION,
            caller=call.principal,
            preferences=read_preferences(self._document, call.principal.key_id),
            units=UNITS,
            rooms=self._registry.list_rooms(),
            groups=self._registry.list_groups(),
            scenes=self._scenes.list_scenes(),
            automations=self._automations.list_views(),
            adapters=self._health.list_adapters(),
            devices=[],
        )
        devices = b",".join([self._encoder.encode_with_commands(each) for each in self._registry.list_devices()])
        return json_response(b"%b%b]}" % (orjson.dumps(head).removesuffix(b"]}"), devices))
