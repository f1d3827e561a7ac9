"""Groups over HTTP, and commands to all members of a group."""

from __future__ import annotations

from typing import Any

from appliance.adapters.elgato_lights.simulator import SimulatedLight
from tests.fakes.app import LIGHT, TV, App, Received
from tests.fakes.clock import VirtualClock

ON = {"capability": "power", "action": "on"}
SECOND = "elgato_lights:light:1"


async def put(app: App, group_id: str, *members: str, name: str = "All") -> Received:
    return await app.post("/groups", {"id": group_id, "name": name, "members": list(members)})


def _group(members: list[str], name: str = "All") -> dict[str, Any]:
    return {"id": "all", "name": name, "members": members}


def _ids(answer: Received) -> list[str]:
    assert answer.status == 200
    return [device["id"] for device in answer.json]


async def test_a_group_is_created_changed_and_removed_and_only_changes_are_published(app: App) -> None:
    async with app.stream() as frames:
        for body, group, received in [
            (_group([TV, LIGHT]), _group([TV, LIGHT]), ["group.added"]),
            (_group([TV, LIGHT]), _group([TV, LIGHT]), []),
            (_group([TV, LIGHT], "Both"), _group([TV, LIGHT], "Both"), ["group.updated"]),
            (_group([LIGHT, TV], "Both"), _group([LIGHT, TV], "Both"), ["group.members_changed"]),
            (_group([TV], "One"), _group([TV], "One"), ["group.updated", "group.members_changed"]),
            (_group([], "One"), _group([], "One"), ["group.members_changed"]),
        ]:
            answer = await app.post("/groups", body)
            assert (answer.status, answer.json) == (200, group)
            assert (await app.get("/groups/all")).json == group
            frame = {
                "group.added": {"type": "group.added", "group": group},
                "group.updated": {"type": "group.updated", "group": group},
                "group.members_changed": {
                    "type": "group.members_changed",
                    "id": "all",
                    "members": group["members"],
                },
            }
            assert await app.received(frames) == [frame[type_] for type_ in received]
        answer = await app.delete("/groups/all")
        assert (answer.status, answer.json) == (204, None)
        assert await app.received(frames) == [{"type": "group.removed", "id": "all"}]
        for missing in (await app.get("/groups/all"), await app.delete("/groups/all")):
            assert (missing.status, missing.json) == (
                404,
                {"error": "group 'all' not found", "code": "group_not_found"},
            )
        assert await app.received(frames) == []


async def test_without_members_a_new_group_is_empty_and_an_old_one_unchanged(app: App) -> None:
    bare = {"id": "all", "name": "All"}
    async with app.stream() as frames:
        assert (await app.post("/groups", bare)).json == _group([])
        await put(app, "all", LIGHT)
        await app.received(frames)
        assert (await app.post("/groups", bare)).json == _group([LIGHT])
        assert await app.received(frames) == []
        assert (await app.post("/groups", {**bare, "name": "Every"})).json == _group([LIGHT], "Every")
        assert await app.received(frames) == [{"type": "group.updated", "group": _group([LIGHT], "Every")}]


async def test_repeated_members_count_once_at_their_first_place(app: App) -> None:
    assert (await put(app, "all", TV, LIGHT, TV, LIGHT, LIGHT)).json == _group([TV, LIGHT])
    answer = await app.post("/groups/all/members", {"members": [LIGHT, TV, LIGHT]})
    assert answer.json == _group([LIGHT, TV])


async def test_groups_are_listed_by_id(app: App) -> None:
    assert (await app.get("/groups")).json == []
    for group_id in ("den", "attic", "Zoo", "10", "9"):
        await put(app, group_id, TV)
    answer = await app.get("/groups")
    assert answer.status == 200
    assert answer.json == [{"id": id_, "name": "All", "members": [TV]} for id_ in ("10", "9", "Zoo", "attic", "den")]


