"""Answers that look like measurements but are not, from public bug reports. Each kind of fault has one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from appliance.lua.running.worker_pool import WorkerPool
from tests.adapters.lua_kinds.bench import start
from tests.adapters.lua_kinds.simulators import Daikin, HomeWizardSocket, HueBridge, Sonos, Tasmota
from tests.adapters.lua_kinds.sources import HomeWizardMeter
from tests.adapters.lua_kinds.vendor import Vendor

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLUG: dict[str, Any] = {"mac": "AABB", "relays": [{"ison": True}]}
ON = {"power": "on"}
METER: dict[str, Any] = {"sys": {}, "em:0": {"total_act_power": 9}, "temperature:0": {"tC": 46.8}}

SHELLY: tuple[tuple[int, dict[str, Any], dict[str, dict[str, Any]]], ...] = (
    (
        1,
        {**PLUG, "ext_temperature": {"0": {"tC": 999}, "1": {"tC": 21}}},
        {"switch:0": ON, "temperature:101": {"temperature": 21}},
    ),
    (1, {**PLUG, "ext_humidity": {"0": {"hum": 999.0}}}, {"switch:0": ON}),
    (1, {"mac": "AABB", "tmp": {"tC": 999, "is_valid": True}, "bat": {"value": 70}}, {"sensor": {"battery": 70}}),
    (1, {**PLUG, "meters": [{"power": 8.5, "is_valid": False}]}, {"switch:0": ON}),
    (
        1,
        {**PLUG, "meters": [{"power": 8.5, "is_valid": True}]},
        {"switch:0": {"power": "on", "power_consumption": 8.5}},
    ),
    (1, {"mac": "AABB", "tmp": {"tC": 25}, "bat": {"value": -1}}, {"sensor": {"temperature": 25}}),
    (1, {"mac": "AABB", "tmp": {"tC": 25, "is_valid": "false"}, "bat": {"value": 9}}, {"sensor": {"battery": 9}}),
    (1, {"mac": "AABB", "hum": {"value": 0, "is_valid": False}, "lux": {"value": -1}, "bat": {"value": 9}},
     {"sensor": {"battery": 9}}),
    (1, {"mac": "AABB", "sensor": {"state": "open", "motion": False, "is_valid": False}, "bat": {"value": 9}},
     {"sensor": {"battery": 9}}),
    (1, {"mac": "AABB", "rollers": [{"current_pos": 101, "positioning": True, "power": 0},
                                    {"current_pos": -1, "positioning": True, "power": 5}]},
     {"cover:0": {"power_consumption": 0}, "cover:1": {"power_consumption": 5}}),
    (2, {"sys": {}, "temperature:100": {"tC": None, "errors": ["read"]}, "temperature:101": {"tC": 5}},
     {"temperature:101": {"temperature": 5}}),
    (2, METER, {"em:0": {"power_consumption": 9}}),
    (2, {"sys": {}, "temperature:0": {"tC": 46.8}}, {"sensor": {"temperature": 46.8}}),
)  # fmt: skip
"""Generation, answer, and the attributes of each device. 999 is the value of a sensor without an answer."""


@pytest.mark.parametrize(("generation", "status", "shown"), SHELLY)
async def test_shelly(
    pool: WorkerPool, tmp_path: Path, generation: int, status: dict[str, Any], shown: dict[str, dict[str, Any]]
) -> None:
    about = {"mac": "AABB", "type": "SHSW-1", "gen": generation}
    it = await start(
        pool, tmp_path, None, Vendor({"/shelly": about, "/status": status, "/rpc/Shelly.GetStatus": status}), "shelly"
    )
    found = {id_: dict(each.attributes) for id_, each in (await it.poll()).items()}
    for attributes in found.values():
        attributes.pop("state")
        attributes.update({key: each["value"] for key, each in attributes.items() if isinstance(each, dict)})
    assert {id_: attributes for id_, attributes in found.items() if attributes} == shown
    assert it.dropped == []


@pytest.mark.parametrize(
    ("generation", "status"),
    [
        (1, {"mac": "AABB", "tmp": {"tC": 999, "is_valid": False}, "bat": {"value": -1}}),
        (2, {"sys": {}, "temperature:0": {"tC": None}, "humidity:0": {"rh": None}}),
    ],
)
async def test_a_shelly_without_any_valid_value_remains(
    pool: WorkerPool, tmp_path: Path, generation: int, status: dict[str, Any]
) -> None:
    about = {"mac": "AABB", "type": "SHHT-1", "gen": generation}
    vendor = Vendor({"/shelly": about, "/status": status, "/rpc/Shelly.GetStatus": status})
    [sensor] = (await (await start(pool, tmp_path, None, vendor, "shelly")).poll()).items()
    assert sensor[0] == "sensor" and sensor[1].attributes == {"state": "online"}


HUE: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    (
        {"color_temperature": {"mirek": 0, "mirek_schema": {"mirek_minimum": 0, "mirek_maximum": 0}}},
        {"brightness": 50},
    ),
    ({"color_temperature": {"mirek": None, "mirek_valid": False, "mirek_schema": {}}}, {"brightness": 50}),
    ({"color_temperature": {}, "dimming": {"brightness": 0.39}}, {"brightness": 1}),
    ({"color_temperature": {}, "dimming": {"brightness": 0.0}}, {"brightness": 0}),
)
"""Parts of a lamp, and its attributes."""


@pytest.mark.parametrize(("parts", "shown"), HUE)
async def test_hue(pool: WorkerPool, tmp_path: Path, parts: dict[str, Any], shown: dict[str, Any]) -> None:
    bridge = HueBridge()
    bridge.lamps["light1"].update(parts)
    lamp = (await (await start(pool, tmp_path, None, bridge, "hue")).poll())["lamp1"]
    assert lamp.attributes == {"power": "off", "state": "online", **shown}


SENSED: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("motion", {"motion": {"motion": False, "motion_valid": False}}, {}),
    ("motion", {"motion": {"motion_valid": False, "motion_report": {"motion": False}}}, {}),
    ("motion", {"motion": {"motion_valid": True, "motion_report": {"motion": False}}}, {"motion": "clear"}),
    ("temperature", {"temperature": {"temperature": 0.0, "temperature_valid": False}}, {}),
    ("light_level", {"light": {"light_level": 0, "light_level_valid": False}}, {}),
    ("light_level", {"light": {"light_level": 0, "light_level_valid": True}}, {"illuminance": 0}),
    ("motion", {"enabled": False, "motion": {"motion": True, "motion_valid": True}}, {}),
    ("temperature", {"enabled": False, "temperature": {"temperature": 20, "temperature_valid": True}}, {}),
    ("contact", {"enabled": False, "contact_report": {"state": "no_contact"}}, {}),
    ("contact", {"enabled": True, "contact_report": {"state": "no_contact"}}, {"contact": "open"}),
)
"""Each row: the resource type of a Hue bridge, the parts of the resource, and the attributes of the device."""


@pytest.mark.parametrize(("what", "parts", "shown"), SENSED)
async def test_values_that_a_hue_bridge_marks_as_invalid(
    pool: WorkerPool, tmp_path: Path, what: str, parts: dict[str, Any], shown: dict[str, Any]
) -> None:
    bridge = HueBridge()
    bridge.others = {"device": [{"id": "d2"}], what: [{"id": "r1", "owner": {"rid": "d2"}, **parts}]}
    sensor = (await (await start(pool, tmp_path, None, bridge, "hue")).poll())["d2"]
    assert sensor.attributes == {"state": "online", **shown}


async def test_two_lamps_of_a_hue_device_are_two_devices(pool: WorkerPool, tmp_path: Path) -> None:
    bridge = HueBridge()
    bridge.lamps = dict(reversed(bridge.lamps.items()))
    bridge.lamps["light2"] |= {"owner": bridge.lamps["light1"]["owner"], "on": {"on": True}}
    bridge.others = {"device": [{"id": "lamp1", "metadata": {"name": "Twilight"}, "services": []}]}
    bridge.connected["lamp1"]["status"] = "connectivity_issue"
    it = await start(pool, tmp_path, None, bridge, "hue")
    found = await it.poll()
    assert {id_: (each.name, each.attributes["power"], each.attributes["state"]) for id_, each in found.items()} == {
        "lamp1": ("Twilight 1", "off", "unavailable"),
        "lamp1:light2": ("Twilight 2", "on", "unavailable"),
    }
    it.adapter.publish.started()
    part = {"id": "light2", "type": "light", "owner": {"rid": "lamp1"}, "dimming": {"brightness": 7}}
    update = await it.adapter.functions.call(["listen", "receive"], {"data": [{"data": [part]}]})
    await it.adapter.apply_update("receive", update)
    shown = {each.id: each.attributes["brightness"] for each in it.registry.list_devices()}
    assert shown == {"it:lamp1": 50, "it:lamp1:light2": 7}


async def test_a_pushed_mode_ends_the_other_colours(pool: WorkerPool, tmp_path: Path) -> None:
    bridge = HueBridge()
    it = await start(pool, tmp_path, None, bridge, "hue")
    await it.poll()
    it.adapter.publish.started()
    xy, white = {"x": 0.5, "y": 0.4}, {"mirek": 250, "mirek_valid": True}
    kelvin_4000 = {"value": 4000, "unit": "kelvin"}
    for parts, shown in (
        ({"color": {"xy": xy}, "color_temperature": {"mirek": None}}, {"color_mode": "xy", "color_xy": xy}),
        ({"color": {"xy": xy}, "color_temperature": white},
         {"color_mode": "color_temp", "color_temperature": kelvin_4000}),
    ):  # fmt: skip
        part = {"id": "light1", "type": "light", "owner": {"rid": "lamp1"}, **parts}
        update = await it.adapter.functions.call(["listen", "receive"], {"data": [{"data": [part]}]})
        await it.adapter.apply_update("receive", update)
        attributes = it.registry.get_device("it:lamp1").attributes
        assert {key: value for key, value in attributes.items() if key.startswith("color")} == shown


@pytest.mark.parametrize(
    ("relays", "meter", "shown"),
    [
        (1, {"Power": [5, 7, 9], "Total": 3}, [(21, 3)]),
        (2, {"Power": [5, 7], "Total": 3}, [(5, None), (7, None)]),
        (2, {"Power": [5, 7], "Total": [1, 2]}, [(5, 1), (7, 2)]),
        (2, {"Power": [5, 7, 9], "Total": 3}, [(21, 3), (None, None)]),
        (2, {"Power": 5, "Total": 3}, [(5, 3), (None, None)]),
    ],
)
async def test_the_channels_of_a_tasmota_meter_belong_to_its_relays(
    pool: WorkerPool, tmp_path: Path, relays: int, meter: dict[str, Any], shown: list[tuple[int | None, int | None]]
) -> None:
    vendor = Tasmota()
    vendor.status["StatusSTS"] = {f"POWER{number + 1}": "ON" for number in range(relays)}
    vendor.status["StatusSNS"] = {"ENERGY": meter}
    found: Any = await (await start(pool, tmp_path, None, vendor, "tasmota_http")).poll()
    values = [
        tuple(each.attributes.get(name, {}).get("value") for name in ("power_consumption", "energy_total"))
        for each in found.values()
    ]
    assert values == shown


async def test_the_lamp_of_a_tasmota_comes_after_its_relays(pool: WorkerPool, tmp_path: Path) -> None:
    vendor = Tasmota()
    vendor.status["StatusSTS"] = {"POWER1": "ON", "POWER2": "OFF", "Dimmer": 40}
    found = await (await start(pool, tmp_path, None, vendor, "tasmota_http")).poll()
    assert {id_: (each.kind, each.attributes.get("brightness")) for id_, each in found.items()} == {
        "relay:1": ("Switch", None),
        "relay:2": ("Light", 40),
    }


@pytest.mark.parametrize(
    ("state", "lamps"),
    [
        ({"POWER1": "ON", "POWER2": "OFF", "Channel2": 20}, {"relay:2": (20, "Channel2 30")}),
        (
            {"POWER1": "ON", "Channel1": 50, "POWER2": "OFF", "Channel2": 20},
            {"relay:1": (50, "Channel1 30"), "relay:2": (20, "Channel2 30")},
        ),
        (
            {
                "POWER1": "ON",
                "POWER2": "OFF",
                "Dimmer1": 40,
                "Dimmer2": 50,
                "HSBColor": "9,8,40",
                "White": 50,
                "CT": 250,
            },
            {"relay:1": (40, "Dimmer1 30"), "relay:2": (50, "Dimmer2 30")},
        ),
        ({"POWER": "ON", "Dimmer1": 40, "Dimmer2": 50}, {"relay:1": (40, "Dimmer1 30")}),
    ],
)
async def test_a_tasmota_can_have_several_lamps(
    pool: WorkerPool, tmp_path: Path, state: dict[str, Any], lamps: dict[str, tuple[int, str]]
) -> None:
    vendor = Tasmota()
    vendor.status["StatusSTS"] = state
    it = await start(pool, tmp_path, None, vendor, "tasmota_http")
    found = {id_: each for id_, each in (await it.poll()).items() if each.kind == "Light"}
    assert {id_: each.attributes["brightness"] for id_, each in found.items()} == {
        id_: brightness for id_, (brightness, _) in lamps.items()
    }
    if "HSBColor" in state:
        assert found["relay:1"].attributes["color_hs"] == {"hue": 9, "saturation": 8}
        assert found["relay:2"].attributes["color_temperature"] == {"value": 4000, "unit": "kelvin"}
    for id_, (_, words) in lamps.items():
        await it.command(id_, "brightness", "set", 30)
        assert words in [each.query.get("cmnd") for each in vendor.asked]


async def test_the_chip_temperature_of_a_tasmota_is_not_the_rooms(pool: WorkerPool, tmp_path: Path) -> None:
    vendor = Tasmota()
    vendor.status["StatusSNS"] = {"ESP32": {"Temperature": 53.3}, "SI7021": {"Temperature": 20.1}}
    [plug] = (await (await start(pool, tmp_path, None, vendor, "tasmota_http")).poll()).values()
    assert plug.attributes["temperature"] == {"value": 20.1, "unit": "°C"}


@pytest.mark.parametrize(
    ("fields", "mode", "target"),
    [
        ({"mode": "6", "stemp": "--", "dt1": "--"}, "auto", "25.0"),
        ({"mode": "6", "stemp": "--", "dt3": "--"}, "cool", "25.0"),
        ({"mode": "2", "stemp": "M", "dt4": "--"}, "heat", "25.0"),
        ({"mode": "3", "stemp": "22.0"}, "dry", "M"),
        ({"mode": "3", "stemp": "22.0"}, "heat", "21.0"),
        ({"mode": "3", "stemp": "22.0"}, "fan_only", "22.0"),
    ],
)
async def test_a_daikin_gets_a_target_that_its_new_mode_accepts(
    pool: WorkerPool, tmp_path: Path, fields: dict[str, str], mode: str, target: str
) -> None:
    unit = Daikin()
    it = await start(pool, tmp_path, None, unit, "daikin")
    await it.poll()
    unit.control.update(fields)
    assert await it.command("air", "hvac_mode", "set", mode) is None and unit.control["stemp"] == target


async def test_the_newest_of_two_gas_meters_is_used(pool: WorkerPool, tmp_path: Path) -> None:
    meter = HomeWizardMeter()
    old, new = (
        {"unique_id": str(value), "type": "gas_meter", "timestamp": at, "value": value, "unit": "m3"}
        for value, at in ((911.5, 220101000000), (12.5, 260801120000))
    )
    for external in ([old, new], [new, old], [{**new, "timestamp": None}, old, new]):
        meter.odd["/api/v1/data"] = {"active_power_w": 5, "external": external}
        [device] = (await (await start(pool, tmp_path, None, meter, "homewizard")).poll()).values()
        gas: Any = device.attributes["custom.homewizard.gas"]
        assert gas["value"] == 12.5


async def test_the_playback_of_a_follower_is_unknown(pool: WorkerPool, tmp_path: Path) -> None:
    speaker = Sonos()
    it = await start(pool, tmp_path, None, speaker, "sonos")
    for uri, playback in (("x-rincon-queue:RINCON_1#0", "playing"), ("x-rincon:RINCON_1", None)):
        speaker.shows["CurrentTransportState"], speaker.track_uri = "PLAYING", uri
        assert (await it.poll())["player"].attributes.get("media_playback") == playback
    speaker.odd["/MediaRenderer/AVTransport/Control#GetPositionInfo"] = (500, "")
    for player in (it, await start(pool, tmp_path, None, speaker, "sonos")):
        assert "media_playback" not in (await player.poll())["player"].attributes


async def test_pausing_a_paused_player_succeeds(pool: WorkerPool, tmp_path: Path) -> None:
    speaker = Sonos()
    it = await start(pool, tmp_path, None, speaker, "sonos")
    await it.poll()
    speaker.fault = "701"
    for state, action, reason in (
        ("PAUSED_PLAYBACK", "pause", None),
        ("STOPPED", "stop", None),
        ("STOPPED", "pause", "the player refuses Pause (it has nothing to play, or is in that state already)"),
    ):
        speaker.shows["CurrentTransportState"] = state
        assert await it.command("player", "media_playback", action) == reason


async def test_an_unreadable_text_of_a_meter_does_not_hide_its_numbers(pool: WorkerPool, tmp_path: Path) -> None:
    socket = HomeWizardSocket()
    socket.odd["/api/v1/data"] = (200, r'{"meter_model":"ELL5\\\253926427_A","active_power_w":1756,"external":[]}')
    [device] = (await (await start(pool, tmp_path, None, socket, "homewizard")).poll()).values()
    assert device.attributes["power_consumption"] == {"value": 1756, "unit": "W"}
