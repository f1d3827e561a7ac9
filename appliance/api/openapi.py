"""The OpenAPI document (3.1) of the routes, and the AsyncAPI document (3.0) of the event stream. The documents are
generated from the tables that dispatch requests and encode frames."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from appliance.api.error_codes import CODES
from appliance.api.frames import EventFrame
from appliance.api.roles import REACH, Role
from appliance.api.route import COMMON_STATUSES, Route
from appliance.api.schemas import error_of
from appliance.tables.json_schema import TEXT, Schema
from appliance.version import VERSION

_DESCRIPTION = """\
Every path except /health and /ready requires a key: `Authorization: Bearer <key>`. A key with the role `read` may \
use the operations for `read`. A key with the role `write` may use the operations for `read` and `write`. The master \
key, and a key with the role `admin` or `automation`, may use every operation. Bodies are JSON, regardless of \
Content-Type; unknown fields are ignored. Every response other than 2xx has at least `error` (a sentence for people) \
and `code` (the kind of error, for programs). HEAD returns the headers of GET. Ids in a path are percent-encoded.\
"""

_EVENTS_DESCRIPTION = """\
The events of the home. GET /events with `Authorization: Bearer <key>` opens a WebSocket. A browser cannot set this \
header; it offers the sub-protocols `lares.events` and `bearer.<key, percent-encoded>`, or adds the query \
`?token=<key, percent-encoded>`. Every message is a JSON object with a `type`. The hub ignores messages of clients. \
GET /openapi.json describes all other paths.\
"""

_MEANINGS: Mapping[int, str] = {
    **{code.status: code.meaning for code in CODES.values()},
    101: "The stream begins. Every frame is a text message, a JSON object with a `type`. A slow reader gets "
    "`system.error` with the number of lost frames (`dropped`). The hub sends pings, and ignores messages from "
    "clients.",
    200: "Success.",
    202: "The execution waits in the queue of the scene.",
    204: "Success, without a body.",
    400: "The request is malformed or invalid, the adapter rejected the command, or the device did not answer.",
    404: "The resource does not exist.",
    409: "Another resource has this id or alias, or the file was changed after the version in the request.",
    501: "The device does not offer this command, or the transfer coding of the body is not supported.",
    503: "The hub is starting, its storage accepts no change, or it has too little memory for the request.",
}
"""The meaning of each status that a route may declare. The meaning of a status with only one code is the meaning of
the code."""

_NAMED_HEADERS: Mapping[int, Iterable[str]] = {
    **{code.status: code.headers for code in CODES.values() if code.headers},
    405: ("Allow",),
}

_QUERY_TOKEN = {
    "type": "apiKey",
    "in": "query",
    "name": "token",
    "description": "The percent-encoded key, for clients that cannot set headers. Only the event stream and hooks "
    "accept this parameter. On the stream, the sub-protocol `bearer.<key, percent-encoded>` has the same effect if "
    "the client also offers `lares.events`.",
}


def describe(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the document of these routes as JSON. Raise `ValueError` if two schemas have the same title."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(re.sub(r"<(\w+)>", r"{\1}", route.path), {})[route.method.lower()] = _operation(route)
    named: dict[str, Any] = {}
    errors = sorted({status for route in routes for status in statuses_of(route) if status >= 400})
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lares", "version": VERSION, "description": _DESCRIPTION},
        "servers": [{"url": "/"}],
        "paths": _hoist_schemas(paths, named),
        "components": {
            "responses": {str(status): _hoist_schemas(_error(status), named) for status in errors},
            "schemas": dict(sorted(named.items())),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}, "token": _QUERY_TOKEN},
        },
    }


def statuses_of(route: Route) -> set[int]:
    guarded = set() if route.role is None else {401, 403, 429, 503}
    return {*route.statuses, *COMMON_STATUSES, *guarded}


def _operation(route: Route) -> dict[str, Any]:
    owner, verb = route.resource.__name__.removesuffix("Api"), route.handler.__name__
    operation: dict[str, Any] = {
        "operationId": f"{owner}_{verb}".lower(),
        "tags": [owner],
        "summary": route.summary,
        "description": _required_role(route),
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "security": _security(route),
        "responses": {str(status): _response(route, status) for status in sorted(statuses_of(route))},
    }
    if route.body is not None:
        operation["requestBody"] = {"required": not route.body_optional, "content": _json(route.body.schema)}
    return operation


def _required_role(route: Route) -> str:
    if route.role is None:
        return "Requires no key."
    return f"For keys with the role {', '.join(role for role in Role if route.role in REACH[role])}."


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": "Percent-encoded.",
            "schema": {**TEXT, "minLength": 1},
        }
        for name in re.findall(r"<(\w+)>", route.path)
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": field.is_needed, "schema": field.check.schema}
        for name, field in route.query.items()
    ]


def _security(route: Route) -> list[dict[str, list[str]]]:
    """Return the ways to send a key. Each way is mapped to the role that the route requires."""
    if route.role is None:
        return []
    ways = ["bearer", "token"] if route.is_websocket or route.role is Role.HOOK else ["bearer"]
    return [{way: [route.role]} for way in ways]


def _response(route: Route, status: int) -> dict[str, Any]:
    if status >= 400:
        return {"$ref": f"#/components/responses/{status}"}
    schema = route.response_schema
    content = {} if schema is None else {"content": {route.media_type: {"schema": schema}}}
    return {"description": _MEANINGS[status], **content}


def _error(status: int) -> dict[str, Any]:
    names = _NAMED_HEADERS.get(status, ())
    headers = {name: {"required": True, "schema": TEXT} for name in names}
    return {"description": _MEANINGS[status], "headers": headers, "content": _json(error_of(status))}


def _json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def describe_events(frames: Sequence[EventFrame]) -> dict[str, Any]:
    """Return the document of these frames as JSON."""
    named: dict[str, Any] = {}
    messages = {
        frame.type: {
            "name": frame.type,
            "summary": frame.when,
            "contentType": "application/json",
            "payload": _hoist_schemas(frame.record, named),
        }
        for frame in frames
    }
    roles = ", ".join(role for role in Role if Role.READ in REACH[role])
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Lares: event stream", "version": VERSION, "description": _EVENTS_DESCRIPTION},
        "defaultContentType": "application/json",
        "channels": {
            "events": {
                "address": "/events",
                "description": f"For keys with the role {roles}.",
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
                "bindings": {"ws": {"method": "GET"}},
            }
        },
        "operations": {
            "sendEvents": {
                "action": "send",
                "channel": {"$ref": "#/channels/events"},
                "messages": [{"$ref": f"#/channels/events/messages/{name}"} for name in messages],
            }
        },
        "components": {"messages": messages, "schemas": dict(sorted(named.items()))},
    }


def _hoist_schemas(node: Any, named: dict[str, Any]) -> Any:
    """In the node, put a reference in place of each schema that has a title, and add the schema to `named`."""
    if isinstance(node, list | tuple):
        return [_hoist_schemas(each, named) for each in node]
    if not isinstance(node, Mapping):
        return node
    inner = {
        key: _hoist_schemas(value, named)
        for key, value in node.items()
        if key != "title" or not isinstance(value, str)
    }
    title = node.get("title")
    if not isinstance(title, str):
        return inner
    if named.setdefault(title, inner) != inner:
        raise ValueError(f"two schemas have the title {title}")
    return {"$ref": f"#/components/schemas/{title}"}
