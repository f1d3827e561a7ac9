"""Past executions of scenes and automations, and commands, in memory within a budget of bytes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from heapq import nlargest
from math import inf
from sys import getsizeof
from typing import Any

import msgspec
import orjson
from msgspec import Struct
from msgspec.structs import asdict

from appliance.clock import timestamp, to_millis
from appliance.history.period import Period
from appliance.home.bus import Bus
from appliance.home.events import CommandEnded, Event
from appliance.home.json_shapes import STATED_COMMAND

MAX_EXECUTIONS_PER_SUBJECT = 1000
"""Maximum number of entries per scene or automation."""

MAX_EXECUTION_HISTORY_BYTES = 8 << 20
"""Maximum bytes of the executions of all scenes, or of all automations."""

LOGGED_ENTRY_BYTES = 240
"""Memory of an entry in bytes, in addition to its JSON."""


class _LoggedEntry(Struct, frozen=True, order=True):
    at: int
    number: int
    json: bytes


class BoundedLog:
    """Entries as JSON in at most `max_bytes`. Each entry belongs to a subject.

    Each subject has at most `max_entries`. If the memory is full, the subject with the most bytes loses its oldest
    entry. `count` is the number of all entries that were added.
    """

    def __init__(self, max_bytes: int, max_entries: float = inf) -> None:
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        self._entries: dict[str, deque[_LoggedEntry]] = {}
        self._bytes: Counter[str] = Counter()
        self._total = self.count = 0

    def add(self, subject: str, at: datetime, json: bytes) -> None:
        """Add an entry."""
        self.count += 1
        entry = _LoggedEntry(
            to_millis(at), self.count, bytes(memoryview(json))
        )  # bytes that orjson returns occupy at least 4 KiB
        self._entries.setdefault(subject, deque()).append(entry)
        self._bytes[subject] += (size := _size(entry))
        self._total += size
        if len(self._entries[subject]) > self._max_entries:
            self._drop_oldest(subject)
        while self._total > self._max_bytes:
            [(largest, _)] = self._bytes.most_common(1)
            self._drop_oldest(largest)

    def _drop_oldest(self, subject: str) -> None:
        size = _size(self._entries[subject].popleft())
        self._bytes[subject] -= size
        self._total -= size
        if not self._entries[subject]:
            del self._entries[subject], self._bytes[subject]

    def list_entries(self, period: Period, subject: str | None = None) -> list[bytes]:
        """Return the entries of one subject or of all subjects in the period, newest first."""
        first, last = period.bounds_ms()
        kept = self._entries.values() if subject is None else [self._entries.get(subject, deque())]
        found = (entry for entries in kept for entry in entries if first <= entry.at <= last)
        return [entry.json for entry in nlargest(period.max_entries, found)]

    def figures(self) -> dict[str, int]:
        """Return the number of kept entries and their bytes, and the number of entries since the start."""
        entries = sum(map(len, self._entries.values()))
        kept = {"bytes": self._total, "max_bytes": self._max_bytes, "entries": entries}
        return {**kept, "recorded": self.count}


class ExecutionStatus(StrEnum):
    """The result of an execution, or the reason why it did not run."""

    OK = "ok"
    ERROR = "error"
    SKIPPED = "skipped"
    DROPPED = "dropped"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"


class ExecutionEntry(Struct, frozen=True, kw_only=True):
    """An execution of a scene or automation. `results` contains the results of its commands in call order.

    `trigger_payload` is the event of an automation. `trace` contains its steps, and `warnings` contains sentences
    about failed calls. `counted_secs` is the duration without waits, for the limit of an execution.
    """

    subject: str
    executed_at: datetime
    status: ExecutionStatus
    error: str | None
    results: tuple[Mapping[str, Any], ...]
    duration_ms: int
    counted_secs: float = 0.0
    trigger_payload: Mapping[str, Any] | None = None
    trace: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()


class ExecutionHistory:
    """The latest executions of scenes or of automations. `on_add` is called for each new entry."""

    def __init__(
        self,
        *,
        max_bytes: int = MAX_EXECUTION_HISTORY_BYTES,
        on_add: Callable[[ExecutionEntry], None] | None = None,
    ) -> None:
        self._on_add = on_add
        self._log = BoundedLog(max_bytes, MAX_EXECUTIONS_PER_SUBJECT)

    def add(self, entry: ExecutionEntry) -> None:
        """Add an execution. Drop old executions if the memory is full."""
        if self._on_add is not None:
            self._on_add(entry)
        self._log.add(entry.subject, entry.executed_at, orjson.dumps(entry, default=_as_dict))

    def list_runs(self, subject: str, period: Period) -> list[ExecutionEntry]:
        """Return the executions in the period, newest first."""
        return [msgspec.json.decode(each, type=ExecutionEntry) for each in self._log.list_entries(period, subject)]


class CommandAudit:
    """Listens to the bus, and keeps commands with their sources and results in at most `max_bytes`."""

    def __init__(self, bus: Bus, max_bytes: int) -> None:
        self._log = BoundedLog(max_bytes)
        self.figures = self._log.figures
        bus.listen(self._on_event, CommandEnded)

    def list_commands(self, period: Period, device_id: str | None = None) -> list[dict[str, Any]]:
        """Return the commands to one device or to all devices in the period as JSON objects, newest first."""
        return [*map(orjson.loads, self._log.list_entries(period, device_id))]

    def _on_event(self, event: Event) -> None:
        assert isinstance(event, CommandEnded)
        entry = {
            "recorded_at": timestamp(event.at),
            "source": event.source,
            "room_id": event.room_id,
            "device_id": event.device_id,
            "command": STATED_COMMAND(event.command),
            "status": event.status,
            "message": event.message,
        }
        self._log.add(event.device_id, event.at, orjson.dumps(entry))


def _as_dict(value: Any) -> dict[str, Any]:
    return asdict(value) if isinstance(value, Struct) else dict(value)


def _size(entry: _LoggedEntry) -> int:
    return getsizeof(entry.json) + LOGGED_ENTRY_BYTES
