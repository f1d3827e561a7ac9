"""Each key has separate preferences, which are limited and durable. When a key is deleted, its preferences are
deleted as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fakes.app import READER, App, open_app

KEPT: dict[str, Any] = {"favourites": ["a:b"], "hidden": [], "deep": {"x": [1, 2.5, None, True, "ä"]}}


async def test_preferences_survive_a_restart_and_are_in_the_overview(tmp_path: Path) -> None:
    async with open_app(data_dir=tmp_path) as app:
        assert (await app.get("/preferences")).json == {}
        answer = await app.ask("PUT", "/preferences", json=KEPT)
        assert (answer.status, answer.json) == (200, KEPT)
    async with open_app(data_dir=tmp_path) as app:
        assert (await app.get("/preferences")).json == KEPT
        assert (await app.get("/overview")).json["preferences"] == KEPT
        assert (await app.ask("PUT", "/preferences", json={})).json == {}
        assert app.hub.store.document.items("preferences/") == []


async def test_each_key_has_its_own_preferences_until_it_is_revoked(app: App) -> None:
    made = (await app.post("/auth/keys", {"label": "phone", "role": "write"})).json
    await app.ask("PUT", "/preferences", json={"a": 1})
    await app.ask("PUT", "/preferences", json={"a": 2}, token=made["key"])
    assert (await app.get("/preferences")).json == {"a": 1}
    assert (await app.get("/preferences", token=made["key"])).json == {"a": 2}
    assert (await app.get("/preferences", token=READER.text)).json == {}
    assert (await app.delete(f"/auth/keys/{made['id']}")).status == 204
    assert app.hub.store.document.items("preferences/") == [("master", {"a": 1})]
