"""Finds the Python installations of this machine, for tests and bytecode."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from firmware.console import say

MINORS = range(11, 15)
"""Minor versions of the supported Pythons."""

TELL = (
    "import sys, venv, ensurepip, ssl, os, platform;"
    "print(platform.python_version(), os.path.realpath(sys._base_executable))"
)


def pythons() -> Iterator[tuple[str, str]]:
    """Yield the version and path of one Python per minor version, beginning with `python3` on PATH.

    Report and skip a Python without venv, ensurepip, or ssl, because it cannot create .venv.
    """
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    names = [
        "python3",
        *(f"python3.{minor}" for minor in MINORS),
        *map(str, sorted(versions.glob("3.*/bin/python3"))),
        sys.executable,
    ]
    seen = set()
    for found in filter(None, (shutil.which(name) for name in names)):
        try:
            done = subprocess.run([found, "-c", TELL], capture_output=True, text=True, check=False)
        except OSError as error:
            say(f"build.py: {found} cannot be run: {error.strerror}")
            continue
        if done.returncode and (lacks := re.search(r"ModuleNotFoundError: No module named '?(\w+)", done.stderr)):
            say(f"build.py: {found} lacks {lacks[1]}, so it is skipped")
        version = re.search(r"^(3\.(\d+)\.\S+) (/.*)$", done.stdout, re.MULTILINE)
        if version and done.returncode == 0 and int(version[2]) in MINORS and version[2] not in seen:
            seen.add(version[2])
            yield version[1], version[3]
