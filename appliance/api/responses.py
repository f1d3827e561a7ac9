"""Responses with JSON, and responses without a body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

from msgspec.structs import asdict
from sanic import HTTPResponse

from appliance.clock import Clock
from appliance.event_loop import in_steps
from appliance.home.values import to_bytes
from appliance.tables.json_schema import Encode, Schema, Shape

JSON_TYPE = "application/json"
JSON_HEADERS = {"content-type": JSON_TYPE}


class Response(HTTPResponse):
    """A response whose headers Sanic does not validate, because the API sets only valid headers. `start` is the
    beginning of the body that clients do not share."""

    def __init__(self, body: bytes, status: int, headers: dict[str, Any], start: bytes = b"") -> None:
        self.asgi = False
        self.body = body
        self.start = start
        self.content_type = None
        self.stream = None
        self.status = status
        self.headers: Any = headers
        self._cookies = None


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> HTTPResponse:
    """Return a JSON response. A body of `bytes` is already JSON, and is sent unchanged."""
    encoded = body if isinstance(body, bytes) else to_bytes(body, default=asdict)
    return Response(encoded, status, {**headers, **JSON_HEADERS} if headers else {**JSON_HEADERS})


def no_content() -> HTTPResponse:
    """Return a response with status 204."""
    return Response(b"", 204, {})


def to_response(result: Any, schema: Schema | None) -> HTTPResponse:
    """Return the response for the result of a handler. If the result is None, the status is 204. Bytes are sent
    unchanged. `schema` encodes any other result."""
    if isinstance(result, HTTPResponse):
        return result
    if result is None:
        return no_content()
    return json_response(schema(result) if isinstance(schema, Shape) and not isinstance(result, bytes) else result)


MAX_ENTRIES_BYTES = 4 << 20
"""Maximum size of the entries in one response. Further entries, such as older ones, are omitted."""


class LimitedList:
    """A JSON array of at most `MAX_ENTRIES_BYTES`. Only the first object may be larger."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._left = MAX_ENTRIES_BYTES - 1
        self._found: list[bytes] = []

    def add(self, thing: Any) -> bool:
        """Add the object, or return False if there is no room."""
        encoded = to_bytes(self._encode(thing))
        self._left -= len(encoded) + 1
        if self._left < 0 and self._found:
            return False
        self._found.append(encoded)
        return True

    def to_json(self) -> bytes:
        return b"[%b]" % b",".join(self._found)


async def encode_limited(clock: Clock, shape: Shape, things: Iterable[Any]) -> bytes:
    """Return the first objects as a `LimitedList`, encoded in steps."""
    entries = LimitedList(shape)
    await in_steps(clock, takewhile(bool, map(entries.add, things)))
    return entries.to_json()


async def encode_list(clock: Clock, shape: Shape, things: Iterable[Any]) -> bytes:
    """Return the objects as a JSON array, encoded in steps."""
    found: list[bytes] = []
    await in_steps(clock, map(found.append, map(to_bytes, map(shape, things))))
    return b"[%b]" % b",".join(found)
