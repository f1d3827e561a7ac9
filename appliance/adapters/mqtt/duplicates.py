"""Detects presses that are reported twice, and outdated states of other hubs."""

from __future__ import annotations

import re

from appliance.adapters.mqtt.messages import Message
from appliance.clock import Clock
from appliance.errors import Invalid

SAME_PRESS_SECS = 0.5
"""If an event and a trigger report a press within these seconds, they report the same press."""

MAX_PRESSES = 10_000
"""Maximum number of remembered presses, and of remembered states of other hubs."""

_HUB_STATE = re.compile(r"lares/[^/]+/devices/[^/]+/state")


class Duplicates:
    """Remembers the last presses, and the newest version of each state of another hub."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._presses: dict[tuple[str, str], tuple[float, str]] = {}
        self._sequences: dict[str, tuple[int, int]] = {}

    def is_reported_twice(self, device_id: str, name: str, kind: str) -> bool:
        """Return whether an entity of another kind has just reported the same press."""
        now = self._clock.monotonic()
        at, reporter = self._presses.get((device_id, name), (-1e9, kind))
        if reporter != kind and now - at < SAME_PRESS_SECS:
            return True
        if len(self._presses) >= MAX_PRESSES:
            self._presses.clear()
        self._presses[device_id, name] = now, kind
        return False

    def is_outdated(self, message: Message) -> bool:
        """Return whether a newer state of the other hub's device has already arrived. A cluster of brokers can
        deliver states in the wrong order."""
        if _HUB_STATE.fullmatch(message.topic) is None or not message.text:
            return False
        try:
            state = message.json
            version = state["boot"], state["seq"]
        except (Invalid, TypeError, LookupError):
            return False
        if not all(isinstance(each, int) for each in version):
            return False
        known = self._sequences.get(message.topic)
        if known is not None and version < known:
            return True
        if len(self._sequences) >= MAX_PRESSES:
            self._sequences.clear()
        self._sequences[message.topic] = version
        return False
