"""Responses with JSON, responses without a body, and responses to errors."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import orjson
from msgspec.structs import asdict
from sanic import HTTPResponse, Request
from sanic.exceptions import MethodNotAllowed, NotFound, SanicException
from sanic.helpers import has_message_body

from appliance import errors
from appliance.api.codes import status_of
from appliance.history.execution_history import ExecutionEntry, ExecutionStatus
from appliance.tables.json_schema import Schema, Shape

JSON_TYPE = "application/json"
JSON_HEADERS = {"content-type": JSON_TYPE}


class Response(HTTPResponse):
    """A response whose headers Sanic does not validate, because the API sets only valid ones."""

    def __init__(self, body: bytes, status: int, headers: dict[str, Any]) -> None:
        self.asgi = False
        self.body = body
        self.content_type = None
        self.stream = None
        self.status = status
        self.headers: Any = headers
        self._cookies = None


def encode_head(response: HTTPResponse, *, is_persistent: bool) -> bytes:
    """Return the status line, the headers and the empty line."""
    begin = _encode_headers(response.status, tuple(response.headers.items()), is_persistent)
    if not has_message_body(response.status):
        return begin + b"\r\n"
    return b"%bcontent-length: %d\r\n\r\n" % (begin, len(response.body or b""))


@lru_cache(maxsize=64)
def _encode_headers(status: int, headers: tuple[tuple[str, str], ...], is_persistent: bool) -> bytes:
    """Return the encoded headers, except Content-Length: most responses differ only in that header."""
    connection = "keep-alive" if is_persistent else "close"
    fields = [f"{name}: {value}\r\n" for name, value in (*headers, ("connection", connection))]
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{''.join(fields)}".encode("ascii")


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> HTTPResponse:
    """Return a JSON response; a body of `bytes` is already JSON, and is sent unchanged."""
    encoded = body if isinstance(body, bytes) else orjson.dumps(body, default=asdict)
    return Response(encoded, status, {**headers, **JSON_HEADERS} if headers else {**JSON_HEADERS})


def no_content() -> HTTPResponse:
    """Return the response 204, without a body."""
    return Response(b"", 204, {})


def to_response(answer: Any, shape: Schema | None) -> HTTPResponse:
    """Return the response for the result of a handler. None becomes 204, bytes are sent unchanged, and the shape
    encodes any other result."""
    if isinstance(answer, HTTPResponse):
        return answer
    if answer is None:
        return no_content()
    return json_response(shape(answer) if isinstance(shape, Shape) and not isinstance(answer, bytes) else answer)


log = logging.getLogger("api")

ERROR_HEADERS: Mapping[type[errors.LaresError], dict[str, str]] = {
    errors.Unauthenticated: {"WWW-Authenticate": "Bearer"},
    errors.TooManyChecks: {"Retry-After": "1"},
    errors.AuthenticationUnavailable: {"Retry-After": "1"},
    errors.NotReady: {"Retry-After": "1"},
    errors.Overloaded: {"Retry-After": "1"},
    errors.StoreFailed: {"Retry-After": "10"},
    errors.UpgradeRequired: {"Upgrade": "websocket", "Sec-WebSocket-Version": "13"},
}
"""The additional headers of the response to an error."""

_SANIC_CODES: Mapping[int, str] = {
    400: "invalid_request",
    408: "request_timeout",
    413: "head_too_large",
    417: "expectation_failed",
    429: "rate_limited",
    501: "unknown_transfer_coding",
}
"""The code for a request that Sanic itself rejects, by its status."""


def headers_of(error: errors.LaresError) -> Mapping[str, str] | None:
    """Return the headers for the error, if any."""
    if isinstance(error, errors.RateLimited):
        return {"Retry-After": str(math.ceil(error.wait_secs))}
    return ERROR_HEADERS.get(type(error))


def error_response(request: Request, error: Exception) -> HTTPResponse:
    """Return the response to a request that failed: always JSON with `error` and `code`, never a traceback.

    An unexpected error becomes 500 with a fixed sentence; its message and traceback are logged.
    """
    if isinstance(error, errors.LaresError) and status_of(error) != 500:
        return _response(status_of(error), str(error), error.code, headers_of(error))
    if isinstance(error, NotFound):
        return _response(404, "there is no such path", "path_not_found")
    if isinstance(error, MethodNotAllowed):
        message = f"{error.method} is not a method of this path, which has {error.headers['Allow']}"
        return _response(405, message, "method_not_allowed", error.headers)
    if isinstance(error, SanicException) and error.status_code in _SANIC_CODES:
        return _response(error.status_code, _sentence(error), _SANIC_CODES[error.status_code], error.headers)
    log.error("%s %s failed: %s: %s", request.method, request.path, type(error).__name__, error, exc_info=error)
    return _response(500, "the hub failed to answer; see its log", "internal")


def error_body(message: str, code: str, **more: Any) -> dict[str, Any]:
    """Return the body of an error response: `message` is the sentence, `code` one of `CODES`."""
    return {"error": message.encode(errors="replace").decode(), "code": code, **more}


def refusal_body(failed: errors.ConfigFailed) -> dict[str, Any]:
    """Return the body that lists the errors of files."""
    return error_body(str(failed), errors.ScriptFailed.code, errors=failed.faults)


def failed_execution_body(what: str, result: ExecutionEntry) -> dict[str, Any]:
    """Return the body for an execution of `what` (`scene 'x'`) that failed."""
    is_cancelled = result.status is ExecutionStatus.CANCELLED
    how, error = ("was cancelled", errors.ExecutionCancelled) if is_cancelled else ("failed", errors.ScriptFailed)
    return error_body(f"{what} {how}: {result.error}", error.code, results=result.results)


def _response(status: int, message: str, code: str, headers: Mapping[str, str] | None = None) -> HTTPResponse:
    return json_response(error_body(message, code), status, headers)


def _sentence(error: SanicException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "the request is malformed"
