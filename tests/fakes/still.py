"""A runner whose adapter does nothing until the test polls or commands it."""

from __future__ import annotations

from appliance.adapters.adapter_runner import AdapterRunner
from appliance.adapters.base import AdapterContext
from appliance.adapters.polling import PollingAdapter
from appliance.home.commands import Command


class StillRunner(AdapterRunner):
    """The adapter exists from the start, and its `run` is never called."""

    def __init__(self, adapter: PollingAdapter, context: AdapterContext) -> None:
        super().__init__(lambda _: adapter, context)
        self.adapter = self.polled = adapter

    @property
    def misses(self) -> int:
        """The number of polls without an answer since the last answer."""
        return self.polled.misses

    async def poll(self) -> None:
        await self.polled.poll_once()

    async def ask(self, device_id: str, command: Command) -> None:
        """Send a command to one device. If the command fails, raise its error."""
        [error] = await self.command_when_free([device_id], command)
        if error is not None:
            raise error
