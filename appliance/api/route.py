"""Declares routes, and the parts of the API that handlers use. `gate.py`, which checks the roles, and `openapi.py`
read the same declarations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, ClassVar

from msgspec import Struct, field
from msgspec.structs import replace
from sanic import Request

from appliance.adapters.network_search.search import Found
from appliance.api.body import Bodies
from appliance.api.device_encoder import DeviceEncoder
from appliance.api.figures import Figures
from appliance.api.hooks import Hooks
from appliance.api.http_server.connection import connection_of
from appliance.api.http_server.unsent_bytes import UnsentBytes
from appliance.api.keyring import Keyring
from appliance.api.limits import MAX_SMALL_BODY_BYTES
from appliance.api.request_counts import RequestCounts
from appliance.api.responses import JSON_TYPE
from appliance.api.roles import Principal, Role
from appliance.api.simulation import Simulate
from appliance.api.stream import EventStream
from appliance.api.validation import RequestFields, parse
from appliance.hub import Hub
from appliance.tables.json_schema import Check, Schema


class Call(Struct, kw_only=True):  # not frozen, because that would double the cost per request
    """A request for a handler. `principal` is the holder of the request's key, or None on public routes.

    `recheck` raises `Unauthenticated` if the key was revoked after the request began.
    """

    request: Request
    route: Route
    bodies: Bodies
    principal: Principal | None
    recheck: Callable[[], None]

    @property
    def key_id(self) -> str:
        """Return the id of the request's key, or an empty text on public routes."""
        return "" if self.principal is None else self.principal.key_id

    async def read_body(self) -> Any:
        """Return the request's body, checked by the route."""
        assert self.route.body is not None
        instead = b"{}" if self.route.body_optional else b""
        stated = await self.bodies.read_json(self.request, self.route.max_body_bytes, instead)
        self.recheck()
        return self.route.body(stated)

    def cancellable(self) -> AbstractContextManager[None]:
        """Return a context for work that ends at once if the client disconnects or the hub stops."""
        return connection_of(self.request).cancellable()

    def query(self) -> dict[str, Any]:
        """Return the checked query parameters, including empty values. Missing parameters are None.

        If an array parameter is repeated, it contains all given values. For a repeated parameter of another type, the
        last value wins.
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


COMMON_STATUSES = frozenset({400, 405, 408, 417, 431, 501})
"""Statuses that every path may return, for malformed, slow, or large requests and for unsupported methods."""

Handler = Callable[..., Awaitable[object]]


class Route(Struct, frozen=True, kw_only=True, dict=True):
    """One method of one path. `app.build_app` binds each handler to the instance of its resource. If the path
    contains `<device_id>`, the bound handler first replaces an alias with the device's id (`app._resolving`).

    - `role`: the required role; None for public routes.
    - `handler`: a method of the class `resource`; its arguments are the call and the ids in the path.
    - `statuses`: the statuses of the route's responses without `COMMON_STATUSES`; for a route with a role, also
      without 401, 403, and 429.
    - `response_schema`: the schema of the 2xx response; None if it has no body.
    - `media_type`: the type of that body.
    - `body`: checks the request's JSON; None if the body is not read.
    - `body_optional`: whether a missing body is treated as an empty object.
    - `query`: the checks of the query parameters.
    - `is_large`: whether the answer can be large and is built for one client. Few such answers are built at once.
    - `is_slow`: whether a large answer needs the history on the card, whose reads can take seconds.
    - `is_rate_limited`: whether requests count towards the rate limit of their key.
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
    is_large: bool = False
    is_slow: bool = False
    is_rate_limited: bool = False
    resource: type[Any] = object

    @cached_property
    def unstated_query(self) -> Mapping[str, Any] | None:
        return None if any(each.is_needed for each in self.query.values()) else dict.fromkeys(self.query)

    @property
    def summary(self) -> str:
        """Return the handler's docstring, for the OpenAPI document."""
        return self.handler.__doc__ or ""

    @property
    def methods(self) -> frozenset[str]:
        """Return the methods that the route handles. GET includes HEAD."""
        return frozenset({self.method, "HEAD"}) if self.method == "GET" else frozenset({self.method})

    @property
    def has_device(self) -> bool:
        """Return whether the path contains a device's id or alias."""
        return "<device_id>" in self.path


def route(
    method: str,
    path: str,
    role: Role | None,
    response_schema: Schema | None = None,
    *,
    statuses: tuple[int, ...] = (200,),
    body: Check | None = None,
    query: RequestFields | None = None,
    is_rate_limited: bool | None = None,
    **more: Any,
) -> Callable[[Handler], Handler]:
    """Return a decorator for a resource's method that handles this route. `more` contains further fields of `Route`.

    `statuses` may omit the statuses that the other arguments imply: 400, 413, 415, and 503 for a body; 400 for a
    query; and 404 for a path with an id. PUT does not imply 404, because it creates the resource. By default,
    `is_rate_limited` is true for writes and for hook calls.
    """
    if is_rate_limited is None:
        is_rate_limited = method in ("POST", "PUT", "DELETE") or role is Role.HOOK
    implied = {
        *([400, 413, 415, 503] if body is not None else []),
        *([400] if query is not None else []),
        *([404] if "<" in path and method != "PUT" else []),
    }

    def mark(handler: Handler) -> Handler:
        handler.__dict__["route"] = Route(
            method=method,
            path=path,
            role=role,
            handler=handler,
            statuses=tuple(sorted({*statuses, *implied})),
            response_schema=response_schema,
            body=body,
            query=query or {},
            is_rate_limited=is_rate_limited,
            **more,
        )
        return handler

    return mark


def routes_of(resource: type[Any]) -> tuple[Route, ...]:
    """Return the routes that methods of this class handle, in definition order."""
    rows = (getattr(each, "route", None) for each in vars(resource).values())
    return tuple(replace(row, resource=resource) for row in rows if row is not None)


Search = Callable[[float], Awaitable[list[Found]]]
"""Searches the local network for the given number of seconds."""

MakeBackup = Callable[[], bytes]
"""Returns the archive's bytes. The hub calls this function on a separate thread. Raises `Invalid` if the backup
fails."""


class ApiParts(Struct, frozen=True, kw_only=True):
    """The parts that handlers use: the hub, and the API's own parts."""

    hub: Hub
    encoder: DeviceEncoder
    hooks: Hooks
    keyring: Keyring
    figures: Figures
    requests: RequestCounts
    stream: EventStream
    unsent: UnsentBytes
    search: Search
    make_backup: MakeBackup
    simulate: Simulate
    routes: Sequence[Route]


class ApiResource:
    """The base of all resources: methods with `@route` handle requests.

    The class's name without the suffix `Api` is public, because it is the tag and part of the operation ids in the
    OpenAPI document. Therefore, `ApiKeys` and `MetricsPage` keep their names, although they lack the suffix.
    """

    needs_files: ClassVar[bool] = False
    """Whether the routes exist only if `files.enabled` is true."""

    def __init__(self, parts: ApiParts) -> None:
        self.parts = parts
        self.hub = parts.hub
