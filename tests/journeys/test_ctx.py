"""What `ctx` does in a home. Scenes run over HTTP."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from appliance.log_buffer import fields_of
from tests.fakes.app import LIGHT, TV, App, Received, open_app
from tests.fakes.lua import scene, write

pytestmark = pytest.mark.asyncio(loop_scope="module")

ON = '{ capability = "power", action = "on" }'

HOLDS = {
    "a device": f"""
        local d = ctx:get_device("{LIGHT}")
        assert(d.id == "{LIGHT}" and d.kind == "Light" and d.room_id == "den")
        assert(d.attributes.state == "online" and math.type(d.attributes.brightness) == "integer")
        assert(d.attributes.color_temperature.unit == "kelvin" and d.metadata.vendor_specific.light_index == 0)
        assert(d.updated_at:match("Z$") and d.last_seen:match("Z$"))""",
    "no device": 'assert(ctx:get_device("nope") == nil)',
    "devices": f"""
        local all = ctx:list_devices()
        assert(#all == 2 and all[1].id == "{LIGHT}" and all[2].id == "{TV}" and all[2].room_id == nil)""",
    "a room": 'assert(ctx:get_room("den").name == "Den" and ctx:get_room("nope") == nil)',
    "rooms": """
        local all = ctx:list_rooms()
        assert(#all == 2 and all[1].id == "attic" and all[2].id == "den")""",
    "the devices of a room": f"""
        assert(#ctx:list_room_devices("attic") == 0)
        assert(ctx:list_room_devices("den")[1].id == "{LIGHT}")""",
    "a group": f"""
        local g = ctx:get_group("both")
        assert(g.name == "Both" and #g.members == 2 and g.members[1] == "{TV}" and ctx:get_group("nope") == nil)""",
    "groups": 'local all = ctx:list_groups() assert(#all == 2 and all[1].id == "both" and all[2].id == "none")',
    "the devices of a group": f"""
        local found = ctx:list_group_devices("both")
        assert(#found == 2 and found[1].id == "{TV}" and #ctx:list_group_devices("none") == 0)""",
    "a table that was given is the scene's own": f"""
        ctx:get_device("{LIGHT}").attributes.power = "stolen"
        assert(ctx:get_device("{LIGHT}").attributes.power ~= "stolen")""",
    "a command": f"""
        local r = ctx:command("{TV}", {ON})
        assert(r.status == "ok" and r.message == nil)
        r = ctx:command("nope", {ON})
        assert(r.status == "error" and r.message == "device 'nope' not found")
        r = ctx:command("{TV}", {{ capability = "brightness", action = "set", value = 100 / 2 }})
        assert(r.status == "unsupported")
        r = ctx:command("{LIGHT}", {{ capability = "color_temperature", action = "set",
          value = {{ value = 2800, unit = "kelvin" }} }})
        assert(r.status == "error" and r.message:find("2900"))""",
    "a command to a group": f"""
        local all = ctx:command_group("both", {ON})
        assert(#all == 2 and all[1].target == "{TV}" and all[2].target == "{LIGHT}" and all[2].status == "ok")
        assert(#ctx:command_group("none", {ON}) == 0)""",
    "invoke": f"""
        assert(ctx:invoke("elgato_lights:info", {{}}).productName)
        assert(ctx:invoke("roku_tv:info", {{}}))
        ctx:invoke("elgato_lights:identify", {{ device_id = "{LIGHT}" }})""",
    "sleep": "ctx:sleep(0) ctx:sleep(0.01)",
    "an error that is caught": """
        local ok, why = pcall(function() ctx:command_group("nope", {}) end)
        assert(not ok and type(why) == "string")""",
    "time": 'assert(os.date("%Z") and os.time() > 1700000000 and os.clock() >= 0)',
    "ctx in a coroutine": f"""
        local co = coroutine.wrap(function() coroutine.yield(ctx:get_device("{TV}").id) end)
        assert(co() == "{TV}")""",
}
"""Bodies of scenes that run to their end."""

