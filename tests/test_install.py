"""`pip install .` and `pip install -e .` install a working `lares` with the bundled configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WANTED = ("appliance", "config", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "ARCHITECTURE.md")


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in an environment without variables of Lares."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("LARES_", "PYTHONPATH"))}
    return subprocess.run(list(command), cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.release
@pytest.mark.parametrize("flags", [(), ("-e",)], ids=["plain", "editable"])
def test_an_installed_lares_runs_from_an_empty_folder(tmp_path: Path, flags: tuple[str, ...]) -> None:
    source, venv, home = tmp_path / "source", tmp_path / "venv", tmp_path / "home"
    home.mkdir()
    for name in WANTED:
        target = source / name
        target.parent.mkdir(exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, target)
    assert run(sys.executable, "-m", "venv", venv, cwd=home).returncode == 0
    installed = run(venv / "bin" / "pip", "install", "--quiet", *flags, source, cwd=home)
    assert installed.returncode == 0, installed.stderr[-2000:]

    for lares in ([venv / "bin" / "lares"], [venv / "bin" / "python", "-m", "appliance"]):
        version = run(*lares, "--version", cwd=home)
        assert version.returncode == 0 and version.stdout.startswith("lares "), version.stderr
    missing = run(venv / "bin" / "lares", "check", cwd=home)
    assert missing.returncode == 78 and "lares run" in missing.stderr

    # The data directory cannot be created, so the start fails, but only after the bundled configuration has been
    # written.
    (home / "file").write_text("")
    started = run(venv / "bin" / "lares", "run", "--data-dir", home / "file" / "data", cwd=home)
    assert started.returncode == 73, started.stderr
    for file in ("default.toml", ".luarc.json", "library/lares.lua", "scenes/all_off.lua", "scripts/lights.lua"):
        assert (home / "config" / file).read_bytes() == (ROOT / "config" / file).read_bytes(), file
    assert run(venv / "bin" / "lares", "check", cwd=home).returncode == 0
