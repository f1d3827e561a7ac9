"""Routes: the declarations from which dispatch, roles and the OpenAPI document are made; and what handlers use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import orjson
from msgspec import Struct, field
from msgspec.structs import replace
from sanic import Request

from appliance.adapters.discovery.discovery import Found
from appliance.api.auth import Principal, Role
from appliance.api.connections import ApiLimits
from appliance.api.device_encoder import DeviceEncoder
from appliance.api.hooks import Hooks
from appliance.api.keyring import Keyring
from appliance.api.metrics import Metrics
from appliance.api.responses import JSON_TYPE
from appliance.api.stream import EventStream
from appliance.api.validation import RequestFields, not_json, parse
from appliance.errors import TooLarge, TooSlow
from appliance.hub import Hub
from appliance.tables.json_schema import Check, Schema


async def read_json(request: Request, limits: ApiLimits, *, instead: bytes = b"") -> Any:
    """The body as JSON, regardless of its Content-Type; raises `TooLarge`, `TooSlow` or `MalformedRequest`.

    `instead` is parsed where there is no body.
    """
    body = await read_bytes(request, limits) or instead
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise not_json(body, error) from None


async def read_bytes(request: Request, limits: ApiLimits, max_bytes: int | None = None) -> bytes:
    """The body, empty where there is none; raises `TooLarge`, or `TooSlow` after `limits.body_secs`.

    `max_bytes` is the most that it may have; None is `limits.body_bytes`.
    """
    exchange: Any = request.stream
    if not exchange.request_body:
        return b""
    max_bytes = limits.body_bytes if max_bytes is None else max_bytes
    if (arrived := exchange.take_arrived_body(max_bytes)) is not None:
        return arrived  # type: ignore[no-any-return]
    try:
        async with asyncio.timeout(limits.body_secs):
            return await _read(exchange, max_bytes)
    except TimeoutError:
        exchange.abandon_body()
        raise TooSlow(f"the body did not arrive within {limits.body_secs:g} s") from None


async def _read(exchange: Any, limit: int) -> bytes:
    body = bytearray()
    if exchange.request_bytes_left <= limit:
        async for piece in exchange:
            body += piece
            if len(body) > limit:
                break
        else:
            return bytes(body)
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
        """What the request's body states, as the route's row checks it."""
        assert self.route.body is not None
        instead = b"{}" if self.route.body_optional else b""
        stated = await read_json(self.request, self.limits, instead=instead)
        self.recheck()
        return self.route.body(stated)

    def query(self) -> dict[str, Any]:
        """What the query states, empty values too, as the route's row checks it; None for what it does not name.

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

    `role` is what a key needs, None where none is asked. `handler` is a method of the class `resource`; it gets the
    call and the path's ids. `statuses` are those that it may give itself; beside them come 401, 403 and 429 where a
    role is asked, and those of `COMMON_STATUSES`. `response_schema` describes its 2xx, None where that has no body;
    that is JSON unless `media_type` says otherwise.
    `body` checks the request's JSON, None where it is not read; where it is `body_optional`, no body counts as an
    empty object. `query` checks the parameters of the query.
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
    query: RequestFields = field(default_factory=dict)
    is_websocket: bool = False
    resource: type[Any] = object

    @cached_property
    def unstated_query(self) -> Mapping[str, Any] | None:
        """What `Call.query` returns where the query states nothing; None where it must state something."""
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
    """A decorator: the method of a resource handles this route; `more` are further fields of `Route`.

    `statuses` need not name 400 where there is a body or a query, 413 where there is a body, and 404 where the path
    has an id; PUT creates what is not there.
    """
    implied = {
        *([400, 413] if body is not None else []),
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
    """The routes that methods of this class handle, in the order of the methods."""
    rows = (getattr(each, "route", None) for each in vars(resource).values())
    return tuple(replace(row, resource=resource) for row in rows if row is not None)


Search = Callable[[float], Awaitable[list[Found]]]
"""Searches the local network for so many seconds."""

MakeBackup = Callable[[], bytes]
"""Gives the archive's bytes; called on a thread of its own. Raises `Invalid` where nothing can be backed up."""


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
    routes: Sequence[Route]


class ApiResource:
    """The base of all resources: methods with a `@route` answer it."""

    def __init__(self, parts: ApiParts) -> None:
        self.parts = parts
        self.hub = parts.hub
