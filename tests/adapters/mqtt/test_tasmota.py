"""Tasmota devices are published and commanded. The documentation contains every key of Tasmota's discovery."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from appliance.adapters.mqtt.message_loop import MessageLoop
from appliance.adapters.mqtt.messages import Outgoing
from appliance.adapters.mqtt.tasmota import announcements
from appliance.adapters.mqtt.tasmota.sensors import QUANTITIES
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.tables.checks import format_value
from tests.adapters.mqtt.broker import Broker
from tests.adapters.mqtt.captures import Sent
from tests.adapters.mqtt.homes import BrokerHome, until
from tests.adapters.mqtt.table import announce, message_loop, new_catalog, receive, take
from tests.adapters.mqtt.tasmota import BASE, MAC, TasmotaDevice
from tests.fakes.rows import each_row

PAGE = Path(__file__).parents[3] / "docs" / "mqtt.md"
ID = "mqtt:aabbcc0000a1"

Shown = Mapping[str, Mapping[str, Any]]
"""Attributes by the last part of the device's id, which follows the section and the MAC address."""


class Play(msgspec.Struct, frozen=True, kw_only=True):
    """One device: its announcement, its first state, and later messages."""

    config: dict[str, Any]
    state: dict[str, Any] = {}
    sensors: dict[str, Any] = {}
    """The sensors in the announcement."""
    values: dict[str, Any] = {}
    """The first message of these sensors."""
    shown: Shown = {}
    commands: tuple[tuple[str, dict[str, Any], list[tuple[str, str]], dict[str, Any]], ...] = ()
    """The commanded part, the command, the messages of the command, and the attributes after these messages."""


def kelvin(value: int) -> dict[str, Any]:
    return {"value": value, "unit": "kelvin"}


def measured(value: float, unit: str, **period: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, **period}


def power(action: str) -> dict[str, Any]:
    return {"capability": "power", "action": action}


def setting(capability: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"capability": capability, "action": "set", "value": value, **more}


RGB_STATE = {"POWER": "ON", "Dimmer": 60, "HSBColor": "30,100,60", "Scheme": 0}
ENERGY = {"Total": 0.031, "Yesterday": 0, "Today": 0.002, "Power": 57, "Voltage": 231, "Current": 0.25, "Factor": 0.9}

