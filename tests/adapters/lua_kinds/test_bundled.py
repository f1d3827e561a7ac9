"""The kinds that come with Lares, over captures of real devices."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.lua_kinds.kind_definition import BUNDLED_KINDS
from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.clock import Clock
from appliance.errors import AdapterFailed
from appliance.lua.worker_pool import WorkerPool
from tests.adapters.lua_kinds.bench import Answer, Vendor, start
from tests.adapters.lua_kinds.simulators import capture, tasmota_status

pytestmark = pytest.mark.asyncio(loop_scope="module")

MAX_LINES = 160
"""A hobbyist reads a kind from top to bottom."""

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
    return lambda request: answer


def kinds() -> list[str]:
    """The names of the bundled kinds."""
    return sorted(each.stem for each in BUNDLED_KINDS.glob("*.lua"))


def needed(kind: str) -> dict[str, Any]:
    """The settings that a section of the kind has to state."""
    stated: dict[str, dict[str, Any]] = {
        "open_meteo": {"latitude": 52.5, "longitude": 13.4},
        "fritzbox": {"people": ["Anna=AA:BB:CC:DD:EE:FF"]},
    }
    return stated.get(kind, {})


async def test_each_can_be_read_on_a_few_screens() -> None:
    for name in kinds():
        lines = (BUNDLED_KINDS / f"{name}.lua").read_text().splitlines()
        assert len(lines) <= MAX_LINES and max(map(len, lines)) <= 160, name
        assert lines[0].startswith("-- "), name


@pytest.mark.parametrize("kind", kinds())
async def test_nonsense_is_one_sentence_and_no_outage(pool: WorkerPool, tmp_path: Path, kind: str) -> None:
    for answer in NONSENSE:
        it = await start(pool, tmp_path, None, Vendor(always(answer)), kind, **needed(kind))
        try:
            assert await it.poll() is not None
        except AdapterFailed as error:
            assert error.code == "adapter_failed" and "\n" not in str(error), answer


async def test_shelly_of_the_first_generation(pool: WorkerPool, tmp_path: Path) -> None:
    plug = capture("shelly-plug-s.json")

    def answer(request: WebRequest) -> Any:
        if request.path == "/relay/0":
            plug["status"]["relays"][0]["ison"] = request.query["turn"] == "on"
        return {"/shelly": plug["shelly"], "/status": plug["status"]}.get(request.path, {})

    it = await start(pool, tmp_path, None, Vendor(answer), "shelly")
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
    device = capture(name)
    it = await start(
        pool,
        tmp_path,
        None,
        Vendor({"/shelly": device["shelly"], "/rpc/Shelly.GetStatus": device["status"], "/rpc": {"result": {}}}),
        "shelly",
    )
    found = await it.poll()
    assert sorted(found) == ids and it.dropped == []
    if "sensor" in found:
        assert found["sensor"].attributes["temperature"] == {"value": 21.3, "unit": "°C"}
        assert found["sensor"].attributes["illuminance"] == 30
    await it.command("switch:0", "power", "toggle")
    assert it.vendor.asked[-2].path != "/shelly" and json.loads(json.dumps(it.vendor.asked[3].json))["method"] == (
        "Switch.Toggle"
    )


@pytest.mark.parametrize(
    ("name", "id_", "shown"),
    [
        ("tasmota-switch.json", "relay:1", {"power": "on"}),
        ("tasmota-am2301.json", "sensor", {"temperature": {"value": 23, "unit": "°C"}}),
        ("tasmota-energy.json", "sensor", {"energy_today": {"value": 0.001, "unit": "kWh", "period": "today"}}),
    ],
)
async def test_tasmota(pool: WorkerPool, tmp_path: Path, name: str, id_: str, shown: dict[str, Any]) -> None:
    it = await start(pool, tmp_path, None, Vendor({"/cm": tasmota_status(name)}), "tasmota_http", password="pw-1")
    found = await it.poll()
    assert list(found) == [id_] and shown.items() <= dict(found[id_].attributes).items() and it.dropped == []
    assert it.vendor.asked[0].query == {"cmnd": "Status 0", "user": "admin", "password": "pw-1"}


async def test_tasmota_says_what_it_does_not_understand(pool: WorkerPool, tmp_path: Path) -> None:
    status = tasmota_status("tasmota-switch.json")
    answers = {"Status 0": status, "Power1 on": {"Command": "Unknown"}, "Power1 off": {"WARNING": "Need user"}}
    it = await start(pool, tmp_path, None, Vendor(lambda asked: answers[asked.query["cmnd"]]), "tasmota_http")
    await it.poll()
    assert await it.command("relay:1", "power", "on") == "Tasmota does not know: Power1 on"
    assert await it.command("relay:1", "power", "off") == "Tasmota asks for a password, or for another one"


async def test_open_meteo(pool: WorkerPool, tmp_path: Path) -> None:
    now = int(Clock().now().timestamp())
    quarters = [now // 900 * 900 + 900 * number for number in range(8)]
    answer = {
        "current": {
            "time": now,
            "temperature_2m": 4.5,
            "weather_code": 61,
            "cloud_cover": 97,
            "wind_direction_10m": 210,
        },
        "minutely_15": {"time": quarters, "precipitation": [0.0, 0.2, 0.3, None, 0.1, 5.0, 5.0, 5.0]},
        "daily": {"temperature_2m_max": [7.0], "temperature_2m_min": [None]},
    }
    it = await start(
        pool, tmp_path, None, Vendor({"/v1/forecast": answer}), "open_meteo", latitude=52.5, longitude=13.4
    )
    weather = (await it.poll())["here"].attributes
    assert (weather["weather_condition"], weather["cloud_coverage"]) == ("light rain", 97)
    assert weather["temperature_high"] == {"value": 7.0, "unit": "°C"} and "temperature_low" not in weather
    assert weather["custom.open_meteo.rain_next_hour"]["value"] == pytest.approx(0.6) and it.dropped == []
    assert it.adapter.poll_interval == 900 and it.vendor.asked[0].query["latitude"] == "52.5"


async def test_awattar(pool: WorkerPool, tmp_path: Path) -> None:
    hour = int(Clock().now().timestamp()) // 3600 * 3600
    rows = [
        {"start_timestamp": (hour + 3600 * n) * 1000, "end_timestamp": 0, "marketprice": price}
        for n, price in ((0, 80.5), (1, 40.0))
    ]
    raw = {"country": "at", "surcharge": 10, "vat_percent": 20}
    it = await start(pool, tmp_path, None, Vendor({"/v1/marketdata": {"data": rows}}), "awattar", **raw)
    shown = (await it.poll())["now"].attributes
    assert shown["custom.awattar.price"] == {"value": 21.66, "unit": "ct/kWh"}
    assert shown["custom.awattar.price_next"] == {"value": 16.8, "unit": "ct/kWh"}
    assert it.vendor.asked[0].origin == "austria" and 1 <= it.adapter.poll_interval <= 3601
