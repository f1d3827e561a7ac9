"""Preferences: each key has its own, bounded and durable, and they end with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from appliance.api.routes.keys import MAX_PREFERENCES_BYTES
from tests.fakes.app import READER, App, open_app

ROOM = MAX_PREFERENCES_BYTES - len('{"a":""}')
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
        assert app.hub.document.items("preferences/") == []


async def test_each_key_has_its_own_and_they_end_with_it(app: App) -> None:
    made = (await app.post("/auth/keys", {"label": "phone", "role": "write"})).json
    await app.ask("PUT", "/preferences", json={"a": 1})
    await app.ask("PUT", "/preferences", json={"a": 2}, token=made["key"])
    assert (await app.get("/preferences")).json == {"a": 1}
    assert (await app.get("/preferences", token=made["key"])).json == {"a": 2}
    assert (await app.get("/preferences", token=READER.text)).json == {}
    assert (await app.ask("PUT", "/preferences", json={}, token=READER.text)).status == 403
    assert (await app.delete(f"/auth/keys/{made['id']}")).status == 204
    assert app.hub.document.items("preferences/") == [("master", {"a": 1})]


async def test_it_is_an_object_of_at_most_16_kib(app: App) -> None:
    for stated, status, sentence in (
        (b'{"a":"' + b"x" * ROOM + b'"}', 200, ""),
        (b'{"a":"' + b"x" * (ROOM + 1) + b'"}', 413, "at most 16384 bytes, not 16385"),
        (b'{"a":' + b" " * 20_000 + b"1}", 200, ""),
        (b"[]", 400, "must be a JSON object"),
        (b"null", 400, "must be a JSON object"),
        (b"", 400, "it is empty"),
        (b'{"a"', 400, "not JSON"),
        (b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", 400, "nested"),
    ):
        before = (await app.get("/preferences")).json
        answer = await app.ask("PUT", "/preferences", data=stated)
        assert answer.status == status, answer.json
        if status != 200:
            assert sentence in answer.json["error"]
            assert (await app.get("/preferences")).json == before
