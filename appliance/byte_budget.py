"""A limit for the bytes that waiting work holds in memory, and the number of values in JSON."""

from __future__ import annotations


def count_json_values(encoded: bytes) -> int:
    """Return the maximum number of values in this JSON. A comma or bracket in a string counts as a value."""
    return sum(map(encoded.count, (b",", b"[", b"{")))


class ByteBudget:
    """`held` is the number of bytes that all users of the budget hold now."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.held = 0

    @property
    def is_exceeded(self) -> bool:
        return self.held > self._max_bytes

    def has_room(self, size: int) -> bool:
        """Return whether this number of further bytes is within the limit."""
        return self.held + size <= self._max_bytes
