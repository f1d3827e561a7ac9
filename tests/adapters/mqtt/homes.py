"""Homes for tests: a registry, a bus, and the MQTT adapter with a broker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.dispatch import Outcome
from appliance.adapters.mqtt.adapter import MqttAdapter
from appliance.adapters.mqtt.announcements.announced_devices import AnnouncedDevices
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.message_loop import MessageLoop
from appliance.adapters.mqtt.out.home_access import HomeAccess, no_frame
from appliance.adapters.mqtt.out.hub_publisher import HubPublisher
from appliance.clock import Clock
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.model import Device, Observation, Report
from appliance.home.registry import Registry
from tests.adapters.mqtt.broker import PASSWORD, USER, Broker
from tests.adapters.mqtt.captures import Capture
from tests.adapters.mqtt.table import new_catalog, take
from tests.fakes.context import context_of

_DEFAULTS = {name: each.default for name, each in Mqtt.FIELDS.items()}
PLAIN = Mqtt(**{**_DEFAULTS, "host": "127.0.0.1", "username": USER, "password": PASSWORD})


class SkippingClock(Clock):
    """A clock with real time plus skipped seconds. Skipping does not end a wait."""

    skipped_secs = 0.0

    def __init__(self) -> None:
        self.waits: list[float] = []
        """The seconds of each wait that has not ended."""

    async def sleep(self, seconds: float) -> None:
        with self._noted(seconds):
            await super().sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        with self._noted(seconds):
            return await super().wait(event, seconds)

    @contextlib.contextmanager
    def _noted(self, seconds: float) -> Iterator[None]:
        self.waits.append(seconds)
        try:
            yield
        finally:
            self.waits.remove(seconds)

    def monotonic(self) -> float:
        return super().monotonic() + self.skipped_secs


class BrokerHome:
    """A home with one broker. `events` contains all events so far."""

    def __init__(self, broker: Broker, **settings: Any) -> None:
        self.clock = SkippingClock()
        self.bus = Bus()
        self.registry = Registry(self.bus, self.clock)
        self.events: list[events.Event] = []
        self.bus.listen(self.events.append)
        self.settings = replace(PLAIN, **{"port": broker.port, **settings})
        self._session = DeviceSession()
        context = context_of("mqtt", self._session, self.clock, registry=self.registry, bus=self.bus)
        self.secrets, self.publisher = context.secrets, context.publish
        self.adapter = MqttAdapter(context, self.settings)

    async def __aenter__(self) -> BrokerHome:
        self._task = asyncio.get_running_loop().create_task(self.adapter.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._session.close()

    def attributes(self, device_id: str) -> Mapping[str, Any]:
        found = self.registry.find_devices([device_id])
        return found[0].attributes if found else {}

    async def shows(self, device_id: str, **attributes: Any) -> None:
        """Wait until a device reports these attributes."""
        await until(
            lambda: (
                all(self.attributes(device_id).get(key) == value for key, value in attributes.items())
                and bool(self.attributes(device_id))
            ),
            lambda: f"{device_id} shows {dict(self.attributes(device_id))}, not {attributes}",
        )

    @property
    def loop(self) -> MessageLoop:
        assert self.adapter.message_loop is not None
        return self.adapter.message_loop

    async def listens(self, *captured: Capture) -> None:
        """Wait until all configurations of these captures are built, and the broker has acknowledged the
        subscriptions to their topics."""
        expected = new_catalog()
        for each in captured:
            take(expected, each.messages)

        def listening(catalog: AnnouncedDevices) -> set[tuple[str, str]]:
            routes = (each for filter_ in catalog.router.filters for each in catalog.router.find_routes(filter_))
            return {(each.filter, each.entity.announcement.key) for each in routes}

        def does() -> bool:
            loop = self.adapter.message_loop
            if loop is None or loop.connection is None or not loop.discovery.subscriptions.is_current:
                return False
            is_subscribed = expected.router.filters <= loop.discovery.subscriptions._subscribed
            return is_subscribed and listening(expected) <= listening(loop.announced)

        await until(does, lambda: f"{[each.name for each in captured]} are ignored")

    async def command(self, device_id: str, capability: str, action: str, value: Any = None) -> None:
        await self.send(device_id, {"capability": capability, "action": action, "value": value})

    async def send(self, device_id: str, command: Mapping[str, Any]) -> None:
        await self.adapter.command(device_id, Command.parse(dict(command)))

    def happened(self) -> list[tuple[str, str]]:
        """Return device id and name of each device event."""
        return [(each.device_id, each.event) for each in self.events if isinstance(each, events.DeviceEvent)]

    def errors(self) -> list[str]:
        return [each.message for each in self.events if isinstance(each, events.SystemErrorReported)]


async def until(holds: Callable[[], bool], failure: Callable[[], str] = lambda: "it did not come") -> None:
    for _ in range(2000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(failure())


class Lamp:
    """A device of a publishing hub. The device records each command, and reports the command's result."""

    def __init__(self, registry: Registry, device: Observation) -> None:
        self.registry = registry
        self.device = device
        self.sent: list[Command] = []
        self.show()

    def show(self, **attributes: Any) -> None:
        self.device = replace(self.device, attributes={**self.device.attributes, **attributes})
        self.registry.apply(Report(adapter="elgato_lights", observations=(self.device,)))

    async def send(self, devices: Sequence[Device], command: Command, source: str) -> list[Outcome]:
        self.sent.append(command)
        value = command.action if command.capability == "power" else command.value
        self.show(**{command.capability: value})
        return [Outcome(device_id=device.id) for device in devices]


@contextlib.asynccontextmanager
async def publishing(
    home: BrokerHome, hub_id: str, lamp: Lamp, boot: int = 1, **access: Any
) -> AsyncIterator[HubPublisher]:
    """Run a hub that publishes one lamp."""
    home_access = HomeAccess(
        registry=home.registry,
        bus=home.bus,
        send=lamp.send,
        scenes=lambda: access.get("scenes", {}),
        run_scene=access.get("run_scene"),  # type: ignore[arg-type]
        automations=lambda: ((id_, *each) for id_, each in access.get("automations", {}).items()),
        revision=access.get("revision", object),
        switch=access.get("switch"),  # type: ignore[arg-type]
        is_stopping=access.get("is_stopping", bool),
        frame_of=access.get("frame_of", no_frame),
    )
    client_id, brokers = f"lares-{hub_id}-out", frozenset({"mqtt"})
    async with HubPublisher(home.settings, hub_id, boot, home_access, home.clock, brokers, client_id) as publisher:
        yield publisher
