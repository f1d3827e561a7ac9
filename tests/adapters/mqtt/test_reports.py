"""Payloads in Home Assistant's format from public bug reports, with the expected attributes, commands, and
reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from appliance.adapters.mqtt.messages import Outgoing
from appliance.adapters.mqtt.refusals import MAX_REPORTED_WORDS
from appliance.adapters.mqtt.reports import FaultReports
from appliance.errors import BadAnswer, Invalid
from appliance.home import events
from appliance.home.commands import Command
from appliance.home_locale import Locale
from tests.adapters.mqtt.captures import Sent
from tests.adapters.mqtt.table import NOW, announce, config, message_loop, receive
from tests.fakes.clock import VirtualClock
from tests.fakes.rows import each_row

MODE_TOPIC = {
    "state_topic": "s", "command_topic": "c", "state_value_template": "{{ value_json.P }}",
    "rgb_command_topic": "r", "rgb_state_topic": "s", "rgb_value_template": "{{ value_json.rgb | join(',') }}",
    "color_temp_command_topic": "t", "color_temp_state_topic": "s",
    "color_temp_value_template": "{{ value_json.ct }}",
    "color_mode_state_topic": "s", "color_mode_value_template": "{{ value_json.m }}",
}  # fmt: skip
JSON_LAMP = {"schema": "json", "state_topic": "s", "command_topic": "c", "brightness": True}
TEMPLATE_LAMP = {
    "schema": "template", "state_topic": "s", "command_topic": "c", "command_on_template": "on",
    "command_off_template": "off", "red_template": "{{ value_json.r }}", "green_template": "{{ value_json.g }}",
    "blue_template": "{{ value_json.b }}", "color_temp_template": "{{ value_json.t }}",
}  # fmt: skip
STATE = {"state_topic": "s"}
ZONES = {"json_attributes_topic": "s"}
KELVIN_4000 = {"value": 4000, "unit": "kelvin"}
RED = {"r": 255, "g": 10, "b": 0}

NO_COORDINATES = "the home has no coordinates; set latitude and longitude in [locale]"
ROWS: list[tuple[str, dict[str, Any], list[str], dict[str, Any], list[str]]] = [
    ("light", MODE_TOPIC, ['{"P":"ON","rgb":[255,10,0],"ct":250,"m":"color_temp"}'],
     {"power": "on", "color_mode": "color_temp", "color_temperature": KELVIN_4000}, []),
    ("light", MODE_TOPIC, ['{"P":"ON","rgb":[255,10,0],"ct":250,"m":"color_temp"}', '{"m":"rgb"}'],
     {"power": "on", "color_mode": "rgb", "color_rgb": RED}, []),
    ("light", MODE_TOPIC, ['{"m":"rgb"}', '{"rgb":[255,10,0]}', '{"ct":250}'],
     {"color_mode": "rgb", "color_rgb": RED}, []),
    ("light", {**JSON_LAMP, "supported_color_modes": ["xy", "color_temp"]},
     ['{"color_mode":"hs","color":{"h":120,"s":80}}'],
     {"color_mode": "hs", "color_hs": {"hue": 120, "saturation": 80}}, []),
    ("light", {**JSON_LAMP, "supported_color_modes": ["xy", "color_temp"]},
     ['{"color_mode":"hs","color":{"h":120,"s":80}}', '{"color_mode":"color_temp","color_temp":250}'],
     {"color_mode": "color_temp", "color_temperature": KELVIN_4000}, []),
    ("light", {**JSON_LAMP, "supported_color_modes": ["rgbw", "white"]},
     ['{"color_mode":"rgbw","color":{"r":1,"g":2,"b":3,"w":255}}', '{"color_mode":"white","brightness":51}'],
     {"color_mode": "white", "brightness": 20}, []),
    ("light", {**JSON_LAMP, "supported_color_modes": ["color_temp"]},
     ['{"color_mode":"color_temp","color_temp_kelvin":4000,"color_temp":null}'],
     {"color_mode": "color_temp", "color_temperature": KELVIN_4000}, []),
    ("light", {**JSON_LAMP, "supported_color_modes": ["color_temp"]},
     ['{"color_temp":250,"color_temp_kelvin":2700}', '{"color_temp_kelvin":0}'], {"color_mode": "color_temp"}, []),
    ("light", TEMPLATE_LAMP, ['{"r":255,"g":10,"b":0,"t":null}'], {"color_mode": "rgb", "color_rgb": RED}, []),
    ("light", TEMPLATE_LAMP, ['{"r":255,"g":10,"b":0,"t":null}', '{"r":null,"g":null,"b":null,"t":250}'],
     {"color_mode": "color_temp", "color_temperature": KELVIN_4000}, []),
    ("select", {**STATE, "options": ["a", "b"], "value_template": "{{ value_json.x }}"}, ['{"x":"a"}', '{"y":1}'],
     {"custom.mqtt.x": "a"}, []),
    ("select", {**STATE, "options": ["a", "b"], "value_template": "{{ value_json.x }}"},
     ['{"x":"a"}', '{"x":"zzz"}'], {}, ["'zzz' is not one of 'a', 'b'; the value is unknown now"]),
    ("select", {**STATE, "options": ["a", "b"]}, ["a", "unknown"], {}, []),
    ("sensor", {**STATE, "device_class": "aqi"}, ["0.95"], {"custom.mqtt.x": 0.95}, []),
    ("sensor", {**STATE, "device_class": "ph"}, ["7"], {"custom.mqtt.x": 7}, []),
    ("sensor", {**STATE, "device_class": "illuminance", "unit_of_measurement": "lx"}, ["7", "-1"], {}, []),
    ("sensor", {**STATE, "device_class": "power_factor"}, ["0.95", "None"], {}, []),
    ("sensor", {**STATE, "device_class": "humidity"}, ["0.95"], {"custom.mqtt.x": 0.95}, []),
    ("sensor", {**STATE, "device_class": "timestamp"}, ["None"], {}, []),
    ("light", {**JSON_LAMP, "supported_color_modes": ["rgbw", "color_temp"]},
     ['{"state":"ON","brightness":"51","color_mode":"rgbw","color":{"r":"255","g":"10","b":"0","w":"51"}}'],
     {"power": "on", "brightness": 20, "color_mode": "rgb", "color_rgb": RED, "custom.mqtt.white": 20}, []),
    ("light", {**JSON_LAMP, "supported_color_modes": ["rgbw"]},
     ['{"color_mode":"rgbw","color":{"r":255,"g":10,"b":0,"w":1}}'],
     {"color_mode": "rgb", "color_rgb": RED, "custom.mqtt.white": 1}, []),
    ("light", {**JSON_LAMP, "supported_color_modes": ["hs", "color_temp"]},
     ['{"color_mode":"color_temp","color_temp":"250","color":{"h":"1","s":"2"}}'],
     {"color_mode": "color_temp", "color_temperature": KELVIN_4000}, []),
    ("light", JSON_LAMP,
     ['{"brightness":51}', '{"brightness":"bright"}', '{"brightness":"nan"}', '{"brightness":true}', ""], {},
     ["'bright' is not a number; the value is unknown now", "'True' is not a number; the value is unknown now"]),
    ("light", JSON_LAMP, ['{"state":"ON","brightness":51}', '{"brightness":null}'], {"power": "on"}, []),
    ("sensor", {**STATE, "unit_of_measurement": "W"}, ["1", "-Infinity"], {}, []),
    ("sensor", {**STATE, "device_class": "temperature", "unit_of_measurement": "ºC"}, ["20"],
     {"temperature": {"value": 20, "unit": "°C"}}, []),
    ("sensor", {**STATE, "device_class": "temperature", "unit_of_measurement": "C"}, ["20"],
     {"temperature": {"value": 20, "unit": "°C"}}, []),
    ("sensor", {**STATE, "device_class": "TEMPERATURE", "unit_of_measurement": "°C"}, ["20"],
     {"temperature": {"value": 20, "unit": "°C"}}, []),
    ("device_tracker", {**STATE, "source_type": "espresense"}, ["Kitchen"],
     {"presence": True, "custom.mqtt.zone": "Kitchen"}, []),
    ("device_tracker", {**STATE, "source_type": "espresense"}, ["not_home"], {"presence": False}, []),
    ("device_tracker", ZONES, ['{"in_zones":["zone.home"],"source_type":"router"}'], {"presence": True}, []),
    ("device_tracker", ZONES, ['{"in_zones":["zone.home"]}', '{"in_zones":[]}'], {"presence": False}, []),
    ("device_tracker", ZONES, ['{"in_zones":["zone.work","zone.town"]}', '{"latitude":1,"longitude":2}'],
     {"presence": False, "custom.mqtt.zone": "work"}, [NO_COORDINATES]),
    ("device_tracker", ZONES, ['{"in_zones":["zone.home"]}', "away"], {"presence": True},
     ["the payload is not JSON"]),
    ("device_tracker", {**STATE, "source_type": "gps"}, ["Work"],
     {"presence": False, "custom.mqtt.zone": "Work"}, []),
    ("climate", {"mode_state_topic": "s", "mode_command_topic": "c"}, ["off", "manual"], {},
     ["'manual' is not one of 'off', 'heat', 'cool', 'auto', 'heat_cool', 'dry', 'fan_only'; "
      "the value is unknown now"]),
    ("climate", {"action_topic": "s"}, ["off", "HEATING"], {"hvac_state": "heating"}, []),
    ("climate", {"action_topic": "s"}, ["off", "warming"], {},
     ["'warming' is not one of 'off', 'heating', 'cooling', 'drying', 'idle', 'fan', 'preheating', 'defrosting'; "
      "the value is unknown now"]),
    ("climate", {"preset_mode_state_topic": "s", "preset_mode_command_topic": "c", "preset_modes": ["ECO ON"]},
     ["ECO ON", "MAN ECO OFF"], {}, ["'MAN ECO OFF' is not one of 'ECO ON'; the value is unknown now"]),
    ("light", {**JSON_LAMP, "effect_list": ["Rainbow"]}, ['{"effect":"Rainbow"}', '{"state":"ON","effect":""}'],
     {"power": "on"}, []),
    ("vacuum", {**STATE, "command_topic": "c"}, ['{"battery_level":"61"}', '{"battery_level":true}'],
     {}, ["'True' is not a number; the value is unknown now"]),
    ("switch", {**STATE, "command_topic": "c"}, ["ON\0"], {"power": "on"}, []),
    ("switch", {**STATE, "command_topic": "c", "value_template": "{{ value_json.s }}"}, ['\ufeff{"s":"ON"}\0'],
     {"power": "on"}, []),
    ("light", JSON_LAMP, ['{"state":"ON","brightness":51,"temperature":nan,"name":"a\\xb\x01"}'],
     {"power": "on", "brightness": 20}, []),
    ("sensor", {**STATE, "unit_of_measurement": "W", "value_template": "{{ value_json.p }}"},
     ['{"p":5,"t":NaN}', '{"p":nan}'], {}, []),
    ("sensor", {**STATE, "unit_of_measurement": "W", "value_template": "{{ value_json.p }}"},
     ['{"p":5,"t":NaN}', '{"p":6,"t":NaN}' + " " * 70_000], {"custom.mqtt.x": 6}, []),
    ("sensor", {**STATE, "unit_of_measurement": "W", "value_template": "{{ value_json.p }}"},
     ['{"p":5}', '{"p":6,"t":[' + "NaN," * 20_000 + "1]}"], {"custom.mqtt.x": 5}, []),
    ("sensor", {**STATE, "unit_of_measurement": "W", "value_template": "{{ value_json.p }}"}, ['{"p":5,"t":NaN}'],
     {"custom.mqtt.x": 5}, []),
    ("sensor", {**STATE, "device_class": "power", "unit_of_measurement": "W"}, ["5", "1_000"], {},
     ["'1_000' is not a number; the value is unknown now"]),
    ("sensor", {**STATE, "unit_of_measurement": "m³"}, ["4931", "04931.N"], {},
     ["'04931.N' is not a number; the value is unknown now"]),
    ("sensor", {**STATE, "device_class": "ph"}, ["04931.N"], {},
     ["'04931.N' is not a number; the value is unknown now"]),
    ("climate", {"current_temperature_topic": "s"}, ["20", "N/A"], {},
     ["'N/A' is not a number; the value is unknown now"]),
    ("number", {**STATE, "command_topic": "c"}, ["20", "N/A"], {},
     ["'N/A' is not a number; the value is unknown now"]),
    ("cover", {"position_topic": "s", "set_position_topic": "c"}, ["20", "N/A"], {},
     ["'N/A' is not a number; the value is unknown now"]),
    ("light", {"command_topic": "c", "brightness_command_topic": "b", "brightness_state_topic": "s"},
     ["51", "N/A"], {}, ["'N/A' is not a number; the value is unknown now"]),
    ("light", JSON_LAMP, ['{"state":"ON"}', '{"state":"STROBE","brightness":51}'], {"brightness": 20},
     ["'STROBE' is not one of 'ON', 'OFF'; the value is unknown now"]),
    ("light", {**TEMPLATE_LAMP, "state_template": "{{ value_json.s }}"}, ['{"s":"on"}', '{"s":"strobe"}', "{}"],
     {}, ["'strobe' is not one of 'ON', 'OFF'; the value is unknown now"]),
    ("binary_sensor", STATE, ["ON", "unavailable"], {}, []),
    ("binary_sensor", STATE, ["ON", "ABC123"], {},
     ["'ABC123' is not one of 'ON', 'OFF'; the value is unknown now"]),
    ("binary_sensor", {**STATE, "payload_on": "A1", "off_delay": 5}, ["A1", "B7"], {"custom.mqtt.x": True},
     ["'B7' is not one of 'A1', 'OFF'"]),
    ("binary_sensor", {**STATE, "device_class": "presence"}, ["ON", "half"], {},
     ["'half' is not one of 'ON', 'OFF'; the value is unknown now"]),
    ("sensor", STATE, ["04931.N"], {"custom.mqtt.x": "04931.N"}, []),
    ("lock", {**STATE, "command_topic": "c", "state_locked": "lock", "state_unlocked": "unlock"},
     ["lock", "not_fully_locked"], {},
     ["'not_fully_locked' is not one of 'lock', 'unlock', 'JAMMED', 'OPEN'; the value is unknown now"]),
    ("lock", {**STATE, "command_topic": "c"}, ["LOCKED", "UNLOCKING", "LOCKING", "OPENING", ""],
     {"lock": "locked"}, []),
    ("lock", {**STATE, "command_topic": "c"}, ["LOCKED", "unavailable"], {}, []),
    ("alarm_control_panel", {**STATE, "command_topic": "c"}, ["armed_away", "sleeping"], {},
     ["'sleeping' is not one of 'disarmed', 'armed_home', 'armed_away', 'armed_night', 'armed_vacation', "
      "'armed_custom_bypass', 'triggered', 'arming', …; the value is unknown now"]),
    ("cover", {**STATE, "command_topic": "c", "device_class": "garage"}, ["closed", "stuck"], {},
     ["'stuck' is not one of 'stopped', 'closing', 'opening', 'closed', 'open'; the value is unknown now"]),
    ("cover", {**STATE, "command_topic": "c"}, ["closed", "stuck"], {},
     ["'stuck' is not one of 'stopped', 'closing', 'opening', 'closed', 'open'; the value is unknown now"]),
    ("cover", {**STATE, "position_topic": "s", "command_topic": "c", "value_template": "{{ value_json.s }}",
               "position_template": "{{ value_json.p }}"}, ['{"s":"open","p":40}', '{"s":"stuck"}'],
     {"cover_position": 40},
     ["'stuck' is not one of 'stopped', 'closing', 'opening', 'closed', 'open'"]),
    ("valve", {**STATE, "command_topic": "c"}, ["open", "stuck"], {},
     ["'stuck' is not one of 'closing', 'opening', 'closed', 'open'; the value is unknown now"]),
    ("switch", {**STATE, "command_topic": "c"}, ["ON", "overpower"], {},
     ["'overpower' is not one of 'OFF', 'ON'; the value is unknown now"]),
    ("switch", {**STATE, "command_topic": "c"}, ["ON", ""], {"power": "on"}, []),
    ("switch", {**STATE, "command_topic": "c", "payload_on": {"on": 1}}, [], {}, ["payload_on is not a text"]),
    ("switch", {**STATE, "command_topic": "c", "payload_on": ["a"]}, [], {}, ["payload_on is not a text"]),
    ("switch", {"command_topic": "c", "availability_topic": "s"}, ['{"state":"online"}', "", "Online"], {},
     ["'{\"state\":\"online\"}' is not one of 'offline', 'online'"]),
    ("binary_sensor", {**STATE, "device_class": "smoke"}, ["OFF", "alarm"], {},
     ["'alarm' is not one of 'ON', 'OFF'; the value is unknown now"]),
    ("binary_sensor", {**STATE, "device_class": "smoke"}, ["ON", "test"], {},
     ["'test' is not one of 'ON', 'OFF'; the value is unknown now"]),
    ("binary_sensor", {**STATE, "device_class": "gas"}, ["OFF", "alarm"], {},
     ["'alarm' is not one of 'ON', 'OFF'; the value is unknown now"]),
    ("binary_sensor", {**STATE, "device_class": "smoke"}, ["OFF", "on"], {"smoke": True}, []),
    ("switch", {**STATE, "command_topic": "c", "state_on": "on", "state_off": "On"}, ["on", "ON"], {},
     ["'ON' is not one of 'On', 'on'; the value is unknown now"]),
    ("lock", {**STATE, "command_topic": "c"}, ["locked", "unlocking"], {"lock": "locked"}, []),
    ("binary_sensor", {**STATE, "device_class": "smoke"}, ["OFF", "ON\n"], {"smoke": True}, []),
    ("select", {**STATE, "options": ["Eco", "Full"]}, ["ECO"], {"custom.mqtt.x": "Eco"}, []),
    ("sensor", {**STATE, "device_class": "enum", "options": ["Idle"]}, ["IDLE"], {"custom.mqtt.x": "Idle"}, []),
    ("alarm_control_panel", {**STATE, "command_topic": "c"}, ["TRIGGERED"], {"custom.mqtt.x": "triggered"}, []),
    ("switch", {"command_topic": "c", "availability": [{"topic": "s"}, {"topic": "s", "payload_available": "1"}]},
     ["1"], {}, []),
    ("cover", {**STATE, "command_topic": "c"}, ["closed", "opening", "stopped"], {}, []),
    ("cover", {**STATE, "command_topic": "c"}, ["open", "closing", "stopped"], {}, []),
    ("cover", {**STATE, "command_topic": "c"}, ["open", "closing", "stopped", "closed"], {"cover_position": 0}, []),
    ("cover", {**STATE, "command_topic": "c"}, ["closed", "stopped"], {"cover_position": 0}, []),
    ("cover", {**STATE, "position_topic": "s", "command_topic": "c", "device_class": "garage",
               "value_template": "{{ value_json.s }}", "position_template": "{{ value_json.p }}"},
     ['{"s":"closed","p":0}', '{"s":"stopped"}', '{"p":50}'], {"cover_position": 50, "garage_door": "open"}, []),
    ("update", STATE, ['{"installed_version":-1,"latest_version":null}'], {}, []),
    ("update", STATE, ["-1"], {}, []),
    ("sensor", {**STATE, "device_class": "None", "state_class": "", "unit_of_measurement": ""}, ["Running"],
     {"custom.mqtt.x": "Running"}, []),
    ("sensor", {**STATE, "device_class": "timestamp"}, ["2026-11-29T10:00:00+00:00", "unknown"], {}, []),
    ("sensor", {**STATE, "device_class": "illuminance", "unit_of_measurement": "lux"}, ["5"], {"illuminance": 5}, []),
    ("sensor", {**STATE, "device_class": "energy", "unit_of_measurement": "kwh", "name": "YieldDay"}, ["5"],
     {"energy_today": {"value": 5, "unit": "kWh", "period": "today"}}, []),
    ("sensor", {**STATE, "device_class": "energy", "unit_of_measurement": "kWh", "name": "Daily energy yesterday"},
     ["5"], {"energy_yesterday": {"value": 5, "unit": "kWh", "period": "yesterday"}}, []),
    ("sensor", {**STATE, "device_class": "energy", "unit_of_measurement": "kWh", "name": "Energy day tariff"}, ["5"],
     {"energy_total": {"value": 5, "unit": "kWh", "period": "total"}}, []),
    ("sensor", {**STATE, "value_template": "{{ (now() + timedelta(days=1)).date() }}"}, ["5"],
     {"custom.mqtt.x": "2026-01-02"}, []),
    ("sensor", {**STATE, "value_template": "{% set day = now().date() %}{{ day.year }} {{ day.isoformat() }} "
      "{{ day.strftime('%d') }} {{ (day - timedelta(days=1) - day).days }}"}, ["5"],
     {"custom.mqtt.x": "2026 2026-01-01 01 -1"}, []),
    ("sensor", {**STATE, "value_template": "{{ now().isoformat(timespec='minutes') }}"}, ["5"],
     {"custom.mqtt.x": "2026-01-01T12:00+00:00"}, []),
    ("date", {**STATE, "command_topic": "c"}, ["2026-11-23", "soon"], {},
     ["'soon' is not a date like 2026-11-23; the value is unknown now"]),
    ("device_tracker", {**STATE, "source_type": "router"}, ["Home"], {"presence": True}, []),
    ("device_tracker", STATE, ["home\n"], {"presence": True}, []),
    ("device_tracker", {**STATE, "source_type": "router"}, ["away"], {"presence": False}, []),
    ("device_tracker", {**STATE, "source_type": "router", "payload_not_home": "0"}, ["NOT_HOME"],
     {"presence": False}, []),
    ("light", {**JSON_LAMP, "supported_color_modes": ["color_temp"]},
     ['{"color_mode":"color_temp","color_temp":250}', '{"color_temp":65535}'],
     {"color_mode": "color_temp"}, []),
    ("light", {"command_topic": "c", "color_temp_command_topic": "t", "color_temp_state_topic": "s"},
     ["250", "65535"], {"color_mode": "color_temp"}, []),
    ("light", {"command_topic": "c", "rgb_command_topic": "t", "rgb_state_topic": "s"},
     ["255,10,0", "255,10"], {"color_mode": "rgb"},
     ["'255,10' is not a list of 3 numbers; the value is unknown now"]),
    ("light", {"command_topic": "c", "rgb_command_topic": "t", "rgb_state_topic": "s"},
     ["255,10,0", "red,10,0"], {"color_mode": "rgb"}, ["'red' is not a number; the value is unknown now"]),
    ("light", {"command_topic": "c", "rgb_command_topic": "t", "rgb_state_topic": "s"},
     ["255,10,0", "None"], {"color_mode": "rgb"}, []),
    ("light", {**JSON_LAMP, "supported_color_modes": ["xy", "color_temp"]},
     ['{"color_mode":"xy","color":{"x":0.5,"y":0.25}}', '{"color_mode":"xy","color":{"x":"?"}}'],
     {"color_mode": "xy"}, []),
    ("light", {**JSON_LAMP, "supported_color_modes": ["xy", "color_temp"]},
     ['{"color":{"x":0.5,"y":0.25}}', '{"color":{"x":null,"y":null}}'], {"color_mode": "xy"}, []),
    ("light", {**JSON_LAMP, "supported_color_modes": ["xy", "color_temp"]},
     ['{"state":"ON","brightness":51,"color_mode":"xy","color":{"x":0.5,"y":0.25}}',
      '{"state":null,"brightness":null,"color_mode":null,"color":{"x":null,"y":null},"color_temp":null}'], {}, []),
    ("water_heater", {"mode_state_topic": "s", "mode_command_topic": "c"}, ["ECO"], {"custom.mqtt.mode": "eco"}, []),
    *(("sensor", {**STATE, "device_class": "temperature", "unit_of_measurement": unit}, ["20", number], {},
       [f"'{number}' is not a possible temperature in {unit}; the value is unknown now"])
      for unit, number in (("°C", "-127.0"), ("°C", "999"), ("°C", "655.35"), ("°C", "65535"), ("°F", "-196.6"))),
    ("light", {**JSON_LAMP, "supported_color_modes": ["xy", "color_temp"]},
     ['{"color_mode":"xy","color":{"x":0.5,"y":0.25}}', '{"state":"ON","color_mode":"party"}'], {"power": "on"},
     ["'party' is not one of 'color_temp', 'xy', 'hs', 'rgb', 'rgbw', 'rgbww', 'white', 'brightness', …; "
      "the value is unknown now"]),
    ("light", MODE_TOPIC, ['{"rgb":[255,10,0],"m":"rgb"}', '{"m":"party"}'], {},
     ["'party' is not one of 'color_temp', 'xy', 'hs', 'rgb', 'rgbw', 'rgbww', 'white', 'brightness', …; "
      "the value is unknown now"]),
    ("light", TEMPLATE_LAMP, ['{"r":255,"g":10,"b":0}', '{"r":"?","g":10,"b":0}'], {"color_mode": "rgb"},
     ["'?' is not a number; the value is unknown now"]),
    ("sensor", {**STATE, "device_class": "battery", "unit_of_measurement": "%"}, ["104"], {"battery": 100}, []),
    ("sensor", {**STATE, "device_class": "battery", "unit_of_measurement": "%"}, ["50", "255"], {},
     ["'255' is not from 0 to 100; the value is unknown now"]),
    ("sensor", {**STATE, "device_class": "battery", "unit_of_measurement": "%"}, ["50", "-1"], {},
     ["'-1' is not from 0 to 100; the value is unknown now"]),
    ("sensor", {**STATE, "device_class": "humidity", "unit_of_measurement": "%"}, ["100.4"],
     {"humidity": {"value": 100.4, "unit": "%"}}, []),
    ("sensor", {**STATE, "device_class": "humidity", "unit_of_measurement": "%"}, ["50", "655.35"], {},
     ["'655.35' is not from 0 to 100; the value is unknown now"]),
    ("sensor", {**STATE, "device_class": "temperature", "unit_of_measurement": "°C"}, ["20", "-327.68"], {},
     ["'-327.68' is not a possible temperature in °C; the value is unknown now"]),
    ("sensor", {**STATE, "device_class": "temperature", "unit_of_measurement": "°F"}, ["-320"],
     {"temperature": {"value": -320, "unit": "°F"}}, []),
    ("climate", {"current_temperature_topic": "s"}, ["20", "-327.68"], {},
     ["'-327.68' is not a possible temperature in °C; the value is unknown now"]),
    ("climate", {"current_humidity_topic": "s"}, ["50", "255"], {},
     ["'255' is not from 0 to 100; the value is unknown now"]),
    ("cover", {"position_topic": "s", "set_position_topic": "c"}, ["20", "-1"], {},
     ["'-1' is not from 0 to 100; the value is unknown now"]),
    ("cover", {"position_topic": "s", "set_position_topic": "c", "position_open": 0, "position_closed": 100},
     ["20", "255"], {}, ["'255' is not from 0 to 100; the value is unknown now"]),
    ("cover", {"position_topic": "s", "device_class": "garage"}, ["20", "255"], {},
     ["'255' is not from 0 to 100; the value is unknown now"]),
    ("cover", {"tilt_status_topic": "s", "tilt_command_topic": "c", "tilt_min": -90, "tilt_max": 90}, ["0", "255"],
     {}, ["'255' is not from -90 to 90; the value is unknown now"]),
    ("cover", {"position_topic": "s", "set_position_topic": "c", "tilt_command_topic": "t"},
     ['{"position":20,"tilt_position":40}', '{"position":30,"tilt_position":255}'],
     {"cover_position": 30}, ["'255' is not from 0 to 100; the value is unknown now"]),
    ("cover", {"position_topic": "s", "set_position_topic": "c", "tilt_command_topic": "t"},
     ['{"position":20,"tilt_position":40}', '{"position":"?","tilt_position":"?"}'], {},
     ["'?' is not a number; the value is unknown now"]),
    ("cover", {"position_topic": "s", "set_position_topic": "c"}, ["20", "unknown"], {}, []),
    ("cover", {"position_topic": "s", "device_class": "garage"}, ["20", "None"], {}, []),
    ("cover", {**STATE, "command_topic": "c", "position_topic": "p"}, ["opening", "None"], {}, []),
    ("valve", {**STATE, "command_topic": "c", "reports_position": True}, ["50", "255"], {},
     ["'255' is not from 0 to 100; the value is unknown now"]),
    ("fan", {"command_topic": "c", "percentage_state_topic": "s", "speed_range_max": 3}, ["2", "255", "-1"],
     {}, ["'255' is not from 0 to 3; the value is unknown now", "'-1' is not from 0 to 3; the value is unknown now"]),
    ("fan", {"command_topic": "c", "direction_state_topic": "s"}, ["forward", "sideways"], {},
     ["'sideways' is not one of 'forward', 'reverse'; the value is unknown now"]),
    ("fan", {"command_topic": "c", "oscillation_state_topic": "s"}, ["oscillate_on", "half"], {},
     ["'half' is not one of 'oscillate_off', 'oscillate_on'; the value is unknown now"]),
    ("fan", {"command_topic": "c", **STATE}, ["ON", "half"], {},
     ["'half' is not one of 'OFF', 'ON'; the value is unknown now"]),
    ("humidifier", {"command_topic": "c", **STATE}, ["ON", "half"], {},
     ["'half' is not one of 'ON', 'OFF'; the value is unknown now"]),
    ("siren", {"command_topic": "c", **STATE}, ['{"state":"ON","tone":"bell"}', '{"state":"half","tone":"ping"}'],
     {"custom.mqtt.tone": "ping"}, ["'half' is not one of 'OFF', 'ON'; the value is unknown now"]),
    ("sensor", {**STATE, "device_class": "enum", "options": ["a", "b"]}, ["a", "c"], {},
     ["'c' is not one of 'a', 'b'; the value is unknown now"]),
    ("lawn_mower", {"activity_state_topic": "s"}, ["mowing", "lost"], {},
     ["'lost' is not one of 'mowing', 'paused', 'docked', 'returning', 'error'; the value is unknown now"]),
    ("vacuum", STATE, ['{"state":"cleaning","fan_speed":"max"}', '{"state":{},"fan_speed":null}'], {}, []),
    ("vacuum", STATE, ['{"state":"cleaning"}', '{"state":"mopping"}'], {"custom.mqtt.x": "mopping"}, []),
    ("update", STATE, ['{"installed_version":"1","latest_version":"2"}', '{"installed_version":null}'],
     {"custom.mqtt.x": {"latest": "2"}}, []),
    ("update", STATE, ["1", "", "None"], {}, []),
    ("fan", {"command_topic": "c", "percentage_state_topic": "s", "speed_range_min": 10}, ["0"],
     {"custom.mqtt.percentage": 0}, []),
    ("light", {"command_topic": "c", "brightness_command_topic": "b", "brightness_state_topic": "s"},
     ["51", "-1"], {}, []),
    ("light", JSON_LAMP, ['{"brightness":51}', '{"brightness":-1}'], {}, []),
    ("vacuum", {**STATE, "command_topic": "c"}, ['{"battery_level":61}', '{"state":"docked","battery_level":-1}'],
     {"custom.mqtt.x": "docked"}, ["'-1' is not from 0 to 100; the value is unknown now"]),
]  # fmt: skip


@each_row(("component", "keys", "messages", "shown", "reasons"), ROWS)
def test_reported_payloads_are_shown(
    component: str, keys: dict[str, Any], messages: list[str], shown: dict[str, Any], reasons: list[str]
) -> None:
    loop = message_loop()
    announce(loop, config(f"{component}/x", **keys, unique_id="x"))
    for text in messages:
        receive(loop, "s", text.encode())
    assert loop.announced.devices["mqtt:x"].attributes == shown
    assert [each.reason for each in loop.announced.refusals.by_key.values()] == reasons


@each_row(("device_class", "is_there"), [("smoke", True), ("safety", True), ("tamper", False), (["smoke"], False)])
def test_the_category_of_a_sensor_never_hides_a_danger(device_class: object, is_there: bool) -> None:
    loop = message_loop()
    more = {"device_class": device_class, "entity_category": "diagnostic", "unique_id": "x"}
    announce(loop, config("binary_sensor/x", **STATE, **more))
    assert ("mqtt:x" in loop.announced.devices) is is_there


@each_row("payload", [b'\xef\xbb\xbf{"state_topic":"s"}', b'{"state_topic":"s"}\0'])
def test_a_configuration_may_have_a_byte_order_mark_or_a_final_zero(payload: bytes) -> None:
    loop = message_loop()
    announce(loop, Sent("homeassistant/sensor/x/config", payload, retain=True))
    assert "mqtt:x" in loop.announced.devices


@each_row(("mode", "is_available"), [("ALL", False), ("any", True)])
def test_the_mode_and_words_of_availability_are_read_in_any_case(mode: str, is_available: bool) -> None:
    loop = message_loop()
    more = {"availability": [{"topic": "s"}, {"topic": "t"}], "availability_mode": mode, "unique_id": "x"}
    announce(loop, config("switch/x", command_topic="c", **more))
    receive(loop, "s", b"Online")
    assert loop.announced.devices["mqtt:x"].is_available is is_available


@pytest.mark.parametrize(
    ("component", "keys"),
    [
        ("lock", {**STATE, "command_topic": "c"}),
        ("select", {**STATE, "options": ["a", "b"]}),
        ("sensor", {**STATE, "device_class": "enum", "options": ["a", "b"]}),
        ("binary_sensor", STATE),
        ("switch", {**STATE, "command_topic": "c"}),
        ("cover", {**STATE, "command_topic": "c"}),
    ],
)
async def test_two_unknown_words_at_once_are_both_reported(component: str, keys: dict[str, Any]) -> None:
    loop, dropped = message_loop(), list[events.ObservationDropped]()
    reports = FaultReports(loop._publish, VirtualClock())
    loop._publish._bus.listen(lambda event: dropped.append(cast("Any", event)), events.ObservationDropped)
    announced = config(f"{component}/x", **keys, unique_id="x")
    announce(loop, announced)
    for word in ("half", "ajar", "half"):
        receive(loop, "s", word.encode())
    reports.report(loop.announced.refusals)
    assert [each.reason.partition(" is not one of ")[0] for each in dropped] == ["'half'", "'ajar'"]
    announce(loop, Sent(announced.topic, b"", retain=True))
    assert loop.announced.refusals.by_key == {}


@each_row(
    ("component", "keys", "text", "attribute"),
    [
        ("climate", {"mode_state_topic": "s", "fan_mode_command_topic": "c", "fan_modes": ["low"]}, "x", "hvac_mode"),
        ("climate", {"temperature_state_topic": "s", "mode_command_topic": "c"}, "x", "target_temperature"),
        ("light", {**JSON_LAMP, "effect": True}, '{"state":"x"}', "power"),
        ("light", {**STATE, "command_topic": "c", "color_temp_state_topic": "s"}, "x", "power"),
        ("cover", {"command_topic": "c", "position_topic": "s", "tilt_command_topic": "t"}, "x", "cover_position"),
        ("cover", {"command_topic": "c", "tilt_status_topic": "s", "tilt_command_topic": "t"}, "x", "cover_tilt"),
        ("fan", {"command_topic": "c", "percentage_state_topic": "s"}, "x", "custom.mqtt.percentage"),
        ("humidifier", {"command_topic": "c", "current_humidity_topic": "s"}, "x", "humidity"),
    ],
)
def test_an_unknown_text_is_reported_for_its_own_attribute(
    component: str, keys: dict[str, Any], text: str, attribute: str
) -> None:
    loop = message_loop()
    announce(loop, config(f"{component}/x", **keys, unique_id="x"))
    receive(loop, "s", text.encode())
    assert attribute in [each.attribute for each in loop.announced.refusals.by_key.values()]


@pytest.mark.parametrize("availability", [{}, {"x": "a", "y": "a"}, {"x": "b", "y": "a"}, {"x": "a"}])
def test_sensors_with_one_topic_ignore_the_words_of_the_others(availability: Mapping[str, str]) -> None:
    loop = message_loop()
    for name, on, off in (("x", "A1", "A0"), ("y", "B1", "B0")):
        more = {"availability_topic": availability[name]} if name in availability else {}
        announce(
            loop, config(f"binary_sensor/{name}", **STATE, **more, payload_on=on, payload_off=off, unique_id=name)
        )
    for word in ("A1", "B1", "B0"):
        receive(loop, "s", word.encode())
    shown = {id_: device.attributes for id_, device in loop.announced.devices.items()}
    assert shown == {"mqtt:x": {"custom.mqtt.x": True}, "mqtt:y": {"custom.mqtt.y": False}}
    assert not loop.announced.refusals.by_key
    receive(loop, "s", b"C1")
    assert not any(device.attributes for device in loop.announced.devices.values())
    announce(loop, Sent("homeassistant/binary_sensor/y/config", b"", retain=True))
    receive(loop, "s", b"A1")
    receive(loop, "s", b"B1")
    assert loop.announced.devices["mqtt:x"].attributes == {}


BERLIN = Locale(latitude=52.52, longitude=13.405)
COORDINATES = {"json_attributes_topic": "s", "source_type": "gps"}


@each_row(
    ("locale", "keys", "text", "shown", "reasons"),
    [
        (BERLIN, COORDINATES, '{"latitude":52.5204,"longitude":13.4051}', {"presence": True}, []),
        (BERLIN, COORDINATES, '{"latitude":52.522,"longitude":13.405}', {"presence": False}, []),
        (BERLIN, COORDINATES, '{"latitude":52.522,"longitude":13.405,"gps_accuracy":150}', {"presence": True}, []),
        (BERLIN, COORDINATES, '{"latitude":"52.52","longitude":"13.405"}', {"presence": True}, []),
        (BERLIN, COORDINATES, '{"latitude":null,"longitude":13.405}', {}, []),
        (BERLIN, COORDINATES, '{"latitude":52.52,"longitude":13.405,"in_zones":[]}', {"presence": False}, []),
        (BERLIN, {**COORDINATES, "state_topic": "t"}, '{"latitude":52.52,"longitude":13.405}', {}, []),
        (Locale(latitude=0, longitude=179.9999), COORDINATES, '{"latitude":0,"longitude":-179.9999}',
         {"presence": True}, []),
        (Locale(), COORDINATES, '{"latitude":52.52,"longitude":13.405}', {},
         [NO_COORDINATES]),
    ],
)  # fmt: skip
def test_coordinates_decide_about_the_presence_of_a_person(
    locale: Locale, keys: dict[str, Any], text: str, shown: dict[str, Any], reasons: list[str]
) -> None:
    loop = message_loop(locale=locale)
    announce(loop, config("device_tracker/x", **keys, unique_id="x"))
    receive(loop, "s", text.encode())
    assert loop.announced.devices["mqtt:x"].attributes == shown
    assert [each.reason for each in loop.announced.refusals.by_key.values()] == reasons


@each_row(
    ("x", "y"),
    [
        ({"state_topic": "s", "availability_topic": "a"}, {"state_topic": "t", "availability_topic": "a"}),
        ({"state_topic": "s"}, {"state_topic": "t", "availability_topic": "s"}),
        ({"state_topic": "s", "value_template": "{{ value }}"}, {"state_topic": "s", "value_template": "{{ 1 }}"}),
    ],
)
def test_sensors_with_other_topics_or_templates_share_no_words(x: dict[str, str], y: dict[str, str]) -> None:
    loop = message_loop()
    for name, keys, on in (("x", x, "A1"), ("y", y, "B1")):
        announce(loop, config(f"binary_sensor/{name}", **keys, payload_on=on, unique_id=name))
    for word in (b"A1", b"B1"):
        receive(loop, "s", word)
    assert loop.announced.devices["mqtt:x"].attributes == {}


def test_coordinates_that_are_null_end_the_presence() -> None:
    loop = message_loop(locale=BERLIN)
    announce(loop, config("device_tracker/x", **COORDINATES, unique_id="x"))
    for text in ('{"latitude":52.52,"longitude":13.405}', '{"latitude":null,"longitude":null}'):
        receive(loop, "s", text.encode())
    assert loop.announced.devices["mqtt:x"].attributes == {}


def test_only_announced_numbers_have_a_unit() -> None:
    loop, low = message_loop(), "temperature_low_state_topic"
    for name, more in (("x", {}), ("y", {low: "l"})):
        announce(loop, config(f"climate/{name}", current_temperature_topic="s", **more, unique_id=name))
    shown = [device.observation().vendor_specific.get("units") for device in loop.announced.devices.values()]
    assert shown == [None, {"custom.mqtt.target_temperature_low": "°C"}]


def test_the_attributes_without_a_value_are_listed() -> None:
    loop = message_loop()
    announce(loop, config("sensor/x", **STATE, unique_id="x", device_class="battery", unit_of_measurement="%"))
    announce(loop, config("light/y", **JSON_LAMP, unique_id="y"))
    listed = {
        id_: device.observation().vendor_specific.get("attributes") for id_, device in loop.announced.devices.items()
    }
    assert listed["mqtt:x"] == ["battery"] and "power" not in (listed["mqtt:y"] or [])


async def test_each_unknown_word_of_a_device_is_reported_once() -> None:
    loop, dropped = message_loop(), list[events.Event]()
    reports = FaultReports(loop._publish, VirtualClock())
    loop._publish._bus.listen(dropped.append, events.ObservationDropped)
    announce(loop, config("lock/x", **STATE, command_topic="c", unique_id="x"))
    for word in ("LOCKED", "half", "half", "ajar", "half", *(f"word {number}" for number in range(99))):
        receive(loop, "s", word.encode())
        reports.report(loop.announced.refusals)
    words = ["half", "ajar", *(f"word {number}" for number in range(MAX_REPORTED_WORDS - 2))]
    expected = "is not one of 'LOCKED', 'UNLOCKED', 'JAMMED', 'OPEN'; the value is unknown now"
    assert [each.reason for each in dropped if isinstance(each, events.ObservationDropped)] == [
        f"{word!r} {expected}" for word in words
    ]


def test_an_event_that_is_not_announced_is_ignored_and_reported_once() -> None:
    loop, happened = message_loop(), list[events.Event]()
    loop._publish._bus.listen(happened.append, events.DeviceEvent)
    announce(loop, config("event/x", **STATE, event_types=["single", "Double_Press"], unique_id="x"))
    for word in ("single", "hold", "hold", "double", "Double_Press"):
        receive(loop, "s", f'{{"event_type":"{word}"}}'.encode())
    assert [each.event for each in happened if isinstance(each, events.DeviceEvent)] == ["single", "double"]
    assert sorted(str(each.reason) for each in loop.announced.refusals.by_key.values()) == [
        "'double' is not one of 'single', 'Double_Press'",
        "'hold' is not one of 'single', 'Double_Press'",
    ]


@each_row(
    ("types", "word", "event"),
    [
        (["single"], "SINGLE", "single"),
        (["Toggle"], " toggle", "toggle"),
        (["on", "ON"], "On", None),
        (["on", "ON"], "ON", "on"),
        ([], "Toggle", "toggle"),
    ],
)
def test_the_case_of_an_event_does_not_matter_unless_two_announced_words_differ_only_in_case(
    types: list[str], word: str, event: str | None
) -> None:
    loop, happened = message_loop(), list[events.Event]()
    loop._publish._bus.listen(happened.append, events.DeviceEvent)
    announce(loop, config("event/x", **STATE, event_types=types, unique_id="x"))
    receive(loop, "s", f'{{"event_type": "{word}"}}'.encode())
    assert [each.event for each in happened if isinstance(each, events.DeviceEvent)] == ([event] if event else [])


def test_a_vacuum_shows_the_standard_spelling_of_states_and_announced_words() -> None:
    loop = message_loop()
    keys = {**STATE, "supported_features": ["fan_speed"], "fan_speed_list": ["Max", "Min"]}
    announce(loop, config("vacuum/x", **keys, unique_id="x"))
    receive(loop, "s", b'{"state":"Docked","fan_speed":"max"}')
    assert loop.announced.devices["mqtt:x"].attributes == {"custom.mqtt.x": "docked", "custom.mqtt.fan_speed": "Max"}
    receive(loop, "s", b'{"state":"Mop washing","fan_speed":"Turbo"}')
    assert loop.announced.devices["mqtt:x"].attributes == {
        "custom.mqtt.x": "Mop washing",
        "custom.mqtt.fan_speed": "Turbo",
    }


def test_a_name_that_is_not_utf_8_does_not_hide_the_other_values() -> None:
    loop = message_loop()
    announce(loop, config("sensor/x", **STATE, unit_of_measurement="W", value_template="{{ value_json.p }}"))
    receive(loop, "s", '{"name":"Küche","p":5}'.encode("latin-1"))
    assert loop.announced.devices["mqtt:x"].attributes == {"custom.mqtt.x": 5}


@each_row("part", ['"name":"Küche"', '"name":NaN', '"icon":"Küche\\q"'])
def test_an_announced_part_that_is_not_json_does_not_hide_the_device(part: str) -> None:
    loop = message_loop()
    text = f'{{"unique_id":"x","state_topic":"s","device_class":"smoke",{part}}}'
    announce(loop, Sent("homeassistant/binary_sensor/x/config", text.encode("latin-1"), retain=True))
    receive(loop, "s", b"ON")
    assert loop.announced.devices["mqtt:x"].attributes == {"smoke": True}


@each_row(("flag", "is_there"), [(0, False), ("0", False), ("no", False), ("off", False), ("true", True), (1, True)])
def test_a_disabled_entity_is_omitted_in_any_spelling(flag: object, is_there: bool) -> None:
    loop = message_loop()
    announce(loop, config("switch/x", command_topic="c", enabled_by_default=flag, unique_id="x"))
    assert ("mqtt:x" in loop.announced.devices) is is_there


def test_firmware_is_installed_only_if_a_payload_for_it_is_announced() -> None:
    for more, actions in (({}, []), ({"payload_install": "go"}, ["install"])):
        loop = message_loop()
        announce(loop, config("update/x", state_topic="s", command_topic="c", unique_id="x", **more))
        specs = loop.announced.devices["mqtt:x"].specs
        assert [action for spec in specs for action in spec.actions] == actions


@each_row(
    ("more", "actions", "values"),
    [
        ({"payload_close": None}, ("set",), ["open"]),
        ({"payload_open": None, "payload_close": None, "payload_stop": "STOP"}, ("stop",), []),
        ({"payload_close": None, "reports_position": True}, ("set",), None),
    ],
)
def test_valve_commands_need_a_payload(
    more: dict[str, Any], actions: tuple[str, ...], values: list[str] | None
) -> None:
    loop = message_loop()
    announce(loop, config("valve/x", **STATE, command_topic="c", unique_id="x", **more))
    [(attribute, entity)] = loop.announced.devices["mqtt:x"].handlers.items()
    offer = entity.offers[attribute]
    assert (offer.actions, offer.schema.get("values")) == (actions, values)


@each_row(
    ("code_format", "code", "fault"),
    [
        ("^\\d{4}$", "1234", None),
        ("^\\d{4}$", "12", "does not match the lock's code_format"),
        ("^\\d{4}$", "x" * 300, "does not match the lock's code_format"),
        ("^\\d{4}$", None, "requires a code"),
        ("(a+)+$", "anything", None),
        ("[", "anything", None),
    ],
)
def test_a_code_must_fit_the_format_of_its_lock(code_format: str, code: str | None, fault: str | None) -> None:
    loop = message_loop()
    announce(loop, config("lock/x", command_topic="c", code_format=code_format, unique_id="x"))
    entity = loop.announced.devices["mqtt:x"].entities[0]
    command = Command(capability="lock", action="lock", code=code)
    if fault is None:
        assert entity.write(command, NOW).messages
    else:
        with pytest.raises(Invalid, match=fault):
            entity.write(command, NOW)
    assert bool(loop.announced.refusals.by_key) is (code == "anything"), "an unreadable or costly pattern is reported"


def test_the_template_of_a_lock_without_code_format_gets_the_code() -> None:
    loop = message_loop()
    announce(loop, config("lock/x", command_topic="c", command_template="{{ value }} {{ code }}", unique_id="x"))
    command = Command(capability="lock", action="lock", code="1234")
    [sent] = loop.announced.devices["mqtt:x"].entities[0].write(command, NOW).messages
    assert sent.payload == "LOCK 1234"


FAILING: list[tuple[str, dict[str, str], Command, bytes, bytes]] = [
    ("lock", {"command_topic": "c", "state_topic": "s"}, Command(capability="lock", action="lock"), b"UNLOCKED",
     b"JAMMED"),
    ("lawn_mower", {"dock_command_topic": "c", "activity_state_topic": "s"},
     Command(capability="custom.mqtt.x", action="set", value="dock"), b"mowing", b"error"),
    ("vacuum", {"command_topic": "c", "state_topic": "s"},
     Command(capability="custom.mqtt.x", action="set", value="start"), b'{"state":"docked"}', b'{"state":"error"}'),
]  # fmt: skip
"""Each row: the component, its keys, a command, the state before the command, and a state that rules out the
command's result."""


