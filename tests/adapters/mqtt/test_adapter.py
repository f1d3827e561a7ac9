"""The adapter with a broker: announced devices appear, accept commands, and come back after outages."""

from __future__ import annotations

import asyncio
import gc
import json
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiomqtt
import pytest

from appliance.adapters.mqtt import commands
from appliance.adapters.mqtt.adapter import MqttAdapter
from appliance.adapters.mqtt.announcements import discovery
from appliance.adapters.mqtt.announcements.discovery import BIRTH_SECS, Phase
from appliance.errors import BadAnswer, Unanswered
from appliance.home import events
from appliance.home.model import DeviceKind, Observation, Report
from tests.adapters.mqtt.broker import CERTIFICATE, Broker, both_brokers
from tests.adapters.mqtt.captures import Capture, capture
from tests.adapters.mqtt.homes import BrokerHome, until
from tests.fakes.mqtt_broker import CONNACK, PUBACK, PUBLISH, number, packet, read_packet, text

RETURN_SECS, RESULT_SECS = 1.0, 1.0


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "RETURN_SECS", RETURN_SECS)
    monkeypatch.setattr(commands, "RESULT_SECS", RESULT_SECS)


async def announce(client: aiomqtt.Client, home: BrokerHome, *chosen: Capture) -> None:
    """Announce devices. Return once the home is subscribed to all topics of these devices."""
    for each in chosen:
        for sent in each.messages:
            await client.publish(sent.topic, sent.payload, qos=1, retain=sent.retain)
    await home.listens(*chosen)


async def test_devices_appear_change_and_disappear_with_their_announcements(broker: Broker) -> None:
    contact = capture("zigbee2mqtt/mccgq11lm")
    device_id = "mqtt:zigbee2mqtt_0x00158d000000a112"
    async with broker.client() as client, BrokerHome(broker) as home:
        await announce(client, home, contact)
        await home.shows(device_id, state="online")
        device = home.registry.get_device(device_id)
        assert device.info.manufacturer == "Aqara" and device.info.device_class == "door"
        await client.publish("zigbee2mqtt/0x00158d000000a112", '{"contact":false,"battery":80}', qos=1)
        await home.shows(device_id, contact="open", battery=80)
        await client.publish("zigbee2mqtt/0x00158d000000a112/availability", '{"state":"offline"}', qos=1)
        await home.shows(device_id, state="unavailable", contact="open")
        topic = next(each for each in contact.messages if "/contact/config" in each.topic)
        config = json.loads(topic.payload)
        config["device_class"] = "smoke"
        await client.publish(topic.topic, json.dumps(config), qos=1, retain=True)
        await until(lambda: "smoke" in home.attributes(device_id) and "contact" not in home.attributes(device_id))
        for sent in contact.messages:
            if sent.topic.endswith("/config"):
                await client.publish(sent.topic, b"", qos=1, retain=True)
        await until(lambda: not home.registry.find_devices([device_id]))


async def test_the_waiting_messages_of_an_ended_adapter_are_freed_without_a_garbage_collection() -> None:
    """In a flood, the broker has not yet acknowledged the subscriptions when the section is removed."""

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            await read_packet(reader)
            writer.write(packet(CONNACK, b"\0\0"))
            _, _, status = await read_packet(reader)
            status.text()
            writer.write(packet(PUBACK, number(status.number(2))))
            await read_packet(reader)
        for each in range(100):
            writer.write(packet(PUBLISH, text(f"homeassistant/sensor/f{each}/config"), b'{"state_topic": "f"}'))
        with suppress(OSError):
            await reader.read()
        writer.close()

    async def receive_all(adapter: MqttAdapter) -> list[weakref.ref[object]]:
        await until(lambda: adapter.message_loop is not None)
        loop = adapter.message_loop
        assert loop is not None
        await until(lambda: loop.announced.store.has_config("homeassistant/sensor/f99/config"))
        return [weakref.ref(each) for each in (adapter, loop, loop.inbox, loop.announced)]

    gc.collect()
    gc.disable()
    try:
        async with await asyncio.start_server(flood, "127.0.0.1", 0) as server:
            broker = Broker()
            broker.port = server.sockets[0].getsockname()[1]
            async with BrokerHome(broker) as home:
                parts = await receive_all(home.adapter)
            del home
        await until(lambda: not [part() for part in parts if part() is not None])
    finally:
        gc.enable()


