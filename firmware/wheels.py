"""Downloads wheels and tools, and caches them. Only files whose hashes are in the lock are used."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from firmware.checkout_venv import VENV_COMMAND
from firmware.digest import sha256_of
from firmware.pip import ENTRY, Run, pip_command
from firmware.targets import Target

AT_ONCE = 3
"""Maximum number of targets that are downloaded at the same time."""


class ChecksumMismatch(Exception):
    """Raised if the hash of a file is not in the lock."""


def cache_dir(default: Path) -> Path:
    """Return the download folder that builds and tests share."""
    named, cache = os.environ.get("BUILD_PY_CACHE"), os.environ.get("XDG_CACHE_HOME")
    return Path(named or f"{cache}/lares-build") if named or cache else default


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Downloads files into a folder. `run` runs a command, and raises an exception if the command fails."""

    folder: Path
    run: Run
    say: Callable[[str], None]

    def tools(self, lock: Path) -> str:
        """Return the Python of a virtual environment with the lock's packages."""
        release = f"{sys.implementation.cache_tag}-{os.uname().machine}"
        folder = self.folder / f"tools-{sha256_of(lock)[:16]}-{release}"
        if not folder.is_dir():
            self.say(f"fetching the tools of {lock.name}")
            part = folder.with_suffix(f".part{os.getpid()}")
            self.run([*VENV_COMMAND, str(part)])
            self.run(pip_command(f"{part}/bin/python", "install", lock))
            _finish(part, folder)
        return f"{folder}/bin/python"

    def wheels(self, python: str, lock: Path, targets: Sequence[Target]) -> dict[Target, list[Path]]:
        """Check the hashes of the lock's wheels, and return the wheels by target."""
        hashes = frozenset(re.findall(r"--hash=sha256:([0-9a-f]{64})", lock.read_text()))
        names = len(ENTRY.findall(lock.read_text()))
        folder = self.folder / f"wheels-{sha256_of(lock)[:16]}"
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda target: self._fetch(python, lock, target, folder / target.tag), targets))
        return {target: _checked(folder / target.tag, hashes, names) for target in targets}

    def _fetch(self, python: str, lock: Path, target: Target, folder: Path) -> None:
        if folder.is_dir():
            return
        self.say(f"fetching the wheels for {target.tag}")
        part = folder.with_suffix(f".part{os.getpid()}")
        platforms = [f"--platform={wheel}" for wheel in target.wheels]
        where = [f"--python-version={target.python}", "--implementation=cp", *platforms, "--dest", str(part)]
        self.run([*pip_command(python, "download", lock), *where])
        _finish(part, folder)


def _finish(part: Path, folder: Path) -> None:
    """Rename the folder to its final name. If another build has already created the final folder, remove this one."""
    try:
        part.rename(folder)
    except OSError:
        shutil.rmtree(part)


def _checked(folder: Path, hashes: frozenset[str], count: int) -> list[Path]:
    wheels = sorted(folder.glob("*.whl"))
    corrupt = [wheel.name for wheel in wheels if sha256_of(wheel) not in hashes]
    if corrupt or len(wheels) != count:
        what = ", ".join(corrupt) or "some are missing"
        raise ChecksumMismatch(f"{folder} does not contain the packages of the lock ({what}); remove this folder")
    return wheels
