"""The publisher: its messages, their use by other hubs, and protection against loops."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import re
import signal
import weakref
from pathlib import Path
from typing import Any, cast

import aiomqtt
import pytest
from msgspec.structs import replace

from appliance.adapters.mqtt import retained_messages
from appliance.adapters.mqtt.messages import Received
from appliance.adapters.mqtt.out import hub_publisher, withdrawal
from appliance.adapters.mqtt.out.command_queues import MAX_WAITING_BYTES, MAX_WAITING_COMMANDS, CommandQueues
from appliance.adapters.mqtt.out.discovery_payloads import device_payload
from appliance.adapters.mqtt.out.home_access import HomeAccess, no_frame
from appliance.adapters.mqtt.out.hub_publisher import MAX_UNSENT_BYTES
from appliance.adapters.mqtt.out.section_publishers import build_publishers
from appliance.adapters.mqtt.out.topics import HubTopics, discovery_id
from appliance.adapters.mqtt.retained_messages import MIN_REPUBLISH_SECS, RetainedMessages
from appliance.adapters.mqtt.stored_texts import published_topics
from appliance.api.frames import frame_of
from appliance.errors import Invalid
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.command_specs import CommandSpec
from appliance.home.model import DeviceKind, Info, Observation, Report
from appliance.home.registry import Registry
from appliance.tasks import Tasks
from tests.adapters.mqtt.broker import KINDS, USER, Broker, both_brokers, running
from tests.adapters.mqtt.homes import BrokerHome, Lamp, publishing, until
from tests.adapters.mqtt.table import Noted
from tests.fakes.clock import VirtualClock
from tests.fakes.context import KeptInMemory

LAMP = Observation(
    device_id="elgato_lights:light:0",
    kind=DeviceKind.LIGHT,
    attributes={"power": "off", "brightness": 20, "color_temperature": {"value": 4000, "unit": "kelvin"}},
    name="Desk",
    info=Info(manufacturer="Elgato", model="Key Light"),
    commands=(
        CommandSpec(capability="power", actions=("on", "off", "toggle")),
        CommandSpec(capability="brightness", actions=("set",), min=0, max=100),
        CommandSpec(capability="color_temperature", actions=("set",), min=2900, max=7000, unit="kelvin"),
    ),
)
THERE = "mqtt:lares_here_elgato_lights_light_0"
CATALOG_SECS = 0.2


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_publisher, "CATALOG_SECS", CATALOG_SECS)
    monkeypatch.setattr(retained_messages, "SETTLE_SECS", 0.2)
    monkeypatch.setattr(withdrawal, "RETAINED_QUIET_SECS", 0.2)


async def next_message(client: aiomqtt.Client, topic: str) -> Any:
    """Return the next message at a topic, parsed if it is JSON."""
    async with asyncio.timeout(15):
        async for message in client.messages:
            if message.topic.value == topic and message.payload:
                text = bytes(message.payload).decode()
                return json.loads(text) if text.startswith(("{", "[")) else text
    raise AssertionError("unreachable")


async def test_a_lamp_is_announced_publishes_its_state_and_accepts_commands(broker: Broker) -> None:
    base = "lares/here/devices/elgato_lights:light:0"
    async with broker.client() as client, BrokerHome(broker) as home:
        lamp = Lamp(home.registry, LAMP)
        await client.subscribe("#", qos=1)
        async with publishing(home, "here", lamp, boot=7):
            assert await next_message(client, "lares/here/status") == "online"
            state = await next_message(client, f"{base}/state")
            assert (state["boot"], state["name"], state["room"]) == (7, "Desk", None)
            assert state["attributes"]["brightness"] == 20 and state["at"].endswith("Z")
            await client.publish(f"{base}/set", '{"capability":"brightness","action":"set","value":55}', qos=1)
            assert await next_message(client, f"{base}/result") == {"status": "ok"}
            later = await next_message(client, f"{base}/state")
            assert later["attributes"]["brightness"] == 55 and later["seq"] > state["seq"]
            for wrong in (
                "{",
                "5",
                "5" * 65_537,
                '{"capability":"brightness"}',
                '{"capability":"no","action":"set"}',
            ):
                await client.publish(f"{base}/set", wrong, qos=1)
                result = await next_message(client, f"{base}/result")
                assert result["status"] == "error" and result["message"]
            home.bus.publish(events.DeviceEvent(device_id=LAMP.device_id, event="single", data={"n": 1}))
            assert await next_message(client, f"{base}/event") == {"n": 1, "event_type": "single"}
        assert await next_message(client, "lares/here/status") == "offline"


async def test_new_commands_of_a_device_are_announced(broker: Broker) -> None:
    config = HubTopics("here", "homeassistant").config(discovery_id(LAMP.device_id))
    async with broker.client() as client, BrokerHome(broker) as home:
        await client.subscribe(config, qos=1)
        async with publishing(home, "here", Lamp(home.registry, LAMP)):
            before = await next_message(client, config)
            seen = replace(LAMP, commands=LAMP.commands[:1])
            home.registry.apply(Report(adapter="elgato_lights", observations=(seen,)))
            assert await next_message(client, config) != before


async def test_an_ended_publisher_is_freed_without_a_garbage_collection(broker: Broker) -> None:
    """New devices exclude all existing objects from collections, so a reference cycle could keep a publisher."""
    base = "lares/here/devices/elgato_lights:light:0"

    async def publish(home: BrokerHome, client: aiomqtt.Client) -> weakref.ref[object]:
        async with publishing(home, "here", Lamp(home.registry, LAMP)) as publisher:
            await next_message(client, f"{base}/state")
            await client.publish(f"{base}/set", '{"capability":"power","action":"on"}', qos=1)
            await next_message(client, f"{base}/result")
            return weakref.ref(publisher)

    async with broker.client() as client, BrokerHome(broker) as home:
        await client.subscribe(f"{base}/+", qos=1)
        gc.collect()
        gc.disable()
        try:
            ended = await publish(home, client)
            await until(lambda: ended() is None)
        finally:
            gc.enable()


async def test_a_retained_command_is_ignored(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    base = "lares/here/devices/elgato_lights:light:0"
    async with broker.client() as client, BrokerHome(broker) as home:
        dim = '{"capability":"brightness","action":"set","value":55}'
        await client.publish(f"{base}/set", dim, qos=1, retain=True)
        await client.subscribe(f"{base}/result", qos=1)
        async with publishing(home, "here", Lamp(home.registry, LAMP)):
            await until(lambda: f"the command at {base}/set was ignored because it is retained" in caplog.text)
            await client.publish(f"{base}/set", '{"capability":"power","action":"on"}', qos=1)
            assert await next_message(client, f"{base}/result") == {"status": "ok"}
            shown = home.attributes(LAMP.device_id)
            assert (shown["power"], shown["brightness"]) == ("on", 20)


async def test_events_are_published_as_in_the_event_stream_except_those_from_mqtt(broker: Broker) -> None:
    async with broker.client() as client, BrokerHome(broker) as home:
        lamp = Lamp(home.registry, LAMP)
        await client.subscribe("lares/here/events", qos=1)
        async with publishing(home, "here", lamp, frame_of=frame_of) as publisher:
            await until(lambda: publisher._connection is not None)
            home.bus.publish(events.DeviceEvent(device_id="mqtt:remote", event="double", data={}))
            home.bus.publish(events.DeviceEvent(device_id=LAMP.device_id, event="single", data={"n": 1}))
            lamp.show(brightness=21)
            first = await next_message(client, "lares/here/events")
            assert first == {"type": "device.event", "id": LAMP.device_id, "event": "single", "data": {"n": 1}}
            second = await next_message(client, "lares/here/events")
            assert (second["type"], second["state"]["brightness"]) == ("device.state_changed", 21)


@both_brokers
async def test_two_hubs_are_one_home_without_a_loop(broker: Broker) -> None:
    async with (
        BrokerHome(broker, hub_id="here", publish=True) as here,
        BrokerHome(broker, hub_id="there", publish=True) as there,
    ):
        lamp = Lamp(here.registry, LAMP)
        plug = Lamp(there.registry, Observation(device_id="virtual:fan/1", kind=DeviceKind.SWITCH,
                    attributes={"power": "off", "temperature": {"value": 20.5, "unit": "°C"}}, name="Fan",
                    commands=(CommandSpec(capability="power", actions=("on", "off", "toggle")),)))  # fmt: skip
        async with publishing(here, "here", lamp) as publisher, publishing(there, "there", plug):
            await there.shows(THERE, state="online", power="off", brightness=20)
            await here.shows("mqtt:lares_there_virtual_fan_1", state="online", power="off",
                             temperature={"value": 20.5, "unit": "°C"})  # fmt: skip
            assert there.registry.get_device(THERE).name == "Desk"
            await there.command(THERE, "power", "on")
            await there.command(THERE, "brightness", "set", 70)
            await there.command(THERE, "color_temperature", "set", {"value": 3000, "unit": "kelvin"})
            assert here.attributes(LAMP.device_id)["brightness"] == 70
            assert there.attributes(THERE)["color_temperature"] == {"value": 3000, "unit": "kelvin"}
            await here.command("mqtt:lares_there_virtual_fan_1", "power", "on")
            assert plug.sent[-1].action == "on"
            await asyncio.sleep(0.5)
            assert sum(device.id.startswith("mqtt:lares") for device in here.registry.list_devices()) == 1
            assert sum(device.id.startswith("mqtt:lares") for device in there.registry.list_devices()) == 1
            broker.stop(signal.SIGKILL)
            await there.shows(THERE, state="offline")
            await broker.start()
            # The broker kept no messages, so the lamp may disappear. The lamp's newest state proves that the lamp was
            # announced again.
            await until(lambda: publisher._connection is not None)
            lamp.show(brightness=71)
            await there.shows(THERE, state="online", brightness=71)
        await there.shows(THERE, state="unavailable")


@pytest.mark.parametrize("version", [(2**53 - 1, 1), (2**62, 1), (7, 2**62), (10**30, 10**30)])
async def test_no_forged_version_makes_another_hub_ignore_a_device(broker: Broker, version: tuple[int, int]) -> None:
    forged = {"seq": version[1], "attributes": {"power": "off", "brightness": 1}}
    topic = "lares/here/devices/elgato_lights:light:0/state"
    async with BrokerHome(broker) as here, BrokerHome(broker, hub_id="there") as there, broker.client() as client:
        lamp = Lamp(here.registry, LAMP)
        async with publishing(here, "here", lamp, boot=7) as publisher:
            await there.shows(THERE, state="online", brightness=20)
            await until(lambda: "lares/here/status" in publisher._retained._published)
            for brightness in (71, 72):  # the second time, the topic was restored less than a minute ago
                forged["boot"] = max(version[0], publisher._boot)
                await client.publish(topic, json.dumps(forged), retain=True)
                await there.shows(THERE, brightness=1)
                lamp.show(brightness=brightness)
                await there.shows(THERE, brightness=brightness)
            assert not here.errors() and not there.errors()


@pytest.mark.parametrize("kind", ["own", pytest.param("mosquitto", marks=pytest.mark.slow)])
async def test_the_access_list_of_the_page_lets_hubs_work_and_readers_only_read(kind: str, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "mqtt.md").read_text()
    [listed] = re.findall(r"```text\n(user cellar\n.*?)```", page, re.DOTALL)
    access = f"{listed}\nuser {USER}\ntopic readwrite #\n"
    async with running(KINDS[kind](tmp_path, (USER, "cellar", "reader"), access)) as broker:
        async with (
            BrokerHome(broker, hub_id="cellar", publish=True, username="cellar") as cellar,
            BrokerHome(broker, hub_id="here", publish=True) as here,
            broker.client("reader", user="reader") as reader,
        ):
            cellars, lamp = Lamp(cellar.registry, LAMP), Lamp(here.registry, LAMP)
            await reader.subscribe("lares/#")
            async with publishing(cellar, "cellar", cellars), publishing(here, "here", lamp):
                await cellar.shows(THERE, state="online", power="off")
                await here.shows(THERE.replace("here", "cellar"), state="online")
                body = '{"capability":"power","action":"on"}'
                await reader.publish("lares/cellar/devices/elgato_lights:light:0/set", body, qos=1)
                await cellar.command(THERE, "power", "on")
                assert lamp.sent[-1].action == "on" and not cellars.sent
                assert await next_message(reader, "lares/here/devices/elgato_lights:light:0/result") == {
                    "status": "ok"
                }


async def test_scenes_and_automations_are_announced_and_can_be_commanded(broker: Broker) -> None:
    ran: list[Any] = []

    async def switch(id_: str, is_enabled: bool) -> None:
        ran.append((id_, is_enabled))
        automations[id_] = ("Wake up", is_enabled)

    automations = {"wake up": ("Wake up", True)}
    access: dict[str, Any] = {"scenes": {"evening": "Evening"}, "automations": automations,
                              "run_scene": ran.append, "switch": switch}  # fmt: skip
    topic = HubTopics("here", "homeassistant").of("automations", "wake up", "set")
    async with broker.client() as client, BrokerHome(broker) as here, BrokerHome(broker) as there:
        async with publishing(here, "here", Lamp(here.registry, LAMP), **access):
            await there.shows("mqtt:lares_here_hub", state="online")
            await there.command("mqtt:lares_here_hub", "custom.mqtt.scene_evening", "press")
            await until(lambda: ran == ["evening"])
            await client.publish(topic, "off", qos=1)
            await until(lambda: ran[-1] == ("wake up", False))
            assert not any("automation" in each.id for each in there.registry.list_devices())


async def test_messages_of_an_earlier_run_are_cleared(broker: Broker) -> None:
    async with broker.client() as client, BrokerHome(broker) as home:
        config = "homeassistant/device/lares_here/gone/config"
        await client.publish(config, '{"device":{"identifiers":["lares_here_gone"]}}', qos=1, retain=True)
        gone, misspelt = (f"lares/here/devices/{each}/state" for each in ("gone", "%65lgato_lights:light:0"))
        await client.publish(gone, '{"boot":1}', qos=1, retain=True)
        await client.publish(misspelt, '{"boot":99,"seq":1}', qos=1, retain=True)
        await client.publish("lares/here/devices/elgato_lights:light:0/set", "{}", qos=1, retain=True)
        async with publishing(home, "here", Lamp(home.registry, LAMP)):
            await client.subscribe([(each, 1) for each in (config, gone, misspelt)])
            cleared = set()
            async with asyncio.timeout(15):
                async for message in client.messages:
                    if not message.payload:
                        cleared.add(message.topic.value)
                    if len(cleared) == 3:
                        break


async def test_automations_are_listed_only_after_a_change(broker: Broker) -> None:
    """With thousands of automations, each list takes 10 ms."""
    automations, revisions, lists = {f"a{number}": ("A", True) for number in range(50)}, [1], list[int]()

    class Listed:
        def items(self) -> Any:
            lists.append(revisions[0])
            return automations.items()

    async with broker.client() as client, BrokerHome(broker) as home:
        await client.subscribe("lares/here/automations/a7/state", qos=1)
        access: dict[str, Any] = {"automations": Listed(), "revision": lambda: revisions[0]}
        async with publishing(home, "here", Lamp(home.registry, LAMP), **access):
            assert await next_message(client, "lares/here/automations/a7/state") == "on"
            passed = home.clock.monotonic() + 2 * CATALOG_SECS
            await until(lambda: home.clock.monotonic() > passed)
            assert lists == [1]
            automations["a7"], revisions[0] = ("A", False), 2
            assert await next_message(client, "lares/here/automations/a7/state") == "off"
            assert lists == [1, 2]


CONFIG = "/device/lares_here/elgato_lights_3a_light_3a_0/config"
STATE = "/devices/elgato_lights:light:0/state"

CHANGED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "publish": ({"publish": False}, []),
    "hub_id": ({"hub_id": "there"}, ["homeassistant" + CONFIG.replace("here", "there"), "lares/there" + STATE]),
    "discovery_prefix": ({"discovery_prefix": "other"}, ["lares/here" + STATE, "other" + CONFIG]),
}
"""Each row: the changed key, and the lamp's retained topics after the change."""


