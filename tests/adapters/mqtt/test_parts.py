"""Received announcements, and the hub's own announcements, without a broker."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import sys
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import unquote

import aiomqtt
import pytest
from msgspec.structs import replace

from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.mqtt.aiomqtt_client import Client
from appliance.adapters.mqtt.announcements.announced_devices import AnnouncedDevices
from appliance.adapters.mqtt.announcements.discovery import BIRTH_SECS, RETURN_SECS, Phase
from appliance.adapters.mqtt.fields import parse_templates
from appliance.adapters.mqtt.inbox import (
    CROWDED,
    CROWDED_IF_MANY,
    DISCARD_AT_ONCE,
    MANY_MESSAGES,
    MAX_MESSAGES,
    TURN_BYTES,
    Inbox,
)
from appliance.adapters.mqtt.messages import Outgoing, Received, outgoing_of
from appliance.adapters.mqtt.out.discovery_payloads import device_payload, hub_payload
from appliance.adapters.mqtt.out.topics import HubTopics, discovery_id
from appliance.adapters.mqtt.pending_command import SUPPRESS_SECS
from appliance.adapters.mqtt.refusals import Refusal
from appliance.adapters.publisher import Publisher
from appliance.errors import BadAnswer, Invalid, Unreachable
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.model import Device, DeviceKind, Metadata, Observation
from appliance.home.registry import Registry
from tests.adapters.mqtt.captures import Sent, capture
from tests.adapters.mqtt.homes import PLAIN
from tests.adapters.mqtt.table import (
    NOW,
    Noted,
    announce,
    config,
    message_loop,
    new_catalog,
    rebuild,
    receive,
    take,
)
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of
from tests.fakes.patience import until
from tests.fakes.rows import each_row

TOO_LONG = "has more than 100 levels or 1024 bytes"


def sensor(identifier: str, via_device: str | None = None) -> Sent:
    device = {"identifiers": [identifier], "name": identifier}
    device |= {} if via_device is None else {"via_device": via_device}
    return config(f"sensor/{identifier}/t", state_topic=f"{identifier}/t", unique_id=identifier, device=device)


def parents(catalog: AnnouncedDevices) -> dict[str, str | None]:
    return {device.id: device.observation().info.parent_id for device in catalog.devices.values()}


def test_the_device_in_via_device_is_the_parent_whenever_it_is_announced() -> None:
    catalog = new_catalog()
    take(catalog, (sensor("bulb", "bridge"), sensor("itself", "itself"), sensor("lost", "nowhere")))
    assert parents(catalog) == {"mqtt:bulb": None, "mqtt:itself": None, "mqtt:lost": None}
    for sent in (sensor("bridge"), sensor("itself", "bridge")):
        catalog.store.take_config(sent.topic, sent.payload)
    assert {device.id for device in rebuild(catalog)} == {"mqtt:bridge", "mqtt:bulb", "mqtt:itself"}
    assert parents(catalog) == {
        "mqtt:bridge": None,
        "mqtt:bulb": "mqtt:bridge",
        "mqtt:itself": "mqtt:bridge",
        "mqtt:lost": None,
    }
    catalog.store.take_config(sensor("bridge").topic, b"")
    assert [device.id for device in rebuild(catalog)] == ["mqtt:bulb", "mqtt:itself"]
    assert set(parents(catalog).values()) == {None}


def test_a_hub_ignores_its_own_announcements_and_accepts_other_hubs() -> None:
    topics = HubTopics("here", "homeassistant")
    sent = Sent(topics.config("hub"), hub_payload({"evening": "Evening"}, {}, topics), retain=True)
    for hub_id, found in (("here", []), ("there", ["mqtt:lares_here_hub"]), ("her", ["mqtt:lares_here_hub"])):
        catalog = new_catalog(hub_id)
        take(catalog, (sent,))
        assert list(catalog.devices) == found, hub_id


def test_the_automations_of_another_hub_are_not_devices() -> None:
    topics = HubTopics("here", "homeassistant")
    payload = json.loads(hub_payload({"evening": "Evening"}, {"smoke": "Smoke alarm"}, topics))
    [switch] = [each for each in payload["components"].values() if each["platform"] == "switch"]
    assert switch["entity_category"] == "config"
    del switch["entity_category"]  # earlier versions announce no category
    for includes_config_entities in (False, True):
        catalog = new_catalog("there", includes_config_entities=includes_config_entities)
        take(catalog, (Sent(topics.config("hub"), json.dumps(payload).encode(), retain=True),))
        assert list(catalog.devices) == ["mqtt:lares_here_hub"]
        assert "power" not in catalog.devices["mqtt:lares_here_hub"].handlers


def test_a_person_of_another_hub_is_a_person_there_and_no_motion_sensor() -> None:
    anna = Device(id="virtual:anna", room_id=None, kind=DeviceKind.SENSOR, attributes={"presence": True},
                  metadata=Metadata(source="virtual"), updated_at=NOW, last_seen=NOW)  # fmt: skip
    topics = HubTopics("here", "homeassistant")
    payload = device_payload(anna, None, topics, ())
    state = json.dumps({"attributes": {"state": "online", "presence": True}}).encode()
    catalog = new_catalog("there")
    topic = topics.of("devices", anna.id, "state")
    take(catalog, (Sent(topics.config("x"), payload, retain=True), Sent(topic, state, retain=True)))
    [device] = catalog.devices.values()
    seen = device.observation()
    assert (seen.attributes, device.device_class) == ({"presence": True}, "person")


def test_a_lock_with_a_code_accepts_it_in_the_command() -> None:
    catalog = new_catalog()
    fields = {"state_topic": "door", "command_topic": "door/set", "unique_id": "door", "code_format": r"^\d{4}$"}
    template = "{{ value }} {{ code }}"
    take(catalog, (config("lock/door", command_template=template, payload_open="OPEN", **fields),))
    entity = catalog.devices["mqtt:door"].handlers["lock"]
    with pytest.raises(Invalid, match="requires a code"):
        entity.write(Command(capability="lock", action="unlock"), NOW)
    sent = entity.write(Command(capability="lock", action="unlock", code="1234"), NOW).messages
    assert [each.payload for each in sent] == ["UNLOCK 1234"]
    assert "1234" not in repr(Command(capability="lock", action="unlock", code="1234"))


@each_row(
    ("topic", "fields", "reason"),
    [
        ("sensor/x", {}, "the entity has no usable topic"),
        ("sensor/x", {"command_topic": "x/set"}, "the entity has no usable topic"),
        ("scene/x", {"state_topic": "x"}, "the entity has no usable topic"),
        ("sensor/x", {"qos": "high"}, "the entity has no usable topic: qos is not a number"),
        ("sensor/x", {"state_topic": "x" + "/x" * 100}, f"the entity has no usable topic: state_topic {TOO_LONG}"),
        (
            "sensor/x",
            {"~": "/" * 99, "state_topic": "~/x"},
            f"the entity has no usable topic: state_topic {TOO_LONG}",
        ),
        ("sensor/x", {"state_topic": "x" * 1025}, f"the entity has no usable topic: state_topic {TOO_LONG}"),
        ("sensor/x", {"state_topic": ["x"]}, "the entity has no usable topic: state_topic is not a topic"),
    ],
)
def test_a_missing_topic_is_the_reported_reason_of_a_refusal(topic: str, fields: dict[str, Any], reason: str) -> None:
    catalog = new_catalog()
    take(catalog, (config(topic, **fields),))
    assert [each.reason for each in catalog.refusals.by_key.values()] == [reason]


def test_an_entity_without_readers_does_not_wait_for_a_first_value() -> None:
    catalog, device = new_catalog(), {"identifiers": ["d"]}
    take(catalog, (config("switch/s", command_topic="c", expire_after=60, unique_id="s", device=device),))
    assert catalog.devices["mqtt:d"].observation().is_available


@pytest.mark.parametrize(
    ("component", "switch", "target", "labelled"),
    [
        ("water_heater", "power_command_topic", "temperature_command_topic", "target_temperature"),
        ("water_heater", "power_command_topic", "mode_command_topic", "custom.mqtt.mode"),
        ("humidifier", "command_topic", "target_humidity_command_topic", "custom.mqtt.target_humidity"),
    ],
)
def test_an_entitys_name_labels_its_target(component: str, switch: str, target: str, labelled: str) -> None:
    catalog, device = new_catalog(), {"identifiers": ["d"]}
    take(catalog, (config(f"{component}/x", name="Cellar", device=device, **{switch: "a", target: "b"}),))
    assert catalog.devices["mqtt:d"].labels == {labelled: "Cellar"}


def test_detached_switches_of_a_tasmota_are_states_or_presses_by_their_mode() -> None:
    [given, *_] = capture("tasmota-native/relay").messages
    raw = json.loads(given.payload)
    for detached, messages, attributes, presses in (
        (0, [("stat/RESULT", {"Switch1": {"Action": "ON"}})], {}, []),
        (1, [("stat/RESULT", {"Switch1": {"Action": "ON"}})], {"custom.mqtt.switch_1": True}, []),
        (1, [("tele/SENSOR", {"Switch1": "OFF", "Switch2": "ON"})], {"custom.mqtt.switch_1": False}, []),
        (1, [("stat/STATUS10", {"StatusSNS": {"Switch1": "ON"}})], {"custom.mqtt.switch_1": True}, []),
        (1, [("stat/RESULT", {"Switch2": {"Action": "HOLD"}})], {}, [("hold", {"raw": "hold", "switch": 2})]),
        (1, [("stat/RESULT", {"Switch3": {"Action": "ON"}}), ("stat/RESULT", {"X": 1})], {}, []),
    ):
        catalog = new_catalog()
        announced = json.dumps(raw | {"so": {"114": detached}, "swc": [1, 0, -1]}).encode()
        states = [Sent(f"tasmota_49A3BC/{topic}", json.dumps(each).encode(), False) for topic, each in messages]
        happened = take(catalog, (Sent(given.topic, announced, True), *states))
        assert catalog.devices["mqtt:00000049a3bc"].attributes == attributes, messages
        assert [(event, data) for _, event, data in happened] == presses
        assert not catalog.refusals.by_key


async def test_a_device_that_is_announced_again_gets_the_last_readable_message(clock: VirtualClock) -> None:
    loop = message_loop(clock)
    state = "lares/there/devices/x/state"
    for text, payload, expected in (
        ("{{ value }}", b"20", 20),
        ("{{ value }} ", b"\xff\xfe", 20),
        ("{{ value_json.c }}", b'{"boot":2,"seq":1,"c":30}', 30),
        ("{{ value_json.c | float }}", b'{"boot":1,"seq":9,"c":40}', 30),
    ):
        given = {"device_class": "temperature", "unit_of_measurement": "°C", "device": {"identifiers": ["x"]}}
        sent = config("sensor/x", state_topic=state, unique_id="x", value_template=text, **given)
        receive(loop, state, payload)
        announce(loop, sent)
        assert loop.announced.devices["mqtt:x"].attributes["temperature"] == {"value": expected, "unit": "°C"}, text


async def test_a_hub_that_connects_again_may_have_an_earlier_clock(clock: VirtualClock) -> None:
    loop = message_loop(clock)
    state, status = "lares/there/devices/x/state", "lares/there/status"
    keys = {"device_class": "battery", "unit_of_measurement": "%", "value_template": "{{ value_json.c }}"}
    announce(loop, config("sensor/x", state_topic=state, availability_topic=status, unique_id="x", **keys))
    for topic, payload, is_retained, expected in (
        (status, b"online", True, None),
        (state, b'{"boot":9,"seq":5,"c":30}', False, 30),
        (state, b'{"boot":8,"seq":7,"c":40}', False, 30),
        (status, b"online", True, 30),
        (state, b'{"boot":8,"seq":8,"c":40}', False, 30),
        ("lares/other/status", b"online", False, 30),
        (status, b"offline", False, 30),
        (state, b'{"boot":8,"seq":9,"c":40}', False, 30),
        (status, b"online", False, 30),
        (state, b'{"boot":2,"seq":2,"c":50}', False, 50),
        (state, b'{"boot":2,"seq":1,"c":60}', False, 50),
    ):
        receive(loop, topic, payload, is_retained=is_retained)
        device = next(iter(loop.announced.devices.values()))
        assert device.attributes.get("battery") == expected, payload


@pytest.mark.parametrize("is_replayed_first", [True, False])
async def test_a_command_survives_a_new_announcement_of_its_device(
    clock: VirtualClock, is_replayed_first: bool
) -> None:
    loop = message_loop(clock)
    device = {"identifiers": ["x"]}
    connection: Any = Noted()
    plug = config("switch/x", state_topic="x/state", command_topic="x/set", unique_id="x", device=device)
    announce(loop, plug)
    command = Command(capability="power", action="on")
    work = asyncio.ensure_future(loop.processor.commands.run(connection, "mqtt:x", command))
    await until(lambda: bool(connection.sent))
    more = config("sensor/y", state_topic="x/y", unique_id="y", device=device)
    loop.announced.store.take_config(more.topic, more.payload)
    rebuilt = rebuild(loop.announced)
    if is_replayed_first:
        list(loop.processor.publish_rebuilt(rebuilt))
    receive(loop, "x/state", b"ON")
    if not is_replayed_first:
        list(loop.processor.publish_rebuilt(rebuilt))
    await asyncio.wait_for(work, 5)
    assert loop.announced.devices["mqtt:x"].attributes["power"] == "on"


class Interrupted(Noted):
    """A connection that calls a function while a message is being sent."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self.meanwhile = meanwhile

    async def publish(self, message: Outgoing) -> None:
        self.meanwhile()
        await super().publish(message)


