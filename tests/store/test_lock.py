"""Only one hub uses a data directory, until the hub has written its last byte. The lock file shows whether the hub
crashed."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from appliance.clock import Clock
from appliance.errors import StartFailed
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from appliance.store.crashes import CrashCounter
from appliance.store.disk import Disk
from appliance.store.file_format import snapshot_name
from appliance.store.lock import DirectoryLock, holder_of
from appliance.store.record_keys import CRASHES
from appliance.store.store import Store
from tests.fakes.clock import VirtualClock


def test_the_lock_file_is_private_and_names_its_holder(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("4711\nanother-boot\n")
    held = DirectoryLock(tmp_path)
    assert held.was_cut_off and not held.is_crash, "the machine was started anew since"
    assert (tmp_path / "lock").read_text().splitlines()[0] == f"{os.getpid()}"
    with pytest.raises(StartFailed):
        DirectoryLock(tmp_path)
    held.release()
    held.release()
    (tmp_path / "lock").unlink()
    DirectoryLock(tmp_path).release()
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text", [None, b"", b"\0" * 43, b"{}", b"\xff\xfe", b"\n", b"stop", b"brief ", b"brief 4711\nx\n"]
)
@pytest.mark.parametrize("has_brief_use", [False, True])
def test_a_lock_file_without_the_record_of_a_clean_stop_means_a_power_cut(
    tmp_path: Path, text: bytes | None, has_brief_use: bool
) -> None:
    (tmp_path / snapshot_name(1)).touch()
    if text is not None:
        (tmp_path / "lock").write_bytes(text)
    if has_brief_use:
        DirectoryLock(tmp_path, is_brief=True).release()
    held = DirectoryLock(tmp_path)
    assert held.was_cut_off and not held.is_crash
    held.release_after_stop(None)
    assert not DirectoryLock(tmp_path).was_cut_off


@pytest.mark.parametrize("has_brief_use", [False, True])
def test_a_new_data_directory_follows_no_power_cut(tmp_path: Path, has_brief_use: bool) -> None:
    if has_brief_use:  # such as a restore, which creates the document
        command = DirectoryLock(tmp_path, is_brief=True)
        (tmp_path / snapshot_name(1)).touch()
        command.release()
    assert not DirectoryLock(tmp_path).was_cut_off


def test_a_missing_folder_cannot_be_locked(tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match="cannot lock") as caught:
        DirectoryLock(tmp_path / "missing")
    assert caught.value.exit_code == os.EX_CANTCREAT


def refusing(number: int) -> Callable[..., int]:
    """Return a replacement for `os.open` that raises this error instead of creating a file."""
    system_open = os.open

    def refuse(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            raise OSError(number, os.strerror(number))
        return system_open(path, flags, mode)

    return refuse


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
@pytest.mark.parametrize("was_locked_before", [True, False])
def test_a_full_card_can_be_locked(
    number: int, was_locked_before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if was_locked_before:
        DirectoryLock(tmp_path).release_after_stop(None)
    monkeypatch.setattr(os, "open", refusing(number))
    held = DirectoryLock(tmp_path)
    with pytest.raises(StartFailed) as caught:
        DirectoryLock(tmp_path)
    assert caught.value.exit_code == 75 and str(caught.value).endswith("another hub, process unknown")
    assert holder_of(tmp_path) == "unknown"
    held.release()


def test_a_lock_of_another_user_and_a_pipe_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "lock")
    held = DirectoryLock(tmp_path)
    assert holder_of(tmp_path) == "unknown"
    held.release()
    monkeypatch.setattr(os, "open", refusing(errno.EACCES))
    with pytest.raises(StartFailed, match="permission denied") as caught:
        DirectoryLock(tmp_path)
    assert caught.value.exit_code == os.EX_NOPERM


def test_a_hub_waits_for_the_end_of_a_command_and_reads_the_record_of_the_last_hub(tmp_path: Path) -> None:
    stopped_at = datetime(2026, 1, 1, tzinfo=UTC)
    DirectoryLock(tmp_path).release_after_stop(stopped_at)
    command = DirectoryLock(tmp_path, is_brief=True)
    with pytest.raises(StartFailed, match="another command"):
        DirectoryLock(tmp_path, is_brief=True)
    threading.Timer(0.2, command.release).start()
    hub = DirectoryLock(tmp_path)
    assert hub.stopped_at == stopped_at and (tmp_path / "lock").read_text().split()[0] == str(os.getpid())
    hub.release()


def test_a_killed_command_keeps_the_record_of_the_last_hub(tmp_path: Path) -> None:
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


class WatchedDisk(Disk):
    """A disk that records, at each sync and close, whether another process could lock the directory. The disk can
    also refuse to sync."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.was_free: list[bool] = []
        self.is_broken = False

    def sync(self, descriptor: int) -> None:
        self.was_free.append(is_free(self.folder))
        if self.is_broken:
            raise OSError(5, "the card has gone")
        super().sync(descriptor)

    def close(self, descriptor: int) -> None:
        self.was_free.append(is_free(self.folder))
        super().close(descriptor)


