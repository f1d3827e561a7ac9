"""`lares reload` and `systemctl reload`. Also, `status` and `check` report configuration changes that are not active
yet."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from appliance.automations.safe_mode import STARTED_SAFE
from tests.cli.commands import asked
from tests.fakes.lua import automation, scene, write
from tests.fakes.process import configure, running

DEVICES = 'devices = [{ id = "a", attributes = { power = "off" } }]\n'
LAMP, DESK = f"[adapters.virtual]\n{DEVICES}", f'[adapters.desk]\ntype = "virtual"\n{DEVICES}'


@pytest.mark.slow
async def test_one_command_reloads_everything_and_lists_every_change_and_error(tmp_path: Path) -> None:
    write(tmp_path, {"scenes/a.lua": scene("a"), "automations/b.lua": automation("b", '{ type = "x" }')})
    configure(tmp_path, LAMP)
    async with running(tmp_path) as process:
        await process.ready()
        write(tmp_path, {"automations/b.lua": automation("b", '{ type = "webhook", hook = "b" }')})
        configure(tmp_path, LAMP + DESK + "[runtime]\nevent_bus_capacity = 9\n[scripts]\nenabled = false\n")
        for command in ("status", "check"):
            shown = await asked(tmp_path, command)
            assert shown.code == 0 and "run `lares reload` to apply [adapters.desk]" in shown.out, shown
            assert "changed settings in" in shown.out and "runtime.event_bus_capacity" in shown.out
        done = await asked(tmp_path, "reload")
        assert (done.code, done.err) == (0, ""), done
        first, desk, *rest, pending = done.out.splitlines()
        assert (first, desk) == ("adapters: 0 kinds loaded", "  [adapters.desk] started")
        assert rest == ["scenes: 1 scene loaded", "automations: 1 automation loaded", "scripts: 0 scripts checked"]
        assert pending.endswith(": runtime.event_bus_capacity, scripts.enabled")
        assert (await process.get("/devices/desk:a"))["id"] == "desk:a"
        write(tmp_path, {"scenes/a.lua": "return {", "scenes/c.lua": "return {"})
        configure(tmp_path, LAMP + "devises = 1\n")
        done = await asked(tmp_path, "reload")
        assert done.code == 78 and done.err == "lares: 3 faults found\n", done
        assert "scenes: not reloaded; the previous files remain active" in done.out
        assert done.out.count("config/scenes/") == 2 and "is not a key of Lares; did you mean" in done.out
        assert "has faults, so the hub ignores the change; run `lares check`" in (await asked(tmp_path, "status")).out
        configure(tmp_path, LAMP)
        process.popen.send_signal(signal.SIGHUP)
        for _ in range(200):
            if (await process.ask("GET", "/devices/desk:a"))[0] == 404:
                break
            await asyncio.sleep(0.02)
        else:
            raise AssertionError("SIGHUP stops the section")
    done = await asked(tmp_path, "reload")
    assert done.code == 69 and "no hub runs" in done.err


@pytest.mark.slow
async def test_a_reload_with_safe_names_the_restart(tmp_path: Path) -> None:
    configure(tmp_path)
    async with running(tmp_path, arguments=["--safe"]) as process:
        await process.ready()
        done = await asked(tmp_path, "reload")
        assert (done.code, done.out.splitlines()[-1]) == (0, STARTED_SAFE)