async def test_the_assumed_result_of_a_command_is_shown_by_the_newly_announced_device(clock: VirtualClock) -> None:
    loop = message_loop(clock)
    shown = loop._publish.find
    device = {"identifiers": ["x"]}
    plug = config("switch/x", command_topic="x/set", unique_id="x", device=device)
    more = config("sensor/y", state_topic="x/y", unique_id="y", device=device)
    announce(loop, plug)
    command = Command(capability="power", action="on")
    connection: Any = Interrupted(lambda: announce(loop, more))
    await loop.processor.commands.run(connection, "mqtt:x", command)
    receive(loop, "x/y", b"5")
    seen = shown("mqtt:x")
    assert seen is not None and seen.kind == "Switch"
    assert (seen.attributes["power"], seen.attributes["custom.mqtt.y"]) == ("on", "5")


async def test_a_device_removed_during_its_command_does_not_return(clock: VirtualClock) -> None:
    loop = message_loop(clock)
    plug = config("switch/x", state_topic="x/state", command_topic="x/set", unique_id="x", device={"ids": ["x"]})
    announce(loop, plug)
    connection: Any = Noted()
    work = asyncio.ensure_future(
        loop.processor.commands.run(connection, "mqtt:x", Command(capability="power", action="on"))
    )
    await until(lambda: bool(connection.sent))
    receive(loop, "x/state", b"ON")
    announce(loop, Sent(plug.topic, b"", retain=True))
    await loop._publish.full_list((), present=())
    await asyncio.wait_for(work, 5)
    assert loop._publish.find("mqtt:x") is None


