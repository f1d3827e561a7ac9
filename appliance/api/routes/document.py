"""The OpenAPI document, which tells programs what all the other routes are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import orjson
from sanic import HTTPResponse

from appliance.api.answers import json_answer
from appliance.api.auth import Role
from appliance.api.openapi import describe
from appliance.api.route import Call, Route


class Document:
    """What answers `/openapi.json`: the routes described, once, when somebody first asks."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = tuple(routes)

    async def show(self, call: Call) -> HTTPResponse:
        """The document."""
        return json_answer(self._encoded)

    @cached_property
    def _encoded(self) -> bytes:
        return orjson.dumps(describe(self._routes))


ROUTES = (
    Route(
        method="GET",
        path="/openapi.json",
        role=Role.READ,
        handler=Document.show,
        answers=(200,),
        holds={"type": "object", "required": ["openapi", "info", "paths"]},
        summary="The OpenAPI 3.1 document of every route.",
    ),
)
