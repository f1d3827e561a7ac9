"""Presses: their standard names, and presses that are reported twice."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.clock import Clock

SAME_PRESS_SECS = 0.5
"""If an event and a trigger report a press within these seconds, they report the same press."""

MAX_PRESSES = 10_000
"""Maximum number of remembered presses."""

_PREFIXES = ("action_", "button_", "click_", "btn_", "event_", "key_")
"""Prefixes that devices add to the name of a press."""

_PRESSES: Mapping[str, tuple[str, ...]] = {
    "single": ("single_press", "single_click", "single_push", "single_tap", "short_press", "short_click", "1_click"),
    "double": ("double_press", "double_click", "double_push", "double_tap", "2_click"),
    "triple": ("triple_press", "triple_click", "triple_push", "triple_tap", "3_click"),
    "long": ("long_press", "long_click", "long_push", "long_tap"),
    "release": ("long_release", "short_release", "hold_release", "long_press_release"),
}
"""The words that devices use for each standard name. A word can be the whole name, its beginning, or its end."""

_WHOLE_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("short", "press", "pressed", "click", "clicked", "tap", "s"), "single"),
    "press_release": "release",
    "ss": "double",
    "sss": "triple",
    "l": "long",
    "held": "hold",
    "released": "release",
}
"""Standard names by announced word. Such a word must be the whole name."""

_WORDS = sorted(((raw, word) for word, each in _PRESSES.items() for raw in each), key=lambda pair: -len(pair[0]))


def press_name(raw: str) -> str:
    """Return an event's name in lower case and without prefixes. For a press, return the standard name."""
    name = _without_prefix(raw.lower().replace(" ", "_"))
    if name in _WHOLE_NAMES:
        return _WHOLE_NAMES[name]
    for given, word in _WORDS:
        if name == given:
            return word
        if name.startswith(f"{given}_"):
            return f"{word}_{_without_prefix(name.removeprefix(f'{given}_'))}"
        if name.endswith(f"_{given}"):
            return f"{name.removesuffix(f'_{given}')}_{word}"
    return f"single_{_without_prefix(name.removeprefix('press_'))}" if name.startswith("press_") else name


def _without_prefix(name: str) -> str:
    while (prefix := next((each for each in _PREFIXES if name.startswith(each) and name != each), "")) != "":
        if any(name == given for given, _ in _WORDS):
            break
        name = name.removeprefix(prefix)
    return name


class RecentPresses:
    """The last presses of all devices, because a device can report a press as an event and as a trigger."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._presses: dict[tuple[str, str], tuple[float, str]] = {}

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
