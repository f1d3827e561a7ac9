"""What the events of a Matter switch mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.adapters.matter.clusters import SWITCH
from appliance.adapters.matter.nodes import Endpoint
from appliance.home.values import Value

_LATCHES, _RELEASES, _TELLS_LONG, _COUNTS, _TAKES_ACTIONS = 1, 4, 8, 16, 32
"""Features: it stays where it is put; it tells releases, and long presses; it counts, in one of two ways."""

_LATCHED, _PRESSED, _LONG, _SHORT_RELEASE, _LONG_RELEASE, _COUNTED = 0, 1, 2, 3, 4, 6
"""Events of the cluster. 5 says that presses are still being counted."""

_BY_COUNT = {1: "single", 2: "double"}
"""More are `triple`; how many they were, the data says."""


def events_of(endpoint: Endpoint) -> list[str]:
    """The events that a switch may have, by its features; none for what is no switch."""
    if SWITCH not in endpoint.clusters:
        return []
    if endpoint.has_feature(SWITCH, _LATCHES):
        return ["hold", "release"]
    counts = endpoint.has_feature(SWITCH, _COUNTS) or endpoint.has_feature(SWITCH, _TAKES_ACTIONS)
    long = ["long", "release"] if endpoint.has_feature(SWITCH, _TELLS_LONG) else []
    return ["single", *(["double", "triple"] if counts else []), *long]


def press_of(endpoint: Endpoint, event_id: Any, data: Any) -> tuple[str, Mapping[str, Value]] | None:
    """The event of the device and its data; None where the switch says it once more in another way."""
    told = data if isinstance(data, dict) else {}
    position = told.get("newPosition", told.get("previousPosition"))
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
        count = told.get("totalNumberOfPressesCounted")
        if not isinstance(count, int) or count < 1:  # a press that was broken off
            return None
        return _BY_COUNT.get(count, "triple"), {**more, "count": count}
    is_single = not counts and event_id == (_SHORT_RELEASE if releases else _PRESSED)
    return ("single", more) if is_single else None
