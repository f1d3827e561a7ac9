"""Houses in which time stands still."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator
from tests.fakes.clock import VirtualClock
from tests.fakes.house import House, open_house


@pytest.fixture
async def quiet(clock: VirtualClock) -> AsyncIterator[House]:
    """A house that is ready, at 12:00 UTC on the first of January 2026 until the clock is moved.

    The hub and both devices live by that clock; while it stands still nothing is polled.
    """
    light, tv = LightSimulator(clock=clock), TvSimulator(clock=clock)
    async with open_house(clock=clock, light=light, tv=tv) as house:
        yield house
