"""One device of each MQTT component, as announced on a broker, with its states."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import aiomqtt

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture of one pixel, in base64."""

STATE = {"state_topic": "s"}

ANNOUNCED: Mapping[str, tuple[dict[str, Any], dict[str, str]]] = {
    "alarm_control_panel": ({**STATE, "code": "REMOTE_CODE", "command_template": "{{ action }}/{{ code }}"},
                            {"s": "armed_home"}),
    "binary_sensor": ({**STATE, "device_class": "window"}, {"s": "ON"}),
    "button": ({}, {}),
    "camera": ({"topic": "s", "image_encoding": "b64"}, {"s": PNG}),
    "climate": ({"modes": ["off", "heat", "cool"], "mode_command_topic": "m", "mode_state_topic": "ms",
                 "temperature_command_topic": "t", "temperature_state_topic": "ts", "current_temperature_topic": "ct",
                 "preset_mode_command_topic": "p", "preset_modes": ["eco", "away"]},
                {"ms": "heat", "ts": "21.5", "ct": "20.1"}),
    "cover": ({**STATE, "position_topic": "p", "set_position_topic": "sp", "payload_stop": "STOP",
               "device_class": "shutter"}, {"s": "open", "p": "40"}),
    "device_tracker": (STATE, {"s": "home"}),
    "fan": ({**STATE, "percentage_command_topic": "p", "percentage_state_topic": "ps",
             "oscillation_command_topic": "o", "oscillation_state_topic": "os", "direction_command_topic": "d"},
            {"s": "ON", "ps": "40", "os": "oscillate_on"}),
    "humidifier": ({**STATE, "target_humidity_command_topic": "h", "target_humidity_state_topic": "hs",
                    "mode_command_topic": "m", "modes": ["normal", "boost"]}, {"s": "ON", "hs": "55"}),
    "image": ({"image_topic": "s", "image_encoding": "b64"}, {"s": PNG}),
    "lawn_mower": ({"activity_state_topic": "s", "dock_command_topic": "d", "start_mowing_command_topic": "sm",
                    "pause_command_topic": "p"}, {"s": "mowing"}),
    "light": ({**STATE, "schema": "json", "brightness": True, "supported_color_modes": ["xy"], "effect": True,
               "effect_list": ["rainbow", "none"]},
              {"s": '{"state":"ON","brightness":128,"color":{"x":0.64,"y":0.33},"color_mode":"xy"}'}),
    "lock": ({**STATE, "code_format": "^[0-9]+$", "command_template": "{{ value }} {{ code }}"}, {"s": "LOCKED"}),
    "notify": ({}, {}),
    "number": ({**STATE, "min": 0, "max": 60, "unit_of_measurement": "min"}, {"s": "12"}),
    "scene": ({}, {}),
    "select": ({**STATE, "options": ["a", "b"]}, {"s": "a"}),
    "sensor": ({**STATE, "device_class": "temperature", "unit_of_measurement": "°C"}, {"s": "21.3"}),
    "siren": ({**STATE, "available_tones": ["bell", "fire"]}, {"s": "OFF"}),
    "switch": ({**STATE, "availability_topic": "av"}, {"s": "ON", "av": "online"}),
    "text": (STATE, {"s": "hello"}),
    "update": ({**STATE, "payload_install": "go"}, {"s": '{"installed_version":"1","latest_version":"2"}'}),
    "vacuum": ({**STATE, "set_fan_speed_topic": "f", "fan_speed_list": ["min", "max"], "supported_features": [
                    "start", "pause", "stop", "return_home", "locate", "fan_speed", "battery", "status"]},
               {"s": '{"state":"cleaning","battery_level":61,"fan_speed":"min"}'}),
    "valve": ({**STATE, "reports_position": True, "payload_stop": "STOP"}, {"s": '{"state":"open","position":40}'}),
    "water_heater": ({"mode_command_topic": "m", "mode_state_topic": "ms", "modes": ["eco", "off", "performance"],
                      "temperature_command_topic": "t", "temperature_state_topic": "ts"}, {"ms": "eco", "ts": "50"}),
}  # fmt: skip
"""For each component: its keys, its topics below `home/<component>/`, and its states by topic. All messages are
retained."""


async def announce(client: aiomqtt.Client) -> None:
    """Announce all devices. The id of a component's device is `mqtt:<component>`, and the device has the name of
    the component."""
    for component, (keys, states) in ANNOUNCED.items():
        base = f"home/{component}"
        stated = {key: f"{base}/{value}" if key.endswith("topic") else value for key, value in keys.items()}
        device = {"identifiers": [component], "name": component.replace("_", " ").capitalize()}
        config = {"command_topic": f"{base}/set", **stated, "name": None, "unique_id": component, "device": device}
        for topic, state in states.items():
            await client.publish(f"{base}/{topic}", state, qos=1, retain=True)
        await client.publish(f"homeassistant/{component}/{component}/config", json.dumps(config), qos=1, retain=True)
