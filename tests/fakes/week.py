"""A home with a virtual clock, so that days pass immediately. The home has automations in Lua, and devices that
execute all commands. The hub can be restarted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from appliance.adapters.adapter_runner import AdapterRunner
from appliance.adapters.base import Adapter, AdapterContext, CommandResult, Operation
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.dispatch import Dispatcher
from appliance.automations.automations import Automations
from appliance.automations.ctx import CtxMethods
from appliance.automations.definition import AutomationDefinition, automation_parser
from appliance.automations.environment import Environment
from appliance.automations.schedule.clock_watch import ClockWatch
from appliance.automations.variables import Variables
from appliance.history.execution_history import ExecutionHistory
from appliance.home.bus import Bus
from appliance.home.command_specs import CommandSpec
from appliance.home.commands import Command
from appliance.home.events import AdapterAnswered, DeviceEvent
from appliance.home.model import DeviceKind, Observation, Report
from appliance.home.values import Value
from appliance.lua.files.catalog import Catalog
from appliance.lua.files.folder import Folder
from appliance.lua.running.context import Context, CtxFunction
from appliance.lua.running.executor import Executor
from appliance.store.clock_trust import ClockTrust
from tests.automations.homes import BERLIN
from tests.fakes.automations import LONG_AGO, Card
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of
from tests.fakes.registry import PromptRegistry
from tests.lua.bench import open_pool

LIGHT = (
    CommandSpec(capability="brightness", actions=("set",), min=1, max=100),
    CommandSpec(capability="power", actions=("on", "off")),
)
RADIATOR = (CommandSpec(capability="hvac_mode", actions=("set",), values=("off", "heat")),)


class WeekClock(VirtualClock):
    """A clock that nobody sets, so that no task needs to check it."""

    recheck_secs = 86_400.0


@dataclass
class Vendor:
    """The devices, which keep running while the hub is stopped: their attributes by id, unplugged devices, and
    received commands."""

    clock: WeekClock
    attributes: dict[str, dict[str, Any]]
    unplugged: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)

    def note(self, what: str) -> None:
        """Record an event with the home's time."""
        self.lines.append(f"{self.clock.now().astimezone(BERLIN.timezone):%a %H:%M} {what}")

    def report(self) -> Report:
        """Return all devices as a poll reports them."""
        return Report(
            adapter="x",
            present=frozenset(f"x:{name}" for name in self.attributes),
            observations=tuple(self._observe(name, shown) for name, shown in self.attributes.items()),
        )

    def _observe(self, name: str, shown: dict[str, Any]) -> Observation:
        is_light = "power" in shown
        return Observation(
            device_id=f"x:{name}",
            kind=DeviceKind.LIGHT if is_light else DeviceKind.SENSOR,
            attributes=dict(shown),
            vendor_specific={},
            commands=LIGHT if is_light else RADIATOR if "hvac_mode" in shown else (),
            is_available=name not in self.unplugged,
        )


class VendorAdapter(Adapter):
    """Commands change the vendor's values. Notifications call the operation `tell`."""

    def __init__(self, context: AdapterContext, vendor: Vendor) -> None:
        super().__init__(context)
        self._vendor = vendor

    async def run(self) -> None: ...

    async def command(self, device_id: str, command: Command) -> CommandResult:
        name, capability = device_id.removeprefix("x:"), command.capability
        shown = command.action if command.value is None else command.value
        self._vendor.note(f"{name} {capability} {shown}")
        self._vendor.attributes[name][capability] = shown
        return CommandResult(report=self._vendor.report())

    @property
    def operations(self) -> Mapping[str, Operation]:
        return {"tell": self._tell}

    async def _tell(self, payload: Mapping[str, Value]) -> Value:
        self._vendor.note(f"sent: {payload['message']}")
        return None


class _SleepNoting(Context):
    """Counts the sleeping executions in `asleep`."""

    asleep = 0

    async def call(self, operation: str, arguments: Sequence[Any]) -> Any:
        """Count the call while the call sleeps."""
        _SleepNoting.asleep += operation == "sleep"
        try:
            return await super().call(operation, arguments)
        finally:
            _SleepNoting.asleep -= operation == "sleep"


@dataclass(kw_only=True)
class Week:
    vendor: Vendor
    registry: PromptRegistry
    bus: Bus
    variables: Variables
    made: Executor

    def look(self) -> None:
        """Make the hub read the values of the devices."""
        self.registry.apply(self.vendor.report())
        self.bus.publish(AdapterAnswered(adapter="x", at=self.vendor.clock.now()))

    def press(self, name: str, event: str) -> None:
        """Make a device send an event."""
        self.bus.publish(DeviceEvent(device_id=f"x:{name}", event=event, data={}))

    async def until(self, instant: datetime) -> None:
        """Advance the clock from one wait to the next until the instant is reached."""
        clock = self.vendor.clock
        await self._settle()
        while (left := (instant - clock.now()).total_seconds()) > 0:
            await clock.advance(min([left, *(wait for wait in clock.waits if wait > 0)]), sleepers=0)
            await self._settle()

    async def _settle(self) -> None:
        """Wait until all executions have ended or are asleep."""
        async with asyncio.timeout(60):
            while True:
                for _ in range(20):
                    await asyncio.sleep(0)
                executions = self.made
                if executions.figures()["running"] == _SleepNoting.asleep:
                    return
                await asyncio.sleep(0.001)


@asynccontextmanager
async def open_week(
    config: Path, vendor: Vendor, card: Card, groups: Mapping[str, Sequence[str]], stopped_at: datetime | None
) -> AsyncIterator[Week]:
    """Run the hub from its start to its stop. The data in `card` survives the stop."""
    clock, bus = vendor.clock, Bus()
    registry = PromptRegistry(bus, clock)
    registry.restore(registry.layout, card.devices)
    work: dict[str, CtxFunction] = {}
    async with DeviceSession() as session, open_pool(scripts=config / "scripts", clock=clock) as lua:
        context = context_of("x", session, clock, registry=registry, bus=bus)
        runner = AdapterRunner(lambda _: runner_adapter, context)
        runner_adapter = runner.adapter = VendorAdapter(context, vendor)
        async with Dispatcher([runner], bus, clock) as dispatcher:
            new_context = partial(_SleepNoting, clock)
            made = Executor(
                lua, lambda request: new_context(request.kind, request.id, work), clock, ExecutionHistory()
            )
            watch = ClockWatch(clock, ClockTrust(clock, LONG_AGO), stopped_at=stopped_at)
            environment = Environment(registry, bus, watch, card)
            folder = Folder(path=config / "automations", name="config/automations")
            parser = automation_parser(BERLIN, clock, 8)
            catalog: Catalog[AutomationDefinition] = Catalog("automation", folder, lua.describe, parser)
            async with Automations(catalog, environment, made):
                work.update(CtxMethods(environment, dispatcher, _no_scene, ("x:tell",)).table())
                week = Week(vendor=vendor, registry=registry, bus=bus, variables=environment.variables, made=made)
                week.look()
                for id_, members in groups.items():
                    registry.put_group(id_, id_, [f"x:{name}" for name in members])
                yield week
                card.devices = [*registry.list_devices()]


async def _no_scene(id_: str, caller: Context) -> Any:
    raise AssertionError(f"no example runs a scene, {id_}")