PLAYS: dict[str, Play] = {
    "single relay": Play(
        config={"rl": [1]}, state={"POWER": "OFF"}, shown={"": {"power": "off"}},
        commands=(("", power("on"), [("POWER1", "ON")], {"power": "on"}),),
    ),
    "four relays with names": Play(
        config={"dn": "Strip", "fn": ["Fridge", "Lamp", "Strip 3", None], "rl": [1, 1, 1, 1]},
        state={"POWER1": "ON", "POWER2": "OFF", "POWER3": "OFF", "POWER4": "ON"},
        shown={
            "": {"power": "on"}, ":relay_2": {"power": "off"},
            ":relay_3": {"power": "off"}, ":relay_4": {"power": "on"},
        },
        commands=((":relay_4", power("off"), [("POWER4", "OFF")], {"power": "off"}),),
    ),
    "dual with lists of power": Play(
        config={"rl": [1, 1]}, state={"POWER1": "ON", "POWER2": "ON"},
        sensors={"ENERGY": {"Total": 0.031, "Power": [0, 0], "Voltage": 234, "Current": [0, 0]}},
        values={"ENERGY": {"Total": 0.031, "Power": [114, 25], "Voltage": 234, "Current": [0.485, 0.108]}},
        shown={"": {
            "power": "on", "power_consumption": measured(114, "W"), "custom.mqtt.ENERGY_Power_2": 25,
            "current": measured(0.485, "A"), "custom.mqtt.ENERGY_Current_2": 0.108, "voltage": measured(234, "V"),
            "energy_total": measured(0.031, "kWh", period="total"),
        }},
        commands=((":relay_2", power("off"), [("POWER2", "OFF")], {"power": "off"}),),
    ),
    "three-phase meter": Play(
        config={},
        sensors={"ENERGY": {
            "Total": [1.0, 2.0, 3.0], "Power": [1, 2, 3], "Voltage": [230, 231, 232], "PhaseAngle": [0, 120, 240],
        }},
        values={"ENERGY": {"Total": [1.5, 2.5, 3.5], "Power": [100, 200], "Voltage": [229, 231, 233]}},
        shown={"": {
            "power_consumption": measured(100, "W"), "custom.mqtt.ENERGY_Power_2": 200,
            "voltage": measured(229, "V"), "custom.mqtt.ENERGY_Voltage_2": 231, "custom.mqtt.ENERGY_Voltage_3": 233,
            "energy_total": measured(1.5, "kWh", period="total"), "custom.mqtt.ENERGY_Total_2": 2.5,
            "custom.mqtt.ENERGY_Total_3": 3.5,
        }},
    ),
    "one phase of several announced": Play(
        config={}, sensors={"ENERGY": {"Power": [0, 0]}}, values={"ENERGY": {"Power": 12}},
        shown={"": {"power_consumption": measured(12, "W")}},
    ),
    "dimmer": Play(
        config={"rl": [2], "lt_st": 1}, state={"POWER": "ON", "Dimmer": 40},
        shown={"": {"power": "on", "brightness": 40}},
        commands=(
            ("", setting("brightness", 70), [("Dimmer", "70")], {"brightness": 70}),
            ("", setting("brightness", 20, transition_secs=2), [("Fade", "1"), ("Speed", "8"), ("Dimmer", "20")],
             {"brightness": 20}),
            ("", setting("brightness", 90, transition_secs=0), [("Fade", "0"), ("Dimmer", "90")], {"brightness": 90}),
            ("", setting("brightness", 0), [("POWER1", "OFF")], {"power": "off"}),
        ),
    ),
    "dimmer whose power is separate": Play(
        config={"rl": [2], "lt_st": 1, "so": {"20": 1, "117": 1}}, state={"POWER": "OFF", "Dimmer": 40},
        shown={"": {"power": "off", "brightness": 40}},
        commands=(
            ("", setting("brightness", 70), [("Dimmer", "70"), ("POWER1", "ON")], {"power": "on", "brightness": 70}),
            ("", setting("brightness", 60, transition_secs=2),
             [("Fade", "1"), ("Speed", "4"), ("Dimmer", "60"), ("POWER1", "ON")], {"brightness": 60}),
        ),
    ),
    "Tuya dimmer": Play(
        config={"rl": [2], "lt_st": 1, "ty": 1}, state={"POWER": "ON", "Dimmer": 40}, shown={"": {"brightness": 40}},
        commands=(
            ("", setting("brightness", 70), [("Dimmer3", "70")], {"brightness": 70}),
            ("", setting("brightness", 20, transition_secs=1), [("Dimmer3", "20")], {"brightness": 20}),
        ),
    ),
    "CCT": Play(
        config={"rl": [2], "lt_st": 2, "so": {"82": 1}}, state={"POWER": "ON", "Dimmer": 40, "CT": 250},
        shown={"": {"power": "on", "brightness": 40, "color_mode": "color_temp", "color_temperature": kelvin(4000)}},
        commands=(("", setting("color_temperature", kelvin(2700)), [("CT", "370")],
                   {"color_temperature": kelvin(2703)}),),
    ),
    "RGB": Play(
        config={"rl": [2], "lt_st": 3}, state=RGB_STATE,
        shown={"": {"power": "on", "brightness": 60, "color_mode": "hs", "color_hs": {"hue": 30, "saturation": 100},
                    "effect": "none"}},
        commands=(
            ("", setting("color_hs", {"hue": 200, "saturation": 50}), [("HsbColor1", "200"), ("HsbColor2", "50")],
             {"color_hs": {"hue": 200, "saturation": 50}}),
            ("", setting("effect", "colorloop"), [("Scheme", "2")], {"effect": "colorloop"}),
            ("", setting("custom.mqtt.effect", "Cycle down"), [("Scheme", "3")],
             {"custom.mqtt.effect": "Cycle down"}),
            ("", {"capability": "effect", "action": "stop"}, [("Scheme", "0")], {"effect": "none"}),
        ),
    ),
    "RGBW": Play(
        config={"rl": [2], "lt_st": 4}, state={**RGB_STATE, "White": 0},
        shown={"": {"color_mode": "hs", "color_hs": {"hue": 30, "saturation": 100}}},
        commands=(
            ("", setting("color_mode", "white"), [("White", "60")], {"color_mode": "white"}),
            ("", setting("color_hs", {"hue": 20, "saturation": 90}), [("HsbColor1", "20"), ("HsbColor2", "90")],
             {"color_mode": "hs", "color_hs": {"hue": 20, "saturation": 90}}),
        ),
    ),
    "RGBCCT": Play(
        config={"rl": [2], "lt_st": 5}, state={**RGB_STATE, "White": 50, "CT": 300},
        shown={"": {"color_mode": "color_temp", "color_temperature": kelvin(3333)}},
        commands=(
            ("", setting("color_hs", {"hue": 20, "saturation": 90}), [("HsbColor1", "20"), ("HsbColor2", "90")],
             {"color_mode": "hs"}),
            ("", setting("color_temperature", kelvin(4000)), [("CT", "250")],
             {"color_mode": "color_temp", "color_temperature": kelvin(4000)}),
        ),
    ),
    "channels as lights": Play(
        config={"rl": [2, 2], "lt_st": 2, "so": {"68": 1}},
        state={"POWER1": "ON", "Channel1": 50, "POWER2": "ON", "Channel2": 20},
        shown={"": {"power": "on", "brightness": 50}, ":light_2": {"power": "on", "brightness": 20}},
        commands=(
            ("", setting("brightness", 30), [("Channel1", "30")], {"brightness": 30}),
            (":light_2", setting("brightness", 40), [("Channel2", "40")], {"brightness": 40}),
        ),
    ),
    "colour and white apart": Play(
        config={"rl": [2, 2], "lt_st": 4, "lk": 0},
        state={"POWER1": "ON", "Dimmer1": 60, "HSBColor": "30,100,60", "POWER2": "OFF", "Dimmer2": 20, "White": 20},
        shown={
            "": {"power": "on", "brightness": 60, "color_mode": "hs", "color_hs": {"hue": 30, "saturation": 100}},
            ":light_2": {"power": "off", "brightness": 20},
        },
        commands=(
            ("", setting("brightness", 30), [("Dimmer1", "30")], {"brightness": 30}),
            (":light_2", setting("brightness", 40), [("Dimmer2", "40")], {"power": "on", "brightness": 40}),
        ),
    ),
    "colour and colour temperature apart": Play(
        config={"rl": [1, 2, 2], "lt_st": 5, "so": {"37": 128}},
        state={"POWER1": "ON", "POWER2": "ON", "Dimmer1": 60, "HSBColor": "9,8,60", "POWER3": "OFF", "Dimmer2": 20,
               "White": 20, "CT": 250},
        shown={
            "": {"power": "on", "brightness": 60, "color_mode": "hs", "color_hs": {"hue": 9, "saturation": 8}},
            ":light_3": {"power": "off", "brightness": 20, "color_temperature": kelvin(4000),
                         "color_mode": "color_temp"},
            ":relay_1": {"power": "on"},
        },
        commands=((":light_3", power("on"), [("POWER3", "ON")], {"power": "on"}),),
    ),
    "relay that is a light": Play(
        config={"rl": [1], "so": {"30": 1}}, state={"POWER": "OFF"}, shown={"": {"power": "off"}},
        commands=(("", power("on"), [("POWER1", "ON")], {"power": "on"}),),
    ),
    "shutter": Play(
        config={"rl": [3, 3], "sho": [0], "sht": [[0, 0, 0]]}, values={"Shutter1": {"Position": 20, "Direction": 0}},
        shown={"": {"cover_position": 20}},
        commands=(
            ("", setting("cover_position", 70), [("ShutterPosition1", "70")], {"cover_position": 70}),
            ("", {"capability": "cover_position", "action": "open"}, [("ShutterOpen1", "")], {}),
            ("", {"capability": "cover_position", "action": "stop"}, [("ShutterStop1", "")], {}),
            ("", {"capability": "cover_position", "action": "close"}, [("ShutterClose1", "")], {}),
        ),
    ),
    "inverted shutter": Play(
        config={"rl": [3, 3], "sho": [1], "sht": [[0, 0, 0]]}, values={"Shutter1": {"Position": 100, "Direction": 0}},
        shown={"": {"cover_position": 0}},
        commands=(("", setting("cover_position", 30), [("ShutterPosition1", "70")], {"cover_position": 30}),),
    ),
    "shutter with slats": Play(
        config={"rl": [1, 3, 3, 3, 3], "sho": [0, 0], "sht": [[0, 0, 0], [-90, 90, 24]]}, state={"POWER1": "ON"},
        values={"Shutter1": {"Position": 10}, "Shutter2": {"Position": 100, "Tilt": -90}},
        shown={"": {"cover_position": 10, "power": "on"}, ":shutter_2": {"cover_position": 100, "cover_tilt": 0}},
        commands=(
            (":shutter_2", setting("cover_tilt", 75), [("ShutterTilt2", "45")], {"cover_tilt": 75}),
            (":shutter_2", {"capability": "cover_tilt", "action": "open"}, [("ShutterTilt2", "90")],
             {"cover_tilt": 100}),
        ),
    ),
    "fan with a light": Play(
        config={"rl": [2, 0, 0, 0], "if": 1, "lt_st": 1, "fn": ["Light", None]},
        state={"POWER1": "OFF", "FanSpeed": 1},
        shown={"": {"power": "off"}, ":fan": {"power": "on", "custom.mqtt.percentage": 33}},
        commands=(
            ("", power("on"), [("POWER1", "ON")], {"power": "on"}),
            (":fan", setting("custom.mqtt.percentage", 100), [("FanSpeed", "3")], {"custom.mqtt.percentage": 100}),
            (":fan", power("off"), [("FanSpeed", "0")], {"power": "off"}),
        ),
    ),
    "sensor that had not measured at the announcement": Play(
        config={},
        sensors={"DHT11": {"Temperature": None, "Humidity": None, "DewPoint": None},
                 "DS18B20": {"Id": "01191ED79190", "Temperature": 2.4}, "TempUnit": "C"},
        values={"DHT11": {"Temperature": 21.0, "Humidity": 40, "DewPoint": 7.1}, "DS18B20": {"Temperature": 2.5}},
        shown={"": {"temperature": measured(21, "°C"), "humidity": measured(40, "%"),
                    "custom.mqtt.DHT11_DewPoint": 7.1, "custom.mqtt.DS18B20_Temperature": 2.5}},
    ),
    "units of the owner": Play(
        config={},
        sensors={"BME280": {"Temperature": 70, "Humidity": 40, "DewPoint": 40, "Pressure": 750},
                 "TX23": {"Speed": {"Act": 1, "Avg": 2, "Max": 3}, "Dir": {"Card": "WSW", "Deg": 247.5}},
                 "PressureUnit": "mmHg", "TempUnit": "F", "SpeedUnit": "m/s"},
        values={"BME280": {"Temperature": 75.4, "Humidity": 40.1, "DewPoint": 49.2, "Pressure": 760.1},
                "TX23": {"Speed": {"Act": 14.8, "Avg": 8.5, "Max": 15}, "Dir": {"Card": "W", "Deg": 266.1}}},
        shown={"": {
            "temperature": measured(75.4, "°F"), "humidity": measured(40.1, "%"), "custom.mqtt.BME280_DewPoint": 49.2,
            "pressure": measured(760.1, "mmHg"), "wind_speed": measured(14.8, "m/s"),
            "custom.mqtt.TX23_Speed_Avg": 8.5, "custom.mqtt.TX23_Speed_Max": 15, "custom.mqtt.TX23_Dir_Card": "W",
            "wind_direction": 266,
        }},
    ),
    "sensors under names with numbers": Play(
        config={}, sensors={"ANALOG": {"Temperature1": 20.1, "Range2": 5}, "PMS5003": {"PM2.5": 5, "PB0.3": 800}},
        values={"ANALOG": {"Temperature1": 21.5, "Range2": 6}, "PMS5003": {"PM2.5": 7, "PB0.3": 900}},
        shown={"": {"temperature": measured(21.5, "°C"), "custom.mqtt.ANALOG_Range2": 6,
                    "custom.mqtt.PMS5003_PM2_5": 7, "custom.mqtt.PMS5003_PB0_3": 900}},
    ),
    "chip that measures itself": Play(
        config={"rl": [1]}, state={"POWER": "ON"},
        sensors={"ENERGY": {**ENERGY, "BL09XX": {"Temperature": 43.2}}, "ESP32": {"Temperature": 53.3},
                 "SI7021": {"Temperature": 20.1}, "TempUnit": "C"},
        values={"ENERGY": {**ENERGY, "BL09XX": {"Temperature": 44.2}}, "ESP32": {"Temperature": 54.3},
                "SI7021": {"Temperature": 20.2}},
        shown={"": {"power": "on", "temperature": measured(20.2, "°C"), "custom.mqtt.ESP32_Temperature": 54.3,
                    "custom.mqtt.ENERGY_BL09XX_Temperature": 44.2, "power_consumption": measured(57, "W"),
                    "custom.mqtt.ENERGY_Factor": 0.9}},
        commands=(("", power("off"), [("POWER1", "OFF")], {"power": "off"}),),
    ),
    "device that sleeps": Play(
        config={"dslp": 1, "bat": 1}, state={"BatteryPercentage": 87}, sensors={"SHT3X": {"Temperature": 1}},
        values={"SHT3X": {"Temperature": 4.5}},
        shown={"": {"battery": 87, "temperature": measured(4.5, "°C")}},
    ),
    "reader of cards": Play(
        config={}, sensors={"RDM6300": {"UID": ""}}, values={"RDM6300": {"UID": "04F2E6A2"}},
        shown={"": {"custom.mqtt.RDM6300_UID": "04F2E6A2"}},
    ),
    "own words": Play(
        config={"rl": [1], "state": ["AUS", "EIN", "UM", "LANG"], "onln": "Da", "ofln": "Weg"},
        state={"POWER": "EIN"}, shown={"": {"power": "on"}},
        commands=(("", power("off"), [("POWER1", "AUS")], {"power": "off"}),),
    ),
    "answers at topics of their own": Play(
        config={"rl": [1], "so": {"4": 1}}, state={"POWER": "ON"}, shown={"": {"power": "on"}},
    ),
}  # fmt: skip
"""Devices by the property that distinguishes them."""


