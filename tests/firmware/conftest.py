"""The single file for the tests, built once per run in a clean clone."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.firmware.rootfs import cache_dir, only_one

ROOT = Path(__file__).parents[2]
BARE_PYTHON: str = getattr(sys, "_base_executable", sys.executable)
NEEDED = ("appliance", "config", "firmware", "build.py", "shiv.toml", "LICENSE")


def clone(folder: Path) -> Path:
    """Return a folder with the files that the build needs, without build results."""
    folder.mkdir(parents=True)
    for name in NEEDED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder)
    return folder


def build(folder: Path, *arguments: str, umask: int = 0o022, **environment: str) -> str:
    """Run the clone's build, and return its output. If nothing can be downloaded, skip the test."""
    env = {**os.environ, "BUILD_PY_CACHE": str(cache_dir()), **environment}
    command = [BARE_PYTHON, str(folder / "build.py"), *arguments]
    done = subprocess.run(command, env=env, cwd="/", umask=umask, capture_output=True, text=True, timeout=900)
    if "the package index cannot be reached" in done.stderr:
        pytest.skip("needs a network, to fetch wheels and tools")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture(scope="session")
def single_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide dist/lares.pyz, built in a clean clone of this checkout."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "built" / "lares"
    with only_one(folder):
        if not (folder / "dist" / "lares.pyz").exists():
            print(build(clone(folder)))
    return folder / "dist" / "lares.pyz"
