"""The document: keys and their JSON values, of which every acknowledged change outlives a power cut.

It is kept in memory and in two files a generation, a snapshot and a journal. Changes that wait at the same time share
one record and one sync, which run on a thread of the store's own. When the journal has outgrown the snapshot, the
next generation begins.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from typing import Any, TypeVar

import orjson

from appliance.clock import Clock, timestamp
from appliance.errors import LaresError, StartFailed, StoreFailed
from appliance.home.values import to_bytes
from appliance.store.disk import Disk
from appliance.store.files import Files
from appliance.store.queue import ChangeQueue
from appliance.store.records import items_of
from appliance.store.recovery import Recovered

T = TypeVar("T")

log = logging.getLogger("store")


class Document:
    """The state that outlives the power. Entering the context recovers it from the files, leaving it closes them."""

    recovered: Recovered

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._files = Files(disk, clock.now().strftime("%Y%m%dT%H%M%SZ"))
        self._clock = clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._queue = ChangeQueue(self._write, "writing of the document")
        self._failure: str | None = None
        self._failures = 0
        self._last_write: datetime | None = None

    async def __aenter__(self) -> Document:
        try:
            self.recovered = await self._run(self._files.open)
        except OSError as error:
            self._thread.shutdown()
            raise StartFailed(f"the store cannot be read: {error}", os.EX_IOERR) from error
        except BaseException:
            self._thread.shutdown()
            raise
        for note in self.recovered.notes:
            log.warning("%s", note)
        if self._files.refusal is not None:
            self._note_failure(self._files.refusal)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._queue.close()
        try:
            await self._run(self._files.close)
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
        if changes:
            await self._queue.submit({key: encode_value(key, value) for key, value in changes.items()})

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

    async def _write(self, batch: list[dict[str, bytes | None]]) -> list[LaresError | None]:
        """Write the batch as one record; a failure of any kind is noted, and raised to each caller."""
        merged = {key: value for changes in batch for key, value in changes.items()}
        try:
            await self._run(lambda: self._files.append(merged))
        except Exception as error:
            if not isinstance(error, OSError) and self._failure != _reason(error):
                log.error("the store failed unexpectedly", exc_info=error)
            self._note_failure(_reason(error))
            return [StoreFailed(f"the change cannot be stored now: {self._failure}") for _ in batch]
        self._note_success()
        if self._files.is_compaction_due:  # only changes that come meanwhile wait for it
            self._thread.submit(self._files.compact).add_done_callback(_log_failure)
        return [None for _ in batch]

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

    async def _run(self, work: Callable[[], T]) -> T:
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


def _reason(error: Exception) -> str:
    """Why the card takes nothing, in lower case; the name of the exception where it is no `OSError`."""
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return type(error).__name__


def _log_failure(compaction: Future[None]) -> None:
    if (error := compaction.exception()) is not None:
        log.error("the journal could not be compacted", exc_info=error)
