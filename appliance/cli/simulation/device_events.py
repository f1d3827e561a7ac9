"""The file of device events for `lares simulate --events`, with one event per line: `at device attribute value`.

- `at` is a time of day (`18:00`, `18:00:30`: the next such local time of the home), an instant (`2026-12-24T18:00`,
  local, or with an offset), or a number of seconds after the previous line (`+90`).
- `value` is JSON or a word. A measurement may be `21.5 celsius`, or a number in the unit of the previous value.
- The attribute `event` sends an event (`double`).
- The attribute `state` sets whether the device is reachable (`online`, `unavailable`).

A line `at hook ID data` calls a hook. `data` is JSON, a word, or missing. If a device has the alias `hook` and ID is
an attribute, the line reports the attribute of that device. Empty lines and lines that begin with # are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, time, timedelta
from typing import Any

import orjson
from msgspec import Struct

from appliance.automations.schedule.wall_clock import instant_of, next_wall_clock
from appliance.errors import Invalid
from appliance.home.capabilities import KNOWN_ATTRIBUTES, is_custom
from appliance.home.model import ONLINE, UNAVAILABLE
from appliance.home.observations import Dropped, check_attributes, check_device_id, check_event
from appliance.home.texts import hook_id
from appliance.home.values import Value
from appliance.home_locale import Locale
from appliance.tables.checks import format_value, nearest, suggest

EVENT, STATE = "event", "state"
"""Words that replace an attribute in a line: a device event, and the device's availability."""

HOOK = "hook"
"""The word that replaces a device in a line with a hook call."""

FIRST_EVENT_YEAR, LAST_EVENT_YEAR = 1971, 2099

_TIME_OF_DAY = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?\Z")
_SECONDS_LATER = re.compile(r"\+([0-9]{1,8}(?:\.[0-9]+)?)\Z")
_MEASURED = re.compile(r"(-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]+)?)(?:\s+(\S+))?\Z")
_INSTANT = timedelta(microseconds=1)


class FileEvent(Struct, frozen=True, kw_only=True):
    """One line: the device reports the value, or sends an event if the attribute is `event`."""

    at: datetime
    device_id: str
    attribute: str
    value: Value
    line: int


class FileHook(Struct, frozen=True, kw_only=True):
    """A hook call with data, from one line of the file."""

    at: datetime
    hook: str
    data: Value


def read_instant(text: str, locale: Locale) -> datetime:
    """Parse an instant, by default in the home's time zone. A local time that the clocks skip is the first instant
    after the gap, as for triggers. Raise `Invalid` if the text is invalid."""
    try:
        instant = datetime.fromisoformat(text)
        if not FIRST_EVENT_YEAR <= instant.year <= LAST_EVENT_YEAR:
            raise ValueError("beyond the calendar")
    except ValueError:
        example = "a time, such as 2026-12-24T18:00 (local time) or 2026-12-24T17:00:00Z"
        years = f"in the years {FIRST_EVENT_YEAR} to {LAST_EVENT_YEAR}"
        raise Invalid(f"must be {example}, {years}, not {text!r}") from None
    if instant.tzinfo is not None:
        return instant.astimezone(UTC)
    found = instant_of(instant.date(), instant.time(), locale.timezone)
    if found is None:
        raise Invalid(f"must be a day that exists in {locale.timezone.key}, not {text!r}")
    return found


def first_instant(text: str, locale: Locale) -> datetime | None:
    """Return the time of the first event with a date, or None if the first event has only a time of day."""
    for _, words in _lines(text):
        try:
            is_relative = _TIME_OF_DAY.match(words[0]) or _SECONDS_LATER.match(words[0])
            return None if is_relative else read_instant(words[0], locale)
        except Invalid:
            return None
    return None


