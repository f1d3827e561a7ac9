"""A simulated device can be unplugged, and comes back as it was."""

from __future__ import annotations

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


async def test_a_device_can_be_entered_again_and_keeps_its_port() -> None:
    light = LightSimulator(lights=[SimulatedLight(brightness=5)])
    async with light:
        url = light.url
        light.lights[0].on = True
    async with light, Elgato(light.host, port=light.port) as client:
        assert light.url == url
        assert (await client.state()).on