@pytest.mark.parametrize(("component", "keys", "command", "before", "after"), FAILING)
async def test_a_command_ends_at_once_when_its_device_fails(
    clock: VirtualClock, component: str, keys: dict[str, str], command: Command, before: bytes, after: bytes
) -> None:
    loop = message_loop(clock)
    announce(loop, config(f"{component}/x", **keys, unique_id="x"))
    receive(loop, "s", before)

    class Failing:
        async def publish(self, message: Outgoing) -> None:
            receive(loop, "s", after)

    connection: Any = Failing()
    with pytest.raises(BadAnswer, match=r"was sent .* but shows \S+ '(jammed|error)'$"):
        await loop.processor.commands.run(connection, "mqtt:x", command)


COVER = {"state_topic": "m", "position_topic": "s", "set_position_topic": "p", "command_topic": "c"}
UNANSWERED: list[tuple[str, dict[str, Any], str, Command, tuple[str, str] | None]] = [
    ("number", {**STATE, "command_topic": "c"}, "8",
     Command(capability="custom.mqtt.x", action="set", value=9), None),
    ("number", {**STATE, "command_topic": "c", "step": 10}, "10",
     Command(capability="custom.mqtt.x", action="set", value=12), None),
    ("climate", {"temperature_state_topic": "s", "temperature_command_topic": "c"}, "22.5",
     Command(capability="target_temperature", action="set", value={"value": 23, "unit": "°C"}), None),
    ("climate", {"temperature_state_topic": "s", "temperature_command_topic": "c", "temperature_unit": "F"}, "70",
     Command(capability="target_temperature", action="set", value={"value": 71, "unit": "°F"}), None),
    ("climate", {"temperature_state_topic": "s", "temperature_command_topic": "c", "temp_step": 0.1}, "22.5",
     Command(capability="target_temperature", action="set", value={"value": 22.6, "unit": "°C"}), None),
    ("humidifier", {"command_topic": "c", "target_humidity_state_topic": "s", "target_humidity_command_topic": "h"},
     "45", Command(capability="custom.mqtt.target_humidity", action="set", value=46), None),
    ("cover", COVER, "50", Command(capability="cover_position", action="open"), ("m", "closing")),
    ("cover", COVER, "50", Command(capability="cover_position", action="open"), ("s", "49")),
    ("cover", COVER, "50", Command(capability="cover_position", action="set", value=20), ("m", "opening")),
    ("valve", {**STATE, "command_topic": "c"}, "open",
     Command(capability="custom.mqtt.x", action="set", value="closed"), ("s", "opening")),
]  # fmt: skip
"""Each row: the component, its keys, the state before the command, the command, and the topic and text of a reaction
that does not confirm the command."""


