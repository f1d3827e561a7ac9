"""The one tree of errors. The class tells the caller what to do; the message is a sentence for a person.

LaresError
├── Invalid              what was asked is malformed or not allowed: mend the request
│   ├── TooLarge         the body is beyond the limit
│   ├── TooSlow          the body did not arrive in time
│   └── UpgradeRequired  the path is a WebSocket's and the request is not
├── NotFound             the thing that was named does not exist
├── Busy                 so much of its kind is under way that this one is dropped: try again
├── Unsupported          well-formed, but this device does not offer it
├── Unauthenticated      no valid key came with the request
│   └── TooManyChecks    so many keys wait to be checked that this one cannot: try again
├── Forbidden            the key is valid, its role does not reach that far
├── RateLimited          the key has written too often: try again after `wait_secs`
├── NotReady             the hub is still starting: try again
├── AdapterFailed        a vendor's device did not do it
│   ├── Unreachable      it did not answer
│   └── BadAnswer        it answered with a refusal or with something that is not its protocol
├── ScriptFailed         a Lua file failed or was stopped at a limit: mend it where the message says
├── RunCancelled         the execution was ended from outside
├── StoreFailed          the card does not take the change now: try again
├── ConfigFailed         configuration that cannot be used; holds every fault
└── StartFailed          the hub cannot start here; holds the exit code
"""

from __future__ import annotations

from dataclasses import dataclass


class LaresError(Exception):
    """Any failure that Lares foresees. `str()` of it is the sentence to show."""


class Invalid(LaresError):
    """What was asked is malformed or not allowed."""


class TooLarge(Invalid):
    """The body is larger than the limit."""


class TooSlow(Invalid):
    """The body did not arrive in time."""


class UpgradeRequired(Invalid):
    """The path is a WebSocket's and the request is not."""


class NotFound(LaresError):
    """The thing that was named does not exist."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"{what} '{name}' not found")


class Busy(LaresError):
    """So much of its kind is under way that this one is dropped."""


class Unsupported(LaresError):
    """A well-formed command that this device does not offer."""


class Unauthenticated(LaresError):
    """No valid key came with the request."""


class TooManyChecks(Unauthenticated):
    """So many keys wait to be checked that this one cannot."""


class Forbidden(LaresError):
    """The key is valid, its role does not reach that far."""


class RateLimited(LaresError):
    """The key has written more than it may; it may again in `wait_secs`."""

    def __init__(self, wait_secs: float) -> None:
        super().__init__("rate limit exceeded")
        self.wait_secs = wait_secs


class NotReady(LaresError):
    """The hub is still starting."""


class AdapterFailed(LaresError):
    """A vendor's device did not do what was asked."""


class Unreachable(AdapterFailed):
    """The device did not answer at all."""


class BadAnswer(AdapterFailed):
    """The device answered with a refusal, or with something that is not its protocol."""


class StoreFailed(LaresError):
    """The card does not take the change now; nothing of it counts."""


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing to mend: `file:line: message`, or `file: message` when the line is 0."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.message}"


class ScriptFailed(LaresError):
    """A Lua file failed. The message begins with its place; `status` is `timeout` where a limit of time ended it."""

    def __init__(self, fault: Fault, status: str = "error") -> None:
        super().__init__(str(fault))
        self.file = fault.file
        self.line = fault.line
        self.message = fault.message
        self.status = status


class RunCancelled(LaresError):
    """The execution was ended from outside, before it was done."""


class ConfigFailed(LaresError):
    """Configuration that cannot be used. `faults` names every one, in order of place."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = faults


class StartFailed(LaresError):
    """The hub cannot start here. `exit_code` is one of sysexits(3)."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
