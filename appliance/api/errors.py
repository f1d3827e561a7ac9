"""From errors to answers: which HTTP status each class of error is, and the body that every error has."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping

from sanic import HTTPResponse, Request
from sanic.exceptions import MethodNotAllowed, NotFound, PayloadTooLarge, SanicException

from appliance import errors
from appliance.api.answers import json_answer

log = logging.getLogger("api")

STATUSES: Mapping[type[errors.LaresError], int] = {
    errors.Invalid: 400,
    errors.TooSlow: 408,
    errors.TooLarge: 413,
    errors.NotFound: 404,
    errors.Busy: 423,
    errors.Unsupported: 501,
    errors.Unauthenticated: 401,
    errors.TooManyChecks: 429,
    errors.Forbidden: 403,
    errors.RateLimited: 429,
    errors.AdapterFailed: 400,
    errors.ScriptFailed: 400,
    errors.RunCancelled: 400,
    errors.NotReady: 503,
    errors.StoreFailed: 503,
    errors.UpgradeRequired: 426,
}
"""The status of each class; a class that is missing has that of the nearest one above it."""

HEADERS: Mapping[type[errors.LaresError], dict[str, str]] = {
    errors.Unauthenticated: {"WWW-Authenticate": "Bearer"},
    errors.TooManyChecks: {"Retry-After": "1"},
    errors.UpgradeRequired: {"Upgrade": "websocket"},
}
"""The headers that come with some of them."""


def status_of(error: errors.LaresError) -> int:
    """The HTTP status that tells the client of this error."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def headers_of(error: errors.LaresError) -> Mapping[str, str] | None:
    """The headers that come with the error, if any do."""
    if isinstance(error, errors.RateLimited):
        return {"Retry-After": str(math.ceil(error.wait_secs))}
    return HEADERS.get(type(error))


def answer_error(request: Request, error: Exception) -> HTTPResponse:
    """The answer to a request that failed: always JSON with `error`, never a traceback."""
    if isinstance(error, errors.LaresError):
        return _answer(status_of(error), str(error), headers_of(error))
    if isinstance(error, NotFound):
        return _answer(404, "there is no such path")
    if isinstance(error, MethodNotAllowed):
        return _answer(405, f"{error.method} is not a method of this path", error.headers)
    if isinstance(error, PayloadTooLarge):
        return _answer(413, "the request is too large")
    if isinstance(error, SanicException) and error.status_code < 500:
        return _answer(error.status_code, _sentence(error), error.headers)
    log.error("%s %s failed: %s: %s", request.method, request.path, type(error).__name__, error)
    log.debug("%s %s", request.method, request.path, exc_info=error)
    return _answer(500, "the hub failed to answer; its log says why")


def _answer(status: int, message: str, headers: Mapping[str, str] | None = None) -> HTTPResponse:
    sayable = message.encode(errors="replace").decode()
    return json_answer({"error": sayable}, status, headers)


def _sentence(error: SanicException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "the request cannot be understood"
