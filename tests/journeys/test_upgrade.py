"""After an upgrade to this version, homes of earlier versions are complete, although the earlier hubs were killed in
their second run."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator
from tests.fakes.process import running

HOMES = Path(__file__).parents[1] / "fixtures"
LIGHT, TV = "elgato_lights:light:0", "roku_tv:tv"
LAMP, HEATING, MOTION = "virtual:lamp", "virtual:heating", "virtual:motion"


def unpack(version: str, folder: Path) -> dict[str, Any]:
    """Unpack the home of a version into the folder, and return its keys."""
    with tarfile.open(HOMES / f"home-{version}.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # available since Python 3.11.4
        archive.extractall(folder)  # noqa: S202 - our own archive
    keys: dict[str, Any] = json.loads((folder / "keys.json").read_text())
    return keys


@pytest.mark.slow
async def test_a_home_of_0_1_0_starts_complete(tmp_path: Path) -> None:
    async with LightSimulator() as light, TvSimulator() as tv:
        keys = unpack("0.1.0", tmp_path)
        file = tmp_path / "config" / "default.toml"
        text = file.read_text().replace('"LIGHT"', f'"{light.url}"').replace("port = 8060", f"port = {tv.port}")
        file.write_text(text)
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
            assert [await hub.status_for(keys[name]["key"]) for name in valid] == [200] * 5
            assert [await hub.status_for(keys[name]["key"]) for name in revoked] == [401] * 2
            assert {key["label"] for key in await hub.get("/auth/keys")} == {keys[name]["label"] for name in valid}
            assert [await hub.status_for(keys[name]["key"], "/auth/keys") for name in valid[:4]] == [
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
        assert all("its key is wrong or revoked" in each for each in warnings), warnings


@pytest.mark.slow
async def test_a_home_of_0_2_0_starts_complete(tmp_path: Path) -> None:
    keys = unpack("0.2.0", tmp_path)
    async with running(tmp_path, {"LARES_MASTER_KEY": ""}) as hub:
        hub.session.headers["Authorization"] = f"Bearer {keys['master']}"
        await hub.ready()
        rooms = {room["id"]: room["name"] for room in await hub.get("/rooms")}
        assert rooms == {"attic": "Attic", "hall": "Hall", "cellar": "Cellar"}
        [group] = await hub.get("/groups")
        assert (group["id"], group["name"], group["members"]) == ("evening", "Evening", [LAMP, HEATING])
        devices = {device["id"]: device for device in await hub.get("/devices")}
        assert devices.keys() == {LAMP, HEATING, MOTION}
        assert (devices[LAMP]["name"], devices[LAMP]["room_id"]) == ("Reading lamp", "attic")
        assert devices[MOTION]["room_id"] == "hall" and devices[HEATING]["room_id"] is None
        assert devices[LAMP]["attributes"] == {"power": "on", "brightness": 60, "state": "online"}
        assert devices[HEATING]["attributes"]["target_temperature"] == {"value": 22, "unit": "°C"}

        valid = ("read", "write", "admin", "automation", "late")
        assert [await hub.status_for(keys[name]["key"]) for name in valid] == [200] * 5
        assert await hub.status_for(keys["revoked"]["key"]) == 401
        assert await hub.status_for(keys["hook"]["key"]) == 403
        assert await hub.status_for(keys["hook"]["key"], "/hooks/doorbell") == 404, "no automation has it"
        stored = {(key["id"], key["label"], key["role"]) for key in await hub.get("/auth/keys")}
        assert stored == {tuple(keys[name][part] for part in ("id", "label", "role")) for name in (*valid, "hook")}

        variables = {each["name"]: each["value"] for each in await hub.get("/variables")}
        plan = {"days": [1, 2, 3], "text": "Grüße"}
        assert variables == {"holiday": False, "late": True, "moved": {"count": 1}, "plan": plan}
        automations = {each["id"]: each for each in await hub.get("/automations")}
        assert {id_: each["status"] for id_, each in automations.items()} == {
            "morning": "disabled",
            "motion": "enabled",
            "off": "enabled",
        }
        timers = [each["name"] for each in await hub.get("/timers")]
        assert timers == ["lamp_off"] or automations["off"]["last_run"] is not None, "it runs until 2028"

        assert await hub.post("/scenes/reading/execute") == 200
        since = "start=2026-11-28T09:00:00Z&end=2026-11-28T09:37:00Z"
        history = await hub.get(f"/devices/{LAMP}/history/power?{since}")
        assert [each["value"] for each in history["entries"]] == ["on", "off"]
        assert await hub.stop() == 0
    warnings = [line for line in (tmp_path / "hub.log").read_text().splitlines() if " warning " in line]
    assert all("its key is wrong or revoked" in each for each in warnings), warnings
