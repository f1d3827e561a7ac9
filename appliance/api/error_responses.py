"""Builds error responses."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

from sanic import HTTPResponse, Request
from sanic.exceptions import MethodNotAllowed, NotFound, SanicException

from appliance import errors
from appliance.api.error_codes import CODES, SANIC_CODES, status_of
from appliance.api.responses import json_response
from appliance.api.schemas import FILE_FAULT
from appliance.history.execution_history import ExecutionEntry, ExecutionStatus
from appliance.program_folder import describe_missing_program

log = logging.getLogger("api")


def response_status(error: Exception) -> int:
    """Return the HTTP status of the response to the error. The status of an unexpected error is 500."""
    error = _explain(error)
    if isinstance(error, errors.LaresError):
        return status_of(error)
    return error.status_code if isinstance(error, SanicException) and error.status_code in SANIC_CODES else 500


def error_response(request: Request, error: Exception) -> HTTPResponse:
    """Return the response to a failed request: always JSON with `error` and `code`, never a traceback. For the text
    of a file, `errors` lists the errors.

    The response to an unexpected error is 500 with a fixed sentence; the log contains the message and the traceback.
    """
    error = _explain(error)
    status = response_status(error)
    if isinstance(error, errors.LaresError) and status != 500:
        faults = error.faults if isinstance(error, errors.InvalidFile) else ()
        more = {"errors": list(map(FILE_FAULT, faults))} if faults else {}
        return json_response(error_body(str(error), error.code, **more), status, _headers_of(error))
    if isinstance(error, SanicException) and status != 500:
        return _response(status, _sentence(error), SANIC_CODES[status], error.headers)
    log.error("%s %s failed: %s: %s", request.method, request.path, type(error).__name__, error, exc_info=error)
    return _response(500, "the hub failed to answer; see its log", "internal")


def _explain(error: Exception) -> Exception:
    """Return `NotReady` if a file or module cannot be loaded because the program's folder is missing, otherwise the
    given error."""
    if isinstance(error, OSError | ImportError) and (fault := describe_missing_program()):
        return errors.NotReady(fault)
    return error


def error_body(message: str, code: str, **more: Any) -> dict[str, Any]:
    """Return the body of an error response. `message` is a sentence, and `code` is one of `CODES`."""
    return {"error": message.encode(errors="replace").decode(), "code": code, **more}


def invalid_files_body(failed: errors.ConfigFailed) -> dict[str, Any]:
    """Return the body that lists the errors of files."""
    return error_body(str(failed), errors.ScriptFailed.code, errors=failed.faults)


def failed_execution_body(what: str, result: ExecutionEntry) -> dict[str, Any]:
    """Return the body for a failed execution of `what`, such as `scene 'x'`."""
    is_cancelled = result.status is ExecutionStatus.CANCELLED
    how, error = ("was cancelled", errors.ExecutionCancelled) if is_cancelled else ("failed", errors.ScriptFailed)
    return error_body(f"{what} {how}: {result.error}", error.code, results=result.results)


def _response(status: int, message: str, code: str, headers: Mapping[str, str] | None = None) -> HTTPResponse:
    return json_response(error_body(message, code), status, headers)


def _headers_of(error: errors.LaresError) -> Mapping[str, str]:
    if isinstance(error, errors.RateLimited):
        return {"Retry-After": str(math.ceil(error.wait_secs))}
    return CODES[error.code].headers


def _sentence(error: SanicException) -> str:
    if isinstance(error, NotFound):
        return "this path does not exist"
    if isinstance(error, MethodNotAllowed):
        return f"this path does not support {error.method}, only {error.headers['Allow']}"
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "the request is malformed"
