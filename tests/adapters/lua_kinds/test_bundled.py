"""The kinds that come with Lares, over captures of real devices."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.lua_kinds.kind_definition import BUNDLED_KINDS
from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.errors import AdapterFailed
from appliance.lua.worker_pool import WorkerPool
from tests.adapters.lua_kinds.bench import start
from tests.adapters.lua_kinds.bundled import BUNDLED
from tests.adapters.lua_kinds.simulators import ShellyOne, ShellyTwo, Tasmota, tasmota_status
from tests.adapters.lua_kinds.sources import Awattar, OpenMeteo
from tests.adapters.lua_kinds.vendor import Answer, Vendor

pytestmark = pytest.mark.asyncio(loop_scope="module")

MAX_LINES = 140
"""A hobbyist reads a kind from top to bottom; Shelly is two in one."""

FAULT = re.compile(r"\n|attempt to|bad argument|expected, got|traceback")
"""What says that the file has a fault, and not its vendor."""

NONSENSE = (
    *((200, body) for body in ("", "{", "[]", "7", "null", '"x"', "{}", '{"data":7,"status":{},"current":{}}')),
    (404, "gone"),
    (500, "{}"),
    (200, b"\xff" * 999),
    (200, "[" * 900 + "]" * 900),
    (200, '{"Status":7,"StatusSTS":[],"StatusSNS":"x","mac":1,"relays":7,"meters":[[]]}'),
)


def always(answer: Answer) -> Callable[[WebRequest], Answer]:
    """The same answer to every request."""
    return lambda asked: answer


def kinds() -> list[str]:
    """The names of the bundled kinds."""
    return sorted(each.stem for each in BUNDLED_KINDS.glob("*.lua"))


async def test_each_can_be_read_on_a_few_screens() -> None:
    for name in kinds():
        lines = (BUNDLED_KINDS / f"{name}.lua").read_text().splitlines()
        assert len(lines) <= MAX_LINES and max(map(len, lines)) <= 160, name
        assert lines[0].startswith("-- "), name


async def test_each_is_in_the_table_of_the_suites() -> None:
    assert {each.kind for each in BUNDLED.values()} == set(kinds())


@pytest.mark.parametrize("name", BUNDLED)
async def test_nonsense_is_one_sentence_and_no_outage(pool: WorkerPool, tmp_path: Path, name: str) -> None:
    row = BUNDLED[name]
    it = await start(pool, tmp_path, None, row.vendor(), row.kind, **row.stated)
    for answer in NONSENSE:
        it.adapter._transport, it.adapter._memory = Vendor(always(answer)), {}
        try:
            assert await it.poll() is not None
        except AdapterFailed as error:
            assert error.code == "adapter_failed" and not FAULT.search(str(error)), (answer, error)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, row in BUNDLED.items() if row.wishes])
async def test_nonsense_to_a_command_is_a_sentence_too(pool: WorkerPool, tmp_path: Path, name: str) -> None:
    row = BUNDLED[name]
    it = await start(pool, tmp_path, None, row.vendor(), row.kind, **row.stated)
    await it.poll()
    wish = row.wishes["on"].command
    for answer in NONSENSE:
        it.adapter._transport = Vendor(always(answer))
        try:
            said = await it.command(row.device, wish.capability, wish.action, wish.value)
        except AdapterFailed as error:
            said = str(error)
        assert said and not FAULT.search(said), (answer, said)


async def test_shelly_of_the_first_generation(pool: WorkerPool, tmp_path: Path) -> None:
    plug = ShellyOne()
    it = await start(pool, tmp_path, None, plug, "shelly")
    found = await it.poll()
    assert list(found) == ["switch:0"]
    plain = found["switch:0"]
    assert (plain.name, plain.info.model, plain.info.firmware) == ("Test Name", "SHPLG-S", "v1.14.0")
    assert plain.attributes["energy_total"] == {"value": 2632 / 60 / 1000, "unit": "kWh", "period": "total"}
    assert await it.command("switch:0", "power", "on") is None
    assert it.registry.get_device("it:switch:0").attributes["power"] == "on" and it.dropped == []


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("shelly-pro-3.json", ["switch:0", "switch:1", "switch:2"]),
        ("shelly-plus-plug-s.json", ["switch:0"]),
        ("shelly-wall-display.json", ["sensor", "switch:0"]),
    ],
)
async def test_shelly_of_the_second_generation(pool: WorkerPool, tmp_path: Path, name: str, ids: list[str]) -> None:
    it = await start(pool, tmp_path, None, ShellyTwo(name), "shelly")
    found = await it.poll()
    assert sorted(found) == ids and it.dropped == []
    if "sensor" in found:
        assert found["sensor"].attributes["temperature"] == {"value": 21.3, "unit": "°C"}
        assert found["sensor"].attributes["illuminance"] == 30
    await it.command("switch:0", "power", "toggle")
    assert "Switch.Toggle" in [(each.json or {}).get("method") for each in it.vendor.asked]


EM = {"a_current": 1.0, "total_current": 3.1, "total_act_power": 690.5}
PARTS: tuple[tuple[dict[str, Any], str, dict[str, Any]], ...] = (
    (
        {"pm1:0": {"apower": 11.5, "aenergy": {"total": 1500}}},
        "pm1:0",
        {"power_consumption": 11.5, "energy_total": 1.5},
    ),
    ({"em:0": EM, "emdata:0": {"total_act": 2000}}, "em:0", {"power_consumption": 690.5, "energy_total": 2.0}),
    ({"em1:0": {"act_power": 5.5}, "em1data:0": {"total_act_energy": 9}}, "em1:0", {"energy_total": 0.009}),
    ({"temperature:101": {"tC": 9.5}, "temperature:100": {"tC": 5.5}}, "sensor", {"temperature": 5.5}),
    ({"cover:0": {"current_pos": None}}, "cover:0", {}),
    ({"switch:0": "broken"}, "switch:0", {}),
)


async def test_parts_of_the_second_generation(pool: WorkerPool, tmp_path: Path) -> None:
    for status, id_, shown in PARTS:
        about = {"mac": "AABB", "model": "X", "gen": 2}
        vendor = Vendor({"/shelly": about, "/rpc/Shelly.GetStatus": {"sys": {"mac": "AABB"}, **status}})
        it = await start(pool, tmp_path, None, vendor, "shelly")
        found = await it.poll()
        assert set(found) == {id_} and it.dropped == []
        assert {key: found[id_].attributes[key]["value"] for key in shown} == shown
        if "cover:0" in found:
            assert found["cover:0"].commands and "set" not in found["cover:0"].commands[0].actions


SENSORS: tuple[tuple[int, dict[str, Any], dict[str, Any]], ...] = (
    (
        1,
        {
            "gas_sensor": {"sensor_state": "normal", "alarm_state": "mild"},
            "concentration": {"ppm": 7, "is_valid": True},
        },
        {"custom.shelly.gas": {"value": 7, "unit": "ppm"}, "custom.shelly.gas_alarm": "mild"},
    ),
    (1, {"flood": True, "bat": {"value": 80}}, {"water_leak": True, "battery": 80}),
    (1, {"sensor": {"state": "close"}, "lux": {"value": 12}}, {"contact": "closed", "illuminance": 12}),
    (1, {"sensor": {"motion": True}}, {"motion": "detected"}),
    (1, {"smoke": False, "tmp": {"tC": 20.5}}, {"smoke": False, "temperature": {"value": 20.5, "unit": "°C"}}),
    (2, {"smoke:0": {"id": 0, "alarm": True}}, {"smoke": True}),
    (2, {"flood:0": {"id": 0, "alarm": False}, "devicepower:0": {"battery": {"percent": 9}}}, {"water_leak": False}),
)


@pytest.mark.parametrize(("generation", "status", "shown"), SENSORS)
async def test_sensors_of_shelly(
    pool: WorkerPool, tmp_path: Path, generation: int, status: dict[str, Any], shown: dict[str, Any]
) -> None:
    whole = {"mac": "AABB", "sys": {"mac": "AABB"}, **status}
    about = {"mac": "AABB", "type": "SHGS-1", "gen": generation}
    vendor = Vendor({"/shelly": about, "/status": whole, "/rpc/Shelly.GetStatus": whole})
    it = await start(pool, tmp_path, None, vendor, "shelly")
    attributes = (await it.poll())["sensor"].attributes
    assert {**attributes, **shown} == attributes and it.dropped == []


async def test_meters_lamps_and_covers_of_the_first_generation(pool: WorkerPool, tmp_path: Path) -> None:
    status: dict[str, Any] = {
        "mac": "AABB",
        "relays": [{"ison": True}],
        "emeters": [{"power": 7.0, "voltage": 230.0, "total": 1500.0}, {"power": 8.0, "total": 2500.0}],
        "lights": [{"ison": True, "mode": "color", "gain": 30, "brightness": 80}],
        "rollers": [{"positioning": True, "current_pos": 40}, {"positioning": False, "current_pos": 101}],
    }

    def switch_off(asked: WebRequest) -> Answer:
        status["lights"][0]["ison"] = False
        return {}

    vendor = Vendor({"/shelly": {"mac": "AABB", "type": "SHEM"}, "/status": status, "/light/0": switch_off})
    it = await start(pool, tmp_path, None, vendor, "shelly")
    found = await it.poll()
    assert set(found) == {"switch:0", "meter:1", "light:0", "cover:0", "cover:1"} and it.dropped == []
    assert found["meter:1"].attributes["energy_total"] == {"value": 2.5, "unit": "kWh", "period": "total"}
    assert found["light:0"].attributes["brightness"] == 30 and found["cover:0"].attributes["cover_position"] == 40
    ranges = [(each.capability, each.min, each.max) for each in found["light:0"].commands or ()]
    assert sorted(ranges) == [("brightness", 0, 100), ("power", None, None)]
    assert await it.command("light:0", "brightness", "set", 0) is None
    assert {"turn": "off"} in [each.query for each in vendor.asked]


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
    told = {name: shown[name] for name in ("power_consumption", "voltage", "current", "temperature", "pressure")}
    assert told == {
        "power_consumption": {"value": 350, "unit": "W"},
        "voltage": {"value": 230, "unit": "V"},
        "current": {"value": 1.75, "unit": "A"},
        "temperature": {"value": 20.5, "unit": "°C"},
        "pressure": {"value": 755.0, "unit": "mmHg"},
    }


async def test_tasmota_says_what_it_does_not_understand(pool: WorkerPool, tmp_path: Path) -> None:
    status = tasmota_status("tasmota-switch.json")
    answers = {"Status 0": status, "Power1 on": {"Command": "Unknown"}, "Power1 off": {"WARNING": "Need user"}}
    it = await start(pool, tmp_path, None, Vendor(lambda asked: answers[asked.query["cmnd"]]), "tasmota_http")
    await it.poll()
    assert await it.command("relay:1", "power", "on") == "Tasmota does not know: Power1 on"
    assert await it.command("relay:1", "power", "off") == "Tasmota asks for a password, or for another one"


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
    assert own.vendor.asked[0].origin == "" and own.adapter.poll_interval <= 60, "what the section says counts"
