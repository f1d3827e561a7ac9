"""Running executions are listed and can be cancelled over HTTP. `status` and `why` report running executions."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from appliance.event_loop import SHORT_TURN_SECS, loop_lag, run
from appliance.history.execution_history import ExecutionHistory
from appliance.lua.running import executor
from appliance.lua.running.executor import list_executions
from appliance.lua.running.worker import Worker
from tests.fakes.app import App, open_app
from tests.fakes.lua import automation, scene, write
from tests.fakes.patience import until

FILES = {
    "scenes/sleepy.lua": scene("sleepy", "ctx:sleep(600)", mode='{ type = "queued", max = 3 }'),
    "scenes/busy.lua": scene("busy", 'while true do ctx:get_device("x") end'),
    "scenes/waits.lua": scene(
        "waits", 'ctx:wait_for("simulated:light:0", {attribute = "power", equals = "never", timeout_secs = 60})'
    ),
    "automations/long.lua": """return {id = "long", name = "Long",
trigger = {type = "wall_clock", hour = 3, minute = 0}, execute = function(ctx) ctx:sleep(600) end}""",
}


async def listed(app: App) -> list[dict[str, Any]]:
    """Return the response of `GET /executions`."""
    found: list[dict[str, Any]] = (await app.get("/executions")).json["executions"]
    return found


async def started(app: App, path: str, count: int) -> asyncio.Task[Any]:
    """Start executions by requests to this path, and wait until `count` of them are running."""
    task = asyncio.ensure_future(app.post(path, {}))
    await until(lambda: len(list_executions(app.hub.executors)) == count)
    return task


async def test_running_and_waiting_executions_are_listed_and_can_be_cancelled(tmp_path: Path) -> None:
    toml = "[scripts]\nmax_cpu_secs = 600\nmax_cpu_total_secs = 600\n"
    async with open_app(root=write(tmp_path, FILES), toml=toml) as app:
        assert await listed(app) == []
        first = await started(app, "/scenes/sleepy/execute", 1)
        second = await started(app, "/scenes/sleepy/execute", 2)
        third = await started(app, "/scenes/busy/execute", 3)
        fourth = await started(app, "/automations/long/execute", 4)
        await until(lambda: [each.status for each in list_executions(app.hub.executors)].count("waiting") == 2)
        await until(lambda: list_executions(app.hub.executors)[2].cpu_secs > 0)
        found = await listed(app)
        assert [(each["kind"], each["of"], each["status"]) for each in found] == [
            ("scene", "sleepy", "waiting"),
            ("scene", "sleepy", "queued"),
            ("scene", "busy", "running"),
            ("automation", "long", "waiting"),
        ]
        assert re.fullmatch(r"sleep until \d\d:\d\d:\d\d", found[0]["doing"])
        assert found[1]["doing"] == "waiting for earlier executions"
        assert re.fullmatch(r"computing for \d+ s", found[2]["doing"])
        assert found[3]["name"] == "Long" and len({each["id"] for each in found}) == 4
        assert [each["running"] for each in (await app.get("/automations")).json] == [1]
        assert (await app.get("/automations/long")).json["running"] == 1
        reported = (await app.get("/diagnostics/status")).json["executions"]
        assert [each["of"] for each in reported] == [each["of"] for each in found]
        sentences = (await app.get("/why?id=long")).json["summary"]
        assert any("sleep until" in each for each in sentences) and not any(
            "nothing has" in each for each in sentences
        )
        for each in reversed(found):
            assert (await app.post(f"/executions/{each['id']}/cancel")).json == {"status": "ok"}
        await until(lambda: not list_executions(app.hub.executors))
        gone = await app.post(f"/executions/{found[0]['id']}/cancel")
        assert (gone.status, gone.json["code"]) == (404, "execution_not_found")
        answers = await asyncio.gather(first, third, fourth)
        assert [(each.status, each.json["code"]) for each in answers] == [(400, "cancelled")] * 3
        assert (await second).status == 202
        assert await listed(app) == [] and (await app.get("/automations/long")).json["running"] == 0


async def test_a_running_execution_of_a_removed_file_can_be_cancelled(tmp_path: Path) -> None:
    root = write(tmp_path, FILES)
    async with open_app(root=root) as app:
        running = [await started(app, "/scenes/sleepy/execute", 1)]
        running.append(await started(app, "/automations/long/execute", 2))
        for name in ("scenes/sleepy.lua", "automations/long.lua"):
            (root / "config" / name).unlink()
        for target in ("scenes", "automations"):
            assert (await app.post(f"/{target}/reload")).json["status"] == "ok"
        assert [each["of"] for each in await listed(app)] == ["sleepy", "long"]
        paths = ("/scenes/sleepy/cancel", "/automations/long/cancel")
        assert [(await app.post(path)).json for path in paths] == [{"status": "ok", "cancelled": 1}] * 2
        await asyncio.gather(*running)
        assert [(await app.post(path)).status for path in paths] == [404, 404]


async def test_a_sleep_that_the_stop_ends_leaves_a_log_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "lua")
    async with open_app(root=write(tmp_path, FILES)) as app:
        running = await started(app, "/scenes/sleepy/execute", 1)
        await until(lambda: list_executions(app.hub.executors)[0].status == "waiting")
        await app.hub.abort_all()
        await running
    interrupted = "scene:sleepy was interrupted because the hub is stopping; its activity: sleep until"
    assert [each for each in caplog.messages if interrupted in each]


async def test_the_state_is_stored_before_the_stop_ends_executions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "lua")
    was_stored: list[bool] = []
    async with open_app(root=write(tmp_path, FILES)) as app:

        def note(record: logging.LogRecord) -> bool:
            was_stored.append(app.hub.store.is_stored)
            return True

        running = await started(app, "/scenes/sleepy/execute", 1)
        await until(lambda: list_executions(app.hub.executors)[0].status == "waiting")
        caplog.handler.addFilter(note)
        await app.hub.abort_all()
        await running
        caplog.handler.removeFilter(note)
    assert was_stored and all(was_stored)


DETECTOR = """
[adapters.virtual]
devices = [{ id = "attic", kind = "Sensor", class = "smoke", attributes = { smoke = false } }]
"""


async def test_scenes_that_an_alarm_runs_continue_without_free_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = '{ type = "device_state_change", device_id = "virtual:attic", attribute = "smoke", equals = true }'
    files = {
        "automations/alarm.lua": automation("alarm", trigger, 'ctx:run_scene("outer") ctx:set("is_over", true)'),
        "scenes/outer.lua": scene("outer", 'ctx:sleep(0) ctx:run_scene("inner") ctx:sleep(0)'),
        "scenes/inner.lua": scene("inner", "ctx:sleep(0)"),
    }
    monkeypatch.setattr(Worker, "_lacks_memory", lambda *_, **__: True)
    async with open_app(adapters=DETECTOR, root=write(tmp_path, files)) as app:
        assert "the memory for Lua" in (await app.post("/scenes/outer/execute")).json["error"]
        smoke = {"device_id": "virtual:attic", "attributes": {"smoke": True}}
        assert (await app.post("/adapters/virtual/operations/observe", smoke)).status == 200
        await until(lambda: app.hub.environment.variables.find("is_over") is True)


@pytest.mark.parametrize(("mode", "is_killed"), [("parallel", False), ("queued", False), ("parallel", True)])
def test_executions_that_end_together_are_recorded_in_separate_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, mode: str, is_killed: bool
) -> None:
    monkeypatch.setattr(executor, "ENDS_AT_ONCE", 1)
    turns: list[int] = []
    scenes = {"scenes/sleepy.lua": scene("sleepy", "ctx:sleep(600)", mode=f'{{ type = "{mode}", max = 5 }}')}

    def add(*_: object) -> None:
        turns.append(loop_lag().turns)
        time.sleep(2 * SHORT_TURN_SECS)  # the work for a result with a long trace

    async def end_all() -> None:
        async with open_app(root=write(tmp_path, scenes)) as app:
            sleeping = 5 if mode == "parallel" else 1
            waits = [asyncio.ensure_future(app.post("/scenes/sleepy/execute", {})) for _ in range(5)]
            await until(lambda: len(list_executions(app.hub.executors)) == len(waits))
            await until(
                lambda: sum(each.status == "waiting" for each in list_executions(app.hub.executors)) == sleeping
            )
            monkeypatch.setattr(ExecutionHistory, "add", add)
            if is_killed:
                os.kill(app.hub.pool.figures()["workers"][0]["pid"], signal.SIGKILL)
            else:
                assert (await app.post("/scenes/sleepy/cancel", {})).json["cancelled"] == len(waits)
            await asyncio.gather(*waits)

    run(end_all())
    assert len({*turns}) == 5
