"""Dictionaries and sets that become small after a burst of devices."""

from __future__ import annotations

from typing import Any, TypeVar

C = TypeVar("C", dict[str, Any], set[str], dict[Any, None])


def shrunk(entries: C) -> C:
    """Return the entries, or a copy if their number is a power of two. Call this function after each removal.

    A dictionary or set keeps the memory of its removed entries until it is copied: 2 MB after 40,000 devices.
    Another reference to the entries does not see later changes of the copy, so do not keep a reference between steps.
    """
    count = len(entries)
    return entries if count & (count - 1) else entries.copy()
