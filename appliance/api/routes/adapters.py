"""Adapters: which run, and how well."""

from __future__ import annotations

from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.health import Health
from appliance.tables.json_schema import array_of


class AdaptersApi:
    """Handlers of the routes under `/adapters`."""

    def __init__(self, health: Health) -> None:
        self._health = health

    @route("GET", "/adapters", Role.READ, array_of(schemas.ADAPTER))
    async def list_all(self, call: Call) -> HTTPResponse:
        """Every enabled adapter by name, with its status: starting, running or degraded."""
        return json_response(schemas.ADAPTER.each(self._health.list_adapters()))

    @route("GET", "/adapters/<name>", Role.READ, schemas.ADAPTER_IN_FULL)
    async def get(self, call: Call, name: str) -> HTTPResponse:
        """One adapter: how it does, when it last did well, and what was wrong last."""
        return json_response(schemas.ADAPTER_IN_FULL(self._health.get_adapter(name)))
