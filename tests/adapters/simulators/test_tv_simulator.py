"""The simulated TV, driven by a client that others wrote for the real one."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from rokuecp import Roku, RokuError

from appliance.adapters.roku_tv.simulator import TvSimulator

CAPTURES = Path(__file__).parents[2] / "fixtures" / "roku"


async def test_client_reads_a_tv_that_is_on(tv: TvSimulator, roku: Roku) -> None:
    device = await roku.update()
    assert not device.state.standby
    assert (device.info.name, device.info.device_type) == (tv.friendly_device_name, "tv")
    assert (device.info.model_name, device.info.brand) == ("Simulated TV", "Roku")
    assert {app.app_id: app.name for app in device.apps} == tv.apps
    assert {channel.number: channel.name for channel in device.channels} == tv.channels
    assert device.app is not None
    assert (device.app.app_id, device.app.name) == (None, "Roku")


async def test_client_reads_a_tv_in_standby() -> None:
    async with TvSimulator(power=False) as tv:
        assert tv.power_mode == "Ready"
        roku = Roku(tv.host, port=tv.port)
        assert (await roku.update()).state.standby
        await roku.close_session()


async def test_client_powers_the_tv_off_on_and_toggles(tv: TvSimulator, roku: Roku) -> None:
    for key, standby in [
        ("poweroff", True),
        ("poweroff", True),
        ("poweron", False),
        ("poweron", False),
        ("power", True),
        ("power", False),
    ]:
        await roku.remote(key)
        assert (await roku.update()).state.standby is standby
    assert tv.keys == ["PowerOff", "PowerOff", "PowerOn", "PowerOn", "Power", "Power"]


async def test_a_tv_that_is_quite_off_stays_so_until_it_is_told(tv: TvSimulator, roku: Roku) -> None:
    tv.power_mode = "PowerOff"
    await roku.remote("poweroff")
    assert tv.power_mode == "PowerOff"
    await roku.remote("power")
    assert tv.power_mode == "PowerOn"


async def test_other_keys_are_taken_and_leave_the_power(tv: TvSimulator, roku: Roku) -> None:
    await roku.remote("home")
    await roku.remote("volume_up")
    await roku.literal("é ")
    assert tv.keys == ["Home", "VolumeUp", "Lit_é", "Lit_+"]
    assert tv.power_mode == "PowerOn"
    assert tv.requests[0] == ("POST", "/keypress/Home")


async def test_a_device_without_power_mode_is_read_and_keeps_none(tv: TvSimulator, roku: Roku) -> None:
    tv.power_mode = None
    await roku.remote("power")
    await roku.remote("poweron")
    assert tv.power_mode is None
    assert "power-mode" not in tv.info.text
    assert (await roku.update()).info.model_name == "Simulated TV"


async def test_a_tv_that_limits_control_refuses_keys_and_goes_on_telling(tv: TvSimulator, roku: Roku) -> None:
    tv.limited = True
    with pytest.raises(RokuError, match="HTTP 403"):
        await roku.remote("poweroff")
    assert not (await roku.update()).state.standby
    assert (tv.keys, tv.power_mode) == (["PowerOff"], "PowerOn")


async def test_client_reads_what_plays(tv: TvSimulator, roku: Roku) -> None:
    tv.active_app, tv.player = "90001", "pause"
    device = await roku.update()
    assert device.app is not None
    assert device.app.name == "Films & more"
    assert device.media is not None
    assert (device.media.paused, device.media.position, device.media.duration) == (True, 6, 60)


async def test_client_reads_the_channel(tv: TvSimulator, roku: Roku) -> None:
    tv.active_app, tv.channel = "tvinput.dtv", "5.1"
    device = await roku.update()
    assert device.channel is not None
    assert (device.channel.number, device.channel.name) == ("5.1", "Fifth")


async def test_a_tv_without_channels_is_read(tv: TvSimulator, roku: Roku) -> None:
    tv.channels = {}
    assert (await roku.update()).channels == []


@pytest.mark.parametrize(
    ("name", "mode", "model"),
    [
        ("device-info", "PowerOn", "Roku 3"),
        ("device-info-standby", "Ready", "Roku 3"),
        ("device-info-power-off", "PowerOff", "Roku 3"),
        ("device-info-3500x", "PowerOn", "Roku Stick"),
    ],
)
async def test_captures_are_served_verbatim(http: aiohttp.ClientSession, name: str, mode: str, model: str) -> None:
    capture = _capture(name)
    async with TvSimulator(device_info=capture) as tv:
        assert (tv.power_mode, tv.model_name) == (mode, model)
        async with http.get(f"{tv.url}/query/device-info") as answer:
            assert await answer.text() == capture
        roku = Roku(tv.host, port=tv.port)
        device = await roku.update()
        await roku.close_session()
    assert (device.info.model_name, device.state.standby) == (model, mode != "PowerOn")


async def test_a_key_changes_nothing_of_a_capture_but_the_power() -> None:
    capture = _capture("device-info")
    async with TvSimulator(device_info=capture) as tv:
        roku = Roku(tv.host, port=tv.port)
        await roku.remote("poweroff")
        await roku.close_session()
        assert tv.info.text == _capture("device-info-standby")


def _capture(name: str) -> str:
    return (CAPTURES / f"{name}.xml").read_text(encoding="utf-8")
