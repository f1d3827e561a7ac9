"""The gate: the way of every request. It finds the route, authorizes, lets the handler answer, and counts.

Who has no valid key is not told by 404 or 405 which paths exist. Beside it stand the router, the rate limit, a token
bucket for each key, and CORS: which web pages of other origins a browser allows to read responses. WebSockets are not
subject to that: there, as everywhere, the key decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from typing import Any
from urllib.parse import unquote

from msgspec import Struct
from sanic import HTTPResponse, Request
from sanic.exceptions import MethodNotAllowed, NotFound, SanicException

from appliance.api.auth import ON_BOX, Authenticator, Principal, Role, bearer_of
from appliance.api.codes import status_of
from appliance.api.connections import ApiLimits
from appliance.api.responses import UNMATCHED, RequestCounts, error_response, no_content, to_response
from appliance.api.route import Call, Handler, Route
from appliance.clock import Clock
from appliance.errors import LaresError, MalformedRequest, RateLimited, Unauthenticated
from appliance.settings import RateLimit

ALLOWED_HEADERS = "authorization, content-type"
"""Request headers that a page may send beside the CORS-safelisted ones."""

EXPOSED_HEADERS = "Retry-After"
"""Response headers that a page may read beside the CORS-safelisted ones."""

PREFLIGHT_MAX_AGE_SECS = 600


class Cors:
    """Adds CORS headers for these origins, compared exactly; with None, adds none."""

    def __init__(self, origins: frozenset[str] | None, methods: Iterable[str]) -> None:
        self._origins = origins
        self._methods = ", ".join(sorted(set(methods)))

    def preflight(self, request: Request) -> HTTPResponse | None:
        """The response to a preflight of an allowed origin; None for every other request.

        It is the same for every path, also for one that does not exist.
        """
        if request.method != "OPTIONS" or "access-control-request-method" not in request.headers:
            return None
        if self._origin_of(request) is None:
            return None
        response = no_content()
        response.headers["access-control-allow-methods"] = self._methods
        response.headers["access-control-allow-headers"] = ALLOWED_HEADERS
        response.headers["access-control-max-age"] = str(PREFLIGHT_MAX_AGE_SECS)
        return response

    def add_headers(self, request: Request, response: HTTPResponse) -> HTTPResponse:
        """The response, with the CORS headers that its origin needs."""
        if self._origins is not None:
            varies = response.headers.get("vary")
            response.headers["vary"] = "Origin" if varies is None else f"{varies}, Origin"
            if (origin := self._origin_of(request)) is not None:
                response.headers["access-control-allow-origin"] = origin
                response.headers["access-control-expose-headers"] = EXPOSED_HEADERS
        return response

    def _origin_of(self, request: Request) -> str | None:
        """The origin that the request states, if it is an allowed one."""
        if self._origins is None:
            return None
        stated = request.headers.getall("origin", [])
        return stated[0] if len(stated) == 1 and stated[0] in self._origins else None


MAX_KEPT_BUCKETS = 256
"""Above this number, buckets that are full again are dropped."""


class Buckets:
    """Lets each key write `burst_size` times at once and `requests_per_second` for long; with None, without limit.

    A bucket is kept as the moment at which it will be full again; one that is full need not be kept.
    """

    def __init__(self, rate: RateLimit | None, clock: Clock) -> None:
        self._clock = clock
        self._is_limited = rate is not None
        self._cost = 1 / rate.requests_per_second if rate is not None else 0.0
        self._capacity = self._cost * rate.burst_size if rate is not None else 0.0
        self._full_at: dict[str, float] = {}

    def take(self, key_id: str) -> None:
        """Take one write out of the key's bucket; raises `RateLimited` when it is empty."""
        if not self._is_limited:
            return
        now = self._clock.monotonic()
        full_at = max(self._full_at.get(key_id, now), now) + self._cost
        if (wait := full_at - now - self._capacity) > _ROUNDING * self._cost:
            raise RateLimited(wait)
        self._full_at[key_id] = full_at
        if len(self._full_at) > MAX_KEPT_BUCKETS:
            self._full_at = {each: moment for each, moment in self._full_at.items() if moment > now}


_ROUNDING = 1e-3
"""The part of a write by which sums of floating point numbers may be wrong."""


_SUBPROTOCOL_PREFIX = "bearer."
"""What the sub-protocol that holds a browser's token begins with."""


RouteHandler = tuple[Route, Handler]
"""A route, and what answers it."""

