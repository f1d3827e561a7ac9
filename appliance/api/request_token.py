"""Finds the token of a request in its headers or query."""

from __future__ import annotations

from urllib.parse import unquote

from sanic import Request

from appliance.api.roles import Role
from appliance.api.route import Route
from appliance.errors import MalformedRequest

_SUBPROTOCOL_PREFIX = "bearer."
"""The prefix of the sub-protocol that contains a browser's token."""


def token_of(request: Request, route: Route | None) -> str | None:
    """Return the token in the header, or in the query if the route accepts it there."""
    token = bearer_of(request.headers.get("authorization"))
    if token is not None or route is None:
        return token
    stated = _offered(request) if route.is_websocket else []
    if route.is_websocket or route.role is Role.HOOK:
        stated = stated or request.args.getlist("token", [])
    if len(stated) > 1:
        raise MalformedRequest("the request has more than one token; send only one")
    return stated[0] if stated else None


def _offered(request: Request) -> list[str]:
    """Return the tokens in the offered sub-protocols. Browsers send a percent-encoded token as a sub-protocol,
    because they cannot set headers."""
    names = ",".join(request.headers.getall("sec-websocket-protocol", [])).split(",")
    tokens = (each.strip() for each in names if each.strip().startswith(_SUBPROTOCOL_PREFIX))
    return [unquote(each.removeprefix(_SUBPROTOCOL_PREFIX)) for each in tokens]


def bearer_of(header: str | None) -> str | None:
    """Return the token in an `Authorization` header, or None. The scheme's case does not matter."""
    scheme, _, token = (header or "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None
