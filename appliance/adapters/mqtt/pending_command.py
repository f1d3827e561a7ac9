"""A command that waits for the result that its entity reports."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping

from appliance.adapters.confirmation import describe_value, equals_rounded
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.numbers import stated_number
from appliance.adapters.mqtt.platforms.payloads import Update
from appliance.home.values import Value

SUPPRESS_SECS = 1.0
"""Seconds after a command during which contradicting states are held back. A longer fade extends this time."""

_COLORS = ("color_xy", "color_hs", "color_rgb")


class PendingCommand:
    """A running command to one entity. If the entity is available, call `end_if_already_shown` once the command is
    sent. For each update of the entity, call `filter` before the values are set, and `check` after that.

    `ended` is set once the entity has reported the result, or that the command has failed. Only in the second case is
    `has_failed` true.
    """

    def __init__(
        self, intent: Intent, before: Mapping[str, Value], now: float, transition_secs: float | None
    ) -> None:
        self.ended = asyncio.Event()
        self._expected = dict(intent.shows)
        self._before = {key: before.get(key) for key in self._expected}
        self._begins = intent.begins
        self._until = now + max(SUPPRESS_SECS, transition_secs or 0.0)
        self._kept: dict[str, Value] = {}
        self._fails = intent.fails
        self._step = intent.step
        self._are_values_current = False
        self.has_failed = False

    def filter(self, update: Update, shown: Mapping[str, Value], now: float) -> Update:
        """Return the update without the values that contradict the command. Hold those values back.

        If the update means that the command has failed, end the command. `shown` contains the values before the
        update.
        """
        passed = self._hold_back(update, now)
        fails = (passed.get(key) in self._fails and shown.get(key) not in self._fails for key in self._expected)
        if not self.ended.is_set() and any(fails):
            self.has_failed = True
            self.ended.set()
        return passed

    def _hold_back(self, update: Update, now: float) -> Update:
        if self._begins is not None or now >= self._until:
            return update
        passed: dict[str, Value] = {}
        for key, value in update.items():
            if key in self._expected and value not in self._fails and not self._equals(key, value):
                self._kept[key] = value
            else:
                self._kept.pop(key, None)
                passed[key] = value
        return passed

    def end_if_already_shown(self, entity: Entity) -> None:
        """End the command if the entity has the expected values. Call this only if the entity is available: its
        values are then current, and many devices report only changes."""
        self._are_values_current = True
        self._end_if_shown(entity)

    def check(self, update: Update, entity: Entity) -> None:
        """End the command if the entity has the expected values. If the entity was unavailable when the command was
        sent, it must have reported one of these values since."""
        self._are_values_current |= not update.keys().isdisjoint(self._expected)
        self._end_if_shown(entity)

    def _end_if_shown(self, entity: Entity) -> None:
        """End the command if its result is shown. An entity that was reported unavailable does not confirm a
        result."""
        if self._begins is not None:
            is_done = self._begins(entity)
        else:
            is_done = self._are_values_current and all(
                self._is_shown(key, entity.attributes) for key in self._expected
            )
        if is_done and not entity.availability.is_denied:
            self.ended.set()

    def is_over(self, now: float) -> bool:
        """Return whether states are no longer held back."""
        return now >= self._until

    def release(self) -> Update:
        """Return the values that are still held back. These values are the device's true state."""
        kept, self._kept = self._kept, {}
        return kept

    def shown(self, attributes: Mapping[str, Value]) -> str:
        """Format the reported values of the expected attributes for an error message."""
        shown = [f"{key} {describe_value(self._kept.get(key, attributes.get(key)))}" for key in self._expected]
        return ", ".join(shown) or "nothing"

    def _is_shown(self, key: str, attributes: Mapping[str, Value]) -> bool:
        if key in _COLORS and key not in attributes and "color_mode" in attributes:
            return True  # the colour is reported in another notation
        return key in attributes and self._equals(key, attributes[key])

    def _equals(self, key: str, seen: Value) -> bool:
        """Return whether a value equals the expected value, apart from rounding in the device.

        An attribute with a step can also differ by half a step. If its value has not changed since the command, it
        must not differ by more.
        """
        expected = self._expected[key]
        is_equal = equals_rounded(expected, seen)
        if self._step is None:
            return is_equal
        is_nearest = abs(_number(expected) - _number(seen)) <= self._step / 2 + 1e-9
        return is_equal and is_nearest if seen == self._before[key] else is_equal or is_nearest


def _number(value: Value) -> float:
    found = stated_number(value.get("value") if isinstance(value, dict) else value)
    return math.nan if found is None else found
