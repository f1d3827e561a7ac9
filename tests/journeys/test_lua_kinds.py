"""A hobbyist writes out a bundled kind, changes it, breaks it, and fixes it, without a restart."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from appliance import config
from appliance.cli.run import _announce_listening
from tests.adapters.lua_kinds.bench import section
from tests.adapters.lua_kinds.simulators import ShellyTwo
from tests.fakes.app import App, open_app
from tests.fakes.lua import automation, write
from tests.fakes.patience import until_async

pytestmark = pytest.mark.slow

DEVICE = "kitchen:switch:0"


def init(root: Path, *arguments: str) -> str:
    """Return the output of `lares init`."""
    command = [sys.executable, "-m", "appliance", "init", *arguments, "--config", str(root / "config" / "test.toml")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


async def test_a_kind_is_changed_broken_and_repaired_without_a_restart(tmp_path: Path) -> None:
    (tmp_path / "config" / "adapters").mkdir(parents=True)
    (tmp_path / "config" / "test.toml").touch()
    assert "shelly.lua" in init(tmp_path, "--adapter", "shelly")
    file = tmp_path / "config" / "adapters" / "shelly.lua"
    text = file.read_text()
    async with ShellyTwo() as vendor:
        adapters = {"kitchen": section("shelly", {"base_url": vendor.url, "poll_interval_secs": 1}, "kitchen")}
        async with open_app(adapters=adapters, root=tmp_path) as app:
            assert (await app.command(DEVICE, "power", "on")).status == 200
            assert vendor.status["switch:0"]["output"] is True

            file.write_text(text.replace('manufacturer = "Shelly"', 'manufacturer = "Mine"'))
            await shows(app, lambda device: device["info"]["manufacturer"] == "Mine")

            broken = text.replace("local function poll(ctx)", "local function poll(ctx) =")
            file.write_text(broken)
            line = broken.splitlines().index("local function poll(ctx) =") + 1
            await says(app, f"config/adapters/shelly.lua:{line}: unexpected symbol near '='")
            assert (await app.command(DEVICE, "power", "off")).status == 200, "the one before still works"

            file.write_text(text.replace('manufacturer = "Shelly"', 'manufacturer = "Again"'))
            await shows(app, lambda device: device["info"]["manufacturer"] == "Again")
            await says(app, None)
            figures = (await app.get("/diagnostics")).json["scripts"]
            assert len(figures["adapters"]["workers"]) == 1
            assert figures["adapters"]["workers"][0]["pid"] != figures["workers"][0]["pid"]
            reloaded = await app.post("/adapters/reload")
            assert (reloaded.json["status"], reloaded.json["loaded_count"]) == ("ok", 1)
            file.write_text(text.replace("settings = {", 'settings = { pin = { type = "string", required = true },'))
            missing = "adapters.kitchen.pin is missing"
            await says(app, f"config/default.toml:7: {missing}")


async def shows(app: App, holds: Callable[[Any], bool]) -> None:
    """Wait until the device reports the value."""

    async def asked() -> bool:
        return holds(await app.device(DEVICE))

    await until_async(asked)


async def says(app: App, fault: str | None) -> None:
    """Wait until `GET /adapters/{name}` reports this fault of the kind's file."""

    async def asked() -> bool:
        return bool((await app.get("/adapters/kitchen")).json.get("file_fault") == fault)

    await until_async(asked)


async def test_a_broken_kind_runs_once_it_is_repaired(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, {"adapters/mine.lua": "return {\n  name = 7,\n}\n"})
    adapters = {"kitchen": section("mine", {}, "kitchen")}
    async with open_app(adapters=adapters, root=tmp_path) as app:
        fault = "config/adapters/mine.lua:2: name must be a string, not 7"
        assert any(fault in str(event) for event in app.events)
        settings = config.parse("", str(tmp_path / "config" / "default.toml"), {})
        with caplog.at_level("INFO"):
            _announce_listening(replace(settings, adapters=adapters), app.hub, 1)
        assert "listening" in caplog.text and "kitchen: enabled" not in caplog.text
        shown = (await app.get("/adapters/kitchen")).json
        assert (shown["runtime_status"], shown["file_fault"]) == ("degraded", fault)
        good = 'return { name = "x", poll = function() return { { id = "switch:0", kind = "Switch" } } end }'
        write(tmp_path, {"adapters/mine.lua": good})
        assert (await app.post("/adapters/reload")).json["errors"] == []
        await until_async(lambda: has(app))


