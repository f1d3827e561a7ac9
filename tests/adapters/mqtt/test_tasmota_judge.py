"""hatasmota, the reference reader of Tasmota's discovery, agrees with the hub about the simulated devices.

Install `hatasmota` to run this test, because the tests' lock does not contain it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from appliance.adapters.mqtt.message_loop import MessageLoop
from appliance.home.commands import Command
from appliance.home.values import number_in
from tests.adapters.mqtt.table import NOW, announce, message_loop, receive
from tests.adapters.mqtt.tasmota import MAC, TasmotaDevice
from tests.adapters.mqtt.test_tasmota import PLAYS, Play

judge: Any = pytest.importorskip("hatasmota.discovery")
bus: Any = pytest.importorskip("hatasmota.mqtt")

pytestmark = pytest.mark.slow

SPEEDS = 3

UNJUDGED = ("reader of cards",)
"""Test cases without a value that both readers report."""


class JudgeClient:
    """The reference reader's connection to a broker. The connection records the reader's messages, and passes the
    device's messages to the reader."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.callbacks: list[tuple[str, Any]] = []
        self.mqtt = bus.TasmotaMQTTClient(self._publish, self._subscribe, self._unsubscribe)

    async def _publish(self, topic: str, payload: Any, qos: Any, retain: Any) -> None:
        self.sent.append((topic, str(payload)))

    async def _subscribe(self, state: Any, topics: Mapping[str, Any]) -> Any:
        self.callbacks += [(each["topic"], each["msg_callback"]) for each in topics.values()]
        return topics

    async def _unsubscribe(self, state: Any) -> Any:
        return {}

    def receive(self, topic: str, payload: str) -> None:
        """Pass a message to the subscribers of its topic."""
        for subscribed, callback in list(self.callbacks):
            if subscribed == topic:
                callback(bus.ReceiveMessage(topic, payload, 0, False))


class JudgedEntity:
    """One entity of the reference reader: its last state, and the hub's object id for the same output."""

    def __init__(self, config: Any, client: JudgeClient) -> None:
        self.config = config
        self.values: dict[str, Any] = {}
        self.entity: Any = judge.get_entity(config, client.mqtt)
        self.entity.set_on_state_callback(self._on_state)

    def _on_state(self, state: Any, **more: Any) -> None:
        attributes = more.pop("attributes", {})
        self.values |= {key: each for key, each in {"state": state, **more, **attributes}.items() if each is not None}

    @property
    def object_id(self) -> str:
        if self.config.platform == "sensor":
            return "_".join(str(step + 1) if isinstance(step, int) else step for step in self.config.value_path)
        words = {"switch": "relay_{}", "light": "light_{}", "cover": "shutter_{}"}
        number = self.config.idx + 1 if isinstance(self.config.idx, int) else 0
        return words.get(self.config.platform, "fan").format(number)

    def shown(self) -> Iterator[tuple[str, Any]]:
        """Yield the hub's attributes that correspond to the reader's state."""
        values = self.values
        match self.config.platform:
            case "fan":
                yield "custom.mqtt.percentage", values["state"] * 100 // SPEEDS
            case "cover":
                yield from ((f"cover_{key}", round(values[key])) for key in ("position", "tilt") if key in values)
            case "switch" | "light" if "state" in values:
                yield "power", "on" if values["state"] else "off"
        if self.config.platform == "light" and "brightness" in values:
            yield "brightness", values["brightness"]


async def judged(device: TasmotaDevice, client: JudgeClient) -> list[JudgedEntity]:
    """Return the entities that the reference reader builds for a device. Each entity is subscribed to its topics."""
    config = judge.TasmotaDiscoveryMsg(device.config)
    found = [
        each
        for platform in ("switch", "light", "cover", "fan")
        for each, _ in judge.get_entities_for_platform(config, platform)
    ]
    found += [each for each, _ in judge.get_sensor_entities({"sn": device.sensors, "ver": 1}, config)]
    entities = [JudgedEntity(each, client) for each in found if each is not None]
    for each in entities:
        await each.entity.subscribe_topics()
    return entities


def start(play: Play) -> tuple[TasmotaDevice, MessageLoop]:
    """Return the simulated device of a test case, and the hub's devices before the first message."""
    device, loop = TasmotaDevice(play.state, play.sensors, **play.config), message_loop()
    announce(loop, *device.announcements)
    return device, loop


def attributes_of(loop: MessageLoop, object_id: str) -> Mapping[str, Any]:
    expected = object_id.replace(".", "_").replace(" ", "_")
    entities = [each for device in loop.announced.devices.values() for each in device.entities]
    return next((each.attributes for each in entities if each.announcement.object_id == expected), {})


@pytest.mark.parametrize("name", PLAYS)
async def test_the_reference_reader_shows_the_same_values(name: str) -> None:
    play, client = PLAYS[name], JudgeClient()
    device, loop = start(play)
    entities = await judged(device, client)
    for topic, values in (("tele/tA1/STATE", play.state), ("tele/tA1/SENSOR", play.values)):
        client.receive(topic, json.dumps(values))
        receive(loop, topic, json.dumps(values).encode())
    agreed = 0
    for each in entities:
        ours = attributes_of(loop, each.object_id)
        for key, value in each.shown() if each.values else ():
            assert ours.get(key) == value, (each.object_id, key)
            agreed += 1
        value = each.values.get("state")
        if each.config.platform == "sensor" and isinstance(value, int | float) and ours:
            [shown] = ours.values()
            assert number_in(shown) == pytest.approx(value, abs=0.5), each.object_id
            if isinstance(shown, dict) and each.entity.unit:
                assert shown["unit"].lstrip("°") == each.entity.unit.lstrip("°"), each.object_id
            agreed += 1
    assert agreed or name in UNJUDGED


COMMANDS: tuple[tuple[str, str, str, dict[str, Any], str, tuple[Any, ...]], ...] = (
    ("single relay", "", "relay_1", {"capability": "power", "action": "on"}, "set_state", (True,)),
    ("four relays with names", ":relay_4", "relay_4", {"capability": "power", "action": "off"}, "set_state",
     (False,)),
    ("inverted shutter", "", "shutter_1", {"capability": "cover_position", "action": "set", "value": 30},
     "set_position", (30,)),
    ("inverted shutter", "", "shutter_1", {"capability": "cover_position", "action": "stop"}, "stop", ()),
    ("shutter with slats", ":shutter_2", "shutter_2", {"capability": "cover_tilt", "action": "set", "value": 75},
     "set_tilt_position", (75,)),
    ("fan with a light", ":fan", "fan",
     {"capability": "custom.mqtt.percentage", "action": "set", "value": 100}, "set_speed", (3,)),
)  # fmt: skip


@pytest.mark.parametrize(("name", "part", "object_id", "command", "method", "arguments"), COMMANDS)
async def test_the_reference_reader_sends_the_same_commands(
    name: str, part: str, object_id: str, command: dict[str, Any], method: str, arguments: tuple[Any, ...]
) -> None:
    client = JudgeClient()
    device, loop = start(PLAYS[name])
    [entity] = [each for each in await judged(device, client) if each.object_id == object_id]
    await getattr(entity.entity, method)(*arguments)
    ours = loop.announced.devices[f"mqtt:{MAC.lower()}{part}"].handlers[command["capability"]]
    messages = ours.write(Command.parse(dict(command)), NOW).messages
    # The names of Tasmota's commands are case-insensitive.
    assert [(each.topic.lower(), each.payload) for each in messages] == [
        (topic.lower(), payload) for topic, payload in client.sent
    ]
