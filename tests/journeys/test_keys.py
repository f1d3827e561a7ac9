"""Keys over HTTP: create, list, use, and revoke. Connections with a revoked key are closed."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
from msgspec.structs import replace

from appliance.api.keyring import MAX_KEYS
from appliance.api.roles import Role
from tests.api.caller import call, request
from tests.fakes.app import LIGHT, App

REVOKED = 1008


async def make(app: App, role: str = "read", label: str = "tablet") -> Any:
    answer = await app.post("/auth/keys", {"label": label, "role": role})
    assert answer.status == 200, answer
    return answer.json


class TestMaking:
    async def test_the_answer_is_the_key_with_its_secret(self, app: App) -> None:
        for role in set(Role) - {Role.HOOK}:
            await self.judge_answer(app, role)

    async def judge_answer(self, app: App, role: Role) -> None:
        """Check that a key of this role is created, returned completely, and accepted."""
        made = await make(app, role, "the kitchen's tablet")
        assert list(made) == ["id", "label", "role", "created_at", "key"]
        assert (made["label"], made["role"]) == ("the kitchen's tablet", role)
        [name] = re.fullmatch(r"key_([a-z0-9]+)", made["id"]).groups()  # type: ignore[union-attr]
        assert re.fullmatch(rf"lrs_{name}_[A-Za-z0-9_-]{{43}}", made["key"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", made["created_at"])
        age = datetime.now(UTC) - datetime.fromisoformat(made["created_at"])
        assert timedelta(seconds=-1) < age < timedelta(minutes=1)
        assert (await app.get("/devices", token=made["key"])).status == 200

    async def test_a_label_is_trimmed_and_can_be_in_any_script(self, app: App) -> None:
        longest = "ключ " * 20
        for label, kept in (("  a tablet\u00a0 ", "a tablet"), ("日本 🏠", "日本 🏠"), (longest[:100], longest[:99])):
            assert (await make(app, label=label))["label"] == kept
        assert (await make(app, label="x" * 100))["label"] == "x" * 100

    async def test_the_number_of_keys_is_limited(self, app: App) -> None:
        name = (await make(app))["id"].removeprefix("key_")
        key = app.hub.store.keys.find(name)
        assert key is not None
        more = (replace(key, id=f"key_{number}") for number in range(1, MAX_KEYS - 1))
        await asyncio.gather(*map(app.hub.store.keys.put, more))
        answers = await asyncio.gather(
            *(app.post("/auth/keys", {"label": "one more", "role": "read"}) for _ in range(4))
        )
        assert sorted(each.status for each in answers) == [200, 400, 400, 400]
        answer = await app.post("/auth/keys", {"label": "one more", "role": "read"})
        assert (answer.status, answer.json["error"]) == (
            400,
            "the hub has 1000 keys and accepts no more; revoke keys that are no longer used",
        )


class TestListing:
    async def test_every_key_except_the_master_key_is_listed_by_id_without_its_secret(self, app: App) -> None:
        made = [await make(app, role, f"a key to {role}") for role in Role if role != Role.HOOK]
        listed = (await app.get("/auth/keys")).json
        shown = [{name: value for name, value in each.items() if name != "key"} for each in made]
        assert listed == sorted(shown, key=lambda each: each["id"])
        assert all(list(each) == ["id", "label", "role", "created_at"] for each in listed)
        assert (await app.get("/diagnostics")).json["counts"]["keys"] == 4


class TestRevoking:
    async def test_only_the_event_streams_of_a_revoked_key_are_closed_with_1008(self, app: App) -> None:
        made, other = await make(app), await make(app)
        async with app.stream(made["key"]) as one, app.stream(made["key"]) as two, app.stream() as owner:
            async with app.stream(other["key"]) as stays:
                assert (await app.delete(f"/auth/keys/{made['id']}")).status == 204
                await app.post("/rooms", {"id": "den", "name": "Den"})
                for frames in (one, two):
                    message = await frames.socket.receive(timeout=10)
                    assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, REVOKED)
                    assert message.extra == "the key was revoked"
                for frames in (owner, stays):
                    assert (await frames.until("room.added"))[-1]["room"]["id"] == "den"
                assert (await app.get("/diagnostics")).json["events"]["readers"] == 2

    async def test_a_request_whose_body_arrives_after_the_revocation_has_no_effect(self, app: App) -> None:
        made = await make(app, "admin")
        key, body = f"Authorization: Bearer {made['key']}", b'{"id":"den","name":"Den"}'
        posts = [("/rooms", body), (f"/devices/{LIGHT}/room", b'{"room_id":null}')]
        async with call(app.url) as post, call(app.url) as assign:
            for caller, (path, sent) in zip((post, assign), posts, strict=True):
                await caller.send(request("POST", path, key, body=sent)[:-1])
            assert (await app.get("/devices", token=made["key"])).status == 200
            assert (await app.delete(f"/auth/keys/{made['id']}")).status == 204
            for caller in (post, assign):
                reply = await caller.ask(b"}")
                assert (reply.status, reply.json) == (
                    401,
                    {"error": "authentication required", "code": "authentication_required"},
                )
        assert (await app.get("/rooms")).json == []
