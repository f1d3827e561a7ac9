"""Known devices stay. Broken configurations do not change known devices, and new devices do not displace known
devices."""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

import pytest

from appliance.adapters.mqtt import message_loop
from appliance.adapters.mqtt.announcements import announcement_store
from appliance.adapters.mqtt.announcements.announced_devices import MAX_BROKER_DEVICES, AnnouncedDevices
from appliance.adapters.mqtt.announcements.announcement_store import MAX_UNUSED_CONFIGS
from appliance.adapters.mqtt.announcements.device_places import MAX_BUILT_DEVICES
from appliance.home.events import DropEnded, ObservationDropped
from tests.adapters.mqtt.broker import Broker
from tests.adapters.mqtt.captures import Sent
from tests.adapters.mqtt.homes import BrokerHome, until
from tests.adapters.mqtt.table import config, new_catalog, rebuild

KNOWN, NEWCOMERS = 309, 2_300
PLUG = {"state_topic": "plug/state", "command_topic": "plug/set", "unique_id": "plug", "device": {"ids": ["plug"]}}
PARTS = {
    "device": {"ids": ["plug"]},
    "components": {
        "power": {"platform": "switch", **{key: PLUG[key] for key in ("state_topic", "command_topic", "unique_id")}},
        "load": {"platform": "sensor", "unique_id": "load", "state_topic": "plug/load", "unit_of_measurement": "W"},
    },
}
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "a topic for the entity": ("homeassistant/switch/plug/config", PLUG),
    "one for the device": ("homeassistant/device/plug/config", PARTS),
}
BROKEN = (
    b"{",
    b"[1]",
    b'{"x": "' + b"x" * 65_536 + b'"}',
    b'{"unique_id": "plug", "device": {"ids": ["plug"]}}',
    json.dumps({**PLUG, "command_topic": 7, "state_topic": "#/x"}).encode(),
    b'{"x": ' * 99 + b"1" + b"}" * 99,
    b'{"device": {"ids": ["plug"]}, "components": 5}',
)
"""Configurations that are invalid in both formats."""


@pytest.mark.parametrize("form", FORMS)
async def test_a_broken_configuration_of_a_known_device_changes_nothing(
    broker: Broker, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_loop, "TICK_SECS", 0.02)
    topic, good = FORMS[form]
    async with broker.client() as client, BrokerHome(broker) as home:

        def lines() -> list[str]:
            return [each.reason for each in home.events if isinstance(each, ObservationDropped)]

        for number, payload in enumerate(BROKEN):
            await client.publish(topic, json.dumps({**good, "x": number}), qos=1, retain=True)
            await client.publish("plug/state", "ON", qos=1, retain=True)
            await home.shows("mqtt:plug", state="online", power="on")
            await until(lambda: not home.loop._reports._reported)
            before, sentence = home.registry.get_device("mqtt:plug"), len(lines())
            await client.publish(topic, payload, qos=1, retain=True)
            await until(lambda sentence=sentence: len(lines()) > sentence, lambda: str(lines()))  # type: ignore[misc]
            await client.publish("plug/state", "OFF", qos=1)
            await home.shows("mqtt:plug", state="online", power="off")
            after = home.registry.get_device("mqtt:plug")
            assert (after.commands, after.info, after.name) == (before.commands, before.info, before.name)
            assert len(lines()) == sentence + 1, lines()[sentence:]
        await client.publish(topic, b"", qos=1, retain=True)
        await until(lambda: sum(isinstance(each, DropEnded) for each in home.events) == len(lines()))


def sensor(name: str) -> Sent:
    return config(f"sensor/{name}", state_topic=f"{name}/t", unique_id=name, device={"identifiers": [name]})


def announce(catalog: AnnouncedDevices, sent: list[Sent]) -> None:
    """Process configurations, and build devices within the limit."""
    for each in sent:
        catalog.store.take_config(each.topic, each.payload)
    rebuild(catalog)


@pytest.mark.parametrize("is_late", [False, True], ids=["there before", "announced after all others"])
@pytest.mark.slow
def test_new_devices_never_replace_known_ones(is_late: bool) -> None:
    catalog, names = new_catalog(), [f"known{number}" for number in range(KNOWN)]
    newcomers = [sensor(f"new{number}") for number in range(NEWCOMERS)]
    ids, known = {f"mqtt:{each}" for each in names}, [sensor(each) for each in names]
    catalog.expect(dict.fromkeys(ids if is_late else (), ""))
    for each in (newcomers, known) if is_late else (known, newcomers):
        announce(catalog, each)
    assert ids <= catalog.devices.keys() and len(catalog.devices) == MAX_BROKER_DEVICES
    assert catalog.router.filters >= {f"{each}/t" for each in names}
    assert (
        catalog.refusals.limits["devices"]
        == f"the broker announces {KNOWN + NEWCOMERS} devices, but Lares uses only 2000"
    )
    there = set(catalog.devices)
    announce(catalog, [sensor(f"aaa{number}") for number in range(50)])
    assert set(catalog.devices) == there
    announce(catalog, [Sent(each.topic, b"", True) for each in newcomers])
    assert ids <= catalog.devices.keys() and len(catalog.devices) == KNOWN + 50
    assert "devices" not in catalog.refusals.limits


