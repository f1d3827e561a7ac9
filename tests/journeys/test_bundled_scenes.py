"""The bundled scenes and modules: their effects on a light and a TV, and in an empty home."""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import STANDBY, TvSimulator
from appliance.cli.check import check
from tests.fakes.app import LIGHT, TV, App, Received, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.lua import scene, write
from tests.fakes.patience import until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCENES = sorted(file.stem for file in (ROOT / "config/scenes").glob("*.lua"))
SCRIPTS = ROOT / "config/scripts"
EXAMPLES = [
    (f"{name} {number}", text)
    for name in ("docs/automations.md", "docs/lua.md")
    for number, text in enumerate(re.findall(r"```lua\n(.*?)```", (ROOT / name).read_text(), re.DOTALL), 1)
    if "trigger =" not in text
]
"""Examples in the documentation: whole scenes, and lines of scenes."""


@pytest.fixture
async def home(clock: VirtualClock) -> AsyncIterator[App]:
    light, tv = LightSimulator(clock=clock), TvSimulator(clock=clock)
    tv.power_mode = STANDBY
    async with open_app(root=ROOT, clock=clock, light=light, tv=tv, poll_interval_secs=600) as app:
        await app.command(LIGHT, "power", "off")
        yield app


async def becomes(app: App, device: str, attribute: str, value: object) -> None:
    await until(lambda: app.hub.registry.get_device(device).attributes.get(attribute) == value)


async def shown(app: App, device: str, attribute: str) -> object:
    return (await app.device(device))["attributes"].get(attribute)


def targets(answer: Received) -> list[str]:
    """Return the commanded devices. Check that each device executed its command."""
    assert answer.status == 200, answer.json
    assert {each["status"] for each in answer.json["results"]} <= {"ok"}
    return [each["target"] for each in answer.json["results"]]


def test_check_finds_nothing_in_the_bundled_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    file = ROOT / "config" / "default.toml"
    assert check(argparse.Namespace(config=str(file), data_dir=None)) == 0
    assert capsys.readouterr().out.splitlines() == [f"{file}: no faults"]


RESPONSES = {
    "all_off": [],
    "good_night": ["good night: the group of night lights is missing"],
    "movie_night": ["movie night: the TV is missing"],
    "wake_up": ["wake up: the group has no light that is online"],
    "wind_down": ["wind down: no light is on"],
}
"""The response of each scene in a home without devices."""


async def test_bundled_scenes_report_an_empty_home(clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "scripts")
    async with open_app(root=ROOT, adapters={}, clock=clock) as app:
        assert sorted(RESPONSES) == SCENES
        for id_, lines in RESPONSES.items():
            caplog.clear()
            began = clock.now()
            assert targets(await app.post(f"/scenes/{id_}/execute")) == []
            assert clock.now() == began
            reported = [each for each in caplog.records if each.name == "scripts"]
            assert [(each.levelname, each.message) for each in reported] == [("INFO", line) for line in lines]


async def test_movie_night_dims_the_light_and_switches_the_tv_on(home: App) -> None:
    assert targets(await home.post("/scenes/movie_night/execute")) == [LIGHT, LIGHT, LIGHT, TV]
    await becomes(home, TV, "power", "on")
    assert [await shown(home, LIGHT, name) for name in ("power", "brightness")] == ["on", 10]
    assert targets(await home.post("/scenes/movie_night/execute")) == [LIGHT, LIGHT]


async def test_movie_night_logs_if_the_tv_stays_off(home: App, caplog: pytest.LogCaptureFixture) -> None:
    home.tv.faults.status = 500
    answer = await home.post("/scenes/movie_night/execute")
    assert (answer.status, answer.json["results"][-1]["status"]) == (200, "error")
    assert "movie night: the TV stays off" in caplog.text


async def test_good_night_switches_off_all_devices_that_are_on(home: App, clock: VirtualClock) -> None:
    await home.command(LIGHT, "power", "on")
    began = clock.now()
    assert targets(await home.post("/scenes/good_night/execute")) == [LIGHT]
    assert await shown(home, LIGHT, "power") == "off"
    assert clock.now() == began


