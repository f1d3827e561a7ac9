"""The documents that describe the hub to programs: OpenAPI for every route, AsyncAPI for the event stream."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import orjson
from sanic import HTTPResponse

from appliance.api.asyncapi import describe_events
from appliance.api.auth import Role
from appliance.api.frames import FRAMES
from appliance.api.openapi import describe
from appliance.api.responses import json_response
from appliance.api.route import Call, Route, route


class DocumentApi:
    """Handlers of `/openapi.json` and `/asyncapi.json`; each document is made with its first request."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = tuple(routes)

    @route("GET", "/openapi.json", Role.READ, {"type": "object", "required": ["openapi", "info", "paths"]})
    async def show(self, call: Call) -> HTTPResponse:
        """The OpenAPI 3.1 document of every route."""
        return json_response(self._openapi)

    @route("GET", "/asyncapi.json", Role.READ, {"type": "object", "required": ["asyncapi", "info", "channels"]})
    async def show_events(self, call: Call) -> HTTPResponse:
        """The AsyncAPI 3.0 document of the event stream: every type of frame, its fields, and when it comes."""
        return json_response(self._asyncapi)

    @cached_property
    def _openapi(self) -> bytes:
        return orjson.dumps(describe(self._routes))

    @cached_property
    def _asyncapi(self) -> bytes:
        return orjson.dumps(describe_events(FRAMES))
