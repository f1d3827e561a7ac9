"""Tests of the bundled kinds with captures of real devices."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.lua_kinds.definition import BUNDLED_KINDS
from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.errors import AdapterFailed
from appliance.lua.running.worker_pool import WorkerPool
from tests.adapters.lua_kinds.bench import start
from tests.adapters.lua_kinds.bundled import BUNDLED
from tests.adapters.lua_kinds.simulators import Tasmota, tasmota_status
from tests.adapters.lua_kinds.sources import Awattar, OpenMeteo
from tests.adapters.lua_kinds.vendor import Answer, Vendor

pytestmark = pytest.mark.asyncio(loop_scope="module")

FAULT = re.compile(r"\n|attempt to|bad argument|expected, got|traceback|\.lua")
"""Texts of faults in the Lua file, as opposed to faults of the device."""

NONSENSE = (
    *((200, body) for body in ("", "{", "[]", "7", "null", '"x"', "{}", '{"data":7,"status":{},"current":{}}')),
    (404, "gone"),
    (500, "{}"),
    (200, b"\xff" * 999),
    (200, "[" * 900 + "]" * 900),
    (200, '{"Status":7,"StatusSTS":[],"StatusSNS":"x","mac":1,"relays":7,"meters":[[]]}'),
)


def always(answer: Answer) -> Callable[[WebRequest], Answer]:
    return lambda asked: answer


def kinds() -> list[str]:
    return sorted(each.stem for each in BUNDLED_KINDS.glob("*.lua"))


async def test_each_begins_with_its_purpose_and_has_short_lines() -> None:
    for name in kinds():
        lines = (BUNDLED_KINDS / f"{name}.lua").read_text().splitlines()
        assert max(map(len, lines)) <= 160, name
        assert lines[0].startswith("-- "), name


async def test_each_kind_is_in_the_table_of_the_suites() -> None:
    assert {each.kind for each in BUNDLED.values()} == set(kinds())


@pytest.mark.parametrize("name", BUNDLED)
async def test_nonsense_is_one_sentence_and_not_an_outage(pool: WorkerPool, tmp_path: Path, name: str) -> None:
    row = BUNDLED[name]
    it = await start(pool, tmp_path, None, row.vendor(), row.kind, **row.stated)
    for answer in NONSENSE:
        it.adapter.functions.transport, it.adapter.functions.memory = Vendor(always(answer)), {}
        try:
            assert await it.poll() is not None
        except AdapterFailed as error:
            assert error.code == "adapter_failed" and not FAULT.search(str(error)), (answer, error)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, row in BUNDLED.items() if row.commands])
async def test_nonsense_to_a_command_is_a_sentence_too(pool: WorkerPool, tmp_path: Path, name: str) -> None:
    row = BUNDLED[name]
    it = await start(pool, tmp_path, None, row.vendor(), row.kind, **row.stated)
    await it.poll()
    command = row.commands["on"].command
    for answer in NONSENSE:
        it.adapter.functions.transport = Vendor(always(answer))
        try:
            sentence = await it.command(row.device, command.capability, command.action, command.value)
        except AdapterFailed as error:
            sentence = str(error)
        assert sentence and not FAULT.search(sentence), (answer, sentence)


@pytest.mark.parametrize(
    ("name", "id_", "shown"),
    [
        ("tasmota-switch.json", "relay:1", {"power": "on"}),
        ("tasmota-am2301.json", "sensor", {"temperature": {"value": 23, "unit": "°C"}}),
        ("tasmota-energy.json", "sensor", {"energy_today": {"value": 0.001, "unit": "kWh", "period": "today"}}),
    ],
)
async def test_tasmota(pool: WorkerPool, tmp_path: Path, name: str, id_: str, shown: dict[str, Any]) -> None:
    vendor = Tasmota(tasmota_status(name), "pw-1")
    it = await start(pool, tmp_path, None, vendor, "tasmota_http", password="pw-1")
    found = await it.poll()
    assert list(found) == [id_] and shown.items() <= dict(found[id_].attributes).items() and it.dropped == []
    assert vendor.asked[0].query == {"cmnd": "Status 0", "user": "admin", "password": "pw-1"}


async def test_tasmota_of_three_phases_and_two_sensors(pool: WorkerPool, tmp_path: Path) -> None:
    vendor = Tasmota()
    energy = {"Total": 8.5, "Power": [100, 200, 50], "Voltage": [230, 231, 229], "Current": [0.5, 1.0, 0.25]}
    sensors = {"DS18B20-2": {"Temperature": 40.5}, "DS18B20-1": {"Temperature": 20.5}}
    pressure = {"BMP280": {"Pressure": 755.0}, "PressureUnit": "mmHg", "TempUnit": "C"}
    vendor.status["StatusSNS"] = {"ENERGY": energy, **sensors, **pressure}
    shown = (await (await start(pool, tmp_path, None, vendor, "tasmota_http")).poll())["relay:1"].attributes
    reported = {name: shown[name] for name in ("power_consumption", "voltage", "current", "temperature", "pressure")}
    assert reported == {
        "power_consumption": {"value": 350, "unit": "W"},
        "voltage": {"value": 230, "unit": "V"},
        "current": {"value": 1.75, "unit": "A"},
        "temperature": {"value": 20.5, "unit": "°C"},
        "pressure": {"value": 755.0, "unit": "mmHg"},
    }


async def test_a_tasmota_with_shutters_shows_and_moves_them(pool: WorkerPool, tmp_path: Path) -> None:
    """From a published answer to `Status 13`. The second shutter counts from its open end, and has slats."""
    vendor = Tasmota()
    del vendor.status["StatusSTS"]["POWER"]
    vendor.status["StatusSTS"] |= {f"POWER{number}": "OFF" for number in range(1, 6)}
    vendor.status["Status"]["FriendlyName"] = ["Left", "", "Right", "", "Lamp"]
    position = {"Position": 30, "Direction": 0, "Tilt": 0}
    vendor.status["StatusSNS"] = {f"Shutter{number}": {**position} for number in (1, 2)}
    about = {"Open": 100, "Close": 100, "50perc": 50, "Delay": 0, "Calib": [300, 500, 700, 900, 1000], "Mode": "0"}
    vendor.status["StatusSHT"] = {
        "SHT0": {"Relay1": 1, "Relay2": 2, "Opt": "0000", **about, "TiltConfig": [-90, 90, 0, 0, 0]},
        "SHT1": {"Relay1": 3, "Relay2": 4, "Opt": "0001", **about, "TiltConfig": [-90, 90, 24, 0, 0]},
    }
    it = await start(pool, tmp_path, None, vendor, "tasmota_http")
    found = await it.poll()
    assert {id_: each.name for id_, each in found.items()} == {
        "relay:5": "Lamp",
        "shutter:1": "Left",
        "shutter:2": "Right",
    }
    assert [found[f"shutter:{number}"].attributes["cover_position"] for number in (1, 2)] == [30, 70]
    assert await it.command("shutter:2", "cover_position", "set", 20) is None
    assert await it.command("shutter:1", "cover_position", "open") is None
    assert await it.command("shutter:1", "cover_position", "stop") is None
    assert [found[f"shutter:{number}"].attributes.get("cover_tilt") for number in (1, 2)] == [None, 50]
    assert await it.command("shutter:2", "cover_tilt", "set", 75) is None
    assert await it.command("shutter:2", "cover_tilt", "open") is None
    sent = [each.query["cmnd"] for each in vendor.asked if each.query["cmnd"] != "Status 0"]
    assert sent == ["ShutterPosition2 80", "ShutterOpen1", "ShutterStop1", "ShutterTilt2 45", "ShutterTilt2 90"]
    del vendor.status["StatusSHT"]
    found = await it.poll()
    assert sorted(found) == ["relay:5", "shutter:1", "shutter:2"] and it.dropped == []
    assert found["shutter:2"].attributes["cover_position"] == 80


async def test_a_tasmota_fan_has_a_light_and_four_speeds(pool: WorkerPool, tmp_path: Path) -> None:
    vendor = Tasmota()
    del vendor.status["StatusSTS"]["POWER"]
    vendor.status["StatusSTS"] |= {"POWER1": "ON", "FanSpeed": 2}
    it = await start(pool, tmp_path, None, vendor, "tasmota_http")
    found, speed = await it.poll(), "custom.tasmota_http.speed"
    assert sorted(found) == ["fan", "relay:1"] and it.dropped == []
    assert (found["fan"].attributes["power"], found["fan"].attributes[speed]) == ("on", 2)
    for capability, action, value in (
        ("power", "off", None),
        ("power", "toggle", None),
        (speed, "set", 3),
        (speed, "set", 0),
        ("power", "on", None),
    ):
        assert await it.command("fan", capability, action, value) is None, value
    sent = [each.query["cmnd"] for each in vendor.asked if each.query["cmnd"] != "Status 0"]
    assert sent == [f"FanSpeed {number}" for number in (0, 2, 3, 0, 3)]


async def test_unknown_commands_of_tasmota_are_named(pool: WorkerPool, tmp_path: Path) -> None:
    status = tasmota_status("tasmota-switch.json")
    answers = {"Status 0": status, "Power1 on": {"Command": "Unknown"}, "Power1 off": {"WARNING": "Need user"}}
    it = await start(pool, tmp_path, None, Vendor(lambda asked: answers[asked.query["cmnd"]]), "tasmota_http")
    await it.poll()
    assert await it.command("relay:1", "power", "on") == "Tasmota rejects the command Power1 on"
    assert await it.command("relay:1", "power", "off") == "Tasmota rejects the password; set password"


async def test_open_meteo(pool: WorkerPool, tmp_path: Path) -> None:
    sky = OpenMeteo(0.8)
    sky.parts["minutely_15"]["precipitation"][3] = None
    it = await start(pool, tmp_path, None, sky, "open_meteo", latitude=52.5, longitude=13.4)
    weather = (await it.poll())["here"].attributes
    assert (weather["weather_condition"], weather["cloud_coverage"]) == ("light rain", 97)
    assert weather["temperature_high"] == {"value": 13.0, "unit": "°C"} and "temperature_low" not in weather
    assert weather["custom.open_meteo.rain_next_hour"]["value"] == pytest.approx(0.8) and it.dropped == []
    assert it.adapter.poll_interval == 900 and sky.asked[0].query["latitude"] == "52.5"


async def test_awattar(pool: WorkerPool, tmp_path: Path) -> None:
    raw: dict[str, Any] = {"base_url": None, "country": "at", "surcharge": 10, "vat_percent": 20}
    it = await start(pool, tmp_path, None, Awattar(8.05, 4.0), "awattar", **raw)
    shown = (await it.poll())["now"].attributes
    assert shown["custom.awattar.price"] == {"value": 21.66, "unit": "ct/kWh"}
    assert shown["custom.awattar.price_next"] == {"value": 16.8, "unit": "ct/kWh"}
    assert shown["custom.awattar.rank"] == shown["custom.awattar.hours_of_day"] >= 23
    assert it.vendor.asked[0].origin == "austria" and 1 <= it.adapter.poll_interval <= 3601
    own = await start(pool, tmp_path, None, Awattar(), "awattar", poll_interval_secs=60)
    await own.poll()
    assert own.vendor.asked[0].origin == "" and own.adapter.poll_interval <= 60, "the section wins"
