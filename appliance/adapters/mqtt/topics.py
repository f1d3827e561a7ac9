"""Topics and filters: what may be one, and which filters a topic matches."""

from __future__ import annotations

from collections.abc import Iterable

MAX_TOPIC_BYTES = 1_024
"""Bytes of a topic that a configuration may name; the protocol would allow 65,535."""


def is_topic(text: str) -> bool:
    """Whether one may publish to this: no wildcard, nothing of the broker's own."""
    return is_filter(text) and "+" not in text and "#" not in text


def is_filter(text: str) -> bool:
    """Whether one may subscribe to this because a configuration says so: `+` and `#` where they may stand."""
    if not text or text.startswith("$") or "\0" in text or not text.isprintable():
        return False
    if len(text.encode(errors="replace")) > MAX_TOPIC_BYTES or text == "#":
        return False
    levels = text.split("/")
    return all(each in ("+", "#") or not {"+", "#"} & set(each) for each in levels) and "#" not in levels[:-1]


def matches(pattern: str, topic: str) -> bool:
    """Whether a topic is one of those that a filter names."""
    wanted, given = pattern.split("/"), topic.split("/")
    for at, level in enumerate(wanted):
        if level == "#":
            return True
        if at >= len(given) or level not in ("+", given[at]):
            return False
    return len(wanted) == len(given)


class Filters:
    """Many filters, and quickly those that match a topic."""

    def __init__(self, filters: Iterable[str] = ()) -> None:
        self._exact: set[str] = set()
        self._wild: list[str] = []
        for each in filters:
            if "+" in each or "#" in each:
                self._wild.append(each)
            else:
                self._exact.add(each)

    def matching(self, topic: str) -> list[str]:
        """The filters that this topic matches."""
        found = [topic] if topic in self._exact else []
        return found + [each for each in self._wild if matches(each, topic)]
