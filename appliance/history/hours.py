"""Summarises an attribute's numbers by hour: the time-weighted mean, and the lowest and highest number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import astuple, replace

from appliance.history.series import HOUR_MS, ValueParts

METER_UNITS = frozenset({"Wh", "kWh", "MWh", "GWh", "MJ", "GJ", "m³", "L", "gal", "ft³"})
"""Units of meters that count up. The hours of such meters include the increase, `gain`."""

RESET_BELOW = 0.9
"""A meter was reset if its value falls below this fraction of the previous value. A smaller decrease is a
correction."""

MAX_CLOSED_HOURS = 48
"""For each attribute, the maximum number of finished hours that wait for the card. The oldest hours are dropped
first."""


class Hour(Struct, frozen=True, kw_only=True):
    """An attribute's numbers in an hour, or in a part of an hour.

    `start` is the beginning of the hour in seconds since 1970. `secs` is the number of seconds with known numbers.
    `value` is the time-weighted mean. For a meter, `value` is the last number, and `gain` is the counted amount.
    """

    start: int
    secs: int
    low: float
    value: float
    high: float
    gain: float | None = None


def join_number(parts: ValueParts, number: float) -> Any:
    """Combine the number and the value's other parts, such as the unit."""
    return number if parts is None else {"value": number, **parts}


def is_meter(parts: ValueParts) -> bool:
    """Return whether values with these parts come from a meter that counts up."""
    return parts is not None and ("period" in parts or parts.get("unit") in METER_UNITS)


def gain_of(before: float, now: float) -> float:
    """Return the amount that a meter counted between two readings. If the meter was reset in between, the amount is
    the new reading."""
    return now if now < before * RESET_BELOW else now - before


def merge(hours: Iterable[Hour]) -> list[Hour]:
    """Merge parts of the same hour. The parts of an hour must be sorted by time. Return the hours, sorted by time."""
    merged: dict[int, Hour] = {}
    for each in hours:
        before = merged.get(each.start)
        merged[each.start] = each if before is None else join_all(each.start, (before, each))
    return [merged[start] for start in sorted(merged)]


def join_all(start: int, hours: Iterable[Hour]) -> Hour:
    """Join hours into one `Hour` that begins at `start`. `hours` must be sorted by time and not empty."""
    hours = tuple(hours)
    last, secs = hours[-1], sum(each.secs for each in hours)
    gains = [each.gain for each in hours if each.gain is not None]
    mean = sum(each.value * each.secs for each in hours) / secs if secs else last.value
    return Hour(
        start=start,
        secs=secs,
        low=min(each.low for each in hours),
        value=last.value if last.gain is not None else _rounded(mean),
        high=max(each.high for each in hours),
        gain=_rounded(sum(gains), 9) if gains else None,
    )


