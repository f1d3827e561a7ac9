"""What every adapter is: a context that is handed what it needs, works on its own, and publishes what it sees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from appliance.adapters.address_gates import AddressGate, AddressGates
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.errors import AdapterFailed, Unreachable
from appliance.home.commands import Command
from appliance.home.model import Report
from appliance.home.values import Value
from appliance.tasks import end_within

COMMAND_TIMEOUT_SECS = 5.0
"""What a poll or a command may take in all, reads included."""

T = TypeVar("T")

Operation = Callable[[Mapping[str, Value]], Awaitable[Value]]
"""An operation of the adapter's own: takes a payload, returns JSON. Raises a `LaresError` with a sentence."""


class Secrets(Protocol):
    """A place for the few short texts of an adapter that must outlive a restart, a token or an id it made."""

    def get(self, key: str) -> str | None:
        """What is kept under the key, None if nothing is."""

    async def put(self, key: str, value: str) -> None:
        """Keep the text; it is on the card when this returns. Raises `StoreFailed`."""


class HttpSession(Protocol):
    """What adapters use of `aiohttp.ClientSession`; it means here what it means there."""

    @property
    def request(self) -> Any:
        """Send a request."""

    @property
    def ws_connect(self) -> Any:
        """Open a WebSocket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterContext:
    """What an adapter is handed. `name` is its section's, and the first part of its devices' ids.

    Relative paths in its section start at `root`.
    """

    name: str
    clock: Clock
    publish: Publisher
    secrets: Secrets
    session: HttpSession
    gates: AddressGates
    root: Path = Path()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What a command came to: what was read afterwards, if anything, and why it was not done, if it was not."""

    report: Report | None = None
    error: str | None = None


class Adapter(ABC):
    """Our side of one section of the configuration.

    The hub enters it, awaits `run`, and sends it commands meanwhile. Where `run` raises or returns, the adapter is
    left and made anew after a pause; its devices keep their state. It never touches the registry: what it sees, it
    publishes.

    `address` is what its commands share; where two adapters name the same, their commands take turns. As many run
    side by side as `concurrency` says. One that `takes_many` is handed the commands for several devices in one call.
    """

    concurrency = 1
    takes_many = False

    def __init__(self, context: AdapterContext, address: str | None = None) -> None:
        self.name = context.name
        self.clock = context.clock
        self.publish = context.publish
        self.gate: AddressGate = context.gates.at(address or context.name, self.concurrency)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:  # noqa: B027 - most have nothing to give back
        """Give back what was opened; at most a second is waited for it."""

    @abstractmethod
    async def run(self) -> None:
        """Work until cancelled: poll, or take what is pushed. Call `publish.started()` when the first try is over."""

    @abstractmethod
    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Do what the device's `commands` offer. Raises `AdapterFailed`, or `Unsupported` for anything else."""

    async def command_many(self, device_ids: Sequence[str], command: Command) -> Sequence[CommandResult]:
        """As `command`, for several devices at once, a result for each. Called only where `takes_many` is true."""
        return [await self.command(device_id, command) for device_id in device_ids]

    @property
    def operations(self) -> Mapping[str, Operation]:
        """The adapter's own operations by name, beyond commands, for `ctx:invoke`."""
        return {}

    async def within_limit(self, work: Awaitable[T]) -> T:
        """The result of a command or operation; `AdapterFailed` where it takes longer than five seconds."""
        try:
            return await end_within(work, COMMAND_TIMEOUT_SECS)
        except TimeoutError:
            raise AdapterFailed(f"{self.name} took longer than {COMMAND_TIMEOUT_SECS:g} s") from None

    def on_unreachable(self, error: Unreachable) -> None:  # noqa: B027 - one device's silence is nobody else's
        """A command found nobody. Whether the whole adapter is lost then is for the adapter to publish."""
