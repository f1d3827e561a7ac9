"""The timers that Lua started and that have not fired."""

from __future__ import annotations

from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.responses import json_response, no_content
from appliance.api.route import Call, route
from appliance.automations.timers import Timers as Parts
from appliance.tables.json_schema import array_of


class TimersApi:
    """Handlers of the routes under `/timers`."""

    def __init__(self, timers: Parts) -> None:
        self._timers = timers

    @route("GET", "/timers", Role.READ, array_of(schemas.TIMER))
    async def list_all(self, call: Call) -> HTTPResponse:
        """Every timer that is under way, by name."""
        return json_response(schemas.TIMER.each(self._timers.list_all()))

    @route("DELETE", "/timers/<name>", Role.WRITE, statuses=(204, 503))
    async def remove(self, call: Call, name: str) -> HTTPResponse:
        """Cancel the timer."""
        await self._timers.remove(name)
        return no_content()
