"""`lares try-adapter`: one poll without a hub, a recording without secrets, and its replay without the device."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.adapters.lua_kinds.simulators import Tasmota
from tests.fakes.process import ROOT

pytestmark = pytest.mark.slow

PASSWORD = "pw-9f/3a"
ON = '{"capability": "power", "action": "on"}'


async def lares(folder: Path, *words: str) -> tuple[int, str]:
    """The exit code of the command, and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "appliance",
        *words,
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


async def test_a_poll_and_a_command_are_shown_recorded_and_replayed(tmp_path: Path) -> None:
    settings = ("--set", f"password={PASSWORD}")
    async with Tasmota(password=PASSWORD) as vendor:
        url = ("--set", f"base_url={vendor.url}")
        more = ("--command", "relay:1", ON, "--record", "it.json")
        code, said = await lares(tmp_path, "try-adapter", "tasmota_http", *url, *settings, *more)
    assert code == 0, said
    assert "asked: GET /cm → 200" in said and 'power = "on"' in said and "done: power on" in said
    recording = (tmp_path / "it.json").read_text()
    for form in (PASSWORD, "pw-9f%2F3a"):
        assert form not in recording + said
    assert json.loads(recording)["settings"]["password"] == "***"
    assert (tmp_path / "it.json").stat().st_mode & 0o777 == 0o600

    code, said = await lares(tmp_path, "try-adapter", "tasmota_http", "--replay", "it.json")
    assert code == 0 and "tasmota_http:relay:1" in said, said


async def test_what_is_wrong_is_a_sentence_and_an_exit_code(tmp_path: Path) -> None:
    unreachable = await lares(tmp_path, "try-adapter", "shelly", "--set", "base_url=http://127.0.0.1:1")
    assert unreachable[0] == os.EX_UNAVAILABLE and "does not answer (connection refused)" in unreachable[1]
    code, said = await lares(tmp_path, "try-adapter", "shelly", "--set", "bse_url=http://127.0.0.1:1")
    assert code == os.EX_CONFIG and "bse_url is not a setting of the kind shelly; did you mean" in said
    code, said = await lares(tmp_path, "try-adapter", "mqtt")
    assert code == os.EX_USAGE and "there is no kind mqtt in Lua" in said
    (tmp_path / "config" / "adapters").mkdir(parents=True)
    (tmp_path / "config" / "default.toml").touch()
    (tmp_path / "config" / "adapters" / "mine.lua").write_text("return {\n  name = 'x',\n  poll = 7,\n}\n")
    code, said = await lares(tmp_path, "try-adapter", "mine")
    assert code == os.EX_CONFIG and "config/adapters/mine.lua:3: poll must be a function, not 7" in said
