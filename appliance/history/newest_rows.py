"""Keeps the newest rows of files, so that reading a long history needs little memory."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush, heapreplace
from operator import itemgetter
from typing import Generic, TypeVar

T = TypeVar("T")

Place = tuple[str, int]
"""The month of a line, and the line's offset in the month's file."""


class NewestRows(Generic[T]):
    """The rows of the newest `max_spans` spans that contain rows. A span has `span_ms` milliseconds. Of rows with
    equal times, the rows written last are newer."""

    def __init__(self, max_spans: int, span_ms: int = 1) -> None:
        self._max_spans = max_spans
        self._span_ms = span_ms
        self._spans: list[int] = []  # a heap
        self._rows: dict[int, list[tuple[int, Place, int, T]]] = {}

    def add(self, rows: Iterable[tuple[int, T]], place: Place) -> None:
        """Add the rows of a line with their times. Call this method once per line."""
        for number, (at, row) in enumerate(rows):
            span = at // self._span_ms
            if span not in self._rows:
                if len(self._spans) < self._max_spans:
                    heappush(self._spans, span)
                elif span > self._spans[0]:
                    del self._rows[heapreplace(self._spans, span)]
                else:
                    continue
                self._rows[span] = []
            self._rows[span].append((at, place, number, row))

    def is_full_since(self, at: int) -> bool:
        """Return whether no row that is as old as this time, or older, would be kept."""
        return len(self._spans) == self._max_spans and self._spans[0] * self._span_ms > at

    def take_oldest_first(self) -> list[T]:
        """Remove and return all rows. Other threads can run between two spans; sorting all rows would block them."""
        taken: list[T] = []
        while self._spans:
            rows = self._rows.pop(heappop(self._spans))
            taken += (row for *_, row in sorted(rows, key=itemgetter(0, 1, 2)))
        return taken
