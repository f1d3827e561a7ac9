"""Topics and filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MAX_TOPIC_BYTES = 1_024
"""Maximum bytes of a topic in a configuration; the protocol allows 65,535."""


def is_topic(text: str) -> bool:
    """Return whether messages can be published to this topic: it has no wildcard, and does not begin with `$`."""
    return is_filter(text) and "+" not in text and "#" not in text


def is_filter(text: str) -> bool:
    """Return whether a configuration may use this filter: wildcards only in positions that MQTT allows, and not all
    topics."""
    if not text or text.startswith("$") or "\0" in text or not text.isprintable():
        return False
    if len(text.encode(errors="replace")) > MAX_TOPIC_BYTES or text == "#":
        return False
    levels = text.split("/")
    return all(each in ("+", "#") or not {"+", "#"} & set(each) for each in levels) and "#" not in levels[:-1]


def is_wild(text: str) -> bool:
    return "+" in text or "#" in text


def _matches(levels: Sequence[str], given: Sequence[str]) -> bool:
    """Return whether a filter matches a topic by the rules of MQTT. Both are lists of levels."""
    for at, level in enumerate(levels):
        if level == "#":
            return True
        if at >= len(given) or level not in ("+", given[at]):
            return False
    return len(levels) == len(given)


class Filters:
    """A set of filters, with a fast look-up of those without wildcards."""

    def __init__(self, filters: Iterable[str] = ()) -> None:
        self._exact: set[str] = set()
        self._wild: list[tuple[str, list[str]]] = []
        for each in filters:
            if is_wild(each):
                self._wild.append((each, each.split("/")))
            else:
                self._exact.add(each)

    def matching(self, topic: str) -> list[str]:
        found = [topic] if topic in self._exact else []
        given = topic.split("/") if self._wild else []
        return found + [each for each, levels in self._wild if _matches(levels, given)]
