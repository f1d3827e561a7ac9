"""A start of the hub: the modules that are imported before the first answer, SIGTERM at any time, and the single
file."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from appliance.cli import single_file
from appliance.cli.main import main
from tests.cli.commands import WITH_KEY, lares, until
from tests.cli.homes import furnish
from tests.fakes.process import configure, spawn

ROOT = Path(__file__).parent.parent.parent

LATE = ("aiohttp", "aiomqtt", "argon2", "astral", "croniter", "defusedxml", "jinja2", "watchfiles")
"""Modules that only some configurations need. Other configurations do not import these modules before the first
answer."""

STOPPED = """
import os, signal, sys
from appliance import config
from appliance.cli.main import main

config.load = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
sys.exit(main())
"""
"""A `lares run` that is stopped while it reads its configuration."""

POOLS = """
import ctypes, os, sys
from appliance import config
from appliance.cli.main import main

def print_pools(*_):
    libc = ctypes.CDLL(None)
    libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
    libc.fflush(None)
    os._exit(0)

config.load = print_pools
sys.exit(main())
"""
"""A `lares run` that prints its memory pools when it reads its configuration."""

START = """
import asyncio, json, os, sys
from pathlib import Path
from appliance import config
from appliance.cli.process.serve import serve

def on_start(hub, port):
    print(json.dumps(sorted(sys.modules)), flush=True)
    os._exit(0)

folder = Path(sys.argv[1])
settings = config.load(folder / "config" / "default.toml", os.environ)
asyncio.run(serve(settings, folder / "data", on_start))
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
def test_sigterm_during_a_start_is_an_orderly_stop(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STOPPED, "run", "--data-dir", str(tmp_path / "data")]
    environment = {**os.environ, "LARES_MASTER_KEY": "key", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=environment, cwd=tmp_path, check=False)
    assert ended.returncode == os.EX_OK
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
@pytest.mark.parametrize("option", [(), ("--safe",)])
def test_sigterm_ends_the_start_while_an_endless_file_loads(tmp_path: Path, option: tuple[str, ...]) -> None:
    furnish(tmp_path, "[scripts]\nmax_cpu_secs = 600\n", "while true do end")
    with lares(tmp_path, "run", *option, variables=WITH_KEY) as running:
        until((tmp_path / "data" / "lock").exists, "the start of the store")
        message = running.stop().err
        assert "stopped during the start" in message and "listening" not in message
    with lares(tmp_path, "run", variables=WITH_KEY) as running:
        running.says("starts")
        until((tmp_path / "data" / "lock").exists, "the start of the store")
        assert "crash" not in running.stop().err


@pytest.mark.slow
@pytest.mark.parametrize("limit", [7, 10])
def test_too_few_open_files_are_reported_in_one_sentence(tmp_path: Path, limit: int) -> None:
    configure(tmp_path)
    with spawn(tmp_path, tmp_path / "log", max_files=limit) as started:
        code = started.wait(60)
    log = (tmp_path / "log").read_text()
    assert code == os.EX_IOERR and "Traceback" not in log
    assert "\nlares: the limit of open files is too low; raise the limit with `ulimit -n`" in log


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="only glibc has several pools")
def test_all_threads_share_one_memory_pool(tmp_path: Path) -> None:
    command = [sys.executable, "-c", POOLS, "run", "--data-dir", str(tmp_path / "data")]
    environment = {**os.environ, "LARES_MASTER_KEY": "key", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, check=True)
    assert ended.stdout.count(b"<heap nr=") == 1


TARGETS = ("cpython-311-aarch64-linux-gnu", "cpython-311-x86_64-linux-musl")


def test_the_version_lists_each_target(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    file = ModuleType("lares_file")
    vars(file)["TARGETS"] = TARGETS
    monkeypatch.setitem(sys.modules, "lares_file", file)
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.splitlines()[3:] == ["this file holds", *(f"  {each}" for each in TARGETS)]


def test_a_process_of_python_packages_has_no_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lares_file", raising=False)
    assert single_file.list_targets() == () and single_file.running_file() is None
