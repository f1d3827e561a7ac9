"""Reports about the messages of one broker: faults, exceeded limits, and costly messages."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Mapping

from appliance.adapters.mqtt.refusals import Refusal, Refusals
from appliance.adapters.mqtt.router import Router
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock

log = logging.getLogger("adapters")

MAX_REPORTED = 50
"""Maximum number of unusable announcements and messages that are reported within `REPEAT_SECS`. One additional log
line summarizes all others.

The log accepts twice as many lines per minute.
"""

REPEAT_SECS = 3600.0
"""Seconds between two log lines about the same exceeded limit, or about costly messages. `MAX_REPORTED` counts faults
within these seconds."""

MORE_FAULTS = (
    f"more than {MAX_REPORTED} announcements and messages were unusable within an hour; the rest are not listed"
)

COSTS_TOO_MUCH = "the messages take too much processor time, so they wait; each topic keeps only its newest message"


class FaultReports:
    """Reports each unusable announcement and message once until it is fixed, and each exceeded limit."""

    def __init__(self, publish: Publisher, clock: Clock) -> None:
        self._publish = publish
        self._clock = clock
        self._reported: dict[str, Refusal] = {}
        self._reported_at: deque[float] = deque(maxlen=MAX_REPORTED)
        self._limits_logged_at: dict[str, float] = {}

    def is_current(self, refusals: Refusals) -> bool:
        """Return whether `report` has nothing to do, now or later."""
        return not refusals.limits and refusals.by_key == self._reported

    def report(self, refusals: Refusals) -> None:
        """Publish the faults and limits that are new since the last call. Repeat a limit every `REPEAT_SECS`."""
        refused = refusals.by_key
        for key, refusal in [(key, each) for key, each in self._reported.items() if refused.get(key) != each]:
            del self._reported[key]
            self._publish.drop_ended(refusal.device_id[:200], refusal.attribute[:200])
        for key, refusal in () if self._is_full() else list(refused.items()):
            if key not in self._reported and not self._is_full():
                self._reported[key] = refusal
                self._reported_at.append(self._clock.monotonic())
                self._publish.dropped(refusal.device_id[:200], refusal.attribute[:200], refusal.reason[:300])
        more = {"faults": MORE_FAULTS} if len(refused) > len(self._reported) else {}
        self._report_limits({**refusals.limits, **more})

    def _is_full(self) -> bool:
        """Return whether the maximum number of faults was reported recently."""
        times = self._reported_at
        return len(times) == MAX_REPORTED and self._clock.monotonic() - times[0] < REPEAT_SECS

    def _report_limits(self, limits: Mapping[str, str]) -> None:
        now = self._clock.monotonic()
        for kind, reason in limits.items():
            if (logged_at := self._limits_logged_at.get(kind)) is None:
                self._publish.dropped(self._publish.name, kind, reason)
            elif now - logged_at >= REPEAT_SECS:
                log.warning("%s: %s: %s", self._publish.name, kind, reason)
            else:
                continue
            self._limits_logged_at[kind] = now


class CostReports:
    """Reports a device or configuration topic that sends too many costly messages, at most once per `REPEAT_SECS`."""

    def __init__(self, publish: Publisher, router: Router, clock: Clock) -> None:
        self._publish = publish
        self._router = router
        self._clock = clock
        self._reported_at = -math.inf

    def report(self, topic: str) -> None:
        now = self._clock.monotonic()
        if now - self._reported_at >= REPEAT_SECS:
            self._reported_at = now
            self._publish.dropped((self._router.device_id_at(topic) or topic)[:200], "messages", COSTS_TOO_MUCH)
