"""The same file on arm64: emulated Debian 12 and 13, with a simulated light on this machine's loopback."""

from __future__ import annotations

import platform
import shlex
from pathlib import Path

import pytest

from tests.firmware.box_run import put_through
from tests.firmware.rootfs import emulator, make_rootfs

pytestmark = [pytest.mark.slow(minutes=1.5), pytest.mark.release]

BOXES = {"bookworm": "python3.11", "trixie": "python3.13"}
PROCESSOR = "cortex-a53"
"""The processor of a Raspberry Pi 3. Newer Debian versions are ten times slower on qemu's default processor."""


def command(root: Path, python: str, file: Path, *arguments: str) -> list[str | Path]:
    """Return the command that runs the file in an arm64 root file system.

    Python's executable is replaced with a script that starts the emulator, because this machine cannot run the arm64
    Lua worker directly.
    """
    program = root / "usr/bin" / python
    if platform.machine() == "aarch64":
        return [program, "-I", "-S", file, *arguments]
    again = root / "usr/bin" / f"emulated-{python}"
    emulated: list[str | Path] = [emulator(), "-cpu", PROCESSOR, "-L", root, "-0", again, program]
    again.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, emulated))} "$@"\n')
    again.chmod(0o755)
    return [*emulated, "-I", "-S", file, *arguments]


@pytest.mark.parametrize("suite", BOXES)
def test_it_works_persists_and_comes_back_with_its_state(suite: str, single_file: Path, tmp_path: Path) -> None:
    root = make_rootfs("arm64", suite, [BOXES[suite], "ca-certificates"])
    put_through(command(root, BOXES[suite], single_file, "run"), tmp_path)
