"""A home that 0.1.0 left behind, cut from its power in its second run, is whole under this version."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator
from tests.fakes.process import Process, running

HOME = Path(__file__).parents[1] / "fixtures" / "home-0.1.0.tar.gz"
LIGHT, TV = "elgato_lights:light:0", "roku_tv:tv"


def unpack(folder: Path, light: LightSimulator, tv: TvSimulator) -> dict[str, Any]:
    """Lay the home into the folder, its devices where these are; the keys that it had."""
    with tarfile.open(HOME) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it from 3.11.4 on
        archive.extractall(folder)  # noqa: S202 - our own archive
    file = folder / "config" / "default.toml"
    text = file.read_text().replace('"LIGHT"', f'"{light.url}"').replace("port = 8060", f"port = {tv.port}")
    file.write_text(text)
    keys: dict[str, Any] = json.loads((folder / "keys.json").read_text())
    return keys


async def status_for(hub: Process, key: str, path: str = "/rooms") -> int:
    """How the hub answers this key."""
    async with hub.session.get(hub.url + path, headers={"Authorization": f"Bearer {key}"}) as response:
        return response.status


async def test_a_home_of_0_1_0_starts_with_everything_there(tmp_path: Path) -> None:
    async with LightSimulator() as light, TvSimulator() as tv:
        keys = unpack(tmp_path, light, tv)
        async with running(tmp_path, {"LARES_MASTER_KEY": ""}) as hub:
            hub.session.headers["Authorization"] = f"Bearer {keys['master']}"
            await hub.ready()
            rooms = {room["id"]: room["name"] for room in await hub.get("/rooms")}
            assert rooms == {"attic": "Attic", "hall": "Hall"}
            [group] = await hub.get("/groups")
            assert (group["id"], group["name"], group["members"]) == ("evening", "Evening", [LIGHT, TV])
            devices = {device["id"]: device for device in await hub.get("/devices")}
            assert devices[LIGHT]["room_id"] == "attic" and devices[TV]["room_id"] is None
            assert {device["attributes"]["state"] for device in devices.values()} == {"online"}

            valid, revoked = ("read", "write", "admin", "automation", "late"), ("revoked", "late_revoked")
            assert [await status_for(hub, keys[name]["key"]) for name in valid] == [200] * 5
            assert [await status_for(hub, keys[name]["key"]) for name in revoked] == [401] * 2
            assert {key["label"] for key in await hub.get("/auth/keys")} == {keys[name]["label"] for name in valid}
            assert [await status_for(hub, keys[name]["key"], "/auth/keys") for name in valid[:4]] == [
                403,
                403,
                200,
                200,
            ]

            automations = {each["id"]: each for each in await hub.get("/automations")}
            assert automations["morning"]["status"] == "disabled" and automations["tv_off"]["status"] == "enabled"
            assert "reading" in {scene["id"] for scene in await hub.get("/scenes")}
            assert await hub.post("/scenes/reading/execute") == 200
            assert await hub.stop() == 0
        warnings = [line for line in (tmp_path / "hub.log").read_text().splitlines() if " warning " in line]
        assert all("its key is wrong or was revoked" in each for each in warnings), warnings
