"""Measures memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def peak_bytes(function: Callable[[], object]) -> int:
    """Return the maximum memory that the function occupies, with its result."""
    tracemalloc.start()
    try:
        result = function()
        peak = tracemalloc.get_traced_memory()[1]
        del result
        return peak
    finally:
        tracemalloc.stop()
