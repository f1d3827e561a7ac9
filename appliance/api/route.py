"""Routes: the declarations behind dispatch, roles, and the OpenAPI document, and the parts that handlers use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import orjson
from msgspec import Struct, field
from msgspec.structs import replace
from sanic import Request

from appliance.adapters.discovery.discovery import Found
from appliance.api.auth import Principal, Role
from appliance.api.device_encoder import DeviceEncoder
from appliance.api.hooks import Hooks
from appliance.api.keyring import Keyring
from appliance.api.limits import ApiLimits, BodyBudget
from appliance.api.metrics import Metrics
from appliance.api.responses import JSON_TYPE
from appliance.api.stream import EventStream
from appliance.api.validation import RequestFields, not_json, parse, parse_json
from appliance.errors import MalformedRequest, Overloaded, TooLarge, TooSlow, UnknownContentCoding
from appliance.hub import Hub
from appliance.tables.json_schema import Check, Schema

MAX_SMALL_BODY_BYTES = 64 * 1024
"""The largest body of a route that does not accept files."""


async def read_json(request: Request, limits: ApiLimits, *, max_bytes: int, instead: bytes = b"") -> Any:
    """Return the body as JSON, whatever its Content-Type; `instead` is parsed if there is no body.

    Raises what `read_bytes` raises, or `MalformedRequest`.
    """
    body = await read_bytes(request, limits, max_bytes) or instead
    if not body and "content-length" not in request.headers:
        raise MalformedRequest("the request has no body: send JSON, and its length in the header Content-Length")
    try:
        return parse_json(body)
    except orjson.JSONDecodeError as error:
        raise not_json(body, error) from None


async def read_bytes(request: Request, limits: ApiLimits, max_bytes: int) -> bytes:
    """Return the body, at most `max_bytes` of it and `limits.body_bytes`; empty without one.

    Raises `TooLarge`, `UnknownContentCoding`, `Overloaded`, or `TooSlow` after `limits.body_secs`.
    """
    exchange: Any = request.stream
    if not exchange.request_body:
        return b""
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding != "identity":
        raise UnknownContentCoding(f"the body is compressed (Content-Encoding: {coding[:40]}); send it as it is")
    max_bytes = min(max_bytes, limits.body_bytes)
    if (arrived := exchange.take_arrived_body(max_bytes)) is not None:
        return arrived  # type: ignore[no-any-return]
    try:
        async with asyncio.timeout(limits.body_secs):
            return await _read(exchange, max_bytes, request.app.ctx.bodies)
    except TimeoutError:
        exchange.abandon_body()
        raise TooSlow(f"the body did not arrive within {limits.body_secs:g} s") from None
    except Overloaded:
        exchange.abandon_body()
        raise


async def _read(exchange: Any, limit: int, budget: BodyBudget) -> bytes:
    body = bytearray()
    if exchange.request_bytes_left <= limit:
        try:
            async for piece in exchange:
                body += piece
                budget.take(len(piece))
                if len(body) > limit:
                    break
            else:
                return bytes(body)
        finally:
            budget.give_back(len(body))
    raise TooLarge(f"the body is larger than {limit} bytes")


class Call(Struct, kw_only=True):  # not frozen, which would double what making one costs each request
    """One request on its way to a handler. `principal` is the holder of its key, None on public routes.

    `recheck` raises `Unauthenticated` if that key was revoked since.
    """

    request: Request
    route: Route
    limits: ApiLimits
    principal: Principal | None
    recheck: Callable[[], None]

    async def body(self) -> Any:
        """Return the request's body, checked by the route."""
        assert self.route.body is not None
        instead = b"{}" if self.route.body_optional else b""
        stated = await read_json(self.request, self.limits, max_bytes=self.route.max_body_bytes, instead=instead)
        self.recheck()
        return self.route.body(stated)

    def query(self) -> dict[str, Any]:
        """Return the query, including empty values, checked by the route. Missing parameters are None.

        A parameter that is an array has every value that was given; of any other the last one counts.
        """
        if not self.request.query_string and self.route.unstated_query is not None:
            return {**self.route.unstated_query}
        given = self.request.get_args(keep_blank_values=True)
        stated = {
            name: given[name] if field.check.schema.get("type") == "array" else given[name][-1]
            for name, field in self.route.query.items()
            if name in given
        }
        return parse(self.route.query, stated)


COMMON_STATUSES = frozenset({400, 405, 408, 413, 417, 501})
"""Statuses that every path may respond with: to malformed, slow or large requests and other methods."""

Handler = Callable[..., Awaitable[object]]

UNLIMITED_PATHS = frozenset(
    {*(f"/{each}/reload" for each in ("scenes", "automations", "scripts", "adapters")), "/diagnostics/reload"}
)
"""Paths without a rate limit, like those under `/auth/`."""


