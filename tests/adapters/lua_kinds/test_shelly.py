"""The kind shelly, with captures of real devices and answers from Shelly's documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.base import HookRequest
from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.errors import AdapterFailed
from appliance.lua.running.worker_pool import WorkerPool
from tests.adapters.contract import trial
from tests.adapters.lua_kinds.bench import KindAtWork, section, start
from tests.adapters.lua_kinds.bundled import BUNDLED
from tests.adapters.lua_kinds.simulators import ShellyOne, ShellyTwo
from tests.adapters.lua_kinds.vendor import Answer, Vendor
from tests.fakes.patience import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


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
        ("shelly-wall-display.json", ["sensor", "switch:0", "thermostat:0"]),
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
    ({"temperature:100": {"tC": 5.5}}, "sensor", {"temperature": 5.5}),
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
        {
            "custom.shelly.gas": {"value": 7, "unit": "ppm"},
            "custom.shelly.gas_alarm": "mild",
            "custom.shelly.gas_detected": True,
        },
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


@pytest.mark.parametrize(
    ("gas", "detected"),
    [
        ({"sensor_state": "normal", "alarm_state": "heavy"}, True),
        ({"sensor_state": "fault", "alarm_state": "heavy"}, True),
        ({"sensor_state": "normal", "alarm_state": "none"}, False),
        ({"sensor_state": "fault", "alarm_state": "none"}, None),
        ({"sensor_state": "normal", "alarm_state": "test"}, None),
    ],
)
async def test_gas_is_an_alarm_and_a_faulty_sensor_reports_no_clear_air(
    pool: WorkerPool, tmp_path: Path, gas: dict[str, str], detected: bool | None
) -> None:
    status = {"mac": "AABB", "gas_sensor": gas, "concentration": {"ppm": 7, "is_valid": True}}
    vendor = Vendor({"/shelly": {"mac": "AABB", "type": "SHGS-1"}, "/status": status})
    it = await start(pool, tmp_path, None, vendor, "shelly")
    device = (await it.poll())["sensor"]
    assert device.attributes.get("custom.shelly.gas_detected") is detected
    assert detected is None or device.is_alarm("custom.shelly.gas_detected")


async def test_a_shelly_that_is_busy_or_updates_is_still_a_shelly(pool: WorkerPool, tmp_path: Path) -> None:
    plug = ShellyTwo("shelly-plus-plug-s.json")
    it = await start(pool, tmp_path, None, plug, "shelly")
    await it.poll()
    calls: list[WebRequest] = []

    def refuse_first(asked: WebRequest) -> Answer:
        calls.append(asked)
        return {"id": 1, "error": {"code": 429, "message": "busy"}} if len(calls) == 1 else plug.answer(asked)

    plug.odd["/rpc"] = refuse_first
    assert await it.command("switch:0", "power", "on") is None and len(calls) == 2
    calls.clear()
    assert "the Shelly refuses: busy" in str(await it.command("switch:0", "power", "toggle")) and len(calls) == 1
    plug.odd["/rpc/Shelly.GetStatus"] = {"status": "Updating"}
    with pytest.raises(
        AdapterFailed, match=r'at this address answers "Updating" \(/rpc/Shelly.GetStatus: status 200, w'
    ):
        await it.poll()


async def test_the_white_channel_of_a_shelly_lamp(pool: WorkerPool, tmp_path: Path) -> None:
    lamp = {"output": True, "rgb": [1, 2, 3], "brightness": 50, "white": 7}

    def set_white(asked: WebRequest) -> Answer:
        lamp.update(asked.json["params"])
        return {"id": 1, "result": None}

    about = {"mac": "AABB", "model": "X", "gen": 2}
    vendor = Vendor({"/shelly": about, "/rpc": set_white, "/rpc/Shelly.GetStatus": {"sys": {}, "rgbw:0": lamp}})
    it = await start(pool, tmp_path, None, vendor, "shelly")
    assert (await it.poll())["rgbw:0"].attributes["custom.shelly.white"] == 7
    assert await it.command("rgbw:0", "custom.shelly.white", "set", 200) is None and lamp["white"] == 200


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


def second(status: dict[str, Any], config: dict[str, Any] | None = None) -> Vendor:
    """Return a device of the second generation with these components."""
    return Vendor(
        {
            "/shelly": {"mac": "AABB", "model": "X", "gen": 2, "name": "Desk"},
            "/rpc/Shelly.GetStatus": {"sys": {"mac": "AABB"}, **status},
            "/rpc/Shelly.GetConfig": config or (404, ""),
            "/rpc": lambda asked: apply_call(status, asked.json),
        }
    )


def apply_call(status: dict[str, Any], call: dict[str, Any]) -> Answer:
    """Apply the call to its component."""
    params = dict(call["params"])
    part = status[f"{call['method'].partition('.')[0].lower()}:{params.pop('id')}"]
    if "on" in params:
        part["output"] = params.pop("on")
    part.update(params)
    return {"id": call["id"], "result": {}}


LIGHTS: tuple[tuple[str, dict[str, Any], dict[str, Any], list[str]], ...] = (
    (
        "cct:0",
        {"output": True, "brightness": 40, "ct": 3000},
        {
            "power": "on",
            "brightness": 40,
            "color_temperature": {"value": 3000, "unit": "kelvin"},
            "color_mode": "color_temp",
        },
        ["brightness", "color_temperature", "power"],
    ),
    (
        "rgb:0",
        {"output": False, "brightness": 40, "rgb": [1, 2, 3]},
        {"power": "off", "brightness": 40, "color_rgb": {"r": 1, "g": 2, "b": 3}, "color_mode": "rgb"},
        ["brightness", "color_rgb", "power"],
    ),
    (
        "rgbw:0",
        {"output": True, "brightness": 40, "rgb": [1, 2, 3], "white": 9},
        {"power": "on", "brightness": 40, "color_rgb": {"r": 1, "g": 2, "b": 3}},
        ["brightness", "color_rgb", "custom.shelly.white", "power"],
    ),
    (
        "rgbcct:0",
        {"output": True, "brightness": 40, "rgb": [1, 2, 3], "ct": 3000, "mode": "cct"},
        {"power": "on", "color_temperature": {"value": 3000, "unit": "kelvin"}, "color_mode": "color_temp"},
        ["brightness", "color_rgb", "color_temperature", "power"],
    ),
)


@pytest.mark.parametrize(("key", "reported", "shown", "commands"), LIGHTS)
async def test_lights_of_the_second_generation(
    pool: WorkerPool, tmp_path: Path, key: str, reported: dict[str, Any], shown: dict[str, Any], commands: list[str]
) -> None:
    vendor = second({key: {"id": 0, **reported}}, {key: {"id": 0, "ct_range": [2500, 6000]}})
    it = await start(pool, tmp_path, None, vendor, "shelly")
    lamp = (await it.poll())[key]
    assert lamp.kind == "Light" and lamp.name == "Desk" and it.dropped == []
    assert {**lamp.attributes, **shown} == lamp.attributes
    assert key != "rgbcct:0" or "color_rgb" not in lamp.attributes, "its mode is white"
    assert [each.capability for each in lamp.commands or ()] == commands
    for capability, action, value in (
        ("power", "off", None),
        ("power", "toggle", None),
        ("brightness", "set", 70),
        ("color_rgb", "set", {"r": 9, "g": 8, "b": 7}),
        ("color_temperature", "set", {"value": 250, "unit": "mireds"}),
    ):
        if capability in commands:
            if action == "toggle":
                continue
            assert await it.command(key, capability, action, value) is None, capability
    if "color_temperature" in commands:
        [white] = [each for each in lamp.commands or () if each.capability == "color_temperature"]
        assert (white.min, white.max) == (2500, 6000)
        assert vendor.asked[-2].json["params"]["ct"] == 4000


async def test_channels_have_their_configured_names(pool: WorkerPool, tmp_path: Path) -> None:
    vendor = ShellyTwo()
    vendor.config = {"switch:0": {"name": "Pump"}, "switch:2": {"name": ""}}
    it = await start(pool, tmp_path, None, vendor, "shelly")
    for _ in range(2):
        found = await it.poll()
    assert [each.name for each in found.values()] == ["Pump", "Test Name 2", "Test Name 3"]
    assert [each.path for each in vendor.asked].count("/rpc/Shelly.GetConfig") == 1, "it is asked once"
    first = ShellyOne()
    first.odd["/settings"] = {"name": "Test Name", "relays": [{"name": "Kettle"}]}
    it = await start(pool, tmp_path, None, first, "shelly")
    assert (await it.poll())["switch:0"].name == "Kettle"
    first.odd["/settings"] = (500, "<html>")
    it = await start(pool, tmp_path, None, first, "shelly")
    assert (await it.poll())["switch:0"].name == "Test Name"


async def receive(it: KindAtWork, message: Any) -> None:
    """Pass a message to the kind, as the kind's connection does."""
    await it.adapter.apply_update("receive", await it.adapter.functions.call(["listen", "receive"], message))


