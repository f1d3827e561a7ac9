"""A command that waits for its result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from appliance.adapters.done import is_shown
from appliance.adapters.mqtt.platforms.entity import Entity, Intent, Update
from appliance.home.values import Value

SUPPRESS_SECS = 1.0
"""Seconds after a command in which contradicting states are held back. A longer fade extends this time."""

_COLORS = ("color_xy", "color_hs", "color_rgb")


class PendingCommand:
    """A command in progress at one entity. `done` is set once the result is shown. It is also set if the command
    `is_refused`, because the entity now has a state after which the result cannot come."""

    def __init__(self, intent: Intent, now: float, transition_secs: float | None) -> None:
        self.done = asyncio.Event()
        self._expected = dict(intent.shows)
        self._begins = intent.begins
        self._until = now + max(SUPPRESS_SECS, transition_secs or 0.0)
        self._kept: dict[str, Value] = {}
        self._fails = intent.fails
        self._is_reported = False
        self.is_refused = False

    def filter(self, update: Update, now: float) -> Update:
        """Return the update without values that contradict the command too early. Those values are held back."""
        if self._begins is not None or now >= self._until:
            return update
        passed: dict[str, Value] = {}
        for key, value in update.items():
            if key in self._expected and value not in self._fails and not is_shown(self._expected[key], value):
                self._kept[key] = value
            else:
                self._kept.pop(key, None)
                passed[key] = value
        return passed

    def refuse(self, update: Update, shown: Mapping[str, Value]) -> None:
        """Set `done` and `is_refused` if the update means that the command has failed. `shown` are the values before
        the update."""
        fails = (update.get(key) in self._fails and shown.get(key) not in self._fails for key in self._expected)
        if not self.done.is_set() and any(fails):
            self.is_refused = True
            self.done.set()

    def check(self, update: Update, entity: Entity) -> None:
        """Set `done` if the entity shows the expected values, and an update contained one of them.

        An entity that was reported unavailable does not confirm a result.
        """
        self._is_reported |= not update.keys().isdisjoint(self._expected)
        if self._begins is not None:
            is_done = self._begins(entity)
        else:
            is_done = self._is_reported and all(
                self._is_shown(key, value, entity.attributes) for key, value in self._expected.items()
            )
        if is_done and not entity.availability.is_denied:
            self.done.set()

    def is_over(self, now: float) -> bool:
        """Return whether states are no longer held back."""
        return now >= self._until

    def release(self) -> Update:
        """Return the values that were held back and not replaced, which are the device's true state."""
        kept, self._kept = self._kept, {}
        return kept

    def shown(self, attributes: Mapping[str, Value]) -> str:
        """Return the shown values of the expected attributes, for an error message."""
        shown = [f"{key} {_brief(self._kept.get(key, attributes.get(key)))}" for key in self._expected]
        return ", ".join(shown) or "nothing"

    def _is_shown(self, key: str, expected: Value, attributes: Mapping[str, Value]) -> bool:
        if key in _COLORS and key not in attributes and "color_mode" in attributes:
            return True  # the colour is shown in another notation
        return key in attributes and is_shown(expected, attributes[key])


def _brief(value: Value) -> str:
    if isinstance(value, dict) and "unit" in value:
        return f"{value.get('value')} {value['unit']}"
    return "nothing" if value is None else str(value)[:80]
