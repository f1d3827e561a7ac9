"""Button presses: converts Matter's switch events to Lares events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.adapters.matter.clusters import SWITCH
from appliance.adapters.matter.nodes import Endpoint
from appliance.home.values import Value

_LATCHES, _RELEASES, _REPORTS_LONG, _COUNTS, _TAKES_ACTIONS = 1, 4, 8, 16, 32
"""Feature bits of a switch: latching, release, long press, multiple presses, and the alternative event for
multiple presses."""

_LATCHED, _PRESSED, _LONG, _SHORT_RELEASE, _LONG_RELEASE, _COUNTED = 0, 1, 2, 3, 4, 6
"""Event numbers of the switch cluster. Event 5, which reports that a series of presses continues, is ignored."""

_BY_COUNT = {1: "single", 2: "double"}
"""Event names by number of presses. Three or more presses are `triple`, with the exact number in the event's data."""


def events_of(endpoint: Endpoint) -> list[str]:
    """Return the events that a switch can send, according to its features. If the endpoint is not a switch, return
    an empty list."""
    if SWITCH not in endpoint.clusters:
        return []
    if endpoint.has_feature(SWITCH, _LATCHES):
        return ["hold", "release"]
    counts = endpoint.has_feature(SWITCH, _COUNTS) or endpoint.has_feature(SWITCH, _TAKES_ACTIONS)
    long = ["long", "release"] if endpoint.has_feature(SWITCH, _REPORTS_LONG) else []
    return ["single", *(["double", "triple"] if counts else []), *long]


def press_of(endpoint: Endpoint, event_id: Any, data: Any) -> tuple[str, Mapping[str, Value]] | None:
    """Return the name and data of the press. If another event reports the same press, return None."""
    fields = data if isinstance(data, dict) else {}
    position = fields.get("newPosition", fields.get("previousPosition"))
    more: dict[str, Value] = {"position": position} if isinstance(position, int) else {}
    counts = endpoint.has_feature(SWITCH, _COUNTS) or endpoint.has_feature(SWITCH, _TAKES_ACTIONS)
    releases = endpoint.has_feature(SWITCH, _RELEASES)
    if event_id == _LATCHED:
        return ("hold" if position else "release"), more
    if event_id == _LONG:
        return "long", more
    if event_id == _LONG_RELEASE:
        return "release", more
    if event_id == _COUNTED:
        count = fields.get("totalNumberOfPressesCounted")
        if not isinstance(count, int) or count < 1:  # something interrupted the series of presses
            return None
        return _BY_COUNT.get(count, "triple"), {**more, "count": count}
    is_single = not counts and event_id == (_SHORT_RELEASE if releases else _PRESSED)
    return ("single", more) if is_single else None