async def test_an_idle_adapter_does_not_wake_up_until_a_message_arrives_or_a_value_expires(broker: Broker) -> None:
    contact, device_id = capture("zigbee2mqtt/mccgq11lm"), "mqtt:zigbee2mqtt_0x00158d000000a112"
    sensor = {"state_topic": "pir", "unique_id": "pir", "device": {"identifiers": ["pir"]}, "device_class": "motion"}

    async def becomes_idle() -> None:
        await until(lambda: all(secs > 60 for secs in home.clock.waits), lambda: f"{home.clock.waits}")

    async with broker.client() as client, BrokerHome(broker) as home:
        await announce(client, home, contact)
        await home.shows(device_id, state="online")
        home.clock.skipped_secs = RETURN_SECS
        await becomes_idle()
        await client.publish("zigbee2mqtt/0x00158d000000a112", '{"contact":false,"battery":80}', qos=1)
        await home.shows(device_id, contact="open", battery=80)
        await becomes_idle()
        config = json.dumps({**sensor, "off_delay": 0.1})
        await client.publish("homeassistant/binary_sensor/pir/config", config, qos=1, retain=True)
        await until(lambda: "pir" in home.loop.discovery.subscriptions._subscribed)
        await becomes_idle()
        await client.publish("pir", "ON", qos=1)
        await home.shows("mqtt:pir", motion="detected")
        await home.shows("mqtt:pir", motion="clear")
        await becomes_idle()


async def test_a_press_is_one_event_and_a_retained_one_none(broker: Broker) -> None:
    remote, device_id = capture("zigbee2mqtt/e1743"), "mqtt:zigbee2mqtt_0x00158d000000a12c"
    async with broker.client() as client, BrokerHome(broker) as home:
        await client.publish("zigbee2mqtt/Haus/EG E1743", '{"action":"off","battery":34}', qos=1, retain=True)
        await announce(client, home, remote)
        await home.shows(device_id, state="online", battery=34)  # now the hub has subscribed
        for _ in range(2):
            await client.publish("zigbee2mqtt/Haus/EG E1743", '{"action":"on"}', qos=1)
            await client.publish("zigbee2mqtt/Haus/EG E1743/action", "on", qos=1)
        await client.publish("zigbee2mqtt/Haus/EG E1743", '{"action":"","battery":33}', qos=1)
        await home.shows(device_id, battery=33)
        assert home.happened() == [(device_id, "on")] * 2
        assert "custom.mqtt.action" not in home.attributes(device_id)


async def test_after_an_outage_a_device_without_announcement_is_unavailable_until_it_has_had_time_to_return(
    broker: Broker,
) -> None:
    switch, stored = capture("ha-mqtt-discoverable/switch"), "mqtt:stored"
    broker.stop()
    home = BrokerHome(broker)
    seen = Observation(device_id=stored, kind=DeviceKind.SWITCH, attributes={"power": "on"})
    home.registry.apply(Report(adapter="mqtt", observations=(seen,)))
    async with home:
        await home.shows(stored, state="offline")
        await broker.start()
        async with broker.client() as client:
            await announce(client, home, switch)
            await home.shows("mqtt:node_7f3a", state="online")
            assert home.attributes(stored) == {"power": "on", "state": "unavailable"}
            with pytest.raises(Unanswered, match="mqtt:stored is not announced at the broker"):
                await home.command(stored, "power", "off")
        broker.stop()
        await home.shows("mqtt:node_7f3a", state="offline")
        before = len(home.events)
        await broker.start()
        async with broker.client() as client:
            await announce(client, home, capture("zigbee2mqtt/mccgq11lm"))
            await until(lambda: any(isinstance(each, events.AdapterStarted) for each in home.events))
            assert home.attributes("mqtt:node_7f3a")["state"] == "online"
            assert not any(isinstance(each, events.AdapterProgressed) for each in home.events[before:])
            home.clock.skipped_secs += BIRTH_SECS
            await until(lambda: home.loop.discovery._phase is Phase.BORN)
            home.clock.skipped_secs += RETURN_SECS
            await until(lambda: not home.registry.find_devices(["mqtt:node_7f3a", stored]))


