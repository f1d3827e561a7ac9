"""What the tests of simulators have at hand: the clients of third parties, and a bare session."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
from elgato import Elgato
from rokuecp import Roku

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator


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
