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
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, TypeVar

import orjson

from appliance.clock import Clock, timestamp
from appliance.errors import StartFailed, StoreFailed
from appliance.store.disk import Disk
from appliance.store.files import Files
from appliance.store.records import items_of
from appliance.store.recovery import Recovered
from appliance.tasks import Tasks

T = TypeVar("T")

log = logging.getLogger("store")


class Document:
    """The state that outlives the power. Entering the context recovers it from the files, leaving it closes them."""

    recovered: Recovered

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._files = Files(disk, clock.now().strftime("%Y%m%dT%H%M%SZ"))
        self._clock = clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._tasks = Tasks()
        self._waiting: list[tuple[dict[str, bytes | None], asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._failure: str | None = None
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
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._writing is not None:
            await asyncio.wait({self._writing})
        try:
            await self._run(self._files.close)
        finally:
            self._thread.shutdown()

    def get(self, key: str) -> bytes | None:
        """The value of the key as JSON bytes, or None."""
        return self._files.values.get(key)

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        """The keys that begin with the prefix, without it, and their values."""
        return items_of(self._files.values, prefix)

    async def put_many(self, changes: Mapping[str, Any]) -> None:
        """Change all the keys or none; None removes a key. Returns once a power cut cannot take it back.

        Raises `StoreFailed` when the card does not take it; the document is then as it was.
        """
        encoded = {key: _encode(value) for key, value in changes.items()}
        if not encoded:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((encoded, done))
        if self._writing is None:
            self._writing = self._tasks.start(self._write_waiting(), "writing of the document")
        await asyncio.shield(done)

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
            "last_recovery": recovery,
        }

    async def _write_waiting(self) -> None:
        """Write everything that waits, and what came to wait meanwhile, a batch a sync."""
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await self._write([changes for changes, _ in batch], [done for _, done in batch])
        finally:
            self._writing = None

    async def _write(self, batch: list[dict[str, bytes | None]], waiting: list[asyncio.Future[None]]) -> None:
        merged = {key: value for changes in batch for key, value in changes.items()}
        try:
            await self._run(lambda: self._files.append(merged))
        except OSError as error:
            self._note_failure((error.strerror or str(error)).lower())
            self._refuse(waiting)
        except BaseException as error:
            self._note_failure(type(error).__name__)
            self._refuse(waiting)
            raise
        else:
            self._note_success()
            for done in waiting:
                done.set_result(None)

    def _refuse(self, waiting: list[asyncio.Future[None]]) -> None:
        for done in waiting:
            done.set_exception(StoreFailed(f"the change cannot be stored now: {self._failure}"))
            done.exception()  # whoever waited may be gone

    def _note_failure(self, reason: str) -> None:
        if self._failure is None:
            log.error("changes cannot be stored: %s; the home runs on and tries again", reason)
        self._failure = reason

    def _note_success(self) -> None:
        if self._failure is not None:
            log.info("changes are stored again")
        self._failure = None
        self._last_write = self._clock.now()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _encode(value: object) -> bytes | None:
    """The value as JSON; what has no JSON but null, a not-a-number, is gone like None: so replay takes it too."""
    encoded = orjson.dumps(value)
    return None if encoded == b"null" else encoded
