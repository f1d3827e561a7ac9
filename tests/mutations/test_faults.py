"""Deliberate faults are caught: without what keeps a promise, the tests that hold it fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mutations.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
TESTS_FAILED = 1
"""What pytest exits with where tests failed, and nothing else was wrong."""


@dataclass(slots=True)
class Copy:
    """A copy of the tree for one fault after another, so that what Python compiled of it is of use to all."""

    root: Path
    changes: int = 0

    def write(self, file: str, text: str) -> None:
        """Write a file of `appliance/`; each time it has another date, by which Python knows what it compiled."""
        path = self.root / "appliance" / file
        path.write_text(text)
        self.changes += 1
        os.utime(path, (self.changes, self.changes))

    def run(self, *tests: str) -> subprocess.CompletedProcess[str]:
        """Run these tests up to the first that fails."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-n0",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:schemathesis",
        ]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        return subprocess.run(
            [*command, *(f"tests/{each}" for each in tests)],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )


@pytest.fixture(scope="session")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    """The tree, of which `appliance` is a copy and the rest is as it stands."""
    root = tmp_path_factory.mktemp("tree")
    for entry in ROOT.iterdir():
        if entry.name not in ("appliance", ".git", ".pytest_cache"):
            (root / entry.name).symlink_to(entry)
    shutil.copytree(ROOT / "appliance", root / "appliance", ignore=shutil.ignore_patterns("__pycache__"))
    yield Copy(root=root)
    shutil.rmtree(root)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.promise)
def test_a_fault_is_caught(fault: Fault, copy: Copy) -> None:
    sound = (ROOT / "appliance" / fault.file).read_text()
    copy.write(fault.file, sound.replace(fault.text, fault.instead))
    try:
        done = copy.run(*fault.tests)
    except subprocess.TimeoutExpired:
        return  # a test that never ends is red, too
    finally:
        copy.write(fault.file, sound)
    assert done.returncode == TESTS_FAILED, f"no test saw it:\n{done.stdout[-2000:]}{done.stderr[-1000:]}"
