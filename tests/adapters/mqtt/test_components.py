"""All components of Home Assistant's discovery: states, commands, and keys."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.mqtt.component_classes import COMPONENTS
from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.message_loop import MessageLoop
from appliance.adapters.mqtt.messages import Outgoing
from appliance.errors import BadAnswer, Invalid, Unreachable
from appliance.home.commands import Command
from tests.adapters.mqtt.broker import Broker
from tests.adapters.mqtt.captures import Sent, capture
from tests.adapters.mqtt.homes import BrokerHome
from tests.adapters.mqtt.table import NOW, Noted, announce, config, message_loop, new_catalog, receive, take
from tests.fakes.patience import until
from tests.fakes.rows import each_row

ALARM = {"code": "REMOTE_CODE", "command_template": "{{ action }}/{{ code }}"}
ON_OFF = {"state_topic": "{x}/state"}
Row = tuple[str, dict[str, Any], dict[str, Any], str, str, dict[str, str], dict[str, Any]]

ROWS: tuple[Row, ...] = (
    ("alarm_control_panel", {**ON_OFF, **ALARM}, {"value": "armed_away", "code": "12"}, "set", "ARM_AWAY/12",
     {"state": "arming"}, {"custom.mqtt.x": "arming"}),
    ("alarm_control_panel", ON_OFF, {"value": "disarmed"}, "set", "DISARM", {"state": "disarmed"},
     {"custom.mqtt.x": "disarmed"}),
    ("button", {}, {"action": "press"}, "set", "PRESS", {}, {}),
    ("climate", {"mode_command_topic": "{x}/set", "mode_state_topic": "{x}/state"},
     {"capability": "hvac_mode", "value": "heat"}, "set", "heat", {"state": "heat"}, {"hvac_mode": "heat"}),
    ("climate", {"power_command_topic": "{x}/set", "current_temperature_topic": "{x}/t"},
     {"capability": "power", "action": "on"}, "set", "ON", {"t": "20"}, {"temperature": {"value": 20, "unit": "°C"}}),
    ("climate", {"swing_horizontal_mode_command_topic": "{x}/set", "swing_horizontal_mode_state_topic": "{x}/state",
                 "swing_horizontal_modes": ["left", "right"]},
     {"capability": "custom.mqtt.swing_horizontal_mode", "value": "left"}, "set", "left", {"state": "left"},
     {"custom.mqtt.swing_horizontal_mode": "left"}),
    ("cover", {**ON_OFF, "payload_stop": "STOP"}, {"capability": "cover_position", "action": "open"}, "set", "OPEN",
     {"state": "opening"}, {}),
    ("cover", {"tilt_command_topic": "{x}/tilt", "payload_stop_tilt": "HALT"},
     {"capability": "cover_tilt", "action": "stop"}, "tilt", "HALT", {}, {}),
    ("date", ON_OFF, {"value": "2026-11-23"}, "set", "2026-11-23", {"state": "2026-11-23"},
     {"custom.mqtt.x": "2026-11-23"}),
    ("datetime", {**ON_OFF, "timezone": "Europe/Berlin"}, {"value": "2026-11-23T08:00:00Z"}, "set",
     "2026-11-23T08:00:00Z", {"state": "2026-11-23T09:00:00"}, {"custom.mqtt.x": "2026-11-23T08:00:00+00:00"}),
    ("fan", {"oscillation_command_topic": "{x}/o", "oscillation_state_topic": "{x}/os", **ON_OFF},
     {"capability": "custom.mqtt.oscillation", "value": True}, "o", "oscillate_on", {"os": "oscillate_on"},
     {"custom.mqtt.oscillation": True}),
    ("fan", {"direction_command_topic": "{x}/d", "direction_state_topic": "{x}/ds", **ON_OFF},
     {"capability": "custom.mqtt.direction", "value": "reverse"}, "d", "reverse", {"ds": "reverse"},
     {"custom.mqtt.direction": "reverse"}),
    ("humidifier", {"target_humidity_command_topic": "{x}/h", "target_humidity_state_topic": "{x}/hs", **ON_OFF},
     {"capability": "custom.mqtt.target_humidity", "value": 55}, "h", "55", {"hs": "55"},
     {"custom.mqtt.target_humidity": 55}),
    ("humidifier", {"target_humidity_command_topic": "{x}/h", **ON_OFF}, {"capability": "power", "action": "on"},
     "set", "ON", {"state": "ON"}, {"power": "on"}),
    ("infrared", {}, {"value": "C/MgAQ=="}, "set", "C/MgAQ==", {}, {}),
    ("lawn_mower", {"activity_state_topic": "{x}/state", "dock_command_topic": "{x}/dock"}, {"value": "dock"},
     "dock", "dock", {"state": "returning"}, {"custom.mqtt.x": "returning"}),
    ("light", ON_OFF, {"capability": "power", "action": "on"}, "set", "ON", {"state": "ON"}, {"power": "on"}),
    ("lock", {**ON_OFF, "code_format": "^[0-9]+$", "command_template": "{{ value }} {{ code }}"},
     {"capability": "lock", "action": "lock", "code": "7"}, "set", "LOCK 7", {"state": "LOCKED"}, {"lock": "locked"}),
    ("lock", {**ON_OFF, "payload_open": "LATCH"}, {"action": "open"}, "set", "LATCH", {}, {}),
    ("notify", {}, {"value": "Dinner"}, "set", "Dinner", {}, {}),
    ("light", {**ON_OFF, "brightness_command_topic": "{x}/b", "on_command_type": "brightness"},
     {"capability": "brightness", "value": 100}, "b", "255", {"state": "ON"}, {"power": "on", "brightness": 100}),
    ("light", {"brightness_command_topic": "{x}/b", "brightness_state_topic": "{x}/bs"},
     {"capability": "power", "action": "on"}, "set", "ON", {}, {"power": "on"}),
    ("fan", {"percentage_command_topic": "{x}/p", "percentage_state_topic": "{x}/ps"},
     {"capability": "power", "action": "on"}, "set", "ON", {}, {"power": "on"}),
    ("humidifier", {"target_humidity_command_topic": "{x}/h", "target_humidity_state_topic": "{x}/hs"},
     {"capability": "power", "action": "on"}, "set", "ON", {}, {"power": "on"}),
    ("cover", {"tilt_command_topic": "{x}/t", "tilt_status_topic": "{x}/ts"},
     {"capability": "cover_position", "action": "open"}, "set", "OPEN", {}, {"cover_position": 100}),
    ("number", {**ON_OFF, "min": 0, "max": 10}, {"value": 4}, "set", "4", {"state": "4"}, {"custom.mqtt.x": 4}),
    ("scene", {"payload_on": "GO"}, {"action": "press"}, "set", "GO", {}, {}),
    ("select", {**ON_OFF, "options": ["None", "a"]}, {"value": "None"}, "set", "None", {"state": "None"},
     {"custom.mqtt.x": "None"}),
    ("siren", {**ON_OFF, "available_tones": ["bell"]}, {"capability": "custom.mqtt.tone", "value": "bell"}, "set",
     '{"state":"ON","tone":"bell"}', {"state": '{"state":"ON","tone":"bell"}'},
     {"custom.mqtt.x": True, "custom.mqtt.tone": "bell"}),
    ("switch", ON_OFF, {"capability": "power", "action": "on"}, "set", "ON", {"state": "ON"}, {"power": "on"}),
    ("text", ON_OFF, {"value": "hello"}, "set", "hello", {"state": "hello"}, {"custom.mqtt.x": "hello"}),
    ("time", ON_OFF, {"value": "07:30"}, "set", "07:30", {"state": "07:30:00"}, {"custom.mqtt.x": "07:30:00"}),
    ("update", {**ON_OFF, "payload_install": "go"}, {"action": "install"}, "set", "go", {}, {}),
    ("vacuum", {**ON_OFF}, {"value": "start"}, "set", "start", {"state": '{"state":"cleaning","battery_level":61}'},
     {"custom.mqtt.x": "cleaning", "battery": 61}),
    ("vacuum", {**ON_OFF, "set_fan_speed_topic": "{x}/fan", "fan_speed_list": ["min", "max"]},
     {"capability": "custom.mqtt.fan_speed", "value": "max"}, "fan", "max", {"state": '{"fan_speed":"max"}'},
     {"custom.mqtt.fan_speed": "max"}),
    ("valve", {**ON_OFF, "reports_position": True}, {"value": 40}, "set", "40",
     {"state": '{"state":"opening","position":40}'}, {"custom.mqtt.x": 40}),
    ("valve", {**ON_OFF, "payload_stop": "STOP"}, {"action": "stop"}, "set", "STOP", {}, {}),
    ("water_heater", {"temperature_command_topic": "{x}/t", "temperature_state_topic": "{x}/ts"},
     {"capability": "target_temperature", "value": {"value": 55, "unit": "°C"}}, "t", "55", {"ts": "55"},
     {"target_temperature": {"value": 55, "unit": "°C"}}),
    ("water_heater", {"mode_command_topic": "{x}/m", "mode_state_topic": "{x}/ms"},
     {"capability": "custom.mqtt.mode", "value": "eco"}, "m", "eco", {"ms": "eco"}, {"custom.mqtt.mode": "eco"}),
)  # fmt: skip
"""Each row: the component, its keys, a command, topic and payload of the expected message, the responses by topic,
and the attributes after these responses."""

STATE = {"state_topic": "s"}
TOPICS = {**STATE, "command_topic": "c"}
JSON = {"schema": "json", **TOPICS}
RGBWW = {**TOPICS, "rgbww_command_topic": "w", "rgbww_state_topic": "ws"}

SHOWN: list[tuple[str, dict[str, Any], dict[str, str], dict[str, Any]]] = [
    ("binary_sensor", {**STATE, "device_class": "presence"}, {"s": "ON"},
     {"occupancy": "occupied", "presence": True}),
    ("device_tracker", STATE, {"s": "home"}, {"presence": True}),
    ("device_tracker", STATE, {"s": "not_home"}, {"presence": False}),
    ("device_tracker", STATE, {"s": "Work"}, {"presence": False, "custom.mqtt.zone": "Work"}),
    ("sensor", STATE, {"s": "unknown"}, {"custom.mqtt.x": "unknown"}),
    ("sensor", STATE, {"s": "None"}, {"custom.mqtt.x": "None"}),
    ("sensor", {**STATE, "options": ["none", "inf"]}, {"s": "inf"}, {"custom.mqtt.x": "inf"}),
    ("sensor", {**STATE, "unit_of_measurement": "W"}, {"s": "unknown"}, {}),
    ("text", TOPICS, {"s": "None"}, {"custom.mqtt.x": "None"}),
    ("infrared", {**TOPICS, "schema": "receiver"}, {"s": "[1,2]"}, {"custom.mqtt.x": "[1,2]"}),
    ("camera", {"topic": "s", "image_encoding": "b64"}, {"s": "iVBORw0KGgoAAAAN"}, {"custom.mqtt.x": "image/png"}),
    ("image", {"image_topic": "s"}, {"s": "GIF89a"}, {"custom.mqtt.x": "image/gif"}),
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
"""Each row: the component, its keys, the states by topic, and the resulting attributes."""

MOMENTS: tuple[tuple[str, dict[str, Any], str, str], ...] = (
    ("device_automation", {"automation_type": "trigger", "topic": "s", "type": "button_short_press",
                           "subtype": "button_1", "payload": "go"}, "go", "single_1"),
    ("event", {**STATE, "event_types": ["action_double"]}, '{"event_type":"action_double"}', "double"),
    ("tag", {"topic": "s"}, "04AB", "tag"),
)  # fmt: skip
"""Each row: the component of an event, its keys, the message, and the event's name."""


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
"""Each row: the component, its keys, the states by topic, a command, and the expected messages. Expected JSON
messages are given as objects."""

