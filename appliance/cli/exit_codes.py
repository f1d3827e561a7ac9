"""The exit codes of all commands."""

from __future__ import annotations

import os
from collections.abc import Mapping

EXIT_CODES: Mapping[int, str] = {
    os.EX_OK: "success, or stopped on request",
    1: "lares doctor found a problem",
    os.EX_USAGE: "unknown or invalid arguments, or an unsupported request",
    os.EX_DATAERR: "a specified file or the store is damaged",
    os.EX_NOINPUT: "a specified file or folder (except --config), or the data directory, is missing or unreadable",
    os.EX_NOUSER: "unknown key, automation, scene, or device",
    os.EX_UNAVAILABLE: "the port is taken, no hub responds, a device did not execute a command, or a new version "
    "is not suitable or does not start",
    os.EX_SOFTWARE: "an internal error; please report it",
    os.EX_OSERR: "too little memory, or too many threads",
    os.EX_CANTCREAT: "a specified file or folder, or the data directory, cannot be created",
    os.EX_IOERR: "a file cannot be read or written, or standard output was closed",
    os.EX_TEMPFAIL: "another hub uses the data directory, or the hub is starting, stopping or busy; try again",
    os.EX_NOPERM: "permission denied",
    os.EX_CONFIG: "the configuration is missing or has errors, or a Lua file has errors",
    130: "interrupted with Ctrl-C",
}
"""The meaning of every exit code. The codes from 64 to 78 come from sysexits.h."""

_BY_STATUS = {
    400: os.EX_USAGE,
    403: os.EX_NOPERM,
    404: os.EX_NOUSER,
    429: os.EX_TEMPFAIL,
    501: os.EX_USAGE,
    503: os.EX_IOERR,
}
"""Exit codes by HTTP status of an error."""

_BY_CODE = {
    **dict.fromkeys(("device_unreachable", "device_refused", "adapter_failed"), os.EX_UNAVAILABLE),
    **dict.fromkeys(("busy", "stopping"), os.EX_TEMPFAIL),
}
"""Exit codes by error code, for any HTTP status."""


def exit_code_of(status: int, code: str | None) -> int:
    """Return the exit code for an error of the API."""
    by_status = _BY_STATUS.get(status, os.EX_SOFTWARE)
    return by_status if code is None else _BY_CODE.get(code, by_status)
