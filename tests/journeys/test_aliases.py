"""Wherever a device id is accepted, an alias that people chose is accepted too. Responses contain the id."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.cli.commands import LOOPBACK, ended
from tests.fakes.app import LIGHT, TV, App, open_app
from tests.fakes.lua import automation, scene, write

pytestmark = pytest.mark.slow

HOME = """
[adapters.virtual]
devices = [
  { id = "lamp", name = "Hall lamp", kind = "Light", attributes = { power = "off" } },
  { id = "door", name = "Door", attributes = { contact = "closed" } },
  { id = "bell", name = "Bell", class = "button", attributes = { battery = 80 } },
]
"""
LAMP, DOOR, BELL = "virtual:lamp", "virtual:door", "virtual:bell"
ON, OFF = ({"capability": "power", "action": each} for each in ("on", "off"))

BODY = """
  local d = ctx:get_device("lamp")
  assert(d.id == "virtual:lamp" and d.alias == "lamp", d.alias)
  local r = ctx:command("lamp", { capability = "power", action = "on" })
  assert(r.status == "ok", r.message)
  assert(ctx:wait_for("lamp", { attribute = "power", equals = "on", timeout_secs = 1 }))
  local before = ctx:snapshot({ "lamp" })
  assert(before["virtual:lamp"].power == "on" and before["lamp"] == nil)
  ctx:restore(before)
  ctx:invoke("virtual:observe", { device_id = "lamp", attributes = { power = "off" } })
"""

FILES = {
    "scenes/all.lua": scene("all", BODY),
    "automations/state.lua": automation(
        "state", '{ type = "device_state_change", device_id = "front_door", attribute = "contact", equals = "open" }'
    ),
    "automations/event.lua": automation("event", '{ type = "device_event", device_id = { "bell" } }'),
    "automations/wait.lua": automation(
        "wait",
        '{ type = "device_state_change", device_id = "front_door", attribute = "contact", duration_secs = 0.05 }',
    ),
    "automations/condition.lua": automation(
        "condition",
        '{ type = "device_event", device_id = "bell" }',
        more='  conditions = {{ type = "device_state", device_id = "front_door", attribute = "contact", '
        'equals = "open", for_secs = 0 }}',
    ),
}


@pytest_asyncio.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    """Run a home with virtual devices, and with automations that use aliases that do not exist yet."""
    root = write(tmp_path / "home", {**FILES, "default.toml": LOOPBACK + HOME})
    (root / "data").mkdir()
    async with open_app(adapters=HOME, root=root, data_dir=root / "data") as app:
        yield app


async def give(app: App, device_id: str, alias: str | None) -> Any:
    """Set the alias. Return the device in the response."""
    answer = await app.post(f"/devices/{device_id}/alias", {"alias": alias})
    assert answer.status == 200, answer.json
    return answer.json


async def runs(app: App, id_: str, holds: Callable[[list[Any]], bool]) -> list[Any]:
    """Wait until the automation's history fulfils the condition, and return the history."""
    for _ in range(400):
        entries: list[Any] = (await app.get(f"/automations/{id_}/history")).json["entries"]
        if holds(entries):
            return entries
        await asyncio.sleep(0.01)
    raise AssertionError(f"{id_}: {entries}")