def announced(play: Play) -> tuple[TasmotaDevice, MessageLoop]:
    """Return the simulated device, and the devices built from its messages."""
    device, loop = TasmotaDevice(play.state, play.sensors, **play.config), message_loop()
    announce(loop, *device.announcements[:2])
    will = device.config["ofln"] if device.config["dslp"] else device.config["onln"]
    receive(loop, "tele/tA1/LWT", will.encode(), is_retained=True)
    receive(loop, "tele/tA1/STATE", json.dumps(play.state).encode())
    receive(loop, "tele/tA1/SENSOR", json.dumps(play.values).encode())
    return device, loop


@each_row("name", [*PLAYS])
def test_a_tasmota_device_is_shown(name: str) -> None:
    play = PLAYS[name]
    _, loop = announced(play)
    found = {each.id.removeprefix(ID): dict(each.attributes) for each in loop.announced.devices.values()}
    assert {part: {key: found.get(part, {}).get(key) for key in row} for part, row in play.shown.items()} == {
        part: dict(row) for part, row in play.shown.items()
    }
    assert all(each.is_available for each in loop.announced.devices.values())
    assert not loop.announced.refusals.by_key


@pytest.mark.parametrize("name", [name for name, play in PLAYS.items() if play.commands])
async def test_a_tasmota_device_takes_its_commands(name: str) -> None:
    device, loop = announced(PLAYS[name])
    for part, command, messages, shown in PLAYS[name].commands:
        sent = await commanded(loop, device, f"{ID}{part}", command)
        assert sent == [(f"cmnd/tA1/{last}", payload) for last, payload in messages]
        assert shown.items() <= loop.announced.devices[f"{ID}{part}"].attributes.items()
    assert not loop.announced.refusals.by_key


