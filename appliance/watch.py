"""Watching folders: saved Lua files cause one callback, however the editor saves them.

The names and times of the files are looked at every now and then: so it works on every file system, and whatever
becomes of the folder.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from appliance.clock import Clock
from appliance.tasks import Tasks

POLL_INTERVAL_SECS = 0.5
"""Seconds between two looks at a folder."""

MISSING_POLL_INTERVAL_SECS = 5.0
"""Seconds between two looks where there is no folder."""

DEBOUNCE_SECS = 0.3
"""Seconds without a change after which the callback is called."""

MAX_DEBOUNCE_SECS = 3.0
"""Seconds after which it is called while changes go on."""

log = logging.getLogger("watch")

FileStates = frozenset[tuple[Path, int, int, int]]
"""FileStates, each with its inode, its size, and its time of modification in nanoseconds."""


class Target(Struct, frozen=True, kw_only=True):
    """A folder to watch, those inside it too where it is deep, and what to do when Lua files in it have changed."""

    folder: Path
    is_deep: bool
    on_change: Callable[[], Awaitable[object]]

    @property
    def interval_secs(self) -> float:
        """Seconds until the next look."""
        return POLL_INTERVAL_SECS if self.folder.is_dir() else MISSING_POLL_INTERVAL_SECS

    def list_files(self) -> FileStates:
        """The Lua files that exist; may wait for the card."""
        found = set()
        with suppress(OSError):
            for file in self.folder.rglob("[!.]*.lua") if self.is_deep else self.folder.glob("[!.]*.lua"):
                with suppress(OSError):
                    status = file.stat()
                    found.add((file, status.st_ino, status.st_size, status.st_mtime_ns))
        return frozenset(found)


class Watcher:
    """Watches its targets from entering the context to leaving it."""

    def __init__(self, targets: Sequence[Target], clock: Clock) -> None:
        self._targets = targets
        self._clock = clock
        self._tasks = Tasks()

    async def __aenter__(self) -> Watcher:
        for target in self._targets:
            seen = await asyncio.to_thread(target.list_files)
            self._tasks.start(self._follow(target, seen), f"watch of {target.folder}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    async def _follow(self, target: Target, seen: FileStates) -> None:
        """Call `on_change` after each burst of changes."""
        while True:
            await self._clock.sleep(target.interval_secs)
            found = await asyncio.to_thread(target.list_files)
            if found == seen:
                continue
            seen = await self._settle(target, found)
            try:
                await target.on_change()
            except Exception as error:  # the next change may be a better one
                log.error("what %s asks for failed: %s: %s", target.folder, type(error).__name__, error)

    async def _settle(self, target: Target, found: FileStates) -> FileStates:
        """The files once nothing changes any more, or too long."""
        latest = self._clock.monotonic() + MAX_DEBOUNCE_SECS
        while self._clock.monotonic() < latest:
            before = found
            await self._clock.sleep(DEBOUNCE_SECS)
            if (found := await asyncio.to_thread(target.list_files)) == before:
                break
        return found
