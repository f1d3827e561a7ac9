"""The lock of the data directory at a stop: nobody else has the directory before the last byte is on the card."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.clock import Clock
from appliance.errors import StartFailed
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from appliance.store.disk import Disk
from appliance.store.lock import DirectoryLock
from appliance.store.store_setup import Store


class WatchedDisk(Disk):
    """Notes at each sync and close whether another process could have the directory then; may refuse to sync."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.was_free: list[bool] = []
        self.is_broken = False

    def sync(self, descriptor: int) -> None:
        """As it is, once it is noted."""
        self.was_free.append(is_free(self.folder))
        if self.is_broken:
            raise OSError(5, "the card has gone")
        super().sync(descriptor)

    def close(self, descriptor: int) -> None:
        """As it is, once it is noted."""
        self.was_free.append(is_free(self.folder))
        super().close(descriptor)


def is_free(folder: Path) -> bool:
    """Whether a command could have the directory."""
    try:
        DirectoryLock(folder, is_brief=True).release()
    except StartFailed:
        return False
    return True


@pytest.mark.parametrize("is_broken", [False, True])
async def test_it_is_held_until_the_last_byte_whatever_fails(tmp_path: Path, is_broken: bool) -> None:
    disk, bus, clock = WatchedDisk(tmp_path), Bus(), Clock()
    store = Store(disk, Registry(bus, clock), bus, clock, flush_secs=60, is_ours=lambda _: True)
    async with store:
        store.recorder.remember("variable/x", {"value": 1})
        disk.is_broken, before = is_broken, len(disk.was_free)
    assert len(disk.was_free) > before + 1 and not any(disk.was_free)
    assert is_free(tmp_path)