async def commanded(
    loop: MessageLoop, device: TasmotaDevice, device_id: str, command: dict[str, Any]
) -> list[tuple[str, str]]:
    """Return the messages of a command. The device responds to each message at once."""
    sent: list[tuple[str, str]] = []

    class Connection:
        async def publish(self, message: Outgoing) -> None:
            sent.append((message.topic, message.payload))
            for topic, text in device.answers(message.topic, message.payload):
                receive(loop, topic, text.encode())

    connection: Any = Connection()
    await asyncio.wait_for(loop.processor.commands.run(connection, device_id, Command.parse(command)), 5)
    return sent


def test_the_will_of_a_device_is_used_unless_it_sleeps() -> None:
    for sleeps, is_available in ((1, True), (0, False)):
        loop = message_loop()
        announce(loop, *TasmotaDevice({}, {"SHT3X": {"Temperature": 1}}, dslp=sleeps).announcements[:2])
        receive(loop, "tele/tA1/LWT", b"Online", is_retained=True)
        receive(loop, "tele/tA1/SENSOR", b'{"SHT3X":{"Temperature":5}}')
        receive(loop, "tele/tA1/LWT", b"Offline")
        assert loop.announced.devices[ID].is_available is is_available


NAMES: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"rl": [1]}, {"": "Plug"}),
    ({"rl": [1, 1]}, {"": "Plug", ":relay_2": "Plug 2"}),
    ({"rl": [1, 1], "fn": ["Plug", "Pump"]}, {"": "Plug", ":relay_2": "Plug Pump"}),
    ({"rl": [1, 1], "fn": ["Plug", "Plug left"]}, {"": "Plug", ":relay_2": "Plug left"}),
    ({"rl": [3, 3, 3, 3], "fn": ["Blind", None, "Awning"]}, {"": "Plug", ":shutter_2": "Plug Awning"}),
    ({"rl": [2, 0, 0, 0], "if": 1, "dn": "Fan"}, {"": "Fan", ":fan": "Fan fan"}),
]


