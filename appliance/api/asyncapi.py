"""The AsyncAPI document (3.0) of the event stream, made from the rows that also build its frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from appliance.api.auth import REACH, Role
from appliance.api.frames import EventFrame
from appliance.api.openapi import hoist_schemas
from appliance.version import VERSION

_DESCRIPTION = """\
What happens in the home, as it happens. GET /events opens a WebSocket, with `Authorization: Bearer <key>`; a \
browser, which cannot set it, offers the sub-protocols `lares.events` and `bearer.<key, percent-encoded>`, or adds \
`?token=<key, percent-encoded>`. Every message is a JSON object with its `type`. What a client sends is ignored. \
GET /openapi.json describes everything else.\
"""


def describe_events(frames: Sequence[EventFrame]) -> dict[str, Any]:
    """The document of these frames, as JSON."""
    named: dict[str, Any] = {}
    messages = {
        frame.type: {
            "name": frame.type,
            "summary": frame.when,
            "contentType": "application/json",
            "payload": hoist_schemas(frame.record, named),
        }
        for frame in frames
    }
    roles = ", ".join(role for role in Role if Role.READ in REACH[role])
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Lares: event stream", "version": VERSION, "description": _DESCRIPTION},
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
