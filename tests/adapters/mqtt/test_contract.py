"""The kind `mqtt` fulfils the contract of adapters, with a broker and two announced switches."""

from __future__ import annotations

import asyncio
import json
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path

import aiomqtt
from msgspec.structs import replace

from appliance.adapters.dispatch import Status
from appliance.adapters.mqtt.kind import MQTT
from appliance.adapters.simulated_device import Faults
from appliance.health import AdapterStatus
from tests.adapters.contract import AdapterContract, Subject, trial
from tests.adapters.mqtt.broker import OwnBroker
from tests.adapters.mqtt.homes import PLAIN
from tests.fakes.patience import until


class AnnouncedSwitches:
    """A broker and two switches. `unplug` stops the broker. The broker retains configurations and states."""

    def __init__(self) -> None:
        self.faults = Faults()
        self._has_announced = asyncio.Event()
        self.names = ["a", "b"]
        self._power = {"a": "OFF", "b": "OFF"}
        self._stack = ExitStack()
        self._work: set[asyncio.Task[None]] = set()
        self.broker: OwnBroker

    async def __aenter__(self) -> AnnouncedSwitches:
        self.broker = OwnBroker(Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="lares-mqtt-"))))
        await self.plug_in()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.unplug()
        self._stack.close()

    async def plug_in(self) -> None:
        """Start the broker and the switches. Return when the switches have announced themselves."""
        self._has_announced.clear()
        await self.broker.start()
        self._start(self._serve())
        await self._has_announced.wait()

    async def unplug(self) -> None:
        """Stop the switches and the broker abruptly."""
        for task in tuple(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        self.broker.stop(signal.SIGKILL)

    def remove(self) -> None:
        self.names.remove("b")
        self._start(self._announce_all())

    def add(self) -> None:
        self.names.append("b")
        self._start(self._announce_all())

    async def say(self, topic: str, payload: str) -> None:
        async with self.broker.client("hand") as client:
            await client.publish(topic, payload, qos=1)

    def _start(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _announce_all(self) -> None:
        async with self.broker.client("more") as client:
            await self._announce(client)

    async def _announce(self, client: aiomqtt.Client) -> None:
        for name, power in self._power.items():
            device = {"identifiers": [name], "name": f"Switch {name}"}
            reach = {"availability_topic": f"{name}/status"}
            config = {"state_topic": f"{name}/state", "command_topic": f"{name}/set", "unique_id": name, **reach}
            payload = json.dumps({**config, "name": None, "device": device}) if name in self.names else ""
            await client.publish(f"homeassistant/switch/{name}/config", payload, qos=1, retain=True)
            button = {"state_topic": f"{name}/button", "event_types": ["single"], "unique_id": f"{name}b", **reach}
            payload = json.dumps({**button, "device": device}) if name in self.names else ""
            await client.publish(f"homeassistant/event/{name}b/config", payload, qos=1, retain=True)
            await client.publish(f"{name}/state", power, qos=1, retain=True)
            await client.publish(f"{name}/status", "online", qos=1, retain=True)

    async def _serve(self) -> None:
        async with self.broker.client("switches") as client:
            await client.subscribe("+/set", qos=1)
            await self._announce(client)
            self._has_announced.set()
            async for message in client.messages:
                name, payload = message.topic.value.partition("/")[0], bytes(message.payload).decode()
                await asyncio.sleep(self.faults.delay)
                if self.faults.silent:
                    continue
                if not self.faults.stubborn:
                    self._power[name] = payload
                answer = self._power[name] if self.faults.body is None else self.faults.body
                await client.publish(f"{name}/state", answer, qos=1, retain=self.faults.body is None)


class TestMqtt(AdapterContract):
    subject = Subject(
        name="mqtt",
        kind=MQTT,
        device="a",
        simulate=AnnouncedSwitches,
        settings=lambda vendor: replace(PLAIN, port=vendor.broker.port, hub_id="here"),
        is_polled=False,
        is_online_later=True,
        garbage=(b"{", b'{"state":{}}', b"\xff" * 99),
        speed=10,
        fewer=lambda vendor: vendor.remove(),
        more=lambda vendor: vendor.add(),
        change=lambda vendor: vendor.say("a/state", "ON"),
        happen=lambda vendor: vendor.say("a/button", '{"event_type": "single"}'),
        event="single",
        lose=lambda vendor: vendor.say("a/status", "offline"),
        find=lambda vendor: vendor.say("a/status", "online"),
    )

    async def test_a_late_report_ends_the_error_of_a_command(self) -> None:
        async with trial(self.subject) as it:
            it.vendor.faults.silent = True
            assert (await it.command("on")).status is Status.ERROR
            await until(lambda: it.status is AdapterStatus.DEGRADED)
            async with it.vendor.broker.client("sensor") as client:
                await client.publish("a/state", "OFF", qos=1)
                await until(lambda: it.status is AdapterStatus.RUNNING)


async def test_a_simulated_device_ends_at_any_moment() -> None:
    async def report(client: aiomqtt.Client) -> None:
        while True:
            await client.publish("a/state", "ON", qos=1)

    async with AnnouncedSwitches() as vendor, vendor.broker.client("hand") as client:
        for turns in range(40):
            reporting = asyncio.ensure_future(report(client))
            for _ in range(turns):
                await asyncio.sleep(0)
            reporting.cancel()
            await until(reporting.done)