@pytest.mark.parametrize(
    ("topic", "unique_id"),
    [
        pytest.param("homeassistant/sensor/<n>/config", "x", id="one unique id"),
        pytest.param("homeassistant/sensor/<n>/config", "x<n>", id="too many entities"),
        pytest.param("tasmota/discovery/00000000<n>/sensors", "x", id="devices that do not announce themselves"),
    ],
)
def test_a_flood_of_unused_announcements_does_not_stay_in_memory(
    topic: str, unique_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcement_store, "MAX_UNUSED_CONFIGS", limit := 300)
    catalog = new_catalog()
    announce(catalog, [sensor("used")])
    keys = {"unique_id": unique_id, "device": {"identifiers": ["x"]}, "state_topic": "x"}
    flood = [
        Sent(topic.replace("<n>", number), json.dumps(keys).replace("<n>", number).encode(), False)
        for number in map(str, range(1_000, 3_000))
    ]
    announce(catalog, flood)
    used = sum(len(each.entities) for each in catalog.devices.values())
    assert len(catalog.store._payloads) <= limit + used
    assert len([*catalog.store.forget_unused()]) >= len(catalog.store._payloads), "a step handles one configuration"
    for kept in (catalog.store._payloads, catalog.store._announced):
        assert sys.getsizeof(kept) == sys.getsizeof({**kept})
    assert catalog.devices["mqtt:used"].entities and catalog.store.has_config(sensor("used").topic)


@pytest.mark.slow
def test_beyond_the_limit_only_few_configurations_of_further_devices_are_stored() -> None:
    catalog, known = new_catalog(), [f"known{number}" for number in range(MAX_BROKER_DEVICES)]
    catalog.expect({"mqtt:late": "late", "mqtt:old": ""})
    announce(catalog, [sensor(each) for each in known])
    announce(catalog, [sensor("one more")])
    for number in range(2 * MAX_UNUSED_CONFIGS):
        each = sensor(f"new{number}")
        catalog.store.take_config(each.topic, each.payload)
    assert len(catalog.store._payloads) == MAX_BROKER_DEVICES + MAX_UNUSED_CONFIGS
    more = config("sensor/more", state_topic="more", unique_id="more", device={"identifiers": ["known7"]})
    free = [Sent(sensor(each).topic, b"", True) for each in known[:2]]
    announce(catalog, [sensor("late"), sensor("old"), more, *free])
    assert {"mqtt:late", "mqtt:old"} <= catalog.devices.keys() and "more" in catalog.router.filters
    announce(catalog, [Sent(sensor(each).topic, b"", True) for each in known[2:100]])
    assert len(catalog.devices) == MAX_BROKER_DEVICES, "the stored devices take the free places"


def test_a_flood_before_the_first_rebuild_displaces_no_expected_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcement_store, "MAX_CONFIGS_BYTES", limit := 16 << 20)
    catalog, known = new_catalog(), [sensor(f"known{number}") for number in range(50)]
    catalog.expect({f"mqtt:known{number}": f"known{number}" for number in range(len(known))})
    parts = {f"{number}": {"platform": "sensor", "state_topic": "s"} for number in range(32)}
    entities = (
        config(f"device/flood{number}", device={"ids": [f"flood{number}"]}, components=parts)
        for number in itertools.count()
    )
    while not catalog.refusals.limits:
        each = next(entities)
        catalog.store.take_config(each.topic, each.payload)
    stored = len(catalog.store._payloads)
    for each in known:
        assert catalog.store.take_config(each.topic, each.payload)
        newcomer = next(entities)
        assert not catalog.store.take_config(newcomer.topic, newcomer.payload)
    assert stored < len(catalog.store._payloads) < stored + len(known), "only as much as necessary is forgotten"
    assert catalog.store._bytes <= limit
    catalog.end_waiting()
    rebuild(catalog)
    assert {f"mqtt:known{number}" for number in range(len(known))} < catalog.devices.keys()


@pytest.mark.slow
def test_a_flood_before_the_first_rebuild_takes_little_memory() -> None:
    catalog, count = new_catalog(), MAX_BROKER_DEVICES
    for number in range(3 * count):
        for each in board(f"new{number}", 2):
            catalog.store.take_config(each.topic, each.payload)
    assert len(catalog.store._payloads) == 2 * count + MAX_UNUSED_CONFIGS
    rebuild(catalog)
    assert {each.parent_id or id_ for id_, each in catalog.devices.items()} == {f"mqtt:new{n}" for n in range(count)}


