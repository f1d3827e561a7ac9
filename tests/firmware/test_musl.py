"""The same file on musl, with a CPython that was compiled for musl. The tests run only if this CPython exists, or
with `-m musl`."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.fakes.lua import scene, write
from tests.firmware.box_run import put_through
from tests.firmware.boxed import configure, started
from tests.firmware.musl import make_musl_python, musl_python
from tests.lua.test_confinement import judge_escape, judge_protection

pytestmark = [pytest.mark.slow, pytest.mark.musl]


@pytest.fixture(scope="session")
def python(request: pytest.FixtureRequest) -> Path:
    if request.config.option.markexpr != "musl" and not musl_python().exists():
        pytest.skip("compiles a CPython for minutes, which `python3 build.py test -m musl` asks for")
    return make_musl_python()


def command(python: Path, file: Path, *arguments: str) -> list[str | Path]:
    """Return the command that runs the file on musl."""
    return [python, "-I", "-S", file, *arguments]


def test_the_file_prints_its_version(python: Path, single_file: Path, tmp_path: Path) -> None:
    run = command(python, single_file, "--version")
    done = subprocess.run(run, cwd=tmp_path, env={}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "x86_64-linux-musl" in done.stdout


def test_the_worker_is_confined_and_loads_no_glibc(python: Path, single_file: Path, tmp_path: Path) -> None:
    configure(tmp_path)
    (tmp_path / "data").mkdir()
    write(tmp_path, {"scenes/a.lua": scene("a", "ctx:sleep(0.01)")})
    with started(command(python, single_file, "run"), tmp_path, {"STATE_DIRECTORY": str(tmp_path / "data")}) as box:
        assert box.process is not None
        assert box.ask("POST", "/scenes/a/execute") == (200, {"status": "ok", "results": []})
        [worker] = box.ask("GET", "/diagnostics")[1]["scripts"]["workers"]
        status = Path(f"/proc/{worker['pid']}/status").read_text()
        hub, lua = (_shared_objects(pid) for pid in (box.process.pid, worker["pid"]))
        assert box.stop() == 0
    assert worker["confinement"] == "complete"
    assert "NoNewPrivs:\t1\n" in status and "Seccomp:\t2\n" in status
    [program] = (tmp_path / "data" / "program").glob("*-musl")
    for objects, own in ((hub, "orjson.cpython-311-x86_64-linux-musl.so"), (lua, "lua54.abi3.so")):
        assert own in {each.name for each in objects if each.is_relative_to(program)}
        assert all(each.is_relative_to(program) or each.is_relative_to(python.parents[1]) for each in objects)
    path = [str(program / "site-packages")]
    judge_protection([python, "-I", "-S"], path)
    (tmp_path / "escape").mkdir()
    ended = judge_escape([python, "-I", "-S"], path, tmp_path / "escape")
    assert ended == -signal.SIGSEGV, "musl's abort asks for tkill, which is refused, and then crashes"


def _shared_objects(pid: int) -> set[Path]:
    """Return the process's shared objects. Only root can read the shared objects of a protected process."""
    return {Path(name) for name in re.findall(r"/\S+\.so\S*", Path(f"/proc/{pid}/maps").read_text())}


def test_it_works_persists_and_comes_back_with_its_state(python: Path, single_file: Path, tmp_path: Path) -> None:
    put_through(command(python, single_file, "run"), tmp_path)
