"""The gate: authorization of every request, before its route, and before 404 or 405 says which paths exist."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from sanic import HTTPResponse, Request
from sanic.exceptions import MethodNotAllowed, NotFound

from appliance.api.auth import ON_BOX, Authenticator, Principal, Role, bearer_of
from appliance.api.cors import Cors
from appliance.api.error_responses import error_response
from appliance.api.rate import Buckets
from appliance.api.route import Route
from appliance.errors import LaresError

_SUBPROTOCOL_PREFIX = "bearer."
"""What the sub-protocol that holds a browser's token begins with."""


class Gate:
    """Authorizes requests, counts them against the rate limit, and responds to those that fail or match no route."""

    def __init__(self, authenticator: Authenticator, buckets: Buckets, cors: Cors, routes: Iterable[Route]) -> None:
        self._authenticator = authenticator
        self._buckets = buckets
        self._cors = cors
        self._routes = [(route.path, route.methods) for route in routes]

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], frozenset[str]]]:
        """The methods of every path, as a pattern: for requests that match no route."""
        return [(re.compile(re.sub(r"<\w+>", "[^/]+", re.escape(path))), methods) for path, methods in self._routes]

    async def authorize(self, request: Request, route: Route, hook: str | None = None) -> Principal | None:
        """The principal of the request's token, None for a public route; counts a write against its rate limit.

        `hook` is the id of the hook that the path names.

        Raises `Unauthenticated`, `TooManyChecks`, `AuthenticationUnavailable`, `Forbidden` or `RateLimited`.
        """
        if route.role is None:
            return None
        principal = await self._identify(request, route)
        principal.require(route.role, hook)
        if route.is_rate_limited:
            self._buckets.take(principal.key_id)
        return principal

    async def _identify(self, request: Request, route: Route | None) -> Principal:
        """Over the control socket the peer's user decides, elsewhere the token; None is a request without a route."""
        exchange: Any = request.stream
        if exchange.is_on_box:
            return ON_BOX
        return await self._authenticator.identify(_token_of(request, route))

    def recheck(self, principal: Principal | None) -> None:
        """Raise `Unauthenticated` when the key was revoked since it was authorized."""
        if principal is not None:
            self._authenticator.recheck(principal)

    async def handle_error(self, request: Request, error: Exception) -> HTTPResponse:
        """The response to a request that failed, or to a CORS preflight."""
        if not isinstance(error, NotFound | MethodNotAllowed):
            return self._cors.add_headers(request, error_response(request, error))
        preflight = self._cors.preflight(request)
        if preflight is None:
            preflight = error_response(request, await self._explain_unmatched(request))
        return self._cors.add_headers(request, preflight)

    async def _explain_unmatched(self, request: Request) -> Exception:
        """What is wrong with a request that matches no route: its key, else its path, else its method.

        Sanic matches `/rooms/` to `/rooms` when the method is wrong, and loses the methods of a path with an id.
        """
        try:
            await self._identify(request, None)
        except LaresError as refusal:
            return refusal
        path = "*" if request.raw_url == b"*" else request.path  # Sanic routes it as "/"
        fixed = [methods for each, methods in self._routes if each == path]
        fitting = fixed or [methods for pattern, methods in self._patterns if pattern.fullmatch(path)]
        if not fitting:
            return NotFound()
        return MethodNotAllowed(method=request.method, allowed_methods=sorted(set().union(*fitting)))


def _token_of(request: Request, route: Route | None) -> str | None:
    """The token of the header; without one, that of the query where the client can do no other."""
    token = bearer_of(request.headers.get("authorization"))
    if token is not None or route is None:
        return token
    if route.role is Role.HOOK:
        return request.args.get("token")  # type: ignore[no-any-return]
    return _token_of_browser(request) if route.is_websocket else None


def _token_of_browser(request: Request) -> str | None:
    """The token of a client that cannot set a header: as a sub-protocol or in the query, percent-encoded."""
    offered = ",".join(request.headers.getall("sec-websocket-protocol", []))
    for name in offered.split(","):
        if name.strip().startswith(_SUBPROTOCOL_PREFIX):
            return unquote(name.strip().removeprefix(_SUBPROTOCOL_PREFIX))
    token: str | None = request.args.get("token")
    return token