@pytest.mark.parametrize("fault", [Unreachable("the connection is lost"), asyncio.CancelledError()])
async def test_an_unsent_command_is_forgotten(clock: VirtualClock, fault: BaseException) -> None:
    def fail() -> None:
        raise fault

    loop = message_loop(clock)
    announce(loop, config("switch/x", state_topic="x/state", command_topic="x/set", unique_id="x"))
    connection: Any = Interrupted(fail)
    with pytest.raises(type(fault)):
        await loop.processor.commands.run(connection, "mqtt:x", Command(capability="power", action="on"))
    await clock.advance(SUPPRESS_SECS, sleepers=0)
    list(loop.processor.tick())
    assert not loop.processor.commands.has_pending


async def test_values_that_expire_or_are_held_back_together_are_set_in_steps(clock: VirtualClock) -> None:
    loop, count = message_loop(clock), 100
    configs = [
        config(f"{component}/{number}", unique_id=f"{number}", state_topic=f"{number}",
               device={"ids": [f"{component}{number}"]}, **keys)
        for number in range(count)
        for component, keys in (("switch", {"command_topic": "set"}), ("sensor", {"expire_after": SUPPRESS_SECS}))
    ]  # fmt: skip
    announce(loop, *configs)
    for number in range(count):
        receive(loop, f"{number}", b"OFF")
    command = Command(capability="power", action="on")
    work = [
        asyncio.ensure_future(loop.processor.commands.run(cast("Any", Noted()), f"mqtt:switch{number}", command))
        for number in range(count)
    ]
    await asyncio.sleep(0)
    for number in range(count):
        receive(loop, f"{number}", b"ON")
        receive(loop, f"{number}", b"OFF")
    await asyncio.gather(*work)
    shown = [loop.announced.devices[f"mqtt:switch{number}"].attributes["power"] for number in range(count)]
    assert shown == ["on"] * count
    await clock.advance(SUPPRESS_SECS, sleepers=0)
    assert len([*loop.processor.tick()]) >= 2 * count
    shown = [loop.announced.devices[f"mqtt:switch{number}"].attributes["power"] for number in range(count)]
    assert shown == ["off"] * count and not loop.processor.commands.has_pending
    assert not any(loop.announced.devices[f"mqtt:sensor{number}"].is_available for number in range(count))