async def test_presses_of_the_second_generation_are_pushed(pool: WorkerPool, tmp_path: Path) -> None:
    """An i4 has only inputs."""
    vendor = second({f"input:{n}": {"id": n, "state": None} for n in range(4)}, {"input:1": {"name": "Bell"}})
    it = await start(pool, tmp_path, None, vendor, "shelly")
    found = await it.poll()
    assert {each.info.device_class for each in found.values()} == {"button"} and it.dropped == []
    assert [each.name for each in found.values()] == ["Desk input 1", "Bell", "Desk input 3", "Desk input 4"]
    raw = (
        "btn_down",
        "btn_up",
        "single_push",
        "double_push",
        "triple_push",
        "btn_down",
        "long_push",
        "btn_up",
        "btn_up",
    )
    reported = [{"component": "input:1", "id": 1, "event": name} for name in raw]
    await receive(
        it, {"src": "x", "method": "NotifyEvent", "params": {"ts": 1, "events": [*reported, "odd", {"event": "x"}]}}
    )
    assert [each.event for each in it.happened] == ["single", "double", "triple", "long", "release"]
    assert {each.device_id for each in it.happened} == {"it:input:1"}
    assert it.happened[0].data == {"raw": "single_push"}


async def test_changes_of_the_second_generation_are_pushed(pool: WorkerPool, tmp_path: Path) -> None:
    status = {
        "switch:0": {"output": False, "apower": 0},
        "temperature:100": {"tC": 5.5},
        "temperature:101": {"tC": 6.5},
    }
    vendor = second(status, {"switch:0": {"name": "A"}})
    it = await start(pool, tmp_path, None, vendor, "shelly")
    assert set(await it.poll()) == {"switch:0", "sensor", "temperature:101"}
    reported = {
        "ts": 1,
        "switch:0": {"id": 0, "apower": 7.5},
        "temperature:100": {"tC": 7},
        "temperature:101": {"tC": 8},
    }
    await receive(it, {"method": "NotifyStatus", "params": {**reported, "odd:0": {"output": True}, "sys": {}}})
    shown = {each.id: each.attributes for each in it.registry.list_devices()}
    assert shown["it:switch:0"]["power"] == "off" and shown["it:switch:0"]["power_consumption"]["value"] == 7.5
    assert [shown[f"it:{id_}"]["temperature"]["value"] for id_ in ("sensor", "temperature:101")] == [7, 8]
    vendor.answers["/rpc/Shelly.GetConfig"] = {"switch:0": {"name": "B"}}  # type: ignore[index]
    changed = {"component": "sys", "event": "config_changed"}
    await receive(it, {"method": "NotifyEvent", "params": {"events": [changed]}})
    assert (await it.poll())["switch:0"].name == "B" and it.dropped == []


