"""Responses: JSON, empty, or a file of the dashboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from sanic import HTTPResponse

JSON_TYPE = "application/json"
JSON = {"content-type": JSON_TYPE}


class Response(HTTPResponse):
    """A response whose headers are our own words, so that they need no cleaning on their way out."""

    def __init__(self, body: bytes, status: int, headers: dict[str, Any]) -> None:
        self.asgi = False
        self.body = body
        self.content_type = None
        self.stream = None
        self.status = status
        self.headers: Any = headers
        self._cookies = None

    @property
    def processed_headers(self) -> Iterator[tuple[bytes, bytes]]:
        """The headers as they go out, without the empty `alt-svc` that Sanic adds."""
        self.headers.pop("alt-svc", None)
        return ((name.encode("ascii"), str(value).encode("ascii")) for name, value in self.headers.items())


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> HTTPResponse:
    """A JSON answer; bytes are taken as JSON that was encoded already."""
    encoded = body if isinstance(body, bytes) else orjson.dumps(body)
    return Response(encoded, status, {**headers, **JSON} if headers else {**JSON})


def text_response(body: bytes, content_type: str) -> HTTPResponse:
    """The answer 200 with a body that is no JSON."""
    return Response(body, 200, {"content-type": content_type})


def no_content() -> HTTPResponse:
    """The answer 204, without a body."""
    return Response(b"", 204, {})
