"""A log in memory with a size limit."""

from __future__ import annotations

from collections import Counter, deque
from datetime import datetime
from heapq import nlargest
from math import inf
from sys import getsizeof

from msgspec import Struct

from appliance.clock import to_millis
from appliance.history.period import Period

LOGGED_ENTRY_BYTES = 240
"""Memory overhead per entry in bytes, in addition to its JSON."""


class _LoggedEntry(Struct, frozen=True, order=True):
    at: int
    number: int
    json: bytes


class BoundedLog:
    """Entries as JSON in at most `max_bytes`. Each entry belongs to a subject.

    Each subject has at most `max_entries`. If the memory is full, the subject with the most bytes loses its oldest
    entry. `count` is the number of entries ever added.
    """

    def __init__(self, max_bytes: int, max_entries: float = inf) -> None:
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        self._entries: dict[str, deque[_LoggedEntry]] = {}
        self._bytes: Counter[str] = Counter()
        self._total = self.count = 0

    def add(self, subject: str, at: datetime, json: bytes) -> None:
        self.count += 1
        copied = bytes(memoryview(json))  # bytes from orjson occupy at least 4 KiB
        entry = _LoggedEntry(to_millis(at), self.count, copied)
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
        """Return the period's entries, newest first, of one subject or of all subjects."""
        first, last = period.bounds_ms()
        kept = self._entries.values() if subject is None else [self._entries.get(subject, deque())]
        found = (entry for entries in kept for entry in entries if first <= entry.at <= last)
        return [entry.json for entry in nlargest(period.max_entries, found)]

    def figures(self) -> dict[str, int]:
        """Return the number and size of the stored entries, and the number of entries since the hub's start."""
        entries = sum(map(len, self._entries.values()))
        kept = {"bytes": self._total, "max_bytes": self._max_bytes, "entries": entries}
        return {**kept, "recorded": self.count}


def _size(entry: _LoggedEntry) -> int:
    return getsizeof(entry.json) + LOGGED_ENTRY_BYTES
