"""Scripts, the modules that scenes and automations require."""

from __future__ import annotations

from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.lua.reload import Reloader


class ScriptsApi:
    """Handlers of the routes under `/scripts`."""

    def __init__(self, reloader: Reloader) -> None:
        self._reloader = reloader

    @route("POST", "/scripts/reload", Role.ADMIN, schemas.RELOADED)
    async def reload(self, call: Call) -> HTTPResponse:
        """Compile every script and list all faults. Executions read scripts when they require them."""
        return json_response(schemas.RELOADED(await self._reloader.reload()))
