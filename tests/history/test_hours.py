"""Each hour has a minimum, a time-weighted mean, and a maximum, even if the clock is changed. The gain of a meter
includes resets."""

from __future__ import annotations

import random

import pytest

from appliance.history.hours import Hour, NumberHours, join_all, merge

TEN = 1_764_583_200_000
"""Ten o'clock in milliseconds since 1970."""

MINUTE = 60_000


def rows(hours: list[Hour]) -> list[tuple[float, ...]]:
    """For each hour, return its start (in hours after ten), its seconds, and its numbers."""
    return [_row(each) for each in hours]


def _row(hour: Hour) -> tuple[float, ...]:
    gain = () if hour.gain is None else (hour.gain,)
    return ((hour.start - TEN // 1000) / 3600, hour.secs, hour.low, hour.value, hour.high, *gain)


def made(*reports: tuple[float, float], take: float) -> list[tuple[float, ...]]:
    """Return the hourly records for numbers that were reported at these minutes after ten."""
    hours = NumberHours({"unit": "celsius"})
    for minute, number in reports:
        hours.report(TEN + int(minute * MINUTE), number)
    return rows(hours.take(TEN + int(take * MINUTE)))


@pytest.mark.parametrize(
    ("reports", "take", "expected"),
    [
        pytest.param([(0, 20)], 60, [(0, 3600, 20, 20, 20)], id="one number that holds"),
        pytest.param([(0, 10), (45, 30)], 60, [(0, 3600, 10, 15, 30)], id="the mean is over time"),
        pytest.param([(30, 10)], 60, [(0, 1800, 10, 10, 10)], id="known from half past on"),
        pytest.param([(30, 10), (90, 20)], 120, [(0, 1800, 10, 10, 10), (1, 3600, 10, 15, 20)], id="into the next"),
        pytest.param([(0, 10), (190, 20)], 200, [(0, 3600, 10, 10, 10), (3, 1200, 10, 15, 20)], id="quiet hours"),
        pytest.param([(0, 10)], 200, [(0, 3600, 10, 10, 10)], id="nothing new since"),
        pytest.param([(20, 5), (20, 7)], 20, [(0, 0, 5, 7, 7)], id="no time at all"),
        pytest.param([(130, 5), (10, 7)], 70, [(2, 0, 5, 5, 5), (0, 3000, 7, 7, 7)], id="the clock is set back"),
        pytest.param(
            [(0, 5), (5_256_000, 7)], 5_256_000, [(0, 3600, 5, 5, 5), (87_600, 0, 7, 7, 7)], id="ten years on"
        ),
    ],
)
def test_an_hour_has_minimum_mean_and_maximum(
    reports: list[tuple[float, float]], take: float, expected: list[tuple[float, ...]]
) -> None:
    assert made(*reports, take=take) == expected


def test_parts_of_an_hour_are_the_same_as_the_whole() -> None:
    chance = random.Random(7)
    whole, parted = NumberHours(None), NumberHours(None)
    taken: list[Hour] = []
    for minute in range(0, 600, 3):
        number = chance.randrange(100)
        whole.report(TEN + minute * MINUTE, number)
        parted.report(TEN + minute * MINUTE, number)
        if chance.random() < 0.1:
            taken += parted.take(TEN + minute * MINUTE + 30_000)
    until = TEN + 600 * MINUTE
    one, other = whole.take(until), merge([*taken, *parted.take(until)])
    assert [(each.start, each.low, each.high) for each in one] == [
        (each.start, each.low, each.high) for each in other
    ]
    assert all(abs(a.value - b.value) < 0.05 and abs(a.secs - b.secs) < 5 for a, b in zip(one, other, strict=True))


def test_the_rest_of_a_partly_written_hour_is_not_lost() -> None:
    hours = NumberHours(None)
    hours.report(TEN, 10)
    first = hours.take(TEN + 6 * MINUTE)
    both = merge([*first, *hours.take(TEN + 120 * MINUTE)])
    assert rows(both) == [(0, 3600, 10, 10, 10)]


def test_an_offline_device_has_no_number() -> None:
    hours = NumberHours(None)
    hours.report(TEN, 1000)
    hours.pause(TEN + 15 * MINUTE)
    assert rows(hours.peek(TEN + 59 * MINUTE)) == rows(hours.take(TEN + 300 * MINUTE)) == [(0, 900, 1000, 1000, 1000)]
    assert hours.take(TEN + 400 * MINUTE) == []


def test_reading_ahead_removes_nothing() -> None:
    hours = NumberHours(None)
    hours.report(TEN, 1)
    hours.report(TEN + 90 * MINUTE, 2)
    now = TEN + 100 * MINUTE
    assert rows(hours.peek(now)) == rows(hours.peek(now)) == rows(hours.take(now))


def test_hours_follow_the_time_zone_of_the_home() -> None:
    hours = NumberHours(None, grid_ms=30 * MINUTE)
    hours.report(TEN, 1)
    hours.report(TEN + 45 * MINUTE, 2)
    assert rows(hours.take(TEN + 60 * MINUTE)) == [(-0.5, 1800, 1, 1, 1), (0.5, 1800, 1, 1.5, 2)]


def test_a_meter_has_its_last_value_and_the_counted_amount() -> None:
    meter = NumberHours({"unit": "kWh", "period": "total"})
    meter.report(TEN, 100, before=99)
    meter.report(TEN + 10 * MINUTE, 101, before=100)
    meter.report(TEN + 20 * MINUTE, 0, before=101)
    meter.report(TEN + 30 * MINUTE, 0.5, before=0)
    found = meter.take(TEN + 60 * MINUTE)
    assert rows(found) == [(0, 3600, 0, 0.5, 101, 2.5)]
    later = Hour(start=found[0].start + 3600, secs=3600, low=0.5, value=2.0, high=2.0, gain=1.5)
    assert rows([join_all(found[0].start, [*found, later])]) == [(0, 7200, 0, 2.0, 101, 4.0)]


def test_unsaved_hours_are_limited_and_counted() -> None:
    hours = NumberHours(None)
    for hour in range(100):
        hours.report(TEN + hour * 60 * MINUTE, hour)
    taken = hours.take(TEN + 100 * 60 * MINUTE)
    assert len(taken) == 48 and hours.take_lost() == 52 and hours.take_lost() == 0
    hours.put_back(taken)
    assert hours.take(TEN + 101 * 60 * MINUTE) == taken