async def test_good_night_leaves_the_lights_of_the_group_for_a_while(home: App, clock: VirtualClock) -> None:
    await home.post("/groups", {"id": "night", "name": "Night", "members": [LIGHT]})
    await home.command(TV, "power", "on")
    await becomes(home, TV, "power", "on")
    began = clock.now()
    assert targets(await clock.run(home.post("/scenes/good_night/execute"))) == [LIGHT, LIGHT, LIGHT]
    assert (clock.now() - began).total_seconds() >= 15 * 60
    assert [await shown(home, LIGHT, name) for name in ("power", "brightness")] == ["off", 5]
    assert await shown(home, TV, "power") == "on"


async def test_wake_up_brightens_the_light_in_a_quarter_of_an_hour(home: App, clock: VirtualClock) -> None:
    began = clock.now()
    answer = await clock.run(home.post("/scenes/wake_up/execute"))
    assert targets(answer) == [LIGHT] * (3 + 30)
    assert [await shown(home, LIGHT, name) for name in ("power", "brightness")] == ["on", 80]
    assert (clock.now() - began).total_seconds() >= 15 * 60


async def test_wake_up_ends_when_the_light_is_switched_off(home: App, clock: VirtualClock) -> None:
    running = asyncio.ensure_future(home.post("/scenes/wake_up/execute"))
    await until(lambda: 30.0 in clock.waits)
    await home.command(LIGHT, "power", "off")
    assert targets(await clock.run(_answer(running))) == [LIGHT] * 3
    assert await shown(home, LIGHT, "power") == "off"


async def _answer(running: asyncio.Future[Received]) -> Received:
    return await running


@pytest.mark.parametrize("example", [text for _, text in EXAMPLES], ids=[name for name, _ in EXAMPLES])
async def test_the_examples_of_the_documents_run(example: str, clock: VirtualClock, tmp_path: Path) -> None:
    shutil.copytree(SCRIPTS, tmp_path / "config/scripts")
    text = example if "\n  id = " in example else scene("lines", example)
    [id_] = re.findall(r'^  id = "(\w+)"', text, re.MULTILINE)
    light, tv = LightSimulator(clock=clock), TvSimulator(clock=clock)
    root = write(tmp_path, {"scenes/example.lua": text})
    async with open_app(root=root, clock=clock, light=light, tv=tv, poll_interval_secs=600) as app:
        targets(await clock.run(app.post(f"/scenes/{id_}/execute")))


async def power(app: App) -> tuple[str, str]:
    """Return the power of the light and of the TV."""
    shown = [(await app.device(device))["attributes"]["power"] for device in (LIGHT, TV)]
    return shown[0], shown[1]


async def test_lights_off_switches_off_only_the_lights_that_are_on() -> None:
    async with open_app(root=ROOT) as app:
        await app.command(LIGHT, "power", "on")
        await app.command(TV, "power", "on")
        answer = await app.post("/scenes/all_off/execute")
        assert [each["target"] for each in answer.json["results"]] == [LIGHT]
        assert await power(app) == ("off", "on")
        assert (await app.post("/scenes/all_off/execute")).json["results"] == []


async def test_wind_down_dims_warms_and_ends_the_light_and_restarts_when_started_again() -> None:
    clock = VirtualClock()
    light, tv = LightSimulator(clock=clock), TvSimulator(clock=clock)
    async with open_app(root=ROOT, clock=clock, light=light, tv=tv, poll_interval_secs=600) as app:
        await app.command(LIGHT, "brightness", "set", 50)
        await app.command(LIGHT, "power", "on")
        first = asyncio.ensure_future(app.post("/scenes/wind_down/execute"))
        await until(lambda: 60.0 in clock.waits)
        attributes = (await app.device(LIGHT))["attributes"]
        assert abs(attributes["color_temperature"]["value"] - 2900) < 10
        began = clock.now()
        second = asyncio.ensure_future(app.post("/scenes/wind_down/execute"))
        await until(lambda: clock.waits.count(60.0) == 2)
        answers: list[Received] = list(await clock.run(_both(first, second)))
        assert [each.status for each in answers] == [400, 200]
        assert await power(app) == ("off", "on")
        results = answers[1].json["results"]
        assert {each["status"] for each in results} == {"ok"} and len(results) == 1 + 9 + 1
        assert (clock.now() - began).total_seconds() >= 600


async def _both(*tasks: asyncio.Task[Received]) -> list[Received]:
    return [await task for task in tasks]