MOVING: dict[str, tuple[str, dict[str, Any], dict[str, bytes], Command, tuple[str, bytes]]] = {
    "cover by position": (
        "cover/x", {"position_topic": "x/position", "set_position_topic": "x/move"}, {"x/position": b"40"},
        Command(capability="cover_position", action="set", value=90), ("x/position", b"41"),
    ),
    "cover whose last report is opening": (
        "cover/x",
        {"state_topic": "x/state", "command_topic": "x/set", "position_topic": "x/position"},
        {"x/state": b"opening", "x/position": b"40"},
        Command(capability="cover_position", action="open"), ("x/position", b"41"),
    ),
    "cover by state": (
        "cover/x", {"state_topic": "x/state", "command_topic": "x/set"}, {"x/state": b"closed"},
        Command(capability="cover_position", action="open"), ("x/state", b"opening"),
    ),
    "garage door by state": (
        "cover/x", {"device_class": "garage", "state_topic": "x/state", "command_topic": "x/set"},
        {"x/state": b"closed"}, Command(capability="garage_door", action="open"), ("x/state", b"opening"),
    ),
    "garage door by position": (
        "cover/x", {"device_class": "garage", "position_topic": "x/position", "command_topic": "x/set"},
        {"x/position": b"0"}, Command(capability="garage_door", action="open"), ("x/position", b"3"),
    ),
    "valve by state": (
        "valve/x", {"state_topic": "x/state", "command_topic": "x/set"}, {"x/state": b"closed"},
        Command(capability="custom.mqtt.x", action="set", value="open"), ("x/state", b"opening"),
    ),
    "valve by position": (
        "valve/x", {"state_topic": "x/state", "command_topic": "x/set", "reports_position": True},
        {"x/state": b"40"}, Command(capability="custom.mqtt.x", action="set", value=90), ("x/state", b"41"),
    ),
}  # fmt: skip
"""By name: topic and fields of the configuration, the state before, a command, and the first report that confirms it.
"""