class Route(Struct, frozen=True, kw_only=True, dict=True):
    """One method of one path.

    `role` is the required role, None for public routes. `handler` is a method of the class `resource`; it gets the
    call and the path's ids. `statuses` are its own; 401, 403, and 429 of routes with a role, and `COMMON_STATUSES`,
    are implied. `response_schema` describes its 2xx, None if that has no body;
    that is JSON unless `media_type` states otherwise.
    `body` checks the request's JSON, None if it is not read; if it is `body_optional`, no body counts as an
    empty object. A route of files has a larger `max_body_bytes`. `query` checks the parameters of the query.
    """

    method: str
    path: str
    role: Role | None
    handler: Handler
    statuses: tuple[int, ...]
    response_schema: Schema | None = None
    media_type: str = JSON_TYPE
    body: Check | None = None
    body_optional: bool = False
    max_body_bytes: int = MAX_SMALL_BODY_BYTES
    query: RequestFields = field(default_factory=dict)
    is_websocket: bool = False
    resource: type[Any] = object

    @cached_property
    def unstated_query(self) -> Mapping[str, Any] | None:
        """What `Call.query` returns if the query states nothing; None if it must state something."""
        return None if any(each.required for each in self.query.values()) else dict.fromkeys(self.query)

    @property
    def summary(self) -> str:
        """The handler's docstring, for the OpenAPI document."""
        return self.handler.__doc__ or ""

    @property
    def methods(self) -> frozenset[str]:
        """The methods that it handles: GET includes HEAD."""
        return frozenset({self.method, "HEAD"}) if self.method == "GET" else frozenset({self.method})

    @cached_property
    def is_rate_limited(self) -> bool:
        """Whether requests of it count against the rate limit of their key: writes, and every call of a hook."""
        is_write = self.method in ("POST", "PUT", "DELETE") or self.role is Role.HOOK
        return (
            is_write
            and self.role is not None
            and self.path not in UNLIMITED_PATHS
            and not self.path.startswith("/auth/")
        )


def route(
    method: str,
    path: str,
    role: Role | None,
    response_schema: Schema | None = None,
    *,
    statuses: tuple[int, ...] = (200,),
    body: Check | None = None,
    query: RequestFields | None = None,
    **more: Any,
) -> Callable[[Handler], Handler]:
    """Return a decorator: the method of a resource handles this route; `more` are further fields of `Route`.

    `statuses` may omit the implied ones: 400, 413, 415, and 503 of a body, 400 of a query, and 404 of a path with an
    id, except for PUT, which creates.
    """
    implied = {
        *([400, 413, 415, 503] if body is not None else []),
        *([400] if query is not None else []),
        *([404] if "<" in path and method != "PUT" else []),
    }

    def mark(handler: Handler) -> Handler:
        every = tuple(sorted({*statuses, *implied}))
        more.update(statuses=every, response_schema=response_schema, body=body, query=query or {})
        handler.__dict__["route"] = Route(method=method, path=path, role=role, handler=handler, **more)
        return handler

    return mark


def routes_of(resource: type[Any]) -> tuple[Route, ...]:
    """Return the routes that methods of this class handle, in the order of the methods."""
    rows = (getattr(each, "route", None) for each in vars(resource).values())
    return tuple(replace(row, resource=resource) for row in rows if row is not None)


Search = Callable[[float], Awaitable[list[Found]]]
"""Searches the local network for this many seconds."""

MakeBackup = Callable[[], bytes]
"""Gives the archive's bytes; called on a thread of its own. Raises `Invalid` if nothing can be backed up."""


class SimulationRequest(Struct, frozen=True, kw_only=True):
    """A simulation: the text in place of the file's at the path, from a time, now by default, for some hours.

    `events` are lines as in the file of `lares simulate --events`.
    """

    path: str | None = None
    text: str | None = None
    start: str | None = None
    hours: float = 24
    events: str = ""
    runs_lua: bool = False


class SimulationResult(Struct, frozen=True, kw_only=True):
    """The lines of a simulation that reached `until`, earlier than asked if it is not complete."""

    lines: Sequence[Mapping[str, Any]]
    until: datetime
    is_complete: bool


Simulate = Callable[[SimulationRequest, Mapping[str, Any]], Awaitable[SimulationResult]]
"""Simulates the home with the state that the document's keys and values describe."""


class ApiParts(Struct, frozen=True, kw_only=True):
    """What handlers use: the hub, and the parts of the API."""

    hub: Hub
    encoder: DeviceEncoder
    hooks: Hooks
    keyring: Keyring
    metrics: Metrics
    stream: EventStream
    search: Search
    make_backup: MakeBackup
    simulate: Simulate
    routes: Sequence[Route]


class ApiResource:
    """The base of all resources: methods with a `@route` answer it."""

    def __init__(self, parts: ApiParts) -> None:
        self.parts = parts
        self.hub = parts.hub
