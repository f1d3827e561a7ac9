"""What every adapter offers: polls, commands, and the operations of its own that scripts may invoke."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from appliance.adapters.http import VendorHttp
from appliance.home.commands import Command
from appliance.home.model import Report
from appliance.home.values import Value

TIME_LIMIT = 5.0
"""Seconds that a poll or a command may take in all, reads included."""

Operation = Callable[[Mapping[str, Value]], Awaitable[Value]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command came to: what was read afterwards, if anything, and why it failed, if it did."""

    report: Report | None
    complaint: str | None = None


class Adapter(ABC):
    """Our side of one vendor address. It reports what it sees and never touches the registry."""

    def __init__(self, name: str, poll_interval: float, http: VendorHttp) -> None:
        self.name = name
        self.poll_interval = poll_interval
        self.http = http

    @abstractmethod
    async def poll(self) -> Report:
        """Ask the vendor for the state of every device behind this adapter; raises `AdapterFailed`."""

    @abstractmethod
    def offers(self, command: Command) -> bool:
        """Whether devices of this adapter can be asked this at all."""

    @abstractmethod
    def check(self, command: Command) -> None:
        """Raise `Invalid` for a value that no device of this adapter takes, though its capability allows it."""

    @abstractmethod
    async def command(self, device_id: str, command: Command) -> Answer:
        """Do what was offered and checked, and read it back; raises `AdapterFailed`."""

    @property
    @abstractmethod
    def operations(self) -> Mapping[str, Operation]:
        """The adapter's own operations by name, beyond commands; each takes a payload and returns JSON."""
