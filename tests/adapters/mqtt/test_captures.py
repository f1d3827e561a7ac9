"""Each capture becomes the devices in the table. Broken messages have no effect on other messages."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.adapters.mqtt.announcements.announced_devices import AnnouncedDevices
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed
from appliance.errors import LaresError
from appliance.home.commands import Command
from tests.adapters.mqtt.captures import Sent, capture, captures
from tests.adapters.mqtt.table import EXPECTED, NOW, expected_lines, new_catalog, take


def attributes(catalog: AnnouncedDevices, device_id: str) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for entity in catalog.devices[device_id].entities:
        shown |= entity.attributes
    return shown


def sent(topic: str, payload: Any, *, retain: bool = False) -> Sent:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return Sent(topic, text.encode(), retain)


def test_every_capture_becomes_the_devices_of_the_table() -> None:
    assert expected_lines() == EXPECTED.read_text().splitlines()


def test_events_of_two_buttons_contain_the_button() -> None:
    relay = capture("shelly-gen1/shsw-25-relay")
    presses = [
        sent(f"shellies/shellyswitch25-98CDAC1F3A41/input_event/{number}", {"event": "S"}) for number in (0, 1)
    ]
    happened = take(new_catalog(), (*relay.messages, *presses))
    assert [(name, data["entity"].rpartition("-")[2]) for _, name, data in happened] == [
        ("single", "0"),
        ("single", "1"),
    ]


def test_the_user_decides_whether_configuration_entities_are_shown() -> None:
    few, all_of_it = new_catalog(), new_catalog(includes_config_entities=True)
    for catalog in (few, all_of_it):
        take(catalog, capture("zigbee2mqtt/bmct-slz").messages + capture("zigbee2mqtt/bmct-slz").states)
    (device,) = few.devices
    assert "custom.mqtt.linkquality" not in attributes(few, device)
    assert attributes(all_of_it, device).keys() > attributes(few, device).keys()


def test_the_name_of_an_entity_is_the_label_of_its_attribute_if_they_differ() -> None:
    catalog, device = new_catalog(), {"identifiers": ["a"]}
    for object_id, name, device_class in (("t", "Outdoor temperature", "temperature"), ("h", "Humidity", "humidity"),
                                          ("x", "Wind chill", None), ("y", None, None)):  # fmt: skip
        unit = {"temperature": "°C", "humidity": "%"}.get(device_class or "")
        config = {"state_topic": object_id, "name": name, "device_class": device_class, "unit_of_measurement": unit}
        take(catalog, (sent(f"homeassistant/sensor/{object_id}/config", {**config, "device": device}),))
    assert catalog.devices["mqtt:a"].observation().vendor_specific["labels"] == {
        "temperature": "Outdoor temperature",
        "custom.mqtt.x": "Wind chill",
    }


def test_a_button_announces_its_presses() -> None:
    catalog, device = new_catalog(), {"identifiers": ["a"]}
    press = {"state_topic": "p", "event_types": ["single_press", "action_double"], "device": device}
    trigger = {"automation_type": "trigger", "topic": "q", "type": "button_long_press", "subtype": "left",
               "device": device}  # fmt: skip
    take(catalog, (sent("homeassistant/event/p/config", press),))
    take(catalog, (sent("homeassistant/device_automation/q/config", trigger),))
    assert catalog.devices["mqtt:a"].observation().vendor_specific["events"] == ["double", "long_left", "single"]
    take(catalog, (sent("homeassistant/event/r/config", {"state_topic": "r", "device": device}),))
    assert "events" not in catalog.devices["mqtt:a"].observation().vendor_specific


def test_a_thermostat_without_limits_uses_those_of_home_assistant() -> None:
    catalog = new_catalog()
    for name, config in (("c", {}), ("f", {"temperature_unit": "F"}), ("own", {"min_temp": 5, "max_temp": 30.5})):
        topics = {"temperature_command_topic": "{name}/set", "device": {"identifiers": [name]}}
        take(catalog, (sent(f"homeassistant/climate/{name}/config", {**topics, **config}),))
    bounds = {
        id_: (spec.schema()["min"], spec.schema()["max"])
        for id_, device in catalog.devices.items()
        for spec in device.specs
    }
    assert bounds == {"mqtt:c": (7, 35), "mqtt:f": (44.6, 95), "mqtt:own": (5, 30.5)}


@pytest.mark.slow
def test_one_changed_byte_in_four_messages_of_every_capture_is_harmless() -> None:
    chance = random.Random(18)
    for each in captures():
        messages = list(each.messages + each.states)
        for at in chance.sample(range(len(messages)), min(4, len(messages))):
            message = messages[at]
            payload = bytearray(message.payload or b"x")
            payload[chance.randrange(len(payload))] ^= 1 << chance.randrange(8)
            flipped = Sent(message.topic, bytes(payload), message.retain)
            take_all(new_catalog(), [*messages[:at], flipped, *messages[at + 1 :]])


def test_a_field_of_another_type_is_harmless() -> None:
    every = list(captures())
    odd: st.SearchStrategy[Any] = st.sampled_from(
        [None, True, 0, -1, 1e300, "", "x" * 300, [], {}, [[]], {"a": 1}, "{{", "+/#", "\0", 10**30]
    )

    @given(st.data())
    def check(data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(every))
        messages = list(chosen.messages + chosen.states)
        at = data.draw(st.sampled_from([at for at, each in enumerate(messages) if each.payload.startswith(b"{")]))
        raw = json.loads(messages[at].payload)
        inside = raw["device"] if isinstance(raw.get("device"), dict) and data.draw(st.booleans()) else raw
        for key in data.draw(st.lists(st.sampled_from(sorted(inside)), max_size=3)) if inside else ():
            inside[key] = data.draw(odd)
        payload = json.dumps(raw).replace("1e+300", "1e300").encode()
        messages[at] = Sent(messages[at].topic, payload, messages[at].retain)
        take_all(new_catalog(), messages)

    check()


def take_all(catalog: AnnouncedDevices, messages: list[Sent]) -> None:
    """Process the messages, and send all offered commands. No exception may be raised."""
    readable = []
    for each in messages:
        try:
            each.payload.decode()
            readable.append(each)
        except UnicodeDecodeError:
            catalog.store.take_config(each.topic, each.payload)
    take(catalog, tuple(readable))
    values = {
        "color_temperature": {"value": 3000, "unit": "kelvin"},
        "color_xy": {"x": 0.3, "y": 0.3},
        "color_hs": {"hue": 30, "saturation": 100},
        "color_rgb": {"r": 1, "g": 2, "b": 3},
        "color_hex": "#010203",
        "target_temperature": {"value": 20, "unit": "°C"},
    }
    for device in catalog.devices.values():
        for key, entity in device.handlers.items():
            offer = entity.offers[key]
            options = offer.schema.get("values") or [50]
            usual: Any = "x" if offer.schema.get("type") == "string" else options[0]
            for action in offer.actions:
                value = values.get(key, usual) if action == "set" else None
                try:
                    intent = entity.write(Command(capability=key, action=action, value=value), NOW)
                except (LaresError, TemplateFailed):
                    continue
                assert all("#" not in each.topic and "+" not in each.topic for each in intent.messages)
