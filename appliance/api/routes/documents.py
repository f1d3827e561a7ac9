"""The documents that describe the API."""

from __future__ import annotations

import asyncio
from functools import cached_property

import orjson

from appliance.api.frames import FRAMES
from appliance.api.openapi import describe, describe_events
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route


class DocumentApi(ApiResource):
    """Handlers of `/openapi.json` and `/asyncapi.json`. Each document is created at its first request."""

    @route("GET", "/openapi.json", Role.READ, {"type": "object", "required": ["openapi", "info", "paths"]})
    async def show(self, call: Call) -> object:
        """Return the OpenAPI 3.1 document of every route."""
        return await asyncio.to_thread(lambda: self._openapi)

    @route("GET", "/asyncapi.json", Role.READ, {"type": "object", "required": ["asyncapi", "info", "channels"]})
    async def show_events(self, call: Call) -> object:
        """Return the AsyncAPI 3.0 document of the event stream: every frame, its fields, and when it is sent."""
        return self._asyncapi

    @cached_property
    def _openapi(self) -> bytes:
        return orjson.dumps(describe(self.parts.routes))

    @cached_property
    def _asyncapi(self) -> bytes:
        return orjson.dumps(describe_events(FRAMES))
