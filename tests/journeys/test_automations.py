"""Automations over HTTP: from an event of the simulated lamp to a command for the simulated TV, and the reports about
the run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator
from appliance.home import events
from tests.fakes.app import LIGHT, READER, TV, App, Received, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.lua import automation, write
from tests.fakes.patience import until
from tests.fakes.process import configure, running

LIT = f'{{ type = "device_state_change", device_id = "{LIGHT}", attribute = "power", equals = "on" }}'
NEVER = '{ type = "system_error", contains = "never" }'
SWITCH_TV = f'ctx:command("{TV}", {{ capability = "power", action = event.value or "off" }})'
BRIGHT = f'{{ type = "device_state", device_id = "{LIGHT}", attribute = "brightness", above = 90 }}'

FILES = {
    "automations/follows.lua": automation("follows", LIT, SWITCH_TV, more='description = "TV follows the light"'),
    "automations/bright.lua": automation("bright", LIT, SWITCH_TV, more=f"conditions = {{ {BRIGHT} }}"),
    "automations/cools.lua": automation("cools", LIT, more="state = { cooldown_secs = 600 }"),
    "automations/fails.lua": automation("fails", NEVER, f"{SWITCH_TV}\n    local x = nil + 1"),
    "automations/sleeps.lua": automation("a b/ü", LIT, "ctx:sleep(61.5)", more='mode = "single"'),
}


@pytest.fixture
async def lua(clock: VirtualClock, tmp_path: Path) -> AsyncIterator[App]:
    """Run a hub with automations and a stopped clock. The light and the TV are off."""
    light, tv = LightSimulator(clock=clock), TvSimulator(clock=clock)
    async with open_app(clock=clock, light=light, tv=tv, root=write(tmp_path, FILES)) as app:
        await app.command(TV, "power", "off")
        await app.command(LIGHT, "power", "off")
        yield app


async def entries(app: App, id_: str, query: str = "") -> list[Any]:
    """Return the history of the automation, newest first."""
    found: list[Any] = (await app.get(f"/automations/{id_}/history{query}")).json["entries"]
    return found


async def ran(app: App, id_: str, times: int = 1) -> list[Any]:
    """Wait until the automation's history has this many entries, and return the history."""
    async with asyncio.timeout(20):
        while len(found := await entries(app, id_)) < times:  # noqa: ASYNC110 - asked over HTTP
            await asyncio.sleep(0.002)
    return found


def of(answer: Received) -> tuple[int, Any]:
    return answer.status, answer.json


def shown(id_: str, trigger_type: str = "device_state_change", **more: Any) -> dict[str, Any]:
    """Return the automation as the list of automations contains it."""
    return {
        "id": id_,
        "name": "An automation",
        "description": "",
        "trigger_type": trigger_type,
        "triggers": [{"id": None, "type": trigger_type}],
        "condition_count": 0,
        "status": "enabled",
        "enabled_in_file": True,
        "last_run": None,
        "last_error": None,
        "running": 0,
        **more,
    }


async def test_a_change_at_the_lamp_runs_the_lua_that_switches_the_tv(tmp_path: Path) -> None:
    async with open_app(root=write(tmp_path, FILES), poll_interval_secs=1) as app:
        await app.command(TV, "power", "off")
        await app.command(LIGHT, "power", "off")
        assert app.tv.power_mode != "PowerOn"
        async with app.stream() as frames:
            received: list[Any] = []
            app.light.lights[0].on = True  # a change on the lamp itself; the next poll reports it
            await until(lambda: app.tv.power_mode == "PowerOn")
            while not received or received[-1]["id"] != TV:
                received += await frames.until("device.state_changed")
        assert received[0]["id"] == LIGHT
        assert (await app.device(TV))["attributes"]["power"] == "on"
        [entry] = await ran(app, "follows")
        assert (entry["status"], entry["error"], entry["automation_id"]) == ("ok", None, "follows")
        assert entry["results"] == [{"target": TV, "status": "ok", "message": None}]
        payload = entry["trigger_payload"]
        assert payload.pop("attributes")["power"] == "on"
        reported = {"attribute": "power", "value": "on", "previous_value": "off"}
        assert payload == {"type": "device_state_change", "device_id": LIGHT, **reported}


