"""The folder with the unpacked program is deleted while the hub runs. The hub reports this as the reason."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.fakes.process import ROOT, configure, running

pytestmark = pytest.mark.slow

SCENE = "return { id = 'x', name = 'X', execute = function(ctx) end }"


async def test_each_part_that_needs_the_program_names_the_missing_folder(tmp_path: Path) -> None:
    program = tmp_path / "program" / "appliance"
    shutil.copytree(ROOT / "appliance", program)
    shutil.copytree(ROOT / "config", program.parent / "config")
    configure(tmp_path)
    (tmp_path / "config" / "scenes").mkdir()
    (tmp_path / "config" / "scenes" / "x.lua").write_text(SCENE)
    missing = f"the program's folder {program} is missing; restart the hub"
    simulation = "POST", "/simulate", {"hours": 1, "from": "2026-11-20T00:00:00Z"}
    async with running(tmp_path, {"PYTHONPATH": str(program.parent), "PYTHONSAFEPATH": "1"}) as hub:
        await hub.ready()
        assert (await hub.ask(*simulation))[0] == 200
        for worker in (await hub.get("/diagnostics/status"))["lua"]["workers"]:
            os.kill(worker["pid"], signal.SIGKILL)
        shutil.rmtree(program.parent)
        for asked in (simulation, ("GET", "/kinds", None)):
            assert await hub.ask(*asked) == (503, {"error": missing, "code": "not_ready"})
        _, answer = await hub.ask("POST", "/scenes/x/execute")
        assert f"the Lua worker ended unexpectedly ({missing})" in answer["error"]
