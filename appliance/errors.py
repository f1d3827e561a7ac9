"""All errors. The class tells the caller how to react; the message is a sentence for a person."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, Literal

from msgspec import Struct

from appliance.shortening import shorten

MAX_SHOWN_ID_CHARS = 256
"""Maximum number of characters of an id in a message. No valid id is longer."""

Resource = Literal[
    "adapter",
    "automation",
    "device",
    "execution",
    "file",
    "group",
    "hook",
    "key",
    "picture",
    "recipe",
    "room",
    "scene",
    "section",
    "timer",
    "variable",
    "version",
]
"""The kinds of resources in a `NotFound` error. The error code is `<resource>_not_found`."""


class LaresError(Exception):
    """Any foreseen failure. `str()` returns the sentence for users. `code` is a stable snake_case identifier for
    programs; `api/error_codes.py` lists the codes of responses."""

    code: str = "internal"

    @property
    def lines(self) -> Sequence[str]:
        """The message's sentences. A sentence can contain line breaks from external texts."""
        return (str(self),)


class Invalid(LaresError):
    """A value in the request is not allowed."""

    code = "invalid_value"


class UnfitValue(Invalid):
    """The capability does not allow the command's value. `command` is the unchecked request."""

    def __init__(self, message: str, command: Any) -> None:
        super().__init__(message)
        self.command = command


class MalformedRequest(Invalid):
    """The request is not JSON, is not an object, or lacks a required field."""

    code = "invalid_request"


class TooLarge(Invalid):
    """The body, or a text inside the body, exceeds the route's limit."""

    code = "body_too_large"


class UnknownContentCoding(Invalid):
    """The body is compressed; the hub accepts only uncompressed bodies."""

    code = "unknown_content_coding"


class Overloaded(LaresError):
    """The memory for request bodies is exhausted; retry after a second."""

    code = "overloaded"


class TooSlow(Invalid):
    """The body did not arrive in time."""

    code = "request_timeout"


class UpgradeRequired(Invalid):
    """The path is a WebSocket path, but the request is plain HTTP."""

    code = "upgrade_required"


class NotFound(LaresError):
    """No resource has this id. The message shortens a name that is too long for an id.

    `known` contains existing ids. In Lua, the message also suggests the most similar id.
    """

    def __init__(self, what: Resource, name: str, known: Iterable[str] = ()) -> None:
        self.name, self.known = name, known
        super().__init__(f"{what} '{shorten(name, MAX_SHOWN_ID_CHARS)}' not found")
        self.code = f"{what}_not_found"


class AliasTaken(LaresError):
    """Another device has this alias."""

    code = "alias_taken"


class NoPicture(NotFound):
    """The device exists, but has sent no picture since the hub started."""

    def __init__(self, device_id: str, attribute: str | None) -> None:
        super().__init__("picture", device_id)
        of = "" if attribute is None else f" of {attribute[:MAX_SHOWN_ID_CHARS]}"
        self.args = (f"device '{device_id}' has sent no picture{of} since the hub started",)


class DroppedByMode(LaresError):
    """The mode of the scene or automation currently allows no further execution."""

    code = "dropped_by_mode"


class Unsupported(LaresError):
    """The command is valid, but the device does not offer it."""

    code = "unsupported"


class Unauthenticated(LaresError):
    """The request has no valid API key."""

    code = "authentication_required"


class TooManyChecks(Unauthenticated):
    """Too many requests are waiting for the check of their API keys; retry after a second."""

    code = "rate_limited"


class TooManyConnections(LaresError):
    """A client has too many connections through a trusted proxy; retry after a second."""

    code = "rate_limited"

    def __init__(self, client: str) -> None:
        limit = "the maximum number of connections for one address (api.max_connections_per_peer)"
        super().__init__(f"{client} has {limit}; close some of them, or try again later")


