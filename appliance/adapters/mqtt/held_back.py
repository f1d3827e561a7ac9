"""What is not shown: what contradicts a command for a moment, came twice or too late, or cannot be used, and why."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Mapping

from msgspec import Struct

from appliance.adapters.done import is_shown
from appliance.adapters.mqtt.entities.entity import Entity, Intent, Update
from appliance.adapters.mqtt.payloads import Message
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.errors import Invalid, LaresError
from appliance.home.values import Value

SUPPRESS_SECS = 1.0
"""Seconds after a command for which contradicting states are kept back; a longer fade takes its own time."""

log = logging.getLogger("adapters")

_COLORS = ("color_xy", "color_hs", "color_rgb")


class PendingCommand:
    """One command under way at one entity. `done` is set once its result is shown."""

    def __init__(self, intent: Intent, now: float, transition_secs: float | None) -> None:
        self.done = asyncio.Event()
        self._expected = dict(intent.shows)
        self._begins = intent.begins
        self._until = now + max(SUPPRESS_SECS, transition_secs or 0.0)
        self._kept: dict[str, Value] = {}

    def filter(self, update: Update, now: float) -> Update:
        """The update without the values that contradict the command and come too soon; those are kept."""
        if self._begins is not None or now >= self._until:
            return update
        passed: dict[str, Value] = {}
        for key, value in update.items():
            if key in self._expected and not is_shown(self._expected[key], value):
                self._kept[key] = value
            else:
                self._kept.pop(key, None)
                passed[key] = value
        return passed

    def check(self, update: Update, entity: Entity) -> None:
        """Set `done` if the entity shows the expected values after this update, which must contain one of them."""
        if self._begins is not None:
            is_done = self._begins(entity)
        else:
            is_done = not update.keys().isdisjoint(self._expected) and all(
                self._is_shown(key, value, entity.attributes) for key, value in self._expected.items()
            )
        if is_done:
            self.done.set()

    def is_over(self, now: float) -> bool:
        """Whether no state is kept back any more."""
        return now >= self._until

    def release(self) -> Update:
        """The values that were kept back and not replaced: what the device really shows."""
        kept, self._kept = self._kept, {}
        return kept

    def shown(self, attributes: Mapping[str, Value]) -> str:
        """What is shown of the expected attributes, for a sentence."""
        shown = [f"{key} {_brief(self._kept.get(key, attributes.get(key)))}" for key in self._expected]
        return ", ".join(shown) or "nothing"

    def _is_shown(self, key: str, expected: Value, attributes: Mapping[str, Value]) -> bool:
        if key in _COLORS and key not in attributes and "color_mode" in attributes:
            return True  # shown in another notation
        return key in attributes and is_shown(expected, attributes[key])


def _brief(value: Value) -> str:
    if isinstance(value, dict) and "unit" in value:
        return f"{value.get('value')} {value['unit']}"
    return "nothing" if value is None else str(value)[:80]


SAME_PRESS_SECS = 0.5
"""Seconds within which a press that an event and a trigger report is one."""

MAX_PRESSES = 10_000
"""Presses that are remembered for that, and states of other hubs."""

_HUB_STATE = re.compile(r"lares/[^/]+/devices/[^/]+/state")


class Duplicates:
    """Remembers the latest presses, and the latest states of other hubs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._presses: dict[tuple[str, str], tuple[float, str]] = {}
        self._sequences: dict[str, tuple[int, int]] = {}

    def is_reported_twice(self, device_id: str, name: str, kind: str) -> bool:
        """Whether an entity of another kind has just reported the same press."""
        now = self._clock.monotonic()
        at, reporter = self._presses.get((device_id, name), (-1e9, kind))
        if reporter != kind and now - at < SAME_PRESS_SECS:
            return True
        if len(self._presses) >= MAX_PRESSES:
            self._presses.clear()
        self._presses[device_id, name] = now, kind
        return False

    def is_outdated(self, message: Message) -> bool:
        """Whether a newer state of another hub's device came before it, as a cluster of brokers may deliver them."""
        if _HUB_STATE.fullmatch(message.topic) is None or not message.text:
            return False
        try:
            version = message.json["boot"], message.json["seq"]
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


MAX_REPORTED = 50
"""Announcements and messages that are reported as unusable within `REPEAT_SECS`; one line says that there are more.

The log takes twice as many of a minute."""

REPEAT_SECS = 3600.0
"""Seconds after which a limit that is still exceeded is said again, and as many more faults are reported."""


MORE_FAULTS = (
    f"more than {MAX_REPORTED} announcements and messages of an hour cannot be used; the others are not listed"
)


class Refusal(Struct, frozen=True):
    """Why an announcement or message was not used. `attribute` is what it would have shown, else `announcement`."""

    device_id: str
    attribute: str
    reason: str


def reason_of(error: Exception) -> str:
    """The sentence of an error; of an unforeseen one what it is."""
    if isinstance(error, LaresError | TemplateFailed):
        return str(error)
    return f"cannot be read ({type(error).__name__}: {str(error)[:100]})"


class Reports:
    """Tells of each unusable announcement why, once until it has been mended, and of each limit that is exceeded."""

    def __init__(self, publish: Publisher, clock: Clock) -> None:
        self._publish = publish
        self._clock = clock
        self._reported: dict[str, Refusal] = {}
        self._reported_at: deque[float] = deque(maxlen=MAX_REPORTED)
        self._limits_said: dict[str, float] = {}

    def report(self, refused: Mapping[str, Refusal], limits: Mapping[str, str]) -> None:
        """Publish what has come since the last time; a limit again every `REPEAT_SECS`."""
        self._reported = {key: each for key, each in self._reported.items() if refused.get(key) == each}
        for key, refusal in () if self._is_full() else list(refused.items()):
            if key not in self._reported and not self._is_full():
                self._reported[key] = refusal
                self._reported_at.append(self._clock.monotonic())
                self._publish.dropped(refusal.device_id[:200], refusal.attribute[:200], refusal.reason[:300])
        more = {"faults": MORE_FAULTS} if len(refused) > len(self._reported) else {}
        self._report_limits({**limits, **more})

    def _is_full(self) -> bool:
        """Whether as many as may be were reported lately."""
        times = self._reported_at
        return len(times) == MAX_REPORTED and self._clock.monotonic() - times[0] < REPEAT_SECS

    def _report_limits(self, limits: Mapping[str, str]) -> None:
        now = self._clock.monotonic()
        for kind, reason in limits.items():
            if (said_at := self._limits_said.get(kind)) is None:
                self._publish.dropped(self._publish.name, kind, reason)
            elif now - said_at >= REPEAT_SECS:
                log.warning("%s: %s: %s", self._publish.name, kind, reason)
            else:
                continue
            self._limits_said[kind] = now
