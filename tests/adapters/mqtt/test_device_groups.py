"""Announcements are grouped into devices with stable, unique ids."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from appliance.adapters.mqtt.announcements.announcement import Announcement, DeviceFacts, DiscoveryProtocol
from appliance.adapters.mqtt.announcements.device_ids import DeviceSlugs
from appliance.adapters.mqtt.announcements.grouping import group_announcements
from tests.adapters.mqtt.captures import Sent
from tests.adapters.mqtt.table import announce, config, message_loop, new_catalog, run_steps, take


def entity(number: int, *identifiers: str) -> Announcement:
    return Announcement(
        protocol=DiscoveryProtocol.HOME_ASSISTANT,
        key=f"s{number}",
        source=f"homeassistant/sensor/s{number}/config",
        component="sensor",
        object_id=f"s{number}",
        config={"unique_id": f"u{number}"},
        device=DeviceFacts(identifiers=identifiers),
        origin="",
    )


def groups(announced: Iterable[Announcement], slugs: DeviceSlugs | None = None) -> dict[str, list[Announcement]]:
    by_slug, _ = run_steps(group_announcements(announced, slugs or DeviceSlugs(), ()))
    return by_slug


def slugs_of(*identifiers: str, slugs: DeviceSlugs | None = None) -> list[str]:
    return list(groups([entity(number, each) for number, each in enumerate(identifiers)], slugs))


def digits(identifier: str) -> str:
    return hashlib.sha256(identifier.encode()).hexdigest()[:6]


def test_slugs_have_digits_if_they_would_be_ambiguous() -> None:
    table: Sequence[tuple[tuple[str, ...], list[str]]] = [
        (("0x00158D01",), ["0x00158d01"]),
        (("кухня", "гараж"), [f"______{digits('кухня')}", f"______{digits('гараж')}"]),
        (("Küche",), [f"k_che_{digits('Küche')}"]),
        (("٣",), [f"__{digits('٣')}"]),
        (("lamp – 1", "💡"), ["lamp___1", "_"]),
        (("a-b", "a_b", "a b"), ["a_b", f"a_b_{digits('a_b')}", f"a_b_{digits('a b')}"]),
    ]
    for identifiers, expected in table:
        assert slugs_of(*identifiers) == expected


def test_a_device_keeps_its_id_over_other_announcements_and_restarts() -> None:
    slugs = DeviceSlugs()
    first = f"a_b_{digits('a_b')}"
    assert slugs_of("a-b", "a_b", slugs=slugs) == ["a_b", first]
    assert slugs_of("a_b", "a-b", slugs=slugs) == [first, "a_b"]
    assert slugs_of("a_b", slugs=slugs) == [first]
    restarted = DeviceSlugs()
    restarted.reserve({"a_b": "a-b", first: "a_b"})
    assert slugs_of("a_b", "a-b", slugs=restarted) == [first, "a_b"]
    newcomer = DeviceSlugs()
    newcomer.reserve({"a_b": "a-b"})
    assert slugs_of("a b", "a-b", slugs=newcomer) == [f"a_b_{digits('a b')}", "a_b"]


def test_names_that_differ_only_in_replaced_characters_are_different_devices() -> None:
    def ids(*topics: str, known: Mapping[str, str] | None = None) -> dict[str, str]:
        loop = message_loop()
        loop.announced.expect({f"mqtt:{slug}": identifier for slug, identifier in (known or {}).items()})
        announce(loop, *(config(topic, state_topic=topic) for topic in topics))
        for device in loop.announced.devices.values():
            assert len({entity.announcement.own_id for entity in device.entities}) == 1
        return {device.id.removeprefix("mqtt:"): device.identifier for device in loop.announced.devices.values()}

    u, o = f"__{digits('ü')}", f"__{digits('ö')}"
    both = {u: "ü", o: "ö"}
    assert ids("sensor/ü", "sensor/ö") == ids("sensor/ö", "sensor/ü", known=both) == both
    assert ids("sensor/ü", known={"_": "_"}) == ids("sensor/ü", known={"_": "ü"}) == {"_": "ü"}
    upgraded = ids("sensor/ü", "sensor/ö", known={"_": "_"})
    assert upgraded in ({"_": "ü", o: "ö"}, {"_": "ö", u: "ü"})
    assert ids("sensor/ö", "sensor/ü", known=upgraded) == ids("sensor/ü", "sensor/ö", known=upgraded) == upgraded
    dotted = f"a_b_{digits('a.b')}"
    assert ids("sensor/a.b", "sensor/a_b") == {"a_b": "a_b", dotted: "a.b"}
    assert ids("sensor/a.b") == ids("sensor/a.b", known={"a_b": "a_b"}) == {"a_b": "a.b"}
    assert ids("sensor/a_b", "binary_sensor/a_b") == {"a_b": "a_b"}
    assert ids("sensor/ü", "binary_sensor/ü") == {u: "ü"}


@pytest.mark.slow
def test_ten_thousand_chained_identifiers_are_one_device_in_few_steps() -> None:
    for order in (1, -1):
        chain = [entity(number, f"i{number}", f"i{number + 1}") for number in range(10_000)][::order]
        assert [len(members) for members in groups(chain).values()] == [10_000]
        assert sum(1 for _ in group_announcements(chain, DeviceSlugs(), ())) < 4 * len(chain)


@pytest.mark.parametrize(
    ("component", "state", "device_class", "attribute"),
    [("vacuum", '{"battery_level": 61}', "battery", "battery"), ("binary_sensor", "ON", "presence", "presence")],
)
def test_the_more_specific_entity_provides_an_attribute(
    component: str, state: str, device_class: str, attribute: str
) -> None:
    other = {"battery": ("sensor", "42", 42), "presence": ("device_tracker", "away", False)}[attribute]
    shown = []
    for names in (("a", "b"), ("b", "a")):
        catalog, sent = new_catalog(), []
        kinds = ((component, {"device_class": device_class}), (other[0], {"device_class": device_class}))
        for name, (kind, keys), payload in zip(names, kinds, (state, other[1]), strict=True):
            config = {**keys, "state_topic": name, "command_topic": "c", "device": {"ids": ["d"]}}
            sent.append(Sent(f"homeassistant/{kind}/{name}/config", json.dumps(config).encode(), False))
            sent.append(Sent(name, payload.encode(), False))
        take(catalog, tuple(sent))
        shown.append(catalog.devices["mqtt:d"].attributes[attribute])
    assert shown == [other[2], other[2]]


ALIKE: list[tuple[str, dict[str, Any], dict[str, str], str, dict[str, dict[str, Any]]]] = [
    ("sensor/n{n}/x", {"state_topic": "s{n}"}, {"s{n}": "{n}"}, "",
     {"": {"custom.mqtt.x": "0", "custom.mqtt.x_sensor": "1", f"custom.mqtt.x_sensor_{digits('u2')}": "2"}}),
    ("number/n{n}/x", {"state_topic": "s{n}", "command_topic": "c{n}"}, {"s{n}": "{n}"},
     f"custom.mqtt.x_number_{digits('u2')}",
     {"": {"custom.mqtt.x": 0, "custom.mqtt.x_number": 1, f"custom.mqtt.x_number_{digits('u2')}": 2}}),
    ("switch/n{n}/x", {"state_topic": "s{n}", "command_topic": "c{n}"}, {"s{n}": "ON"}, "power",
     {"": {"power": "on"}, ":x": {"power": "on"}, f":x_{digits('u2')}": {"power": "on"}}),
    ("siren/x{n}", {"state_topic": "s{n}", "command_topic": "c{n}", "available_tones": ["t0", "t1", "t2"]},
     {"s{n}": '{"state":"ON","tone":"t{n}"}'}, "custom.mqtt.tone",
     {"": {"custom.mqtt.x0": True, "custom.mqtt.tone": "t0"},
      ":x1": {"custom.mqtt.x1": True, "custom.mqtt.tone": "t1"},
      ":x2": {"custom.mqtt.x2": True, "custom.mqtt.tone": "t2"}}),
    ("vacuum/x{n}", {"state_topic": "s{n}", "command_topic": "c{n}", "fan_speed_list": ["a"],
                      "set_fan_speed_topic": "f{n}"},
     {"s{n}": '{"state":"idle","fan_speed":"a{n}"}'}, "custom.mqtt.fan_speed",
     {"": {"custom.mqtt.x0": "idle", "custom.mqtt.fan_speed": "a0"},
      ":x1": {"custom.mqtt.x1": "idle", "custom.mqtt.fan_speed": "a1"},
      ":x2": {"custom.mqtt.x2": "idle", "custom.mqtt.fan_speed": "a2"}}),
    ("cover/x{n}", {"position_topic": "s{n}"}, {"s{n}": "{n}"}, "",
     {"": {"cover_position": 0}, ":x1": {"cover_position": 1}, ":x2": {"cover_position": 2}}),
    ("humidifier/x{n}", {"current_humidity_topic": "s{n}"}, {"s{n}": "4{n}"}, "",
     {at: {"humidity": {"value": value, "unit": "%"}} for at, value in (("", 40), (":x1", 41), (":x2", 42))}),
]  # fmt: skip
"""Each row: topic, keys, and states of each of three entities, a commanded attribute, and the attributes by device
id."""


@pytest.mark.parametrize(("topic", "keys", "states", "taken", "shown"), ALIKE, ids=[row[0][:6] for row in ALIKE])
def test_three_entities_of_one_kind_are_neither_merged_nor_lost(
    topic: str, keys: dict[str, Any], states: dict[str, str], taken: str, shown: dict[str, Any]
) -> None:
    sent = []
    for number in range(3):
        config = json.dumps({**keys, "unique_id": f"u{number}", "device": {"ids": ["d"]}})
        for at, payload in ((f"homeassistant/{topic}/config", config), *states.items()):
            filled = [each.replace("{n}", str(number)) for each in (at, payload)]
            sent.append(Sent(filled[0], filled[1].encode(), False))
    catalog = new_catalog()
    take(catalog, tuple(sent))
    assert {id_.removeprefix("mqtt:d"): device.attributes for id_, device in catalog.devices.items()} == shown
    if taken:
        entities = {id(device.handlers[taken]) for device in catalog.devices.values() if taken in device.handlers}
        assert len(entities) == sum(any(key == taken for key in each) for each in shown.values())