@pytest.mark.parametrize("password", ["", "pw-1234"])
async def test_the_connection_of_the_second_generation(password: str) -> None:
    def simulate() -> ShellyTwo:
        vendor = ShellyTwo(password=password)
        vendor.status["input:0"]["state"] = None
        vendor.config["input:0"] = {"type": "button"}
        return vendor

    from dataclasses import replace

    stated = {"poll_interval_secs": 3600, **({"password": password, "auth": "digest"} if password else {})}
    subject = replace(
        BUNDLED["shelly_two"].subject(),
        simulate=simulate,
        settings=lambda vendor: section("shelly", {"base_url": vendor.url, **stated}, "it"),
    )
    async with trial(subject) as it:
        await until(lambda: it.vendor.sockets)
        await it.vendor.press(0, "btn_down", "single_push")
        await until(lambda: [each.event for each in it.happened if hasattr(each, "event")] == ["single"])
        await it.vendor.notify("NotifyStatus", {"switch:2": {"id": 2, "output": True}})
        await until(lambda: it.registry.get_device("it:switch:2").attributes["power"] == "on")


async def test_presses_of_the_first_generation_come_from_counters(pool: WorkerPool, tmp_path: Path) -> None:
    inputs: list[dict[str, Any]] = [
        {"input": 0, "event": "", "event_cnt": 4},
        {"input": 0, "event": "L", "event_cnt": 2},
    ]
    vendor = Vendor({"/shelly": {"mac": "AABB", "type": "SHIX3-1"}, "/status": {"mac": "AABB", "inputs": inputs}})
    it = await start(pool, tmp_path, None, vendor, "shelly")
    assert set(await it.poll()) == {"input:0", "input:1"} and it.happened == []
    for event, count in (("S", 5), ("S", 5), ("SS", 6), ("SSS", 7), ("L", 8), ("SL", 9), ("S", 1)):
        inputs[0].update(event=event, event_cnt=count)
        await it.poll()
    names = ["single", "double", "triple", "long", "single_long", "single"]
    assert [each.event for each in it.happened] == names and it.happened[0].device_id == "it:input:0"
    await it.adapter.hook(HookRequest(hook="it", method="GET"))
    assert it.adapter._is_poll_due, "the action URL of a press asks for a poll"
    assert (await it.adapter.functions.call(["listen", "path"])).first is None, "it has no WebSocket"