@pytest.mark.parametrize(("component", "keys", "before", "command", "reaction"), UNANSWERED)
async def test_one_step_or_a_wrong_direction_does_not_confirm_a_command(
    clock: VirtualClock,
    component: str,
    keys: dict[str, Any],
    before: str,
    command: Command,
    reaction: tuple[str, str] | None,
) -> None:
    loop = message_loop(clock)
    announce(loop, config(f"{component}/x", **keys, unique_id="x"))
    receive(loop, "s", before.encode())

    class Stubborn:
        async def publish(self, message: Outgoing) -> None:
            if reaction is not None:
                receive(loop, reaction[0], reaction[1].encode())

    connection: Any = Stubborn()
    with pytest.raises(BadAnswer, match=r"was sent .* but shows .* after 5 s"):
        await clock.run(loop.processor.commands.run(connection, "mqtt:x", command))


TARGET = {"temperature_state_topic": "s", "temperature_command_topic": "c"}


@pytest.mark.parametrize(
    ("component", "keys", "before", "value", "rounded"),
    [
        ("number", {**STATE, "command_topic": "c", "step": 0.001}, "5", 5.123, "5.12"),
        ("number", {**STATE, "command_topic": "c", "step": 10}, "20", 12, "10"),
        ("climate", {**TARGET, "temp_step": 0.1}, "20", {"value": 21.3, "unit": "°C"}, "21.5"),
        ("climate", {**TARGET, "temp_step": 1}, "20", {"value": 22.5, "unit": "°C"}, "22"),
    ],
)
async def test_a_rounded_number_confirms_a_command(
    clock: VirtualClock, component: str, keys: dict[str, Any], before: str, value: Any, rounded: str
) -> None:
    loop = message_loop(clock)
    announce(loop, config(f"{component}/x", **keys, unique_id="x"))
    receive(loop, "s", before.encode())

    class Rounding:
        async def publish(self, message: Outgoing) -> None:
            receive(loop, "s", rounded.encode())

    connection: Any = Rounding()
    capability = "custom.mqtt.x" if component == "number" else "target_temperature"
    await loop.processor.commands.run(connection, "mqtt:x", Command(capability=capability, action="set", value=value))