FAILS = {
    "a command that is none": (f'ctx:command("{TV}", "on")', ""),
    "a wrong command to an empty group": ('ctx:command_group("none", { capability = "x", action = "y" })', "x"),
    "a payload without names": ('ctx:invoke("elgato_lights:info", {1})', "payload must be a table with named fields"),
    "a target that is none": ('ctx:invoke(":", {})', "invoke target ':' is not supported"),
    "an operation that is not there": (
        'ctx:invoke("elgato_lights:dance", {})',
        "invoke target 'elgato_lights:dance' is not supported",
    ),
    "an adapter that is not there": ('ctx:invoke("nope:info", {})', "invoke target 'nope:info' is not supported"),
    "a timer without a name": ('ctx:start_timer("", 1)', "the timer's name must have 1 to 256 characters, not 0"),
    "a sleep above 3600": ("ctx:sleep(3600.001)", "3600"),
    "a sleep of no number": ("ctx:sleep(0/0)", ""),
    "a level that is none": ('ctx:log("loud", "x")', "loud"),
    "a point for a colon": (f'ctx.command("{TV}", {ON})', ":"),
    "a device that is not there": ('print(ctx:get_device("nope").attributes)', "nil"),
    "nothing of the box": ('io.open("/etc/passwd")', "nil"),
}
"""Failing calls with their lines and messages. `test_every_word` and `test_mistakes` contain further failing
calls."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lua(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    """Run a hub with a room, a group, and a scene for each case."""
    holds = {f"scenes/holds{n}.lua": scene(f"holds{n}", body) for n, body in enumerate(HOLDS.values())}
    fails = {f"scenes/fails{n}.lua": scene(f"fails{n}", body) for n, (body, _) in enumerate(FAILS.values())}
    logs = scene("logs", 'ctx:log("warn", "hello", { room = "den", level = 3 })\n    print("to the log", 1, nil)')
    root = write(tmp_path_factory.mktemp("lua"), {**holds, **fails, "scenes/logs.lua": logs})
    async with open_app(root=root) as app:
        for room_id in ("den", "attic"):
            await app.post("/rooms", {"id": room_id, "name": room_id.title()})
        await app.post(f"/devices/{LIGHT}/room", {"room_id": "den"})
        await app.post("/groups", {"id": "both", "name": "Both", "members": [TV, LIGHT]})
        await app.post("/groups", {"id": "none", "name": "None", "members": []})
        yield app


def of(answer: Received) -> tuple[int, Any]:
    """Return the status and the error of the execution."""
    return answer.status, answer.json.get("error")


@pytest.mark.parametrize("case", HOLDS)
async def test_ctx_follows_the_specification(lua: App, case: str) -> None:
    answer = await lua.post(f"/scenes/holds{[*HOLDS].index(case)}/execute")
    assert of(answer) == (200, None)


@pytest.mark.parametrize("case", FAILS)
async def test_impossible_calls_are_errors_at_their_line(lua: App, case: str) -> None:
    number = [*FAILS].index(case)
    status, error = of(await lua.post(f"/scenes/fails{number}/execute"))
    assert status == 400
    assert error.startswith(f"scene 'fails{number}' failed: config/scenes/fails{number}.lua:5: ")
    assert FAILS[case][1] in error.partition(".lua:5: ")[2]


async def test_log_lines_of_a_scene_have_its_id_and_fields(lua: App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert (await lua.post("/scenes/logs/execute")).status == 200
    [hello] = [entry for entry in caplog.records if entry.getMessage() == "hello"]
    assert (hello.levelno, fields_of(hello)["scene"], fields_of(hello)["room"]) == (logging.WARNING, "logs", "den")
    [printed] = [entry for entry in caplog.records if entry.getMessage().startswith("to the log")]
    assert (printed.getMessage(), fields_of(printed)["scene"]) == ("to the log\t1\tnil", "logs")
