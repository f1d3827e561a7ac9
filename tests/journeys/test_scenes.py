"""Scenes over HTTP: how they are listed, run, dropped, and replaced, and their history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator
from tests.fakes.app import LIGHT, TV, App, Received, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.lua import scene, write
from tests.fakes.patience import until

pytestmark = pytest.mark.slow

ON = '{ capability = "power", action = "on" }'
OFF = '{ capability = "power", action = "off" }'
SLEEP = "ctx:sleep(61.5)"
NAP = 61.5
LIMITS = "[automations.runner]\ndefault_max_concurrent = 3\n"

FILES = {
    "scenes/evening.lua": f"""
        return {{
          id = "evening",
          name = "Evening",
          description = "Both on",
          execute = function(ctx)
            ctx:command("{TV}", {ON})
            ctx:command("{LIGHT}", {ON})
            ctx:command("nothing:1", {ON})
            ctx:command("{TV}", {{ capability = "brightness", action = "set", value = 5 }})
          end,
        }}""",
    "scenes/all.lua": scene("all", f'ctx:command_group("all", {OFF})'),
    "scenes/empty.lua": scene("a b/ü"),
    "scenes/fails.lua": scene("fails", f'ctx:command("{TV}", {ON})\n    local x = nil + 1'),
    "scenes/parallel.lua": scene("parallel", SLEEP),
    "scenes/single.lua": scene("single", SLEEP, mode='"single"'),
    "scenes/restart.lua": scene("restart", f'{SLEEP}\n    ctx:command("{TV}", {OFF})', mode='"restart"'),
}


@pytest.fixture
async def lua(clock: VirtualClock, tmp_path: Path) -> AsyncIterator[App]:
    """Run a hub with scenes and a stopped clock."""
    light, tv = LightSimulator(clock=clock), TvSimulator(clock=clock)
    async with open_app(clock=clock, light=light, tv=tv, root=write(tmp_path, FILES), toml=LIMITS) as app:
        yield app


def start(app: App, id_: str) -> asyncio.Task[Received]:
    """Request an execution without waiting for the response."""
    return asyncio.ensure_future(app.post(f"/scenes/{id_}/execute"))


async def under_way(app: App, *, running: int, waiting: int = 0) -> None:
    """Wait until this many executions are sleeping or waiting."""
    scenes = app.hub.scenes

    def is_so() -> bool:
        figures = scenes.figures()
        return (figures["running"], figures["waiting"]) == (running, waiting)

    await until(is_so)


async def asleep(clock: VirtualClock, count: int) -> None:
    """Wait until this many executions are sleeping."""
    await until(lambda: clock.waits.count(NAP) == count)


def of(answer: Received) -> tuple[int, Any]:
    return answer.status, answer.json


OK = (200, {"status": "ok", "results": []})


async def test_scenes_are_listed_by_id_with_an_empty_text_for_a_missing_description(lua: App) -> None:
    answer = await lua.get("/scenes")
    assert answer.status == 200
    ids = [each["id"] for each in answer.json]
    assert ids == sorted(ids) and len(ids) == len(FILES)
    assert {"id": "evening", "name": "Evening", "description": "Both on"} in answer.json
    assert {"id": "fails", "name": "A scene", "description": ""} in answer.json


async def test_running_a_scene_gives_a_result_for_each_command_in_call_order(lua: App) -> None:
    answer = await lua.post("/scenes/evening/execute")
    assert (answer.status, answer.json["status"]) == (200, "ok")
    reported = [(each["target"], each["status"]) for each in answer.json["results"]]
    assert reported == [(TV, "ok"), (LIGHT, "ok"), ("nothing:1", "error"), (TV, "unsupported")]
    messages = [each["message"] for each in answer.json["results"]]
    assert messages[:3] == [None, None, "device 'nothing:1' not found"] and "brightness" in messages[3]
    assert (await lua.device(LIGHT))["attributes"]["power"] == "on"


async def test_a_command_to_a_group_gives_a_result_for_each_member_in_their_order(lua: App) -> None:
    await lua.post("/groups", {"id": "all", "name": "All", "members": [TV, LIGHT]})
    answer = await lua.post("/scenes/all/execute")
    assert [each["target"] for each in answer.json["results"]] == [TV, LIGHT]
    await lua.post("/groups/all/members", {"members": []})
    assert of(await lua.post("/scenes/all/execute")) == OK


async def test_running_a_scene_needs_no_body_and_reads_no_body(lua: App) -> None:
    for body in (None, b"", b"{}", b"not JSON", b"[" * 1000):
        assert of(await lua.post("/scenes/a%20b%2F%C3%BC/execute", data=body)) == OK


async def test_a_failure_has_file_line_and_earlier_results_and_is_not_a_system_error(lua: App) -> None:
    async with lua.stream() as frames:
        answer = await lua.post("/scenes/fails/execute")
        assert [frame["type"] for frame in await lua.received(frames)] in ([], ["device.state_changed"])
    assert answer.status == 400
    assert answer.json["error"].startswith("scene 'fails' failed: config/scenes/fails.lua:6: attempt to perform")
    assert answer.json["results"] == [{"target": TV, "status": "ok", "message": None}]


async def test_an_execution_continues_after_its_client_disconnects(lua: App, clock: VirtualClock) -> None:
    impatient = start(lua, "restart")
    await asleep(clock, 1)
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    await clock.run(_idle(lua))
    [entry] = (await lua.get("/scenes/restart/history")).json["entries"]
    assert (entry["status"], len(entry["results"])) == ("ok", 1)


async def test_executions_beyond_the_mode_are_dropped(lua: App, clock: VirtualClock) -> None:
    running = [start(lua, "parallel") for _ in range(3)]
    await under_way(lua, running=3)
    dropped = await lua.post("/scenes/parallel/execute")
    assert dropped.status == 423
    assert dropped.json["error"].endswith("mode: the limit of mode parallel is 3; already running: 3")
    assert of(await lua.post("/scenes/a%20b%2F%C3%BC/execute")) == OK
    assert [of(each) for each in await clock.run(_all(running))] == [OK] * 3
    again = start(lua, "parallel")
    await under_way(lua, running=1)
    again.cancel()


async def _idle(app: App) -> None:
    await under_way(app, running=0)


async def _one(task: asyncio.Task[Received]) -> Received:
    return await task


async def _all(tasks: list[asyncio.Task[Received]]) -> list[Received]:
    return [await task for task in tasks]


async def test_restart_ends_the_running_execution_after_its_sleep(lua: App, clock: VirtualClock) -> None:
    first = start(lua, "restart")
    await asleep(clock, 1)
    second = start(lua, "restart")
    await asleep(clock, 2)
    third = start(lua, "restart")
    await under_way(lua, running=3)
    assert not first.done() and not second.done()
    await clock.run(_one(third))
    replaced = "scene 'restart' was cancelled: a later execution replaced this one (mode restart)"
    for each in (first, second):
        assert of(await each) == (400, {"error": replaced, "code": "cancelled", "results": []})
    assert (await third).json == {"status": "ok", "results": [{"target": TV, "status": "ok", "message": None}]}
    history = (await lua.get("/scenes/restart/history")).json["entries"]
    assert sorted(entry["status"] for entry in history) == ["cancelled", "cancelled", "ok"]


async def test_history_is_newest_first_and_its_query_bounds_it(lua: App, clock: VirtualClock) -> None:
    path = "/scenes/a%20b%2F%C3%BC/history"
    for _ in range(5):
        assert of(await lua.post("/scenes/a%20b%2F%C3%BC/execute")) == OK
        await clock.run(clock.sleep(1.0005))
    answer = await lua.get(path)
    assert (answer.status, answer.json["scene_id"]) == (200, "a b/ü")
    entries = answer.json["entries"]
    shown: dict[str, Any] = {
        "scene_id": "a b/ü",
        "status": "ok",
        "error": None,
        "results": [],
        "warnings": [],
        "trace": [],
    }
    assert all(each == {**shown, "executed_at": each["executed_at"]} for each in entries)
    times = [each["executed_at"] for each in entries]
    assert len(times) == 5 and times == sorted(times, reverse=True)
    for query, expected in {
        f"?start={times[2]}": times[:3],
        f"?end={times[2]}": times[2:],
        f"?start={times[3]}&end={times[1]}": times[1:4],
        f"?start={times[3].replace('Z', '%2B00:00')}&limit=1": times[:1],
        f"?start={times[3].replace('Z', '+00:00')}": times[:4],
        "?limit=2": times[:2],
        "?limit=1000": times,
        "?start=2100-01-01T00:00:00Z": [],
        "?end=2000-01-01t00:00:00z": [],
    }.items():
        answer = await lua.get(path + query)
        assert [each["executed_at"] for each in answer.json["entries"]] == expected, query


async def test_diagnostics_count_executions_and_their_ends(lua: App, clock: VirtualClock) -> None:
    await lua.post("/scenes/evening/execute")
    await lua.post("/scenes/fails/execute")
    waiting = start(lua, "single")
    await under_way(lua, running=1)
    await lua.post("/scenes/single/execute")
    figures = (await lua.get("/diagnostics")).json
    assert figures["counts"]["scenes"] == len(FILES)
    ended = {"ok": 1, "error": 1, "dropped": 1, "cancelled": 0, "skipped": 0, "timeout": 0}
    expected = {"loaded": len(FILES), "running": 1, "waiting": 0, "ended": ended, "left_out": []}
    assert figures["scenes"] == expected
    assert figures["scripts"]["running"] == 1 and figures["scripts"]["workers"][0]["executions"] == 1
    waiting.cancel()
