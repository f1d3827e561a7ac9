"""A limit for the bytes that waiting work holds in memory, and the memory that decoded JSON needs."""

from __future__ import annotations

JSON_VALUE_BYTES = 200
"""The assumed memory of a decoded JSON value in bytes, in addition to its text. In Python, an empty array needs 90
bytes, and a small object 210. In Lua, a table needs 160. Arrays and objects count twice if a comma follows."""


def count_json_values(encoded: bytes) -> int:
    """Return the maximum number of values in this JSON. A comma or bracket in a string counts as a value."""
    return sum(map(encoded.count, (b",", b"[", b"{")))


def estimate_json_memory(encoded: bytes) -> int:
    """Return the bytes that this JSON needs in Python and in a Lua worker after it is decoded."""
    return len(encoded) + JSON_VALUE_BYTES * count_json_values(encoded)


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
