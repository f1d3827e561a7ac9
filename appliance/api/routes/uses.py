"""Uses: which automations and scenes have to do with a device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sanic import HTTPResponse

from appliance.api.auth import Role
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.automations.automations import Automations
from appliance.home.registry import Registry
from appliance.lua.lua_catalog import Asset
from appliance.scenes import Scenes
from appliance.tables.json_schema import TEXT, array_of, record

USES = record("Uses", device_id=TEXT, automations=array_of(TEXT), scenes=array_of(TEXT))


class UsesApi:
    """Handler of `/devices/{id}/uses`."""

    def __init__(self, registry: Registry, automations: Automations, scenes: Scenes) -> None:
        self._registry = registry
        self._automations = automations
        self._scenes = scenes

    @route("GET", "/devices/<device_id>/uses", Role.READ, USES)
    async def show(self, call: Call, device_id: str) -> HTTPResponse:
        """The automations and scenes whose files name the device."""
        self._registry.get_device(device_id)
        found = USES.of(
            device_id=device_id,
            automations=_naming(device_id, self._automations.catalog.list_assets()),
            scenes=_naming(device_id, self._scenes.catalog.list_assets()),
        )
        return json_response(found)


def _naming(device_id: str, assets: Iterable[Asset[Any]]) -> list[str]:
    quoted = [quote + device_id.encode() + quote for quote in (b'"', b"'")]
    return [asset.definition.id for asset in assets if any(each in asset.source.text for each in quoted)]
