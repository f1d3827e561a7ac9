"""Decides whether the clock can be trusted. A trusted clock is synchronised, or later than the newest stored time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from appliance.clock import Clock, from_millis, timestamp, to_millis
from appliance.store.record_keys import AUTOMATION_PREFIX, CARD, CLOCK, KEY_PREFIX, STATE_PREFIX, TIMER_PREFIX
from appliance.store.records import read_one
from appliance.store.storage import DocumentReader
from appliance.version import MADE_AT


class ClockTrust:
    """Decides whether the clock is right. A machine without a clock chip starts with a time in the past until NTP
    sets the clock.

    The clock becomes trusted when the kernel reports synchronisation, or when its time is after `newest`, the newest
    stored time. A trusted clock remains trusted. If a synchronised clock is before `newest`, a wrong clock stored
    `newest`. In this case, the value of `newest` moves to `forgotten`, and the current time becomes the new value.
    """

    def __init__(self, clock: Clock, newest: datetime) -> None:
        self.newest = newest
        self.forgotten: datetime | None = None
        self._clock = clock
        self._is_trusted = False
        self._is_recorded = False

    def is_trusted(self) -> bool:
        if not self._is_trusted:
            now = self._clock.now()
            if now > self.newest:
                self._is_trusted = True
            elif self._clock.is_synchronised():
                self.trust_now()
        return self._is_trusted

    def time_to_store(self) -> datetime:
        """Return the current time. If the clock is not trusted, return the newest stored time."""
        return self._clock.now() if self.is_trusted() else self.newest

    def trust_now(self) -> None:
        """Trust the clock because a person confirmed the time."""
        now = self._clock.now()
        if self.newest > now:
            self.forgotten, self.newest = self.newest, now
        self._is_trusted = True

    def record(self, now: datetime) -> dict[str, Any]:
        """Return the record that makes stored times in the future invalid, because a wrong clock stored them."""
        until = max(self.newest, self.forgotten or self.newest, MADE_AT)
        return {CLOCK: {"at": to_millis(now), "until": to_millis(max(until, now))}}

    def has_new_record(self) -> bool:
        """Return whether the record of a forgotten time is not stored yet."""
        return self.forgotten is not None and not self._is_recorded

    def note_recorded(self) -> None:
        self._is_recorded = True

    def distrust_reason(self) -> str | None:
        """Return the reason why the clock is not trusted, and what to do about it. Return None if the clock is
        trusted."""
        if self.is_trusted():
            return None
        now, newest = timestamp(self._clock.now()), timestamp(self.newest)
        return (
            f"the clock shows {now} without synchronisation, but the later time {newest} is stored; set the clock, "
            f"or run `lares clock trust` if the clock is right"
        )


def newest_time(document: DocumentReader) -> datetime:
    """Return the newest stored time in UTC, but at least the release date of this version. Ignore times from a wrong
    clock."""
    forgotten = read_one(document, CLOCK, lambda value: value)
    times = [*(time for prefix, read in _TIMES.items() for time in _times_in(document, prefix, read)), MADE_AT]
    if isinstance(forgotten, dict):
        with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
            at, until = from_millis(forgotten["at"]), from_millis(forgotten["until"])
            times = [at, *(time for time in times if not at < time <= until)]
    return max([*times, *_times_in(document, CARD, lambda card: [datetime.fromisoformat(card["at"])])])


def _times_in(document: DocumentReader, prefix: str, read: Callable[[Any], list[datetime]]) -> Iterator[datetime]:
    """Yield the times in all values with the prefix. Skip malformed values."""
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
"""Maps a key prefix to the function that reads the times from a value."""