@pytest.mark.parametrize("is_announced_anew", [False, True])
@pytest.mark.parametrize("name", MOVING)
async def test_a_moving_cover_completes_its_command(clock: VirtualClock, name: str, is_announced_anew: bool) -> None:
    topic, fields, states, command, (moved_topic, moved) = MOVING[name]
    loop = message_loop(clock)
    connection: Any = Noted()
    keys = {"unique_id": "x", "availability_topic": "x/status", **fields}
    announce(loop, config(topic, **keys))
    for state_topic, payload in {"x/status": b"online", **states}.items():
        receive(loop, state_topic, payload)
    for is_silent in (True, False):
        connection.sent.clear()
        work = asyncio.ensure_future(loop.processor.commands.run(connection, "mqtt:x", command))
        await until(lambda: bool(connection.sent))
        if is_announced_anew:
            announce(loop, config(topic, name=f"silent {is_silent}", **keys))
        if is_silent:
            await clock.advance(5, sleepers=0)
            with pytest.raises(BadAnswer, match=r"was sent .* after 5 s"):
                await work
        else:
            receive(loop, moved_topic, moved)
            await asyncio.wait_for(work, 5)


def many(count: int, entities: int = 1, topics: int = 1) -> list[Sent]:
    """Return the configurations of `count` devices with `entities` entities each and `topics` topics per entity."""
    return [
        config(f"sensor/d{device}/e{entity}", state_topic=f"{device}/{entity}", unique_id=f"{device}_{entity}",
               device={"identifiers": [f"d{device}"]},
               availability=[{"topic": f"{device}/{entity}/{topic}"} for topic in range(topics - 1)])
        for device in range(count) for entity in range(entities)
    ]  # fmt: skip


