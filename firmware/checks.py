"""`build.py test`: style, types and behaviour, in this order, up to the first that fails."""

from __future__ import annotations

import os
import shlex
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firmware.console import BuildFailed, run_visible, say
from firmware.environment import Environment


def run_checks(environment: Environment, arguments: Sequence[str]) -> int:
    """Run them all; what is left of the arguments goes to pytest. Raises `BuildFailed` with the exit code."""
    environment.ensure(environment.runtime_lock, environment.test_lock)
    started = time.monotonic()
    speed = ["-m", "not musl" if "--slow" in arguments else "not slow"]
    with tempfile.TemporaryDirectory(prefix="lares-test-") as folder:
        tally = Path(folder) / "passed"
        _check(environment, "lint", ["ruff", "check"])
        _check(environment, "format", ["ruff", "format", "--check", "--quiet"])
        _check(environment, "types", ["mypy"])
        several = ["-n", str(processes()), "--dist", "worksteal"]
        pytest = ["pytest", "-p", "firmware.checks", *several, *speed, *(arg for arg in arguments if arg != "--slow")]
        _check(environment, "tests", pytest, tally=tally)
        passed = tally.read_text() if tally.exists() else "0"
    say(f"build.py: lint, types and {passed} tests passed in {time.monotonic() - started:.1f} s")
    return 0


def processes() -> int:
    """How many processes run the tests: half as many again as there are cores, because many tests wait."""
    cores = os.cpu_count() or 1
    return cores + cores // 2


def _check(environment: Environment, name: str, command: Sequence[str], *, tally: Path | None = None) -> None:
    """Run one of the checks under its heading, in an environment that says nothing to the hub."""
    say(f"== {name}: {shlex.join(command)}")
    started = time.monotonic()
    variables = {**_outside(), "BUILD_PY_TALLY": str(tally)} if tally else _outside()
    code = run_visible([str(environment.python), "-m", *command], environment.root, variables)
    took = f"{time.monotonic() - started:.1f} s"
    if code:
        raise BuildFailed(f"{name} failed with exit code {code} after {took}", code)
    if tally is None:  # pytest tells its own time, in the line that should be the last
        say(f"   {name} passed in {took}")


def _outside() -> dict[str, str]:
    """The environment without what would configure the hub."""
    ours = ("LARES_", "CONFIGURATION_DIRECTORY", "STATE_DIRECTORY")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Leave the number of passed tests for `run_checks`, which gives this module to pytest as a plugin."""
    tally = os.environ.get("BUILD_PY_TALLY")
    if tally:
        Path(tally).write_text(str(len(terminalreporter.stats.get("passed", ()))))
