"""One hub for each data directory."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from appliance.errors import StartFailed
from appliance.store.lock import DirectoryLock

HOLD = """
import sys, pathlib
from appliance.store.lock import DirectoryLock
lock = DirectoryLock(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_hub(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A real process that holds the lock."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_process_is_refused_and_the_first_is_named(tmp_path: Path) -> None:
    with another_hub(tmp_path) as process:
        with pytest.raises(StartFailed, match=rf"in use by another hub, process {process.pid}$") as caught:
            DirectoryLock(tmp_path)
    assert caught.value.exit_code == 75


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path: Path) -> None:
    with another_hub(tmp_path) as process:
        process.kill()
        process.wait()
        DirectoryLock(tmp_path).release()


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    with pytest.raises(StartFailed):
        DirectoryLock(tmp_path)
    lock.release()
    lock.release()
    DirectoryLock(tmp_path).release()


def test_the_lock_file_is_private_and_names_its_holder(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "lock").read_text().splitlines()[0] == f"{os.getpid()}"
    lock.release()


def test_a_folder_that_is_not_there_cannot_be_locked(tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match="cannot lock") as caught:
        DirectoryLock(tmp_path / "missing")
    assert caught.value.exit_code == os.EX_CANTCREAT


def refusing(number: int) -> Callable[..., int]:
    """An `os.open` that makes no files."""
    system_open = os.open

    def refuse(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            raise OSError(number, os.strerror(number))
        return system_open(path, flags, mode)

    return refuse


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
@pytest.mark.parametrize("was_locked_before", [True, False])
def test_a_card_that_takes_no_file_is_locked_all_the_same(
    number: int, was_locked_before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if was_locked_before:
        DirectoryLock(tmp_path).release()
    monkeypatch.setattr(os, "open", refusing(number))
    lock = DirectoryLock(tmp_path)
    with pytest.raises(StartFailed) as caught:
        DirectoryLock(tmp_path)
    assert caught.value.exit_code == 75
    lock.release()


def test_a_hub_waits_for_the_end_of_a_command_and_learns_what_the_hub_before_it_said(tmp_path: Path) -> None:
    stopped_at = datetime(2026, 1, 1, tzinfo=UTC)
    DirectoryLock(tmp_path).release_after_stop(stopped_at)
    command = DirectoryLock(tmp_path, is_brief=True)
    with pytest.raises(StartFailed, match="another command"):
        DirectoryLock(tmp_path, is_brief=True)
    threading.Timer(0.2, command.release).start()
    hub = DirectoryLock(tmp_path)
    assert hub.stopped_at == stopped_at and (tmp_path / "lock").read_text().split()[0] == str(os.getpid())
    hub.release()


def test_a_command_that_was_killed_leaves_what_the_hub_before_it_said(tmp_path: Path) -> None:
    stopped_at = datetime(2026, 1, 1, tzinfo=UTC)
    DirectoryLock(tmp_path).release_after_stop(stopped_at)
    (tmp_path / "lock").write_bytes(b"brief " + (tmp_path / "lock").read_bytes())
    assert DirectoryLock(tmp_path).stopped_at == stopped_at


def test_a_lock_that_is_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    for is_brief in (False, True):
        with pytest.raises(StartFailed, match="symbolic link"):
            DirectoryLock(tmp_path, is_brief=is_brief)
    assert (tmp_path / "victim").read_text() == "precious"
