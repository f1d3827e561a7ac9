"""`build.py test --coverage`: measures which branches of the hub's code run, in test processes and in hubs that
tests start."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from firmware.checkout_venv import CheckoutVenv
from firmware.console import BuildFailed, run_captured, say
from firmware.pip import run_tool

PACKAGE = "coverage==7.17.3"
"""The name of a package that only this measurement needs. The locks do not contain this package."""

SETTINGS = """\
[run]
branch = true
parallel = true
sigterm = true
source = appliance
data_file = {folder}/data/coverage
[report]
skip_covered = true
skip_empty = true
show_missing = true
exclude_also =
    raise NotImplementedError
    assert_never
    @abstractmethod
    class .*Protocol
"""


STARTUP = """\
try:
    import coverage

    coverage.process_startup()
except Exception:  # an old Python: the tests check only that Lares rejects it
    pass
"""


def prepare(venv: CheckoutVenv) -> dict[str, str]:
    """Install the package. Return environment variables that start the measurement in each Python process."""
    folder = venv.root / "build" / "coverage"
    library = folder / PACKAGE
    if not (library / "sitecustomize.py").exists():
        say(f"fetching {PACKAGE}")
        shutil.rmtree(library, ignore_errors=True)
        command = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--target", str(library), PACKAGE]
        run_tool(command)
        (library / "sitecustomize.py").write_text(STARTUP)
    shutil.rmtree(folder / "data", ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    (folder / "data").chmod(0o777)  # some hubs run as another user
    settings = _settings(venv)
    settings.write_text(SETTINGS.format(folder=folder))
    return {"PYTHONPATH": str(library), "COVERAGE_PROCESS_START": str(settings), "COVERAGE_LIBRARY": str(library)}


def report(venv: CheckoutVenv) -> None:
    settings = _settings(venv)
    variables = {**os.environ, "PYTHONPATH": str(venv.root / "build" / "coverage" / PACKAGE)}
    for command in (["combine", "--quiet"], ["report", "--sort=cover"]):
        whole = [str(venv.python), "-m", "coverage", *command, f"--rcfile={settings}"]
        code, lines = run_captured(whole, cwd=venv.root, env=variables)
        if code:
            raise BuildFailed("the coverage data cannot be read", code, lines=lines)
        for line in lines:
            say(line)


def _settings(venv: CheckoutVenv) -> Path:
    return venv.root / "build" / "coverage" / "settings"