MAX_KEPT_PATHS = 1024
"""The latest paths that were asked for, and have a route."""


class _RestPattern(Struct, frozen=True):
    """A path with an id that takes one or more segments: its name ends in `_path`."""

    before: tuple[str, ...]
    name: str
    after: tuple[str, ...]
    handlers: Mapping[str, RouteHandler]

    def match(self, segments: list[str]) -> dict[str, str] | None:
        """The ids of a path; None if it is not one of these."""
        first, last = len(self.before), len(segments) - len(self.after)
        if first >= last or tuple(segments[:first]) != self.before or not all(segments[first:]):
            return None
        ids = {self.name: "/".join(map(unquote, segments[first:last]))}
        for word, segment in zip(self.after, segments[last:], strict=True):
            if word.startswith("<"):
                ids[word[1:-1]] = unquote(segment)
            elif word != segment:
                return None
        return ids


class _Pattern(Struct, frozen=True):
    """A path with ids, in segments: what is fixed and where, and the names of the ids and where."""

    fixed: tuple[tuple[int, str], ...]
    ids: tuple[tuple[int, str], ...]
    handlers: Mapping[str, RouteHandler]

    def matches(self, segments: list[str]) -> bool:
        """Whether a path of as many segments is one of these."""
        return all(segments[index] == text for index, text in self.fixed) and all(segments[i] for i, _ in self.ids)


class Router:
    """Routes by path and method. A path that is fixed comes before one with ids, whatever its methods are.

    Sanic's own writes Python source for its routes and compiles it at each start, a tenth of the whole start.
    """

    def __init__(self) -> None:
        self._paths: dict[str, dict[str, RouteHandler]] = {}
        self._patterns: dict[int, list[_Pattern]] = {}
        self._rest_patterns: list[_RestPattern] = []
        self._match = lru_cache(MAX_KEPT_PATHS)(self._find_handlers)

    def add(self, path: str, methods: Iterable[str], handle: RouteHandler) -> None:
        """Let `handle` be called for these methods of the path, in which `<name>` stands for an id."""
        if path not in self._paths and "_path>" in path:
            words = path.split("/")
            at = next(index for index, word in enumerate(words) if word.endswith("_path>"))
            before, after = tuple(words[:at]), tuple(words[at + 1 :])
            rest = _RestPattern(before, words[at][1:-1], after, self._paths.setdefault(path, {}))
            self._rest_patterns = sorted([*self._rest_patterns, rest], key=lambda each: -len(each.after))
        elif path not in self._paths and "<" in path:
            parts = [*enumerate(path.split("/"))]
            fixed = tuple((index, text) for index, text in parts if not text.startswith("<"))
            ids = tuple((index, text[1:-1]) for index, text in parts if text.startswith("<"))
            pattern = _Pattern(fixed, ids, self._paths.setdefault(path, {}))
            self._patterns.setdefault(len(parts), []).append(pattern)
        self._paths.setdefault(path, {}).update(dict.fromkeys(methods, handle))

    def find(self, method: str, path: str) -> tuple[RouteHandler, dict[str, str]]:
        """The handler, and the ids of the path as it was sent: one segment each, not empty, percent-decoded once.

        Raises `NotFound`, or `MethodNotAllowed` with the methods that the path has.
        """
        handlers, ids = self._match(path)
        if (handle := handlers.get(method)) is None:
            raise MethodNotAllowed(method=method, allowed_methods=sorted(handlers))
        return handle, ids

    def _find_handlers(self, path: str) -> tuple[Mapping[str, RouteHandler], dict[str, str]]:
        if (handlers := self._paths.get(path)) is not None and "<" not in path:
            return handlers, {}
        segments = path.split("/")
        for pattern in self._patterns.get(len(segments), ()):
            if pattern.matches(segments):
                return pattern.handlers, {name: unquote(segments[index]) for index, name in pattern.ids}
        for rest in self._rest_patterns:
            if (ids := rest.match(segments)) is not None:
                return rest.handlers, ids
        raise NotFound


WRONG_KEY_LOG_SECS = 3600.0
"""Seconds in which wrong keys of one client are one line in the log."""

MAX_KEPT_WRONG_PEERS = 256
"""Clients of which that is remembered; beyond them all are forgotten, and the log's own limit holds."""

log = logging.getLogger("api")


