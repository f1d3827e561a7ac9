"""Tests of further bundled kinds. The values are invented, but their format follows the vendors' documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.clock import Clock
from appliance.errors import AdapterFailed, BadAnswer
from appliance.lua.running.worker_pool import WorkerPool
from tests.adapters.lua_kinds.bench import start
from tests.adapters.lua_kinds.simulators import Daikin, HomeWizardSocket, HueBridge, Sonos
from tests.adapters.lua_kinds.sources import (
    ANNA,
    FritzBox,
    Fronius,
    HomeWizardMeter,
    HomeWizardSecond,
    Ollama,
    Tibber,
)
from tests.adapters.lua_kinds.vendor import Vendor, header

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_homewizard_meter_and_socket(pool: WorkerPool, tmp_path: Path) -> None:
    meter = HomeWizardMeter()
    it = await start(pool, tmp_path, None, meter, "homewizard")
    shown = (await it.poll())["meter"].attributes
    assert shown["power_consumption"] == {"value": -543, "unit": "W"} and shown["custom.homewizard.tariff"] == 2
    assert shown["custom.homewizard.gas"]["value"] == 2569.646 and it.dropped == []
    for name in ("total_power_import_kwh", "total_power_export_kwh", "total_gas_m3"):
        del meter.data[name]
    shown = (await it.poll())["meter"].attributes
    assert shown["energy_total"]["value"] == pytest.approx(13779.338), "older firmware counts each tariff alone"
    assert shown["custom.homewizard.gas"]["value"] == 2569.646 and it.dropped == []

    socket = HomeWizardSocket()
    it = await start(pool, tmp_path, None, socket, "homewizard")
    await it.poll()
    for action, is_on in (("on", True), ("toggle", False), ("toggle", True)):
        assert await it.command("socket", "power", action) is None
        assert socket.state["power_on"] is is_on
    it = await start(pool, tmp_path, None, Vendor({"/api": (403, "{}")}), "homewizard")
    with pytest.raises(AdapterFailed, match="the local API is off"):
        await it.poll()


async def test_homewizard_over_version_2(pool: WorkerPool, tmp_path: Path) -> None:
    device = HomeWizardSecond()
    it = await start(pool, tmp_path, None, device, "homewizard")
    with pytest.raises(AdapterFailed, match="pair it, and set token"):
        await it.poll()
    with pytest.raises(AdapterFailed, match="press the button of the device"):
        await it.adapter.operations["pair"]({})
    device.is_pressed = True
    line = await it.adapter.operations["pair"]({})
    assert line == f'token = "{device.token}"'
    it = await start(pool, tmp_path, None, device, "homewizard", token=device.token)
    shown = (await it.poll())["meter"].attributes
    assert shown["power_consumption"] == {"value": -543, "unit": "W"} and shown["custom.homewizard.tariff"] == 2
    assert shown["energy_total"]["value"] == pytest.approx(13779.338)
    assert shown["custom.homewizard.gas"]["value"] == 2569.646 and it.dropped == [], "the newest meter counts"
    device.about["product_type"], device.data["state_of_charge_pct"], device.data["cycles"] = "HWE-BAT", 50.4, 123
    shown = (await it.poll())["meter"].attributes
    assert (shown["battery"], shown["custom.homewizard.cycles"]) == (50, 123)
    device.data = {}  # without a smart meter, each field is missing
    assert (await it.poll())["meter"].attributes["state"] == "online"


async def test_tibber(pool: WorkerPool, tmp_path: Path) -> None:
    vendor = Tibber()
    it = await start(pool, tmp_path, None, vendor, "tibber")
    found = await it.poll()
    assert set(found) == {"h1", "h2"} and it.dropped == []
    shown = found["h1"].attributes
    assert shown["custom.tibber.price"] == {"value": 0.2, "unit": "EUR/kWh"}
    assert (shown["custom.tibber.rank"], shown["custom.tibber.hours_of_day"]) == (2, 3)
    assert shown["custom.tibber.knows_tomorrow"] is False and it.adapter.poll_interval <= 3605
    vendor.token = "another"
    with pytest.raises(AdapterFailed, match="rejects the token"):
        await it.poll()
    vendor.answers = {"/v1-beta/gql": {"errors": [{"message": "the service is down"}], "data": None}}
    with pytest.raises(AdapterFailed, match="Tibber answers: the service is down"):
        await it.poll()


async def test_fronius_by_day_and_by_night(pool: WorkerPool, tmp_path: Path) -> None:
    vendor = Fronius()
    it = await start(pool, tmp_path, None, vendor, "fronius")
    shown = (await it.poll())["site"].attributes
    assert shown["power_consumption"] == {"value": 2320.4, "unit": "W"} and shown["battery"] == 62
    assert shown["custom.fronius.produced"]["value"] == 3520.4
    assert shown["custom.fronius.energy_today"] == {"value": 5.1, "unit": "kWh", "period": "today"}
    vendor.site.update(dict.fromkeys(vendor.site))
    shown = (await it.poll())["site"].attributes
    assert shown["custom.fronius.produced"]["value"] == 0 and "power_consumption" not in shown and it.dropped == []


async def test_daikin(pool: WorkerPool, tmp_path: Path) -> None:
    unit = Daikin()
    it = await start(pool, tmp_path, None, unit, "daikin")
    air = (await it.poll())["air"]
    assert (air.name, air.info.firmware, air.attributes["hvac_mode"]) == ("Notte", "1.2.54", "off")
    assert air.attributes["temperature_outdoor"]["value"] == 7.0 and "humidity" not in air.attributes
    assert await it.command("air", "hvac_mode", "set", "heat") is None
    reported = {name: unit.control[name] for name in ("pow", "mode", "stemp", "shum", "f_rate")}
    assert reported == {"pow": "1", "mode": "4", "stemp": "21.0", "shum": "0", "f_rate": "5"}, "each mode has its own"
    assert await it.command("air", "target_temperature", "set", {"value": 19.5, "unit": "°C"}) is None
    assert await it.command("air", "fan_mode", "set", "quiet") is None and unit.control["f_rate"] == "B"
    assert await it.command("air", "hvac_mode", "set", "dry") is None and unit.control["shum"] == "50"
    sentence = await it.command("air", "target_temperature", "set", {"value": 19.5, "unit": "°C"})
    assert sentence == "the unit has no target temperature in its present mode"
    assert await it.command("air", "hvac_mode", "set", "off") is None and unit.control["pow"] == "0"
    assert isinstance(unit.answers, dict)
    sensor = unit.answers.pop("/aircon/get_sensor_info")
    held = ["temperature" in (await it.poll())["air"].attributes for _ in range(5)]
    assert held == [True, True, True, False, False], "the last values hold for a few polls"
    air = (await (await start(pool, tmp_path, None, unit, "daikin")).poll())["air"]
    assert "temperature" not in air.attributes, "a unit without sensors is shown without values"
    unit.answers["/aircon/get_sensor_info"] = sensor
    del unit.control["f_rate"]
    air = (await it.poll())["air"]
    assert [each.capability for each in air.commands or ()] == [
        "hvac_mode",
        "target_temperature",
    ] and it.dropped == []


SENSED: tuple[tuple[dict[str, Any], str, Any], ...] = (
    ({"type": "motion", "motion": {"motion": True, "motion_valid": True}}, "motion", "detected"),
    ({"type": "motion", "motion": {"motion_report": {"motion": False}, "motion": True}}, "motion", "clear"),
    ({"type": "temperature", "temperature": {"temperature": 18.5}}, "temperature", {"value": 18.5, "unit": "°C"}),
    (
        {"type": "temperature", "temperature": {"temperature_report": {"temperature": 7.0}}},
        "temperature",
        {"value": 7.0, "unit": "°C"},
    ),
    ({"type": "light_level", "light": {"light_level": 20001}}, "illuminance", 100),
    ({"type": "light_level", "light": {"light_level_report": {"light_level": 1}}}, "illuminance", 1),
    ({"type": "contact", "contact_report": {"state": "no_contact"}}, "contact", "open"),
    ({"type": "device_power", "power_state": {"battery_level": 83, "battery_state": "normal"}}, "battery", 83),
)


async def test_hue_lamps_sensors_and_pushed_values(pool: WorkerPool, tmp_path: Path) -> None:
    bridge = HueBridge()
    bridge.others["device"] = [
        {"id": "d2", "type": "device", "metadata": {"name": "Dimmer"}, "services": [{"rid": "b1"}]},
        {"id": "d3", "type": "device", "metadata": {"name": "Bridge"}, "services": []},
    ]
    bridge.others["button"] = [{"id": "b1", "type": "button", "owner": {"rid": "d2"}, "button": {}}]
    it = await start(pool, tmp_path, None, bridge, "hue")
    found = await it.poll()
    assert set(found) == {"lamp1", "lamp2", "d2"} and it.dropped == []
    lamp = found["lamp1"]
    assert lamp.attributes["color_temperature"] == {"value": 2732, "unit": "kelvin"}
    assert lamp.attributes["brightness"] == 50 and lamp.info.model == "LTA001"
    [white] = [each for each in lamp.commands or () if each.capability == "color_temperature"]
    assert (white.min, white.max) == (2202, 6536), "the range of its schema"
    shown = bridge.lamps["light1"]
    assert await it.command("lamp1", "brightness", "set", 70) is None and shown["dimming"]["brightness"] == 70
    assert await it.command("lamp1", "color_temperature", "set", {"value": 2702, "unit": "kelvin"}) is None
    assert shown["color_temperature"]["mirek"] == 370
    assert await it.command("lamp1", "brightness", "set", 0) is None and shown["on"] == {"on": False}
    for resource, attribute, value in SENSED:
        bridge.others[resource["type"]] = [{"id": "s1", "owner": {"rid": "d2"}, **resource}]
        assert (await it.poll())["d2"].attributes[attribute] == value and it.dropped == [], resource
    bridge.connected["lamp2"]["status"] = "connectivity_issue"
    assert (await it.poll())["lamp2"].attributes["state"] == "unavailable"

    data = [
        {"id": "light1", "type": "light", "on": {"on": True}},
        {"id": "b1", "owner": {"rid": "d2"}, "button": {"button_report": {"event": "short_release"}}},
        {"id": "b1", "owner": {"rid": "d2"}, "button": {"last_event": "long_release"}},
        {"id": "b1", "owner": {"rid": "d2"}, "button": {"last_event": "double_short_release"}},
        "nonsense",
    ]
    message = {"event": "message", "data": [{"type": "update", "data": data}, 7], "id": "1"}
    pushed = await it.adapter.functions.call(["listen", "receive"], message)
    await it.adapter.apply_update("receive", pushed)
    assert it.registry.get_device("it:lamp1").attributes["power"] == "on"
    assert [(each.device_id, each.event) for each in it.happened] == [
        ("it:d2", name) for name in ("single", "long", "double")
    ]


async def test_a_hue_answer_without_a_list_removes_no_lamp(pool: WorkerPool, tmp_path: Path) -> None:
    bridge = HueBridge()
    it = await start(pool, tmp_path, None, bridge, "hue")
    await it.poll()
    for what in ("device", "light"):
        path = f"/clip/v2/resource/{what}"

        def answer(asked: WebRequest, path: str = path) -> Any:
            return {"data": "12"} if asked.path == path else bridge.answer(asked)

        it.adapter.functions.transport = Vendor(answer)
        with pytest.raises(AdapterFailed, match=f"the bridge answers without a list of {what}"):
            await it.poll()
    assert {"it:lamp1", "it:lamp2"} <= {each.id for each in it.registry.list_devices()}


async def test_hue_is_paired_by_its_button(pool: WorkerPool, tmp_path: Path) -> None:
    answers: list[Any] = [[{"error": {"type": 101}}], [{"success": {"username": "abc123"}}]]
    it = await start(pool, tmp_path, None, Vendor(lambda asked: answers.pop(0)), "hue")
    with pytest.raises(BadAnswer, match="press the button of the bridge"):
        await it.adapter.operations["pair"]({})
    assert await it.adapter.operations["pair"]({}) == 'headers = { hue-application-key = "abc123" }'


async def test_sonos(pool: WorkerPool, tmp_path: Path) -> None:
    speaker = Sonos()
    it = await start(pool, tmp_path, None, speaker, "sonos")
    player = (await it.poll())["player"]
    assert (player.name, player.info.model, player.attributes["media_title"]) == ("Kitchen", "Sonos One", "Song")
    assert await it.command("player", "media_playback", "play") is None
    assert await it.command("player", "volume", "set", 35) is None
    assert await it.command("player", "muted", "mute") is None
    shown = it.registry.get_device("it:player").attributes
    assert (shown["media_playback"], shown["volume"], shown["muted"]) == ("playing", 35, True) and it.dropped == []
    speaker.fault = "800"
    sentence = await it.command("player", "media_playback", "pause")
    assert sentence == "the player refuses Pause (another player leads its group; command that one)"
    assert isinstance(speaker.answers, dict)
    for page in ("<html/>", "<errorCode>701</errorCode>"):
        speaker.answers["/MediaRenderer/AVTransport/Control"] = lambda asked, page=page: (
            (500, page) if "GetPositionInfo" in header(asked, "SOAPACTION") else speaker._call(asked)
        )
        assert "media_title" not in (await it.poll())["player"].attributes


async def test_fritzbox(pool: WorkerPool, tmp_path: Path) -> None:
    box = FritzBox()
    people = ["Anna=aa:bb:cc:dd:ee:ff", "Ben = 11:22:33:44:55:66", "Carl=00:00:00:00:00:01"]
    it = await start(pool, tmp_path, None, box, "fritzbox", people=people)
    found = await it.poll()
    assert {name: each.attributes["presence"] for name, each in found.items()} == {
        "anna": True,
        "ben": False,
        "carl": False,
    }
    box.active[ANNA] = "0"
    assert (await it.poll())["anna"].attributes["presence"] is True, "a phone sleeps"
    it.adapter.functions.memory[ANNA] = int(Clock().now().timestamp()) - 301
    assert (await it.poll())["anna"].attributes["presence"] is False and it.dropped == []
    box.active.update(dict.fromkeys(box.active, "1"))
    assert (await it.poll())["anna"].attributes["presence"] is True
    box.active.update(dict.fromkeys(box.active, "0"))
    it.adapter.functions.memory = {}
    assert (await it.poll())["anna"].attributes["presence"] is True, "a phone slept while the hub started again"
    people = [f"Jörg={ANNA}", f"Jürg={ANNA}"]
    assert len(await (await start(pool, tmp_path, None, box, "fritzbox", people=people)).poll()) == 2
    wrong = await start(pool, tmp_path, None, box, "fritzbox", people=["Anna"])
    with pytest.raises(AdapterFailed, match="people must be written as"):
        await wrong.poll()


async def test_ollama(pool: WorkerPool, tmp_path: Path) -> None:
    model = Ollama()
    it = await start(pool, tmp_path, None, model, "ollama")
    assert await it.poll() == {} and it.adapter.operation_secs["chat"] == 300
    assert await it.adapter.operations["chat"]({"prompt": "Rain?"}) == model.reply
    asked = it.vendor.asked[-1]
    assert asked.json == {"model": "llama3.2", "messages": [{"role": "user", "content": "Rain?"}], "stream": False}
    assert asked.timeout_secs == 300
    with pytest.raises(BadAnswer, match="chat needs a prompt, or messages"):
        await it.adapter.operations["chat"]({})
    gone = await start(pool, tmp_path, None, Vendor({"/api/chat": (404, '{"error": "model not found"}')}), "ollama")
    with pytest.raises(BadAnswer, match="Ollama answers: model not found"):
        await gone.adapter.operations["chat"]({"prompt": "x"})
