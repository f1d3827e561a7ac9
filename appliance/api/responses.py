"""Responses: JSON, empty, a file; those to errors: the HTTP status of every code, and the body that each has; and how
many there were.
"""

from __future__ import annotations

import logging
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, get_args

import orjson
from msgspec import Struct
from msgspec.structs import asdict
from sanic import HTTPResponse, Request
from sanic.exceptions import MethodNotAllowed, NotFound, PayloadTooLarge, SanicException
from sanic.helpers import has_message_body

from appliance import errors
from appliance.history.execution_history import ExecutionEntry, ExecutionStatus
from appliance.tables.json_schema import Schema, Shape

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


def to_response(answer: Any, shape: Schema | None) -> HTTPResponse:
    """The response with what a handler returned: 204 for None, bytes as they are, else as the shape makes it."""
    if isinstance(answer, HTTPResponse):
        return answer
    if answer is None:
        return no_content()
    return json_response(shape(answer) if isinstance(shape, Shape) and not isinstance(answer, bytes) else answer)


log = logging.getLogger("api")

ERROR_HEADERS: Mapping[type[errors.LaresError], dict[str, str]] = {
    errors.Unauthenticated: {"WWW-Authenticate": "Bearer"},
    errors.TooManyChecks: {"Retry-After": "1"},
    errors.UpgradeRequired: {"Upgrade": "websocket", "Sec-WebSocket-Version": "13"},
}
"""The headers that come with some errors."""

_SANIC_CODES: Mapping[int, str] = {
    400: "invalid_request",
    408: "request_timeout",
    417: "expectation_failed",
    429: "rate_limited",
    501: "unknown_transfer_coding",
}
"""The code of what Sanic itself refuses, by its status."""


class Code(Struct, frozen=True):
    """What a code means, and the HTTP status that it comes with."""

    status: int
    meaning: str


CODES: Mapping[str, Code] = {
    "invalid_request": Code(
        400, "The request cannot be understood: malformed HTTP or JSON, or a field that must be there is missing."
    ),
    "invalid_value": Code(
        400, "A value that the request states is not allowed, or names a room, group or device that is not there."
    ),
    "device_unreachable": Code(400, "The device gave no answer."),
    "device_refused": Code(400, "The device answered, and did not do it."),
    "busy": Code(400, "Too many commands wait for the device's address; nothing was sent. Try again."),
    "adapter_failed": Code(400, "The device's adapter has a fault; the hub's log has the traceback."),
    "script_failed": Code(400, "A Lua file failed, was stopped at a limit, or has faults."),
    "cancelled": Code(400, "The execution was ended from outside before it was done."),
    "stopping": Code(400, "The hub stops; whether the command was done is not known."),
    "authentication_required": Code(401, "There is no key, or it is not one of this hub's."),
    "insufficient_permissions": Code(403, "The key's role does not reach this."),
    "path_not_found": Code(404, "There is no such path."),
    **{f"{each}_not_found": Code(404, f"There is no {each} of this id.") for each in get_args(errors.Resource)},
    "picture_not_found": Code(404, "The device shows no picture, or none has come since the start."),
    "method_not_allowed": Code(405, "The path has no such method; `Allow` names those that it has."),
    "request_timeout": Code(408, "The request took too long to arrive."),
    "body_too_large": Code(413, "The body is larger than `api.max_body_bytes`, or than the 16 KiB of a hook."),
    "head_too_large": Code(413, "The request line and its headers are larger than 8 KiB."),
    "expectation_failed": Code(417, "The hub does not know what `Expect` asks for."),
    "dropped_by_mode": Code(423, "The mode of the scene admits no further execution now."),
    "upgrade_required": Code(426, "The path is a WebSocket, and the request does not open one."),
    "rate_limited": Code(429, "Too many requests with this key; `Retry-After` says when to try again."),
    "internal": Code(500, "The hub has a fault; its log has the traceback."),
    "unsupported": Code(501, "The device does not offer this command."),
    "unknown_transfer_coding": Code(501, "The body comes in a `Transfer-Encoding` other than `chunked`."),
    "authentication_unavailable": Code(503, "The hub has no memory to check the key with now. Try again."),
    "not_ready": Code(503, "The hub is starting; `error` names what is missing."),
    "store_unavailable": Code(503, "The card takes no change now; nothing of it counts. Try again."),
}
"""Every code that the body of an error may hold."""


