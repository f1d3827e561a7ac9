"""Updates .venv to match the locks, even after an interruption or damage."""

from __future__ import annotations

import csv
import fcntl
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from firmware.console import UNAVAILABLE, BuildFailed, run_captured, say
from firmware.digest import sha256_of
from firmware.pip import ENTRY, pip_command, python_version, readable, run_tool

REACHED = re.compile(
    r"(?:Collecting |Processing \S*/)(?P<name>\w[\w.-]*?)(?:==|-)(?P<version>\d[^\s-]*)|Requirement already|Ignoring "
)
"""Matches pip's progress lines. The match contains the name of the next package."""


VENV_COMMAND = (getattr(sys, "_base_executable", "") or sys.executable, "-I", "-m", "venv")
"""The command that creates a virtual environment in the folder that follows. The command also works if build.py runs
in the virtual environment that the command replaces."""


class CheckoutVenv:
    """The .venv of a checkout. The stamp file lists the Python, the locks, and the packages of the last complete
    installation."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.python = self.folder / "bin" / "python"
        self.stamp = self.folder / "lares.json"
        self.runtime_lock = root / "firmware" / "runtime.lock"
        self.test_lock = root / "firmware" / "test.lock"

    def ensure(self, *locks: Path) -> None:
        """Make .venv match the last lock in the list. The last lock includes the packages of the earlier locks.
        Return quickly if .venv already matches.

        Raise `BuildFailed` on failure. Concurrent processes wait for each other.
        """
        if not self.find_fault(locks) and not self.is_missing(locks[-1]):
            return
        with self._lock_shared() as held:
            started = time.monotonic()
            fault = self.find_fault(locks)
            if fault:
                self._make(fault, held)
            if fault or self.is_missing(locks[-1]):
                self.stamp.unlink(missing_ok=True)
                installed = digests(locks)
                self.install(locks[-1], held)
                self.write_stamp(installed)
                say(f".venv is ready after {time.monotonic() - started:.0f} s")

    def find_fault(self, locks: Sequence[Path]) -> str:
        """Return the reason why .venv must be created again for these locks, or an empty string if .venv can be
        used."""
        if not self.folder.is_dir():
            return "the folder does not exist"
        stamp = self.read_stamp()
        if not stamp:
            return "the installation was not finished"
        if stamp["python"] != python_tag() or not self._is_same_python():
            return "the environment belongs to another Python"
        changed = [name for name, now in digests(locks).items() if stamp["locks"].get(name, now) != now]
        if changed:
            return f"{changed[0]} has changed"
        lost = self._find_damage(stamp["packages"])
        return f"{lost} is damaged" if lost else ""

    def is_missing(self, lock: Path) -> bool:
        return lock.name not in self.read_stamp().get("locks", {})

    def read_stamp(self) -> dict[str, Any]:
        """Return the locks of the last complete installation. If the stamp cannot be read, return an empty result."""
        try:
            stamp = json.loads(self.stamp.read_text())
        except (OSError, ValueError):
            return {}
        return stamp if isinstance(stamp, dict) and {"python", "locks", "packages"} <= stamp.keys() else {}

    def write_stamp(self, locks: dict[str, str]) -> None:
        """As the last step of an installation, record the locks and packages in .venv."""
        found = self.folder.glob("lib/*/*/*.dist-info/RECORD")
        packages = sorted(str(record.parent.relative_to(self.folder)) for record in found)
        self.stamp.write_text(json.dumps({"python": python_tag(), "locks": locks, "packages": packages}))

    def install(self, lock: Path, held: int) -> None:
        """Install the lock's packages into .venv, and print the progress. pip inherits the descriptor `held`."""
        total = len(ENTRY.findall(lock.read_text()))
        say(f"installing the {total} packages of {lock.relative_to(self.root)}")
        count = 0

        def show(line: str) -> None:
            nonlocal count
            reached = REACHED.match(line)
            if reached:
                count += 1
                if reached["name"]:
                    say(f"[{count}/{total}] {reached['name']} {reached['version']}", is_transient=True)
            elif line.startswith("Installing collected packages"):
                say(f"[{total}/{total}] all packages are here; unpacking", is_transient=True)
            elif line.startswith("WARNING: Retrying"):
                say(f"[{count}/{total}] no answer from the package index yet, trying again", is_transient=True)

        run_tool(pip_command(self.python, "install", lock), on_line=show, pass_fds=[held])

    @contextmanager
    def _lock_shared(self) -> Iterator[int]:
        """Lock .venv. Wait while another build.py holds the lock. A process that inherits the descriptor also holds
        the lock."""
        with (self.root / "build.py").open("r+b") as file:  # NFS locks only files that are open for writing
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting until another build.py has finished its work on .venv")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file.fileno()

    def _make(self, reason: str, held: int) -> None:
        """Replace .venv with a new, empty virtual environment."""
        check_venv()
        say(f"making .venv with Python {python_version()} ({reason})")
        self.stamp.unlink(missing_ok=True)
        if self.folder.is_symlink():
            self.folder.unlink()
        if self.folder.exists():
            shutil.rmtree(self.folder)
        code, lines = run_captured([*VENV_COMMAND, str(self.folder)], pass_fds=[held])
        if code:
            raise BuildFailed(f"{sys.executable} could not make .venv", UNAVAILABLE, lines=readable(lines))

    def _is_same_python(self) -> bool:
        """Return whether .venv's Python has the same version and ABI as this Python. Version and ABI differ after
        the distribution has upgraded Python."""
        tell = "import sys; print(sys.implementation.cache_tag + sys.abiflags)"
        try:
            said = subprocess.run([self.python, "-I", "-S", "-c", tell], capture_output=True, text=True, check=False)
        except OSError:
            return False
        return said.stdout.strip() == python_tag()

    def _find_damage(self, packages: Sequence[str]) -> str:
        """Return the first missing or empty file of the installed packages, or an empty string."""
        for package in packages:
            folder = self.folder / package
            try:
                files = [(name, size) for name, _, size in csv.reader((folder / "RECORD").read_text().splitlines())]
            except (OSError, ValueError):
                files = []
            if not files:
                return folder.name
            for name, size in files:
                path = os.path.join(folder.parent, name)  # noqa: PTH118 - thousands of files at each start
                if not name.endswith(".pyc") and not is_whole(path, size):
                    return name
        return ""


def python_tag() -> str:
    """Return version and ABI of this Python, for example `cpython-311`."""
    return f"{sys.implementation.cache_tag}{sys.abiflags}"


def digests(locks: Sequence[Path]) -> dict[str, str]:
    """Return the SHA-256 of each lock by name."""
    return {lock.name: sha256_of(lock) for lock in locks}


def is_whole(path: str, size: str) -> bool:
    """Return whether the installed file exists. An empty file is treated as missing, unless its listed size is 0."""
    try:
        return os.stat(path).st_size > 0 or size in ("", "0")  # noqa: PTH116
    except OSError:
        return False


def check_venv() -> None:
    """Raise `BuildFailed` if this Python lacks `venv` or `ensurepip`."""
    if importlib.util.find_spec("ensurepip") is not None and importlib.util.find_spec("venv") is not None:
        return
    package = f"python3.{sys.version_info.minor}-venv"
    raise BuildFailed(
        f"{sys.executable} lacks `venv` or `ensurepip`, so .venv cannot be created; install both "
        f"(Debian, Ubuntu, Raspberry Pi OS: `sudo apt install python3-venv`, or `{package}`) and run this again",
        UNAVAILABLE,
    )
