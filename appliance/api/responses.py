"""Responses: JSON, empty, or a file of the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import orjson
from msgspec.structs import asdict
from sanic import HTTPResponse
from sanic.helpers import has_message_body

JSON_TYPE = "application/json"
JSON_HEADERS = {"content-type": JSON_TYPE}


class Response(HTTPResponse):
    """A response whose headers are valid as given: Sanic's validation of them is skipped."""

    def __init__(self, body: bytes, status: int, headers: dict[str, Any]) -> None:
        self.asgi = False
        self.body = body
        self.content_type = None
        self.stream = None
        self.status = status
        self.headers: Any = headers
        self._cookies = None


def encode_head(response: HTTPResponse, *, is_persistent: bool) -> bytes:
    """The status line, the headers and the empty line."""
    begin = _encode_headers(response.status, tuple(response.headers.items()), is_persistent)
    if not has_message_body(response.status):
        return begin + b"\r\n"
    return b"%bcontent-length: %d\r\n\r\n" % (begin, len(response.body or b""))


@lru_cache(maxsize=64)
def _encode_headers(status: int, headers: tuple[tuple[str, str], ...], is_persistent: bool) -> bytes:
    """The same but for the length of the body, in which alone most responses differ."""
    connection = "keep-alive" if is_persistent else "close"
    fields = [f"{name}: {value}\r\n" for name, value in (*headers, ("connection", connection))]
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{''.join(fields)}".encode("ascii")


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> HTTPResponse:
    """A JSON response; `bytes` are taken for encoded JSON, and sent as they are."""
    encoded = body if isinstance(body, bytes) else orjson.dumps(body, default=asdict)
    return Response(encoded, status, {**headers, **JSON_HEADERS} if headers else {**JSON_HEADERS})


def no_content() -> HTTPResponse:
    """The response 204, which has no body."""
    return Response(b"", 204, {})
