"""The document: keys and their JSON values, of which every acknowledged change outlives a power cut.

It is kept in memory and in two files a generation, a snapshot and a journal. Changes that wait at the same time share
one record and one sync, which run on a thread of the store's own. When the journal has outgrown the snapshot, the
next generation begins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

import orjson
from msgspec import Struct

from appliance.clock import Clock, timestamp
from appliance.errors import StoreFailed
from appliance.home.values import to_bytes
from appliance.store.disk import Disk
from appliance.store.files import Files
from appliance.store.records import items_of
from appliance.store.recovery import Recovered, unreadable

T = TypeVar("T")

log = logging.getLogger("store")


class _Waiting(Struct, frozen=True):
    """Changes that are not on the device yet, and who waits for them."""

    changes: dict[str, bytes | None]
    stored: asyncio.Future[None]


class Document:
    """The state that outlives the power. Entering the context recovers it from the files, leaving it closes them."""

    recovered: Recovered

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._files = Files(disk, clock.now().strftime("%Y%m%dT%H%M%SZ"))
        self._clock = clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._waiting: list[_Waiting] = []
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._failure: str | None = None
        self._failures = 0
        self._last_write: datetime | None = None

    async def __aenter__(self) -> Document:
        try:
            self.recovered = await self.run(self._files.open)
        except OSError as error:
            self._thread.shutdown()
            raise unreadable(error) from error
        except BaseException:
            self._thread.shutdown()
            raise
        for note in self.recovered.notes:
            log.warning("%s", note)
        if self._files.refusal is not None:
            self._note_failure(self._files.refusal)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._is_idle.wait()
            with suppress(OSError):  # what was acknowledged is synced, and the descriptor is gone all the same
                await self.run(self._files.close)
        finally:
            self._thread.shutdown()

    def get(self, key: str) -> bytes | None:
        """The value of the key as JSON bytes, or None."""
        return self._files.values.get(key)

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        """The keys that begin with the prefix, without it, and their values."""
        return items_of(self._files.values.copy(), prefix)  # the store's thread changes them meanwhile

    async def put_many(self, changes: Mapping[str, Any]) -> None:
        """Change all the keys or none; None removes a key. Returns once a power cut cannot take it back.

        Raises `StoreFailed` when the card does not take it; the document is then as it was. `TypeError` where a key
        or a value has no JSON.
        """
        if not changes:
            return
        loop = asyncio.get_running_loop()
        waiting = _Waiting({key: encode_value(key, value) for key, value in changes.items()}, loop.create_future())
        self._waiting.append(waiting)
        if self._is_idle.is_set():
            self._is_idle.clear()
            loop.call_soon(self._write)  # with what else comes in this turn of the loop
        await waiting.stored

    def figures(self) -> dict[str, Any]:
        """What `GET /diagnostics` shows of the store."""
        found = self.recovered
        recovery = {
            "records": found.records,
            "torn_bytes": found.torn,
            "lost_records": found.lost,
            "notes": found.notes,
        }
        return {
            **self._files.figures(),
            "last_write": None if self._last_write is None else timestamp(self._last_write),
            "failure": self._failure,
            "failures": self._failures,
            "last_recovery": recovery,
        }

    def _write(self) -> None:
        """Hand all that waits to the thread, as one record; a task and `run_in_executor` would cost as much again."""
        batch, self._waiting = self._waiting, []
        merged = {key: value for each in batch for key, value in each.changes.items()}
        loop = asyncio.get_running_loop()
        try:
            writing = self._thread.submit(self._files.append, merged)
        except RuntimeError as error:  # the document is closed
            self._on_written(batch, error)
        else:
            writing.add_done_callback(
                lambda done: loop.call_soon_threadsafe(self._on_written, batch, done.exception())
            )

    def _on_written(self, batch: list[_Waiting], error: BaseException | None) -> None:
        """The batch is on the device, or why it is not: tell who waits, and write what has come meanwhile."""
        if error is None:
            self._note_success()
        else:
            if not isinstance(error, OSError) and self._failure != _reason(error):
                log.error("the store failed unexpectedly", exc_info=error)
            self._note_failure(_reason(error))
        for each in batch:
            if each.stored.done():  # who asked has gone
                continue
            if error is None:
                each.stored.set_result(None)
            else:
                each.stored.set_exception(StoreFailed(f"the change cannot be stored now: {self._failure}"))
        if error is None and self._files.is_compaction_due:  # only changes that come meanwhile wait for it
            self._thread.submit(self._files.compact).add_done_callback(_log_failure)
        if self._waiting:
            self._write()
        else:
            self._is_idle.set()

    def _note_failure(self, reason: str) -> None:
        if self._failure is None:
            log.error("changes cannot be stored: %s; the home runs on and tries again", reason)
        self._failure = reason
        self._failures += 1

    def _note_success(self) -> None:
        if self._failure is not None:
            log.info("changes are stored again")
        self._failure = None
        self._last_write = self._clock.now()

    async def run(self, work: Callable[[], T]) -> T:
        """What the work returns or raises; it runs on the store's thread, after what that has to do already."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def encode_value(key: str, value: object) -> bytes | None:
    """The value as JSON; not-a-number, which JSON has as null, removes the key, as in a replay.

    Raises `TypeError`, which names the key.
    """
    try:
        orjson.dumps(key)
        encoded = to_bytes(value)
    except TypeError as error:
        raise TypeError(f"{key!r} cannot be stored: {error}") from None
    return None if encoded == b"null" else encoded


def _reason(error: BaseException) -> str:
    """Why the card takes nothing, in lower case; the name of the exception where it is no `OSError`."""
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return type(error).__name__


def _log_failure(compaction: Future[None]) -> None:
    if (error := compaction.exception()) is not None:
        log.error("the journal could not be compacted", exc_info=error)