async def test_inputs_of_an_output_are_not_separate_devices(pool: WorkerPool, tmp_path: Path) -> None:
    parts = {
        "switch:0": {"output": True},
        "switch:1": {"output": True},
        "input:0": {"state": False},
        "input:1": {"state": True},
    }
    vendor = second(
        parts, {"input:0": {"type": "switch"}, "input:1": {"type": "switch"}, "switch:1": {"in_mode": "detached"}}
    )
    it = await start(pool, tmp_path, None, vendor, "shelly")
    found = await it.poll()
    assert (
        set(found) == {"switch:0", "switch:1", "input:1"}
        and found["input:1"].attributes["custom.shelly.input"] is True
    )
    status: dict[str, Any] = {
        "mac": "AABB",
        "relays": [{"ison": True}],
        "inputs": [{"input": 0, "event": "", "event_cnt": 0}],
    }
    vendor = Vendor({"/shelly": {"mac": "AABB", "type": "SHSW-1"}, "/status": status})
    it = await start(pool, tmp_path, None, vendor, "shelly")
    assert set(await it.poll()) == {"switch:0"}
    status["inputs"][0].update(event="S", event_cnt=1)
    assert set(await it.poll()) == {"switch:0", "input:0"} and [each.event for each in it.happened] == ["single"]


