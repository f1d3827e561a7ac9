"""The rules for topics and filters."""

from __future__ import annotations

from collections.abc import Sequence

MAX_TOPIC_BYTES = 1_024
"""Maximum size of a topic in a configuration. The protocol allows 65,535 bytes."""

MAX_TOPIC_LEVELS = 100
"""Maximum number of levels of a topic in a configuration. Mosquitto disconnects a client that subscribes or publishes
to more than 201 levels, and EMQX accepts 128."""


def is_topic(text: str) -> bool:
    """Return whether messages can be published to this topic. A topic has no wildcard, and does not begin with
    `$`."""
    return is_filter(text) and "+" not in text and "#" not in text


def is_filter(text: str) -> bool:
    """Return whether a configuration may use this filter. Wildcards must be at valid positions, and must not match
    all topics."""
    if not text or text.startswith("$") or "\0" in text or not text.isprintable():
        return False
    if is_too_long(text) or text == "#":
        return False
    levels = text.split("/")
    return all(each in ("+", "#") or not {"+", "#"} & set(each) for each in levels) and "#" not in levels[:-1]


def is_too_long(text: str) -> bool:
    return text.count("/") >= MAX_TOPIC_LEVELS or len(text.encode(errors="replace")) > MAX_TOPIC_BYTES


def is_wild(filter_: str) -> bool:
    return "+" in filter_ or "#" in filter_


def matches(levels: Sequence[str], given: Sequence[str]) -> bool:
    """Return whether the levels of a filter match the levels of a topic by the rules of MQTT."""
    for at, level in enumerate(levels):
        if level == "#":
            return True
        if at >= len(given) or level not in ("+", given[at]):
            return False
    return len(levels) == len(given)
