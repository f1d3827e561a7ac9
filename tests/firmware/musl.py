"""A CPython for musl, compiled from Debian's sources against Debian's musl, and cached."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.fakes.programs import need
from tests.firmware.rootfs import cache_dir, make_rootfs, make_sources, only_one

RECIPE = Path(__file__).with_name("musl.sh")
MUSL = ("musl", "musl-dev", "musl-tools", "linux-libc-dev")
SOURCES = ("python3.11", "openssl", "libffi", "xz-utils", "zlib")


def musl_python() -> Path:
    """Return the path of the interpreter, which may not exist yet."""
    digest = hashlib.sha256(RECIPE.read_bytes()).hexdigest()[:8]
    return cache_dir() / f"musl-python-{digest}" / "bin" / "python3.11"


def make_musl_python() -> Path:
    """Return the interpreter. If the interpreter is missing, compile it, which takes minutes. Skip the test if the
    interpreter cannot be compiled."""
    if platform.machine() != "x86_64":
        pytest.skip("compiles a CPython for musl on x86_64, and this is another machine")
    for tool in ("gcc", "make", "perl"):
        need(tool)
    python = musl_python()
    with only_one(python.parents[1]):
        if not python.exists():
            _compile(python.parents[1])
    return python


def _compile(prefix: Path) -> None:
    root = make_rootfs("amd64", "trixie", MUSL, unpack_only=True)
    sources = make_sources("bookworm", SOURCES)
    started, work, log = time.monotonic(), prefix.with_suffix(".work"), prefix.with_suffix(".log")
    with log.open("wb") as stream:
        command = ["sh", str(RECIPE), str(root), str(sources), str(work), str(prefix)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
    assert done.returncode == 0, log.read_text()[-3000:]
    shutil.rmtree(work)
    print(f"CPython for musl compiled in {time.monotonic() - started:.0f} s")