async def test_automations_are_listed_by_id_and_each_can_be_read(lua: App) -> None:
    answer = await lua.get("/automations", token=READER.text)
    assert [each["id"] for each in answer.json] == ["a b/ü", "bright", "cools", "fails", "follows"]
    assert answer.json[4] == shown("follows", description="TV follows the light")
    assert answer.json[1] == shown("bright", condition_count=1)
    assert answer.json[3] == shown("fails", trigger_type="system_error")
    assert of(await lua.get("/automations/a%20b%2F%C3%BC")) == (200, answer.json[0])


async def test_a_disabled_automation_does_not_run_until_it_is_enabled(lua: App) -> None:
    off = await lua.post("/automations/follows/enabled", {"enabled": False})
    assert of(off) == (200, shown("follows", description="TV follows the light", status="disabled"))
    assert of(await lua.get("/automations/follows")) == of(off)
    await lua.command(LIGHT, "power", "on")
    await ran(lua, "follows")
    assert lua.tv.power_mode != "PowerOn"
    on = await lua.post("/automations/follows/enabled", {"enabled": True})
    assert on.json["status"] == "enabled"
    await lua.command(LIGHT, "power", "off")
    await lua.command(LIGHT, "power", "on")
    await until(lambda: lua.tv.power_mode == "PowerOn")


