"""Records executions that a power cut or the end of the process has interrupted.

An execution that runs for more than a moment is marked in storage until it ends. At the next start, each marked
execution gets a history entry. Most executions end before they are marked, and cause no write.
"""

from __future__ import annotations

import contextlib
from datetime import datetime

from msgspec import Struct, convert

from appliance.clock import Clock, from_millis, to_millis
from appliance.errors import StoreFailed
from appliance.history.execution_history import ExecutionEntry, ExecutionHistory, ExecutionStatus
from appliance.store.record_keys import RUNNING
from appliance.store.records import read_one, skip
from appliance.store.storage import Storage
from appliance.tasks import SharedRun, Tasks

MARK_AFTER_SECS = 0.5

MAX_MARKED = 1000
"""Maximum number of executions that are marked at the same time."""

CUT_OFF = "the hub was killed or lost power during this execution"


class _Mark(Struct, frozen=True):
    """The stored mark of an execution. `kind` is `scene` or `automation`, `of` is the id of the scene or automation,
    and `at` is the start in milliseconds since 1970."""

    kind: str
    of: str
    at: int


class UnfinishedExecutions:
    """Marks running executions. Enter the context before the first execution begins."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._tasks = Tasks()
        self._young: dict[str, _Mark] = {}
        self._marked: dict[str, _Mark] = {}
        self._is_waiting = False
        self._writing = SharedRun(self._write, self._tasks, "marking of executions")
        found = read_one(storage, RUNNING, lambda value: convert(value, dict[str, _Mark]), skip)
        self._cut_off = list((found or {}).values())

    async def __aenter__(self) -> UnfinishedExecutions:
        if self._cut_off:
            self._storage.put_later(RUNNING, None)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()
        if self._marked:
            self._storage.put_later(RUNNING, None)

    def report(self, kind: str, history: ExecutionHistory) -> None:
        """Add a history entry for each scene or automation execution that was interrupted before this start."""
        for mark in self._cut_off:
            if mark.kind == kind:
                entry = ExecutionEntry(
                    subject=mark.of,
                    executed_at=from_millis(mark.at),
                    status=ExecutionStatus.CANCELLED,
                    error=CUT_OFF,
                    results=(),
                    duration_ms=0,
                )
                history.add(entry)

    def begin(self, execution_id: str, kind: str, of: str, at: datetime) -> None:
        """After a moment, mark the execution if it has not ended."""
        self._young[execution_id] = _Mark(kind, of, to_millis(at))
        if not self._is_waiting:
            self._is_waiting = True
            self._tasks.start(self._mark_young(), "marking of executions")

    def end(self, execution_id: str) -> None:
        if self._young.pop(execution_id, None) is None and self._marked.pop(execution_id, None) is not None:
            self._writing.start()

    def end_all(self) -> None:
        """Treat all executions as ended, because the hub is stopping. The next flush removes their marks."""
        self._young.clear()
        if self._marked:
            self._marked.clear()
            self._storage.put_later(RUNNING, None)

    async def _mark_young(self) -> None:
        try:
            while self._young:
                young = dict(self._young)
                await self._clock.sleep(MARK_AFTER_SECS)
                old = [each for each in young if each in self._young]
                for each in old:
                    mark = self._young.pop(each)
                    if len(self._marked) < MAX_MARKED:
                        self._marked[each] = mark
                if old:
                    await self._writing.result()
        finally:
            self._is_waiting = False

    async def _write(self) -> None:
        """Write the marks. Changes during a write share the next write, because hundreds of executions may end
        together."""
        marks = {each: {"kind": mark.kind, "of": mark.of, "at": mark.at} for each, mark in self._marked.items()}
        with contextlib.suppress(StoreFailed):  # the hub continues without the mark
            await self._storage.put_many({RUNNING: marks or None})