def status_of(error: errors.LaresError) -> int:
    """The HTTP status that comes with the error's code; 500 for one that no client should meet."""
    return CODES[error.code if error.code in CODES else "internal"].status


def headers_of(error: errors.LaresError) -> Mapping[str, str] | None:
    """The headers that come with the error, if any do."""
    if isinstance(error, errors.RateLimited):
        return {"Retry-After": str(math.ceil(error.wait_secs))}
    return ERROR_HEADERS.get(type(error))


def error_response(request: Request, error: Exception) -> HTTPResponse:
    """The response to a request that failed: always JSON with `error` and `code`, never a traceback.

    What no client should meet is 500, with a fixed sentence; its own sentence and traceback go to the log.
    """
    if isinstance(error, errors.LaresError) and status_of(error) != 500:
        return _response(status_of(error), str(error), error.code, headers_of(error))
    if isinstance(error, NotFound):
        return _response(404, "there is no such path", "path_not_found")
    if isinstance(error, MethodNotAllowed):
        return _response(405, f"{error.method} is not a method of this path", "method_not_allowed", error.headers)
    if isinstance(error, PayloadTooLarge):
        return _response(413, "the head of the request is too large", "head_too_large")
    if isinstance(error, SanicException) and error.status_code in _SANIC_CODES:
        return _response(error.status_code, _sentence(error), _SANIC_CODES[error.status_code], error.headers)
    log.error("%s %s failed: %s: %s", request.method, request.path, type(error).__name__, error, exc_info=error)
    return _response(500, "the hub failed to answer; its log says why", "internal")


def error_body(message: str, code: str, **more: Any) -> dict[str, Any]:
    """The body of a response that is not 2xx: `message` is the sentence, `code` one of `CODES`."""
    return {"error": message.encode(errors="replace").decode(), "code": code, **more}


def refusal_body(failed: errors.ConfigFailed) -> dict[str, Any]:
    """The body that lists the faults of files."""
    return error_body(str(failed), errors.ScriptFailed.code, errors=failed.faults)


def failed_execution_body(what: str, result: ExecutionEntry) -> dict[str, Any]:
    """The body for an execution of `what` (`scene 'x'`) that did not end with ok."""
    is_cancelled = result.status is ExecutionStatus.CANCELLED
    how, error = ("was cancelled", errors.ExecutionCancelled) if is_cancelled else ("failed", errors.ScriptFailed)
    return error_body(f"{what} {how}: {result.error}", error.code, results=result.results)


def _response(status: int, message: str, code: str, headers: Mapping[str, str] | None = None) -> HTTPResponse:
    return json_response(error_body(message, code), status, headers)


def _sentence(error: SanicException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "the request cannot be understood"


BUCKETS_SECS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper ends of the times that are told apart."""

UNMATCHED = "unmatched"
"""The route of requests whose path or method is no route's."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class RequestCounts:
    """How many requests of a method and a route there were, and how long their responses took: how many requests up
    to each of `BUCKETS_SECS`, and the sum.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, int]] = Counter()
        self.times: dict[tuple[str, str], list[int]] = {}
        self.seconds: dict[tuple[str, str], float] = {}

    def add(self, method: str, route: str, status: int, seconds: float | None = None) -> None:
        """Count a request of this route that was answered so; `seconds` is how long that took, None for a stream."""
        self.counts[method if method in _METHODS else "other", route, status] += 1
        if seconds is not None:
            which = method, route
            self.times.setdefault(which, [0] * (len(BUCKETS_SECS) + 1))[bisect_left(BUCKETS_SECS, seconds)] += 1
            self.seconds[which] = self.seconds.get(which, 0.0) + seconds
