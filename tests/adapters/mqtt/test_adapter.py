"""The adapter against a broker: announced devices appear, take commands, and come back after outages."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import aiomqtt
import pytest

from appliance.errors import AdapterFailed, Unreachable
from appliance.home import events
from tests.adapters.mqtt.broker import CERTIFICATE, Broker, both_brokers
from tests.adapters.mqtt.captures import Capture, capture
from tests.adapters.mqtt.homes import BrokerHome, until

HANDS_ON = (
    ("zigbee2mqtt/led1545g12", "mqtt:zigbee2mqtt_0x00158d000000a101", "brightness", "set", 50,
     "zigbee2mqtt/led1545g12/set", '{"state":"ON","brightness":127}',
     ("zigbee2mqtt/led1545g12", '{"state":"ON","brightness":127}')),
    ("zigbee2mqtt/led1545g12", "mqtt:zigbee2mqtt_0x00158d000000a101", "color_temperature", "set",
     {"value": 2700, "unit": "kelvin"}, "zigbee2mqtt/led1545g12/set", '{"state":"ON","color_temp":370}',
     ("zigbee2mqtt/led1545g12", '{"state":"ON","color_mode":"color_temp","color_temp":370}')),
    ("zigbee2mqtt/qbkg12lm", "mqtt:zigbee2mqtt_0x00158d000000a10a:switch_right", "power", "on", None,
     "zigbee2mqtt/qbkg12lm/right/set", "ON", ("zigbee2mqtt/qbkg12lm", '{"state_right":"ON","state_left":"OFF"}')),
    ("zigbee2mqtt/e1757", "mqtt:zigbee2mqtt_0x00158d000000a11d", "cover_position", "set", 30,
     "zigbee2mqtt/Haus/EG E1757/set", '{ "position": 30 }', ("zigbee2mqtt/Haus/EG E1757", '{"position":28}')),
    ("zigbee2mqtt/e1757", "mqtt:zigbee2mqtt_0x00158d000000a11d", "cover_position", "stop", None,
     "zigbee2mqtt/Haus/EG E1757/set", "STOP", None),
    ("zigbee2mqtt/v3-btzb-v3-btzbe", "mqtt:zigbee2mqtt_0x00158d000000a128", "lock", "lock", None,
     "zigbee2mqtt/v3-btzb_v3-btzbe/set", "LOCK", ("zigbee2mqtt/v3-btzb_v3-btzbe", '{"state":"LOCK"}')),
    ("zigbee2mqtt/e2007", "mqtt:zigbee2mqtt_0x00158d000000a12b", "custom.mqtt.percentage", "set", 50,
     "zigbee2mqtt/e2007/set/fan_mode", "5", ("zigbee2mqtt/e2007", '{"fan_mode":"5","fan_state":"ON"}')),
    ("zigbee2mqtt/hs2wd-e", "mqtt:zigbee2mqtt_0x00158d000000a131", "custom.mqtt.siren", "set", True,
     "zigbee2mqtt/hs2wd-e/set",
     '{"warning": {"mode": "emergency", "level": "medium", "duration": 10}}', None),
    ("zigbee2mqtt/bth-ra", "mqtt:zigbee2mqtt_0x00158d000000a126", "hvac_mode", "set", "heat",
     "zigbee2mqtt/Haus/EG BTH-RA/set", '{"operating_mode": "manual"}',
     ("zigbee2mqtt/Haus/EG BTH-RA", '{"operating_mode":"manual"}')),
    ("esphome/light-json", "mqtt:20500de464ec", "brightness", "set", 50, "garage/light/strip/command",
     '{"state":"ON","brightness":128}', ("garage/light/strip/state", '{"state":"ON","brightness":128}')),
    ("esphome/cover-position-tilt", "mqtt:20500de464ec", "cover_position", "set", 30,
     "garage/cover/blind/position/command", "30", ("garage/cover/blind/state", "opening")),
    ("tasmota-native/relay", "mqtt:00000049a3bc", "power", "on", None, "tasmota_49A3BC/cmnd/POWER1", "ON",
     ("tasmota_49A3BC/stat/RESULT", '{"POWER1":"ON"}')),
    ("tasmota-native/light-rgbcct", "mqtt:00000049a3bc", "brightness", "set", 50, "tasmota_49A3BC/cmnd/Dimmer", "50",
     ("tasmota_49A3BC/stat/RESULT", '{"POWER":"ON","Dimmer":50}')),
    ("ha-mqtt-discoverable/select", "mqtt:node_7f3a", "custom.mqtt.Modus", "set", "Ein",
     "hmd/select/Werkstatt-Node/Modus/command", "Ein", ("hmd/select/Werkstatt-Node/Modus/state", "Ein")),
    ("ha-mqtt-discoverable/button", "mqtt:node_7f3a", "custom.mqtt.Neustart", "press", None,
     "hmd/button/Werkstatt-Node/Neustart/command", "PRESS", None),
    ("ha-mqtt-discoverable/valve", "mqtt:node_7f3a", "custom.mqtt.Ventil", "set", "open",
     "hmd/valve/Werkstatt-Node/Ventil/command", "OPEN", ("hmd/valve/Werkstatt-Node/Ventil/state", "open")),
    ("device-based/weather-node", "mqtt:ea334450945afc", "power", "on", None, "kitchen/relay/set", "ON",
     ("kitchen/relay/relay", "ON")),
)  # fmt: skip
"""Capture, device, command, the message that the announcer expects, and how it answers."""


async def announce(client: aiomqtt.Client, home: BrokerHome, *chosen: Capture) -> None:
    """Announce devices, and return once the home listens to all of their topics."""
    for each in chosen:
        for sent in each.messages:
            await client.publish(sent.topic, sent.payload, qos=1, retain=sent.retain)
    await home.listens(*chosen)


@both_brokers
async def test_commands_arrive_as_the_announcer_expects_and_are_answered_by_its_state(broker: Broker) -> None:
    wrong = []
    for name, device_id, capability, action, value, topic, payload, answer in HANDS_ON:
        async with broker.client() as client, BrokerHome(broker) as home:
            await announce(client, home, capture(name))
            await until(lambda device_id=device_id, home=home: bool(home.attributes(device_id)))  # type: ignore[misc]
            await client.subscribe(topic, qos=1)
            work = asyncio.create_task(home.command(device_id, capability, action, value))
            async with asyncio.timeout(20):
                message = await anext(aiter(client.messages))
            if answer is not None:
                await asyncio.sleep(0.05)
                if work.done() and "siren" not in capability:
                    wrong.append((name, capability, "was done before the state showed it"))
                await client.publish(*answer, qos=1)
            await work
            if bytes(message.payload).decode() != payload:
                wrong.append((name, capability, f"{message.payload!r} in the place of {payload}"))
            for each in capture(name).messages:
                await client.publish(each.topic, b"", qos=1, retain=True)
    assert not wrong


async def test_devices_come_change_and_go_as_they_are_announced(broker: Broker) -> None:
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


async def test_a_press_is_one_event_even_if_announced_twice_and_none_if_it_was_kept(broker: Broker) -> None:
    remote, device_id = capture("zigbee2mqtt/e1743"), "mqtt:zigbee2mqtt_0x00158d000000a12c"
    async with broker.client() as client, BrokerHome(broker) as home:
        await client.publish("zigbee2mqtt/Haus/EG E1743", '{"action":"off"}', qos=1, retain=True)
        await announce(client, home, remote)
        await home.shows(device_id, state="online")
        for _ in range(2):
            await client.publish("zigbee2mqtt/Haus/EG E1743", '{"action":"on"}', qos=1)
            await client.publish("zigbee2mqtt/Haus/EG E1743/action", "on", qos=1)
        await client.publish("zigbee2mqtt/Haus/EG E1743", '{"action":"","battery":33}', qos=1)
        await home.shows(device_id, battery=33)
        assert home.happened() == [(device_id, "on")] * 2
        assert "custom.mqtt.action" not in home.attributes(device_id)


async def test_a_broker_that_dies_takes_its_devices_along_once_and_brings_them_back(broker: Broker) -> None:
    plug, device_id = capture("tasmota-native/relay"), "mqtt:00000049a3bc"
    async with BrokerHome(broker) as home:
        async with broker.client() as client:
            await announce(client, home, plug)
            await home.shows(device_id, state="online")
        broker.stop(signal.SIGKILL)
        await home.shows(device_id, state="offline")
        with pytest.raises(Unreachable, match="not connected; the command was not sent"):
            await home.command(device_id, "power", "on")
        assert len(home.errors()) == 1 and home.errors()[0].startswith("mqtt: ")
        await asyncio.sleep(1.5)
        assert len(home.errors()) == 1
        await broker.start()
        await home.shows(device_id, state="online")
        async with broker.client() as client:
            await announce(client, home, plug)
            await client.publish("tasmota_49A3BC/tele/STATE", '{"POWER1":"ON"}', qos=1)
            await home.shows(device_id, power="on")


async def test_a_hub_that_publishes_nothing_says_whether_it_is_there(broker: Broker) -> None:
    async with broker.client() as client:
        await client.subscribe("lares/quiet/status", qos=1)
        statuses = aiter(client.messages)
        async with asyncio.timeout(10), BrokerHome(broker, hub_id="quiet"):
            message = await anext(statuses)
            assert (message.payload, message.retain) == (b"online", False)
        async with asyncio.timeout(10):
            assert (await anext(statuses)).payload == b"offline"
    async with broker.client() as client:
        await client.subscribe("lares/quiet/status", qos=1)
        async with asyncio.timeout(10):
            message = await anext(aiter(client.messages))
            assert (message.payload, message.retain) == (b"offline", True)


async def test_a_device_that_does_not_do_it_is_said_to_and_a_late_contradiction_does_not_flip_it(
    broker: Broker,
) -> None:
    switch, device_id = capture("ha-mqtt-discoverable/switch"), "mqtt:node_7f3a"
    state = "hmd/switch/Werkstatt-Node/Pumpe/state"
    async with broker.client() as client, BrokerHome(broker) as home:
        await announce(client, home, switch)
        await home.shows(device_id, state="online")
        await client.publish(state, "OFF", qos=1)
        await home.shows(device_id, power="off")
        with pytest.raises(AdapterFailed, match="power on and shows power off after 5 s"):
            await home.command(device_id, "power", "on")
        work = asyncio.create_task(home.command(device_id, "power", "on"))
        await asyncio.sleep(0.1)
        await client.publish(state, "ON", qos=1)
        await work
        await client.publish(state, "OFF", qos=1)
        await asyncio.sleep(0.2)
        assert home.attributes(device_id)["power"] == "on"
        await home.shows(device_id, power="off")


@both_brokers
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the library leaves a socket to gc
async def test_a_password_that_is_wrong_and_a_certificate_that_is_unknown_are_said(
    broker: Broker, tmp_path: Path
) -> None:
    async with BrokerHome(broker, password="wrong") as home:
        await until(lambda: bool(home.errors()))
        assert "refuses the user or the password" in home.errors()[0] and "wrong" not in home.errors()[0]
    tls: dict[str, Any] = {"port": broker.tls_port, "tls": True}
    async with BrokerHome(broker, **tls) as home:
        await until(lambda: bool(home.errors()))
        assert "certificate verify failed" in home.errors()[0]
    async with BrokerHome(broker, ca_file=str(CERTIFICATE), **tls) as home, broker.client() as client:
        await announce(client, home, capture("ha-mqtt-discoverable/switch"))
        await home.shows("mqtt:node_7f3a", state="online")
        assert not home.errors()
    async with BrokerHome(broker, ca_file=str(tmp_path / "none.pem"), **tls) as home:
        await until(lambda: bool(home.errors()))


async def test_a_flipped_broker_message_or_a_flood_of_nonsense_ends_nothing(broker: Broker) -> None:
    async with broker.client() as client, BrokerHome(broker) as home:
        await announce(client, home, capture("zigbee2mqtt/mccgq11lm"))
        await home.shows("mqtt:zigbee2mqtt_0x00158d000000a112", state="online")
        topic = "zigbee2mqtt/0x00158d000000a112"
        for payload in (b"\xff\xfe", b"{", b"[" * 50_000, b"null", b"5", b"x" * 300_000, b'{"contact":{}}'):
            await client.publish(topic, payload, qos=1)
        for number in range(50):
            await client.publish(
                f"homeassistant/sensor/n{number}/config", b'{"stat_t":"#","x":[1]}', qos=1, retain=True
            )
        await client.publish(topic, '{"contact":false}', qos=1)
        await home.shows("mqtt:zigbee2mqtt_0x00158d000000a112", contact="open")
        await until(lambda: any(isinstance(each, events.ObservationDropped) for each in home.events))
        dropped = [
            (each.device_id, each.attribute) for each in home.events if isinstance(each, events.ObservationDropped)
        ]
        assert len(set(dropped)) == len(dropped) <= 100


@pytest.mark.slow
async def test_a_flood_of_announcements_with_rubbish_in_it_gets_there_and_says_how_far_it_is(
    broker: Broker,
) -> None:
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
            assert any("announcements taken in" in each.message for each in home.events
                       if isinstance(each, events.AdapterProgressed))  # fmt: skip