@each_row(("config", "names"), NAMES)
def test_outputs_have_names_of_the_owner_and_the_device(config: dict[str, Any], names: dict[str, str]) -> None:
    loop = message_loop()
    announce(loop, *TasmotaDevice({}, {}, **config).announcements[:2])
    assert {each.id.removeprefix(ID): each.name for each in loop.announced.devices.values()} == names


def test_a_lamp_with_white_shows_the_white_or_the_colour() -> None:
    loop = message_loop()
    announce(loop, *TasmotaDevice({}, {}, rl=[2], lt_st=4).announcements)
    attributes = loop.announced.devices[ID].attributes
    for sentence, mode, color in (
        ({"HSBColor": "30,100,60", "White": 0}, "hs", {"hue": 30, "saturation": 100}),
        ({"HSBColor": "30,100,0", "White": 50}, "white", None),
        ({"POWER": "OFF"}, "white", None),
        ({"HSBColor": "60,10,9", "White": 0}, "hs", {"hue": 60, "saturation": 10}),
    ):
        receive(loop, "stat/tA1/RESULT", json.dumps(sentence).encode())
        attributes = loop.announced.devices[ID].attributes
        assert (attributes["color_mode"], attributes.get("color_hs")) == (mode, color)


def test_a_null_value_is_missing_until_the_next_value() -> None:
    loop = message_loop()
    announce(loop, *TasmotaDevice({}, {"DHT11": {"Temperature": 20}}).announcements)
    for text, shown in ((b"21", 21), (b"null", None), (b"22", 22)):
        receive(loop, "tele/tA1/SENSOR", b'{"DHT11":{"Temperature":%s}}' % text)
        temperature: Any = loop.announced.devices[ID].attributes.get("temperature")
        assert (temperature and temperature["value"]) == shown


