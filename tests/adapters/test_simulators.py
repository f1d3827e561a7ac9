"""The simulated light and TV: clients of others take them for real ones, and each fault does what it says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from elgato import Elgato, ElgatoConnectionError
from rokuecp import Roku, RokuConnectionError, RokuError

from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from appliance.adapters.roku_tv.simulator import TvSimulator
from tests.fakes.clock import VirtualClock
from tests.fakes.patience import until

CAPTURES = Path(__file__).parents[1] / "fixtures" / "elgato"
UNCHANGED = SimulatedLight(temperature=213)
WRITE = {"numberOfLights": 1, "lights": [{"on": 1}]}


@pytest.fixture
async def elgato(light: LightSimulator) -> AsyncIterator[Elgato]:
    """The third party's client of the light."""
    async with Elgato(light.host, port=light.port) as client:
        yield client


@pytest.fixture
async def roku(tv: TvSimulator) -> AsyncIterator[Roku]:
    """The third party's client of the TV."""
    client = Roku(tv.host, port=tv.port)
    yield client
    await client.close_session()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """A bare session, for what the clients would not send."""
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
async def test_what_a_light_is_told_is_held_within_its_ranges_or_refused(
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


async def test_an_unplugged_device_refuses_connections_and_comes_back_as_it_was(
    light: LightSimulator, elgato: Elgato, tv: TvSimulator, roku: Roku
) -> None:
    await elgato.light(on=True, brightness=12)
    await roku.remote("poweroff")
    url = light.url
    for _ in range(2):
        await light.unplug()
        await tv.unplug()
        with pytest.raises(ElgatoConnectionError) as failed:
            await elgato.state()
        assert isinstance(failed.value.__cause__, aiohttp.ClientConnectorError)
        assert isinstance(failed.value.__cause__.os_error, ConnectionRefusedError)
        with pytest.raises(RokuConnectionError):
            await roku.update()
        await light.plug_in()
        await tv.plug_in()
        assert light.url == url
        state = await elgato.state()
        assert (state.on, state.brightness) == (True, 12) and (await roku.update()).state.standby


async def test_a_late_answer_tells_the_state_of_before(
    light: LightSimulator, http: aiohttp.ClientSession, clock: VirtualClock
) -> None:
    light.faults.delay = 3.0

    async def read() -> Any:
        async with http.get(f"{light.url}/elgato/lights") as answer:
            return await answer.json()

    reading = asyncio.create_task(clock.run(read()))
    await until(lambda: light.requests)
    light.lights[0].on = True
    assert (await reading)["lights"][0]["on"] == 0 and clock.monotonic() == 3.0


async def test_a_silent_device_takes_the_request_and_never_answers(light: LightSimulator) -> None:
    light.faults.silent = True
    writing = asyncio.create_task(_put(light))
    await until(lambda: light.requests)
    answered, _ = await asyncio.wait([writing], timeout=0.02)
    writing.cancel()
    assert not answered and light.writes == [WRITE] and light.lights == [UNCHANGED]


async def test_a_status_or_a_body_answers_everything_and_nothing_is_done(
    light: LightSimulator, elgato: Elgato, tv: TvSimulator, http: aiohttp.ClientSession
) -> None:
    light.faults.status = 503
    with pytest.raises(ElgatoConnectionError):
        await elgato.light(on=True)
    assert light.lights == [UNCHANGED]
    tv.faults.body = b"\xff<html>"
    for method, path in (("GET", "/query/device-info"), ("POST", "/keypress/PowerOff"), ("GET", "/nowhere")):
        async with http.request(method, f"{tv.url}{path}") as answer:
            assert (answer.status, answer.content_type, await answer.read()) == (200, "text/xml", b"\xff<html>")
    assert (tv.keys, tv.power_mode) == (["PowerOff"], "PowerOn")


async def test_a_stubborn_device_agrees_and_a_lagging_one_does_it_later(
    light: LightSimulator, elgato: Elgato, clock: VirtualClock
) -> None:
    light.faults.stubborn = True
    await elgato.light(on=True, brightness=1)
    assert light.lights == [UNCHANGED]
    light.faults.stubborn, light.faults.lag = False, 2.0
    await elgato.light(on=True)
    await clock.run(clock.sleep(1.9))
    assert not (await elgato.state()).on
    await clock.run(clock.sleep(0.1))
    assert (await elgato.state()).on


async def test_dropped_requests_are_cut_off_and_then_all_is_well(light: LightSimulator) -> None:
    light.faults.drop = 2
    assert [await _put(light), await _put(light), light.lights] == [b"", b"", [UNCHANGED]]
    assert (await _put(light)).startswith(b"HTTP/1.1 200 OK")
    assert (light.faults.drop, light.lights[0].on, light.writes) == (0, True, [WRITE] * 3)


async def _put(light: LightSimulator) -> bytes:
    """What comes back until the connection ends: asked by hand, since aiohttp asks again when it is cut off."""
    reader, writer = await asyncio.open_connection(light.host, light.port)
    body = json.dumps(WRITE).encode()
    head = f"PUT /elgato/lights HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    try:
        writer.write(head.encode() + body)
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()
