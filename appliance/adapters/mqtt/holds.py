"""What a command waits for, and what is held back meanwhile, so that a lamp never flips back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from appliance.adapters.mqtt.entities.entity import Intent, Update
from appliance.home.values import Value
from appliance.tables.checks import is_number

HOLD_SECS = 1.0
"""Seconds after a command for which states that contradict it are held back; longer for a longer fade."""

_TOLERANCES = {"r": 8, "g": 8, "b": 8, "hue": 4, "saturation": 4, "x": 0.03, "y": 0.03}
_COLORS = ("color_xy", "color_hs", "color_rgb")


class Hold:
    """One command under way at one entity. `done` is set once its result is shown."""

    def __init__(self, intent: Intent, now: float, transition_secs: float | None) -> None:
        self.done = asyncio.Event()
        self._wanted = dict(intent.shows)
        self._begins = intent.begins
        self._until = now + max(HOLD_SECS, transition_secs or 0.0)
        self._kept: dict[str, Value] = {}

    def sift(self, update: Update, now: float) -> Update:
        """The update without what contradicts the command and comes too soon; that is kept for later."""
        if self._begins is not None or now >= self._until:
            return update
        sound: dict[str, Value] = {}
        for key, value in update.items():
            if key in self._wanted and not is_shown(self._wanted[key], value):
                self._kept[key] = value
            else:
                self._kept.pop(key, None)
                sound[key] = value
        return sound

    def judge(self, update: Update, attributes: Mapping[str, Value]) -> None:
        """Set `done` if what is shown now, after this update, is what was asked."""
        if self._begins is not None:
            if self._begins(attributes):
                self.done.set()
        elif update and all(self._holds(key, wanted, attributes) for key, wanted in self._wanted.items()):
            self.done.set()

    def is_over(self, now: float) -> bool:
        """Whether nothing is held back any more."""
        return now >= self._until

    def release(self) -> Update:
        """What was held back to the end: the device insists."""
        kept, self._kept = self._kept, {}
        return kept

    def shown(self, attributes: Mapping[str, Value]) -> str:
        """What is shown in place of what was asked, for a sentence."""
        missing = [f"{key} {_brief(self._kept.get(key, attributes.get(key)))}" for key in self._wanted]
        return ", ".join(missing) or "nothing"

    def _holds(self, key: str, wanted: Value, attributes: Mapping[str, Value]) -> bool:
        if key in _COLORS and key not in attributes and "color_mode" in attributes:
            return True
        return key in attributes and is_shown(wanted, attributes[key])


def is_shown(wanted: Value, seen: Value) -> bool:
    """Whether a value is what was asked for, as near as devices are."""
    if isinstance(wanted, dict) and isinstance(seen, dict):
        if "unit" in wanted:
            if wanted["unit"] != seen.get("unit"):
                return False
            return _is_near(wanted["value"], seen.get("value"), abs(wanted["value"]) * 0.02 + 0.051)
        return all(_is_near(value, seen.get(key), _TOLERANCES.get(key, 0)) for key, value in wanted.items())
    if is_number(wanted) and is_number(seen):
        return _is_near(wanted, seen, 1 if abs(wanted) > 2 else 0.01)
    return bool(wanted == seen)


def _is_near(wanted: Value, seen: Value, tolerance: float) -> bool:
    return is_number(wanted) and is_number(seen) and abs(wanted - seen) <= tolerance


def _brief(value: Value) -> str:
    if isinstance(value, dict) and "unit" in value:
        return f"{value.get('value')} {value['unit']}"
    return "nothing" if value is None else str(value)[:80]