async def test_an_alias_is_in_every_answer_and_accepted_in_every_path(app: App) -> None:
    before = await app.device(LAMP)
    assert "alias" not in before
    async with app.stream() as frames:
        given = await give(app, LAMP, " lamp ")
        assert given == {**before, "alias": "lamp"}
        assert (await give(app, "lamp", "lamp")) == given, "again, under its alias"
        [frame] = [each for each in await app.received(frames) if each["type"] == "device.updated"]
    info = {"id": LAMP, "name": "Hall lamp", "info": before["info"]}
    assert frame == {"type": "device.updated", **info, "alias": "lamp"}
    assert await app.device("lamp") == given
    assert (await app.get(f"/devices?ids=lamp&ids={DOOR}&ids={LAMP}")).json == [given, await app.device(DOOR)]
    assert given in (await app.get("/devices")).json
    assert (await app.post("/devices/lamp/command", ON)).json == {"status": "ok"}
    assert (await app.get("/audit/commands?device_id=lamp")).json["entries"][0]["device_id"] == LAMP
    assert (await app.post("/devices/lamp/name", {"name": "Lamp"})).json["name"] == "Lamp"
    await app.post("/rooms", {"id": "hall", "name": "Hall"})
    assert (await app.post("/devices/lamp/room", {"room_id": "hall"})).json["room_id"] == "hall"
    for path in ("history", "history/power", "uses"):
        assert (await app.get(f"/devices/lamp/{path}")).json["device_id"] == LAMP
    assert (await app.get("/devices/lamp/uses")).json["scenes"] == ["all"]
    members = {"id": "both", "name": "Both", "members": [DOOR, "lamp", LAMP]}
    assert (await app.post("/groups", members)).json["members"] == [DOOR, LAMP]
    assert (await app.post("/groups/both/members", {"members": ["lamp"]})).json["members"] == [LAMP]
    assert (await app.get("/why?id=lamp")).json["id"] == LAMP
    await app.post(f"/devices/{DOOR}/name", {"name": "Lamp"})
    ambiguous = await app.get("/why?id=lAMP")
    assert (ambiguous.status, ambiguous.json["error"]) == (
        400,
        f"the name 'lAMP' is ambiguous; write one of these ids: {DOOR}, {LAMP}",
    )
    await app.post(f"/devices/{DOOR}/name", {"name": "Door"})
    observed = await app.post("/adapters/virtual/operations/observe", {"device_id": "lamp", "attributes": OFF_NOW})
    assert observed.status == 200, observed.json
    made = (await app.post("/auth/keys", {"label": "x", "role": "hook", "hook": "device:lamp"})).json
    assert "warning" not in made
    called = await app.post("/hooks/device:lamp", {"attributes": {"power": "on"}}, token=made["key"])
    assert called.status == 200 and (await app.device(LAMP))["attributes"]["power"] == "on"
    assert (await give(app, LAMP, None)).get("alias") is None
    assert (await app.get("/devices/lamp")).json["error"] == (
        "device 'lamp' not found; this is a device's name, so use its id: virtual:lamp"
    )


OFF_NOW = {"power": "off"}


async def test_an_alias_is_accepted_by_every_method_of_ctx(app: App) -> None:
    await give(app, LAMP, "lamp")
    done = await app.post("/scenes/all/execute")
    assert done.status == 200, done.json
    assert {each["target"] for each in done.json["results"]} == {LAMP}


async def test_an_alias_takes_effect_at_once_in_loaded_triggers_and_conditions(app: App) -> None:
    async def observe(device_id: str, **payload: Any) -> None:
        answer = await app.post("/adapters/virtual/operations/observe", {"device_id": device_id, **payload})
        assert answer.status == 200, answer.json

    await observe(DOOR, attributes={"contact": "open"})
    await observe(DOOR, attributes={"contact": "closed"})
    assert (await app.get("/automations/state/history")).json["entries"] == []
    await give(app, DOOR, "front_door")
    await give(app, BELL, "bell")
    await observe(BELL, event="ring")
    [skipped] = await runs(app, "condition", bool)
    assert skipped["error"].startswith("condition 1: contact was 'closed'"), skipped
    await observe("front_door", attributes={"contact": "open"})
    [run] = await runs(app, "state", bool)
    assert run["trigger_payload"]["device_id"] == DOOR
    assert len(await runs(app, "event", bool)) == 1
    assert len(await runs(app, "wait", bool)) == 1
    await observe(BELL, event="ring")
    assert (await runs(app, "condition", lambda found: len(found) == 2))[0]["status"] == "ok"
    await give(app, DOOR, None)
    await give(app, BELL, "front_door")
    await observe(DOOR, attributes={"contact": "closed"})
    await observe(DOOR, attributes={"contact": "open"})
    assert len((await app.get("/automations/state/history")).json["entries"]) == 1, "it is another device's now"