async def test_sensors_of_add_ons(pool: WorkerPool, tmp_path: Path) -> None:
    parts = {
        "switch:0": {"output": True},
        "temperature:100": {"tC": 1.5},
        "temperature:101": {"tC": 2.5},
        "humidity:100": {"rh": 40},
    }
    parts |= {"input:100": {"state": True}, "input:101": {"percent": 51.5}, "voltmeter:100": {"voltage": 3.1}}
    config = {"temperature:101": {"name": "Boiler"}, "input:101": {"type": "analog"}, "input:100": {"type": "switch"}}
    it = await start(pool, tmp_path, None, second(parts, config), "shelly")
    found = await it.poll()
    assert (
        found["sensor"].attributes["temperature"]["value"] == 1.5
        and found["sensor"].attributes["humidity"]["value"] == 40
    )
    assert (
        found["temperature:101"].name == "Boiler"
        and found["temperature:101"].attributes["temperature"]["value"] == 2.5
    )
    assert found["voltmeter:100"].attributes["voltage"]["value"] == 3.1
    assert found["input:101"].attributes["custom.shelly.percent"] == 51.5 and it.dropped == []
    status = {"mac": "AABB", "relays": [{"ison": True}], "tmp": {"tC": 55, "is_valid": True}}
    status |= {"ext_temperature": {"0": {"hwID": "a", "tC": 20.5}, "1": {"hwID": "b", "tC": 21.5}}}
    status |= {"ext_humidity": {"0": {"hwID": "c", "hum": 44}}}
    vendor = Vendor({"/shelly": {"mac": "AABB", "type": "SHSW-1"}, "/status": status})
    found = await (await start(pool, tmp_path, None, vendor, "shelly")).poll()
    assert set(found) == {"switch:0", "sensor", "temperature:101"}
    assert found["sensor"].attributes["temperature"]["value"] == 20.5, "the chip does not count"
    assert found["sensor"].attributes["humidity"]["value"] == 44


async def test_lamps_of_the_first_generation(pool: WorkerPool, tmp_path: Path) -> None:
    light = {
        "ison": True,
        "mode": "color",
        "red": 1,
        "green": 2,
        "blue": 3,
        "gain": 30,
        "temp": 3000,
        "brightness": 80,
    }

    def switch(asked: WebRequest) -> Answer:
        light.update({key: value if key in ("mode", "turn") else int(value) for key, value in asked.query.items()})
        return light

    vendor = Vendor({"/shelly": {"mac": "AABB", "type": "SHCB-1"}, "/status": {"mac": "AABB", "lights": [light]}})
    vendor.odd["/light/0"] = switch
    it = await start(pool, tmp_path, None, vendor, "shelly")
    lamp = (await it.poll())["light:0"]
    assert (lamp.attributes["color_rgb"], lamp.attributes["brightness"]) == ({"r": 1, "g": 2, "b": 3}, 30)
    assert await it.command("light:0", "color_temperature", "set", {"value": 4000, "unit": "kelvin"}) is None
    shown = it.registry.get_device("it:light:0").attributes
    assert shown["color_temperature"] == {"value": 4000, "unit": "kelvin"} and shown["brightness"] == 80
    assert await it.command("light:0", "color_rgb", "set", {"r": 200, "g": 0, "b": 9}) is None
    assert light["mode"] == "color" and it.dropped == []


async def test_a_toggle_of_the_first_generation_is_sent_as_on_or_off(pool: WorkerPool, tmp_path: Path) -> None:
    plug = ShellyOne()
    it = await start(pool, tmp_path, None, plug, "shelly")
    await it.poll()
    assert await it.command("switch:0", "power", "toggle") is None
    assert [each.query["turn"] for each in plug.asked if each.path == "/relay/0"] == ["on"]


