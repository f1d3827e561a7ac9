"""A reload that raises is answered, published and logged, and the next one is made."""

from __future__ import annotations

import pytest

from appliance.errors import Fault
from appliance.home.bus import Bus
from appliance.home.events import CatalogReloaded, CatalogReloadFailed
from appliance.lua.reload import Reloader
from tests.fakes.clock import VirtualClock


async def test_a_reload_that_raises_is_told_as_failed_and_the_next_one_is_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outcomes: list[tuple[int, list[Fault]] | Exception] = [KeyError("lost"), (3, [])]

    async def work() -> tuple[int, list[Fault]]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async with Reloader("scenes", work, Bus(), VirtualClock(), refusal=None) as reloader:
        failed = await reloader.reload()
        assert isinstance(failed, CatalogReloadFailed) and "KeyError" in str(failed.faults[0])
        assert "reload of scenes: KeyError: 'lost'" in caplog.text
        assert isinstance(await reloader.reload(), CatalogReloaded)