HANDS_ON = (
    ("zigbee2mqtt/qbkg12lm", "mqtt:zigbee2mqtt_0x00158d000000a10a:switch_right", "power", "on", None,
     "zigbee2mqtt/qbkg12lm/right/set", "ON", ("zigbee2mqtt/qbkg12lm", '{"state_right":"ON","state_left":"OFF"}')),
    ("zigbee2mqtt/e1757", "mqtt:zigbee2mqtt_0x00158d000000a11d", "cover_position", "set", 30,
     "zigbee2mqtt/Haus/EG E1757/set", '{ "position": 30 }', ("zigbee2mqtt/Haus/EG E1757", '{"position":28}')),
    ("zigbee2mqtt/e2007", "mqtt:zigbee2mqtt_0x00158d000000a12b", "custom.mqtt.percentage", "set", 50,
     "zigbee2mqtt/e2007/set/fan_mode", "5", ("zigbee2mqtt/e2007", '{"fan_mode":"5","fan_state":"ON"}')),
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
"""Each row: a capture, a device, a command, the message that the device expects, and the device's response."""


def announced(
    loop: MessageLoop,
    component: str,
    keys: Mapping[str, Any],
    states: Mapping[str, str],
    reasons: Sequence[str] = (),
) -> MqttDevice:
    """Announce one entity, receive these states, and return its device. `reasons` lists the expected refusals."""
    announce(loop, config(f"{component}/x", **keys, unique_id="x"))
    for topic, text in states.items():
        receive(loop, topic, text.encode())
    assert [each.reason for each in loop.announced.refusals.by_key.values()] == list(reasons)
    return loop.announced.devices["mqtt:x"]


async def commanded(
    loop: MessageLoop,
    device_id: str,
    command: Mapping[str, Any],
    answers: Mapping[str, str],
    *,
    waits: bool = False,
) -> list[Outgoing]:
    """Return the messages of a command. If `waits` is true, the command must not be complete before these responses
    arrive."""
    connection: Any = Noted()
    work = asyncio.ensure_future(loop.processor.commands.run(connection, device_id, Command.parse(dict(command))))
    await until(lambda: bool(connection.sent))
    for topic, text in answers.items():
        assert not waits or not work.done()
        receive(loop, topic, text.encode())
    await asyncio.wait_for(work, 5)
    sent: list[Outgoing] = connection.sent
    return sent


def test_every_component_is_in_a_table() -> None:
    assert {row[0] for row in (*ROWS, *SHOWN, *MOMENTS)} == set(COMPONENTS)


def test_the_page_has_a_row_for_every_component() -> None:
    page = (Path(__file__).parents[3] / "docs" / "mqtt.md").read_text()
    table = page.partition("## Every component")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(COMPONENTS)


@pytest.mark.parametrize("row", ROWS, ids=[f"{number} {row[0]}" for number, row in enumerate(ROWS)])
async def test_a_component_sends_its_command_and_shows_the_answer(row: Row) -> None:
    loop, (component, keys, command, topic, payload, answers, shown) = message_loop(), row
    full = json.loads(json.dumps({"command_topic": "{x}/set", **keys}).replace("{x}", "home"))
    device = announced(loop, component, full, {})
    given = {"capability": "custom.mqtt.x", "action": "set", **command}
    [sent, *_] = await commanded(loop, "mqtt:x", given, {f"home/{last}": text for last, text in answers.items()})
    assert (sent.topic, sent.payload) == (f"home/{topic}", payload)
    assert shown.items() <= device.attributes.items()


@pytest.mark.parametrize("row", HANDS_ON, ids=[f"{row[0]} {row[2]}" for row in HANDS_ON])
async def test_a_command_has_the_form_of_the_announcement_and_is_confirmed_by_the_state(row: tuple[Any, ...]) -> None:
    loop, (name, device_id, capability, action, value, topic, payload, answer) = message_loop(), row
    announce(loop, *(each for each in capture(name).messages if loop.announced.store.is_config(each.topic)))
    command = {"capability": capability, "action": action, "value": value}
    sent = await commanded(loop, device_id, command, {} if answer is None else dict([answer]), waits=True)
    assert (topic, payload) in [(each.topic, each.payload) for each in sent]


@each_row(("component", "keys", "states", "shown"), SHOWN)
def test_an_entity_shows(component: str, keys: dict[str, Any], states: dict[str, str],
                         shown: dict[str, Any]) -> None:  # fmt: skip
    assert announced(message_loop(), component, keys, states).attributes == shown


@each_row(("component", "keys", "payload", "event"), MOMENTS)
def test_an_event_has_one_name(component: str, keys: dict[str, Any], payload: str, event: str) -> None:
    sent = config(f"{component}/x", **keys, unique_id="x"), Sent("s", payload.encode(), False)
    assert [(device, name) for device, name, _ in take(new_catalog(), sent)] == [("mqtt:x", event)]


@each_row(("component", "keys", "states", "command", "messages"), WRITTEN)
def test_a_command_becomes(component: str, keys: dict[str, Any], states: dict[str, str],
                            command: dict[str, Any], messages: list[Any]) -> None:  # fmt: skip
    device, parsed = announced(message_loop(), component, keys, states), Command.parse(command)
    entity = device.handlers[parsed.capability]
    assert parsed.action in entity.offers[parsed.capability].actions
    sent = [(each.topic, each.payload) for each in entity.write(parsed, NOW).messages]
    required = [isinstance(payload, dict) for _, payload in messages]
    assert [(topic, json.loads(text) if is_json else text)
            for (topic, text), is_json in zip(sent, required, strict=True)] == messages  # fmt: skip


@each_row(
    ("component", "keys", "states", "sent"),
    [
        ("switch", ON_OFF, {"state": "ON"}, "OFF"),
        ("switch", ON_OFF, {"state": "None"}, None),
        ("switch", ON_OFF, {}, None),
        ("switch", {}, {}, "ON"),
        ("switch", {**ON_OFF, "optimistic": True}, {}, "ON"),
        ("fan", ON_OFF, {}, None),
        ("light", ON_OFF, {}, None),
        ("light", {}, {}, "ON"),
        ("humidifier", {"target_humidity_command_topic": "h", **ON_OFF}, {}, None),
    ],
)
def test_a_toggle_needs_a_known_power_unless_no_message_shows_it(
    component: str, keys: dict[str, Any], states: dict[str, str], sent: str | None
) -> None:
    shown = {key: each.format(x="x") if isinstance(each, str) else each for key, each in keys.items()}
    device = announced(
        message_loop(), component, {"command_topic": "c", **shown}, {f"x/{k}": v for k, v in states.items()}
    )
    entity = device.handlers["power"]
    command = Command(capability="power", action="toggle")
    if sent is None:
        with pytest.raises(
            BadAnswer, match="does not report whether it is on; instead of `toggle`, send `on` or `off`"
        ):
            entity.write(command, NOW)
    else:
        assert [each.payload for each in entity.write(command, NOW).messages] == [sent]


@each_row(
    ("keys", "value", "sent"),
    [
        ({}, "Kitchen, 2", '["1", "2"]'),
        ({}, "kitchen", '["1"]'),
        ({}, "3", None),
        ({}, " , ", None),
        ({"clean_segments_command_template": "{{ value | join(';') }}"}, "2,1", "2;1"),
    ],
)
def test_a_vacuum_cleans_segments_by_name_or_id(keys: dict[str, Any], value: str, sent: str | None) -> None:
    state = '{"state":"docked","segments":{"1":"Kitchen","2":"Living room"}}'
    keys = {**TOPICS, "clean_segments_command_topic": "c/segments", **keys}
    device = announced(message_loop(), "vacuum", keys, {"s": state})
    assert device.attributes["custom.mqtt.segments"] == {"1": "Kitchen", "2": "Living room"}
    entity = device.handlers["custom.mqtt.clean_segments"]
    command = Command(capability="custom.mqtt.clean_segments", action="set", value=value)
    if sent is None:
        with pytest.raises(Invalid, match=r"one or more of 1 \(Kitchen\), 2 \(Living room\)"):
            entity.write(command, NOW)
    else:
        assert [(each.topic, each.payload) for each in entity.write(command, NOW).messages] == [("c/segments", sent)]


@each_row("keys", [JSON, {**JSON, "flash": False, "flash_time_long": 3}, TOPICS])
def test_a_light_offers_flash_and_white_only_if_announced(keys: dict[str, Any]) -> None:
    offers = announced(message_loop(), "light", keys, {}).handlers
    assert not {"custom.mqtt.flash", "effect", "color_mode", "custom.mqtt.white"} & offers.keys()


@each_row(("component", "value"), [("date", "23.11.2026"), ("time", "7"), ("datetime", "now")])
def test_a_malformed_date_or_time_is_refused_with_an_example(component: str, value: str) -> None:
    device = announced(message_loop(), component, TOPICS, {})
    entity = device.handlers["custom.mqtt.x"]
    with pytest.raises(Invalid, match=f"is not a {component} like"):
        entity.write(Command(capability="custom.mqtt.x", action="set", value=value), NOW)


def test_an_assumed_colour_replaces_the_previous_one() -> None:
    keys = {"command_topic": "c", "rgb_command_topic": "r", "color_temp_command_topic": "t"}
    entity = announced(message_loop(), "light", keys, {}).handlers["color_rgb"]
    warm, red = {"color_temperature": {"value": 2700, "unit": "kelvin"}}, {"color_rgb": {"r": 255, "g": 0, "b": 0}}
    for shown, mode in ((warm, "color_temp"), (red, "rgb")):
        assumed = entity.assumed({"power": "on", **shown})
        entity.apply(assumed, entity.changed_by(assumed))
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
"""Each row: the component, its keys, an attribute, its bounds, and the reported problems."""


@each_row(("component", "keys", "attribute", "bounds", "problems"), BOUNDS)
def test_impossible_bounds_are_reported_and_replaced_by_the_default(
    component: str, keys: dict[str, Any], attribute: str, bounds: dict[str, Any], problems: list[str]
) -> None:
    entity = announced(message_loop(), component, {**TOPICS, **keys}, {}, problems).handlers[attribute]
    assert {key: value for key, value in entity.offers[attribute].schema.items() if key != "type"} == bounds


def test_an_unknown_option_is_reported_and_not_shown() -> None:
    keys = {"device_class": "enum", "options": ["a", "None"], **TOPICS}
    for words, shown, reasons in (("ab", {}, ["'b' is not one of 'a'; the value is unknown now"]),
                               (["a", "None"], {"custom.mqtt.x": "None"}, []),
                               (["a", "unknown", ""], {}, [])):  # fmt: skip
        catalog = new_catalog()
        take(
            catalog, (config("sensor/x", **keys, unique_id="x"), *(Sent("s", each.encode(), False) for each in words))
        )
        assert catalog.devices["mqtt:x"].attributes == shown
        assert [each.reason for each in catalog.refusals.by_key.values()] == reasons


def test_a_tilt_that_is_optimistic_waits_for_nothing() -> None:
    for optimistic, shows in ((False, {"cover_tilt": 30}), (True, {})):
        keys = {"tilt_command_topic": "t", "tilt_status_topic": "ts", "tilt_optimistic": optimistic}
        entity = announced(message_loop(), "cover", keys, {}).handlers["cover_tilt"]
        assert entity.write(Command(capability="cover_tilt", action="set", value=30), NOW).shows == shows


async def test_a_message_is_sent_to_all_devices_that_show_messages_or_to_one(broker: Broker) -> None:
    async with broker.client() as client, BrokerHome(broker) as home:
        with pytest.raises(Unreachable, match="the message was not sent"):
            await home.adapter.operations["notify"]({"message": "too early"})
        await until(
            lambda: home.adapter.message_loop is not None and home.adapter.message_loop.connection is not None
        )
        with pytest.raises(Invalid, match="no device of this broker can display messages"):
            await home.adapter.operations["notify"]({"message": "to nobody"})
        for number, keys in enumerate(({}, {"command_template": '{"text": {{ value | tojson }}}'}, {})):
            component, topic = "text" if number == 2 else "notify", f"home/d{number}/set"
            more: dict[str, Any] = {"name": None, "device": {"identifiers": [f"d{number}"]}, "command_topic": topic}
            sent = config(f"{component}/d{number}", **keys, **more)
            await client.publish(sent.topic, sent.payload, retain=True)
        await until(lambda: len(home.registry.list_devices()) == 3)
        await client.subscribe("home/+/set", qos=1)
        notify, messages, came = home.adapter.operations["notify"], aiter(client.messages), []
        fields = {"fields": {"x": 1}}
        assert await notify({"message": "Dinner", **fields}) == {"status": "sent", "devices": ["mqtt:d0", "mqtt:d1"]}
        one = {"message": 'The "door"', "title": "Hall", "device_id": "mqtt:d1"}
        assert await notify(one) == {"status": "sent", "devices": ["mqtt:d1"]}
        for _ in range(3):
            message = await asyncio.wait_for(anext(messages), 20)
            came.append((message.topic.value, bytes(message.payload).decode()))
        assert came == [("home/d0/set", "Dinner"), ("home/d1/set", '{"text": "Dinner"}'),
                        ("home/d1/set", '{"text": "Hall: The \\"door\\""}')]  # fmt: skip
        for wrong, sentence in (
            (
                {"message": "x", "device_id": "mqtt:d2"},
                "device_id must be the id of a device that can display messages",
            ),
            ({"message": "x", "device_id": 5}, "that can display messages, not 5"),
            ({"message": " "}, "needs a non-empty message"),
            ({"message": "x" * 4097}, "4096 characters"),
        ):
            with pytest.raises(Invalid, match=sentence):
                await notify(wrong)