async def test_unknown_parts_are_named_once(
    pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vendor = second({"switch:0": {"output": True}, "fan:0": {"speed": 3}, "script:1": {"running": True}})
    it = await start(pool, tmp_path, None, vendor, "shelly")
    for _ in range(2):
        await it.poll()
    [line] = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert line == "the Shelly has a part that this kind does not know: fan:0"
    it = await start(pool, tmp_path, None, second({"fan:0": {"speed": 3}}), "shelly")
    await it.adapter.poll_once()
    assert caplog.records[-1].getMessage() == (
        "it: the answer contains no device; it contains /shelly: mac, model, gen, name; "
        "/rpc/Shelly.GetConfig: nothing; /rpc/Shelly.GetStatus: sys, fan:0"
    )


CELSIUS_21 = {"value": 21, "unit": "°C"}
AT_20, AT_22 = {"value": 20, "unit": "°C"}, {"value": 22, "unit": "°C"}


async def test_the_thermostat_of_a_wall_display(pool: WorkerPool, tmp_path: Path) -> None:
    display = ShellyTwo("shelly-wall-display.json")
    it = await start(pool, tmp_path, None, display, "shelly")
    shown = (await it.poll())["thermostat:0"]
    assert shown.attributes == {
        "target_temperature": CELSIUS_21,
        "temperature": {"value": 21.3, "unit": "°C"},
        "hvac_mode": "heat",
        "hvac_state": "idle",
        "state": "online",
    }
    assert await it.command("thermostat:0", "target_temperature", "set", AT_22) is None
    assert await it.command("thermostat:0", "hvac_mode", "set", "off") is None
    assert (display.status["thermostat:0"]["target_C"], display.status["thermostat:0"]["enable"]) == (22, False)
    display.status["thermostat:0"] |= {"enable": True, "output": True}
    display.config["thermostat:0"] = {"type": "cooling"}
    it.adapter.functions.memory = {}
    shown = (await it.poll())["thermostat:0"]
    assert (shown.attributes["hvac_mode"], shown.attributes["hvac_state"]) == ("cool", "cooling") and it.dropped == []


async def test_a_radiator_valve_of_the_first_generation(pool: WorkerPool, tmp_path: Path) -> None:
    """From Shelly's published answer of the TRV."""
    valve = {"pos": 30.0, "target_t": {"enabled": True, "value": 20, "units": "C"}, "schedule": False}
    valve["tmp"] = {"value": 19.5, "units": "C", "is_valid": True}
    status = {"mac": "AABB", "thermostats": [valve], "bat": {"value": 88, "voltage": 3.9}, "calibrated": True}

    def set_target(asked: Any) -> Any:
        valve["target_t"] = {"enabled": True, "value": float(asked.query["target_t"]), "units": "C"}
        return valve

    answers = {"/shelly": {"type": "SHTRV-01", "mac": "AABB"}, "/status": status, "/thermostat/0": set_target}
    it = await start(pool, tmp_path, None, Vendor(answers), "shelly")
    found = await it.poll()
    assert list(found) == ["thermostat:0"] and it.dropped == []
    assert found["thermostat:0"].attributes == {
        "target_temperature": AT_20,
        "temperature": {"value": 19.5, "unit": "°C"},
        "battery": 88,
        "hvac_state": "heating",
        "custom.shelly.valve": 30,
        "state": "online",
    }
    assert await it.command("thermostat:0", "target_temperature", "set", AT_22) is None
    [sent] = [each.query for each in it.vendor.asked if each.path == "/thermostat/0"]
    assert sent == {"target_t_enabled": "1", "target_t": "22"}


def component(key: str, status: dict[str, Any], **config: Any) -> dict[str, Any]:
    """Return a component of a gateway, as listed by `Shelly.GetComponents`."""
    number = int(key.partition(":")[2])
    return {"key": key, "status": {"id": number, **status}, "config": {"id": number, **config}}


def objects(address: str, *values: tuple[int, int, Any]) -> list[dict[str, Any]]:
    """Return a device's sensors, each made from its object id, index, and value. At address `b`, the sensors' numbers
    begin at 210."""
    first = 210 if address == "b" else 200
    return [
        component(f"bthomesensor:{first + at}", {"value": value}, addr=address, obj_id=number, idx=index)
        for at, (number, index, value) in enumerate(values)
    ]


@pytest.mark.slow
async def test_valves_and_sensors_behind_a_bluetooth_gateway(pool: WorkerPool, tmp_path: Path) -> None:
    gateway = ShellyTwo()
    for key in [key for key in gateway.status if key.startswith(("switch", "input"))]:
        del gateway.status[key]
    gateway.status["bthome"] = {}
    trv = {"target_C": 20, "current_C": 18.5, "pos": 54, "connected": True, "battery": 100, "fw_ver": "v1.2.10"}
    gateway.behind = [
        component("blutrv:200", trv, addr="t", name="Bath", trv="bthomedevice:202"),
        component("bthomedevice:202", {"battery": 100}, addr="t"),
        component("bthomedevice:200", {"battery": 90}, addr="a", name="Door"),
        component("bthomedevice:201", {"battery": 80}, addr="b", name="Outside"),
        *objects("a", (45, 0, True), (58, 0, None), (5, 0, 12.6), (99, 0, 7)),
        *objects("b", (69, 0, 10.2), (69, 1, 11.5), (46, 0, 79)),
    ]
    it = await start(pool, tmp_path, None, gateway, "shelly")
    found = await it.poll()
    shown = {id_: {**each.attributes} for id_, each in found.items()}
    assert it.dropped == [] and {each.name for each in found.values()} == {"Bath", "Door", "Outside"}
    assert shown == {
        "blutrv:200": {
            "target_temperature": AT_20,
            "temperature": {"value": 18.5, "unit": "°C"},
            "battery": 100,
            "hvac_state": "heating",
            "custom.shelly.valve": 54,
            "state": "online",
        },
        "bthomedevice:200": {
            "battery": 90,
            "contact": "open",
            "illuminance": 13,
            "custom.shelly.object_99": 7,
            "state": "online",
        },
        "bthomedevice:201": {
            "battery": 80,
            "temperature": {"value": 10.2, "unit": "°C"},
            "custom.shelly.temperature_2": {"value": 11.5, "unit": "°C"},
            "humidity": {"value": 79, "unit": "%"},
            "state": "online",
        },
    }
    asked = len(gateway.asked)
    assert {id_: {**each.attributes} for id_, each in (await it.poll()).items()} == shown
    assert len(gateway.asked) == asked + 1, "the components are read once a minute; their changes are pushed"
    await receive(it, {"method": "NotifyStatus", "params": {"bthomesensor:200": {"value": False}}})
    await receive(it, {"method": "NotifyStatus", "params": {"blutrv:200": {"pos": 0}}})
    assert it.registry.get_device("it:bthomedevice:200").attributes["contact"] == "closed"
    assert it.registry.get_device("it:blutrv:200").attributes["hvac_state"] == "idle"
    press = [{"component": key, "event": "single_push"} for key in ("bthomesensor:201", "bthomedevice:200")]
    await receive(it, {"method": "NotifyEvent", "params": {"events": press}})
    assert [(each.device_id, each.event) for each in it.happened] == [("it:bthomedevice:200", "single")]
    assert await it.command("blutrv:200", "target_temperature", "set", AT_22) is None
    gateway.behind[0]["status"]["connected"] = False
    assert (await it.poll())["blutrv:200"].attributes["state"] == "unavailable"


async def test_the_slats_of_a_cover(pool: WorkerPool, tmp_path: Path) -> None:
    """From Shelly's documentation of `Cover.GoToPosition`. A tilt alone would end the movement of the cover."""
    cover: dict[str, Any] = {"id": 0, "state": "opening", "current_pos": 40, "target_pos": 70, "slat_pos": 0}

    def go(asked: Any) -> Any:
        cover["slat_pos"] = asked.json["params"]["slat_pos"]
        return {"id": 1, "result": None}

    vendor = Vendor({
        "/shelly": {"mac": "AABB", "model": "S3SW-002P16EU", "gen": 3},
        "/rpc/Shelly.GetStatus": lambda _: {"sys": {"mac": "AABB"}, "cover:0": cover},
        "/rpc/Cover.GetStatus": lambda _: cover,
        "/rpc": go,
    })  # fmt: skip
    it = await start(pool, tmp_path, None, vendor, "shelly")
    found = (await it.poll())["cover:0"]
    assert (found.attributes["cover_position"], found.attributes["cover_tilt"]) == (40, 0) and it.dropped == []
    for target, action, value, sent in ((70, "set", 30, 30), (None, "open", None, 100), (None, "close", None, 0)):
        cover["target_pos"] = target
        assert await it.command("cover:0", "cover_tilt", action, value) is None
        asked = [each.json for each in it.vendor.asked if each.path == "/rpc"][-1]
        more = {} if target is None else {"pos": target}
        assert asked == {"id": 1, "method": "Cover.GoToPosition", "params": {"id": 0, "slat_pos": sent, **more}}
        assert it.registry.get_device("it:cover:0").attributes["cover_tilt"] == sent


async def test_zones_of_a_presence_sensor_and_virtual_components(pool: WorkerPool, tmp_path: Path) -> None:
    device = ShellyTwo()
    for key in [key for key in device.status if key.startswith(("switch", "input"))]:
        del device.status[key]
    device.status["bthome"] = {}
    number = {"min": 0, "max": 10, "meta": {"ui": {"unit": "bar"}}}
    device.behind = [
        component("presencezone:200", {"value": False, "num_objects": 0}, name="Sofa"),
        component("boolean:200", {"value": True}, name="Holiday"),
        component("number:201", {"value": 4.5}, name="Pressure", **number),
        component("enum:202", {"value": None}, name="Program", options=["eco", "boost"]),
        component("text:203", {"value": "hello"}, name="Note"),
        component("button:204", {}, name="Bell"),
        component("group:200", {"value": ["boolean:200", "button:204"]}, name="Hall"),
    ]
    it = await start(pool, tmp_path, None, device, "shelly")
    found = await it.poll()
    shown = {id_: {**each.attributes} for id_, each in found.items()}
    assert it.dropped == [] and {each.pop("state") for each in shown.values()} == {"online"}
    assert shown == {
        "presencezone:200": {"occupancy": "unoccupied", "custom.shelly.people": 0},
        "boolean:200": {"custom.shelly.value": True},
        "number:201": {"custom.shelly.value": 4.5},
        "enum:202": {},
        "text:203": {"custom.shelly.value": "hello"},
        "button:204": {},
        "group:200": {"custom.shelly.members": "boolean:200, button:204"},
    }
    assert {each.name for each in found.values()} == {
        "Sofa", "Holiday", "Pressure", "Program", "Note", "Bell", "Hall"
    }  # fmt: skip
    in_group = [id_ for id_, each in found.items() if each.info.parent_id == "it:group:200"]
    assert in_group == ["boolean:200", "button:204"]
    assert {id_: [each.schema() for each in found[id_].commands or ()] for id_ in found} == {
        "presencezone:200": [],
        "boolean:200": [{"type": "boolean", "values": []}],
        "number:201": [{"type": "number", "values": [], "min": 0, "max": 10, "unit": "bar"}],
        "enum:202": [{"type": "enum", "values": ["eco", "boost"]}],
        "text:203": [{"type": "string", "values": []}],
        "button:204": [{"type": "string", "values": []}],
        "group:200": [],
    }
    await receive(it, {"method": "NotifyStatus", "params": {"presencezone:200": {"value": True, "num_objects": 2}}})
    zone = it.registry.get_device("it:presencezone:200").attributes
    assert (zone["occupancy"], zone["custom.shelly.people"]) == ("occupied", 2)
    assert await it.command("boolean:200", "custom.shelly.value", "set", value=False) is None
    assert await it.command("enum:202", "custom.shelly.value", "set", "boost") is None
    assert await it.command("button:204", "custom.shelly.button", "press") is None
    sent = [each.json for each in it.vendor.asked if each.json and each.json["method"].endswith((".Set", ".Trigger"))]
    assert [(each["method"], each["params"]) for each in sent] == [
        ("Boolean.Set", {"id": 200, "value": False}),
        ("Enum.Set", {"id": 202, "value": "boost"}),
        ("Button.Trigger", {"id": 204, "event": "single_push"}),
    ]
    await receive(
        it, {"method": "NotifyEvent", "params": {"events": [{"component": "button:204", "event": "long_push"}]}}
    )
    assert [(each.device_id, each.event) for each in it.happened] == [("it:button:204", "long")]
    await receive(it, {"method": "NotifyStatus", "params": {"group:200": {"value": ["text:203"]}}})
    assert it.registry.get_device("it:group:200").attributes["custom.shelly.members"] == "text:203"
