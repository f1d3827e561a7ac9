"""The position of the sun: after, before and between its events, over midnight, with offsets, and near the poles."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from appliance.automations.time_conditions import Edge, SunCondition
from appliance.automations.times_of_day import SunEvent, sun_day
from appliance.home_locale import Locale, load_zone
from tests.automations.homes import BERLIN, TROMSO, at, home
from tests.fakes.rows import each_row

HOME = home()
REYKJAVIK = Locale(timezone=load_zone("Atlantic/Reykjavik"), latitude=64.13, longitude=-21.9)


def edge(text: str | None) -> Edge | None:
    """The edge that a text like `sunset-30` states."""
    if text is None:
        return None
    name = "sunrise" if text.startswith("sunrise") else "sunset"
    return Edge(event=SunEvent(name), offset_mins=int(text.removeprefix(name) or 0))


def position(after: str | None, before: str | None, locale: Locale = BERLIN) -> SunCondition:
    """The position between these edges."""
    return SunCondition(after=edge(after), before=edge(before), locale=locale)


def local(text: str, locale: Locale = BERLIN) -> datetime:
    """The instant at which the home's clocks show this."""
    return datetime.fromisoformat(text).replace(tzinfo=locale.timezone)


# In Berlin on 1 March 2026 the sun rises at 06:53 and sets at 17:45.
@each_row(
    ("after", "before", "holding"),
    [
        ("sunrise", None, ["07", "12", "18", "23"]),
        ("sunset", None, ["18", "23"]),
        (None, "sunrise", ["00", "06"]),
        (None, "sunset", ["00", "06", "07", "12"]),
        ("sunrise", "sunset", ["07", "12"]),
        ("sunset", "sunrise", ["00", "06", "18", "23"]),
        ("sunset-120", None, ["18", "23"]),
        ("sunset+360", None, []),
        ("sunrise-60", "sunrise+30", ["06", "07"]),
        ("sunset+60", "sunrise-60", ["00", "23"]),
        ("sunrise+60", "sunset-60", ["12"]),
        ("sunrise+650", "sunset-650", ["00", "06", "18", "23"]),
        ("sunset+1440", "sunrise+1440", ["00", "06", "18", "23"]),
        ("sunset-1440", "sunrise-1440", ["00", "06", "18", "23"]),
    ],
)
def test_the_hours_of_a_day_that_lie_there(after: str | None, before: str | None, holding: list[str]) -> None:
    hours = ["00", "06", "07", "12", "18", "23"]
    where = position(after, before)
    assert [hour for hour in hours if where.holds(HOME, local(f"2026-03-01T{hour}:00")).holds] == holding


@pytest.mark.parametrize("offset", [-45, 0, 45])
@pytest.mark.parametrize("event", list(SunEvent))
def test_the_second_of_the_edge_is_after_it_and_the_one_before_is_not(event: SunEvent, offset: int) -> None:
    due = sun_day(BERLIN, local("2026-03-01T12:00").date()).instant_of(event)
    assert due is not None
    due += timedelta(minutes=offset)
    other = SunEvent.SUNSET if event is SunEvent.SUNRISE else SunEvent.SUNRISE
    this = Edge(event=event, offset_mins=offset)
    for instant, is_after in ((due - timedelta(seconds=1), False), (due, True)):
        assert SunCondition(after=this, locale=BERLIN).holds(HOME, instant).holds is is_after
        assert SunCondition(before=this, locale=BERLIN).holds(HOME, instant).holds is not is_after
        assert (
            SunCondition(after=this, before=Edge(event=other), locale=BERLIN).holds(HOME, instant).holds is is_after
        )
        assert (
            SunCondition(after=Edge(event=other), before=this, locale=BERLIN).holds(HOME, instant).holds
            is not is_after
        )


POLAR_NIGHT, POLAR_DAY = at("2026-12-21T11:00"), at("2026-06-21T23:00")


@each_row(
    ("after", "before", "in_polar_night", "on_polar_day"),
    [
        ("sunset", None, True, False),
        (None, "sunrise", True, False),
        ("sunset", "sunrise", True, False),
        ("sunset+30", "sunrise-30", True, False),
        ("sunrise", None, False, True),
        (None, "sunset", False, True),
        ("sunrise", "sunset", False, True),
    ],
)
def test_a_polar_night_is_after_sunset_and_before_sunrise_and_a_polar_day_the_reverse(
    after: str | None, before: str | None, in_polar_night: bool, on_polar_day: bool
) -> None:
    assert position(after, before, TROMSO).holds(HOME, POLAR_NIGHT).holds is in_polar_night
    assert position(after, before, TROMSO).holds(HOME, POLAR_DAY).holds is on_polar_day


def test_day_and_night_share_every_hour_of_a_polar_year() -> None:
    day, night = position("sunrise", "sunset", TROMSO), position("sunset", "sunrise", TROMSO)
    hours = (at("2026-01-01T00:30") + timedelta(hours=n) for n in range(0, 365 * 24, 5))
    changes, was_day = 0, None
    for hour in hours:
        is_day = day.holds(HOME, hour).holds
        assert night.holds(HOME, hour).holds is not is_day, hour
        changes += is_day is not was_day
        was_day = is_day
    assert 400 < changes < 600


def test_while_the_sun_is_up_after_midnight_it_is_not_yet_night() -> None:
    night, minute = position("sunset", "sunrise", REYKJAVIK), timedelta(minutes=1)
    midnight = local("2026-06-22T00:00", REYKJAVIK)
    assert not night.holds(HOME, midnight + minute).holds
    assert night.holds(HOME, midnight + 10 * minute).holds


@each_row(
    ("after", "before", "instant", "locale", "reason"),
    [
        ("sunset", None, local("2026-03-01T15:02"), BERLIN, "time was 15:02, needs after sunset (17:45)"),
        (
            "sunset+30",
            "sunrise-15",
            local("2026-03-01T15:02"),
            BERLIN,
            "time was 15:02, needs after sunset +30 min (18:15) and before sunrise -15 min (06:38)",
        ),
        (None, "sunrise", POLAR_DAY, TROMSO, "time was 01:00 on a polar day, needs before sunrise"),
        ("sunrise", None, POLAR_NIGHT, TROMSO, "time was 12:00 in the polar night, needs after sunrise"),
    ],
)
def test_a_no_tells_the_times_compared(
    after: str | None, before: str | None, instant: datetime, locale: Locale, reason: str
) -> None:
    outcome = position(after, before, locale).holds(HOME, instant)
    assert not outcome.holds
    assert outcome.reason == reason
