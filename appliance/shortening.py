"""Shortens texts for people."""

from __future__ import annotations

from collections.abc import Sequence


def shorten(text: str, max_chars: int) -> str:
    """Return the text. If it is longer than `max_chars`, cut it, and end it with an ellipsis."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def join_first(texts: Sequence[str], max_count: int, separator: str = ", ", count: int = 0) -> str:
    """Join the first texts, and state the number of the others: `a, b, and 3 more`. If `texts` does not contain all
    texts, `count` is their number."""
    more = max(count, len(texts)) - max_count
    return separator.join([*texts[:max_count], *([f"and {more} more"] if more > 0 else [])])
