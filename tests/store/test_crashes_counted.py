"""The count of crashes: what a run that did not stop in order leaves on the card, and when it is too many."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from appliance.store import lock
from appliance.store.lock import CrashCounter, DirectoryLock, holder_of
from appliance.store.records import CRASHES
from tests.fakes.clock import VirtualClock


class Card:
    """A document of one key, and what would be written with the next flush."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        """The value of the key."""
        return self.values.get(key)

    async def put_many(self, changes: dict[str, Any]) -> None:
        """Write at once."""
        self.values.update({key: orjson.dumps(value) for key, value in changes.items()})

    def remember(self, key: str, value: dict[str, Any] | None) -> None:
        """Remove with the flush at the stop."""
        assert value is None
        del self.values[key]


async def start(card: Card, clock: VirtualClock, *, secs: float = 10, has_crashed: bool = True) -> bool:
    """Start a hub so many seconds later; whether it should be safe."""
    clock.suspend(secs)
    counter = CrashCounter(card, clock, card.remember)  # type: ignore[arg-type]
    return await counter.note_start(has_crashed=has_crashed)


async def test_the_third_crash_within_five_minutes_is_one_too_many(clock: VirtualClock) -> None:
    card = Card()
    assert [await start(card, clock) for _ in range(5)] == [False, False, True, True, True]


async def test_crashes_that_lie_apart_do_not_count_and_runs_that_stop_in_order_write_nothing(
    clock: VirtualClock,
) -> None:
    card = Card()
    assert not any([await start(card, clock, secs=151) for _ in range(6)])
    untouched = Card()
    assert not any([await start(untouched, clock, has_crashed=False) for _ in range(6)])
    CrashCounter(untouched, clock, untouched.remember).end_series()  # type: ignore[arg-type]
    assert untouched.values == {}


async def test_the_series_ends_with_a_stop_in_order(clock: VirtualClock) -> None:
    card = Card()
    assert [await start(card, clock) for _ in range(3)] == [False, False, True]
    CrashCounter(card, clock, card.remember).end_series()  # type: ignore[arg-type]
    assert card.values == {} and not await start(card, clock)


async def test_a_machine_that_was_started_anew_is_another_series(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card()
    for boot in "abcdef":
        monkeypatch.setattr(lock, "read_boot_id", lambda boot=boot: boot)
        assert not await start(card, clock)


@pytest.mark.parametrize("stored", [b"null", b"[]", b"{}", b'{"boot":1}', b'{"boot":"x","crashes":[null]}', b"7"])
async def test_a_record_that_is_none_counts_for_nothing(clock: VirtualClock, stored: bytes) -> None:
    card = Card()
    card.values[CRASHES] = stored
    assert not await start(card, clock)


def test_the_lock_knows_who_was_killed_and_who_was_not_the_hub(tmp_path: Path) -> None:
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


def test_whoever_was_asked_to_end_has_not_crashed_however_it_ended(tmp_path: Path) -> None:
    asked = DirectoryLock(tmp_path)
    asked.note_stop()
    assert holder_of(tmp_path) == str(os.getpid())
    asked.release_after_fault()
    command = DirectoryLock(tmp_path, is_brief=True)
    command.release()
    later = DirectoryLock(tmp_path)
    assert (later.is_crash, later.stopped_at) == (False, None)
    later.release()
    later.note_stop()


def test_a_lock_of_before_the_machine_was_started_anew_tells_of_no_crash(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("4711\nanother-boot\n")
    lock = DirectoryLock(tmp_path)
    assert not lock.is_crash
    lock.release()
