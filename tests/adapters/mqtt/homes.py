"""Homes for tests: a registry, a bus and the MQTT adapter against a real broker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

from appliance.adapters.address_gates import AddressGates
from appliance.adapters.base import AdapterContext
from appliance.adapters.http import open_session
from appliance.adapters.mqtt.adapter import MqttAdapter
from appliance.adapters.mqtt.hub_access import HomeAccess, no_frame
from appliance.adapters.mqtt.mqtt_settings import Mqtt
from appliance.adapters.mqtt.out.outlet import Outlet
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.model import Device, Observation, Report
from appliance.home.registry import Registry
from tests.adapters.mqtt.broker import PASSWORD, USER, Mosquitto

PLAIN = Mqtt(
    host="127.0.0.1",
    port=None,
    username=USER,
    password=PASSWORD,
    password_file=None,
    tls=False,
    ca_file=None,
    cert_file=None,
    key_file=None,
    discovery_prefix="homeassistant",
    tasmota=True,
    publish=False,
    hub_id=None,
    include_config_entities=False,
)


class KeptSecrets:
    """What an adapter keeps, in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        """What is kept."""
        return self.kept.get(key)

    async def put(self, key: str, value: str) -> None:
        """Keep it."""
        self.kept[key] = value


class BrokerHome:
    """A home with one broker. `events` is all that happened."""

    def __init__(self, broker: Mosquitto, **settings: Any) -> None:
        self.clock = Clock()
        self.bus = Bus()
        self.registry = Registry(self.bus, self.clock)
        self.events: list[events.Event] = []
        self.bus.listen(self.events.append)
        self.settings = replace(PLAIN, **{"port": broker.port, **settings})
        self.secrets = KeptSecrets()
        self.publisher = Publisher("mqtt", self.registry, self.bus, self.clock)
        self._session = open_session()
        context = AdapterContext(
            name="mqtt",
            clock=self.clock,
            publish=self.publisher,
            secrets=self.secrets,
            session=self._session,
            gates=AddressGates(),
        )
        self.adapter = MqttAdapter(context, self.settings)

    async def __aenter__(self) -> BrokerHome:
        self._task = asyncio.get_running_loop().create_task(self.adapter.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._session.close()

    def attributes(self, device_id: str) -> Mapping[str, Any]:
        """What a device shows, nothing if it is not there."""
        found = self.registry.find_devices([device_id])
        return found[0].attributes if found else {}

    async def shows(self, device_id: str, **attributes: Any) -> None:
        """Wait until a device shows this."""
        await until(
            lambda: (
                all(self.attributes(device_id).get(key) == value for key, value in attributes.items())
                and bool(self.attributes(device_id))
            ),
            lambda: f"{device_id} shows {dict(self.attributes(device_id))}, not {attributes}",
        )

    async def command(self, device_id: str, capability: str, action: str, value: Any = None) -> None:
        """Command a device as the dispatcher would."""
        command = Command.parse({"capability": capability, "action": action, "value": value})
        await self.adapter.command(device_id, command)

    def happened(self) -> list[tuple[str, str]]:
        """The device events so far: device and name."""
        return [(each.device_id, each.event) for each in self.events if isinstance(each, events.DeviceEvent)]

    def errors(self) -> list[str]:
        """The system errors so far."""
        return [each.message for each in self.events if isinstance(each, events.SystemErrorReported)]


async def until(holds: Callable[[], bool], said: Callable[[], str] = lambda: "it did not come") -> None:
    """Wait until something holds, at most 20 seconds."""
    for _ in range(2000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(said())


class Lamp:
    """A device of a publishing hub that does what it is told."""

    def __init__(self, registry: Registry, device: Observation) -> None:
        self.registry = registry
        self.device = device
        self.sent: list[Command] = []
        self.show()

    def show(self, **attributes: Any) -> None:
        """Let it show this, too."""
        self.device = replace(self.device, attributes={**self.device.attributes, **attributes})
        self.registry.apply(Report(adapter="elgato_lights", observations=(self.device,)))

    async def send(self, device: Device, command: Command) -> tuple[str, str | None]:
        """Do it."""
        self.sent.append(command)
        value = command.action if command.capability == "power" else command.value
        self.show(**{command.capability: value})
        return "ok", None


@contextlib.asynccontextmanager
async def publishing(
    home: BrokerHome, hub_id: str, lamp: Lamp, boot: int = 1, **access: Any
) -> AsyncIterator[Outlet]:
    """A hub that publishes one lamp."""

    async def ran(id_: str) -> None:
        access.setdefault("ran", []).append(id_)

    async def switched(id_: str, is_enabled: bool) -> None:
        access.setdefault("switched", []).append((id_, is_enabled))

    doors = HomeAccess(
        registry=home.registry,
        bus=home.bus,
        send=lamp.send,
        scenes=lambda: access.get("scenes", {}),
        run_scene=access.get("run_scene", ran),
        automations=lambda: dict(access.get("automations", {})),
        switch=access.get("switch", switched),
        frame_of=access.get("frame_of", no_frame),
    )
    async with Outlet(home.settings, hub_id, boot, doors, home.clock, frozenset({"mqtt"})) as outlet:
        yield outlet
