"""Further kinds that come with Lares, over figures of our own in the forms that the vendors publish."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.clock import Clock
from appliance.errors import AdapterFailed, BadAnswer
from appliance.lua.worker_pool import WorkerPool
from tests.adapters.lua_kinds.bench import Answer, Vendor, start

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_homewizard_meter_and_socket(pool: WorkerPool, tmp_path: Path) -> None:
    about = {"product_type": "HWE-P1", "product_name": "P1 meter", "serial": "aabb", "firmware_version": "5.18"}
    data = {
        "wifi_strength": 84,
        "active_power_w": -543,
        "total_power_import_kwh": 13779.338,
        "total_gas_m3": 2569.646,
        "active_tariff": 2,
    }
    it = await start(pool, tmp_path, None, Vendor({"/api": about, "/api/v1/data": data}), "homewizard")
    meter = (await it.poll())["meter"]
    assert meter.attributes["power_consumption"] == {"value": -543, "unit": "W"}
    assert meter.attributes["custom.homewizard.gas"]["value"] == 2569.646 and it.dropped == []

    state = {"power_on": False, "switch_lock": False}

    def socket(asked: WebRequest) -> Answer:
        if asked.method == "PUT":
            state.update(asked.json)
        plug = {**about, "product_type": "HWE-SKT", "product_name": "Socket"}
        return {"/api": plug, "/api/v1/data": {"wifi_strength": 84, "active_power_w": 5}, "/api/v1/state": state}[
            asked.path
        ]

    it = await start(pool, tmp_path, None, Vendor(socket), "homewizard")
    await it.poll()
    for action, shown in (("on", True), ("toggle", False), ("toggle", True)):
        assert await it.command("socket", "power", action) is None
        assert state["power_on"] is shown
    it = await start(pool, tmp_path, None, Vendor({"/api": (403, "{}")}), "homewizard")
    with pytest.raises(AdapterFailed, match="the local API is off"):
        await it.poll()


async def test_tibber(pool: WorkerPool, tmp_path: Path) -> None:
    hours = [{"total": price, "startsAt": f"2026-11-23T{hour:02}:00"} for hour, price in enumerate((0.3, 0.1, 0.2))]
    prices = {"current": {**hours[2], "currency": "EUR", "level": "NORMAL"}, "today": hours, "tomorrow": []}
    homes = [
        {"id": "h1", "appNickname": "House", "currentSubscription": {"priceInfo": prices}},
        {"id": "h2", "currentSubscription": None},
    ]
    it = await start(pool, tmp_path, None, Vendor({"/v1-beta/gql": {"data": {"viewer": {"homes": homes}}}}), "tibber")
    found = await it.poll()
    assert set(found) == {"h1", "h2"} and it.dropped == []
    shown = found["h1"].attributes
    assert shown["custom.tibber.price"] == {"value": 0.2, "unit": "EUR/kWh"}
    assert (shown["custom.tibber.rank"], shown["custom.tibber.hours_of_day"]) == (2, 3)
    assert shown["custom.tibber.knows_tomorrow"] is False and it.adapter.poll_interval <= 3605


async def test_fronius_by_day_and_by_night(pool: WorkerPool, tmp_path: Path) -> None:
    site: dict[str, Any] = {"P_PV": 3520.4, "P_Grid": -1200.0, "P_Load": -2320.4, "P_Akku": None, "E_Day": 5100.0}
    answer = {"Body": {"Data": {"Site": site, "Inverters": {"1": {"P": 3520, "SOC": 61.6}}}}}
    it = await start(pool, tmp_path, None, Vendor({"/solar_api/v1/GetPowerFlowRealtimeData.fcgi": answer}), "fronius")
    shown = (await it.poll())["site"].attributes
    assert shown["power_consumption"] == {"value": 2320.4, "unit": "W"} and shown["battery"] == 62
    assert shown["custom.fronius.produced"]["value"] == 3520.4
    assert shown["custom.fronius.energy_today"] == {"value": 5.1, "unit": "kWh", "period": "today"}
    site.update(dict.fromkeys(site))
    shown = (await it.poll())["site"].attributes
    assert shown["custom.fronius.produced"]["value"] == 0 and "power_consumption" not in shown and it.dropped == []


async def test_daikin(pool: WorkerPool, tmp_path: Path) -> None:
    control = {"pow": "0", "mode": "3", "stemp": "22.0", "shum": "0", "f_rate": "A", "f_dir": "0", "dt4": "21.0"}

    def unit(asked: WebRequest) -> Answer:
        if asked.path == "/aircon/set_control_info":
            control.update(asked.query)
        told = {
            "/common/basic_info": "type=aircon,name=%42%65%64,mac=AABB,ver=1_2_51",
            "/aircon/get_sensor_info": "htemp=20.5,hhum=-,otemp=-",
        }.get(asked.path, ",".join(f"{key}={value}" for key, value in control.items()))
        return (200, f"ret=OK,{told}")

    it = await start(pool, tmp_path, None, Vendor(unit), "daikin")
    air = (await it.poll())["air"]
    assert (air.name, air.info.firmware, air.attributes["hvac_mode"]) == ("Bed", "1.2.51", "off")
    assert await it.command("air", "hvac_mode", "set", "heat") is None
    assert (control["pow"], control["mode"], control["stemp"]) == ("1", "4", "21.0")
    assert await it.command("air", "target_temperature", "set", {"value": 19.5, "unit": "°C"}) is None
    assert await it.command("air", "fan_mode", "set", "quiet") is None and control["f_rate"] == "B"
    assert await it.command("air", "hvac_mode", "set", "off") is None and control["pow"] == "0" and it.dropped == []


async def test_hue_lamps_buttons_and_what_is_pushed(pool: WorkerPool, tmp_path: Path) -> None:
    lamp = {"id": "l1", "owner": {"rid": "d1"}, "on": {"on": True}, "dimming": {"brightness": 40.16}}
    lamp |= {"color_temperature": {"mirek": 366}, "color": {"xy": {"x": 0.4, "y": 0.4}}}
    rows: dict[str, list[Any]] = {
        "device": [
            {
                "id": "d1",
                "metadata": {"name": "Desk"},
                "services": [{"rid": "l1"}],
                "product_data": {"model_id": "LCA001"},
            },
            {"id": "d2", "metadata": {"name": "Dimmer"}, "services": [{"rid": "b1"}]},
            {"id": "d3", "metadata": {"name": "Bridge"}, "services": []},
        ],
        "light": [lamp],
        "button": [{"id": "b1", "owner": {"rid": "d2"}, "button": {}}],
        "device_power": [{"id": "p1", "owner": {"rid": "d2"}, "power_state": {"battery_level": 83}}],
    }

    def bridge(asked: WebRequest) -> Answer:
        if asked.method == "PUT":
            lamp.update(asked.json)
            return {}
        return {"data": rows.get(asked.path.rpartition("/")[2], [])}

    it = await start(pool, tmp_path, None, Vendor(bridge), "hue")
    found = await it.poll()
    assert set(found) == {"d1", "d2"} and it.dropped == []
    assert found["d1"].attributes["color_temperature"] == {"value": 2732, "unit": "kelvin"}
    assert found["d1"].attributes["brightness"] == 40 and found["d2"].attributes["battery"] == 83
    assert await it.command("d1", "brightness", "set", 70) is None and lamp["dimming"] == {"brightness": 70}
    assert await it.command("d1", "power", "off") is None and lamp["on"] == {"on": False}
    data = [
        {"id": "l1", "owner": {"rid": "d1"}, "on": {"on": True}},
        {"id": "b1", "owner": {"rid": "d2"}, "button": {"button_report": {"event": "short_release"}}},
    ]
    message = {"event": "message", "data": [{"type": "update", "data": data}], "id": "1"}
    pushed = await it.adapter._call(["listen", "receive"], message)
    await it.adapter._update("receive", pushed["first"])
    assert it.registry.get_device("it:d1").attributes["power"] == "on"
    assert [(each.device_id, each.event) for each in it.happened] == [("it:d2", "single")]


async def test_hue_is_paired_by_its_button(pool: WorkerPool, tmp_path: Path) -> None:
    answers: list[Any] = [[{"error": {"type": 101}}], [{"success": {"username": "abc123"}}]]
    it = await start(pool, tmp_path, None, Vendor(lambda asked: answers.pop(0)), "hue")
    with pytest.raises(BadAnswer, match="press the bridge's button"):
        await it.adapter.operations["pair"]({})
    assert await it.adapter.operations["pair"]({}) == 'headers = { hue-application-key = "abc123" }'


class Player:
    """A Sonos that takes what it is told."""

    def __init__(self) -> None:
        self.shows = {"CurrentTransportState": "STOPPED", "CurrentVolume": "12", "CurrentMute": "0"}

    def __call__(self, asked: WebRequest) -> Answer:
        if asked.path == "/xml/device_description.xml":
            parts = "<roomName>Kitchen</roomName><modelName>Sonos One</modelName>"
            return (200, f'<root xmlns="urn:schemas-upnp-org:device-1-0"><device>{parts}</device></root>')
        action = asked.headers["SOAPACTION"].rpartition("#")[2].strip('"')
        body = (asked.body or b"").decode()
        states = {"Play": "PLAYING", "Pause": "PAUSED_PLAYBACK", "Stop": "STOPPED"}
        if action in states:
            self.shows["CurrentTransportState"] = states[action]
        for name, field in (("SetVolume", "Volume"), ("SetMute", "Mute")):
            if action == name:
                self.shows[f"Current{field}"] = body.split(f"<Desired{field}>")[1].split("<")[0]
        fields = "".join(f"<{name}>{value}</{name}>" for name, value in self.shows.items())
        track = "&lt;x&gt;&lt;item&gt;&lt;title&gt;Song&lt;/title&gt;&lt;/item&gt;&lt;/x&gt;"
        inside = f"<u:R xmlns:u='u'>{fields}<TrackMetaData>{track}</TrackMetaData></u:R>"
        return (200, f"<s:Envelope xmlns:s='s'><s:Body>{inside}</s:Body></s:Envelope>")


async def test_sonos(pool: WorkerPool, tmp_path: Path) -> None:
    it = await start(pool, tmp_path, None, Vendor(Player()), "sonos")
    player = (await it.poll())["player"]
    assert (player.name, player.info.model, player.attributes["media_title"]) == ("Kitchen", "Sonos One", "Song")
    assert await it.command("player", "media_playback", "play") is None
    assert await it.command("player", "volume", "set", 35) is None
    assert await it.command("player", "muted", "mute") is None
    shown = it.registry.get_device("it:player").attributes
    assert (shown["media_playback"], shown["volume"], shown["muted"]) == ("playing", 35, True) and it.dropped == []


async def test_fritzbox(pool: WorkerPool, tmp_path: Path) -> None:
    active = {"AA:BB:CC:DD:EE:FF": "<NewActive>1</NewActive>", "11:22:33:44:55:66": "<NewActive>0</NewActive>"}

    def box(asked: WebRequest) -> Answer:
        found = [answer for address, answer in active.items() if address in (asked.body or b"").decode()]
        return (200, found[0]) if found else (500, "<errorCode>714</errorCode> UPnPError")

    people = ["Anna=aa:bb:cc:dd:ee:ff", "Ben = 11:22:33:44:55:66", "Carl=00:00:00:00:00:01"]
    it = await start(pool, tmp_path, None, Vendor(box), "fritzbox", people=people)
    found = await it.poll()
    assert {name: each.attributes["presence"] for name, each in found.items()} == {
        "anna": True,
        "ben": False,
        "carl": False,
    }
    active["AA:BB:CC:DD:EE:FF"] = "<NewActive>0</NewActive>"
    assert (await it.poll())["anna"].attributes["presence"] is True, "a phone sleeps"
    it.adapter._memory["AA:BB:CC:DD:EE:FF"] = int(Clock().now().timestamp()) - 301
    assert (await it.poll())["anna"].attributes["presence"] is False and it.dropped == []
    wrong = await start(pool, tmp_path, None, Vendor(box), "fritzbox", people=["Anna"])
    with pytest.raises(AdapterFailed, match="people must be written as"):
        await wrong.poll()


async def test_ollama(pool: WorkerPool, tmp_path: Path) -> None:
    reply = {"model": "llama3.2", "message": {"role": "assistant", "content": "Yes."}, "done": True}
    it = await start(pool, tmp_path, None, Vendor({"/api/tags": {"models": []}, "/api/chat": reply}), "ollama")
    assert await it.poll() == {} and it.adapter.operation_secs["chat"] == 300
    assert await it.adapter.operations["chat"]({"prompt": "Rain?"}) == reply
    asked = it.vendor.asked[-1]
    assert asked.json == {"model": "llama3.2", "messages": [{"role": "user", "content": "Rain?"}], "stream": False}
    assert asked.timeout_secs == 300
    with pytest.raises(BadAnswer, match="chat needs a prompt, or messages"):
        await it.adapter.operations["chat"]({})
    gone = await start(pool, tmp_path, None, Vendor({"/api/chat": (404, '{"error": "model not found"}')}), "ollama")
    with pytest.raises(BadAnswer, match="Ollama answers: model not found"):
        await gone.adapter.operations["chat"]({"prompt": "x"})
