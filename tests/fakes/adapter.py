"""An adapter that the test controls instead of a vendor."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TypeVar

from appliance.adapters.base import AdapterContext, CommandResult, Operation
from appliance.adapters.device_http.client import HttpClient
from appliance.adapters.polling import PollingAdapter
from appliance.errors import Invalid, Unreachable
from appliance.home.command_specs import CommandSpec
from appliance.home.commands import Command
from appliance.home.model import DeviceKind, Observation, Report
from appliance.home.values import Value

T = TypeVar("T")

POWER = (CommandSpec(capability="power", actions=("on", "off", "toggle")),)
"""The commands of the adapter's only device."""


class StubAdapter(PollingAdapter):
    """An adapter whose polls and commands wait in `polls` and `commands` for a result or an error from the test.

    The device accepts only `power`, without `transition_secs`. The adapter's operations are `echo`, `hang`, and
    `fail`.
    """

    def __init__(self, context: AdapterContext, *, address: str = "") -> None:
        http = HttpClient(context.open_session(), address or f"http://{context.name}", context.clock)
        super().__init__(context, http, 10.0)
        self.polls: list[asyncio.Future[Report]] = []
        self.commands: list[asyncio.Future[CommandResult]] = []
        self.asked: list[tuple[str, Command]] = []
        self._stirred = asyncio.Event()

    def seen(self, **attributes: Value) -> Report:
        """Return a report of the only device, `<name>:1`."""
        device_id = f"{self.name}:1"
        seen = Observation(device_id=device_id, kind=DeviceKind.SWITCH, attributes=attributes, commands=POWER)
        return Report(adapter=self.name, present=frozenset({device_id}), observations=(seen,))

    async def poll(self) -> Report:
        return await self._wait_in(self.polls)

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Wait for the result from the test. If the command has a fade, refuse the command."""
        if command.transition_secs is not None:
            raise Invalid("it cannot fade")
        self.asked.append((device_id, command))
        return await self._wait_in(self.commands)

    @property
    def operations(self) -> Mapping[str, Operation]:
        """`echo` returns its payload, `hang` never returns, and `fail` fails."""
        return {"echo": self._echo, "hang": self._hang, "fail": self._fail}

    async def begun(
        self, what: list[asyncio.Future[Report]] | list[asyncio.Future[CommandResult]], count: int = 1
    ) -> None:
        """Wait until this number of polls or commands has begun."""
        async with asyncio.timeout(20):
            while len(what) < count:
                self._stirred.clear()
                await self._stirred.wait()

    async def _wait_in(self, queue: list[asyncio.Future[T]]) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        queue.append(future)
        self._stirred.set()
        try:
            result = await future
        except Unreachable:
            raise
        except Exception:
            self.http.answers += 1
            raise
        self.http.answers += 1
        return result

    async def _echo(self, payload: Mapping[str, Value]) -> Value:
        return dict(payload)

    async def _hang(self, _: Mapping[str, Value]) -> Value:
        return await asyncio.Event().wait()

    async def _fail(self, _: Mapping[str, Value]) -> Value:
        raise Unreachable("nobody is there")
