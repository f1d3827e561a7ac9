"""The error codes with their meanings, HTTP statuses, and headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from msgspec import Struct

from appliance import errors
from appliance.api.limits import MAX_FILE_BODY_BYTES, MAX_HOOK_BYTES, MAX_PREFERENCES_BYTES, MAX_SMALL_BODY_BYTES
from appliance.store.saved_files import MAX_SAVED_BYTES


class Code(Struct, frozen=True):
    """The HTTP status and meaning of a code, and the additional headers of its responses."""

    status: int
    meaning: str
    headers: Mapping[str, str] = {}


CODES: Mapping[str, Code] = {
    "invalid_request": Code(400, "The request is malformed HTTP or JSON, or lacks a required field."),
    "invalid_value": Code(400, "A value of the request is not allowed, or names an unknown room, group, or device."),
    "device_unreachable": Code(400, "The device did not answer."),
    "device_refused": Code(400, "The device answered, but did not carry out the command."),
    "busy": Code(
        400,
        "Too many commands, messages, executions, simulations, or trials are in progress, so the hub did not begin "
        "this one. Try again.",
    ),
    "adapter_failed": Code(400, "The adapter of the device has a bug; the hub's log has the traceback."),
    "invalid_file": Code(400, "The text has errors, which `errors` lists; nothing is written."),
    "script_failed": Code(400, "A Lua file failed, was stopped at a limit, or has errors."),
    "cancelled": Code(400, "The execution was cancelled before it finished."),
    "stopping": Code(400, "The hub is stopping, so it cancelled the request. The result of a command is unknown."),
    "authentication_required": Code(401, "The key is missing or unknown.", {"WWW-Authenticate": "Bearer"}),
    "insufficient_permissions": Code(403, "The key's role does not allow this request."),
    "path_not_found": Code(404, "The path is unknown."),
    **{f"{each}_not_found": Code(404, f"There is no {each} with this id.") for each in get_args(errors.Resource)},
    "picture_not_found": Code(404, "The device has no picture, or has not sent one since the hub started."),
    "method_not_allowed": Code(
        405, "The path does not support this method; the header `Allow` lists the methods that it supports."
    ),
    "alias_taken": Code(409, "Another device has this alias."),
    "file_exists": Code(409, "A file with this path already exists."),
    "file_changed": Code(409, "The file has changed since the version in the request."),
    "request_timeout": Code(408, "The request did not arrive in time."),
    "body_too_large": Code(
        413,
        f"The body exceeds the limit of its path ({MAX_HOOK_BYTES >> 10} KiB for hooks, {MAX_FILE_BODY_BYTES >> 20} "
        f"MiB for files, {MAX_SMALL_BODY_BYTES >> 10} KiB for other paths) or `api.max_body_bytes`. The text of a "
        f"file can have at most {MAX_SAVED_BYTES >> 10} KiB, and preferences at most {MAX_PREFERENCES_BYTES >> 10} "
        "KiB.",
    ),
    "unknown_content_coding": Code(415, "The body is compressed; send it without `Content-Encoding`."),
    "expectation_failed": Code(417, "The hub does not support the value of `Expect`."),
    "dropped_by_mode": Code(423, "The scene is running, and its mode allows no further execution."),
    "upgrade_required": Code(
        426, "The path requires a WebSocket handshake.", {"Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    ),
    "rate_limited": Code(
        429,
        "The key has sent too many requests, too many checks of the key are waiting, or the client's address has too "
        "many connections. "
        "`Retry-After` gives the number of seconds to wait.",
        {"Retry-After": "1"},
    ),
    "head_too_large": Code(431, "The request line and its headers are larger than 8 KiB."),
    "internal": Code(500, "The hub has a bug; its log has the traceback."),
    "unsupported": Code(501, "The device does not offer this command."),
    "unknown_transfer_coding": Code(501, "The `Transfer-Encoding` of the body is not `chunked`."),
    "overloaded": Code(
        503, "Other requests use all of the memory for request bodies. Try again later.", {"Retry-After": "1"}
    ),
    "authentication_unavailable": Code(
        503, "The hub has too little memory to check the key. Try again.", {"Retry-After": "1"}
    ),
    "not_ready": Code(
        503, "The hub is starting, or must be restarted; `error` names the reason.", {"Retry-After": "1"}
    ),
    "store_unavailable": Code(
        503, "The store cannot save the change; nothing has changed. Try again.", {"Retry-After": "10"}
    ),
}
"""Every code in the body of an error response."""

SANIC_CODES: Mapping[int, str] = {
    400: "invalid_request",
    404: "path_not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    417: "expectation_failed",
    431: "head_too_large",
    501: "unknown_transfer_coding",
}
"""The error code for each HTTP status with which Sanic or the router rejects requests."""


def status_of(error: errors.LaresError) -> int:
    """Return the HTTP status for the error's code, or 500 if the code has no status."""
    return CODES[error.code if error.code in CODES else "internal"].status
