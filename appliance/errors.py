"""The tree of errors. The class shows the caller what to do; the message is a sentence for a person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

MAX_SHOWN_ID_CHARS = 256
"""The number of characters of an id that a message repeats; no existing id is longer."""

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
"""The kinds of resources of a `NotFound`. Each has its code, `<resource>_not_found`."""


class LaresError(Exception):
    """Any foreseen failure. `str()` returns the sentence to show.

    `code` is for programs: snake_case, and stable over versions. `api/codes.py` lists the codes of answers.
    """

    code: str = "internal"

    @property
    def lines(self) -> Sequence[str]:
        """The sentences, one per line; any other line break in them came from outside."""
        return (str(self),)


class Invalid(LaresError):
    """A given value is not allowed: change the request."""

    code = "invalid_value"


class UnfitValue(Invalid):
    """The value of a command does not fit its capability. `command` is the unchecked request."""

    def __init__(self, message: str, command: Any) -> None:
        super().__init__(message)
        self.command = command


class MalformedRequest(Invalid):
    """The request is not JSON, not an object, or lacks a required field: change its form."""

    code = "invalid_request"


class TooLarge(Invalid):
    """The body, or the text in it, is larger than the route accepts."""

    code = "body_too_large"


class UnknownContentCoding(Invalid):
    """The body is compressed: send it uncompressed."""

    code = "unknown_content_coding"


class Overloaded(LaresError):
    """Bodies of other requests take up the memory for them: try again in a second."""

    code = "overloaded"


class TooSlow(Invalid):
    """The body did not arrive in time."""

    code = "request_timeout"


class UpgradeRequired(Invalid):
    """The path is for WebSockets, but the request is not one."""

    code = "upgrade_required"


class NotFound(LaresError):
    """No resource has this id; if the name is too long for an id, the message shows only its beginning.

    `known` are existing ids, for a hint with the nearest one.
    """

    def __init__(self, what: Resource, name: str, known: Iterable[str] = ()) -> None:
        self.name, self.known = name, known
        shown = name if len(name) <= MAX_SHOWN_ID_CHARS else f"{name[: MAX_SHOWN_ID_CHARS - 1]}…"
        super().__init__(f"{what} '{shown}' not found")
        self.code = f"{what}_not_found"


class AliasTaken(LaresError):
    """Another device has this alias."""

    code = "alias_taken"


class NoPicture(NotFound):
    """The device exists but has no picture now: it never shows one, or has sent none since the hub started."""

    def __init__(self, device_id: str, attribute: str | None) -> None:
        super().__init__("picture", device_id)
        of = "" if attribute is None else f" of {attribute[:MAX_SHOWN_ID_CHARS]}"
        self.args = (f"device '{device_id}' has no picture{of}: it shows none, or has sent none since the start",)


class DroppedByMode(LaresError):
    """The mode of the scene or automation allows no further execution now: try again later."""

    code = "dropped_by_mode"


class Unsupported(LaresError):
    """A well-formed command that this device does not offer."""

    code = "unsupported"


class Unauthenticated(LaresError):
    """No valid key came with the request."""

    code = "authentication_required"


class TooManyChecks(Unauthenticated):
    """Too many tokens wait for their hash: try again in a second."""

    code = "rate_limited"


class AuthenticationUnavailable(LaresError):
    """There is no memory or thread to check a key with now; the key may be valid: try again."""

    code = "authentication_unavailable"


class Forbidden(LaresError):
    """The key is valid, but its role may not use the route."""

    code = "insufficient_permissions"


class RateLimited(LaresError):
    """The key has written too often: try again in `wait_secs` seconds."""

    code = "rate_limited"

    def __init__(self, wait_secs: float) -> None:
        super().__init__("rate limit exceeded")
        self.wait_secs = wait_secs


class NotReady(LaresError):
    """The hub is still starting: try again."""

    code = "not_ready"


class Stopping(LaresError):
    """The hub is stopping; whether the work was done is unknown."""

    code = "stopping"


class AdapterFailed(LaresError):
    """A vendor's device did not do the command."""

    code = "adapter_failed"


class Busy(AdapterFailed):
    """Too many commands wait for the device's address; this command was not sent: try again."""

    code = "busy"


class Unreachable(AdapterFailed):
    """The device did not answer at all."""

    code = "device_unreachable"


class BadAnswer(AdapterFailed):
    """The device answered with a refusal, or not in its protocol."""

    code = "device_refused"


class Unreadable(BadAnswer):
    """The device's answer cannot be read: the effect of a write is unknown."""


class Unanswered(BadAnswer):
    """The device is reachable, but did not answer this request: it hung up, or took too long. That is not an
    outage."""

    code = "device_unreachable"


class StoreFailed(LaresError):
    """The change could not be stored and is not in force: try again."""

    code = "store_unavailable"


class Fault(Struct, frozen=True, order=True):
    """One thing to fix: `file:line: message`, or `file: message` when the line is 0."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.message}"


class ScriptFailed(LaresError):
    """A Lua file failed. `status` is `timeout` if a limit of time ended it.

    The message begins with the place, unless it `is_sentence`: then the file itself raised it for the user.
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
    """The execution was cancelled from outside before it was done."""

    code = "cancelled"


class ConfigFailed(LaresError):
    """The configuration cannot be used. `faults` has all faults, in the order of their places."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = faults

    @property
    def lines(self) -> Sequence[str]:
        """Each fault."""
        return [str(fault) for fault in self.faults]


class InvalidFile(Invalid):
    """A text that has faults, and is neither saved nor simulated."""

    code = "invalid_file"

    def __init__(self, path: str, faults: Sequence[Fault]) -> None:
        first = faults[0]
        place = f"line {first.line}: " if first.line else ""
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        super().__init__(f"{path} has {count}: {place}{first.message}")
        self.faults = faults


class FileChanged(LaresError):
    """The file no longer has the version that the request states."""

    code = "file_changed"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} has changed since you read it; read it again, and save your change on top of it")


class FileExists(LaresError):
    """A new file has the path of an existing file."""

    code = "file_exists"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} exists already; choose another name")


class StartFailed(LaresError):
    """The hub cannot start here. `exit_code` is one of sysexits(3); `more` are further lines."""

    def __init__(self, message: str, exit_code: int, *more: str) -> None:
        super().__init__("\n".join((message, *more)))
        self.exit_code = exit_code
        self._lines = (message, *more)

    @property
    def lines(self) -> Sequence[str]:
        """The message and the lines after it."""
        return self._lines
