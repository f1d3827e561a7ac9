"""What the adapters' tests have at hand: a clock of their own, a session, two devices and the way to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from aioresponses import aioresponses

from appliance.adapters.device_http import DeviceSession
from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator
from tests.fakes.clock import VirtualClock
from tests.fakes.mocked import mocked_answers


@pytest.fixture
async def session() -> AsyncIterator[DeviceSession]:
    """The session that the hub would open."""
    async with DeviceSession() as session:
        yield session


@pytest.fixture
def answers() -> Iterator[aioresponses]:
    """What the device answers; a request that nothing was prepared for fails."""
    with mocked_answers() as answers:
        yield answers


@pytest.fixture
async def light(clock: VirtualClock) -> AsyncIterator[LightSimulator]:
    """One lamp of 213 mired, off, at half brightness."""
    async with LightSimulator(clock=clock) as light:
        yield light


@pytest.fixture
async def tv(clock: VirtualClock) -> AsyncIterator[TvSimulator]:
    """A TV that is on."""
    async with TvSimulator(clock=clock) as tv:
        yield tv