@pytest.mark.slow
async def test_switches_survive_reload_and_restart_and_a_removed_file(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    (tmp_path / "data").mkdir()
    async with open_app(root=tmp_path, data_dir=tmp_path / "data") as app:
        await app.post("/automations/follows/enabled", {"enabled": False})
        await app.post("/automations/cools/enabled", {"enabled": False})
        await app.post("/automations/cools/enabled", {"enabled": True})
        write(tmp_path, {"automations/follows.lua": automation("follows", LIT, name="Renamed")})
        assert (await app.post("/automations/reload")).json["status"] == "ok"
        assert (await app.get("/automations/follows")).json["status"] == "disabled"
    async with open_app(root=tmp_path, data_dir=tmp_path / "data") as app:
        statuses = {each["id"]: each["status"] for each in (await app.get("/automations")).json}
        assert [id_ for id_, status in statuses.items() if status == "disabled"] == ["follows"]


async def test_a_disabled_automation_runs_by_hand_with_the_payload_as_event(lua: App) -> None:
    await lua.post("/automations/follows/enabled", {"enabled": False})
    answer = await lua.post("/automations/follows/execute", {"trigger_payload": {"value": "on"}})
    result = {"target": TV, "status": "ok", "message": None}
    assert (answer.status, answer.json["status"], answer.json["error"]) == (200, "ok", None)
    assert answer.json["results"] == [result] and isinstance(answer.json["duration_ms"], int)
    assert lua.tv.power_mode == "PowerOn"
    [entry] = await entries(lua, "follows")
    assert (entry["trigger_payload"], entry["status"]) == ({"value": "on"}, "ok")
    assert (await lua.get("/automations/follows")).json["last_run"] == entry["executed_at"]


DEEPEST = b"[" * 31 + b"]" * 31
"""With the tables around it, a value as deep as Lua allows."""


async def test_a_run_by_hand_needs_no_body(lua: App) -> None:
    for data, event in (
        (None, {"type": "manual"}),
        (b"", {"type": "manual"}),
        (b"{}", {"type": "manual"}),
        (b'{"trigger_payload": null, "other": 1}', {"type": "manual"}),
        (b'{"trigger_payload": {}}', {}),
        (b'{"trigger_payload": {"a": {"b": [1, 2.5, true, "\\u00fc"]}}}', {"a": {"b": [1, 2.5, True, "ü"]}}),
        (b'{"trigger_payload": {"x": %b}}' % DEEPEST, {"x": json.loads(DEEPEST)}),
    ):
        before = len(await entries(lua, "follows"))
        assert (await lua.post("/automations/follows/execute", data=data)).status == 200, data
        after = await entries(lua, "follows")
        assert (len(after), after[0]["trigger_payload"]) == (before + 1, event), data


async def test_a_failure_by_hand_is_400_with_file_line_and_earlier_results(lua: App) -> None:
    answer = await lua.post("/automations/fails/execute")
    assert answer.status == 400
    expected = "automation 'fails' failed: config/automations/fails.lua:7: attempt to perform arithmetic"
    assert answer.json["error"].startswith(expected)
    assert answer.json["results"] == [{"target": TV, "status": "ok", "message": None}]
    [entry] = await entries(lua, "fails")
    assert entry["status"] == "error" and entry["error"] in answer.json["error"]
    assert (await lua.get("/automations/fails")).json["last_error"] == entry["error"]
    assert not [event for event in lua.events if isinstance(event, events.SystemErrorReported)]


async def test_validate_reads_the_file_on_the_disk_and_changes_nothing(lua: App, tmp_path: Path) -> None:
    answer = await lua.post("/automations/follows/validate")
    assert of(answer) == (200, {"status": "ok", "automation": shown("follows", description="TV follows the light")})
    write(tmp_path, {"automations/follows.lua": automation("follows", NEVER, name="Renamed")})
    reported = (await lua.post("/automations/follows/validate")).json["automation"]
    assert (reported["name"], reported["trigger_type"]) == ("Renamed", "system_error")
    assert (await lua.get("/automations/follows")).json["name"] == "An automation"


FAULTY: tuple[tuple[str | None, list[tuple[int, str]]], ...] = (
    ("return {", [(1, "unexpected symbol near <eof>")]),
    (automation("follows", "{ type = 'cron', expression = '0 7 * * *' }"), [(4, "trigger.expression")]),
    (automation("cools", LIT), [(2, "config/automations/cools.lua already has the id 'cools'")]),
    (automation("follows", "{}", more="nmae = 1"), [(4, "trigger.type is missing"), (5, "nmae is not a field")]),
    (None, [(0, "no longer exists; restore the file, or reload")]),
)
"""Possible contents of a file, its line, and the beginning of the error message. If the content is None, there is
no file."""


async def test_validate_reports_the_errors_of_a_reload(lua: App, tmp_path: Path, subtests: pytest.Subtests) -> None:
    file = tmp_path / "config/automations/follows.lua"
    for text, reported in FAULTY:
        with subtests.test(text):
            file.unlink() if text is None else file.write_text(text)
            answer = await lua.post("/automations/follows/validate")
            assert answer.status == 400
            assert answer.json["error"].startswith("config/automations/follows.lua:")
            found = sorted((each["line"], each["message"]) for each in answer.json["errors"])
            assert [
                (line, message[: len(begin)]) for (line, message), (_, begin) in zip(found, reported, strict=True)
            ] == reported


@pytest.mark.slow
async def test_a_hub_in_safe_mode_runs_no_automation_and_reports_it(tmp_path: Path) -> None:
    configure(tmp_path)
    write(tmp_path, {**FILES, "automations/zwei.lua": automation("follows", LIT)})
    async with running(tmp_path, arguments=["--safe"]) as hub:
        assert len(await hub.get("/automations")) == len(FILES)
        assert (await hub.get("/diagnostics"))["automations"]["each"] == {}, "none is armed"
        status, answer = await hub.ask("POST", "/automations/reload")
        assert (status, answer["status"]) == (200, "error")
        [fault] = answer["errors"]
        assert "--safe" in fault["message"] and fault["file"] == "config/automations"
        assert "started with --safe" in hub.log.read_text()


async def test_diagnostics_show_the_clock_and_each_automation(lua: App, tmp_path: Path) -> None:
    write(tmp_path, {"automations/daily.lua": automation("daily", "{ type = 'wall_clock', hour = 18, minute = 30 }")})
    await lua.post("/automations/reload")
    await lua.post("/automations/bright/enabled", {"enabled": False})
    await lua.post("/automations/follows/execute")
    figures = (await lua.get("/diagnostics")).json
    clock = figures["clock"]
    assert (clock["trusted"], clock["steps"]) == (False, []), (
        "the clock shows January, which is before this version was built"
    )
    assert clock["waits_because"].startswith(
        "the clock shows 2026-01-01T12:00:00.000Z without synchronisation, but the later time "
    )
    automations = figures["automations"]
    assert (automations["loaded"], automations["running"], automations["left_out"]) == (len(FILES) + 1, 0, [])
    idle = {"armed": True, "waiting": False, "next_fire": None, "last_run": None, "braked_secs": None}
    each = automations["each"]
    assert each["daily"] == idle
    assert each["bright"] == {**idle, "armed": False}
    assert each["follows"] == {**idle, "last_run": "2026-01-01T12:00:00.000Z"}
    assert figures["counts"]["automations"] == len(FILES) + 1