def read_events(
    text: str, locale: Locale, start: datetime, end: datetime, *, has_hook_alias: bool = False
) -> tuple[list[FileEvent | FileHook], list[tuple[int, str]]]:
    """Return the events from `start` (inclusive) to `end` (exclusive) in order. Also return the line and message of
    each error.

    `has_hook_alias` means that a device has the alias `hook`. In this case, `hook` followed by an attribute and a
    value refers to this device.
    """
    events: list[FileEvent | FileHook] = []
    faults: list[tuple[int, str]] = []
    latest = start
    for number, words in _lines(text):
        try:
            event = _event(number, words, locale, latest, has_hook_alias=has_hook_alias)
            if event.at < latest:
                what = "the simulation begins" if latest == start else "the previous event"
                raise Invalid(f"{words[0]} is before {what}; sort the lines by time, beginning at --from")
            if event.at >= end:
                if _TIME_OF_DAY.match(words[0]) and _instant(words[0], locale, start) < latest:
                    previous = f"{latest.astimezone(locale.timezone):%H:%M:%S}"
                    raise Invalid(f"{words[0]} is before the previous event at {previous}; sort the lines by time")
                raise Invalid(f"{words[0]} is after the end of the simulation; simulate more hours")
        except Invalid as fault:
            faults.append((number, str(fault)))
            continue
        events.append(event)
        latest = event.at
    return events, faults


def _lines(text: str) -> Iterable[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split(maxsplit=3)
        if words and not words[0].startswith("#"):
            yield number, words


def _event(
    number: int, words: list[str], locale: Locale, latest: datetime, *, has_hook_alias: bool
) -> FileEvent | FileHook:
    if len(words) > 2 and words[1] == HOOK and not (has_hook_alias and len(words) > 3 and _is_attribute(words[2])):
        data = _json_or_text(words[3].strip()) if len(words) > 3 else None
        return FileHook(at=_instant(words[0], locale, latest), hook=_hook(words[2]), data=data)
    if len(words) < 4:
        raise Invalid("write `at device attribute value`, such as: 18:00 hall:motion motion detected")
    at, device_id, attribute, raw = words
    check_device_id(device_id)
    instant = _instant(at, locale, latest)
    value = _READERS.get(attribute, _attribute_reader(attribute))(raw.strip())
    return FileEvent(at=instant, device_id=device_id, attribute=attribute, value=value, line=number)


def _hook(word: str) -> str:
    try:
        return str(hook_id(word))
    except Invalid as fault:
        raise Invalid(f"the id of the hook {fault}") from None


def _is_attribute(word: str) -> bool:
    return word in _READERS or word in KNOWN_ATTRIBUTES or is_custom(word)


def _instant(text: str, locale: Locale, latest: datetime) -> datetime:
    if (later := _SECONDS_LATER.match(text)) is not None:
        return latest + timedelta(seconds=float(later[1]))
    match = _TIME_OF_DAY.match(text)
    if match is None:
        if "T" not in text and "-" not in text:
            raise Invalid(f"the line must begin with a time, such as 18:00, 2026-12-24T18:00, or +90, not {text!r}")
        try:
            return read_instant(text, locale)
        except Invalid as fault:
            raise Invalid(f"the time of the event {fault}") from None
    at = time(int(match[1]), int(match[2]), int(match[3] or 0))
    found = next_wall_clock(at, locale, latest - _INSTANT)
    assert found is not None  # this time exists on every day
    return found


def _attribute_reader(attribute: str) -> Callable[[str], Value]:
    def read(raw: str) -> Value:
        entry = KNOWN_ATTRIBUTES.get(attribute)
        if entry is None and not is_custom(attribute):
            near = nearest(attribute, [*KNOWN_ATTRIBUTES, EVENT])
            hint = suggest(near, "GET /capabilities lists all attributes")
            raise Invalid(f"{attribute!r} is not an attribute{hint}")
        value = _json_or_text(raw)
        if entry is not None and entry.type == "measurement" and not isinstance(value, dict):
            value = _measured(attribute, raw)
        dropped: Dropped = {}
        valid = check_attributes({attribute: value}, {}, dropped)
        if dropped:
            raise Invalid(f"{attribute} {dropped[attribute]}")
        return valid[attribute]

    return read


def _measured(attribute: str, raw: str) -> Value:
    match = _MEASURED.match(raw)
    if match is None:
        raise Invalid(f"{attribute} must be a number with a unit, such as 21.5 celsius, not {format_value(raw)}")
    return {"value": orjson.loads(match[1]), "unit": match[2] or ""}


def _json_or_text(raw: str) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw


def _happening(raw: str) -> str:
    return check_event(raw, {})[0]


def _availability(raw: str) -> str:
    if raw not in (ONLINE, UNAVAILABLE):
        raise Invalid(f"state must be {ONLINE} or {UNAVAILABLE}, not {format_value(raw)}")
    return raw


_READERS = {EVENT: _happening, STATE: _availability}
