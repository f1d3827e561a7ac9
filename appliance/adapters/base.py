"""The base class of adapters, and the context of an adapter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
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
from appliance.home_locale import ANYWHERE, Locale
from appliance.tasks import end_within

COMMAND_TIMEOUT_SECS = 5.0
"""Default time limit of a poll or a command. The time limit of a command includes the reads that confirm the
command."""

T = TypeVar("T")

Operation = Callable[[Mapping[str, Value]], Awaitable[Value]]
"""Takes a payload, and returns JSON. Raises `LaresError` on failure."""


class HookRequest(Struct, frozen=True, kw_only=True):
    """A request to `/hooks/<id>` with a valid key. `hook` is the id. `method` is `GET` or `POST`.

    `data` contains the body if it is JSON or a form, and is otherwise None. `body` has the raw bytes. `query` does
    not contain the key. The names of `headers` are in lower case. Headers with secrets are omitted.
    """

    hook: str
    method: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    data: Value = None
    body: bytes = b""


class Secrets(Protocol):
    """Stores short texts of an adapter, such as a token, across restarts."""

    def get(self, key: str) -> str | None: ...

    async def put(self, key: str, value: str) -> None:
        """Store the text durably. Raise `StoreFailed` on failure."""


class AdapterContext(Struct, frozen=True, kw_only=True):
    """The parts of the hub that an adapter uses. `name` is the section's name, and the prefix of the ids of the
    section's devices.

    `open_session` returns the `DeviceSession` that all adapters share. The first call opens the session. Relative
    paths in the section start at `root`. `locale` has the home's time zone and coordinates. `record` stores devices.
    `record` returns when the devices are durable, and raises `StoreFailed` on failure. `record` does not publish the
    devices. `lua_host` runs kinds in Lua.
    """

    name: str
    clock: Clock
    publish: Publisher
    secrets: Secrets
    open_session: Callable[[], Any]  # the import of `DeviceSession` would load aiohttp at the start
    gates: AddressGates
    record: Callable[[Sequence[Device]], Awaitable[None]]
    root: Path = Path()
    locale: Locale = ANYWHERE
    lua_host: KindHost | None = None


class AdapterReplaced(Exception):
    """Raised by `run` if the definition of the adapter has changed. The runner makes a new adapter at once."""


class CommandResult(Struct, frozen=True, kw_only=True):
    """The reading after the command, if any, and the error if the command failed."""

    report: Report | None = None
    error: LaresError | None = None


class Picture(Struct, frozen=True, kw_only=True):
    """A still picture, its media type, and its time of arrival."""

    media_type: str
    body: bytes
    at: datetime


class Adapter(ABC):
    """Connects the devices of one section of the configuration. An adapter publishes the devices' states, and sends
    commands to the devices.

    The runner enters the adapter, awaits `run`, and calls `command` while `run` works. When `run` raises or returns,
    the runner exits the adapter, pauses, and builds a new one. Meanwhile, the devices keep their states.

    Commands to one `address` wait for each other, even across adapters. At most `concurrency` commands run at a time.
    If `takes_many` is true, one call gets the commands for several devices. If `shares_outages` is true, an
    unanswered command means that no device at the address answers. In this case, all waiting commands fail at once,
    and are not sent. Without `shares_outages`, only waiting commands to the same device fail.

    `command_secs` is the time limit of a command, a poll, and any other call except `run`. `operation_secs` maps
    slower operations to their time limits.
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
        """Close all resources. The hub waits at most one second for this method."""

    @abstractmethod
    async def run(self) -> None:
        """Poll or receive messages until cancelled. Call `publish.started()` after the first attempt."""

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Within `command_secs`, send a command that the device offers. At most `concurrency` calls run at a time.

        The dispatcher has checked the command against the stored device. Check the command again with `command =
        check_offered(…)`, because the device's offered commands can change while the command waits.

        Raise `Unsupported` if the device does not offer the command, `Invalid` if the value is invalid, and
        `AdapterFailed` for any other failure. Adapters for read-only devices need not implement this method.
        """
        raise Unsupported(f"{device_id} accepts no commands")

    async def command_many(self, device_ids: Sequence[str], command: Command) -> Sequence[CommandResult]:
        """Send the command to the devices, and return one result per device.

        An adapter implements `command` or, with `takes_many`, this method. If `takes_many` is false, `device_ids`
        contains only one device.
        """
        return [await self.command(device_id, command) for device_id in device_ids]

    async def picture(self, device_id: str, attribute: str | None = None) -> Picture | None:
        """Within `command_secs`, return the newest still picture of a device or of one of its attributes.

        Return None if there is no picture. Raise `AdapterFailed` on failure.
        """
        return None

    @property
    def answers(self) -> int | None:
        """The number of answers from the device or service. If the number is None, each completed command is
        treated as one answer."""
        return None

    @property
    def operations(self) -> Mapping[str, Operation]:
        """Operations by name, for `ctx:invoke`."""
        return {}

    @property
    def hooks(self) -> Collection[str]:
        """Ids of the adapter's hooks. The usual id is the section's name."""
        return ()

    async def hook(self, request: HookRequest) -> None:
        """Handle a request to one of `hooks`, within `command_secs`. Calls can be concurrent.

        Publish the result in the same way as the result of a poll. Raise `Invalid` for an unusable request, and
        `AdapterFailed` for any other failure. The caller gets the error message.
        """
        raise NotFound("hook", request.hook)

    def on_hook_failed(self, error: AdapterFailed) -> None:
        """Handle the failure of a valid request to a hook. The caller also gets the error."""
        self.publish.record_error(error)

    async def run_limited(self, work: Awaitable[T], secs: float | None = None) -> T:
        """Await a poll, a command, or another call. Raise `Unanswered` after `secs`, which is `command_secs` by
        default."""
        secs = self.command_secs if secs is None else secs
        try:
            return await end_within(work, secs)
        except TimeoutError:
            raise Unanswered(f"{self.name} took longer than {secs:g} s") from None

    def on_unreachable(self, error: Unreachable) -> None:  # noqa: B027 - for a bridge it concerns one device only
        """Handle an unanswered command. If all devices of the adapter are unreachable, publish the outage."""