async def has(app: App) -> bool:
    return bool((await app.get(f"/devices/{DEVICE}")).status == 200)


KIND = """return {
  name = "Bell",
  hook = function(ctx, request)
    if request.query.bad then local x = nil return x.y end
    ctx.memory.rings = (ctx.memory.rings or 0) + 1
    return {
      devices = { { id = "bell", kind = "Sensor", name = request.method .. " " .. ctx.memory.rings,
        attributes = { battery = request.data and request.data.battery } } },
      events = { { id = "bell", event = "ring" } },
    }
  end,
}"""


async def test_data_of_a_hook_is_shown_and_an_error_of_the_file_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {"adapters/bell.lua": KIND})
    adapters = {"door": section("bell", {}, "door")}
    async with open_app(adapters=adapters, root=tmp_path) as app:
        made = (await app.post("/auth/keys", {"label": "bell", "role": "hook", "hook": "door"})).json
        assert "warning" not in made, made
        async with app.stream() as frames:
            answer = await app.post("/hooks/door", {"battery": 71}, token=made["key"])
            assert answer.status == 200, answer
            assert (await frames.until("device.event"))[-1]["event"] == "ring"
        shown = await app.device("door:bell")
        assert (shown["name"], shown["attributes"]["battery"]) == ("POST 1", 71)
        assert (await app.get("/hooks/door", token=made["key"])).status == 200
        assert (await app.device("door:bell"))["name"] == "GET 2"
        refused = await app.post("/hooks/door?bad=1", {}, token=made["key"])
        assert refused.status == 400 and "bell.lua:4: attempt to index a nil value" in refused.json["error"]

        write(tmp_path, {"adapters/bell.lua": KIND.replace("hook = function", "poll = function")})
        await app.post("/adapters/reload")

        async def gone() -> bool:
            return bool((await app.post("/hooks/door", {}, token=made["key"])).status == 404)

        await until_async(gone)


PULSES = """return {
  name = "Pulses",
  hook = function(ctx, request)
    ctx.memory.rows = request.data.poll
    return { devices = request.data.push, poll = request.data.poll ~= nil }
  end,
  poll = function(ctx)
    local rows = ctx.memory.rows or { { id = "a", kind = "Switch", attributes = { power = "off" } } }
    ctx.memory.rows = nil
    return rows, 3600
  end,
}"""
COUNT = "ctx:set('fires', (ctx:get('fires', 0)) + 1)"
TRIGGER = '{ type = "device_state_change", device_id = "it:a", attribute = "power", equals = "on" }'


def row(power: str | None, **more: Any) -> dict[str, Any]:
    return {"id": "a", **({} if power is None else {"attributes": {"power": power}}), **more}


async def test_pulses_of_one_list_reach_triggers_frames_and_history_in_order(tmp_path: Path) -> None:
    write(tmp_path, {"adapters/mine.lua": PULSES})
    write(tmp_path, {"automations/count.lua": automation("count", TRIGGER, COUNT, more='mode = "queued"')})
    async with open_app(adapters={"it": section("mine", {}, "it")}, root=tmp_path) as app:
        key = (await app.post("/auth/keys", {"label": "x", "role": "hook", "hook": "it"})).json["key"]

        async def send(**lists: Any) -> None:
            assert (await app.post("/hooks/it", lists, token=key)).status == 200

        async with app.stream() as frames:
            await send(push=[row("on"), row("off"), row("on", name="B"), row("off")])
            await send(push=[row(None, state="unavailable"), row("on")])
            await send(push=[row("off")], poll=[row("on"), row("off"), row(None, state="unavailable")])

            async def has_polled() -> bool:
                return bool((await app.device("it:a"))["attributes"]["state"] == "unavailable")

            await until_async(has_polled)
            reported = await app.received(frames)
        shown = [each["state"] for each in reported if each["type"] == "device.state_changed"]
        powers = ["on", "off", "on", "off", "off", "on", "off", "on", "off", "off"]
        assert [each["power"] for each in shown] == powers
        assert [each["state"] for each in shown].count("unavailable") == 2

        async def has_counted() -> bool:
            return bool((await app.get("/variables/fires")).json.get("value") == 4)

        await until_async(has_counted)
        entries = (await app.get("/devices/it:a/history/power")).json["entries"]
        assert [each["value"] for each in reversed(entries)][-8:] == ["on", "off"] * 4
