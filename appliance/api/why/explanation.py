"""The form of an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from appliance.history.period import Period
from appliance.hub import Hub

MAX_DECISIONS = 10

MAX_LISTED = 50
"""Maximum number of listed device ids, and of sentences about the same subject."""

ONE, LATEST = Period(limit=1), Period(limit=MAX_DECISIONS)

HOW_TO_LOAD = "correct the errors that `lares check` lists, then run `lares reload`"
"""The advice if the file of an automation, a scene, or a kind is not loaded."""


class Decision(Struct, frozen=True):
    """A decision's time (RFC 3339), and a sentence that describes the decision."""

    at: str
    sentence: str


class Explanation(Struct, frozen=True, kw_only=True):
    """The kind of object, sentences about the object's current state, the decisions, and an automation's fields."""

    kind: str
    id: str
    summary: Sequence[str]
    decisions: Sequence[Decision] = ()
    automation: dict[str, Any] | None = None


def take_first(sentences: Sequence[str], count: int | None = None) -> list[str]:
    """Return the first `MAX_LISTED` sentences, and the number of further ones. If `sentences` contains only the first
    ones, `count` is the number of all."""
    more = (len(sentences) if count is None else count) - MAX_LISTED
    return [*sentences[:MAX_LISTED], *([f"{more} more of these"] if more > 0 else [])]


def list_safe_mode(hub: Hub) -> list[str]:
    """Return the reason why enabled automations do not run, if there is one."""
    return [] if hub.safe_mode.reason is None else [hub.safe_mode.reason]


def word_for(hub: Hub, device_id: str) -> str:
    """Return the device's alias, or its id if it has no alias."""
    found = hub.registry.find_device(device_id)
    return device_id if found is None or found.alias is None else found.alias
