"""History over HTTP: earlier values of a device, and the sources of commands."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator
from appliance.api.responses import MAX_ENTRIES_BYTES
from appliance.history.execution_history import ExecutionEntry, ExecutionStatus
from appliance.home.commands import Command
from appliance.home.events import CommandEnded
from appliance.home.model import DeviceKind, Observation, Report
from tests.fakes.app import LIGHT, TV, App, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.line_server import TOKEN, LineServer

SCENE = """
return {
  id = "evening", name = "Evening",
  execute = function(ctx)
    ctx:command("elgato_lights:light:0", { capability = "power", action = "on" })
    ctx:command("nobody:home", { capability = "power", action = "on" })
  end,
}
"""
AUTOMATION = SCENE.replace('name = "Evening"', 'name = "Evening", trigger = { type = "interval", every_secs = 3600 }')


async def entries(app: App, path: str) -> list[Any]:
    answer = await app.get(path)
    assert answer.status == 200, answer
    found: list[Any] = answer.json["entries"]
    return found


async def test_the_history_of_a_device_and_of_each_attribute(quiet: App, clock: VirtualClock) -> None:
    app = quiet
    for brightness in (10, 20, 30):
        clock.suspend(1)
        answer = await app.command(LIGHT, "brightness", "set", brightness)
        assert answer.json == {"status": "ok"}, answer
    states = (await app.get(f"/devices/{LIGHT}/history")).json
    assert states["device_id"] == LIGHT
    shown = [entry["device"]["attributes"]["brightness"] for entry in states["entries"]]
    assert shown[:3] == [30, 20, 10] and states["entries"][0]["device"]["id"] == LIGHT, states
    asked = await entries(app, f"/devices/{LIGHT}/history?include=commands")
    assert not any("commands" in each["device"] for each in states["entries"])
    assert all(each["device"]["commands"] for each in asked) and len(asked) == len(states["entries"])
    times = [datetime.fromisoformat(entry["observed_at"]) for entry in states["entries"]]
    assert times == sorted(times, reverse=True)
    values = (await app.get(f"/devices/{LIGHT}/history/brightness?limit=2")).json
    assert {key: values[key] for key in ("device_id", "attribute")} == {"device_id": LIGHT, "attribute": "brightness"}
    assert [entry["value"] for entry in values["entries"]] == [30, 20]
    assert values["entries"][0] == {
        "observed_at": states["entries"][0]["observed_at"],
        "device_id": LIGHT,
        "attribute": "brightness",
        "value": 30,
    }
    latest = states["entries"][0]["observed_at"]
    exact = await entries(app, f"/devices/{LIGHT}/history/brightness?start={latest}&end={latest}")
    assert [entry["value"] for entry in exact] == [30]
    assert await entries(app, f"/devices/{LIGHT}/history/humidity") == []
    every = (await app.get(f"/devices/{LIGHT}/history/brightness")).json
    assert ([each["value"] for each in every["entries"]], every["resolution"]) == ([30, 20, 10, 50], "raw")
    encoded = await app.get("/devices/elgato_lights%3Alight%3A0/history/brightness?resolution=day")
    day = encoded.json["entries"][0]
    assert encoded.json["resolution"] == "day" and (day["min"], day["max"]) == (10, 50) and 10 <= day["value"] <= 50


async def test_the_audit_has_the_source_of_each_command(tmp_path: Path) -> None:
    for kind, text in (("scenes", SCENE), ("automations", AUTOMATION)):
        (tmp_path / "config" / kind).mkdir(parents=True)
        (tmp_path / "config" / kind / "evening.lua").write_text(text)
    clock = VirtualClock(datetime(2026, 12, 7, tzinfo=UTC))
    async with open_app(root=tmp_path, data_dir=tmp_path, clock=clock) as app:
        await app.post("/rooms", {"id": "hall", "name": "Hall"})
        await app.post(f"/devices/{TV}/room", {"room_id": "hall"})
        await app.post("/groups", {"id": "all", "name": "All", "members": [LIGHT]})
        await app.command(LIGHT, "power", "off")
        await app.command(LIGHT, "brightness", "increase", 5)
        await app.post("/rooms/hall/command", {"capability": "power", "action": "on"})
        await app.post("/groups/all/command", {"capability": "power", "action": "on"})
        await app.post("/scenes/evening/execute")
        await app.post("/automations/evening/execute")
        found = await entries(app, "/audit/commands")
        reported = [(entry["source"], entry["device_id"], entry["room_id"], entry["status"]) for entry in found]
        assert reported[::-1] == [
            ("device", LIGHT, None, "ok"),
            ("device", LIGHT, None, "unsupported"),
            ("room", TV, "hall", "ok"),
            ("group", LIGHT, None, "ok"),
            ("scene:evening", LIGHT, None, "ok"),
            ("scene:evening", "nobody:home", None, "error"),
            ("automation:evening", LIGHT, None, "ok"),
            ("automation:evening", "nobody:home", None, "error"),
        ]
        assert found[0]["message"] == "device 'nobody:home' not found"
        assert found[-2]["command"] == {"capability": "brightness", "action": "increase", "value": 5}
        assert len(await entries(app, f"/audit/commands?device_id={TV}")) == 1
        figures = (await app.get("/diagnostics")).json["history"]
        assert (
            figures["commands"]["entries"] == 8 and 0 < figures["devices"]["bytes"] < figures["devices"]["max_bytes"]
        )
        last_run = (await app.get("/automations/evening")).json["last_run"]
        [was] = (await app.get("/diagnostics/status")).json["automations"]
    async with open_app(root=tmp_path, data_dir=tmp_path, clock=clock) as app:
        kept = await entries(app, "/audit/commands")
        assert [
            (entry["source"], entry["device_id"], entry["room_id"], entry["status"]) for entry in kept
        ] == reported
        assert (await app.get("/automations/evening")).json["last_run"] == last_run is not None
        assert [was] == (await app.get("/diagnostics/status")).json["automations"] and was["last"]["status"] == "ok"
        for id_, sentence in (
            ("evening", "ms: power on to nobody:home: device 'nobody:home' not found"),
            (LIGHT, "automation:evening sent power on: ok"),
        ):
            decisions = (await app.get(f"/why?id={id_}")).json["decisions"]
            assert any(sentence in decision["sentence"] for decision in decisions), id_


async def test_the_log_metrics_and_values_in_memory_are_never_on_the_card(tmp_path: Path) -> None:
    (tmp_path / "config" / "scenes").mkdir(parents=True)
    scene = SCENE.replace("ctx:command(", 'ctx:log("warn", "a line of the log") ctx:command(', 1)
    (tmp_path / "config" / "scenes" / "evening.lua").write_text(scene)
    data = tmp_path / "data"
    data.mkdir()
    async with open_app(root=tmp_path, data_dir=data) as app:
        for brightness in (11, 22, 33):
            await app.command(LIGHT, "brightness", "set", brightness)
        assert (await app.post("/scenes/evening/execute")).status == 200
        assert (await app.get("/metrics")).status == 200
        assert len(await entries(app, "/audit/commands")) == 5
        assert len(await entries(app, "/scenes/evening/history")) == 1
    written = b"".join(file.read_bytes() for file in data.glob("*.json"))
    keys = set(re.findall(rb'"([a-z]+)/[^"]*":', written))
    assert keys == {b"device", b"state", b"counter", b"files"}
    assert b'"brightness":33' in written and b'"brightness":22' not in written
    assert b"evening" not in written and b"a line of the log" not in written


async def test_history_survives_a_restart(tmp_path: Path) -> None:
    async with open_app(data_dir=tmp_path) as app:
        for brightness in (10, 30):
            await app.command(LIGHT, "brightness", "set", brightness)
        before = (await app.get(f"/devices/{LIGHT}/history/brightness?resolution=hour")).json["entries"]
    async with open_app(data_dir=tmp_path) as app:
        hours = (await app.get(f"/devices/{LIGHT}/history/brightness?resolution=hour")).json["entries"]
        assert (hours[-1]["min"], hours[-1]["max"]) == (before[-1]["min"], before[-1]["max"]) == (10, 50)
        raw = (await app.get(f"/devices/{LIGHT}/history/brightness")).json
        assert raw["resolution"] == "hour" and raw["entries"][-1]["min"] == 10
        sent = [each["command"]["value"] for each in await entries(app, f"/audit/commands?device_id={LIGHT}")]
        assert sent == [30, 10]
        kept = (await app.get("/diagnostics")).json["history"]
        assert kept["card"]["keep_days"] == 30 and kept["card"]["failure"] is None and kept["server"] is None
        metrics = (await app.get("/metrics")).json
        assert "lares_history_failing 0" in metrics and "lares_influx" not in metrics


async def test_with_zero_days_no_history_is_on_the_card(tmp_path: Path) -> None:
    async with open_app(data_dir=tmp_path, toml="[history]\nkeep_days = 0\n") as app:
        await app.command(LIGHT, "brightness", "set", 10)
        assert (await app.get("/diagnostics")).json["history"]["card"] is None
        assert (await app.get("/audit/commands")).status == 200
    assert not (tmp_path / "history").exists()


async def test_each_value_goes_to_the_server(tmp_path: Path) -> None:
    lines = LineServer()
    server = await lines.serve()
    url = server.make_url("/api/v2/write?bucket=lares")
    toml = f'[history]\ninflux_url = "{url}"\ninflux_token = "{TOKEN}"\n'
    async with open_app(data_dir=tmp_path, toml=toml) as app:
        await app.command(LIGHT, "brightness", "set", 10)
        received = (await app.get("/diagnostics")).json["history"]["server"]
        assert received["server"] == f"http://127.0.0.1:{server.port}" and received["waiting"] > 0
        assert TOKEN not in repr(app.hub.history) + str(received)
        metrics = str((await app.get("/metrics")).json)
        page = (Path(__file__).parent.parent.parent / "docs" / "monitoring.md").read_text()
        assert set(re.findall(r"^(lares_influx\w+) ", metrics, re.MULTILINE)) == set(
            re.findall(r"lares_influx\w+", page)
        )
    await server.close()
    found = [fields["value"] for (name, _, _), fields in lines.points.items() if name == "brightness"]
    assert found == [50, 10] and lines.requests == 1


async def test_executions_and_commands_with_long_texts_are_cut_at_a_size(tmp_path: Path, clock: VirtualClock) -> None:
    for kind, text in (("scenes", SCENE), ("automations", AUTOMATION)):
        (tmp_path / "config" / kind).mkdir(parents=True)
        (tmp_path / "config" / kind / "evening.lua").write_text(text)
    light, tv = LightSimulator(clock=clock), TvSimulator(clock=clock)
    async with open_app(root=tmp_path, clock=clock, light=light, tv=tv) as app:
        for number in range(60):
            clock.suspend(1)
            add_long_entries(app, clock, f"{number:02}{'x' * 100_000}")
        for path in ("/scenes/evening/history", "/automations/evening/history", "/audit/commands"):
            shown = await entries(app, f"{path}?limit=1000")
            assert MAX_ENTRIES_BYTES - 101_000 < len(orjson.dumps(shown)) <= MAX_ENTRIES_BYTES, path
            times = [each.get("executed_at") or each["recorded_at"] for each in shown]
            assert times == sorted(times, reverse=True), path


def add_long_entries(app: App, clock: VirtualClock, text: str) -> None:
    """Add an execution of the scene and of the automation, and a command, each with this text."""
    hub = app.hub
    run = ExecutionEntry(
        subject="evening",
        executed_at=clock.now(),
        status=ExecutionStatus.ERROR,
        error=text,
        results=(),
        duration_ms=1,
        trigger_payload={},
    )
    hub.scenes.executor.history.add(run)
    hub.automations.executor.history.add(run)
    ended = CommandEnded(
        at=clock.now(),
        source="device",
        room_id=None,
        device_id=LIGHT,
        command=Command(capability="power", action="on"),
        status="error",
        message=text,
    )
    hub.bus.publish(ended)


async def test_the_states_of_a_device_with_long_texts_are_cut_at_a_size(quiet: App, clock: VirtualClock) -> None:
    text = {"custom.elgato_lights.text": "x" * 100_000}
    for brightness in range(1, 61):
        clock.suspend(1)
        seen = Observation(device_id=LIGHT, kind=DeviceKind.LIGHT, attributes={**text, "brightness": brightness})
        quiet.hub.registry.apply(Report(adapter="elgato_lights", observations=(seen,)))
    states = await entries(quiet, f"/devices/{LIGHT}/history?limit=1000")
    shown = [each["device"]["attributes"]["brightness"] for each in states]
    assert shown == [*range(60, 60 - len(shown), -1)]
    assert len(shown) == MAX_ENTRIES_BYTES // 100_600