async def test_members_are_replaced_and_only_a_change_is_published(app: App) -> None:
    await put(app, "all", TV)
    async with app.stream() as frames:
        for members in ([LIGHT, TV], [LIGHT, TV], [TV, LIGHT], [], []):
            answer = await app.post("/groups/all/members", {"members": members, "name": "ignored"})
            assert (answer.status, answer.json) == (200, _group(members))
        assert await app.received(frames) == [
            {"type": "group.members_changed", "id": "all", "members": members}
            for members in ([LIGHT, TV], [TV, LIGHT], [])
        ]


async def test_devices_are_listed_in_membership_order(app: App) -> None:
    await put(app, "all", TV, LIGHT)
    answer = await app.get("/groups/all/devices")
    assert answer.json == [await app.device(TV), await app.device(LIGHT)]
    await put(app, "all", LIGHT, TV)
    assert _ids(await app.get("/groups/all/devices")) == [LIGHT, TV]
    await put(app, "all")
    assert _ids(await app.get("/groups/all/devices")) == []


async def test_removing_a_group_leaves_its_devices(app: App) -> None:
    await put(app, "all", TV, LIGHT)
    before = (await app.get("/devices")).json
    await app.delete("/groups/all")
    assert _ids(await app.get("/devices")) == [device["id"] for device in before]


async def test_an_absent_member_is_listed_and_skipped_until_it_returns(quiet: App, clock: VirtualClock) -> None:
    lamp = SimulatedLight(temperature=213)
    quiet.light.lights = [lamp, lamp]
    await clock.advance(1, sleepers=3)
    await put(quiet, "all", SECOND, TV, LIGHT)
    quiet.light.lights = [lamp]
    await clock.advance(1, sleepers=3)
    assert (await quiet.get("/groups/all")).json["members"] == [SECOND, TV, LIGHT]
    assert (await quiet.get("/groups")).json[0]["members"] == [SECOND, TV, LIGHT]
    assert _ids(await quiet.get("/groups/all/devices")) == [TV, LIGHT]
    results = (await quiet.post("/groups/all/command", ON)).json
    assert [result["device_id"] for result in results] == [TV, LIGHT]

    async with quiet.stream() as frames:
        kept = await quiet.post("/groups", {"id": "all", "name": "Rest"})
        assert kept.json == _group([SECOND, TV, LIGHT], "Rest"), "members left out stay, the vanished one too"
        await quiet.received(frames)
        await quiet.post("/groups", {"id": "few", "name": "Few", "members": [LIGHT]})
        await quiet.received(frames)
        for path, body in (
            ("/groups", {"id": "few", "name": "Few", "members": [SECOND, TV]}),
            ("/groups/few/members", {"members": [SECOND, TV]}),
        ):
            refused = await quiet.post(path, body)
            assert (refused.status, refused.json["error"]) == (400, f"device '{SECOND}' not found")
        for path, body in (
            ("/groups", {"id": "all", "name": "Rest", "members": [SECOND, TV, LIGHT]}),
            ("/groups/all/members", {"members": [SECOND, TV, LIGHT]}),
        ):
            assert (await quiet.post(path, body)).status == 200, "who is a member and away may be written back"
        assert await quiet.received(frames) == []

    quiet.light.lights = [lamp, lamp]
    await clock.advance(1, sleepers=3)
    assert _ids(await quiet.get("/groups/all/devices")) == [SECOND, TV, LIGHT]


def _ok(device_id: str) -> dict[str, Any]:
    return {"device_id": device_id, "status": "ok", "message": None}


async def test_a_command_goes_to_every_member_and_the_results_come_in_membership_order(app: App) -> None:
    for members in ([TV, LIGHT], [LIGHT, TV]):
        await put(app, "all", *members)
        answer = await app.post("/groups/all/command", ON)
        assert (answer.status, answer.json) == (200, [_ok(device_id) for device_id in members])
    assert app.light.lights[0].on and app.tv.power_mode == "PowerOn"
