"""The simulated light, driven by a client that others wrote for the real one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from elgato import Elgato, ElgatoConnectionError, ElgatoNoBatteryError, PowerOnBehavior

from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight

CAPTURES = Path(__file__).parents[2] / "fixtures" / "elgato"


async def test_client_reads_the_state(elgato: Elgato) -> None:
    state = await elgato.state()
    assert (state.on, state.brightness, state.temperature) == (False, 50, 213)
    assert state.hue is None
    assert state.saturation is None


async def test_client_switches_dims_and_tints(light: LightSimulator, elgato: Elgato) -> None:
    await elgato.light(on=True)
    assert light.lights == [SimulatedLight(on=True, brightness=50, temperature=213)]
    await elgato.light(brightness=7)
    assert light.lights == [SimulatedLight(on=True, brightness=7, temperature=213)]
    await elgato.light(temperature=344)
    assert light.lights == [SimulatedLight(on=True, brightness=7, temperature=344)]
    await elgato.light(on=False, brightness=0, temperature=143)
    state = await elgato.state()
    assert (state.on, state.brightness, state.temperature) == (False, 0, 143)


async def test_colour_takes_the_place_of_temperature_and_back(light: LightSimulator, elgato: Elgato) -> None:
    await elgato.light(on=True, hue=358.0, saturation=6.0)
    state = await elgato.state()
    assert (state.hue, state.saturation, state.temperature) == (358.0, 6.0, None)
    await elgato.light(hue=10.5)
    assert light.lights == [SimulatedLight(on=True, brightness=50, hue=10.5, saturation=6.0)]
    await elgato.light(temperature=200)
    assert light.lights == [SimulatedLight(on=True, brightness=50, temperature=200)]
    await elgato.light(hue=0.0)
    assert light.lights == [SimulatedLight(on=True, brightness=50, hue=0.0, saturation=100.0)]


async def test_identify_is_counted(light: LightSimulator, elgato: Elgato) -> None:
    await elgato.identify()
    await elgato.identify()
    assert light.identified == 2
    assert light.requests == [("POST", "/elgato/identify")] * 2


async def test_client_reads_and_changes_what_the_device_is_called(light: LightSimulator, elgato: Elgato) -> None:
    assert (await elgato.info()).display_name == "Simulated light"
    await elgato.display_name("Desk")
    info = await elgato.info()
    assert (info.display_name, info.serial_number) == ("Desk", light.info["serialNumber"])


async def test_client_reads_and_changes_the_settings(elgato: Elgato) -> None:
    await elgato.power_on_behavior(behavior=PowerOnBehavior.USE_DEFAULTS, brightness=33)
    settings = await elgato.settings()
    assert settings.power_on_behavior is PowerOnBehavior.USE_DEFAULTS
    assert (settings.power_on_brightness, settings.power_on_temperature) == (33, 213)


async def test_a_light_on_mains_has_no_battery(light: LightSimulator, elgato: Elgato) -> None:
    assert not await elgato.has_battery()
    with pytest.raises(ElgatoNoBatteryError):
        await elgato.battery()
    with pytest.raises(ElgatoConnectionError):
        await elgato._request("battery-info")
    assert light.requests[-1] == ("GET", "/elgato/battery-info")


async def test_two_lights_are_told_and_written_by_position(http: aiohttp.ClientSession) -> None:
    first, second = (
        SimulatedLight(on=True, brightness=10, temperature=150),
        SimulatedLight(brightness=20, temperature=250),
    )
    async with LightSimulator(lights=[first, second]) as light:
        body = {"numberOfLights": 2, "lights": [{}, {"on": 1, "brightness": 60}]}
        async with http.put(f"{light.url}/elgato/lights", json=body) as answer:
            found = await answer.json()
        assert light.lights == [first, SimulatedLight(on=True, brightness=60, temperature=250)]
        assert found == {
            "numberOfLights": 2,
            "lights": [
                {"on": 1, "brightness": 10, "temperature": 150},
                {"on": 1, "brightness": 60, "temperature": 250},
            ],
        }
        assert light.writes == [body]


async def test_lights_come_go_and_change_at_the_device(light: LightSimulator, elgato: Elgato) -> None:
    light.lights[0].brightness = 99
    light.lights.append(SimulatedLight(on=True))
    assert (await elgato.state()).brightness == 99
    light.lights.pop(0)
    assert (await elgato.state()).on


@pytest.mark.parametrize("entry", [None, "lamp", 3, [], {}, {"on": "yes"}])
async def test_a_malformed_light_is_told_as_it_is_and_never_written(http: aiohttp.ClientSession, entry: Any) -> None:
    async with LightSimulator(lights=[SimulatedLight(), SimulatedLight()]) as light:
        light.lights[0] = entry
        body = {"numberOfLights": 2, "lights": [{"on": 1}, {"on": 1}]}
        async with http.put(f"{light.url}/elgato/lights", json=body) as answer:
            found = await answer.json()
        assert found["lights"] == [entry, {"on": 1, "brightness": 50}]


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ({"brightness": 101}, SimulatedLight(brightness=100, temperature=213)),
        ({"brightness": -1}, SimulatedLight(brightness=0, temperature=213)),
        ({"temperature": 50}, SimulatedLight(temperature=143)),
        ({"temperature": 500}, SimulatedLight(temperature=344)),
        ({"on": 7}, SimulatedLight(on=True, temperature=213)),
        ({"hue": 400, "saturation": 200}, SimulatedLight(hue=360.0, saturation=100.0)),
        ({"brightness": 49.6}, SimulatedLight(brightness=50, temperature=213)),
        ({"flavour": "vanilla"}, SimulatedLight(temperature=213)),
    ],
)
async def test_what_is_out_of_range_is_held_within(
    light: LightSimulator, http: aiohttp.ClientSession, asked: dict[str, Any], kept: SimulatedLight
) -> None:
    async with http.put(f"{light.url}/elgato/lights", json={"lights": [asked, asked]}) as answer:
        assert answer.status == 200
    assert light.lights == [kept]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"{}",
        b'{"lights": {}}',
        b'{"lights": [null]}',
        b'{"lights": [{"on": true}]}',
        b'{"lights": [{"brightness": "50"}]}',
        b'{"lights": [{"brightness": NaN}]}',
        b'{"lights": [{"temperature": 200, "hue": 10}]}',
    ],
)
async def test_a_body_that_makes_no_sense_is_refused_and_changes_nothing(
    light: LightSimulator, http: aiohttp.ClientSession, body: bytes
) -> None:
    async with http.put(f"{light.url}/elgato/lights", data=body) as answer:
        assert answer.status == 400
        assert [*(await answer.json())] == ["errors"]
    assert light.lights == [SimulatedLight(temperature=213)]
    assert len(light.writes) == 1


async def test_paths_and_methods_that_the_device_lacks_are_refused(
    light: LightSimulator, http: aiohttp.ClientSession
) -> None:
    async with http.get(f"{light.url}/somewhere") as answer:
        assert answer.status == 404
    async with http.delete(f"{light.url}/elgato/lights") as answer:
        assert answer.status == 405
    assert light.requests == [("GET", "/somewhere"), ("DELETE", "/elgato/lights")]


@pytest.mark.parametrize("name", sorted(path.name for path in CAPTURES.glob("info-*.json")))
async def test_the_information_of_real_models_is_served(name: str) -> None:
    info = json.loads(_capture(name))
    async with LightSimulator(info=info) as light, Elgato(light.host, port=light.port) as elgato:
        assert (await elgato.info()).product_name == info["productName"]


@pytest.mark.parametrize("name", sorted(path.name for path in CAPTURES.glob("state-*.json")))
async def test_the_states_of_real_lights_are_served_and_match_ours(name: str, http: aiohttp.ClientSession) -> None:
    found = json.loads(_capture(name))
    [entry] = found["lights"]
    async with LightSimulator() as light, Elgato(light.host, port=light.port) as elgato:
        light.faults.body = _capture(name)
        assert (await elgato.state()).brightness == entry["brightness"]
        light.faults.body = None
        light.lights[0] = SimulatedLight(**{**entry, "on": bool(entry["on"])})
        async with http.get(f"{light.url}/elgato/lights") as answer:
            assert await answer.json() == found


def _capture(name: str) -> bytes:
    return (CAPTURES / name).read_bytes()
