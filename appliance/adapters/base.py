"""The base class of adapters, and their context: clock, publisher, secrets, HTTP session, gates."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from msgspec import Struct

from appliance.adapters.address_gates import AddressGate, AddressGates
from appliance.adapters.lua_kinds.host import KindHost
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.errors import AdapterFailed, LaresError, NotFound, Unanswered, Unreachable, Unsupported
from appliance.home.commands import Command
from appliance.home.model import Device, Report
from appliance.home.values import Value
from appliance.tasks import end_within

COMMAND_TIMEOUT_SECS = 5.0
"""The time limit of a poll or a command, including its reads."""

T = TypeVar("T")

Operation = Callable[[Mapping[str, Value]], Awaitable[Value]]
"""An operation of an adapter: takes a payload, returns JSON. Raises a `LaresError` with a sentence."""


class HookRequest(Struct, frozen=True, kw_only=True):
    """A call of `/hooks/<id>` whose key was already checked. `hook` is the id, `method` is `GET` or `POST`.

    `data` is the body as JSON or form, None for any other body; `body` is the raw body. `query` does not contain the
    key. The names of `headers` are in lower case; headers with secrets are omitted.
    """

    hook: str
    method: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    data: Value = None
    body: bytes = b""


class Secrets(Protocol):
    """The short texts that an adapter keeps over restarts, such as a token."""

    def get(self, key: str) -> str | None:
        """Return the text of the key, None if it is missing."""

    async def put(self, key: str, value: str) -> None:
        """Store the text; it is on the card when this returns. Raises `StoreFailed`."""


class AdapterContext(Struct, frozen=True, kw_only=True):
    """The context of an adapter. `name` is its section's, and the first part of its devices' ids.

    `open_session` gives the `DeviceSession` that all adapters share; the first call opens it. Relative paths in the
    section start at `root`. `timezone` is the home's. `kinds` runs kinds in Lua. `record` stores the devices as given
    and returns once they are on the card, or raises `StoreFailed`; it publishes nothing.
    """

    name: str
    clock: Clock
    publish: Publisher
    secrets: Secrets
    open_session: Callable[[], Any]
    gates: AddressGates
    record: Callable[[Iterable[Device]], Awaitable[None]]
    root: Path = Path()
    timezone: tzinfo = UTC
    kinds: KindHost | None = None


class AdapterReplaced(Exception):
    """Raised by `run` if the adapter's definition has changed: a new adapter is made at once."""


class CommandResult(Struct, frozen=True, kw_only=True):
    """The result of a command: the state read after it, if any, and the error if the command was not done."""

    report: Report | None = None
    error: LaresError | None = None


class Picture(Struct, frozen=True, kw_only=True):
    """A still picture, the media type of its bytes, and when it came."""

    media_type: str
    body: bytes
    at: datetime


class Adapter(ABC):
    """One section of the configuration: its devices, published as they are seen and commanded on request.

    The runner enters it, awaits `run`, and sends it commands meanwhile. When `run` raises or returns, the runner
    leaves the adapter and, after a pause, builds a new one; the devices keep their state.

    Commands to one `address` wait for each other, across adapters; `concurrency` of them run at a time. With
    `takes_many`, one call gets the commands for several devices. With `shares_outages`, an unanswered command means
    that no device at the address answers: all waiting commands fail at once, unsent. Without it, only waiting
    commands to the same device fail.

    `command_secs` is the time limit of a command, `operation_secs` are those of operations that can take longer.
    """

    concurrency = 1
    takes_many = False
    shares_outages = False
    command_secs = COMMAND_TIMEOUT_SECS
    operation_secs: Mapping[str, float] = {}

    def __init__(self, context: AdapterContext, address: str | None = None) -> None:
        self.name = context.name
        self.clock = context.clock
        self.publish = context.publish
        self.gate: AddressGate = context.gates.at(address or context.name, self.concurrency)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:  # noqa: B027 - most have nothing to close
        """Close all resources within one second; then the hub continues without it."""

    @abstractmethod
    async def run(self) -> None:
        """Work until cancelled: poll, or receive pushed messages. Call `publish.started()` after the first try."""

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Do a command that the device offers, within five seconds. At most `concurrency` calls run at a time.

        Raises `AdapterFailed`, `Unsupported` for a command that is not offered, and `Invalid` for a value. Adapters
        for read-only devices need not implement it.
        """
        raise Unsupported(f"{device_id} takes no commands")

    async def command_many(self, device_ids: Sequence[str], command: Command) -> Sequence[CommandResult]:
        """Do the command for several devices if the adapter `takes_many`, otherwise for one. Return each result.

        An adapter implements `command` or, if it `takes_many`, this method.
        """
        return [await self.command(device_id, command) for device_id in device_ids]

    async def picture(self, device_id: str, attribute: str | None = None) -> Picture | None:
        """Return the newest still picture of a device, of this attribute if one is named, within five seconds. Return
        None without a picture. Raises `AdapterFailed`.
        """
        return None

    @property
    def answers(self) -> float:
        """The number of answers received from the device or service; NaN if they are not counted: then each completed
        command counts as one."""
        return math.nan

    @property
    def operations(self) -> Mapping[str, Operation]:
        """The adapter's own operations by name, for `ctx:invoke`."""
        return {}

    @property
    def hooks(self) -> Collection[str]:
        """The ids of the adapter's hooks, usually its own name."""
        return ()

    async def hook(self, request: HookRequest) -> None:
        """Take a call of one of `hooks`, within five seconds. Calls can be concurrent.

        Publish the result as after a poll. Raises `Invalid` for an unusable request, and `AdapterFailed`; the caller
        gets the sentence.
        """
        raise NotFound("hook", request.hook)

    def on_hook_failed(self, error: AdapterFailed) -> None:
        """Handle a failed call of a hook whose request was valid. The caller gets the error too."""
        self.publish.record_error(error)

    async def within_limit(self, work: Awaitable[T]) -> T:
        """Return the result of a command or operation. Raises `Unanswered` after `command_secs`."""
        return await self.within(self.command_secs, work)

    async def within(self, secs: float, work: Awaitable[T]) -> T:
        """Return the result of the work. Raises `Unanswered` after `secs`."""
        try:
            return await end_within(work, secs)
        except TimeoutError:
            raise Unanswered(f"{self.name} took longer than {secs:g} s") from None

    def on_unreachable(self, error: Unreachable) -> None:  # noqa: B027 - for a bridge it concerns one device only
        """Handle a command without an answer. An adapter that loses all its devices at once publishes that."""