A_AND_B = {"DS18B20-1": {"Id": "A", "Temperature": 0}, "DS18B20-2": {"Id": "B", "Temperature": 0}}


@each_row(
    ("message", "first", "second"),
    [
        ({"DS18B20-1": {"Id": "A", "Temperature": 1}, "DS18B20-2": {"Id": "B", "Temperature": 2}}, 1, 2),
        ({"DS18B20-1": {"Id": "B", "Temperature": 2}, "DS18B20-2": {"Id": "A", "Temperature": 1}}, 1, 2),
        ({"DS18B20": {"Id": "B", "Temperature": 2}}, None, 2),
        ({"DS18B20-1": {"Id": "C", "Temperature": 3}, "DS18B20-2": {"Id": "B", "Temperature": 2}}, None, 2),
        ({"StatusSNS": {"DS18B20": {"Id": "A", "Temperature": 1}}}, 1, None),
        ({"DS18B20-1": {"Temperature": 1}, "DS18B20-2": {"Temperature": 2}}, 1, 2),
        ({"DS18B20-1": 5, "DS18B20-2": None}, None, None),
    ],
)
def test_sensors_with_new_numbers_are_recognised_by_their_ids(
    message: dict[str, Any], first: int | None, second: int | None
) -> None:
    loop = message_loop()
    announce(loop, *TasmotaDevice({}, A_AND_B).announcements)
    receive(loop, "tele/tA1/SENSOR", json.dumps(message).encode())
    attributes: Any = loop.announced.devices[ID].attributes
    assert attributes.get("temperature", {}).get("value") == first
    assert attributes.get("custom.mqtt.DS18B20-2_Temperature") == second


@each_row(
    ("message", "shown"),
    [({"DS18B20": {"Id": "B", "Temperature": 2}}, None), ({"Switch1": "ON"}, 5), ({"BME280": {"Temperature": 2}}, 5)],
)
def test_a_failed_sensor_has_no_value(message: dict[str, Any], shown: int | None) -> None:
    loop = message_loop()
    announce(loop, *TasmotaDevice({}, A_AND_B).announcements)
    both = {"DS18B20-1": {"Id": "A", "Temperature": 5}, "DS18B20-2": {"Id": "B", "Temperature": 6}}
    for each in (both, message):
        receive(loop, "tele/tA1/SENSOR", json.dumps(each).encode())
    attributes: Any = loop.announced.devices[ID].attributes
    assert attributes.get("temperature", {}).get("value") == shown


