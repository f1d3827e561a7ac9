"""Times: the newest time that is stored, which the clock must have passed before it can be trusted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from appliance.clock import ClockTrust, from_millis, to_millis
from appliance.store.records import CARD, KEY_PREFIX, STATE_PREFIX, DocumentReader
from appliance.version import MADE_AT

CLOCK = "clock/trust"
"""`{at, until}`, milliseconds since 1970: stored times after `at`, up to `until`, are those of a wrong clock."""

AUTOMATION_PREFIX, TIMER_PREFIX = "automation/", "timer/"
"""What automations keep; see `automations/states.py` and `automations/timers.py`."""


def newest_time(document: DocumentReader) -> datetime:
    """The newest time of anything that is stored, and at least when this version was made; in UTC.

    Times that are known to have come from a wrong clock do not count.
    """
    forgotten = next((value for key, value in document.items(CLOCK) if key == ""), None)
    times = [*_times_of(document), MADE_AT]
    if isinstance(forgotten, dict):
        with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
            at, until = from_millis(forgotten["at"]), from_millis(forgotten["until"])
            times = [at, *(time for time in times if not at < time <= until)]
    return max([*times, *_times_in(document, CARD, lambda card: [datetime.fromisoformat(card["at"])])])


def forgetting(trust: ClockTrust, now: datetime) -> dict[str, Any]:
    """What to store so that times ahead of the present, which are those of a wrong clock, count no more."""
    until = max(trust.newest, trust.forgotten or trust.newest, MADE_AT)
    return {CLOCK: {"at": to_millis(now), "until": to_millis(max(until, now))}}


def _times_of(document: DocumentReader) -> Iterator[datetime]:
    for prefix, read in _TIMES.items():
        yield from _times_in(document, prefix, read)


def _times_in(document: DocumentReader, prefix: str, read: Callable[[Any], list[datetime]]) -> Iterator[datetime]:
    """The times in every value behind the prefix; a value of another form has none."""
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
"""How the times are read from the values behind each prefix."""
