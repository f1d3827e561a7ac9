"""The Lua files that come with Lares do what they say, in a home with a light and a TV."""

from __future__ import annotations

import asyncio
from pathlib import Path

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator
from tests.fakes.clock import VirtualClock
from tests.fakes.house import LIGHT, TV, House, Received, open_house
from tests.fakes.patience import until

ROOT = Path(__file__).parents[2]


async def power(house: House) -> tuple[str, str]:
    """Of light and TV."""
    shown = [(await house.device(device))["attributes"]["power"] for device in (LIGHT, TV)]
    return shown[0], shown[1]


async def test_all_of_them_are_sound_and_none_is_left_out() -> None:
    async with open_house(root=ROOT) as house:
        files = list((ROOT / "config/scenes").glob("*.lua"))
        assert len((await house.get("/scenes")).json) == len(files) > 0
        for target in ("scenes", "scripts"):
            assert (await house.post(f"/{target}/reload")).json["status"] == "ok"


async def test_lights_off_switches_off_the_lights_that_are_on_and_nothing_else() -> None:
    async with open_house(root=ROOT) as house:
        await house.command(LIGHT, "power", "on")
        await house.command(TV, "power", "on")
        answer = await house.post("/scenes/all_off/execute")
        assert [each["target"] for each in answer.json["results"]] == [LIGHT]
        assert await power(house) == ("off", "on")
        assert (await house.post("/scenes/all_off/execute")).json["results"] == []


async def test_wind_down_dims_warms_and_ends_the_light_and_begins_anew_when_started_again() -> None:
    clock = VirtualClock()
    light, tv = LightSimulator(clock=clock), TvSimulator(clock=clock)
    async with open_house(root=ROOT, clock=clock, light=light, tv=tv, poll_interval_secs=600) as house:
        await house.command(LIGHT, "brightness", "set", 50)
        await house.command(LIGHT, "power", "on")
        first = asyncio.ensure_future(house.post("/scenes/wind_down/execute"))
        await until(lambda: 60.0 in clock.waits)
        attributes = (await house.device(LIGHT))["attributes"]
        assert abs(attributes["color_temperature"]["value"] - 2900) < 10
        began = clock.now()
        second = asyncio.ensure_future(house.post("/scenes/wind_down/execute"))
        await until(lambda: clock.waits.count(60.0) == 2)
        answers: list[Received] = list(await clock.run(_both(first, second)))
        assert [each.status for each in answers] == [400, 200]
        assert await power(house) == ("off", "on")
        results = answers[1].json["results"]
        assert {each["status"] for each in results} == {"ok"} and len(results) == 1 + 9 + 1
        assert (clock.now() - began).total_seconds() >= 600


async def _both(*tasks: asyncio.Task[Received]) -> list[Received]:
    return [await task for task in tasks]
