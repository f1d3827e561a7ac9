"""Every fault of a simulated device does what it says."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest
from elgato import Elgato, ElgatoConnectionError
from rokuecp import Roku, RokuError

from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from appliance.adapters.roku_tv.simulator import TvSimulator
from appliance.adapters.simulated import SimulatedDevice
from appliance.clock import Clock

UNCHANGED = SimulatedLight(temperature=213)
WRITE = {"numberOfLights": 1, "lights": [{"on": 1}]}


class HandClock(Clock):
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.sleeping = asyncio.Event()
        self.woken = asyncio.Event()
        self.asked: list[float] = []

    def monotonic(self) -> float:
        """The seconds that the test let pass."""
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        """Sleep until the test wakes the sleepers, however long was asked."""
        self.asked.append(seconds)
        self.sleeping.set()
        await self.woken.wait()


@pytest.fixture
def clock() -> HandClock:
    """The time of both devices."""
    return HandClock()


async def test_a_late_answer_waits_for_the_clock_and_tells_the_state_of_before(
    light: LightSimulator, elgato: Elgato, clock: HandClock
) -> None:
    light.faults.delay = 3.0
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(elgato.state())
        await clock.sleeping.wait()
        light.lights[0].on = True
        assert not reading.done()
        clock.woken.set()
    assert clock.asked == [3.0]
    assert not reading.result().on


async def test_a_silent_device_takes_the_request_and_never_answers(
    light: LightSimulator, http: aiohttp.ClientSession
) -> None:
    light.faults.silent = True
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(_put(light))
        await _has_received(light, 1)
        answered, _ = await asyncio.wait([writing], timeout=0.02)
        assert not answered
        writing.cancel()
    assert light.requests == [("PUT", "/elgato/lights")]
    assert light.writes == [WRITE]
    assert light.lights == [UNCHANGED]
    light.faults.silent = False
    async with http.get(f"{light.url}/elgato/lights") as answer:
        assert answer.status == 200


async def _has_received(device: SimulatedDevice, count: int) -> None:
    for _ in range(5000):
        if len(device.requests) >= count:
            return
        await asyncio.sleep(0.001)
    pytest.fail(f"only {device.requests} came")


@pytest.mark.parametrize("status", [204, 301, 401, 403, 404, 429, 500, 503])
async def test_a_status_answers_everything_and_nothing_is_done(
    light: LightSimulator, http: aiohttp.ClientSession, status: int
) -> None:
    light.faults.status = status
    async with http.get(f"{light.url}/elgato/lights") as answer:
        assert (answer.status, await answer.read()) == (status, b"")
    async with http.put(f"{light.url}/elgato/lights", json=WRITE) as answer:
        assert answer.status == status
    assert light.lights == [UNCHANGED]


async def test_clients_take_a_status_for_a_failure(
    light: LightSimulator, elgato: Elgato, tv: TvSimulator, roku: Roku
) -> None:
    light.faults.status = tv.faults.status = 500
    with pytest.raises(ElgatoConnectionError):
        await elgato.light(on=True)
    with pytest.raises(RokuError, match="HTTP 500"):
        await roku.remote("poweroff")
    assert tv.power_mode == "PowerOn"


@pytest.mark.parametrize("body", [b"", b"<html>Log in</html>", b'{"lights": [', b"\xff\x00", b"<!DOCTYPE a>"])
async def test_a_body_answers_everything_in_the_place_of_the_real_one(
    tv: TvSimulator, http: aiohttp.ClientSession, body: bytes
) -> None:
    tv.faults.body = body
    for method, path in [("GET", "/query/device-info"), ("POST", "/keypress/PowerOff"), ("GET", "/nowhere")]:
        async with http.request(method, f"{tv.url}{path}") as answer:
            assert (answer.status, answer.content_type) == (200, "text/xml")
            assert await answer.read() == body
    assert (tv.keys, tv.power_mode) == (["PowerOff"], "PowerOn")


async def test_a_stubborn_device_agrees_and_changes_nothing(
    light: LightSimulator, elgato: Elgato, tv: TvSimulator, roku: Roku
) -> None:
    light.faults.stubborn = tv.faults.stubborn = True
    await elgato.light(on=True, brightness=1)
    await elgato.display_name("Desk")
    await roku.remote("poweroff")
    assert light.lights == [UNCHANGED]
    assert light.info["displayName"] == "Simulated light"
    assert (tv.keys, tv.power_mode) == (["PowerOff"], "PowerOn")
    assert light.writes[0]["lights"] == [{"on": 1, "brightness": 1}]


async def test_a_write_lags_behind_its_answer(light: LightSimulator, elgato: Elgato, clock: HandClock) -> None:
    light.faults.lag = 2.0
    await elgato.light(on=True)
    clock.seconds = 1.9
    assert not (await elgato.state()).on
    clock.seconds = 2.0
    assert (await elgato.state()).on
    assert light.lights[0].on


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
