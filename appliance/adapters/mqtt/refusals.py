"""Announcements and messages that cannot be used, and how they are reported."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping

from msgspec import Struct

from appliance.adapters.mqtt.templates.template_limits import TemplateFailed
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.errors import LaresError

log = logging.getLogger("adapters")


MAX_REPORTED = 50
"""Announcements and messages that are reported as unusable within `REPEAT_SECS`; one line says that there are more.

The log takes twice as many of a minute."""


REPEAT_SECS = 3600.0
"""Seconds after which a limit that is still exceeded is said again, and as many more faults are reported."""


MORE_FAULTS = (
    f"more than {MAX_REPORTED} announcements and messages of an hour cannot be used; the others are not listed"
)


class Refusal(Struct, frozen=True):
    """Why an announcement or message was not used. `attribute` is what it would have shown, otherwise `announcement`."""

    device_id: str
    attribute: str
    reason: str


def reason_of(error: Exception) -> str:
    """Return the sentence of an error; of an unforeseen one what it is."""
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
        """Return whether as many as may be were reported lately."""
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