class NumberHours(Struct):
    """Groups an attribute's numbers into hours. Times are in milliseconds since 1970. `grid_ms` is the offset of full
    hours in the home's time zone. If times decrease, the clock was set back.

    - `reports`: the number of readings since the last `take`.
    - `lost`: the number of hours dropped before a `take`.
    - `is_holding`: whether the last number is still current.
    """

    parts: ValueParts
    grid_ms: int = 0
    is_meter: bool = False
    reports: int = 0
    lost: int = 0
    is_holding: bool = False
    _closed: tuple[Hour, ...] = ()
    _last: float = 0.0
    _is_reported: bool = False
    _hour: int = -1
    _since: int = 0
    _low: float | None = None
    _high: float | None = None
    _sum: float = 0.0
    _gain: float = 0.0
    _known_ms: int = 0

    def __post_init__(self) -> None:
        self.is_meter = is_meter(self.parts)

    @property
    def last(self) -> float | None:
        """Return the last number if it is still current, otherwise None."""
        return self._last if self.is_holding else None

    @property
    def known_until(self) -> int:
        """Return the time until which the numbers are known."""
        return self._since

    def report(self, at: int, number: float, before: float | None = None) -> None:
        """Record a new number of the attribute. `before` is the previous number, or None."""
        self._pass_time(at)
        if self._known_ms:
            self._note(self._last)
        if self.is_meter and before is not None:
            self._gain += gain_of(before, number)
        self._last, self.is_holding, self._is_reported = number, True, True
        self._note(number)
        self.reports += 1

    def pause(self, at: int) -> None:
        """Record that the number is unknown from now on, because the device is offline."""
        self._pass_time(at)
        self.is_holding = False

    def take(self, at: int) -> list[Hour]:
        """Remove and return the hours until now, including the unfinished hour."""
        self._pass_time(at)
        self._close()
        taken, self._closed, self.reports = self._closed, (), 0
        return [*taken]

    def take_lost(self) -> int:
        """Return the number of hours lost since the previous call."""
        lost, self.lost = self.lost, 0
        return lost

    def put_back(self, taken: list[Hour]) -> None:
        """Restore hours that could not be written."""
        self._closed = (*taken, *self._closed)
        self._bound()

    def peek(self, at: int) -> list[Hour]:
        """Return the result of `take` without removing the hours."""
        until = min(at, self._end_of_hour()) if self.is_holding else self._since
        held = max(0, until - self._since)
        present = self._summarize(self._known_ms + held, self._sum + self._last * held)
        return [*self._closed, *([] if present is None else [present])]

    def pack(self) -> tuple[Any, ...]:
        """Return the fields as plain values."""
        return astuple(replace(self, _closed=tuple(astuple(hour) for hour in self._closed)))

    @classmethod
    def unpack(cls, packed: tuple[Any, ...]) -> NumberHours:
        found, names = cls(*packed), Hour.__struct_fields__
        found._closed = tuple(
            Hour(**dict(zip(names, cast("tuple[Any, ...]", each), strict=True))) for each in found._closed
        )
        return found

    def _pass_time(self, at: int) -> None:
        """Extend the last number until this time. If a new hour has begun, close the previous hour."""
        hour = (at - self.grid_ms) // HOUR_MS
        if hour != self._hour:
            is_later = hour > self._hour
            if is_later:
                self._hold(self._end_of_hour())
            self._close()
            self._hour, self._is_reported = hour, False
            self._since = hour * HOUR_MS + self.grid_ms if is_later else at
        self._hold(at)
        self._since = at

    def _end_of_hour(self) -> int:
        return (self._hour + 1) * HOUR_MS + self.grid_ms

    def _hold(self, until: int) -> None:
        if self.is_holding:
            held = max(0, until - self._since)
            self._sum += self._last * held
            self._known_ms += held

    def _note(self, number: float) -> None:
        if self._low is None or number < self._low:
            self._low = number
        if self._high is None or number > self._high:
            self._high = number

    def _close(self) -> None:
        """Close the current part of the hour, and begin the next part."""
        closed = self._summarize(self._known_ms, self._sum)
        if closed is not None:
            self._closed = (*self._closed, closed)
            self._bound()
        self._low = self._high = None
        self._sum = self._gain = 0.0
        self._known_ms = 0

    def _summarize(self, known_ms: int, total: float) -> Hour | None:
        """Return the current part of the hour, or None if it contains no number."""
        if not self._is_reported or (self._low is None and not known_ms):
            return None
        return Hour(
            start=(self._hour * HOUR_MS + self.grid_ms) // 1000,
            secs=min(3600, round(known_ms / 1000)),
            low=self._last if self._low is None else self._low,
            value=self._last if self.is_meter or not known_ms else _rounded(total / known_ms),
            high=self._last if self._high is None else self._high,
            gain=_rounded(self._gain, 9) if self.is_meter else None,
        )

    def _bound(self) -> None:
        if (excess := len(self._closed) - MAX_CLOSED_HOURS) > 0:
            self.lost += excess
            self._closed = self._closed[excess:]


def _rounded(number: float, digits: int = 6) -> float:
    """Round to significant digits. Further digits are noise, and cost bytes on the card."""
    return float(f"{number:.{digits}g}")
