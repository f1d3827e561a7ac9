"""A start: its imports before the first answer, SIGTERM at any time, and its single file."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from appliance.cli import single_file
from appliance.cli.main import main
from tests.fakes.clock import VirtualClock
from tests.fakes.patience import until

ROOT = Path(__file__).parent.parent.parent

LATE = ("aiohttp", "aiomqtt", "argon2", "astral", "croniter", "defusedxml", "jinja2", "watchfiles")
"""A hub whose configuration needs none of these has imported none when it begins to respond."""

STOPPED = """
import os, signal, sys
from appliance import config
from appliance.cli.main import main

config.load = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
sys.exit(main())
"""
"""A `lares run` that is stopped while it reads its configuration."""

START = """
import asyncio, json, os, sys
from pathlib import Path
from appliance import config
from appliance.cli.run import serve

def tell(hub, port):
    print(json.dumps(sorted(sys.modules)), flush=True)
    os._exit(0)

folder = Path(sys.argv[1])
settings = config.load(folder / "config" / "default.toml", os.environ)
asyncio.run(serve(settings, folder / "data", tell))
"""

ADAPTERS = """
[adapters.elgato_lights]
base_url = "http://127.0.0.1:9"
[adapters.roku_tv]
ip_address = "127.0.0.1"
port = 9
"""


@pytest.mark.parametrize("adapters", ["", ADAPTERS])
@pytest.mark.slow
def test_the_first_answer_needs_no_module_that_is_imported_late(tmp_path: Path, adapters: str) -> None:
    config = tmp_path / "config" / "default.toml"
    config.parent.mkdir()
    (tmp_path / "data").mkdir()
    config.write_text(f'[api]\nbind_address = "127.0.0.1:0"\n{adapters}')
    environment = {**os.environ, "LARES_MASTER_KEY": "key", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", START, str(tmp_path)]
    printed = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    imported = {name for name in json.loads(printed.stdout) if name in LATE}
    assert imported == set()


@pytest.mark.slow
def test_sigterm_before_the_hub_has_begun_is_a_stop_as_asked(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STOPPED, "run", "--data-dir", str(tmp_path / "data")]
    environment = {**os.environ, "LARES_MASTER_KEY": "key", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=environment, cwd=tmp_path, check=False)
    assert ended.returncode == os.EX_OK
    assert not (tmp_path / "data").exists()


TARGETS = ("cpython-311-aarch64-linux-gnu", "cpython-311-x86_64-linux-musl")


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the finished steps of a process from a single file."""
    steps: list[str] = []
    file, settle = ModuleType("lares_file"), ModuleType("lares_settle")
    vars(file)["TARGETS"] = TARGETS
    for step in ("seal", "remove_old_versions"):
        vars(settle)[step] = lambda: steps.append(threading.current_thread().name)
    monkeypatch.setitem(sys.modules, "lares_file", file)
    monkeypatch.setitem(sys.modules, "lares_settle", settle)
    return steps


@pytest.mark.usefixtures("settled")
def test_the_version_lists_each_target_that_the_file_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.splitlines()[3:] == ["this file holds", *(f"  {each}" for each in TARGETS)]


async def test_what_was_compiled_is_kept_soon_and_old_versions_go_after_a_minute(
    settled: list[str],
) -> None:
    clock = VirtualClock()
    tidying = asyncio.ensure_future(single_file.finish_upgrade(clock))
    await clock.advance(2.9, sleepers=1)
    assert not settled
    await clock.advance(0.2, sleepers=1)
    await until(lambda: settled == ["seal"])
    await clock.advance(56.8, sleepers=1)
    assert settled == ["seal"]
    await clock.advance(0.2, sleepers=0)
    await tidying
    await until(lambda: sorted(settled) == ["remove_old_versions", "seal", "seal"])


@pytest.mark.parametrize("error", [OSError(30, "Read-only file system"), ValueError("Read-only file system")])
async def test_what_cannot_be_tidied_is_said(
    settled: list[str], caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fail() -> None:
        raise error

    vars(sys.modules["lares_settle"])["remove_old_versions"] = fail
    clock = VirtualClock()
    with caplog.at_level(logging.WARNING):
        await clock.run(single_file.finish_upgrade(clock))
        await until(lambda: caplog.messages)
    assert caplog.messages == ["cannot remove earlier versions: Read-only file system"]


async def test_a_process_that_came_from_elsewhere_has_nothing_to_tidy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lares_file", raising=False)
    assert single_file.list_targets() == ()
    await single_file.finish_upgrade(VirtualClock())