def board(name: str, switches: int) -> list[Sent]:
    """Return the configurations of a device whose second and later switches become parts."""
    return [
        config(f"switch/{name}_{number}", command_topic=f"c/{name}", unique_id=f"{name}_{number}",
               device={"identifiers": [name]}, name=f"e{number}")
        for number in range(switches)
    ]  # fmt: skip


@pytest.mark.slow
def test_the_parts_of_all_devices_have_a_limit_and_never_replace_known_devices() -> None:
    catalog, flood = new_catalog(), [each for number in range(50) for each in board(f"x{number:02}", 200)]
    announce(catalog, [*board("known", 2), sensor("plain")])
    known = set(catalog.devices)
    assert len(known) == 3 and not catalog.refusals.limits
    announce(catalog, flood)
    there = set(catalog.devices)
    assert known < there and len(there) == MAX_BUILT_DEVICES
    assert [id_ for id_ in there - known if not id_.startswith("mqtt:x")] == []
    assert "mqtt:x23" in there and "mqtt:x25" not in there
    sentence = "with their parts, the devices of the broker exceed 5000; 26 of 52 devices are missing or lack parts"
    assert catalog.refusals.limits["parts"] == sentence
    stored = len(catalog.store._payloads)
    assert stored == MAX_BUILT_DEVICES + MAX_UNUSED_CONFIGS
    announce(catalog, [*board("known", 100), sensor("aaa")])
    assert set(catalog.devices) == there, "nothing new has room"
    parents = {device.parent_id for device in catalog.devices.values() if device.parent_id}
    assert parents <= catalog.devices.keys()
    announce(catalog, [Sent(each.topic, b"", True) for each in flood[:2600]])
    assert len(catalog.devices) == len(there) - 2600 + MAX_UNUSED_CONFIGS, "the stored parts take the free places"
    assert known < catalog.devices.keys() and "parts" not in catalog.refusals.limits


@pytest.mark.slow
def test_expected_devices_and_parts_keep_their_places() -> None:
    catalog, late = new_catalog(), board("late", 150)
    ids = {"mqtt:late", *(f"mqtt:late:late_{number}" for number in range(1, 150))}
    catalog.expect(dict.fromkeys(ids, "late"))
    announce(catalog, [each for number in range(26) for each in board(f"x{number:02}", 200)])
    assert len(catalog.devices) == MAX_BUILT_DEVICES - len(ids)
    announce(catalog, late)
    assert ids < catalog.devices.keys() and len(catalog.devices) == MAX_BUILT_DEVICES


def test_the_existing_entity_of_a_unique_id_is_used_and_the_other_reported() -> None:
    catalog, plug = new_catalog(), {"state_topic": "s", "device": {"ids": ["plug"]}, "unique_id": "plug"}
    announce(catalog, [config("switch/plug", **plug, command_topic="first")])
    announce(catalog, [config("switch/a", **plug, command_topic="second")])
    reason = "homeassistant/switch/plug/config has the same unique_id and takes precedence"
    assert [(each.device_id, each.reason) for each in catalog.refusals.by_key.values()] == [
        ("homeassistant/switch/a/config", reason)
    ]
    assert catalog.devices["mqtt:plug"].entities[0].config.text("command_topic") == "first"
    announce(catalog, [Sent("homeassistant/switch/plug/config", b"", True)])
    assert catalog.devices["mqtt:plug"].entities[0].config.text("command_topic") == "second"
    assert not catalog.refusals.by_key


@pytest.mark.parametrize("rogue_is_first", [True, False])
def test_an_expected_device_keeps_its_unique_id_after_a_restart(rogue_is_first: bool) -> None:
    catalog = new_catalog()
    catalog.expect({"mqtt:known": "known"})
    known = config("binary_sensor/z", state_topic="s", device={"ids": ["known"]}, unique_id="x")
    rogue = config("binary_sensor/a", state_topic="t", device={"ids": ["rogue"]}, unique_id="x")
    for each in (rogue, known) if rogue_is_first else (known, rogue):
        announce(catalog, [each])
    assert [*catalog.devices] == ["mqtt:known"]
    catalog.end_waiting()
    announce(catalog, [config("binary_sensor/other", state_topic="o", device={"ids": ["other"]}, unique_id="o")])
    assert [*catalog.devices] == ["mqtt:known", "mqtt:other"]


def test_an_alarm_that_loses_its_attribute_to_another_entity_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    catalog, smoke = new_catalog(), {"device_class": "smoke", "state_topic": "s", "device": {"ids": ["plug"]}}
    announce(catalog, [config("binary_sensor/z", **smoke, unique_id="z")])
    announce(catalog, [config("binary_sensor/zz", **smoke, unique_id="zz")])
    assert not caplog.messages
    announce(catalog, [config("binary_sensor/a", **smoke, unique_id="a")])
    sentence = "the sensor of the alarm smoke now has the attribute custom.mqtt.z; change your automations"
    assert caplog.messages == [f"mqtt:plug: {sentence}"]
