"""Processes each request: finds the route, authorizes the request, calls the handler, and counts the response.

The first failed check decides the status: key (401), role (403), path and method (404, 405), rate (429), resource
(404), body. Without a valid key, every path returns 401, so that paths cannot be probed.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from functools import partial

from sanic import HTTPResponse, Request
from sanic.exceptions import MethodNotAllowed, NotFound

from appliance.api.authenticator import Authenticator
from appliance.api.body import Bodies
from appliance.api.cors import Cors
from appliance.api.error_responses import error_response, response_status
from appliance.api.http_server.connection import connection_of
from appliance.api.http_server.http1 import http1_of
from appliance.api.http_server.unsent_bytes import UnsentBytes
from appliance.api.limits import ApiLimits
from appliance.api.rate_limit import Buckets
from appliance.api.request_counts import UNMATCHED, RequestCounts
from appliance.api.request_token import token_of
from appliance.api.responses import to_response
from appliance.api.roles import ON_BOX, Principal, Role
from appliance.api.route import Call, Route
from appliance.api.router import Router
from appliance.api.wrong_key_log import WrongKeyLog
from appliance.errors import Unauthenticated
from appliance.event_loop import wait_for_short_turn

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that the role `read` may use, because they change nothing."""


class Gate:
    """Responds to requests: authorizes them, counts writes against the rate limit, and calls the handlers of their
    routes."""

    def __init__(
        self,
        router: Router,
        authenticator: Authenticator,
        buckets: Buckets,
        cors: Cors,
        limits: ApiLimits,
        counts: RequestCounts,
        unsent: UnsentBytes,
    ) -> None:
        self._router = router
        self._authenticator = authenticator
        self._buckets = buckets
        self._cors = cors
        self._bodies = Bodies(limits)
        self._counts = counts
        self._unsent = unsent
        self._wrong_keys = WrongKeyLog()

    async def respond(self, request: Request) -> HTTPResponse | None:
        """Return the response to the request, or None for a WebSocket. If this function raises an error,
        `handle_error` creates the response.

        The request is counted and timed. A request whose client disconnects before the response is counted as 499.
        """
        path = "*" if request.raw_url == b"*" else request.path  # `request.path` would be "/" here
        route: Route | None = None
        loop, status = asyncio.get_running_loop(), 500
        began = loop.time()
        try:
            try:
                route, ids = self._router.find(request.method, path)
            except (NotFound, MethodNotAllowed):
                response = self._cors.preflight(request)
                if response is None:
                    await self._admit(request, None)
                    raise
            else:
                response = await self._call(request, route, ids)
            if response is None:
                status = 101
                return None
            status = response.status
            return self._cors.add_headers(request, response)
        except asyncio.CancelledError:
            status = 499
            raise
        except Exception as error:
            status = response_status(error)
            raise
        finally:
            if route is None:
                self._counts.add(request.method, UNMATCHED, status)
            else:
                took = None if route.is_websocket else loop.time() - began
                self._counts.add(request.method, route.path, status, took)

    async def _call(self, request: Request, route: Route, ids: dict[str, str]) -> HTTPResponse | None:
        """Authorize the request, and call the route's handler. Return None for a WebSocket."""
        if route.role is not None:
            await wait_for_short_turn()
        principal = await self._admit(request, route, ids.get("hook_id"))
        recheck = partial(self._authenticator.recheck, principal)
        call = Call(request=request, route=route, bodies=self._bodies, principal=principal, recheck=recheck)
        async with self._unsent.room_for_answer(is_slow=route.is_slow) if route.is_large else nullcontext():
            result = await route.handler(call, **ids)
            return None if route.is_websocket else to_response(result, route.response_schema)

    async def _admit(self, request: Request, route: Route | None, hook: str | None = None) -> Principal | None:
        """Return the principal of the request's key, or None for a public route. Check the key (401), the role (403),
        and the rate limit (429), in this order.

        `route` is None if no route matches. `hook` is the id of the hook in the path. Raise `Unauthenticated`,
        `TooManyChecks`, `AuthenticationUnavailable`, `Forbidden`, or `RateLimited` on failure.
        """
        if route is None:
            role = Role.READ if request.method in SAFE_METHODS else Role.WRITE
        elif route.role is None:
            return None
        else:
            role = route.role
        principal = await self._identify(request, route)
        principal.require_role(role, hook)
        if route is not None and route.is_rate_limited:
            self._buckets.take(principal.key_id)
        return principal

    async def _identify(self, request: Request, route: Route | None) -> Principal:
        """Return the principal of the request: `ON_BOX` over the control socket, otherwise the principal of the
        token. `route` is None if no route matches."""
        connection = connection_of(request)
        if connection.is_on_box:
            return ON_BOX
        http1 = http1_of(request)
        known: Principal | None = http1.identified
        if known is not None and self._authenticator.is_valid(known):
            return known
        token = token_of(request, route)
        try:
            principal = await self._authenticator.identify(token)
        except Unauthenticated as refusal:
            http1.abandon_missing_body()  # hundreds of clients without a key could send bodies
            if token is not None and type(refusal) is Unauthenticated:
                self._wrong_keys.note(connection.peer)
            raise
        if route is not None and not route.is_websocket and route.role is not Role.HOOK:
            http1.identified = principal
        return principal

    async def handle_error(self, request: Request, error: Exception) -> HTTPResponse:
        """Return the response to a failed request."""
        return self._cors.add_headers(request, error_response(request, error))