async def test_slats_can_be_open_in_the_middle(clock: VirtualClock) -> None:
    loop = message_loop(clock)
    announce(
        loop,
        config("cover/x", tilt_command_topic="c", tilt_status_topic="s", tilt_opened_value=50, unique_id="x"),
    )

    class Blind:
        async def publish(self, message: Outgoing) -> None:
            receive(loop, "s", message.payload.encode())

    connection: Any = Blind()
    await loop.processor.commands.run(connection, "mqtt:x", Command(capability="cover_tilt", action="open"))
    assert loop.announced.devices["mqtt:x"].attributes == {"cover_tilt": 50}


async def test_a_garage_door_opens_only_if_it_reports_this_and_can_stay_closed(clock: VirtualClock) -> None:
    loop = message_loop(clock)
    keys = {"state_topic": "s", "command_topic": "c", "device_class": "garage", "unique_id": "x"}
    announce(loop, config("cover/x", **keys))
    receive(loop, "s", b"closed")

    class Nothing:
        async def publish(self, message: Outgoing) -> None: ...

    connection: Any = Nothing()
    with pytest.raises(BadAnswer, match="garage_door 'closed'"):
        command = Command(capability="garage_door", action="open")
        await clock.run(loop.processor.commands.run(connection, "mqtt:x", command))
    await loop.processor.commands.run(connection, "mqtt:x", Command(capability="garage_door", action="close"))


@each_row(("low", "high"), [(1, 100), (1, 3), (1, 7), (0, 255), (10, 90)])
@pytest.mark.slow
def test_every_speed_of_a_fan_is_shown_as_its_percentage(low: int, high: int) -> None:
    loop = message_loop()
    keys = {"command_topic": "c", "percentage_command_topic": "p", "percentage_state_topic": "s"}
    announce(loop, config("fan/x", **keys, speed_range_min=low, speed_range_max=high, unique_id="x"))
    fan = loop.announced.devices["mqtt:x"]
    for speed in range(low, high + 1):
        receive(loop, "s", str(speed).encode())
        shown = fan.attributes["custom.mqtt.percentage"]
        assert shown == (speed - low + 1) * 100 // (high - low + 1)
        for percent in range(max(shown, 1), 101):
            command = Command(capability="custom.mqtt.percentage", action="set", value=percent)
            [sent] = fan.handlers[command.capability].write(command, NOW).messages
            assert int(sent.payload) == -(-percent * (high - low + 1) // 100) + low - 1
