"""Watched folders over HTTP: what is saved is in force a moment later, or told of."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.fakes.house import READER, House, open_house
from tests.fakes.lua import scene, write

ALL = "[scenes]\nwatch = true\n[automations]\nwatch = true\n[scripts]\nwatch = true\ndirectory = 'lib'\n"


def frames_of(house: House) -> list[str]:
    """The catalog's events so far, by their class."""
    return [type(event).__name__ for event in house.events if type(event).__name__.startswith("Catalog")]


async def test_which_folders_are_watched_is_told_as_configured(house: House, tmp_path: Path) -> None:
    answer = await house.get("/diagnostics/reload_watch")
    targets = ("scenes", "automations", "scripts")
    watches = [{"target": each, "enabled": False, "directory": f"config/{each}"} for each in targets]
    assert (answer.status, answer.json) == (200, {"status": "ok", "watches": watches})
    assert (await house.get("/diagnostics/reload_watch", token=READER.text)).status == 403
    async with open_house(root=tmp_path, toml=ALL) as watching:
        reported = (await watching.get("/diagnostics/reload_watch")).json["watches"]
        assert [(each["enabled"], each["directory"]) for each in reported] == [
            (True, "config/scenes"),
            (True, "config/automations"),
            (True, "lib"),
        ]


async def test_a_saved_scene_is_in_force_and_a_broken_one_is_told_of_and_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"scenes/one.lua": scene("one")})
    async with open_house(root=tmp_path, toml="[scenes]\nwatch = true\n") as house, house.stream() as frames:
        write(tmp_path, {"scenes/two.lua": scene("two")})
        reported = await frames.until("scene.catalog_reloaded", within=10)
        assert reported[-1]["loaded_count"] == 2
        assert [each["id"] for each in (await house.get("/scenes")).json] == ["one", "two"]
        write(tmp_path, {"scenes/two.lua": "return {"})
        reported = await frames.until("scene.catalog_reload_failed", within=10)
        assert [each["file"] for each in reported[-1]["errors"]] == ["config/scenes/two.lua"]
        assert (await house.post("/scenes/two/execute")).status == 200


async def test_a_folder_that_is_not_enabled_is_not_watched(tmp_path: Path) -> None:
    write(tmp_path, {"scenes/one.lua": scene("one")})
    async with open_house(root=tmp_path, toml="[scenes]\nenabled = false\nwatch = true\n") as house:
        write(tmp_path, {"scenes/two.lua": scene("two")})
        await asyncio.sleep(1)
        assert frames_of(house) == []
