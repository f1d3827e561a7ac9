"""The simulated light and TV. Third-party clients accept the simulators as real devices."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from elgato import Elgato
from rokuecp import Roku, RokuError

from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from appliance.adapters.roku_tv.simulator import TvSimulator

CAPTURES = Path(__file__).parents[1] / "fixtures" / "elgato"
UNCHANGED = SimulatedLight(temperature=213)


@pytest.fixture
async def elgato(light: LightSimulator) -> AsyncIterator[Elgato]:
    async with Elgato(light.host, port=light.port) as client:
        yield client


@pytest.fixture
async def roku(tv: TvSimulator) -> AsyncIterator[Roku]:
    client = Roku(tv.host, port=tv.port)
    yield client
    await client.close_session()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Provide a plain HTTP session, for requests that the clients do not send."""
    async with aiohttp.ClientSession() as session:
        yield session


async def test_a_client_reads_switches_dims_and_tints_the_light(light: LightSimulator, elgato: Elgato) -> None:
    state = await elgato.state()
    assert (state.on, state.brightness, state.temperature) == (False, 50, 213)
    assert state.hue is state.saturation is None
    await elgato.light(on=True, brightness=7)
    assert light.lights == [SimulatedLight(on=True, brightness=7, temperature=213)]
    await elgato.light(hue=358.0, saturation=6.0)
    state = await elgato.state()
    assert (state.hue, state.saturation, state.temperature) == (358.0, 6.0, None)
    await elgato.light(hue=10.5)
    assert light.lights == [SimulatedLight(on=True, brightness=7, hue=10.5, saturation=6.0)]
    await elgato.light(temperature=200)
    assert light.lights == [SimulatedLight(on=True, brightness=7, temperature=200)]
    await elgato.identify()
    assert light.identified == 1
    light.lights = [SimulatedLight(brightness=99), SimulatedLight(on=True)]
    assert (await elgato.state()).brightness == 99
    for capture in CAPTURES.glob("info-*.json"):
        light.info = json.loads(capture.read_bytes())
        assert (await elgato.info()).product_name == light.info["productName"]


async def test_the_states_of_real_lights_match_ours(light: LightSimulator, http: aiohttp.ClientSession) -> None:
    for capture in CAPTURES.glob("state-*.json"):
        found = json.loads(capture.read_bytes())
        [entry] = found["lights"]
        light.lights[0] = SimulatedLight(**{**entry, "on": bool(entry["on"])})
        async with http.get(f"{light.url}/elgato/lights") as answer:
            assert await answer.json() == found


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ({"brightness": 101}, SimulatedLight(brightness=100, temperature=213)),
        ({"temperature": 50}, SimulatedLight(temperature=143)),
        ({"hue": 400, "saturation": 200}, SimulatedLight(hue=360.0, saturation=100.0)),
        ({"brightness": 49.6, "flavour": "vanilla"}, SimulatedLight(brightness=50, temperature=213)),
        ({"brightness": "50"}, None),
        ({"on": True}, None),
        ({"temperature": 200, "hue": 10}, None),
    ],
)
async def test_values_for_a_light_are_clamped_or_refused(
    light: LightSimulator, http: aiohttp.ClientSession, asked: dict[str, Any], kept: SimulatedLight | None
) -> None:
    light.lights.append({"on": "yes"})
    async with http.put(f"{light.url}/elgato/lights", json={"lights": [asked, {"on": 1}]}) as answer:
        assert answer.status == (400 if kept is None else 200)
    assert light.lights == [kept or UNCHANGED, {"on": "yes"}], "what is malformed is never written"


async def test_a_client_reads_the_tv_and_presses_its_keys(tv: TvSimulator, roku: Roku) -> None:
    device = await roku.update()
    assert (device.info.name, device.info.device_type) == ("Simulated TV - LARES0000002", "tv")
    assert (device.info.model_name, device.info.brand, device.state.standby) == ("Simulated TV", "Roku", False)
    assert device.app is not None and device.app.name == "Roku"
    presses = [("poweroff", True), ("poweroff", True), ("poweron", False), ("poweron", False), ("power", True)]
    for key, standby in (*presses, ("power", False), ("home", False)):
        await roku.remote(key)
        assert (await roku.update()).state.standby is standby
    assert tv.keys == ["PowerOff", "PowerOff", "PowerOn", "PowerOn", "Power", "Power", "Home"]
    tv.power_mode = None
    await roku.remote("power")
    assert tv.power_mode is None and (await roku.update()).info.model_name == "Simulated TV"
    tv.limited = True
    with pytest.raises(RokuError, match="HTTP 403"):
        await roku.remote("poweroff")