class AuthenticationUnavailable(LaresError):
    """The hub has no memory or thread left to check the API key. The key may be valid; retry later."""

    code = "authentication_unavailable"


class Forbidden(LaresError):
    """The API key is valid, but its role does not allow the route."""

    code = "insufficient_permissions"


class RateLimited(LaresError):
    """The API key has sent too many requests; retry after `wait_secs` seconds."""

    code = "rate_limited"

    def __init__(self, wait_secs: float) -> None:
        super().__init__("rate limit exceeded")
        self.wait_secs = wait_secs


class NotReady(LaresError):
    """The hub is starting, so retry later; or the hub must be restarted."""

    code = "not_ready"


class Stopping(LaresError):
    """The hub is stopping; the result of the request is unknown."""

    code = "stopping"


class AdapterFailed(LaresError):
    """The device did not execute the command."""

    code = "adapter_failed"


class Busy(AdapterFailed):
    """Too many requests of this kind are in progress, so this request did not begin; retry later."""

    code = "busy"


class Unreachable(AdapterFailed):
    """The device did not answer."""

    code = "device_unreachable"


class BadAnswer(AdapterFailed):
    """The device refused the request, or its answer violates the protocol."""

    code = "device_refused"


class Unreadable(BadAnswer):
    """The device's answer is unreadable; the effect of a write is unknown."""


class Unanswered(BadAnswer):
    """The device is reachable, but closed the connection or did not answer in time. This error does not mark the
    device as offline."""

    code = "device_unreachable"


class StoreFailed(LaresError):
    """The change could not be stored and has no effect; retry later."""

    code = "store_unavailable"


class Fault(Struct, frozen=True, order=True):
    """One problem in a file. `str()` returns `file:line: message`, or `file: message` if the line is 0."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.message}"


class ScriptFailed(LaresError):
    """A Lua file failed. `status` is `timeout` if a time limit ended the execution.

    If `is_sentence` is true, the script raised a message for users. Other messages begin with the file and line.
    """

    code = "script_failed"

    def __init__(self, fault: Fault, status: str = "error", *, is_sentence: bool = False) -> None:
        super().__init__(fault.message if is_sentence else str(fault))
        self.fault = fault
        self.file = fault.file
        self.line = fault.line
        self.message = fault.message
        self.status = status


class ExecutionCancelled(LaresError):
    """The execution was cancelled before it finished."""

    code = "cancelled"


class ConfigFailed(LaresError):
    """The configuration is invalid. `faults` contains all faults, sorted by file and line."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(faults)
        self.faults = faults

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @property
    def lines(self) -> Sequence[str]:
        return [str(fault) for fault in self.faults]


class InvalidFile(Invalid):
    """The text has faults, so it is neither saved nor simulated."""

    code = "invalid_file"

    def __init__(self, path: str, faults: Sequence[Fault]) -> None:
        first = faults[0]
        place = f"line {first.line}: " if first.line else ""
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        super().__init__(f"{path} has {count}: {place}{first.message}")
        self.faults = faults


class FileChanged(LaresError):
    """The file's version differs from the version in the request."""

    code = "file_changed"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} has changed since you read it; read it again and repeat your change")


class FileExists(LaresError):
    """The path for a new file is taken."""

    code = "file_exists"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} exists already; choose another name")


class StartFailed(LaresError):
    """The hub or a command cannot start. `exit_code` is a code of sysexits(3). `more` contains additional lines of
    the message."""

    def __init__(self, message: str, exit_code: int, *more: str) -> None:
        super().__init__("\n".join((message, *more)))
        self.exit_code = exit_code
        self._lines = (message, *more)

    @property
    def lines(self) -> Sequence[str]:
        return self._lines


class AccessDenied(StartFailed):
    """A path that this process may not use. `remedy` is the user's next step."""

    def __init__(self, path: str | PathLike[str], remedy: str) -> None:
        super().__init__(f"permission denied: {path}; {remedy}", os.EX_NOPERM)
        self.path = path
