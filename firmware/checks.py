"""`build.py test`: checks lint, types, and tests, up to the first failure."""

from __future__ import annotations

import os
import shlex
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from firmware import branch_coverage
from firmware.checkout_venv import CheckoutVenv
from firmware.console import BuildFailed, run_visible, say


def run_checks(venv: CheckoutVenv, arguments: Sequence[str]) -> int:
    """Run all checks, with additional arguments for pytest. Raise `BuildFailed` with the exit code.

    Fail if a test was skipped for a reason that `skips` does not list. Print the number of passed tests, and of tests
    that were skipped because a program is missing.
    """
    venv.ensure(venv.runtime_lock, venv.test_lock)
    started = time.monotonic()
    is_slow, is_measured = "--slow" in arguments, "--coverage" in arguments
    rest = [each for each in arguments if each not in ("--slow", "--coverage")]
    speed = ["-m", "not musl and not box and not release" if is_slow else "not slow"]
    measured = branch_coverage.prepare(venv) if is_measured else {}
    with tempfile.TemporaryDirectory(prefix="lares-test-") as folder:
        tally = Path(folder) / "passed"
        _check(venv, "lint", ["ruff", "check"])
        _check(venv, "format", ["ruff", "format", "--check", "--quiet"])
        _check(venv, "types", ["mypy"])
        several = ["-n", str(processes()), "--dist", "worksteal"]
        pytest = ["pytest", "-p", "firmware.skips", *several, *speed, *rest]
        try:
            _check(venv, "tests", pytest, {**measured, "BUILD_PY_TALLY": str(tally)})
        finally:
            if is_measured:
                branch_coverage.report(venv)
        passed, _, missing = (tally.read_text() if tally.exists() else "0").partition("\n")
    took = f"{time.monotonic() - started:.1f} s"
    say(f"build.py: lint, types and {passed} tests passed in {took}" + (missing and f"; {missing}"))
    return 0


def processes() -> int:
    """Return the number of processes for the quick tests, which spend most of their time computing."""
    return max(2, len(os.sched_getaffinity(0)))


def _check(venv: CheckoutVenv, name: str, command: Sequence[str], variables: dict[str, str] | None = None) -> None:
    """Run a check under a heading, without the environment variables of a hub."""
    say(f"== {name}: {shlex.join(command)}")
    started = time.monotonic()
    code = run_visible([str(venv.python), "-m", *command], venv.root, {**_outside(), **(variables or {})})
    took = f"{time.monotonic() - started:.1f} s"
    if code:
        raise BuildFailed(f"{name} failed with exit code {code} after {took}", code)
    if variables is None:  # pytest prints the total time on its last line, so print nothing after it
        say(f"   {name} passed in {took}")


def _outside() -> dict[str, str]:
    """Return the environment variables, except variables of the hub and of pytest."""
    ours = ("LARES_", "CONFIGURATION_DIRECTORY", "STATE_DIRECTORY", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}
