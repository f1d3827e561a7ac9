"""Tests of `Disk` with a real folder."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from appliance.store.disk import Disk, reason_of


def write(disk: Disk, name: str, content: bytes) -> None:
    """Write a file with this content."""
    descriptor = disk.create(name)
    disk.write(descriptor, content, 0)
    disk.sync(descriptor)
    disk.close(descriptor)


def test_files_are_written_cut_renamed_and_removed(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    write(disk, "a", b"0123456789")
    descriptor = disk.open("a")
    disk.write(descriptor, b"xy", 3)
    disk.truncate(descriptor, 6)
    disk.close(descriptor)
    disk.rename("a", "b")
    assert disk.read("b") == b"012xy5"
    assert disk.list_names() == ["b"]
    disk.remove("b")
    disk.remove("b")
    assert disk.list_names() == []


def test_a_partial_write_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, offset: whole(descriptor, data[:3], offset))
    disk = Disk(tmp_path)
    write(disk, "a", b"0123456789")
    assert disk.read("a") == b"0123456789"
    assert disk.bytes_written == 10


def test_a_link_is_the_same_file_and_never_replaces_one(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    write(disk, "a", b"one")
    write(disk, "taken", b"two")
    disk.link("a", "b")
    disk.link("a", "taken")
    assert (tmp_path / "a").samefile(tmp_path / "b")
    assert disk.read("taken") == b"two"


def without_links(*_: Any) -> None:
    """Simulate a file system without links."""
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_without_links_a_copy_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(tmp_path)
    write(disk, "a", b"content")
    monkeypatch.setattr(os, "link", without_links)
    disk.link("a", "b")
    assert disk.read("b") == b"content"
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600
    assert disk.list_names() == ["a", "b"]


def test_a_partial_copy_never_has_the_final_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(tmp_path)
    write(disk, "a", b"content")
    monkeypatch.setattr(os, "link", without_links)

    def is_full(descriptor: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", is_full)
        with pytest.raises(OSError, match="No space"):
            disk.link("a", "b")
    assert "b" not in disk.list_names()
    disk.link("a", "b")
    assert disk.read("b") == b"content"


def test_allocated_space_reads_as_zeros_and_keeps_the_content(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    descriptor = disk.create("a")
    disk.write(descriptor, b"here", 0)
    disk.allocate(descriptor, 10_000)
    disk.close(descriptor)
    assert disk.read("a") == b"here" + bytes(9996)
    assert (tmp_path / "a").stat().st_blocks * 512 >= 10_000
    assert disk.bytes_written == 4


def test_a_busy_path_is_explained_as_a_mount_point() -> None:
    busy = OSError(errno.EBUSY, os.strerror(errno.EBUSY), "/etc/lares/config")
    assert reason_of(busy) == "a mount point cannot be replaced; mount its parent folder instead"
    assert reason_of(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) == "No space left on device"
    assert reason_of(OSError("torn")) == "torn"