@pytest.mark.slow
def test_announcements_beyond_the_limits_are_refused_counted_and_reported_once() -> None:
    for sent, devices, topics, reasons in (
        (many(2_001), 2_000, 2_000, ["the broker announces 2001 devices, but Lares uses only 2000"]),
        (many(1, 258), 1, 256, ["mqtt:d0: the device has more than 256 entities: 258"]),
        (many(204, 1, 50), 204, 10_000, ["the broker announces 10200 topics, but Lares uses only 10000"]),
        (
            [config(f"sensor/w{n}", state_topic=f"w/{n}/+") for n in range(203)],
            203,
            200,
            ["the broker announces 203 wildcards, but Lares uses only 200"],
        ),
        ([config("sensor/x", name="x" * 65_536)], 0, 0, ["the configuration is larger than 64 KiB"]),
    ):
        catalog = new_catalog()
        take(catalog, tuple(sent))
        rebuild(catalog)
        assert (len(catalog.devices), len(catalog.router.filters)) == (devices, topics)
        sentence = [*catalog.refusals.limits.values(), *(each.reason for each in catalog.refusals.by_key.values())]
        assert sentence == reasons


@pytest.mark.parametrize("left", [256, 0], ids=["the device fits", "the device disappears"])
def test_a_device_with_too_many_entities_is_reported_only_until_it_fits(left: int) -> None:
    catalog, sent = new_catalog(), [*many(1, 257), *many(2, 257)[257:]]
    take(catalog, tuple(sent))
    assert catalog.refusals.limits == {"entities": "mqtt:d0: the device has more than 256 entities: 257"}
    take(catalog, tuple(Sent(each.topic, b"", retain=True) for each in sent[left:257]))
    assert catalog.refusals.limits == {"entities": "mqtt:d1: the device has more than 256 entities: 257"}
    take(catalog, tuple(Sent(each.topic, b"", retain=True) for each in sent[257 + left :]))
    assert not catalog.refusals.limits and len(catalog.devices) == (2 if left else 0)


async def test_a_payload_beyond_256_kib_is_refused_and_reported_once(clock: VirtualClock) -> None:
    loop = message_loop(clock)
    for size in (256 * 1024 + 1, 256 * 1024 + 2, 256 * 1024):
        receive(loop, "big", b"x" * size)
    refusal = Refusal("big", "message", "the payload is larger than 256 KiB")
    assert loop.announced.refusals.by_key == {"big": refusal}


