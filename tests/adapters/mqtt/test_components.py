"""Every component of Home Assistant's discovery is commanded against a broker, by devices that answer."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.mqtt.entities.table import COMPONENTS
from appliance.errors import Invalid, Unreachable
from tests.adapters.mqtt.broker import Broker
from tests.adapters.mqtt.homes import BrokerHome, until

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
"""Component, keys, command, topic and payload of the message that comes, the answers by topic, what is shown then."""

SHOWN: tuple[tuple[str, dict[str, Any], str, dict[str, Any]], ...] = (
    ("binary_sensor", {"device_class": "presence"}, "ON", {"occupancy": "occupied", "presence": True}),
    ("device_tracker", {}, "home", {"presence": True}),
    ("device_tracker", {}, "not_home", {"presence": False}),
    ("device_tracker", {}, "Work", {"presence": False, "custom.mqtt.zone": "Work"}),
    ("sensor", {}, "unknown", {"custom.mqtt.x": "unknown"}),
    ("sensor", {}, "None", {"custom.mqtt.x": "None"}),
    ("sensor", {"options": ["none", "inf"]}, "inf", {"custom.mqtt.x": "inf"}),
    ("sensor", {"device_class": "enum", "options": ["a b"]}, "a b", {"custom.mqtt.x": "a b"}),
    ("sensor", {"unit_of_measurement": "W"}, "unknown", {}),
    ("text", {}, "None", {"custom.mqtt.x": "None"}),
    ("infrared", {"schema": "receiver"}, "[1,2]", {"custom.mqtt.x": "[1,2]"}),
    ("camera", {"topic": "{x}/state", "image_encoding": "b64"}, "iVBORw0KGgoAAAAN", {"custom.mqtt.x": "image/png"}),
    ("image", {"image_topic": "{x}/state"}, "GIF89a", {"custom.mqtt.x": "image/gif"}),
)
"""Component that only shows, keys, a state, and what is shown then."""

MOMENTS: tuple[tuple[str, dict[str, Any], str, str], ...] = (
    ("device_automation", {"automation_type": "trigger", "topic": "{x}/state", "type": "button_short_press",
                           "subtype": "button_1", "payload": "go"}, "go", "single_1"),
    ("event", {"event_types": ["action_double"]}, '{"event_type":"action_double"}', "double"),
    ("tag", {"topic": "{x}/state"}, "04AB", "tag"),
)  # fmt: skip
"""Component of which something happens, keys, the message, and the event's name."""


def _config(number: int, keys: dict[str, Any]) -> bytes:
    full = {"command_topic": "{x}/set", **keys, "name": None, "device": {"identifiers": [f"d{number}"]}}
    return json.dumps(full).replace("{x}", f"home/d{number}").encode()


def test_every_component_is_commanded_shown_or_happens_here() -> None:
    assert {row[0] for row in (*ROWS, *SHOWN, *MOMENTS)} == set(COMPONENTS)


def test_the_page_has_a_row_for_every_component() -> None:
    page = (Path(__file__).parents[3] / "docs" / "mqtt.md").read_text()
    table = page.partition("## Every component")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(COMPONENTS)


async def test_every_component_takes_its_commands_and_shows_the_answer(broker: Broker) -> None:
    async with broker.client() as client, BrokerHome(broker) as home:
        for number, (component, keys, *_) in enumerate(ROWS):
            await client.publish(f"homeassistant/{component}/d{number}/x/config", _config(number, keys), retain=True)
        await until(lambda: len(home.registry.list_devices()) == len(ROWS))
        assert not home.adapter.live.catalog.refused
        await client.subscribe("home/+/+", qos=1)
        messages = aiter(client.messages)
        for number, (component, _, command, topic, payload, answers, shown) in enumerate(ROWS):
            given = {"capability": "custom.mqtt.x", "action": "set", **command}
            work = asyncio.create_task(home.send(f"mqtt:d{number}", given))
            async with asyncio.timeout(20):
                message = await anext(messages)
            assert (message.topic.value, message.payload.decode()) == (f"home/d{number}/{topic}", payload), component
            for answer, state in answers.items():
                await client.publish(f"home/d{number}/{answer}", state, qos=1)
                async with asyncio.timeout(20):
                    assert (await anext(messages)).topic.value == f"home/d{number}/{answer}", component
            await work
            await until(lambda: shown.items() <= home.attributes(f"mqtt:d{number}").items(),  # noqa: B023
                        lambda: f"{component} shows {home.attributes(f'mqtt:d{number}')}")  # noqa: B023  # fmt: skip


