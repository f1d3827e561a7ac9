"""The document: a mapping of keys to JSON values. Every acknowledged change survives a power cut.

The document is in memory, and on the card in two files per generation: a snapshot and a journal. Concurrent changes
share one journal record and one sync on the store's thread. When the journal is much larger than the snapshot, the
next generation begins. Values whose latest changes may be lost are first held in an overlay, which is flushed every
few minutes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct

from appliance.clock import Clock, timestamp
from appliance.errors import LaresError, StoreFailed
from appliance.store.disk import Disk
from appliance.store.document_files import DocumentFiles, explain_os_error
from appliance.store.file_format import EncodedChanges, encode_values
from appliance.store.lock import LOST
from appliance.store.overlay import Overlay
from appliance.store.recovery import Recovered, unreadable
from appliance.store.storage import Prepare, items_of
from appliance.store.store_thread import StoreThread

log = logging.getLogger("store")


class _Waiting(Struct):
    """A change that is not durable yet, and the future that its caller awaits."""

    prepare: Prepare
    commit: Callable[[], None] | None
    done: asyncio.Future[None]
    refusal: LaresError | None = None

    def prepare_after(self, changes: dict[str, bytes | None]) -> None:
        self.refusal = _attempt(lambda: changes.update(self.prepare(changes)))

    def end(self) -> None:
        """Apply the change if it was accepted, and resume the caller."""
        if self.refusal is None and self.commit is not None:
            self.refusal = _attempt(self.commit)
        if self.done.done():  # the caller was cancelled
            return
        if self.refusal is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(self.refusal)
            self.done.exception()  # retrieve the exception; otherwise, asyncio logs it if the caller was cancelled


class Document:
    """A mapping of keys to JSON values that survives power cuts. The files are read when the context is entered, and
    closed when the context is left. All work on the files runs on `thread`."""

    recovered: Recovered

    def __init__(self, disk: Disk, clock: Clock, thread: StoreThread) -> None:
        self._files = DocumentFiles(disk, clock.now().strftime("%Y%m%dT%H%M%SZ"))
        self._clock = clock
        self._thread = thread
        self._waiting: list[_Waiting] = []
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._failure: str | None = None
        self._failures = 0
        self._last_write: datetime | None = None
        self._overlay = Overlay()

    async def __aenter__(self) -> Document:
        try:
            self.recovered = await self._thread.run(self._files.open)
        except OSError as error:
            raise unreadable(error) from error
        self.recovered.values = {}  # they are the present values, which would remain after `pack`
        for note in self.recovered.notes:
            log.warning("%s", note)
        if self._files.refusal is not None:
            self._note_failure(self._files.refusal)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._is_idle.wait()
        try:
            await self._thread.run(self._files.close)
        except OSError as error:
            if self._failure is None:
                log.error("the document could not be checked at the stop: %s", _reason(error))

    @property
    def is_writing(self) -> bool:
        return not self._is_idle.is_set()

    def get(self, key: str) -> bytes | None:
        """Return the key's value as JSON bytes, or None if the key is missing."""
        return self._files.values.get(key)

    async def pack(self) -> None:
        """Save memory after a burst of changes: copy all values, so that they share pages."""
        await self._thread.run(self._files.pack)

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        """Return the key and value of each key with the prefix. The returned keys lack the prefix."""
        values = self._files.values.copy()  # the store's thread changes the values concurrently
        return items_of(values, prefix)

    def list_encoded(self, prefixes: tuple[str, ...]) -> dict[str, bytes]:
        """Return the values of the keys with these prefixes as JSON bytes."""
        return {key: value for key, value in self._files.values.copy().items() if key.startswith(prefixes)}

    async def put_many(self, changes: Mapping[str, Any]) -> None:
        """Change all keys, or no key if storage fails. The value None removes a key.

        Return after the change is durable. If the card rejects the change, raise `StoreFailed` and leave the document
        unchanged. Raise `TypeError` if a key or value cannot be JSON.
        """
        if changes:
            encoded = encode_values(changes)
            await self.change(lambda _: encoded, replaces=changes)

    def put_later(self, key: str, value: dict[str, Any] | None, *, is_minor: bool = False) -> None:
        """Write the value with the next flush if it differs from the stored value. The value None removes the key.
        The caller must not change the value afterwards.

        If `is_minor` is true, the value waits for the next complete flush, or replaces an earlier value of the key
        that already waits for the next flush.
        """
        if value is not None or self.is_writing or key in self._files.values:
            self._overlay.put(key, value, is_minor=is_minor)
        else:
            self._overlay.discard(key)

    def list_later(self) -> dict[str, Any]:
        """Return the values that wait for a flush."""
        return self._overlay.list_all()

    def is_being_flushed(self, key: str) -> bool:
        """Return whether a running flush writes the key. If so, the key's stored value is outdated."""
        return self._overlay.is_being_flushed(key)

    async def flush(
        self, prepare: Callable[[Mapping[str, Any], EncodedChanges], EncodedChanges], *, is_complete: bool = True
    ) -> None:
        """Store the changes that `prepare` returns. The arguments of `prepare` are the values in the overlay, and the
        earlier changes in the same batch.

        If `is_complete` is false, minor values remain in the overlay. If the flush fails, all values wait for the
        next flush.
        """
        given, is_stored = self._overlay.begin_flush(is_complete=is_complete), False
        try:
            await self.change(lambda before: prepare(given, before))
            is_stored = True
        finally:
            self._overlay.end_flush(is_stored=is_stored)

    async def change(
        self, prepare: Prepare, commit: Callable[[], None] | None = None, *, replaces: Iterable[str] = ()
    ) -> None:
        """Store the changes that `prepare` returns, then call `commit` to apply them. For errors, see `put_many`.

        Changes are prepared and committed in order; concurrent changes share one sync. A started change finishes even
        if the caller is cancelled. Exceptions of `prepare` are raised to the caller. If the card rejects earlier
        changes in the batch, `prepare` is called again without these changes. Once the changes are stored, earlier
        overlay values of the keys `replaces` are discarded.
        """
        outdated = self._overlay.take_out(replaces)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(prepare, commit, loop.create_future())
        self._waiting.append(waiting)
        if self._is_idle.is_set():
            self._is_idle.clear()
            loop.call_soon(self._write)  # share a record with other changes in this loop iteration
        try:
            await waiting.done
        except Exception:
            self._overlay.put_back(outdated)
            raise
        finally:
            del waiting  # a variable that refers to a raised exception forms a cycle with the exception's traceback

    def figures(self) -> dict[str, Any]:
        """Return the store's data for `GET /diagnostics`."""
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
        """Pass all waiting changes to the thread as one record."""
        batch, self._waiting = self._waiting, []
        changes: dict[str, bytes | None] = {}
        for each in batch:
            each.prepare_after(changes)
        try:
            if changes:
                self._thread.do(partial(self._files.append, changes), partial(self._on_written, batch))
            else:
                self._end(batch)
        except RuntimeError as error:  # the document is closed
            self._on_written(batch, None, error)

    def _on_written(self, batch: list[_Waiting], _: object, error: BaseException | None) -> None:
        """Finish the batch after the write has succeeded or failed."""
        if error is None:
            self._note_success()
        else:
            if not isinstance(error, OSError) and self._failure != _reason(error):
                log.error("the store failed unexpectedly", exc_info=error)
            self._note_failure(_reason(error))
            for each in batch:
                each.prepare_after({})
                each.refusal = each.refusal or StoreFailed(f"the change cannot be stored now: {self._failure}")
        self._end(batch)

    def _end(self, batch: list[_Waiting]) -> None:
        """Resume the callers of the batch, then write the changes that arrived in the meantime."""
        for each in batch:
            each.end()
        if self._failure is None and self._files.is_compaction_due:
            # changes that arrive from now on wait for the compaction
            self._thread.do(self._files.compact, _on_compacted)
        if self._waiting:
            self._write()
        else:
            self._is_idle.set()

    def _note_failure(self, reason: str) -> None:
        if reason == LOST != self._failure:
            log.error("changes cannot be stored: %s", reason)
        elif self._failure is None:
            log.error("changes cannot be stored: %s; the hub continues and retries", reason)
        self._failure = reason
        self._failures += 1

    def _note_success(self) -> None:
        if self._failure is not None:
            log.info("changes can be stored again")
        self._failure = None
        self._last_write = self._clock.now()


@asynccontextmanager
async def open_document(disk: Disk, clock: Clock) -> AsyncIterator[Document]:
    """Open the document without the other parts of the store."""
    async with StoreThread() as thread, Document(disk, clock, thread) as document:
        yield document


def _attempt(work: Callable[[], None]) -> LaresError | None:
    """Do the work. Return None if the work succeeds; otherwise, return the error without its traceback, whose frames
    refer to the callers. Log unexpected exceptions."""
    try:
        work()
    except LaresError as error:
        return error.with_traceback(None)
    except Exception as error:
        log.error("a change failed: %s: %s", type(error).__name__, error, exc_info=error)
        return StoreFailed("the change was not made; see the log")
    return None


def _reason(error: BaseException) -> str:
    """Return the reason for a failed write, as the end of a sentence. For exceptions other than `OSError`, return the
    class name."""
    return explain_os_error(error) if isinstance(error, OSError) else type(error).__name__


def _on_compacted(_: object, error: BaseException | None) -> None:
    if error is not None:
        log.error("the journal could not be compacted", exc_info=error)
