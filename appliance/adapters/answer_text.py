"""Shortens the texts of servers for error messages."""

from __future__ import annotations

from appliance.shortening import shorten

MAX_ANSWER_CHARS = 200
"""Maximum length of a server's text in an error message."""


def one_line(text: str, max_chars: int = MAX_ANSWER_CHARS) -> str:
    """Return a server's text as one line without control characters. Cut the text after `max_chars` characters."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return shorten(line, max_chars)