async def test_a_message_is_shown_at_the_devices_that_show_messages_or_at_one(broker: Broker) -> None:
    async with broker.client() as client, BrokerHome(broker) as home:
        with pytest.raises(Unreachable, match="the message was not sent"):
            await home.adapter.operations["notify"]({"message": "too early"})
        await until(lambda: home.adapter.connection is not None)
        with pytest.raises(Invalid, match="no device that is announced here shows messages"):
            await home.adapter.operations["notify"]({"message": "to nobody"})
        for number, keys in enumerate(({}, {"command_template": '{"text": {{ value | tojson }}}'}, {})):
            component = "text" if number == 2 else "notify"
            await client.publish(f"homeassistant/{component}/d{number}/x/config", _config(number, keys), retain=True)
        await until(lambda: len(home.registry.list_devices()) == 3)
        await client.subscribe("home/+/set", qos=1)
        tell, messages, came = home.adapter.operations["notify"], aiter(client.messages), []
        fields = {"fields": {"x": 1}}
        assert await tell({"message": "Dinner", **fields}) == {"status": "sent", "devices": ["mqtt:d0", "mqtt:d1"]}
        one = {"message": 'The "door"', "title": "Hall", "device_id": "mqtt:d1"}
        assert await tell(one) == {"status": "sent", "devices": ["mqtt:d1"]}
        for _ in range(3):
            message = await asyncio.wait_for(anext(messages), 20)
            came.append((message.topic.value, bytes(message.payload).decode()))
        assert came == [("home/d0/set", "Dinner"), ("home/d1/set", '{"text": "Dinner"}'),
                        ("home/d1/set", '{"text": "Hall: The \\"door\\""}')]  # fmt: skip
        for wrong, sentence in (
            ({"message": "x", "device_id": "mqtt:d2"}, "device_id must be the id of a device that shows messages"),
            ({"message": "x", "device_id": 5}, "that shows messages, not 5"),
            ({"message": " "}, "needs a message"),
            ({"message": "x" * 4097}, "4096 characters"),
        ):
            with pytest.raises(Invalid, match=sentence):
                await tell(wrong)


async def test_what_only_shows_or_happens_does_so_by_its_own_words(broker: Broker) -> None:
    async with broker.client() as client, BrokerHome(broker) as home:
        rows = [(component, {"state_topic": "{x}/state", **keys}) for component, keys, *_ in (*SHOWN, *MOMENTS)]
        for number, (component, keys) in enumerate(rows):
            await client.publish(f"homeassistant/{component}/d{number}/x/config", _config(number, keys), retain=True)
        await until(lambda: len(home.registry.list_devices()) == len(rows))
        for number, each in enumerate((*SHOWN, *MOMENTS)):
            await client.publish(f"home/d{number}/state", each[2], qos=1)
        pictures = [f"mqtt:d{number}" for number, each in enumerate(SHOWN) if each[0] in ("camera", "image")]
        await until(lambda: len(home.happened()) == len(MOMENTS) + len(pictures))
        for number, (component, _, _, shown) in enumerate(SHOWN):
            await until(lambda: shown.items() <= home.attributes(f"mqtt:d{number}").items(),  # noqa: B023
                        lambda: f"{component} shows {home.attributes(f'mqtt:d{number}')}")  # noqa: B023  # fmt: skip
        wanted = [(f"mqtt:d{number}", each[3]) for number, each in enumerate(MOMENTS, len(SHOWN))]
        assert sorted(home.happened()) == [*((each, "picture") for each in pictures), *wanted]