async def test_one_of_several_simultaneous_requests_gets_an_alias(app: App) -> None:
    longest = "a" * 64
    tried = [app.post(f"/devices/{each}/alias", {"alias": longest}) for each in (LAMP, DOOR, BELL)]
    assert sorted(answer.status for answer in await asyncio.gather(*tried)) == [200, 409, 409]


async def test_errors_have_the_id_and_the_alias(app: App) -> None:
    await give(app, LAMP, "lamp")
    meant = "device 'hall lamp' not found; this is a device's name, so use its id: virtual:lamp (alias lamp)"
    assert (await app.get("/devices/hall%20lamp")).json["error"] == meant
    refused = await app.post("/groups", {"id": "g", "name": "G", "members": ["hall lamp"]})
    assert (refused.status, refused.json["error"]) == (400, meant)


async def test_an_alias_survives_a_restart_and_an_absence(tmp_path: Path) -> None:
    async with open_app(data_dir=tmp_path) as app:
        await give(app, TV, "tv")
        await give(app, LIGHT, "desk")
    async with open_app(data_dir=tmp_path, wait_until_ready=False) as app:
        assert (await app.device("tv"))["id"] == TV
    async with open_app(data_dir=tmp_path, adapters=HOME) as app:
        assert (await app.get("/devices/tv")).status == 404
        taken = await app.post(f"/devices/{LAMP}/alias", {"alias": "tv"})
        assert (taken.status, taken.json["code"]) == (409, "alias_taken")
        assert f'remove the alias with POST /devices/{TV}/alias {{"alias": null}}' in taken.json["error"]
        assert (await give(app, TV, None))["id"] == TV
        assert (await app.post(f"/devices/{TV}/alias", {"alias": "tv"})).status == 404
        assert (await give(app, LAMP, "tv"))["alias"] == "tv"
    async with open_app(data_dir=tmp_path) as app:
        assert (await app.device("desk"))["id"] == LIGHT
        assert "alias" not in await app.device(TV)


EVENTS = "+1 front_door contact open\n+1 bell event ring\n"


async def test_simulate_check_and_why_accept_aliases_and_explain_names(tmp_path: Path) -> None:
    root = write(tmp_path / "home", {**FILES, "default.toml": LOOPBACK + HOME, "events.txt": EVENTS})
    (root / "data").mkdir()
    async with open_app(adapters=HOME, root=root, data_dir=root / "data") as app:
        await give(app, DOOR, "front_door")
        await give(app, BELL, "bell")
    found = await asyncio.to_thread(ended, root, "check")
    assert found.out.count("uses the device name") == 0, found.out
    for call in ("command", "get_device"):
        named = f"ctx:{call} names 'lamp', but there is no such device or alias; did you mean virtual:lamp?"
        assert named in found.out, found.out
    assert "front_door" not in found.out.replace("front_door.lua", ""), found.out
    done = await asyncio.to_thread(ended, root, "simulate", "--events", "config/events.txt", "--hours", "1")
    assert done.out.count("fires") == 4, done
    write(root, {"scenes/all.lua": scene("all", 'ctx:command("Hall lamp", {})')})
    found = await asyncio.to_thread(ended, root, "check")
    assert "ctx:command uses the device name 'Hall lamp'; instead, write the id virtual:lamp" in found.out, found.out
    gone = HOME.replace('  { id = "door"', '#  { id = "door"')
    async with open_app(adapters=gone, root=root, data_dir=root / "data") as app:
        for word in (DOOR, "front_door", "door"):
            reported = (await app.get(f"/why?id={word}")).json
            assert (
                reported["id"] == DOOR and "it was removed at " in reported["summary"][0] + reported["summary"][1]
            ), reported
            assert any("its name was 'Door'" in each for each in reported["summary"])
        assert (await app.get(f"/why?id={BELL.replace('l', 'k')}")).status == 404
        assert any("which was removed at" in each for each in (await app.get("/why?id=state")).json["summary"])
    write(root, {"default.toml": LOOPBACK + gone})
    found = await asyncio.to_thread(ended, root, "check")
    assert "names 'front_door', which was removed at " in found.out, found.out