def is_free(folder: Path) -> bool:
    """Return whether a command could lock the directory."""
    try:
        DirectoryLock(folder, is_brief=True).release()
    except StartFailed:
        return False
    return True


@pytest.mark.parametrize("is_broken", [False, True])
async def test_the_lock_is_held_until_the_last_byte_whatever_fails(tmp_path: Path, is_broken: bool) -> None:
    disk, bus, clock = WatchedDisk(tmp_path), Bus(), Clock()
    store = Store(disk, Registry(bus, clock), bus, clock, flush_secs=60, sections={})
    async with store:
        store.document.put_later("variable/x", {"value": 1})
        disk.is_broken, before = is_broken, len(disk.was_free)
    assert len(disk.was_free) > before + 1 and not any(disk.was_free)
    assert is_free(tmp_path)


class Card:
    """A document with one key, and the values of the next flush."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    async def put_many(self, changes: dict[str, Any]) -> None:
        self.values.update({key: orjson.dumps(value) for key, value in changes.items()})

    def put_later(self, key: str, value: dict[str, Any] | None, *, is_minor: bool = False) -> None:
        """Remove the value at the next flush."""
        assert value is None
        del self.values[key]


async def start(
    card: Card, clock: VirtualClock, *, secs: float = 10, has_crashed: bool = True, boot: str = "a"
) -> bool:
    """Start a hub this many seconds later. Return whether the hub must be in safe mode."""
    clock.suspend(secs)
    counter = CrashCounter(card, clock, boot)  # type: ignore[arg-type]
    return await counter.note_start(has_crashed=has_crashed)


async def test_the_third_crash_within_five_minutes_starts_safe_mode(clock: VirtualClock) -> None:
    card = Card()
    assert [await start(card, clock) for _ in range(5)] == [False, False, True, True, True]


async def test_distant_crashes_do_not_count_and_orderly_stops_write_nothing(clock: VirtualClock) -> None:
    card = Card()
    assert not any([await start(card, clock, secs=151) for _ in range(6)])
    untouched = Card()
    assert not any([await start(untouched, clock, has_crashed=False) for _ in range(6)])
    CrashCounter(untouched, clock, "a").end_series()  # type: ignore[arg-type]
    assert untouched.values == {}


async def test_an_orderly_stop_ends_a_series_of_crashes(clock: VirtualClock) -> None:
    card = Card()
    assert [await start(card, clock) for _ in range(3)] == [False, False, True]
    CrashCounter(card, clock, "a").end_series()  # type: ignore[arg-type]
    assert card.values == {} and not await start(card, clock)


async def test_a_reboot_begins_another_series_of_crashes(clock: VirtualClock) -> None:
    card = Card()
    for boot in "abcdef":
        assert not await start(card, clock, boot=boot)


@pytest.mark.parametrize("stored", [b"null", b"[]", b"{}", b'{"boot":1}', b'{"boot":"x","crashes":[null]}', b"7"])
async def test_an_invalid_record_is_ignored(clock: VirtualClock, stored: bytes) -> None:
    card = Card()
    card.values[CRASHES] = stored
    assert not await start(card, clock)


def test_the_lock_distinguishes_a_killed_hub_and_a_killed_command(tmp_path: Path) -> None:
    hub = DirectoryLock(tmp_path)
    assert not hub.is_crash, "nobody was before it"
    hub.release_after_stop(None)
    command = DirectoryLock(tmp_path)
    assert not command.is_crash
    command.release()
    killed = DirectoryLock(tmp_path)
    assert not killed.is_crash, "a command in between changes nothing"
    killed.release_after_fault()
    command = DirectoryLock(tmp_path)
    assert command.is_crash
    command.release()
    later = DirectoryLock(tmp_path)
    assert later.is_crash
    later.release_after_stop(datetime(2026, 1, 1, tzinfo=UTC))
    last = DirectoryLock(tmp_path)
    assert not last.is_crash and last.stopped_at == datetime(2026, 1, 1, tzinfo=UTC)
    last.release()


def test_a_hub_that_is_killed_after_its_state_is_stored_has_stopped_cleanly(tmp_path: Path) -> None:
    killed = DirectoryLock(tmp_path)
    killed.record_stored(datetime(2026, 1, 1, tzinfo=UTC))
    with pytest.raises(StartFailed):
        DirectoryLock(tmp_path)
    killed.release_after_fault()
    later = DirectoryLock(tmp_path)
    assert (later.was_cut_off, later.stopped_at) == (False, datetime(2026, 1, 1, tzinfo=UTC))
    later.release()


def test_a_process_that_was_asked_to_stop_has_not_crashed(tmp_path: Path) -> None:
    asked = DirectoryLock(tmp_path)
    asked.record_stop()
    assert holder_of(tmp_path) == str(os.getpid())
    asked.release_after_fault()
    command = DirectoryLock(tmp_path, is_brief=True)
    command.release()
    later = DirectoryLock(tmp_path)
    assert (later.is_crash, later.stopped_at) == (False, None)
    later.release()
    later.record_stop()
