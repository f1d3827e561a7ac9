"""Prepares a simulation: its period, its events, and the stored state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import orjson
from msgspec import Struct

from appliance.cli.simulation.device_events import HOOK, FileEvent, FileHook, first_instant, read_events, read_instant
from appliance.clock import Clock
from appliance.home_locale import Locale
from appliance.store.record_keys import ALIAS_PREFIX, AUTOMATION_PREFIX, TIMER_PREFIX, WAIT_PREFIX
from appliance.store.storage import DocumentSnapshot


class Preparation(Struct, frozen=True, kw_only=True):
    """The period, the events, and the stored state of a simulation. `faults` contains the lines and messages of
    invalid events."""

    start: datetime
    end: datetime
    events: Sequence[FileEvent | FileHook]
    faults: Sequence[tuple[int, str]]
    stored: DocumentSnapshot


def prepare(stored: Mapping[str, bytes], locale: Locale, start: str | None, hours: float, events: str) -> Preparation:
    """Prepare a simulation that begins at `start` or, if `start` is missing, at the first event with a date. If there
    is no such event, the simulation begins now. Raise `Invalid` if `start` is invalid.

    The state of automations and timers is only used for a simulation that begins now.
    """
    begins = first_instant(events, locale) if start is None else read_instant(start, locale)
    at = Clock().now() if begins is None else begins
    end = at + timedelta(hours=hours)
    has_alias = any(orjson.loads(value) == HOOK for key, value in stored.items() if key.startswith(ALIAS_PREFIX))
    read, faults = read_events(events, locale, at, end, has_hook_alias=has_alias)
    if begins is not None:
        forgotten = (AUTOMATION_PREFIX, TIMER_PREFIX, WAIT_PREFIX)
        stored = {key: value for key, value in stored.items() if not key.startswith(forgotten)}
    return Preparation(start=at, end=end, events=read, faults=faults, stored=DocumentSnapshot(stored))
