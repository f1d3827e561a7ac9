"""Methods of `ctx` other than commands: variables, timers, scenes, waits, messages, restored lights, and the
trace."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest

from appliance.automations.triggers.event import TimerTrigger
from appliance.scenes import MAX_NESTED_EXECUTIONS
from tests.adapters.contract import HeldClock
from tests.fakes.app import LIGHT, READER, App, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.lua import automation, scene, write
from tests.fakes.moody_disk import MoodyDisk
from tests.fakes.patience import until

pytestmark = pytest.mark.slow

FILES = {
    "scenes/count.lua": scene("count", 'ctx:set("n", (ctx:get("n", 0)) + 1, { durable = true })'),
    "scenes/forget.lua": scene("forget", 'ctx:set("n", nil)'),
    "scenes/bad_set.lua": scene("bad_set", 'ctx:set("Bad Name", 1)'),
    "scenes/bad_option.lua": scene("bad_option", 'ctx:set("n", 1, { durabel = true })'),
    "scenes/timer.lua": scene("timer", 'ctx:start_timer("t", 0, { n = 7 })'),
    "scenes/cancel.lua": scene(
        "cancel",
        'ctx:start_timer("u", 600); ctx:set("was", ctx:cancel_timer("u")); ctx:set("is", ctx:cancel_timer("u"))',
    ),
    "scenes/light.lua": scene("light", f'ctx:command("{LIGHT}", {{ capability = "power", action = "on" }})'),
    "scenes/outer.lua": scene("outer", 'local r = ctx:run_scene("light"); ctx:set("status", r[1].status)'),
    "scenes/round.lua": scene("round", 'ctx:run_scene("round_2")'),
    "scenes/round_2.lua": scene("round_2", 'ctx:run_scene("round")'),
    "scenes/sleepy.lua": scene("sleepy", "ctx:sleep(3000)", mode='{ type = "queued", max = 3 }'),
    "scenes/nests.lua": scene("nests", 'ctx:run_scene("sleepy")'),
    "scenes/left.lua": scene("left", 'ctx:sleep(0.1); ctx:run_scene("right")', mode='"queued"'),
    "scenes/right.lua": scene("right", 'ctx:sleep(0.1); ctx:run_scene("left")', mode='"queued"'),
    "scenes/dusk.lua": scene("dusk", 'if ctx:get("n") then return end; ctx:set("n", 1); ctx:run_scene("dark")'),
    "scenes/dark.lua": scene(
        "dark", 'if ctx:get("m") then return ctx:run_scene("dusk") end; ctx:set("m", 1); ctx:sleep(600)'
    ),
    "scenes/too_many.lua": scene(
        "too_many",
        'local t = {}; for i = 1, 1001 do t[i] = "a" end\n'
        '    ctx:set("many", { pcall(ctx.snapshot, ctx, t) })\n'
        '    t = {}; for i = 1, 1001 do t["a" .. i] = { power = "on" } end; ctx:restore(t)',
    ),
    "scenes/again.lua": scene("again", 'while true do ctx:run_scene("outer") end'),
    "scenes/look.lua": scene(
        "look",
        f'local s = ctx:snapshot({{ "{LIGHT}" }})\n'
        f'    ctx:command("{LIGHT}", {{ capability = "power", action = "on" }})\n'
        f'    ctx:command("{LIGHT}", {{ capability = "brightness", action = "set", value = 3 }})\n'
        '    ctx:log("info", "dim", { why = "test" })\n'
        f'    ctx:set("dim", ctx:wait_for("{LIGHT}", {{ attribute = "brightness", equals = 3, timeout_secs = 5 }}))\n'
        f'    local condition = {{ attribute = "brightness", above = 99, timeout_secs = 0.05 }}\n'
        f'    ctx:set("never", ctx:wait_for("{LIGHT}", condition))\n'
        "    ctx:restore(s)\n    ctx:sleep(0)",
    ),
    "scenes/absent.lua": scene(
        "absent",
        'ctx:restore(ctx:snapshot({})); ctx:start_timer(" u ", 600); ctx:set("was", ctx:cancel_timer(" u "))\n'
        '    ctx:set("status", ctx:restore({ ["lost:1"] = { power = "on" } })[1].status)',
    ),
    "scenes/half_gone.lua": scene(
        "half_gone",
        f'local s = ctx:snapshot({{ "{LIGHT}", "lost:1" }})\n'
        f'    ctx:set("kept", {{ s["{LIGHT}"] ~= nil, s["lost:1"] == nil }})',
    ),
    "scenes/waits.lua": scene(
        "waits", f'ctx:wait_for("{LIGHT}", {{ attribute = "brightness", above = 99, timeout_secs = 60 }})'
    ),
    "scenes/room.lua": scene("room", 'ctx:command_room("den", { capability = "power", action = "on" })'),
    "scenes/no_room.lua": scene("no_room", 'ctx:command_room("nowhere", { capability = "power", action = "on" })'),
    "scenes/typo.lua": scene("typo", 'ctx:run_scene("romo")'),
    "scenes/notify.lua": scene("notify", 'ctx:set("result", ctx:notify("hello", { title = "Home" })[1].status)'),
    "scenes/gone.lua": scene("gone", 'ctx:command("lost:1", { capability = "power", action = "on" })'),
    "automations/received.lua": automation(
        "received", '{ type = "timer", name = "t" }', 'ctx:set("received", event.payload.n)'
    ),
    "automations/queue.lua": automation(
        "queue", '{ type = "system_error" }', "ctx:sleep(3000)", more='mode = { type = "queued", max = 5 }'
    ),
}


async def run(app: App, id_: str) -> Any:
    """Run a scene, and return the response."""
    return await app.post(f"/scenes/{id_}/execute")


async def variable(app: App, name: str) -> Any:
    """Return the value of a variable, or None."""
    return app.hub.environment.variables.find(name)


async def test_variables_and_timers_in_lua(tmp_path: Path) -> None:
    async with open_app(root=write(tmp_path, FILES)) as app:
        for _ in range(3):
            assert (await run(app, "count")).status == 200
        assert await variable(app, "n") == 3
        assert (await run(app, "forget")).status == 200 and await variable(app, "n") is None
        bad = await run(app, "bad_set")
        assert bad.status == 400 and "config/scenes/bad_set.lua:5: the variable's name must be" in bad.json["error"]
        assert "did you mean durable?" in (await run(app, "bad_option")).json["error"]
        assert (await run(app, "timer")).status == 200
        await until(lambda: app.hub.environment.variables.find("received") == 7)
        assert (await run(app, "cancel")).status == 200
        assert (await variable(app, "was"), await variable(app, "is")) == (True, False)
        assert "ctx:restore takes at most 1000 devices, not 1001" in (await run(app, "too_many")).json["error"]
        assert "ctx:snapshot takes at most 1000 devices, not 1001" in str(await variable(app, "many"))


async def test_a_scene_runs_another_and_a_cycle_names_its_chain(tmp_path: Path) -> None:
    async with open_app(root=write(tmp_path, FILES)) as app:
        assert (await run(app, "outer")).json == {"status": "ok", "results": []}
        assert await variable(app, "status") == "ok"
        round_ = await run(app, "round")
        assert round_.status == 400 and "scene:round → scene:round_2 → scene:round" in round_.json["error"]
        [entry] = (await app.get("/scenes/outer/history")).json["entries"]
        assert [(step["step"], step["scene_id"], step["status"]) for step in entry["trace"]] == [
            ("scene", "light", "ok")
        ]


async def test_a_chain_of_scenes_has_a_limit(tmp_path: Path) -> None:
    chain = {f"scenes/c{i}.lua": scene(f"c{i}", f'ctx:run_scene("c{i + 1}")') for i in range(MAX_NESTED_EXECUTIONS)}
    last = MAX_NESTED_EXECUTIONS
    files = {**chain, f"scenes/c{last}.lua": scene(f"c{last}", 'ctx:set("is_over", true)')}
    async with open_app(root=write(tmp_path, files)) as app:
        end = await run(app, "c0")
        assert end.status == 400
        assert f"scene 'c{last}' did not start, because at most {last} scenes and automations" in end.json["error"]
        assert await variable(app, "is_over") is None
        assert (await run(app, "c1")).status == 200
        assert await variable(app, "is_over") is True


async def test_scenes_that_scenes_of_clients_run_leave_memory_for_others(tmp_path: Path) -> None:
    large = 'local t = {} for i = 1, 80 do t[i] = string.rep("x", 130000) .. i end ctx:sleep(2)'
    parallel = '{ type = "parallel", max = 100 }'
    files = {
        "scenes/large.lua": scene("large", large, mode=parallel),
        "scenes/runs.lua": scene("runs", 'ctx:sleep(0.2) ctx:run_scene("large")', mode=parallel),
        "scenes/count.lua": FILES["scenes/count.lua"],
        "automations/alarm.lua": automation("alarm", '{ type = "timer", name = "t" }', 'ctx:run_scene("count")'),
    }
    async with open_app(root=write(tmp_path, files)) as app:
        ends = [asyncio.ensure_future(run(app, "runs")) for _ in range(50)]
        await until(lambda: app.hub.pool.is_half_used)
        await app.hub.automations.timers.start("t", 0, None, "automation:x")
        await until(lambda: app.hub.environment.variables.find("n") == 1)
        refused = [end.json["error"] for end in await asyncio.gather(*ends) if end.status == 400]
        assert 0 < len(refused) < len(ends) and app.hub.pool.figures()["kills"] == 0
        assert all("scene 'large' did not start, because the running executions use half" in each for each in refused)


async def test_scenes_that_wait_for_each_other_are_a_cycle_too(tmp_path: Path) -> None:
    async with open_app(root=write(tmp_path, FILES)) as app:
        async with asyncio.timeout(10):
            ends = await asyncio.gather(run(app, "left"), run(app, "right"))
        assert [end.status for end in ends] == [400, 400]
        assert all("scenes run each other in a circle: scene:" in end.json["error"] for end in ends)


async def test_scenes_that_run_each_other_without_a_queue_are_not_a_cycle(tmp_path: Path) -> None:
    async with open_app(root=write(tmp_path, FILES)) as app:
        first = asyncio.ensure_future(run(app, "dusk"))  # "dusk" waits for the first run of "dark", which sleeps
        await until(lambda: app.hub.environment.variables.find("m"))
        assert (await run(app, "dark")).status == 200, "it runs a dusk that ends at once"
        await app.post("/scenes/dusk/cancel")
        assert (await first).status == 400


async def test_a_scene_run_by_a_scene_counts_for_its_mode_too(tmp_path: Path) -> None:
    toml = "[automations.runner]\nbackstop_timeout_secs = 0.5\n"
    async with open_app(root=write(tmp_path, FILES), toml=toml) as app:
        async with asyncio.timeout(10):
            ended = await run(app, "again")
        assert ended.status == 400 and "took more than 0.5 s in total" in ended.json["error"]


async def test_lights_are_restored_and_the_trace_has_each_step(tmp_path: Path) -> None:
    async with open_app(root=write(tmp_path, FILES)) as app:
        before = (await app.device(LIGHT))["attributes"]
        assert (await run(app, "look")).status == 200
        after = (await app.device(LIGHT))["attributes"]
        assert after == before, "one that was off has its brightness again, too"
        assert (await variable(app, "dim"), await variable(app, "never")) == (True, False)
        [entry] = (await app.get("/scenes/look/history")).json["entries"]
        steps = [step["step"] for step in entry["trace"]]
        assert steps[:5] == ["command", "command", "log", "wait", "wait"] and steps[-1] == "sleep"
        assert entry["trace"][1] | {"at_ms": 0} == {
            "at_ms": 0,
            "step": "command",
            "capability": "brightness",
            "action": "set",
            "value": 3,
            "device_id": LIGHT,
            "status": "ok",
            "message": None,
        }
        assert entry["warnings"] == []


async def test_missing_lights_are_restored_with_an_error_and_names_are_cut(tmp_path: Path) -> None:
    async with open_app(root=write(tmp_path, FILES)) as app:
        answer = await run(app, "absent")
        assert answer.json["results"] == [
            {"target": "lost:1", "status": "error", "message": "device 'lost:1' not found"}
        ]
        assert (await variable(app, "was"), await variable(app, "status")) == (True, "error")


async def test_a_snapshot_omits_a_removed_device(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with open_app(root=write(tmp_path, FILES)) as app:
        assert (await run(app, "half_gone")).status == 200
        assert await variable(app, "kept") == [True, True]
    assert "ctx:snapshot omits devices that are missing" in caplog.text


async def test_the_trace_has_a_failed_scene_and_a_cancelled_wait(tmp_path: Path) -> None:
    async with open_app(root=write(tmp_path, FILES)) as app:
        assert (await run(app, "round")).status == 400
        assert await last_step(app, "round") == {"step": "scene", "scene_id": "round_2", "status": "error"}
        for id_, step in (
            ("waits", {"step": "wait", "device_id": LIGHT, "attribute": "brightness", "result": False}),
            ("nests", {"step": "scene", "scene_id": "sleepy", "status": "cancelled"}),
        ):
            running = asyncio.create_task(run(app, id_))
            await until(lambda: app.hub.scenes.figures()["running"] > 0)
            # the scene must already be waiting for an event that never happens, but no report shows when this wait
            # begins
            await asyncio.sleep(0.4)
            await app.post(f"/scenes/{id_}/cancel")
            assert (await running).status == 400
            assert await last_step(app, id_) == step


async def last_step(app: App, id_: str) -> dict[str, Any]:
    """Return the last step of the scene's latest execution, without the step's time."""
    entry = (await app.get(f"/scenes/{id_}/history")).json["entries"][0]
    return {key: value for key, value in entry["trace"][-1].items() if key != "at_ms"}


async def test_rooms_messages_and_failing_commands(tmp_path: Path) -> None:
    async with open_app(root=write(tmp_path, FILES)) as app:
        await app.post("/rooms", {"id": "den", "name": "Den"})
        await app.post(f"/devices/{LIGHT}/room", {"room_id": "den"})
        assert [each["target"] for each in (await run(app, "room")).json["results"]] == [LIGHT]
        assert "room 'nowhere' not found" in (await run(app, "no_room")).json["error"]
        assert "scene 'romo' not found (did you mean room?)" in (await run(app, "typo")).json["error"]
        [result] = (await app.get("/why?id=no_room")).json["decisions"]
        assert result["sentence"].count("not found") == 1
        assert (await run(app, "notify")).status == 200
        assert await variable(app, "result") == "unsupported"
        assert (await run(app, "gone")).json["results"][0]["status"] == "error"
        [entry] = (await app.get("/scenes/gone/history")).json["entries"]
        assert entry["warnings"] == ["power on to lost:1: device 'lost:1' not found"]
        [result] = (await app.get("/why?id=notify")).json["decisions"]
        assert result["sentence"].endswith("ms: notify: no targets are configured; set targets in [notify]")


async def test_notify_invokes_its_targets_at_once(tmp_path: Path) -> None:
    toml = '[notify]\ntargets = ["roku_tv:info", "elgato_lights:info", "nobody:send"]\n'
    files = {**FILES, "scenes/notify.lua": scene("notify", 'ctx:set("result", ctx:notify("hello"))')}
    async with open_app(root=write(tmp_path, files), toml=toml) as app:
        app.tv._clock, app.tv.faults.delay = held, _ = HeldClock(), 1.0
        app.light.requests.clear()
        notifying = asyncio.ensure_future(run(app, "notify"))
        await until(lambda: ("GET", "/elgato/accessory-info") in app.light.requests)  # the TV has not answered yet
        held.released.set()
        assert (await notifying).status == 200
        reported = await variable(app, "result")
        assert [(each["target"], each["status"]) for each in reported] == [
            ("roku_tv:info", "ok"),
            ("elgato_lights:info", "ok"),
            ("nobody:send", "unsupported"),
        ]
        [result] = (await app.get("/why?id=notify")).json["decisions"]
        assert result["sentence"].endswith("ms: nobody:send: invoke target 'nobody:send' is not supported")


async def test_cancel_ends_sleeping_and_waiting_executions(tmp_path: Path) -> None:
    async with open_app(root=write(tmp_path, FILES)) as app:
        waiting = [asyncio.ensure_future(run(app, id_)) for id_ in ("sleepy", "nests")]
        await until(lambda: app.hub.scenes.figures()["waiting"] == 1)
        done = await app.post("/scenes/sleepy/cancel")
        assert (done.status, done.json) == (200, {"status": "ok", "cancelled": 2})
        answers = await asyncio.gather(*waiting)
        assert [(each.status, each.json["code"]) for each in answers] == [(400, "cancelled"), (400, "script_failed")]
        assert {each["status"] for each in (await app.get("/scenes/sleepy/history")).json["entries"]} == {"cancelled"}
        assert (await app.post("/scenes/sleepy/cancel")).json["cancelled"] == 0


async def test_a_waiting_scene_does_not_begin_after_its_caller_is_cancelled(tmp_path: Path) -> None:
    async with open_app(root=write(tmp_path, FILES)) as app:
        running = [asyncio.ensure_future(run(app, id_)) for id_ in ("sleepy", "nests")]
        await until(lambda: app.hub.scenes.figures()["waiting"] == 1)
        assert (await app.post("/scenes/nests/cancel")).json["cancelled"] == 1
        await until(lambda: app.hub.scenes.figures()["waiting"] == 0)
        (entry,) = (await app.get("/scenes/sleepy/history")).json["entries"]
        assert (entry["status"], entry["error"]) == ("cancelled", "cancelled on request")
        assert (await app.post("/scenes/sleepy/cancel")).json["cancelled"] == 1
        await asyncio.gather(*running)


async def test_a_waiting_execution_does_not_begin_after_its_automation_is_disabled(tmp_path: Path) -> None:
    from appliance.home.events import SystemErrorReported

    async with open_app(root=write(tmp_path, FILES)) as app:
        for _ in range(3):
            app.hub.bus.publish(SystemErrorReported(message="x"))
        await until(lambda: app.hub.automations.figures()["waiting"] == 2)
        await app.post("/automations/queue/enabled", {"enabled": False})
        entries = (await app.get("/automations/queue/history")).json["entries"]
        assert [(each["status"], each["error"]) for each in entries] == [
            ("skipped", "disabled: the automation is switched off")
        ] * 2
        assert (await app.post("/automations/queue/cancel")).json == {"status": "ok", "cancelled": 1}


async def test_a_stop_cancels_waiting_automations_but_running_ones_continue(tmp_path: Path) -> None:
    from appliance.home.events import SystemErrorReported

    async with open_app(root=write(tmp_path, FILES)) as app:
        for _ in range(3):
            app.hub.bus.publish(SystemErrorReported(message="x"))
        await until(lambda: app.hub.automations.figures()["waiting"] == 2)
        app.hub.begin_to_stop()
        await until(lambda: app.hub.automations.figures()["waiting"] == 0)
        entries = (await app.get("/automations/queue/history")).json["entries"]
        assert [(each["status"], each["error"]) for each in entries] == [("cancelled", "the hub stopped")] * 2
        assert (await app.post("/automations/queue/cancel")).json == {"status": "ok", "cancelled": 1}


SOURCE = "automation:x"


async def test_a_variable_is_set_read_published_and_removed_and_survives_a_restart(tmp_path: Path) -> None:
    async with open_app(data_dir=tmp_path, adapters={}) as app:
        assert (await app.get("/variables")).json == []
        done = await app.ask("PUT", "/variables/home.mode", json={"value": {"who": ["a", 1, 2.5, True]}})
        assert (done.status, done.json) == (200, {"name": "home.mode", "value": {"who": ["a", 1, 2.5, True]}})
        await app.ask("PUT", "/variables/b", json={"value": False})
    async with open_app(data_dir=tmp_path, adapters={}) as app:
        assert [each["name"] for each in (await app.get("/variables", token=READER.text)).json] == [
            "b",
            "home.mode",
        ]
        assert (await app.get("/variables/b")).json == {"name": "b", "value": False}
        assert (await app.delete("/variables/b")).status == 204
        gone = await app.get("/variables/b")
        assert (gone.status, gone.json["code"]) == (404, "variable_not_found")
        assert (await app.delete("/variables/b")).status == 404


async def test_a_variables_change_fires_a_waiting_automation(tmp_path: Path) -> None:
    trigger = "{ type = 'variable_change', name = 'mode', equals = 'away', id = 'gone' }"
    root = write(tmp_path, {"automations/away.lua": automation("away", trigger)})
    async with open_app(root=root, adapters={}) as app:
        shown = (await app.get("/automations/away")).json
        assert shown["triggers"] == [{"id": "gone", "type": "variable_change"}]
        assert (await app.get("/automations/away/next")).json == {"automation_id": "away", "next": []}
        await app.ask("PUT", "/variables/mode", json={"value": "home"})
        await app.ask("PUT", "/variables/mode", json={"value": "away"})
        await until(lambda: app.hub.automations.figures()["ended"]["ok"])
        [entry] = (await app.get("/automations/away/history")).json["entries"]
        assert entry["trigger_payload"] == {
            "type": "variable_change",
            "name": "mode",
            "value": "away",
            "previous_value": "home",
            "trigger_id": "gone",
        }


async def start(app: App, name: str, secs: float) -> None:
    """Start a timer, as Lua would."""
    await app.hub.environment.timers.start(name, secs, {"lamp": 1}, SOURCE)


async def test_timers_are_listed_and_cancelled_and_survive_a_restart(tmp_path: Path) -> None:
    async with open_app(clock=VirtualClock(), data_dir=tmp_path, adapters={}) as app:
        await start(app, "off: desk", 600)
        await start(app, "b", 60)
        result = TimerTrigger(name="b").describe(app.hub.environment, None)
        assert result.endswith("; it ends at 2026-01-01T12:01:00.000Z, and the clock is not trusted yet")
    async with open_app(clock=VirtualClock(), data_dir=tmp_path, adapters={}) as app:
        reported = (await app.get("/timers")).json
        assert [each["name"] for each in reported] == ["b", "off: desk"]
        assert reported[1] == {"name": "off: desk", "due_at": "2026-01-01T12:10:00.000Z", "payload": {"lamp": 1}}
        assert (await app.delete("/timers/off%3A%20desk")).status == 204
        gone = await app.delete("/timers/off%3A%20desk")
        assert (gone.status, gone.json["code"]) == (404, "timer_not_found")


async def test_a_failing_card_returns_503_and_changes_nothing(tmp_path: Path) -> None:
    disk = MoodyDisk(tmp_path)
    async with open_app(clock=VirtualClock(), disk=disk, adapters={}) as app:
        await app.ask("PUT", "/variables/a", json={"value": 1})
        await start(app, "t", 600)
        disk.mood = errno.ENOSPC
        assert (await app.ask("PUT", "/variables/a", json={"value": 2})).status == 503
        assert (await app.delete("/variables/a")).status == 503
        assert (await app.delete("/timers/t")).status == 503
        disk.mood = None
        assert (await app.get("/variables/a")).json["value"] == 1
        assert [each["name"] for each in (await app.get("/timers")).json] == ["t"]