class Gate:
    """Responds to requests: authorizes them, counts writes against the rate limit, and lets their route answer."""

    def __init__(
        self,
        authenticator: Authenticator,
        buckets: Buckets,
        cors: Cors,
        limits: ApiLimits,
        counts: RequestCounts,
    ) -> None:
        self._authenticator = authenticator
        self._buckets = buckets
        self._cors = cors
        self._limits = limits
        self._counts = counts
        self._router = Router()
        self._wrong_key_logged: dict[str, float] = {}

    def add(self, route: Route, answer: Handler) -> None:
        """Let `answer` respond to requests of the route."""
        self._router.add(route.path, route.methods, (route, answer))

    async def respond(self, request: Request) -> HTTPResponse | None:
        """The response of the request's route, None of a WebSocket's; raises what `handle_error` responds to.

        It is counted and timed; a client that is gone before its answer is counted as 499.
        """
        path = "*" if request.raw_url == b"*" else request.path  # which would be "/"
        (route, answer), ids = self._router.find(request.method, path)
        loop, status = asyncio.get_running_loop(), 500
        began = loop.time()
        try:
            principal = await self._authorize(request, route, ids.get("hook_id"))
            recheck = partial(self._authenticator.recheck, principal)
            call = Call(request=request, route=route, limits=self._limits, principal=principal, recheck=recheck)
            answered = await answer(call, **ids)
            if route.is_websocket:
                status = 101
                return None
            response = self._cors.add_headers(request, to_response(answered, route.response_schema))
            status = response.status
            return response
        except asyncio.CancelledError:
            status = 499
            raise
        except (LaresError, SanicException) as error:
            status = status_of(error) if isinstance(error, LaresError) else error.status_code
            raise
        finally:
            took = None if route.is_websocket else loop.time() - began
            self._counts.add(request.method, route.path, status, took)

    async def _authorize(self, request: Request, route: Route, hook: str | None = None) -> Principal | None:
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
        known: Principal | None = exchange.identified
        if known is not None and self._authenticator.is_valid(known):
            return known
        token = _token_of(request, route)
        try:
            principal = await self._authenticator.identify(token)
        except Unauthenticated as refusal:
            if token is not None and type(refusal) is Unauthenticated:
                self._log_wrong_key(exchange.protocol.peer)
            raise
        if route is not None and not route.is_websocket and route.role is not Role.HOOK:
            exchange.identified = principal
        return principal

    def _log_wrong_key(self, peer: str) -> None:
        """Log it once an hour for each client: one whose key was revoked may go on asking every second."""
        now = asyncio.get_running_loop().time()
        if now - self._wrong_key_logged.get(peer, -WRONG_KEY_LOG_SECS) < WRONG_KEY_LOG_SECS:
            return
        if len(self._wrong_key_logged) >= MAX_KEPT_WRONG_PEERS:
            self._wrong_key_logged.clear()
        self._wrong_key_logged[peer] = now
        log.warning("refused %s: its key is wrong or was revoked; lares key list shows those that exist", peer)

    async def handle_error(self, request: Request, error: Exception) -> HTTPResponse:
        """The response to a request that failed, or to a CORS preflight."""
        if not isinstance(error, NotFound | MethodNotAllowed):
            return self._cors.add_headers(request, error_response(request, error))
        response = self._cors.preflight(request)
        if response is None:
            response = error_response(request, await self._explain_unmatched(request, error))
        self._counts.add(request.method, UNMATCHED, response.status)
        return self._cors.add_headers(request, response)

    async def _explain_unmatched(self, request: Request, error: Exception) -> Exception:
        """What is wrong with a request that matches no route: its key, else what the router says."""
        try:
            await self._identify(request, None)
        except LaresError as refusal:
            return refusal
        return error


def _token_of(request: Request, route: Route | None) -> str | None:
    """The token of the header; without one, that of the query where the client can do no other."""
    token = bearer_of(request.headers.get("authorization"))
    if token is not None or route is None:
        return token
    stated = _offered(request) if route.is_websocket else []
    if route.is_websocket or route.role is Role.HOOK:
        stated = stated or request.args.getlist("token", [])
    if len(stated) > 1:
        raise MalformedRequest("the request states more than one token")
    return stated[0] if stated else None


def _offered(request: Request) -> list[str]:
    """The tokens that a browser, which can set no header, offers as sub-protocols, percent-encoded."""
    names = ",".join(request.headers.getall("sec-websocket-protocol", [])).split(",")
    tokens = (each.strip() for each in names if each.strip().startswith(_SUBPROTOCOL_PREFIX))
    return [unquote(each.removeprefix(_SUBPROTOCOL_PREFIX)) for each in tokens]
