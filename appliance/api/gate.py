"""The gate: nobody gets past it without a key that reaches so far, not even to hear that a path does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sanic import HTTPResponse, Request
from sanic.exceptions import MethodNotAllowed, NotFound

from appliance.api.auth import Authenticator, bearer_of
from appliance.api.errors import answer_error
from appliance.api.route import Route
from appliance.api.routes.events import token_of_browser
from appliance.errors import LaresError


class Gate:
    """Asks every request for its key: before a route is entered, and before a path is called unknown."""

    def __init__(self, authenticator: Authenticator, routes: Iterable[Route]) -> None:
        self._authenticator = authenticator
        self._methods = [
            (re.compile(re.sub(r"<\w+>", "[^/]+", re.escape(route.path))), route.methods) for route in routes
        ]

    async def admit(self, request: Request, route: Route) -> None:
        """Let the request pass if its key may do what the route does; else raise what says why not."""
        if route.role is not None:
            principal = await self._authenticator.identify(_token_of(request, is_browser=route.is_websocket))
            principal.require(route.role)

    async def answer(self, request: Request, error: Exception) -> HTTPResponse:
        """The answer to a request that failed."""
        if isinstance(error, NotFound | MethodNotAllowed):
            error = await self._judge(request)
        return answer_error(request, error)

    async def _judge(self, request: Request) -> Exception:
        """What is wrong with a request that no route takes: its key, else its path, else its method.

        Sanic takes `/rooms/` for `/rooms` when the method is wrong, and forgets what methods a path with an id has.
        """
        try:
            await self._authenticator.identify(_token_of(request, is_browser=False))
        except LaresError as refusal:
            return refusal
        fitting = [methods for pattern, methods in self._methods if pattern.fullmatch(request.path)]
        if not fitting:
            return NotFound()
        return MethodNotAllowed(method=request.method, allowed_methods=sorted(set().union(*fitting)))


def _token_of(request: Request, *, is_browser: bool) -> str | None:
    token = bearer_of(request.headers.get("authorization"))
    return token_of_browser(request) if token is None and is_browser else token
