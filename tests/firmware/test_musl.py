"""The same file on musl, with a CPython that is compiled for it; only where that is there or was asked for."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.firmware.box_run import put_through
from tests.firmware.boxed import configure, started
from tests.firmware.musl import make_musl_python, musl_python

pytestmark = [pytest.mark.slow, pytest.mark.musl]


@pytest.fixture(scope="session")
def python(request: pytest.FixtureRequest) -> Path:
    """A CPython that runs on musl."""
    if request.config.option.markexpr != "musl" and not musl_python().exists():
        pytest.skip("compiles a CPython for minutes, which `python3 build.py test -m musl` asks for")
    return make_musl_python()


def command(python: Path, file: Path, *arguments: str) -> list[str | Path]:
    """How to run the file on musl."""
    return [python, "-I", "-S", file, *arguments]


def test_it_says_its_version(python: Path, single_file: Path, tmp_path: Path) -> None:
    run = command(python, single_file, "--version")
    done = subprocess.run(run, cwd=tmp_path, env={}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "x86_64-linux-musl" in done.stdout


def test_it_loads_nothing_of_the_machine_that_it_runs_on(python: Path, single_file: Path, tmp_path: Path) -> None:
    configure(tmp_path)
    (tmp_path / "data").mkdir()
    with started(command(python, single_file, "run"), tmp_path, {}) as box:
        assert box.process is not None
        maps = Path(f"/proc/{box.process.pid}/maps").read_text()
        assert box.stop() == 0
    objects = {Path(name) for name in re.findall(r"/\S+\.so\S*", maps)}
    own = {each for each in objects if each.is_relative_to(tmp_path / "data")}
    assert {"orjson.cpython-311-x86_64-linux-musl.so", "lua54.abi3.so"} <= {each.name for each in own}
    assert [each for each in objects - own if not each.is_relative_to(python.parents[1])] == []


def test_it_works_persists_and_comes_back_with_its_state(python: Path, single_file: Path, tmp_path: Path) -> None:
    put_through(command(python, single_file, "run"), tmp_path)
