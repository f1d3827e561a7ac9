"""A simulated device can be unplugged, and comes back as it was."""

from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest
from elgato import Elgato, ElgatoConnectionError
from rokuecp import Roku, RokuConnectionError

from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from appliance.adapters.roku_tv.simulator import TvSimulator


async def test_an_unplugged_light_refuses_connections_and_comes_back_as_it_was() -> None:
    async with LightSimulator() as light, Elgato(light.host, port=light.port) as client:
        await client.light(on=True, brightness=12)
        url = light.url
        for _ in range(3):
            await light.unplug()
            with pytest.raises(ElgatoConnectionError) as failed:
                await client.state()
            assert isinstance(failed.value.__cause__, aiohttp.ClientConnectorError)
            assert isinstance(failed.value.__cause__.os_error, ConnectionRefusedError)
            await light.plug_in()
            assert light.url == url
            state = await client.state()
            assert (state.on, state.brightness) == (True, 12)


async def test_an_unplugged_tv_refuses_connections_and_comes_back_as_it_was() -> None:
    async with TvSimulator() as tv:
        client = Roku(tv.host, port=tv.port)
        await client.remote("poweroff")
        await tv.unplug()
        with pytest.raises(RokuConnectionError):
            await client.update()
        await tv.plug_in()
        assert (await client.update()).state.standby
        await client.close_session()


async def test_unplugging_cuts_open_connections() -> None:
    async with LightSimulator() as light:
        reader, writer = await asyncio.open_connection(light.host, light.port)
        writer.write(b"GET /elgato/lights HTTP/1.1\r\nHost: light\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        await light.unplug()
        async with asyncio.timeout(20):
            assert b"numberOfLights" in await reader.read()
        writer.close()
        await writer.wait_closed()


async def test_nobody_is_given_the_port_of_an_unplugged_device() -> None:
    async with LightSimulator() as light:
        await light.unplug()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((light.host, light.port))
        await light.plug_in()


async def test_plugging_twice_is_as_plugging_once() -> None:
    async with LightSimulator() as light, aiohttp.ClientSession() as session:
        await light.plug_in()
        await light.unplug()
        await light.unplug()
        await light.plug_in()
        async with session.get(f"{light.url}/elgato/lights") as answer:
            assert answer.status == 200


async def test_a_device_left_while_unplugged_frees_its_port() -> None:
    async with LightSimulator() as light:
        await light.unplug()
    with socket.socket() as other:
        other.bind((light.host, light.port))


async def test_a_device_can_be_entered_again_and_keeps_its_port() -> None:
    light = LightSimulator(lights=[SimulatedLight(brightness=5)])
    async with light:
        url = light.url
        light.lights[0].on = True
    async with light, Elgato(light.host, port=light.port) as client:
        assert light.url == url
        assert (await client.state()).on


async def test_a_port_that_is_taken_is_an_error_that_leaves_nothing_behind() -> None:
    async with LightSimulator() as light:
        with pytest.raises(OSError, match="in use"):
            async with TvSimulator(port=light.port):
                pass


async def test_a_device_listens_on_ipv6_too() -> None:
    if not _has_ipv6_loopback():
        pytest.skip("this machine has no IPv6 loopback")
    async with LightSimulator(host="::1") as light, aiohttp.ClientSession() as session:
        assert light.url == f"http://[::1]:{light.port}"
        async with session.get(f"{light.url}/elgato/lights") as answer:
            assert answer.status == 200


def _has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
