"""A row of the route table: the one source of dispatch, roles, tests and, later, the OpenAPI document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sanic import HTTPResponse, Request

from appliance.api.auth import Role
from appliance.api.body import read_json
from appliance.api.limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request on its way to a handler. `ids` are the path's, percent-decoded."""

    request: Request
    route: Route
    limits: Limits

    async def body(self) -> Any:
        """What the request's body states, as the route's row parses it."""
        assert self.route.body is not None
        return self.route.body(await read_json(self.request, self.limits))

    def list_of(self, name: str) -> list[str] | None:
        """Every value that the query gives the parameter, empty ones too; None when it does not name it."""
        if not self.request.query_string:
            return None
        stated = self.request.get_args(keep_blank_values=True)
        return list(stated.getlist(name)) if name in stated else None


Handler = Callable[..., Awaitable[HTTPResponse | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path.

    `role` is what a key needs, None where none is asked. `handler` is a method of a resource; it gets the call and
    the path's ids. `answers` are the statuses that it may give itself; beside them come 401 and 403 where a role is
    asked. `body` parses what the request's JSON must hold, None where it is not read.
    """

    method: str
    path: str
    role: Role | None
    handler: Handler
    answers: tuple[int, ...]
    body: Callable[[Any], Any] | None = None
    summary: str
    is_websocket: bool = False

    @property
    def methods(self) -> frozenset[str]:
        """The methods that it answers: what takes GET takes HEAD."""
        return frozenset({self.method, "HEAD"}) if self.method == "GET" else frozenset({self.method})
