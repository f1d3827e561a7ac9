"""A whole hub on a broker: people's devices over HTTP, two hubs, and an announcer that nobody here wrote."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.adapters.elgato_lights.kind import ElgatoLights
from appliance.adapters.elgato_lights.simulator import LightSimulator
from tests.adapters.mqtt.broker import PASSWORD, USER, Broker
from tests.adapters.mqtt.captures import capture
from tests.adapters.mqtt.homes import PLAIN, until
from tests.fakes.house import House, open_house


async def shown(house: House, path: str, holds: Any) -> Any:
    """What a route answers once this holds of it."""
    for _ in range(800):
        got = await house.get(path)
        if got.status == 200 and holds(got.json):
            return got.json
        await asyncio.sleep(0.025)
    raise AssertionError(f"{path} answers {got.status} {got.json}")


async def test_a_zigbee_plug_is_seen_and_switched_over_http_and_survives_a_restart(
    broker: Broker, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    device_id = "mqtt:zigbee2mqtt_0x00158d000000a108"
    settings = {"mqtt": replace(PLAIN, port=broker.port)}
    async with broker.client() as client:
        for sent in capture("zigbee2mqtt/ts011f-plug-1").messages:
            await client.publish(sent.topic, sent.payload, qos=1, retain=True)
        await client.subscribe("zigbee2mqtt/+/+/set", qos=1)

        async def obey() -> None:
            async for message in client.messages:
                state = json.dumps({"state": bytes(message.payload).decode(), "power": 12.5})
                await client.publish(message.topic.value.removesuffix("/set"), state, qos=1, retain=True)

        plug = asyncio.create_task(obey())
        async with open_house(adapters=settings, data_dir=data) as house:
            await shown(house, f"/devices/{device_id}", lambda body: body["attributes"]["state"] == "online")
            answer = await house.command(device_id, "power", "on")
            assert (answer.status, answer.json) == (200, {"status": "ok"})
            device = await shown(house, f"/devices/{device_id}?include=commands",
                                 lambda body: "power_consumption" in body["attributes"])  # fmt: skip
            assert device["attributes"]["power"] == "on" and device["kind"] == "Switch"
            assert device["info"]["class"] == "switch" and device["name"] == "Haus/EG TS011F_plug_1"
            commands = {each["capability"]: each["actions"] for each in device["commands"]}
            assert commands["power"] == ["on", "off", "toggle"]
            refused = await house.command(device_id, "custom.mqtt.countdown", "set", 99999)
            assert refused.status == 400 and "from 0 to 43200" in refused.json["error"]
        async with open_house(adapters=settings, data_dir=data) as house:
            await shown(house, f"/devices/{device_id}", lambda body: body["attributes"].get("power") == "on")
        plug.cancel()
        await asyncio.gather(plug, return_exceptions=True)


async def test_two_whole_hubs_share_a_lamp(broker: Broker) -> None:
    here = {"mqtt": replace(PLAIN, port=broker.port, publish=True, hub_id="here")}
    there = {"mqtt": replace(PLAIN, port=broker.port, hub_id="there")}
    device_id = "mqtt:lares_here_elgato_lights_light_0"
    async with LightSimulator() as lamp, open_house(adapters=there) as second:
        lights = {"elgato_lights": ElgatoLights(base_url=lamp.url, poll_interval_secs=1)}
        async with open_house(adapters={**lights, **here}) as first:
            await shown(second, f"/devices/{device_id}", lambda body: body["attributes"]["state"] == "online")
            answer = await second.command(device_id, "brightness", "set", 33)
            assert (answer.status, answer.json) == (200, {"status": "ok"})
            own = await first.get("/devices/elgato_lights:light:0")
            assert own.json["attributes"]["brightness"] == 33
            assert [each["id"] for each in (await first.get("/devices")).json] == ["elgato_lights:light:0"]
        await shown(second, f"/devices/{device_id}", lambda body: body["attributes"]["state"] == "unavailable")


async def test_an_announcer_that_nobody_here_wrote_is_driven_both_ways(broker: Broker) -> None:
    discoverable = pytest.importorskip("ha_mqtt_discoverable")
    from ha_mqtt_discoverable.sensors import Switch, SwitchInfo

    heard = threading.Event()
    asked: list[str] = []

    def obey(client: Any, user_data: Any, message: Any) -> None:
        asked.append(message.payload.decode())
        show: Callable[[], None] = switch.on if asked[-1] == "ON" else switch.off
        show()
        heard.set()

    mqtt = discoverable.Settings.MQTT(host="127.0.0.1", port=broker.port, username=USER, password=PASSWORD)
    facts = discoverable.DeviceInfo(name="Pump house", identifiers="pump-1", manufacturer="Nobody")
    info = SwitchInfo(name="Pump", unique_id="pump1", device=facts)
    async with open_house(adapters={"mqtt": replace(PLAIN, port=broker.port)}) as house:
        switch = await asyncio.to_thread(Switch, discoverable.Settings(mqtt=mqtt, entity=info), obey)
        try:
            await asyncio.to_thread(switch.off)
            await shown(house, "/devices/mqtt:pump_1", lambda body: body["attributes"]["state"] == "online")
            await asyncio.to_thread(switch.on)
            await shown(house, "/devices/mqtt:pump_1", lambda body: body["attributes"].get("power") == "on")
            answer = await house.command("mqtt:pump_1", "power", "off")
            assert (answer.status, answer.json) == (200, {"status": "ok"})
            await until(heard.is_set)
            assert asked == ["OFF"]
        finally:
            await asyncio.to_thread(switch.mqtt_client.loop_stop)
            switch.mqtt_client.disconnect()
