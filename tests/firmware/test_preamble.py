"""The start code of the single file. Each Python can run this code, and an unsuitable Python prints the reason."""

from __future__ import annotations

import ast
import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from firmware.pack import WHEN_CUT
from tests.fakes.programs import known_to_pyenv

pytestmark = pytest.mark.slow

BOOT = Path(__file__).parents[2] / "firmware" / "boot"
HELD = tuple(
    f"cpython-{python}-{machine}-linux-{libc}"
    for python in ("311", "313")
    for machine in ("aarch64", "x86_64")
    for libc in ("gnu", "musl")
)
NEEDS = "CPython 3.11 or 3.13 on 64-bit Linux, aarch64 or x86_64, with glibc 2.28 or newer or musl"

FEIGN = """
import os, runpy, sys, importlib.machinery

sys.path.insert(0, sys.argv[1])
sys.version_info = tuple(int(part) for part in sys.argv[2].split(".")) + ("final", 0)
importlib.machinery.EXTENSION_SUFFIXES[:] = ["." + sys.argv[3] + ".so"]
os.confstr = lambda name: sys.argv[4]
runpy.run_path(sys.argv[1] + "/__main__.py", run_name="__main__")
"""


@pytest.fixture
def boot(tmp_path: Path) -> Path:
    """Provide the start code for these targets, with a launcher that only reports its start."""
    shutil.copy(BOOT / "__main__.py", tmp_path)
    (tmp_path / "lares_file.py").write_text(f"BUILD = 'x'\nGLIBC = (2, 28)\nNEEDS = {NEEDS!r}\nTARGETS = {HELD!r}\n")
    (tmp_path / "lares_launcher.py").write_text("def launch():\n    print('launched')\n    return 7\n")
    return tmp_path


def start(boot: Path, version: str, tag: str, glibc: str) -> subprocess.CompletedProcess[str]:
    """Run the start code in a Python that pretends to be this version."""
    command = [sys.executable, "-S", "-c", FEIGN, str(boot), version, tag, glibc]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("version", "tag", "glibc"),
    [
        ("3.11.2", "cpython-311-aarch64-linux-gnu", "glibc 2.28"),
        ("3.11.2", "cpython-311-x86_64-linux-gnu", "glibc 2.100"),
        ("3.13.9", "cpython-313-aarch64-linux-musl", ""),
    ],
)
def test_a_suitable_box_starts(boot: Path, version: str, tag: str, glibc: str) -> None:
    done = start(boot, version, tag, glibc)
    assert (done.returncode, done.stdout, done.stderr) == (7, "launched\n", "")


@pytest.mark.parametrize(
    ("version", "tag", "glibc", "has"),
    [
        ("3.9.2", "cpython-39-aarch64-linux-gnu", "glibc 2.31", "Python 3.9.2 (cpython-39-aarch64-linux-gnu) with"),
        ("3.15.0", "cpython-315-x86_64-linux-gnu", "glibc 2.41", "(cpython-315-x86_64-linux-gnu) with glibc 2.41"),
        ("3.12.1", "cpython-312-x86_64-linux-musl", "", "Python 3.12.1 (cpython-312-x86_64-linux-musl)\n"),
        ("3.11.2", "cpython-311-arm-linux-gnueabihf", "glibc 2.36", "(cpython-311-arm-linux-gnueabihf)"),
        ("3.13.1", "cpython-313t-x86_64-linux-gnu", "glibc 2.36", "(cpython-313t-x86_64-linux-gnu)"),
        ("3.11.9", "cpython-311-darwin", "", "(cpython-311-darwin)"),
        ("3.11.2", "cpython-311-x86_64-linux-gnu", "glibc 2.17", "with glibc 2.17"),
        ("2.7.18", "", "glibc 2.31", "Python 2.7.18"),
    ],
)
def test_an_old_python_gets_the_requirements(boot: Path, version: str, tag: str, glibc: str, has: str) -> None:
    done = start(boot, version, tag, glibc)
    assert (done.returncode, done.stdout) == (69, "")
    assert (
        done.stderr.startswith(f"lares: this file needs {NEEDS}; {sys.executable} is Python ") and has in done.stderr
    )
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["__main__.py", "lares_file.py"])
def test_old_pythons_can_read_it(name: str) -> None:
    text = (BOOT / name).read_bytes().decode("ascii")
    ast.parse(text, feature_version=(3, 4))
    later = (ast.AnnAssign, ast.JoinedStr, ast.AsyncFunctionDef, ast.Starred, ast.Nonlocal, ast.NamedExpr)
    for node in ast.walk(ast.parse(text)):
        assert not isinstance(node, later), f"{name}:{node.lineno}"
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None and not any(each.annotation for each in node.args.args)


def test_each_old_python_reports_itself(boot: Path) -> None:
    environment = {**os.environ, "PYENV_VERSION": known_to_pyenv()}
    names = ("python2.7", *(f"python3.{minor}" for minor in range(6, 11)))
    found = [python for name in names if (python := shutil.which(name)) and _runs(python, environment)]
    if not found:
        pytest.skip("there is no python older than 3.11 here")
    for python in found:
        done = subprocess.run([python, str(boot)], capture_output=True, text=True, env=environment, timeout=60)
        assert done.returncode == 69 and NEEDS in done.stderr, python


def _runs(python: str, environment: dict[str, str]) -> bool:
    return subprocess.run([python, "-c", "pass"], env=environment, capture_output=True).returncode == 0


def test_an_incomplete_file_reports_it(tmp_path: Path) -> None:
    whole = io.BytesIO()
    whole.write(b"#!/usr/bin/env python3\n" + WHEN_CUT)
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("__main__.py", "print('fine')\n")
        archive.writestr("much", os.urandom(50_000))
    file = tmp_path / "lares.pyz"
    for length, code, sentence in (
        (None, 0, ""),
        (len(whole.getvalue()) - 1, 1, "cut off or damaged"),
        (30_000, 1, "cut off or damaged"),
        (200, 1, "cut off or damaged"),
    ):
        file.write_bytes(whole.getvalue()[:length])
        done = subprocess.run([sys.executable, file], capture_output=True, text=True)
        assert done.returncode == code and sentence in done.stderr, (length, done.stderr)


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_streams_are_ignored(boot: Path, tmp_path: Path, closed: str) -> None:
    (boot / "lares_launcher.py").write_text(
        "import os, sys\n"
        "def launch():\n"
        "    made = os.open(sys.argv[5], os.O_CREAT | os.O_WRONLY)\n"
        "    print('seen by nobody', file=sys.stderr)\n"
        "    os.write(made, b'%d' % made)\n"
        "    return 7 if sys.stdin.read() == '' and sys.stdout and sys.stderr else 8\n"
    )
    feigned = ["3.11.2", "cpython-311-x86_64-linux-gnu", "glibc 2.28"]
    command = [sys.executable, "-S", "-c", FEIGN, str(boot), *feigned, str(tmp_path / "made")]
    script = f'exec "$@" {closed}'
    done = subprocess.run(["/bin/sh", "-c", script, "sh", *command], stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 7
    assert int((tmp_path / "made").read_text()) > 2, "no file is taken for a standard stream"