async def test_a_broker_that_lost_its_announcements_does_not_suggest_a_wrong_prefix(
    session: DeviceSession, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    context = context_of("mqtt", session, clock)
    connection: Any = Noted()
    sent = config("sensor/x", unique_id="x", state_topic="x")
    for first, warnings in (Received(sent.topic, sent.payload, is_retained=True), 0), (None, 1):
        discovery = message_loop(clock, publish=context.publish).discovery
        caplog.clear()
        for received in (first, None, None):
            discovery._begin()
            list(() if received is None else discovery.process(received))
            await discovery._settle(connection)
        assert caplog.text.count("check discovery_prefix") == warnings


@pytest.mark.parametrize("prefix", ["homeassistant", "ha"])
async def test_requests_to_announce_are_limited(session: DeviceSession, clock: VirtualClock, prefix: str) -> None:
    context = context_of("mqtt", session, clock)
    settings = replace(PLAIN, discovery_prefix=prefix)
    discovery = message_loop(clock, publish=context.publish, settings=settings).discovery
    connection: Any = Noted()
    for pause, count, is_asked in (
        (0, 1, True), (1, 1, False), (BIRTH_SECS - 3 * RETURN_SECS - 2, 1, False), (RETURN_SECS + 1, 2, True),
        (BIRTH_SECS / 2, 2, False),
    ):  # fmt: skip
        discovery._begin()
        await clock.advance(pause, sleepers=0)
        await discovery._settle(connection)
        assert connection.sent == [Outgoing(f"{prefix}/status", "online")] * count
        await clock.advance(RETURN_SECS, sleepers=0)
        await discovery._find_missing(connection)
        assert discovery._phase is (Phase.COMPLETE if is_asked else Phase.SETTLED), (
            "devices are forgotten only after a birth message"
        )


async def test_a_cancellation_together_with_the_brokers_answer_is_not_lost() -> None:
    client, answer = Client("nowhere", 1883, Inbox().put), asyncio.Event()

    async def work_on() -> None:
        await client._wait_for(answer.wait(), 5)
        await asyncio.Event().wait()

    for ticks in range(5):
        answer.clear()
        working = asyncio.ensure_future(work_on())
        await asyncio.sleep(0.001)
        answer.set()
        for _ in range(ticks):
            await asyncio.sleep(0)
        working.cancel()
        assert await asyncio.wait({working}, timeout=20) == ({working}, set()), ticks
    with pytest.raises(aiomqtt.MqttError, match="timed out"):
        await client._wait_for(asyncio.Event().wait(), 0.001)


def put(inbox: Inbox, topic: str, *payloads: object) -> None:
    for each in payloads:
        inbox.put(Received(topic, str(each).encode(), False))


def test_a_noisy_device_delays_only_itself() -> None:
    inbox = Inbox(lambda topic: topic.partition("/")[0])
    put(inbox, "noisy/a", *(f"{number:<{TURN_BYTES}}" for number in range(CROWDED - 1)))
    put(inbox, "noisy/b", 0)
    put(inbox, "quiet/a", 0)
    put(inbox, "noisy/a", "newest")
    put(inbox, "noisy/b", "newest")
    assert (len(inbox), inbox.dropped) == (CROWDED + 1, 2), "a crowded queue keeps the newest state of each topic"
    put(inbox, "quiet/a", 1)
    found = [(each.topic, each.payload.decode().strip()) for each in inbox.take(4)]
    assert found == [("noisy/a", "0"), ("noisy/a", "1"), ("quiet/a", "0"), ("quiet/a", "1")]
    rest = [each.payload for each in inbox.take(CROWDED)]
    assert rest[-2:] == [b"newest", b"newest"] and len(inbox) == 0


def test_thousands_of_messages_are_discarded_in_steps() -> None:
    inbox, count = Inbox(), 10 * DISCARD_AT_ONCE
    for number in range(count):
        inbox.put(Received(f"a/{number}", b"x", is_retained=False))
    assert sum(1 for _ in inbox.discard_all()) == 10 and len(inbox) == 0


class PassingClock(VirtualClock):
    """A clock with which each step of `in_steps` takes long."""

    pauses = 0

    def monotonic(self) -> float:
        self._elapsed += 0.01
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        self.pauses += 1


async def test_a_new_connection_discards_the_messages_of_the_previous_one_in_steps() -> None:
    class Ended:
        async def publish_online(self) -> None:
            assert len(loop.inbox) == 0
            raise Unreachable("the connection has ended")

    clock, connection = PassingClock(), Ended()
    loop = message_loop(clock)
    for number in range(10 * DISCARD_AT_ONCE):
        loop.inbox.put(Received(f"a/{number}", b"x", is_retained=False))
    with pytest.raises(Unreachable):
        await loop.run_session(connection)  # type: ignore[arg-type]
    assert clock.pauses >= 10


@pytest.mark.parametrize("is_built", [False, True])
async def test_many_devices_without_announcements_become_unavailable_in_steps(is_built: bool) -> None:
    clock, bus, count = PassingClock(), Bus(), 20
    registry = Registry(bus, clock)
    publish = Publisher("mqtt", registry, bus, clock)
    for number in range(count):
        publish.device(Observation(device_id=f"mqtt:{number}", kind=DeviceKind.SENSOR, attributes={}))
    discovery = message_loop(clock, publish=publish).discovery
    if is_built:
        discovery._phase = Phase.SETTLED
        await discovery._rebuild()
    else:
        publish.lost(Unreachable("x"))
        await discovery.prepare()
    assert {each.attributes["state"] for each in registry.list_devices()} == {"unavailable"}
    assert clock.pauses >= count


def test_few_messages_keep_their_order() -> None:
    inbox = Inbox()
    for number in range(9):
        put(inbox, "abb"[number % 3], number)
    assert [each.payload for each in inbox.take(10)] == [b"%d" % number for number in range(9)]


def test_events_are_never_replaced() -> None:
    inbox = Inbox(has_events=lambda topic: topic == "button")
    put(inbox, "button", *range(2 * CROWDED))
    assert [each.payload for each in inbox.take(99)] == [b"%d" % number for number in range(2 * CROWDED)]


def test_a_flood_for_many_devices_leaves_a_short_backlog_of_newest_states() -> None:
    inbox, count = Inbox(lambda topic: topic.partition("/")[0]), 500
    for number in range(CROWDED - 1):
        for device in range(count):
            put(inbox, f"{device}/state", number)
    assert len(inbox) == MANY_MESSAGES, "each device has more than a few messages, so newer ones replace them"
    for number in range(CROWDED_IF_MANY):
        put(inbox, "quiet/state", number)
    assert len(inbox) == MANY_MESSAGES + CROWDED_IF_MANY
    taken = inbox.take(MAX_MESSAGES)
    newest = {each.topic: each.payload for each in taken}
    assert {newest[f"{device}/state"] for device in range(count)} == {b"%d" % (CROWDED - 2)}
    assert [each.payload for each in taken if each.topic == "quiet/state"] == [b"0", b"1", b"2"]


def test_at_the_limit_the_device_with_the_most_messages_loses_its_oldest() -> None:
    inbox = Inbox(lambda topic: topic.partition("/")[0])
    put(inbox, "lamp/on", 0)
    for number in range(MAX_MESSAGES):
        put(inbox, f"noisy/{number}", 0)
    assert (len(inbox), inbox.dropped) == (MAX_MESSAGES, 1)
    assert [each.topic for each in inbox.take(2)] == ["lamp/on", "noisy/1"]
    assert len(inbox.take(MAX_MESSAGES)) == MAX_MESSAGES - 2
    assert sys.getsizeof(inbox._queues) < 1_000, "an empty inbox returns its memory"


def test_each_message_beyond_the_limit_drops_one_of_the_longest_queue() -> None:
    inbox, payload, rng = Inbox(lambda topic: topic.partition("/")[0]), bytes(1 << 20), random.Random(7)
    for number in range(2_000):
        before = {device: len(queue) for device, queue in inbox._queues.items()}
        device = rng.choice("aabbbcdefgh")
        inbox.put(Received(f"{device}/{number}", payload, False))
        before[device] = before.get(device, 0) + 1
        lost = [each for each, length in before.items() if length > len(inbox._queues.get(each, ()))]
        assert all(before[each] == max(before.values()) for each in lost) and len(lost) == (sum(before.values()) > 63)
        if number % 9 == 0:
            inbox.take(rng.randrange(12))


@each_row(
    ("id_", "level"),
    [("tv:1", "tv:1"), ("a/b+c#d", "a%2Fb%2Bc%23d"), ("100%", "100%25"), ("%2F", "%252F"), ("küche ☃", "küche ☃")],
)
def test_ids_in_topics_are_percent_encoded(id_: str, level: str) -> None:
    assert HubTopics("h", "p").of("devices", id_, "state") == f"lares/h/devices/{level}/state"
    assert unquote(level) == id_


def test_two_ids_have_different_configuration_topics() -> None:
    levels = [discovery_id(f"hue:{'灯' * 40}{number}") for number in (1, 2)]
    assert levels[0] != levels[1] and all(len(each) == 200 for each in levels)
    assert discovery_id("tv:a_b") == "tv_3a_a_b"
    short = ["".join(each) for length in range(1, 7) for each in itertools.product(":_3a", repeat=length)]
    assert len({discovery_id(each) for each in short}) == len(short)


def test_large_messages_and_configurations_are_processed_in_steps(clock: VirtualClock) -> None:
    loop, keys = message_loop(clock), {"state_topic": "x", "device": {"identifiers": ["x"]}}
    announce(loop, *(config(f"sensor/x{number}", unique_id=f"x{number}", **keys) for number in range(150)))
    assert len(list(loop.processor.process(Received("x", b"1", is_retained=False)))) == 149
    templates = {f"a{number}": "{{ value }}" + "x" * 600 + str(number) for number in range(20)}
    assert len(list(parse_templates({"components": {"a": templates}}))) == 20


@each_row(
    ("raw", "sent"),
    [
        ({"topic": "a", "payload": ""}, ""),
        ({"topic": "a", "payload": False}, "false"),
        ({"topic": "a", "payload": {"on": True}}, '{"on":true}'),
        ({"topic": "a"}, None),
        ({"topic": "a", "payload": None}, None),
    ],
)
def test_only_an_explicit_empty_payload_is_an_empty_message(raw: dict[str, Any], sent: str | None) -> None:
    if sent is None:
        with pytest.raises(Invalid, match="payload is missing"):
            outgoing_of({**raw, "retain": True}, ())
    else:
        assert outgoing_of({**raw, "retain": True}, ()) == Outgoing("a", sent, retain=True)
