"""A complete hub with a broker: devices over HTTP, two hubs, and devices that another project announces."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.errors import Invalid
from tests.adapters.mqtt.broker import PASSWORD, USER, Broker
from tests.adapters.mqtt.captures import capture
from tests.adapters.mqtt.homes import PLAIN, until
from tests.fakes.app import READER, App, open_app
from tests.fakes.household import JumpingClock


async def shown(app: App, path: str, holds: Any) -> Any:
    """Wait until a route's response fulfils the condition, and return the response."""
    for _ in range(800):
        got = await app.get(path)
        if got.status == 200 and holds(got.json):
            return got.json
        await asyncio.sleep(0.025)
    raise AssertionError(f"{path} answers {got.status} {got.json}")


@pytest.mark.slow
async def test_a_zigbee_plug_is_switched_over_http_and_survives_a_restart(broker: Broker, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    device_id = "mqtt:zigbee2mqtt_0x00158d000000a108"
    settings = {"mqtt": replace(PLAIN, port=broker.port)}
    async with broker.client() as client:
        for sent in capture("zigbee2mqtt/ts011f-plug-1").messages:
            await client.publish(sent.topic, sent.payload, qos=1, retain=True)
        await client.subscribe("zigbee2mqtt/+/+/set", qos=1)

        async def run_plug() -> None:
            async for message in client.messages:
                state = json.dumps({"state": bytes(message.payload).decode(), "power": 12.5})
                await client.publish(message.topic.value.removesuffix("/set"), state, qos=1, retain=True)

        plug = asyncio.create_task(run_plug())
        async with open_app(adapters=settings, data_dir=data) as app:
            await shown(app, f"/devices/{device_id}", lambda body: body["attributes"]["state"] == "online")
            answer = await app.command(device_id, "power", "on")
            assert (answer.status, answer.json) == (200, {"status": "ok"})
            device = await shown(app, f"/devices/{device_id}?include=commands",
                                 lambda body: "power_consumption" in body["attributes"])  # fmt: skip
            assert device["attributes"]["power"] == "on" and device["kind"] == "Switch"
            assert device["info"]["class"] == "switch" and device["name"] == "Haus/EG TS011F_plug_1"
            commands = {each["capability"]: each["actions"] for each in device["commands"]}
            assert commands["power"] == ["on", "off", "toggle"]
            refused = await app.command(device_id, "custom.mqtt.countdown", "set", 99999)
            assert refused.status == 400 and "from 0 to 43200" in refused.json["error"]
        async with open_app(adapters=settings, data_dir=data) as app:
            await shown(app, f"/devices/{device_id}", lambda body: body["attributes"].get("power") == "on")
        plug.cancel()
        await asyncio.gather(plug, return_exceptions=True)


@pytest.mark.slow
async def test_a_camera_shows_its_picture_to_readers(broker: Broker) -> None:
    settings, path = {"mqtt": replace(PLAIN, port=broker.port)}, "/devices/mqtt:porch/picture"
    picture = b"\xff\xd8\xff\xe0" + bytes(300_000)
    async with broker.client() as client, open_app(adapters=settings) as app:
        config = {"topic": "porch/still", "unique_id": "porch", "name": None, "device": {"identifiers": ["porch"]}}
        await client.publish("homeassistant/camera/porch/config", json.dumps(config), qos=1, retain=True)
        await shown(app, "/devices/mqtt:porch", lambda body: body["attributes"]["state"] == "online")
        missing = await app.get(path)
        assert (missing.status, missing.json["code"]) == (404, "picture_not_found")
        assert "device 'mqtt:porch' has sent no picture" in missing.json["error"]
        async with app.stream() as frames:
            await client.publish("porch/still", picture, qos=1)
            [*_, happened] = await frames.until("device.event")
        assert (happened["id"], happened["event"]) == ("mqtt:porch", "picture")
        assert (await app.device("mqtt:porch"))["attributes"]["custom.mqtt.porch"] == "image/jpeg"
        got = await app.get(path, token=READER.text)
        assert (got.status, got.body, got.headers["Content-Type"]) == (200, picture, "image/jpeg")
        assert got.headers["Cache-Control"] == "no-store" and got.headers["X-Content-Type-Options"] == "nosniff"
        assert got.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert (await app.get(f"{path}?attribute=custom.mqtt.porch")).body == picture
        other = await app.get(f"{path}?attribute=custom.mqtt.roof")
        assert other.status == 404 and "no picture of custom.mqtt.roof" in other.json["error"]
        assert (await app.get(path, token=None)).status == 401
        assert (await app.get("/devices/nope/picture")).json["code"] == "device_not_found"


@pytest.mark.slow
async def test_sensor_values_survive_restarts_until_removal_or_expiry(broker: Broker, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    settings = {"mqtt": replace(PLAIN, port=broker.port)}
    known = {"unit_of_measurement": "°C", "device_class": "temperature", "device": {"identifiers": ["attic"]}}

    async def announce(client: Any, object_id: str, **more: Any) -> None:
        config = {"state_topic": f"attic/{object_id}", "unique_id": object_id, **known, **more}
        await client.publish(f"homeassistant/sensor/{object_id}/config", json.dumps(config), qos=1, retain=True)

    async with broker.client() as client:
        await announce(client, "t")
        await announce(client, "gone")
        await announce(client, "short", expire_after=1)
        async with open_app(adapters=settings, data_dir=data) as app:
            await shown(app, "/devices/mqtt:attic", lambda body: body["attributes"]["state"] == "online")
            for object_id in ("t", "gone", "short"):
                await client.publish(f"attic/{object_id}", "21.5", qos=1)
            await shown(app, "/devices/mqtt:attic", lambda body: len(body["attributes"]) == 4)
            before = await app.device("mqtt:attic")
        await client.publish("homeassistant/sensor/gone/config", b"", qos=1, retain=True)
        await asyncio.sleep(1)
        async with open_app(adapters=settings, data_dir=data) as app:
            after = await shown(app, "/devices/mqtt:attic", lambda body: body["attributes"]["state"] == "online")
            kept = {key: value for key, value in after["attributes"].items() if value != "online"}
            assert len(kept) == 1 and kept.items() < before["attributes"].items()
            changes = len(app.events)
            await client.publish("attic/t", "21.5", qos=1)
            await client.publish("attic/short", "3", qos=1)
            await shown(app, "/devices/mqtt:attic", lambda body: len(body["attributes"]) == 3)
            moved = [each for each in app.events[changes:] if "custom.mqtt.t" in getattr(each, "changed", ())]
            assert not moved
            status = (await app.get("/adapters/mqtt")).json
            assert status["dropped"] == []


@pytest.mark.slow
async def test_an_unchanged_value_does_not_expire_early_after_a_restart(broker: Broker, tmp_path: Path) -> None:
    clock = JumpingClock(datetime(2026, 12, 1, 12, tzinfo=UTC))
    config = {"unit_of_measurement": "m", "device": {"identifiers": ["a"]}}
    home: Any = {"adapters": {"mqtt": replace(PLAIN, port=broker.port)}, "data_dir": tmp_path, "clock": clock}
    async with broker.client() as client:
        for name, more in (("t", {"expire_after": 600}), ("count", {})):
            announced = json.dumps({**config, **more, "state_topic": f"attic/{name}"})
            await client.publish(f"homeassistant/sensor/{name}/config", announced, qos=1, retain=True)
        async with open_app(**home) as app:
            await shown(app, "/devices/mqtt:a", lambda body: body["name"])
            for count in range(3):
                clock.jump(400)
                await client.publish("attic/t", "5", qos=1)
                await client.publish("attic/count", str(count), qos=1)
                both = {"custom.mqtt.t": 5, "custom.mqtt.count": count}
                await shown(app, "/devices/mqtt:a", lambda body: both.items() <= body["attributes"].items())  # noqa: B023
        clock.jump(400)
        async with open_app(**home) as app:
            await shown(app, "/devices/mqtt:a", lambda body: body["attributes"].get("custom.mqtt.t") == 5)
            clock.jump(400)
            await shown(app, "/devices/mqtt:a", lambda body: "custom.mqtt.t" not in body["attributes"])


@pytest.mark.slow
async def test_a_script_publishes_on_the_broker_except_below_the_discovery_prefix(broker: Broker) -> None:
    async with broker.client() as client, open_app(adapters={"mqtt": replace(PLAIN, port=broker.port)}) as app:
        await shown(app, "/adapters/mqtt", lambda body: body["health"]["status"] == "ok")
        await client.subscribe("note/#", qos=1)
        for payload, refusal in (
            ({"topic": "note/a", "payload": {"on": True}, "retain": True, "qos": 1}, None),
            ({"topic": "homeassistant/x/config", "payload": ""}, "must not be below homeassistant/"),
            ({"topic": "$SYS/x"}, "topic must be a text that has no wildcards"),
            ({"topic": "note/+"}, "topic must be a text that has no wildcards"),
            ({"topic": "note/b", "payload": "x", "qos": 3}, "qos must be 0, 1 or 2, not 3"),
            ({"topic": "note/a", "retain": True}, "payload is missing"),
            ({"topic": "note/a", "payload": None, "retain": True}, "payload is missing"),
            ({"topic": "note/b", "retained": True}, "'retained' is not a field"),
        ):
            if refusal is None:
                await app.hub.dispatcher.invoke("mqtt:publish", payload)
                continue
            with pytest.raises(Invalid, match=re.escape(refusal)):
                await app.hub.dispatcher.invoke("mqtt:publish", payload)
        async with asyncio.timeout(20):
            message = await anext(aiter(client.messages))
        assert (message.topic.value, message.payload) == ("note/a", b'{"on":true}')


@pytest.mark.slow
async def test_an_announcer_from_another_project_works_in_both_directions(broker: Broker) -> None:
    discoverable = pytest.importorskip("ha_mqtt_discoverable")
    from ha_mqtt_discoverable.sensors import Switch, SwitchInfo

    received = threading.Event()
    asked: list[str] = []

    def on_command(client: Any, user_data: Any, message: Any) -> None:
        asked.append(message.payload.decode())
        show: Callable[[], None] = switch.on if asked[-1] == "ON" else switch.off
        show()
        received.set()

    mqtt = discoverable.Settings.MQTT(host="127.0.0.1", port=broker.port, username=USER, password=PASSWORD)
    facts = discoverable.DeviceInfo(name="Pump house", identifiers="pump-1", manufacturer="Nobody")
    info = SwitchInfo(name="Pump", unique_id="pump1", device=facts)
    async with open_app(adapters={"mqtt": replace(PLAIN, port=broker.port)}) as app:
        switch = await asyncio.to_thread(Switch, discoverable.Settings(mqtt=mqtt, entity=info), on_command)
        try:
            await asyncio.to_thread(switch.off)
            await shown(app, "/devices/mqtt:pump_1", lambda body: body["attributes"]["state"] == "online")
            await asyncio.to_thread(switch.on)
            await shown(app, "/devices/mqtt:pump_1", lambda body: body["attributes"].get("power") == "on")
            answer = await app.command("mqtt:pump_1", "power", "off")
            assert (answer.status, answer.json) == (200, {"status": "ok"})
            await until(received.is_set)
            assert asked == ["OFF"]
        finally:
            await asyncio.to_thread(switch.mqtt_client.loop_stop)
            switch.mqtt_client.disconnect()
