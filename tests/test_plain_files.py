"""If a path is not a regular file, it is rejected immediately, with one sentence."""

from __future__ import annotations

import os
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.cli.backup import collect
from appliance.config import load
from appliance.errors import ConfigFailed, StartFailed
from appliance.tables.plain_files import read_at_most, read_plain


def listen(path: Path) -> None:
    """Create a socket at this path."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def enlarge(path: Path) -> None:
    """Create a sparse file of 20 GiB."""
    path.touch()
    os.truncate(path, 20 << 30)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (os.mkfifo, "it is not a regular file"),
        (listen, "No such device or address"),
        (Path.mkdir, "Is a directory"),
        (lambda path: path.symlink_to("/dev/zero"), "it is not a regular file"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
        (enlarge, "it is larger than 1 MiB"),
        (lambda path: None, "No such file or directory"),
    ],
    ids=["pipe", "socket", "folder", "device", "circle", "huge", "nothing"],
)
def test_other_than_plain_files_are_refused(tmp_path: Path, make: Callable[[Path], None], sentence: str) -> None:
    file = tmp_path / "default.toml"
    make(file)
    with pytest.raises(OSError, match=sentence) as refused:
        read_plain(file, 1 << 20)
    assert refused.value.filename == str(file)
    with pytest.raises(ConfigFailed, match=f"cannot be read: {sentence}"):
        load(file, {})


def test_a_small_file_needs_little_memory_for_any_limit(tmp_path: Path) -> None:
    file = tmp_path / "small"
    file.write_bytes(b"x" * 1000)
    tracemalloc.start()
    try:
        assert read_plain(file, 256 << 20) == b"x" * 1000
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [0, 99, 100, 101])
def test_no_more_than_the_limit_is_read(tmp_path: Path, size: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * size)
    with file.open("rb") as stream:
        assert len(read_at_most(stream, 100)) == min(size, 100)


def test_a_file_without_a_size_is_read_to_its_limit() -> None:
    with Path("/proc/self/status").open("rb") as stream:
        assert len(read_at_most(stream, 100)) == 100
    assert b"VmRSS" in read_plain(Path("/proc/self/status"), 1 << 20)


def test_a_file_too_large_for_a_backup_is_not_read(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / "default.toml").touch()
    os.mkfifo(config / "pipe")
    assert set(map(str, collect(config / "default.toml", tmp_path / "data")[0].files)) == {"default.toml"}
    enlarge(config / "film")
    with pytest.raises(StartFailed, match="has 20480 MiB, but a backup can contain at most 64 MiB"):
        collect(config / "default.toml", tmp_path / "data")
