"""Decides whether the clock can be trusted: it must be synchronised, or have passed the newest stored time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from appliance.clock import Clock, from_millis, timestamp, to_millis
from appliance.store.record_keys import AUTOMATION_PREFIX, CARD, CLOCK, KEY_PREFIX, STATE_PREFIX, TIMER_PREFIX
from appliance.store.storage import DocumentReader
from appliance.version import MADE_AT


class ClockTrust:
    """Whether the clock is right: a box without a clock chip starts with a time in the past, until NTP sets the
    clock.

    It is trusted once the kernel reports that it is synchronised, or once it shows a time after `newest`, the newest
    stored time; from then on it stays trusted. A `newest` in the future of a synchronised clock came from a wrong
    clock: it is `forgotten`, and `newest` becomes the present.
    """

    def __init__(self, clock: Clock, newest: datetime) -> None:
        self.newest = newest
        self.forgotten: datetime | None = None
        self._clock = clock
        self._is_trusted = False

    def is_trusted(self) -> bool:
        """Return whether the clock is trusted by now."""
        if not self._is_trusted:
            now = self._clock.now()
            if now > self.newest:
                self._is_trusted = True
            elif self._clock.is_synchronised():
                self.trust_now()
        return self._is_trusted

    def trust_now(self) -> None:
        """Trust the clock as it is, because a person confirmed it."""
        now = self._clock.now()
        if self.newest > now:
            self.forgotten, self.newest = self.newest, now
        self._is_trusted = True

    def distrust_reason(self) -> str | None:
        """Return why the clock is not trusted, and what to do; None if it is trusted."""
        if self.is_trusted():
            return None
        now, newest = timestamp(self._clock.now()), timestamp(self.newest)
        return (
            f"the clock shows {now}, nothing synchronises it, and {newest} was stored before; set it, or run `lares "
            f"clock trust` if it is right"
        )


def newest_time(document: DocumentReader) -> datetime:
    """Return the newest of all stored times, but at least the build time of this version, in UTC.

    Times known to come from a wrong clock do not count.
    """
    forgotten = next((value for key, value in document.items(CLOCK) if key == ""), None)
    times = [*(time for prefix, read in _TIMES.items() for time in _times_in(document, prefix, read)), MADE_AT]
    if isinstance(forgotten, dict):
        with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
            at, until = from_millis(forgotten["at"]), from_millis(forgotten["until"])
            times = [at, *(time for time in times if not at < time <= until)]
    return max([*times, *_times_in(document, CARD, lambda card: [datetime.fromisoformat(card["at"])])])


def forgetting(trust: ClockTrust, now: datetime) -> dict[str, Any]:
    """Return the record that invalidates stored times in the future, which came from a wrong clock."""
    until = max(trust.newest, trust.forgotten or trust.newest, MADE_AT)
    return {CLOCK: {"at": to_millis(now), "until": to_millis(max(until, now))}}


def _times_in(document: DocumentReader, prefix: str, read: Callable[[Any], list[datetime]]) -> Iterator[datetime]:
    """Yield the times in all values under the prefix; skip malformed values."""
    for _, value in document.items(prefix):
        with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError, AttributeError):
            yield from (time.astimezone(UTC) for time in read(value) if time.tzinfo is not None)


def _of_automation(value: Any) -> list[datetime]:
    policy = value.get("policy", {})
    found = [policy.get("ended_at"), *policy.get("decided", {}).values()]
    found += value.get("fired", {}).values()
    return [from_millis(each) for each in found if isinstance(each, int)]


_TIMES: Mapping[str, Callable[[Any], list[datetime]]] = {
    KEY_PREFIX: lambda key: [datetime.fromisoformat(key["created_at"])],
    STATE_PREFIX: lambda state: [from_millis(state["at"])],
    AUTOMATION_PREFIX: _of_automation,
    TIMER_PREFIX: lambda timer: [from_millis(timer["started_at"])],
}
"""How the times are read from the values after each prefix."""
