"""A stored value of the wrong type never prevents a start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from appliance.clock import Clock
from appliance.store.disk import Disk
from appliance.store.document import open_document
from tests.fakes.app import LIGHT, open_app

KEYS = (
    *("room/a", "group/a", "key/a", "preferences/a", "toggle/a", "automation/a", "variable/a", "timer/a"),
    *(f"{prefix}/{LIGHT}" for prefix in ("place", "name", "alias", "removed", "device", "state", "changed", "sent")),
    *("adapter/elgato_lights/kept", "clock/trust", "counter/card", "counter/crashes", "counter/doubtful"),
    "counter/running",
)
ODD: tuple[Any, ...] = (["single"], 5, "text", {"x": 1}, {"at": "no", "value": [1]}, True)


async def test_the_first_of_two_devices_keeps_a_stored_alias(tmp_path: Path) -> None:
    async with open_document(Disk(tmp_path), Clock()) as document:
        await document.put_many({f"alias/{LIGHT}": "lamp", "alias/other:light": "lamp"})
    async with open_app(data_dir=tmp_path) as app:
        assert app.hub.registry.layout.aliases == {LIGHT: "lamp"}
        [note] = app.hub.store.unreadable
        assert "alias/other:light is invalid (alias 'lamp' belongs to device" in note


@pytest.mark.parametrize("odd", ODD, ids=repr)
async def test_the_hub_starts_and_stores(tmp_path: Path, odd: Any) -> None:
    async with open_document(Disk(tmp_path), Clock()) as document:
        await document.put_many(dict.fromkeys(KEYS, odd))
    async with open_app(data_dir=tmp_path) as app:
        assert (await app.ask("POST", "/rooms", json={"id": "attic", "name": "Attic"})).status == 200
        assert (await app.get("/diagnostics/status")).status == 200
