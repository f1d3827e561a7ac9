"""The TV adapter, as the specification's tables and the contract tell it, over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from appliance.adapters.roku_tv.simulator import TvSimulator
from tests.fakes.app import TV, App, Received, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.patience import until

CAPTURES = Path(__file__).parents[1] / "fixtures" / "roku"
INFO = ("GET", "/query/device-info")


def _press(key: str) -> tuple[str, str]:
    return ("POST", f"/keypress/{key}")


async def power(app: App, action: str) -> Received:
    """Command the TV's power."""
    return await app.command(TV, "power", action)


async def shown(app: App) -> Any:
    """The power that the hub shows."""
    return (await app.device(TV))["attributes"]["power"]


# --- reading again -------------------------------------------------------------------------------


async def test_what_polls_see_meanwhile_is_left_out_so_that_the_power_does_not_flip(
    quiet: App, clock: VirtualClock
) -> None:
    quiet.tv.faults.lag = 1.5
    async with quiet.stream() as frames:
        commanding = asyncio.ensure_future(power(quiet, "toggle"))
        await until(lambda: clock.sleepers == 4)
        await clock.advance(1.9, sleepers=4)
        assert await quiet.received(frames) == []
        await clock.advance(0.1, sleepers=3)
        assert (await commanding).status == 200
        await clock.advance(3, sleepers=3)
        assert [frame["state"]["power"] for frame in await quiet.received(frames)] == ["off"]


# --- what goes wrong -----------------------------------------------------------------------------


async def test_a_tv_that_forbids_control_says_which_setting_to_change(quiet: App) -> None:
    quiet.tv.limited = True
    async with quiet.stream() as frames:
        answer = await power(quiet, "off")
        assert answer.status == 400
        assert answer.json == {
            "error": f"{quiet.tv.url} refuses to be controlled: on the TV, open Settings > System > Advanced system "
            "settings > Control by mobile apps > Network access and choose Default or Permissive",
            "code": "device_refused",
        }
        assert await quiet.received(frames) == []
    assert (await quiet.device(TV))["attributes"] == {"power": "on", "state": "online"}


async def test_a_tv_that_forbids_everything_says_so_at_its_first_poll() -> None:
    tv = TvSimulator()
    tv.faults.status = 403
    async with open_app(tv=tv) as app:
        shown = (await app.get("/adapters/roku_tv")).json
        assert "Control by mobile apps" in shown["last_error"]
        assert (await app.get(f"/devices/{TV}")).status == 404
