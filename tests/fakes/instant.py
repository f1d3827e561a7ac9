"""A home whose lamps obey at once, for tests and benchmarks of what commands them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from appliance.adapters.base import Adapter, Answer, Operation
from appliance.adapters.dispatch import Dispatcher
from appliance.adapters.http import VendorHttp, open_session
from appliance.adapters.link import Link
from appliance.clock import Clock
from appliance.errors import BadAnswer
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.model import Kind, Observation, Report
from appliance.home.values import Value
from tests.fakes.registry import PromptRegistry


class InstantAdapter(Adapter):
    """Lamps `<name>:0` and so on. They offer power and brightness, refuse 13 %, and know the operation `echo`."""

    def __init__(self, name: str, http: VendorHttp, lamps: int) -> None:
        super().__init__(name, 10.0, http)
        self.obeyed: list[tuple[str, str]] = []
        self.echoed: list[Value] = []
        self._lamps = lamps

    def look(self) -> Report:
        """All lamps, as a poll would see them."""
        ids = [f"{self.name}:{number}" for number in range(self._lamps)]
        seen = [
            Observation(
                device_id=each,
                kind=Kind.LIGHT,
                attributes={"power": "off", "brightness": 50, "color_temperature": {"value": 4000, "unit": "kelvin"}},
                vendor_specific={"name": each, "tags": []},
            )
            for each in ids
        ]
        return Report(adapter=self.name, present=frozenset(ids), observations=tuple(seen))

    async def poll(self) -> Report:
        """All lamps."""
        return self.look()

    def offers(self, command: Command) -> bool:
        """Power and brightness."""
        return command.capability in ("power", "brightness")

    def check(self, command: Command) -> None:
        """Nothing."""

    async def command(self, device_id: str, command: Command) -> Answer:
        """Obey, or refuse."""
        if command.value == 13:
            raise BadAnswer("thirteen brings bad luck")
        self.obeyed.append((device_id, str(command)))
        return Answer(report=None)

    @property
    def operations(self) -> Mapping[str, Operation]:
        """`echo` returns its payload."""
        return {"echo": self._echo}

    async def _echo(self, payload: Mapping[str, Value]) -> Value:
        self.echoed.append(payload)
        return dict(payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstantHome:
    """Its registry, its dispatcher, and the one adapter behind it."""

    registry: PromptRegistry
    dispatcher: Dispatcher
    adapter: InstantAdapter


@asynccontextmanager
async def open_home(clock: Clock, *, name: str = "lamp", lamps: int = 3) -> AsyncIterator[InstantHome]:
    """The home, its lamps seen once."""
    bus = Bus()
    registry = PromptRegistry(bus, clock)
    async with open_session() as session:
        adapter = InstantAdapter(name, VendorHttp(session, "http://lamps", clock), lamps)
        registry.apply(adapter.look())
        link = Link(adapter, asyncio.Lock(), registry, bus, clock)
        async with Dispatcher([link]) as dispatcher:
            yield InstantHome(registry=registry, dispatcher=dispatcher, adapter=adapter)
