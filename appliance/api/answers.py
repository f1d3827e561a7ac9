"""Answers: the responses that Lares gives, all JSON or empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from sanic import HTTPResponse


class Answer(HTTPResponse):
    """A response without the empty `alt-svc` header that Sanic adds when it runs on a loop that is not its own."""

    @property
    def processed_headers(self) -> Iterator[tuple[bytes, bytes]]:
        """The headers as they go out."""
        self.headers.pop("alt-svc", None)
        return super().processed_headers


def json_answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> HTTPResponse:
    """A JSON answer; bytes are taken as JSON that was encoded already."""
    encoded = body if isinstance(body, bytes) else orjson.dumps(body)
    return Answer(encoded, status=status, headers=dict(headers or {}), content_type="application/json")


def no_content() -> HTTPResponse:
    """The answer 204, without a body."""
    return Answer(None, status=204)
