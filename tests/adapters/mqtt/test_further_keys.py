"""Keys that few announcers use: what they make an entity show, and what they make of its commands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from appliance.adapters.mqtt.entities.entity import apply
from appliance.errors import Invalid
from appliance.home.commands import Command
from tests.adapters.mqtt.captures import Sent
from tests.adapters.mqtt.table import new_catalog, take
from tests.fakes.rows import each_row

JSON = {"schema": "json", "state_topic": "s", "command_topic": "c"}
TOPICS = {"state_topic": "s", "command_topic": "c"}
RGBWW = {**TOPICS, "rgbww_command_topic": "w", "rgbww_state_topic": "ws"}

SHOWN: list[tuple[str, dict[str, Any], dict[str, str], dict[str, Any]]] = [
    ("light", {**JSON, "supported_color_modes": ["rgbww"]},
     {"s": '{"color_mode":"rgbww","color":{"r":1,"g":2,"b":3,"c":255,"w":51}}'},
     {"color_rgb": {"r": 1, "g": 2, "b": 3}, "color_mode": "rgb", "custom.mqtt.cold_white": 100,
      "custom.mqtt.warm_white": 20}),
    ("light", {**JSON, "supported_color_modes": ["rgbw"]},
     {"s": '{"color_mode":"rgbw","color":{"r":1,"g":2,"b":3,"w":0}}'},
     {"color_rgb": {"r": 1, "g": 2, "b": 3}, "color_mode": "rgb", "custom.mqtt.white": 0}),
    ("light", {**JSON, "supported_color_modes": ["hs", "white"]}, {"s": '{"color_mode":"white","brightness":51}'},
     {"color_mode": "white", "brightness": 20}),
    ("light", {**JSON, "effect": False, "effect_list": ["a"]}, {"s": '{"effect":"a"}'}, {}),
    ("light", RGBWW, {"ws": "10,20,30,255,0"},
     {"color_rgb": {"r": 10, "g": 20, "b": 30}, "color_mode": "rgb", "custom.mqtt.cold_white": 100,
      "custom.mqtt.warm_white": 0}),
    ("lock", {**TOPICS, "payload_reset": "?"}, {"s": "?"}, {}),
    ("lock", TOPICS, {"s": "LOCKED"}, {"lock": "locked"}),
    ("humidifier", {**TOPICS, "target_humidity_state_topic": "h", "payload_reset_humidity": "?",
                    "mode_state_topic": "m", "payload_reset_mode": "!"}, {"h": "?", "m": "!"}, {}),
    ("humidifier", {**TOPICS, "target_humidity_state_topic": "h", "mode_state_topic": "m"}, {"h": "50", "m": "eco"},
     {"custom.mqtt.target_humidity": 50, "custom.mqtt.mode": "eco"}),
    ("water_heater", {"current_temperature_topic": "s", "value_template": "{{ value_json.t }}"}, {"s": '{"t":51}'},
     {"temperature": {"value": 51, "unit": "°C"}}),
    ("cover", {**TOPICS, "position_topic": "p", "tilt_status_topic": "t"}, {"p": '{"position":40,"tilt_position":7}'},
     {"cover_position": 40, "cover_tilt": 7}),
    ("vacuum", TOPICS, {"s": '{"state":null,"battery_level":7}'}, {"battery": 7}),
    ("update", TOPICS, {"s": '{"installed_version":"1","latest_version":"2","update_percentage":12.4}'},
     {"custom.mqtt.x": {"installed": "1", "latest": "2", "progress": 12}}),
    ("update", TOPICS, {"s": '{"installed_version":"2","latest_version":"2","in_progress":false}'},
     {"custom.mqtt.x": {"installed": "2", "latest": "2"}}),
    ("update", TOPICS, {"s": '{"installed_version":"1","in_progress":true}'},
     {"custom.mqtt.x": {"installed": "1", "progress": 0}}),
]  # fmt: skip
"""Component, keys, states by topic, and what is shown then."""

WRITTEN: list[tuple[str, dict[str, Any], dict[str, str], dict[str, Any], list[tuple[str, Any]]]] = [
    ("light", {**TOPICS, "white_command_topic": "w"}, {},
     {"capability": "color_mode", "action": "set", "value": "white"},
     [("w", "255"), ("c", "ON")]),
    ("light", {**TOPICS, "white_command_topic": "w", "white_scale": 100, "on_command_type": "first",
               "brightness_command_topic": "b", "brightness_state_topic": "bs"}, {"bs": "128"},
     {"capability": "color_mode", "action": "set", "value": "white"}, [("c", "ON"), ("w", "50")]),
    ("light", {**JSON, "supported_color_modes": ["hs", "white"], "white_scale": 99}, {},
     {"capability": "color_mode", "action": "set", "value": "white"}, [("c", {"state": "ON", "white": 99})]),
    ("light", {**JSON, "supported_color_modes": ["rgbww"]},
     {"s": '{"color_mode":"rgbww","color":{"r":1,"g":2,"b":3,"c":255,"w":51}}'},
     {"capability": "custom.mqtt.warm_white", "action": "set", "value": 100},
     [("c", {"state": "ON", "color": {"r": 1, "g": 2, "b": 3, "c": 255, "w": 255}})]),
    ("light", RGBWW, {"ws": "10,20,30,255,0"}, {"capability": "custom.mqtt.cold_white", "action": "set", "value": 20},
     [("w", "10,20,30,51,0"), ("c", "ON")]),
    ("light", {**RGBWW, "rgbww_command_template": "{{ cold_white }}/{{ warm_white }}/{{ red }}"}, {},
     {"capability": "color_rgb", "action": "set", "value": {"r": 7, "g": 8, "b": 9}}, [("w", "0/0/7"), ("c", "ON")]),
    ("light", {**TOPICS, "rgbw_command_topic": "w"}, {},
     {"capability": "custom.mqtt.white", "action": "set", "value": 100},
     [("w", "0,0,0,255"), ("c", "ON")]),
    ("light", {**JSON, "flash": True}, {}, {"capability": "effect", "action": "set", "value": "flash"},
     [("c", {"state": "ON", "flash": 2})]),
    ("light", {**JSON, "flash_time_long": 7}, {},
     {"capability": "custom.mqtt.flash", "action": "set", "value": "long"},
     [("c", {"state": "ON", "flash": 7})]),
    ("light", {"schema": "template", "command_topic": "c", "command_off_template": "off",
               "command_on_template": "on{% if flash is defined %} {{ flash }}{% endif %}"}, {},
     {"capability": "custom.mqtt.flash", "action": "set", "value": "long"}, [("c", "on long")]),
    ("light", {**JSON, "transition": False}, {}, {"capability": "power", "action": "on", "transition_secs": 3},
     [("c", {"state": "ON"})]),
    ("siren", TOPICS, {}, {"capability": "custom.mqtt.x", "action": "set", "value": False},
     [("c", {"state": "OFF"})]),
    ("siren", {**TOPICS, "command_template": "{{ value }}"}, {},
     {"capability": "custom.mqtt.x", "action": "set", "value": True}, [("c", "ON")]),
]  # fmt: skip
"""Component, keys, states by topic, a command, and the messages that it comes to; JSON as an object."""


def announced(component: str, keys: dict[str, Any], states: dict[str, str], said: Sequence[str] = ()) -> Any:
    """The device of one entity that has been sent these states; `said` are the reasons of what is no use of it."""
    catalog = new_catalog()
    config = json.dumps({**keys, "unique_id": "x"}).encode()
    sent = [Sent(topic, text.encode(), False) for topic, text in states.items()]
    take(catalog, (Sent(f"homeassistant/{component}/x/config", config, True), *sent))
    assert [each.reason for each in catalog.refused.values()] == list(said)
    return catalog.devices["mqtt:x"]


@pytest.mark.parametrize(("component", "keys", "states", "shown"), SHOWN, ids=range(len(SHOWN)))
def test_an_entity_shows(component: str, keys: dict[str, Any], states: dict[str, str], shown: dict[str, Any]) -> None:
    assert announced(component, keys, states).attributes == shown


@pytest.mark.parametrize(("component", "keys", "states", "command", "messages"), WRITTEN, ids=range(len(WRITTEN)))
def test_a_command_comes_to(
    component: str, keys: dict[str, Any], states: dict[str, str], command: dict[str, Any], messages: list[Any]
) -> None:
    device, parsed = announced(component, keys, states), Command.parse(command)
    entity, offer = device.offers[parsed.capability]
    assert parsed.action in offer.actions
    sent = [(each.topic, each.payload) for each in entity.write(parsed).messages]
    wanted = [isinstance(payload, dict) for _, payload in messages]
    assert [(topic, json.loads(text) if is_json else text)
            for (topic, text), is_json in zip(sent, wanted, strict=True)] == messages  # fmt: skip


@each_row("keys", [JSON, {**JSON, "flash": False, "flash_time_long": 3}, TOPICS])
def test_a_light_that_does_not_say_so_offers_no_flash_and_no_white(keys: dict[str, Any]) -> None:
    offers = announced("light", keys, {}).offers
    assert not {"custom.mqtt.flash", "effect", "color_mode", "custom.mqtt.white"} & offers.keys()


@each_row(("component", "value"), [("date", "23.11.2026"), ("time", "7"), ("datetime", "now")])
def test_what_is_no_moment_is_refused_with_an_example(component: str, value: str) -> None:
    device = announced(component, TOPICS, {})
    entity, _ = device.offers["custom.mqtt.x"]
    with pytest.raises(Invalid, match=f"is no {component} like"):
        entity.write(Command(capability="custom.mqtt.x", action="set", value=value))


def test_a_colour_that_is_assumed_ends_the_one_before() -> None:
    keys = {"command_topic": "c", "rgb_command_topic": "r", "color_temp_command_topic": "t"}
    entity, _ = announced("light", keys, {}).offers["color_rgb"]
    warm, red = {"color_temperature": {"value": 2700, "unit": "kelvin"}}, {"color_rgb": {"r": 255, "g": 0, "b": 0}}
    for shown, mode in ((warm, "color_temp"), (red, "rgb")):
        apply(entity, entity.assumed({"power": "on", **shown}))
        assert entity.attributes == {"power": "on", "color_mode": mode, **shown}


BOUNDS: list[tuple[str, dict[str, Any], str, dict[str, Any], list[str]]] = [
    ("number", {"min": 10, "max": 1, "step": 0}, "custom.mqtt.x", {"min": 1, "max": 100, "step": 1},
     ["min is above max"]),
    ("number", {"min": 5, "max": 5, "step": -1}, "custom.mqtt.x", {"min": 5, "max": 5, "step": 1}, []),
    ("text", {"min": 9, "max": 2}, "custom.mqtt.x", {"min_length": 0, "max_length": 255}, ["min is above max"]),
    ("climate", {"temperature_command_topic": "c", "min_temp": 30, "max_temp": 5, "temp_step": 0},
     "target_temperature", {"unit": "°C", "min": 7, "max": 35}, ["min_temp is above max_temp"]),
    ("humidifier", {"target_humidity_command_topic": "c", "min_humidity": 90, "max_humidity": 5},
     "custom.mqtt.target_humidity", {"unit": "%", "min": 0, "max": 100}, ["min_humidity is above max_humidity"]),
]  # fmt: skip
"""Component, keys, attribute, what it takes, and what is said of them."""


@each_row(("component", "keys", "attribute", "bounds", "problems"), BOUNDS)
def test_bounds_that_no_value_meets_are_those_by_default_and_said(
    component: str, keys: dict[str, Any], attribute: str, bounds: dict[str, Any], problems: list[str]
) -> None:
    _, offer = announced(component, {**TOPICS, **keys}, {}, problems).offers[attribute]
    assert {key: value for key, value in offer.schema.items() if key != "type"} == bounds


def test_an_option_that_is_not_announced_is_not_shown_and_said() -> None:
    keys = {"device_class": "enum", "options": ["a", "None"], **TOPICS}
    for words, shown, said in (("ab", {"custom.mqtt.x": "a"}, ["'b' is none of the announced options"]),
                               (["a", "None"], {"custom.mqtt.x": "None"}, []),
                               (["a", "unknown", ""], {}, [])):  # fmt: skip
        catalog = new_catalog()
        config = Sent("homeassistant/sensor/x/config", json.dumps({**keys, "unique_id": "x"}).encode(), True)
        take(catalog, (config, *(Sent("s", each.encode(), False) for each in words)))
        assert catalog.devices["mqtt:x"].attributes == shown
        assert [each.reason for each in catalog.refused.values()] == said


def test_a_tilt_that_is_optimistic_waits_for_nothing() -> None:
    for optimistic, shows in ((False, {"cover_tilt": 30}), (True, {})):
        keys = {"tilt_command_topic": "t", "tilt_status_topic": "ts", "tilt_optimistic": optimistic}
        entity, _ = announced("cover", keys, {}).offers["cover_tilt"]
        assert entity.write(Command(capability="cover_tilt", action="set", value=30)).shows == shows
