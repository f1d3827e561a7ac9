"""A disk with a newly installed Debian for arm64: packages, kernel, initrd, and systemd.

debootstrap creates the disk as root, and qemu's user emulation runs the disk's arm64 programs. The disk is kept
between runs. Booting the disk does not require root.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.programs import need
from tests.firmware.rootfs import cache_dir, debian_mirror, only_one

SUITE = "trixie"
SIZE = "3G"
PACKAGES = (
    "ca-certificates",
    "initramfs-tools",
    "iproute2",
    "linux-image-arm64",
    "openssh-server",
    "python3",
    "systemd-sysv",
    "udev",
)
"""Packages of a box before Lares is installed: Python, and the packages for boot and ssh."""

TOOLS = ("qemu-system-aarch64", "qemu-img", "ssh")
MAKERS = ("qemu-aarch64-static", "debootstrap", "unshare", "mkfs.ext4", "ssh-keygen")
INTERPRETER = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
"""The file in which Debian's qemu-user-static registers the arm64 interpreter."""

RECIPE = Path(__file__).with_name("image.sh")


@dataclass(frozen=True, kw_only=True)
class Image:
    """A read-only disk, the kernel and initrd to start it, and its ssh key."""

    disk: Path
    kernel: Path
    initrd: Path
    key: Path


def debian_image() -> Image:
    """Return the image, which is kept between runs. Skip the test if the image cannot be created."""
    for tool in TOOLS:
        need(tool)
    digest = hashlib.sha256(RECIPE.read_bytes() + " ".join(PACKAGES).encode()).hexdigest()[:8]
    folder = cache_dir() / f"box-{SUITE}-{digest}"
    with only_one(folder):
        if not folder.is_dir():
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            _make(part)
            part.rename(folder)
    return Image(**{name: folder / name for name in ("disk", "kernel", "initrd", "key")})


def _make(folder: Path) -> None:
    for tool in MAKERS:
        need(tool)
    if os.geteuid() != 0:
        pytest.skip("only root may make the image of a box; made once, it is there for everybody")
    if not INTERPRETER.exists():
        pytest.skip("no program for arm64 can be run here: `update-binfmts --enable qemu-aarch64`, as root")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
    named = [str(folder), SUITE, ",".join(PACKAGES), SIZE, debian_mirror()]
    command = ["unshare", "--mount", "sh", str(RECIPE), *named]
    with (folder / "log").open("wb") as log:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    assert done.returncode == 0, (folder / "log").read_text(errors="replace")[-3000:]