PRESSES: list[tuple[dict[str, Any], dict[str, Any], list[tuple[str, dict[str, Any]]], dict[str, Any]]] = [
    ({"btn": [1], "so": {"73": 1}}, {"Button1": {"Action": "DOUBLE"}},
     [("double", {"raw": "double", "button": 1})], {}),
    ({"btn": [1], "so": {"73": 1, "11": 1}}, {"Button1": {"Action": "SINGLE"}},
     [("double", {"raw": "single", "button": 1})], {}),
    ({"btn": [1], "so": {"73": 1, "13": 1}}, {"Button1": {"Action": "HOLD"}}, [], {}),
    ({"swc": [0], "so": {"114": 1}}, {"Switch1": {"Action": "TOGGLE"}},
     [("toggle", {"raw": "toggle", "switch": 1})], {}),
    ({"swc": [3], "so": {"114": 1}}, {"Switch1": {"Action": "TOGGLE"}},
     [("single", {"raw": "toggle", "switch": 1})], {}),
    ({"swc": [5], "so": {"114": 1}}, {"Switch1": {"Action": "HOLD"}}, [("hold", {"raw": "hold", "switch": 1})], {}),
    ({"swc": [9], "so": {"114": 1}}, {"Switch1": {"Action": "HOLD"}}, [("double", {"raw": "hold", "switch": 1})], {}),
    ({"swc": [9], "so": {"114": 1}}, {"Switch1": {"Action": "ON"}}, [], {"custom.mqtt.switch_1": True}),
    ({"swc": [1], "swn": ["Door"], "so": {"114": 1}, "state": ["AUS", "EIN", "UM", "LANG"]},
     {"Door": {"Action": "EIN"}}, [], {"custom.mqtt.switch_1": True}),
    ({"swc": [8], "swn": ["Door"], "so": {"114": 1}, "state": ["AUS", "EIN", "UM", "LANG"]},
     {"Door": {"Action": "LANG"}}, [("double", {"raw": "lang", "switch": 1})], {}),
    ({"swc": [15], "so": {"114": 1}}, {"Switch1": {"Action": "OFF"}}, [], {"custom.mqtt.switch_1": False}),
]  # fmt: skip


@each_row(("config", "message", "events", "shown"), PRESSES)
def test_buttons_and_switches_report_presses_and_states(
    config: dict[str, Any], message: dict[str, Any], events: list[Any], shown: dict[str, Any]
) -> None:
    catalog = new_catalog()
    sentence = Sent("stat/tA1/RESULT", json.dumps(message).encode(), False)
    happened = take(catalog, (*TasmotaDevice({}, {}, **config).announcements, sentence))
    assert [(event, data) for _, event, data in happened] == events
    assert catalog.devices[ID].attributes == shown
    assert not catalog.refusals.by_key


def test_a_card_is_an_event_each_time() -> None:
    catalog = new_catalog()
    card = Sent("tele/tA1/SENSOR", b'{"RDM6300":{"UID":"04F2E6A2"}}', False)
    happened = take(catalog, (*TasmotaDevice({}, {"RDM6300": {"UID": ""}}).announcements, card, card))
    assert [(event, data) for _, event, data in happened] == [("tag", {"tag": "04F2E6A2"})] * 2


def test_topics_name_the_host_and_the_end_of_the_address() -> None:
    config = {**BASE, "ft": "home/%hostname%/%id%/%prefix%/%topic%/", "rl": [1]}
    [relay] = announcements.build_announcements(MAC, config, {})
    assert relay.config["command_topic"] == "home/tA1-0161/0000A1/cmnd/tA1/POWER1"


@each_row(
    ("full", "command", "telemetry"),
    [
        ("%topic%/%prefix%", "tA1/cmnd/POWER1", "tA1/tele/LWT"),
        ("%prefix%//%topic%/", "cmnd/tA1/POWER1", "tele/tA1/LWT"),
        ("home/%topic%/", "home/tA1/cmnd/POWER1", "home/tA1/LWT"),
    ],
)
def test_an_unfinished_full_topic_is_completed_as_tasmota_does(full: str, command: str, telemetry: str) -> None:
    [relay] = announcements.build_announcements(MAC, {**BASE, "ft": full, "rl": [1]}, {})
    assert (relay.config["command_topic"], relay.config["availability_topic"]) == (command, telemetry)


def test_the_units_of_numbers_without_a_capability_are_in_the_metadata() -> None:
    loop = message_loop()
    announce(loop, *TasmotaDevice({}, {"BME280": {"DewPoint": 1}, "TempUnit": "F"}).announcements)
    units = loop.announced.devices[ID].observation().vendor_specific["units"]
    assert units == {"custom.mqtt.BME280_DewPoint": "°F"}


@each_row("wrong", [{"t": None}, {"tp": ["cmnd"]}, {"t": "a#b"}, {"ft": "%prefix%/+/"}])
def test_a_configuration_without_topics_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        announcements.build_announcements(MAC, {**BASE, **wrong}, {})


