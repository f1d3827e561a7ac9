"""npm packages that only tests use, downloaded once into a cache. The project itself never contains these
packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fakes.programs import need

AXE = ("axe-core@4.14.1", "axe-core/axe.min.js")
JSQR = ("jsqr@1.4.0", "jsqr/dist/jsQR.js")


def script(package: tuple[str, str]) -> str:
    name, file = package
    return (installed(name) / "node_modules" / file).read_text()


def installed(*packages: str) -> Path:
    """Return a folder whose `node_modules` contains these packages (each `name@version`). The packages are installed
    once, and their install scripts do not run.

    Skip the test with the reason if npm is missing or fails.
    """
    folder = cache_folder() / "+".join(packages)
    if not folder.exists():
        part = folder.with_suffix(f".part{os.getpid()}")
        part.mkdir(parents=True)
        (part / "package.json").write_text("{}")
        command = [need("npm"), "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", *packages]
        done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=part, check=False)
        if done.returncode != 0:
            shutil.rmtree(part)
            pytest.skip(f"npm could not fetch {packages[0]}: {done.stderr.strip()[-300:]}")
        with suppress(OSError):  # another process created the folder first
            part.replace(folder)
    return folder


def cache_folder() -> Path:
    """Return the cache of downloaded packages."""
    return (
        Path(os.environ.get("BUILD_PY_CACHE") or os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir())
        / "lares-tests"
    )
