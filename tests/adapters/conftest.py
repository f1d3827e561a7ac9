"""Fixtures of the adapters' tests: a clock, a session, and two devices with their addresses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from aioresponses import aioresponses

from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator
from tests.fakes.clock import VirtualClock
from tests.fakes.mocked import mocked_answers


@pytest.fixture
async def session() -> AsyncIterator[DeviceSession]:
    async with DeviceSession() as session:
        yield session


@pytest.fixture
def answers() -> Iterator[aioresponses]:
    """Provide answers of the device. A request without a prepared answer fails."""
    with mocked_answers() as answers:
        yield answers


@pytest.fixture
async def light(clock: VirtualClock) -> AsyncIterator[LightSimulator]:
    """Provide one lamp: 213 mired, off, half brightness."""
    async with LightSimulator(clock=clock) as light:
        yield light


@pytest.fixture
async def tv(clock: VirtualClock) -> AsyncIterator[TvSimulator]:
    """Provide a TV that is on."""
    async with TvSimulator(clock=clock) as tv:
        yield tv
