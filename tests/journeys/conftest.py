"""A hub whose clock is stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator
from tests.fakes.app import App, open_app
from tests.fakes.clock import VirtualClock


@pytest.fixture
async def quiet(clock: VirtualClock) -> AsyncIterator[App]:
    """Provide a ready hub. The hub's clock shows 12:00 UTC on 1 January 2026 until the test changes the time.

    The hub and both devices use this clock. While the clock is stopped, the hub does not poll.
    """
    light, tv = LightSimulator(clock=clock), TvSimulator(clock=clock)
    async with open_app(clock=clock, light=light, tv=tv) as app:
        yield app
