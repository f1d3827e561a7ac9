"""Watches folders of Lua files. Each save causes one callback, regardless of how the editor writes files."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from appliance.clock import Clock
from appliance.tasks import Tasks

DEBOUNCE_SECS = 0.3
"""Seconds without a change before the callback is called."""

MAX_DEBOUNCE_SECS = 3.0
"""Maximum seconds before the callback is called, even if changes continue."""

IMPORT_DELAY_SECS = 0.25
"""Delay in seconds of the import of `watchfiles`, so that a starting hub answers first. Changes during this delay are
reported afterwards."""

POLL_INTERVAL_MS = 5000
"""Milliseconds between checks for replaced and created folders."""

STEP_MS = 200
"""Milliseconds between two reads of the system's notifications by `watchfiles`."""

log = logging.getLogger("watch")


class Target(Struct, frozen=True, kw_only=True):
    """A watched folder, and the function to call when its Lua files change. If `is_deep` is true, subfolders are
    watched as well."""

    folder: Path
    is_deep: bool
    on_change: Callable[[], Awaitable[object]]
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def holds(self, path: Path) -> bool:
        """Return whether a change at the path can affect one of the target's Lua files."""
        if path == self.folder:
            return True
        if not path.is_relative_to(self.folder) or path.name.startswith("."):
            return False
        if path.suffix == ".lua":
            return self.is_deep or path.parent == self.folder
        return self.is_deep and path.suffix == ""

    def list_linked(self) -> frozenset[tuple[Path, int, int]]:
        """Return the symbolic links to Lua files, with the inodes and modification times of the linked files."""
        found = set()
        with suppress(OSError):
            for file in self.folder.rglob("*.lua") if self.is_deep else self.folder.glob("*.lua"):
                if file.is_symlink():
                    status = file.stat() if file.exists() else file.lstat()
                    found.add((file, status.st_ino, status.st_mtime_ns))
        return frozenset(found)

    def list_files(self) -> frozenset[tuple[Path, int]]:
        """Return the Lua files with their modification times in nanoseconds."""
        with suppress(OSError):
            files = self.folder.rglob("*.lua") if self.is_deep else self.folder.glob("*.lua")
            return frozenset((file, file.lstat().st_mtime_ns) for file in files)
        return frozenset()


FileChanges = Iterable[tuple[object, str]]
WatchFunction = Callable[..., Iterator[FileChanges]]
"""The type of `watchfiles.watch`. Tests pass another function."""


def _watch(*folders: Path, stop_event: threading.Event, **more: Any) -> Iterator[FileChanges]:
    if "watchfiles" not in sys.modules:
        stop_event.wait(IMPORT_DELAY_SECS)
    import watchfiles

    return watchfiles.watch(*folders, stop_event=stop_event, **more)


class Watcher:
    """Watches the targets on one thread while the context is open. If there are no targets, no thread runs."""

    def __init__(
        self,
        targets: Sequence[Target],
        clock: Clock,
        watch: WatchFunction = _watch,
        interval_ms: int = POLL_INTERVAL_MS,
    ) -> None:
        self._targets = targets
        self._clock = clock
        self._watch_changes = watch
        self._interval_ms = interval_ms
        self._stop = threading.Event()
        self._ended = asyncio.Event()
        self._tasks = Tasks()
        self._before: list[frozenset[tuple[Path, int]]] = []
        self._linked: list[frozenset[tuple[Path, int, int]]] = []

    async def __aenter__(self) -> Watcher:
        for target in self._targets:
            self._tasks.start(self._follow(target), f"watch of {target.folder}")
        if self._targets:
            loop = asyncio.get_running_loop()
            self._before = await asyncio.to_thread(lambda: [target.list_files() for target in self._targets])
            threading.Thread(target=self._watch, args=(loop,), daemon=True, name="watch").start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        if self._targets:
            await self._clock.wait(self._ended, 2 * self._interval_ms / 1000)
        await self._tasks.__aexit__()

    async def _follow(self, target: Target) -> None:
        while True:
            await target.changed.wait()
            latest = self._clock.monotonic() + MAX_DEBOUNCE_SECS
            target.changed.clear()
            while self._clock.monotonic() < latest and await self._clock.wait(target.changed, DEBOUNCE_SECS):
                target.changed.clear()
            try:
                await target.on_change()
            except Exception as error:  # the next change may succeed
                reason = f"{type(error).__name__}: {error}"
                log.error("the reload after a change of %s failed: %s", target.folder, reason)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch the existing folders until `stop` is set. Start again when a folder is created, removed, or
        replaced."""
        polling = None
        seen = self._identify()
        self._linked = [target.list_linked() for target in self._targets]
        while not self._stop.is_set():
            try:
                self._watch_folders(seen, loop, polling)
            except FileNotFoundError:  # a folder was removed in the meantime
                self._stop.wait(self._interval_ms / 10_000)
            except Exception as error:  # usually the system's limit on watches
                if polling:
                    self._stop.wait(self._interval_ms / 1000)
                else:
                    log.warning("the system cannot watch folders (%s); the hub checks them every few seconds", error)
                    polling = True
            now = self._identify()
            for target in self._targets:
                if now.get(target.folder) != seen.get(target.folder):
                    self._schedule_reload(target, loop)
            seen = now
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._ended.set)

    def _watch_folders(self, seen: dict[Path, Any], loop: asyncio.AbstractEventLoop, polling: bool | None) -> None:
        """Report changes in these folders until one of them is replaced or removed."""
        if not seen:
            self._stop.wait(self._interval_ms / 1000)
            return
        for changes in self._watch_changes(
            *seen,
            watch_filter=None,
            debounce=2 * STEP_MS,
            step=STEP_MS,
            stop_event=self._stop,
            rust_timeout=self._interval_ms,
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=polling,
            poll_delay_ms=self._interval_ms,
            ignore_permission_denied=True,
        ):
            paths = {Path(path) for _, path in changes}
            early = [*self._changed_early(), *self._changed_behind_links()]
            for target in self._targets:
                if target in early or any(target.holds(path) for path in paths):
                    self._schedule_reload(target, loop)
            is_lost = not paths.isdisjoint(seen)  # a removed folder's path and inode may be in use again
            if is_lost or self._stop.is_set() or self._identify() != seen:
                return

    def _changed_early(self) -> list[Target]:
        """Return the targets that changed before the watch started. Later calls return an empty list."""
        before, self._before = self._before, []
        return [target for target, then in zip(self._targets, before, strict=False) if target.list_files() != then]

    def _changed_behind_links(self) -> list[Target]:
        """Return the targets whose linked files have changed since the previous call."""
        before, self._linked = self._linked, [target.list_linked() for target in self._targets]
        return [each for each, one, other in zip(self._targets, before, self._linked, strict=True) if one != other]

    def _identify(self) -> dict[Path, tuple[int, int]]:
        """Return the device and inode of each existing folder."""
        found = {}
        for target in self._targets:
            with suppress(OSError):
                status = target.folder.stat()
                found[target.folder] = (status.st_dev, status.st_ino)
        return found

    def _schedule_reload(self, target: Target, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(target.changed.set)
