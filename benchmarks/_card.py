"""A card of which every written byte is counted: a loop device where there is root, else the process's own count."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from appliance.home.layout import Edit, Layout
from appliance.store.records import edit_changes

SIZE = 256 << 20
SECTOR = 512


class Card:
    """A folder, and how many bytes were written below it. `kind` says where they are counted."""

    kind = "counted in /proc/self/io"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def settle(self) -> None:
        """Let the kernel write what it holds back, as it does by itself in the course of time."""
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            ctypes.CDLL(None).syncfs(descriptor)
        finally:
            os.close(descriptor)

    def written(self) -> int:
        """Bytes written until now."""
        lines = Path("/proc/self/io").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("write_bytes:")).split()[1])

    def flushes(self) -> int | None:
        """How often the device was told to write its own cache down, where that is known."""
        return None


class LoopCard(Card):
    """A loop device with ext4 in blocks of 4096 bytes."""

    kind = "counted at the block layer of a loop device with ext4"

    def __init__(self, folder: Path, device: str) -> None:
        super().__init__(folder)
        self._stat = Path("/sys/block") / Path(device).name / "stat"

    def written(self) -> int:
        """Bytes that the device was sent."""
        self.settle()
        return int(self._stat.read_text().split()[6]) * SECTOR

    def flushes(self) -> int | None:
        """The device's flushes; kernels before 5.5 do not tell."""
        fields = self._stat.read_text().split()
        return int(fields[15]) if len(fields) > 15 else None


@contextlib.contextmanager
def card() -> Iterator[Card]:
    """A new card, gone with everything on it when the context is left."""
    with contextlib.ExitStack() as stack:
        try:
            made = _mount(stack)
        except (OSError, subprocess.CalledProcessError):
            made = Card(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lares-card-"))))
        yield made


def _mount(stack: contextlib.ExitStack) -> Card:
    """Make, attach and mount a card; each step leaves behind how to undo it."""
    if os.geteuid() != 0:
        raise PermissionError
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lares-card-", dir=memory)))
    image, folder = base / "image", base / "card"
    folder.mkdir()
    with image.open("wb") as stream:
        stream.truncate(SIZE)
    options = "lazy_itable_init=0,lazy_journal_init=0"  # or the kernel goes on with making it for minutes
    _run("mkfs.ext4", "-q", "-F", "-b", "4096", "-E", options, str(image))
    device = _run("losetup", "--find", "--show", str(image))
    stack.callback(_run, "losetup", "--detach", device)
    _run("mount", "-o", "noatime", device, str(folder))
    stack.callback(_run, "umount", "--lazy", str(folder))
    return LoopCard(folder, device)


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def encode_layout(layout: Layout) -> dict[str, Any]:
    """The keys and values of a whole layout."""
    whole = Edit(
        rooms=layout.rooms, groups=layout.groups, room_assignments=layout.room_assignments, names=layout.names
    )
    return edit_changes(whole, Layout())
