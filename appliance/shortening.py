"""Shortens texts for people."""

from __future__ import annotations


def shorten(text: str, max_chars: int) -> str:
    """Return the text. If it is longer than `max_chars`, cut it, and end it with an ellipsis."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"
