"""Adapters: which run, and how well."""

from __future__ import annotations

from msgspec.structs import replace
from sanic import HTTPResponse

from appliance.adapters.dispatch import Dispatcher
from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.api.validation import table
from appliance.health import Health
from appliance.lua.reload import Reloader
from appliance.tables.json_schema import ANY, array_of, only, record

_RESULT = record("OperationResult", status=only("ok"), result=ANY)


class AdaptersApi:
    """Handlers of the routes under `/adapters`."""

    def __init__(self, health: Health, dispatcher: Dispatcher, reloader: Reloader) -> None:
        self._health = health
        self._reloader = reloader
        self._dispatcher = dispatcher

    @route("GET", "/adapters", Role.READ, array_of(schemas.ADAPTER))
    async def list_all(self, call: Call) -> HTTPResponse:
        """Every enabled adapter by name, with its status: starting, running or degraded."""
        return json_response(schemas.ADAPTER.each(self._health.list_adapters()))

    @route("POST", "/adapters/reload", Role.ADMIN, schemas.RELOADED)
    async def reload(self, call: Call) -> HTTPResponse:
        """Read the Lua files of kinds anew. Each that is sound is in force; one with a fault changes nothing."""
        return json_response(schemas.RELOADED(await self._reloader.reload()))

    @route("GET", "/adapters/<name>", Role.READ, schemas.ADAPTER_IN_FULL)
    async def get(self, call: Call, name: str) -> HTTPResponse:
        """One adapter: how it does, when it last did well, what was wrong last, and its own operations."""
        health = replace(self._health.get_adapter(name), operations=self._dispatcher.operations_of(name))
        return json_response(schemas.ADAPTER_IN_FULL(health))

    @route(
        "POST",
        "/adapters/<name>/operations/<operation>",
        Role.ADMIN,
        _RESULT,
        statuses=(200, 501, 503),
        body=table,
        body_optional=True,
    )
    async def run_operation(self, call: Call, name: str, operation: str) -> HTTPResponse:
        """Run one of the adapter's own operations with the body as its payload, as `ctx:invoke` does."""
        payload = await call.body()
        self._health.get_adapter(name)
        return json_response(_RESULT.of(result=await self._dispatcher.invoke(f"{name}:{operation}", payload)))