async def test_a_hub_that_publishes_no_devices_has_a_status(broker: Broker) -> None:
    async with broker.client() as client:
        await client.subscribe("lares/quiet/status", qos=1)
        statuses = aiter(client.messages)
        async with asyncio.timeout(10), BrokerHome(broker, hub_id="quiet"):
            message = await anext(statuses)
            assert (message.payload, message.retain) == (b"online", False)
            await client.publish("lares/quiet/status", "offline", qos=1, retain=True)
            assert (await anext(statuses)).payload == b"offline"
            assert (await anext(statuses)).payload == b"online", "the hub restores its status"
        async with asyncio.timeout(10):
            assert (await anext(statuses)).payload == b"offline"
    async with broker.client() as client:
        await client.subscribe("lares/quiet/status", qos=1)
        async with asyncio.timeout(10):
            message = await anext(aiter(client.messages))
            assert (message.payload, message.retain) == (b"offline", True)


async def test_a_missing_result_is_reported_and_a_late_one_does_not_change_the_state(broker: Broker) -> None:
    switch, device_id = capture("ha-mqtt-discoverable/switch"), "mqtt:node_7f3a"
    state = "hmd/switch/Werkstatt-Node/Pumpe/state"
    async with broker.client() as client, BrokerHome(broker) as home:
        await announce(client, home, switch)
        await home.shows(device_id, state="online")
        await client.publish(state, "OFF", qos=1)
        await home.shows(device_id, power="off")
        # The event loop stalls while the wait ends. The device's state must still confirm the command.
        asyncio.get_running_loop().call_later(RESULT_SECS - 0.3, time.sleep, 0.6)
        with pytest.raises(BadAnswer, match="power on but shows power 'off' after 1 s"):
            await home.adapter.run_limited(home.command(device_id, "power", "on"))
        work = asyncio.create_task(home.command(device_id, "power", "on"))
        await asyncio.sleep(0.1)
        await client.publish(state, "ON", qos=1)
        await work
        await client.publish(state, "OFF", qos=1)
        await asyncio.sleep(0.2)
        assert home.attributes(device_id)["power"] == "on"
        await home.shows(device_id, power="off")


@both_brokers
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # the library leaves closing a socket to the garbage collector
async def test_a_wrong_password_and_an_unknown_certificate_are_reported(broker: Broker, tmp_path: Path) -> None:
    async with BrokerHome(broker, password="wrong") as home:
        await until(lambda: bool(home.errors()))
        assert "rejects the username or password" in home.errors()[0] and "wrong" not in home.errors()[0]
    tls: dict[str, Any] = {"port": broker.tls_port, "tls": True}
    async with BrokerHome(broker, **tls) as home:
        await until(lambda: bool(home.errors()))
        assert "certificate verify failed" in home.errors()[0]
    async with BrokerHome(broker, ca_file=str(CERTIFICATE), **tls) as home, broker.client() as client:
        await announce(client, home, capture("ha-mqtt-discoverable/switch"))
        await home.shows("mqtt:node_7f3a", state="online")
        assert not home.errors()
    missing = str(tmp_path / "none")
    for keys, sentence in (
        ({"ca_file": missing, **tls}, "ca_file: "),
        ({"password": None, "password_file": missing}, f"password_file: cannot read {missing}: No such file"),
    ):
        async with BrokerHome(broker, **keys) as home:
            await until(lambda home=home: bool(home.errors()))  # type: ignore[misc]
            assert sentence in home.errors()[0]


@pytest.mark.slow
async def test_a_flood_with_unusable_announcements_completes_and_reports_its_progress(broker: Broker) -> None:
    async with broker.client() as client:
        for number in range(5_000):
            device = {"identifiers": [f"d{number // 5}"], "name": f"D {number // 5}", "model": "x" * 200}
            config = {"state_topic": f"d/{number}", "unique_id": f"u{number}", "name": f"e{number}", "device": device}
            payload = json.dumps(config) if number % 17 else "{rubbish"
            await client.publish(f"homeassistant/sensor/n{number}/config", payload, retain=True)
        async with BrokerHome(broker) as home:
            await until(lambda: any(isinstance(each, events.AdapterStarted) for each in home.events))
            assert len(home.registry.list_devices()) == 1_000
            assert not home.errors()
            assert any("announcements accepted" in each.message for each in home.events
                       if isinstance(each, events.AdapterProgressed))  # fmt: skip