@pytest.mark.parametrize("key", CHANGED)
async def test_only_outdated_messages_of_this_hub_are_cleared(broker: Broker, key: str) -> None:
    kept, foreign = KeptInMemory(), "lares/elsewhere/devices/a/state"
    changed, left = CHANGED[key]
    async with broker.client() as client, BrokerHome(broker) as home:
        lamp = Lamp(home.registry, LAMP)

        async def switch(id_: str, is_enabled: bool) -> None: ...

        access = HomeAccess(registry=home.registry, bus=home.bus, send=lamp.send, scenes=dict, run_scene=print,
                            automations=lambda: [("a", "A", True)], revision=object, switch=switch, is_stopping=bool,
                            frame_of=no_frame)  # fmt: skip
        await client.publish(foreign, "{}", qos=1, retain=True)
        retained: set[str] = set()

        async def follow() -> None:
            await client.subscribe("#", qos=1)
            async for message in client.messages:
                (retained.add if message.payload else retained.discard)(message.topic.value)

        def of_lamp() -> list[str]:
            return sorted(each for each in retained if each.endswith((STATE, "light_3a_0/config")))

        def stays(hub: str) -> bool:
            return any(each.startswith(f"lares/{hub}/automations") for each in retained)

        task, before = asyncio.create_task(follow()), replace(home.settings, hub_id="here", publish=True)
        for settings, expected in ((before, ["homeassistant" + CONFIG, "lares/here" + STATE]),
                                 (replace(before, **changed), left)):  # fmt: skip
            publishers = await build_publishers("mqtt", settings, kept, access, home.clock, Path(), ["mqtt"])
            async with contextlib.AsyncExitStack() as stack:
                for publisher in publishers:
                    await stack.enter_async_context(publisher)
                await until(lambda expected=expected: of_lamp() == expected, lambda: str(of_lamp()))  # type: ignore[misc]
                is_stored = [settings.hub_id, settings.discovery_prefix] if settings.publish else None
                await until(lambda s=settings, w=is_stored: stored(kept) == w)  # type: ignore[misc]
        assert foreign in retained and stays("here") == (key == "discovery_prefix")
        assert of_lamp() == left
        again = await build_publishers("mqtt", replace(before, **changed), kept, access, home.clock, Path(), ["mqtt"])
        assert len(again) == (0 if key == "publish" else 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def stored(kept: KeptInMemory) -> list[str] | None:
    """Return the hub id and prefix of the previous run."""
    topics = published_topics(kept)
    return None if topics is None else [topics.hub_id, topics.prefix]


async def test_excess_commands_are_answered_busy_and_the_others_run_in_order(broker: Broker) -> None:
    base, gate = "lares/here/devices/elgato_lights:light:0", asyncio.Event()
    async with broker.client() as client, BrokerHome(broker) as home:
        lamp = Lamp(home.registry, LAMP)
        sent = lamp.send

        async def send(devices: Any, command: Any, source: str) -> Any:
            await gate.wait()
            return await sent(devices, command, source)

        lamp.send = send  # type: ignore[method-assign]
        await client.subscribe(f"{base}/result", qos=1)
        async with publishing(home, "here", lamp) as publisher:
            await until(lambda: publisher._connection is not None)
            await client.subscribe("lares/here/status", qos=1)
            assert await next_message(client, "lares/here/status") == "online"
            for percent in range(1, MAX_WAITING_COMMANDS + 3):
                command = {"capability": "brightness", "action": "set", "value": percent}
                await client.publish(f"{base}/set", json.dumps(command), qos=1)
            for _ in range(2):
                result = await next_message(client, f"{base}/result")
                assert result["status"] == "busy" and "too many commands" in result["message"]
            gate.set()
            for _ in range(MAX_WAITING_COMMANDS):
                assert await next_message(client, f"{base}/result") == {"status": "ok"}
            assert [each.value for each in lamp.sent] == [*range(1, MAX_WAITING_COMMANDS + 1)]


async def test_large_commands_that_wait_are_limited_for_all_devices_together() -> None:
    gate, ran, refused = asyncio.Event(), list[str](), list[str]()

    async def run(id_: str, _: object) -> None:
        await gate.wait()
        ran.append(id_)

    value = "x" * 60_000
    payload = json.dumps({"capability": "custom.a.b", "action": "set", "value": value}).encode()
    async with Tasks() as tasks:
        queues = CommandQueues(tasks, run, lambda _, id_, error: refused.append(f"{id_}: {type(error).__name__}"))
        for number in range(20):
            queues.take("devices", f"a:{number}", payload)
        count = MAX_WAITING_BYTES // len(payload)
        assert refused == [f"a:{number}: Busy" for number in range(count, 20)]
        queues.take("scenes", "evening", payload)
        gate.set()
        await until(lambda: len(ran) == count + 1)
        await until(lambda: not queues._queues)
        gate.clear()
        for number in range(count):
            queues.take("devices", f"a:{number}", payload)
        assert len(refused) == 20 - count
        await asyncio.sleep(0)  # a task that is cancelled before it starts removes nothing
    assert queues._bytes == 0


async def test_many_results_are_sent_in_order(broker: Broker) -> None:
    topic, count = "lares/here/devices/elgato_lights:light:0/result", 64
    async with broker.client() as client, BrokerHome(broker) as home:
        await client.subscribe(topic, qos=1)
        async with publishing(home, "here", Lamp(home.registry, LAMP)) as publisher:
            await until(lambda: publisher._connection is not None)
            for number in range(count):
                publisher._answer("devices", LAMP.device_id, Invalid(str(number)))
            results = [await next_message(client, topic) for _ in range(count)]
            assert [each["message"] for each in results] == [str(number) for number in range(count)]


async def test_large_events_that_wait_for_the_broker_need_little_memory(broker: Broker) -> None:
    """The number of waiting events is limited too, but a device decides on the size of its events."""
    async with broker.client() as client, BrokerHome(broker) as home:
        await client.subscribe("lares/here/events", qos=1)
        async with publishing(home, "here", Lamp(home.registry, LAMP), frame_of=frame_of) as publisher:
            await until(lambda: publisher._connection is not None)
            data = {"text": "x" * 200_000}
            for number in range(100):
                name = f"event{number}"
                home.bus.publish(events.DeviceEvent(device_id=LAMP.device_id, event=name, data=data))
            assert sum(map(len, publisher._frames)) <= MAX_UNSENT_BYTES
            assert publisher._sending * 200_000 <= MAX_UNSENT_BYTES
            while (await next_message(client, "lares/here/events"))["event"] != "event99":
                pass
            await until(lambda: not publisher._frames and not publisher._sending)
            assert (publisher._frames_bytes, publisher._sending_bytes) == (0, 0)


async def test_a_stopping_hub_refuses_each_command_and_logs_nothing(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    base = "lares/here/devices/elgato_lights:light:0"
    async with broker.client() as client, BrokerHome(broker) as home:
        lamp, ran = Lamp(home.registry, LAMP), list[str]()
        await client.subscribe(f"{base}/result", qos=1)
        async with publishing(home, "here", lamp, is_stopping=lambda: True, run_scene=ran.append) as publisher:
            await until(lambda: publisher._connection is not None)
            await client.publish("lares/here/scenes/evening/set", "ON", qos=1)
            await client.publish(f"{base}/set", '{"capability":"power","action":"on"}', qos=1)
            result = await next_message(client, f"{base}/result")
            assert result == {"status": "error", "message": "the hub is stopping; this command was not executed"}
    assert (lamp.sent, ran, caplog.records) == ([], [], [])


async def test_commands_that_arrive_after_the_exit_has_begun_start_no_work(broker: Broker) -> None:
    topic = "lares/here/devices/elgato_lights:light:0/set"
    async with BrokerHome(broker) as home:
        async with publishing(home, "here", Lamp(home.registry, LAMP)) as publisher:
            await until(lambda: publisher._connection is not None)
        commands = CommandQueues(publisher._tasks, publisher._run_command, publisher._answer)
        publisher._on_message(commands, Received(topic, b'{"capability":"power","action":"on"}', is_retained=False))
    assert not publisher._tasks._running


@pytest.mark.parametrize("payload", ["", "nonsense"])
async def test_a_message_that_another_client_changes_is_published_again_once(broker: Broker, payload: str) -> None:
    base = "lares/here/devices/elgato_lights:light:0"
    async with broker.client() as client, BrokerHome(broker) as home:
        await client.subscribe([(f"{base}/state", 1), ("lares/here/status", 1)])
        async with publishing(home, "here", Lamp(home.registry, LAMP)) as publisher:
            first = await next_message(client, f"{base}/state")
            await until(
                lambda: "lares/here/status" in publisher._retained._published and publisher._connection is not None
            )
            await asyncio.sleep(0.3)
            await client.publish(f"{base}/state", payload, qos=1, retain=True)
            while (again := await next_message(client, f"{base}/state")) == "nonsense":
                pass
            assert again == first
            await client.publish("lares/here/status", payload or "offline", qos=1, retain=True)
            while await next_message(client, "lares/here/status") != "online":
                pass
            assert {*publisher._retained._republished_at} == {f"{base}/state", "lares/here/status"}


async def test_a_stop_restores_a_message_that_another_client_changed_again(broker: Broker) -> None:
    state = "lares/here/devices/elgato_lights:light:0/state"
    config = HubTopics("here", "homeassistant").config(discovery_id(LAMP.device_id))
    async with broker.client() as client, BrokerHome(broker) as home:
        async with publishing(home, "here", Lamp(home.registry, LAMP)) as publisher:
            kept = publisher._retained
            await until(lambda: publisher._connection is not None and "lares/here/status" in kept._published)
            await until(lambda: publisher._revision is not None)
            for count in (1, 2):
                for topic in (state, config):
                    await client.publish(topic, f"nonsense {count}", qos=1, retain=True)
                await until(lambda: {state, config} <= kept._overwritten.keys())
                if count == 1:
                    await until(lambda: {state, config} <= kept._republished_at.keys() and not kept._overwritten)
            wanted = {topic: kept._published[topic] for topic in (state, config)}
        await client.subscribe([(topic, 1) for topic in wanted])
        for _ in wanted:
            message = await anext(aiter(client.messages))
            assert bytes(message.payload).decode() == wanted[message.topic.value]


async def test_all_overwritten_topics_are_restored_but_one_line_per_minute_is_logged(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    kept, connection = RetainedMessages("publishing", clock), Noted()
    topics = [f"lares/here/{number}" for number in range(40)]
    for topic in topics:
        kept.note_published(topic, "ours")
    for topic in topics * 2:
        kept.note_received(Received(topic, b"theirs", is_retained=False))
        await clock.advance(MIN_REPUBLISH_SECS / len(topics), sleepers=0)
        await kept.restore_overwritten(cast("Any", connection))
    assert {each.topic for each in connection.sent[: len(topics)]} == {*topics}
    changed = "publishing: another client changed"
    assert [each for each in caplog.messages if each.startswith(changed)] == [
        f"{changed} 1 topics of the hub, such as {topics[0]}; Lares restores them",
        f"{changed} 40 topics of the hub, such as {topics[1]}; Lares restores them",
    ]


async def test_an_error_while_publishing_ends_only_the_connection(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    faults = [RuntimeError("one"), RuntimeError("two")]

    class Scenes(dict[str, str]):
        def items(self) -> Any:
            if faults:
                raise faults.pop()
            return super().items()

    async with broker.client() as client, BrokerHome(broker) as home:
        await client.subscribe("lares/here/devices/+/state", qos=1)
        async with publishing(home, "here", Lamp(home.registry, LAMP), scenes=Scenes()) as publisher:
            await until(lambda: not faults and publisher._connection is not None)
            assert (await next_message(client, "lares/here/devices/elgato_lights:light:0/state"))["name"] == "Desk"
    assert "publishing failed" in caplog.text


def test_a_light_without_power_announces_none() -> None:
    specs = (CommandSpec(capability="brightness", actions=("set",), min=0, max=100),)
    device = replace(LAMP, attributes={"brightness": 20}, commands=specs)
    bus = Bus()
    registry = Registry(bus, VirtualClock())
    registry.apply(Report(adapter="elgato_lights", observations=(device,)))
    [shown] = registry.list_devices()
    raw = json.loads(device_payload(shown, None, HubTopics("here", "homeassistant"), ()))
    assert [each["platform"] for each in raw["components"].values()] == ["light"]
    assert '"power"' not in json.dumps(raw).replace("\\", "")
    light = raw["components"]["light"]
    assert json.loads(light["payload_off"]) == {"capability": "brightness", "action": "set", "value": 0}
