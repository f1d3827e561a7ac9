"""The automations that come with Lares do what they say, and nothing in a home that was not made for them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fakes.app import LIGHT, open_app
from tests.fakes.lua import write

ROOT = Path(__file__).parents[2]
IDS = {file.stem for file in (ROOT / "config/automations").glob("*.lua")}


async def test_all_are_sound_in_a_home_that_has_nothing_and_their_ids_are_their_files_names() -> None:
    async with open_app(root=ROOT, adapters={}) as app:
        listed = (await app.get("/automations")).json
        assert {each["id"]: each["status"] for each in listed} == dict.fromkeys(IDS, "disabled")
        told = str((await app.get("/why?id=motion_light")).json)
        assert "fill in the names at its top, then switch it on" in told
        assert (await app.post("/automations/reload")).json["errors"] == []
        for id_ in IDS:
            assert (await app.post(f"/automations/{id_}/execute")).status == 200


async def test_in_a_home_without_what_they_need_they_command_nothing_and_say_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_app(root=ROOT) as app:
        for action in ("off", "on"):
            await app.command(LIGHT, "power", action)
        for id_ in IDS:
            assert (await app.post(f"/automations/{id_}/execute")).json["results"] == []
        assert (await app.post("/automations/reload")).json["errors"] == []
    assert [each.message for each in caplog.records if each.name in {"scripts", "automations"}] == []


async def test_the_trigger_that_a_comment_recommends_works(tmp_path: Path) -> None:
    text = (ROOT / "config/automations/evening_light.lua").read_text()
    [advice] = [line[2:].strip() for line in text.splitlines() if 'trigger = { type = "sunset"' in line]
    lines = [advice if line.startswith("  trigger =") else line for line in text.splitlines()]
    shutil.copytree(ROOT / "config/scripts", tmp_path / "config/scripts")
    write(tmp_path, {"automations/evening_light.lua": "\n".join(lines)})
    toml = "[locale]\ntimezone = 'Europe/Berlin'\nlatitude = 52.52\nlongitude = 13.4\n"
    async with open_app(root=tmp_path, toml=toml) as app:
        assert (await app.get("/automations/evening_light")).json["trigger_type"] == "sunset"
