"""A home whose lamps execute commands immediately, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from appliance.adapters.adapter_runner import AdapterRunner
from appliance.adapters.base import Adapter, AdapterContext, CommandResult, Operation
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.dispatch import Dispatcher
from appliance.clock import Clock
from appliance.errors import BadAnswer
from appliance.home.bus import Bus
from appliance.home.command_specs import CommandSpec
from appliance.home.commands import Command
from appliance.home.model import DeviceKind, Observation, Report
from appliance.home.values import Value
from tests.fakes.context import context_of
from tests.fakes.registry import PromptRegistry

COMMANDS = (
    CommandSpec(capability="brightness", actions=("set", "increase", "decrease"), min=0, max=100),
    CommandSpec(capability="power", actions=("on", "off", "toggle")),
)


class InstantAdapter(Adapter):
    """Lamps `<name>:0`, `<name>:1`, and so on. The lamps accept power and brightness, but refuse a brightness of
    13 %. The adapter has the operation `echo`."""

    def __init__(self, context: AdapterContext, lamps: int) -> None:
        super().__init__(context)
        self.executed: list[tuple[str, str]] = []
        self.echoed: list[Value] = []
        self._lamps = lamps

    def look(self) -> Report:
        """Return all lamps as a poll reports them."""
        ids = [f"{self.name}:{number}" for number in range(self._lamps)]
        seen = [
            Observation(
                device_id=each,
                kind=DeviceKind.LIGHT,
                attributes={"power": "off", "brightness": 50, "color_temperature": {"value": 4000, "unit": "kelvin"}},
                vendor_specific={"name": each, "tags": []},
                commands=COMMANDS,
            )
            for each in ids
        ]
        return Report(adapter=self.name, present=frozenset(ids), observations=tuple(seen))

    async def run(self) -> None: ...

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Execute the command. For a brightness of 13 %, fail."""
        if command.value == 13:
            raise BadAnswer("thirteen brings bad luck")
        self.executed.append((device_id, str(command)))
        return CommandResult(report=None)

    @property
    def operations(self) -> Mapping[str, Operation]:
        """`echo` returns its payload."""
        return {"echo": self._echo}

    async def _echo(self, payload: Mapping[str, Value]) -> Value:
        self.echoed.append(payload)
        return dict(payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstantHome:
    """The home's registry, dispatcher, and only adapter."""

    bus: Bus
    registry: PromptRegistry
    dispatcher: Dispatcher
    adapter: InstantAdapter


@asynccontextmanager
async def open_home(clock: Clock, *, name: str = "lamp", lamps: int = 3) -> AsyncIterator[InstantHome]:
    """Open the home after a first poll of its lamps."""
    bus = Bus()
    registry = PromptRegistry(bus, clock)
    async with DeviceSession() as session:
        context = context_of(name, session, clock, registry=registry, bus=bus)
        adapter = InstantAdapter(context, lamps)
        registry.apply(adapter.look())
        runner = AdapterRunner(lambda _: adapter, context)
        runner.adapter = adapter
        async with Dispatcher([runner], bus, clock) as dispatcher:
            yield InstantHome(bus=bus, registry=registry, dispatcher=dispatcher, adapter=adapter)
