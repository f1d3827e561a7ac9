"""The number of requests for each route, and their response times."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

BUCKETS_SECS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of the duration histogram."""


UNMATCHED = "unmatched"
"""The route name for requests that match no path or method."""


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class RequestCounts:
    """Counts requests by method, route, and status. For each method and route, `times` is a histogram of the
    durations with the bounds `BUCKETS_SECS`, and `seconds` is their sum."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, int]] = Counter()
        self.times: dict[tuple[str, str], list[int]] = {}
        self.seconds: dict[tuple[str, str], float] = {}

    def add(self, method: str, route: str, status: int, seconds: float | None = None) -> None:
        """Count a request for this route with this response status. `seconds` is None for a stream."""
        self.counts[method if method in _METHODS else "other", route, status] += 1
        if seconds is not None:
            which = method, route
            self.times.setdefault(which, [0] * (len(BUCKETS_SECS) + 1))[bisect_left(BUCKETS_SECS, seconds)] += 1
            self.seconds[which] = self.seconds.get(which, 0.0) + seconds

    def copy(self) -> RequestCounts:
        """Return a copy for another thread, because a request can be counted at any time."""
        copied = RequestCounts()
        copied.counts, copied.seconds = self.counts.copy(), self.seconds.copy()
        copied.times = {which: times.copy() for which, times in self.times.items()}
        return copied