ODD: list[dict[str, Any]] = [
    {"rl": "x"}, {"rl": [3]}, {"rl": [None, "2", 9]}, {"so": None}, {"so": {"68": "1"}}, {"state": [None]},
    {"fn": None}, {"sht": [None]}, {"sht": [[1]], "rl": [3, 3]}, {"sho": None, "rl": [3, 3]},
    {"lt_st": "5", "rl": [2]}, {"lt_st": 99, "rl": [2]},
    {"swc": [99], "so": {"114": 1}}, {"swn": 1, "swc": [1], "so": {"114": 1}},
]  # fmt: skip


@each_row("odd", ODD)
def test_odd_values_of_one_key_affect_only_that_key(odd: dict[str, Any]) -> None:
    loop = message_loop()
    sensors = {"A": {"Temperature": 1}, "B": 5, "C": [1], "D": {"E": {"F": {"G": {}}}}}
    announce(loop, *TasmotaDevice({}, sensors, **odd).announcements)
    receive(loop, "tele/tA1/SENSOR", b'{"A":{"Temperature":5}}')
    assert loop.announced.devices[ID].attributes["temperature"] == measured(5, "°C")


@each_row("wrong", ["x", {}, None, ["x"], [None, "2"]])
def test_an_unreadable_relay_list_is_reported_until_it_is_corrected(wrong: Any) -> None:
    loop, good = message_loop(), TasmotaDevice({}, {}, rl=[1]).announcements[:1]
    announce(loop, *TasmotaDevice({}, {}, rl=wrong).announcements[:2])
    assert [(each.attribute, each.reason) for each in loop.announced.refusals.by_key.values()] == [
        ("announcement", f"rl must be a list of numbers, not {format_value(wrong)}")
    ]
    announce(loop, *good)
    assert not loop.announced.refusals.by_key and [*loop.announced.devices] == [ID]


def rows_of(heading: str) -> dict[str, list[str]]:
    """Return the rows of the table below this heading of the page. The keys are the code words in the first cell of
    each row."""
    table = PAGE.read_text().partition(f"### {heading}")[2].partition("\n##")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| `")]
    return {
        name: [each.strip().strip("`") for each in row[1:]]
        for row in rows
        for name in re.findall(r"`([^`]+)`", row[0])
    }


class Noting(dict[str, Any]):
    """An object that records the keys that are read."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        super().__init__(raw)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


def test_the_table_of_keys_and_options_matches_the_code() -> None:
    keys, options = set[str](), set[str]()
    for play in (*PLAYS.values(), *(Play(config=config) for config, *_ in PRESSES)):
        config = Noting(TasmotaDevice({}, {}, **play.config).config)
        config["so"] = Noting(config["so"])
        announcements.build_announcements(MAC, config, {"sn": play.sensors})
        keys |= config.asked
        options |= config["so"].asked
    rows = rows_of("Keys and options of Tasmota")
    assert {key for key in rows if not key.startswith("SetOption")} == BASE.keys() | {"sn"}
    assert {key.removeprefix("SetOption") for key in rows if key.startswith("SetOption")} == {*BASE["so"], "37"}
    read = {key for key, row in rows.items() if not row[-1].startswith("omitted")}
    assert read == keys | {f"SetOption{each}" for each in options} | {"sn"}


def test_the_values_of_sensors_are_in_the_table_with_their_units() -> None:
    rows = rows_of("Values of Tasmota's sensors")
    assert {name: row[0] for name, row in rows.items()} == {
        name: each.unit or "–" for name, each in QUANTITIES.items()
    }


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_device_is_asked_for_its_state_whenever_it_is_announced(broker: Broker, is_first: bool) -> None:
    device = TasmotaDevice({"POWER": "ON"}, {"SHT3X": {"Temperature": 4}}, rl=[1])
    async with broker.client() as client, BrokerHome(broker) as home:
        await client.subscribe("cmnd/tA1/+", qos=1)
        if not is_first:
            await until(home.publisher.has_started.is_set)
        for sent in device.announcements:
            await client.publish(sent.topic, sent.payload, qos=1, retain=True)
        messages = aiter(client.messages)
        for _ in range(2):
            asked = await asyncio.wait_for(anext(messages), 20)
            for topic, text in device.answers(asked.topic.value, bytes(asked.payload).decode()):
                await client.publish(topic, text, qos=1)
        await home.shows(ID, power="on", temperature=measured(4, "°C"))
