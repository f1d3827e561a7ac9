"""Conditions: whether an automation may run now, as values with `holds`, which says why not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, time, timedelta
from typing import ClassVar

from msgspec import Struct

from appliance.automations.automation_fields import WEEKDAYS
from appliance.automations.condition_result import HOLDS, ConditionResult, refused, untrusted
from appliance.automations.home_view import HomeView
from appliance.automations.matchers import Matcher, Within, describe, number_in
from appliance.automations.sun_position import SunCondition
from appliance.clock import EPOCH
from appliance.errors import NotFound
from appliance.home.model import Device
from appliance.home.values import Value
from appliance.home_locale import Locale


class DeviceState(Struct, frozen=True, kw_only=True):
    """A device's attribute matches, and has not changed for `for_secs` seconds.

    `type` is `device_state`, or `presence`, which asks the same.
    """

    type: str = "device_state"
    device_id: str
    attribute: str
    matcher: Matcher
    for_secs: float = 0

    def holds(self, home: HomeView, instant: datetime | None) -> ConditionResult:
        """Whether it is so; false for a device or an attribute that there is not."""
        devices = home.registry.find_devices([self.device_id])
        if not devices:
            return refused(str(NotFound("device", self.device_id)))
        value = devices[0].attributes.get(self.attribute)
        if value is None:
            return refused(f"device '{self.device_id}' has no {self.attribute}, needs {self.matcher}")
        if not self.matcher.holds(value):
            return refused(f"{self.attribute} {_unlike(value, self.matcher)}")
        return self._has_lasted(home, devices[0], instant) if self.for_secs else HOLDS

    def _has_lasted(self, home: HomeView, device: Device, instant: datetime | None) -> ConditionResult:
        """Whether the attribute has not changed for so long; false while the clock is not trusted."""
        needs = f"{self.matcher} for {self.for_secs:g} s"
        if instant is None:
            return untrusted(needs)
        since = max(timedelta(), instant - home.changed_at(device, self.attribute))
        if since >= timedelta(seconds=self.for_secs):
            return HOLDS
        return refused(f"{self.attribute} changed {since.total_seconds():.0f} s ago, needs {needs}")


class PlaceState(Struct, frozen=True, kw_only=True):
    """A room or a group (`kind`) has at least and at most so many devices; None is no bound."""

    kind: str = "room"
    place_id: str
    min_devices: int | None = None
    max_devices: int | None = None

    @property
    def type(self) -> str:
        """`room_state` or `group_state`."""
        return f"{self.kind}_state"

    def holds(self, home: HomeView, instant: datetime | None) -> ConditionResult:
        """Whether it is so; a room or group that is missing has no number of devices."""
        registry = home.registry
        list_devices = registry.list_room_devices if self.kind == "room" else registry.list_group_devices
        try:
            count = len(list_devices(self.place_id))
        except NotFound as error:
            return refused(str(error))
        if count >= (self.min_devices or 0) and (self.max_devices is None or count <= self.max_devices):
            return HOLDS
        return refused(f"{self.kind} '{self.place_id}' had {_devices(count)}, needs {self.bounds}")

    @property
    def bounds(self) -> str:
        """The bounds in words, `at least 1 and at most 3`."""
        bounds = (("at least", self.min_devices), ("at most", self.max_devices))
        return " and ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)


class TimeWindow(Struct, frozen=True, kw_only=True):
    """The clocks in the home show a time from `start`, included, to `end`, excluded; midnight may lie within."""

    type: ClassVar[str] = "time_window"
    start: time
    end: time
    locale: Locale

    def holds(self, home: HomeView, instant: datetime | None) -> ConditionResult:
        """Whether it is so; false while the clock is not trusted."""
        if instant is None:
            return untrusted(self)
        now = self.locale.local(instant).time()
        if self.start < self.end:
            is_within = self.start <= now < self.end
        else:
            is_within = now >= self.start or now < self.end
        return HOLDS if is_within else refused(f"time was {self.locale.clock(instant)}, needs {self}")

    def __str__(self) -> str:
        return f"{self.start:%H:%M} to {self.end:%H:%M}"


class Weekday(Struct, frozen=True, kw_only=True):
    """It is one of these days of the week in the home; 0 is Monday."""

    type: ClassVar[str] = "weekday"
    days: frozenset[int]
    locale: Locale

    def holds(self, home: HomeView, instant: datetime | None) -> ConditionResult:
        """Whether it is so; false while the clock is not trusted."""
        needs = ", ".join(WEEKDAYS[day] for day in sorted(self.days))
        if instant is None:
            return untrusted(needs)
        today = self.locale.local(instant).weekday()
        return HOLDS if today in self.days else refused(f"day was {WEEKDAYS[today]}, needs {needs}")


class DateRange(Struct, frozen=True, kw_only=True):
    """The date in the home lies between two days of the year, both included, over new year too: `(month, day)`."""

    type: ClassVar[str] = "date_range"
    first: tuple[int, int]
    last: tuple[int, int]
    locale: Locale

    def holds(self, home: HomeView, instant: datetime | None) -> ConditionResult:
        """Whether it is so; false while the clock is not trusted."""
        if instant is None:
            return untrusted(self)
        local = self.locale.local(instant)
        today = local.month, local.day
        if self.first <= self.last:
            is_within = self.first <= today <= self.last
        else:
            is_within = today >= self.first or today <= self.last
        return HOLDS if is_within else refused(f"date was {_shown_day(today)}, needs {self}")

    def __str__(self) -> str:
        return f"{_shown_day(self.first)} to {_shown_day(self.last)}"


class VariableState(Struct, frozen=True, kw_only=True):
    """The variable of this name has a value that matches."""

    type: ClassVar[str] = "variable"
    name: str
    matcher: Matcher

    def holds(self, home: HomeView, instant: datetime | None) -> ConditionResult:
        """Whether it is so; false for a variable that is not set."""
        value = home.get_variable(self.name)
        if value is None:
            return refused(f"variable '{self.name}' is not set, needs {self.matcher}")
        if self.matcher.holds(value):
            return HOLDS
        return refused(f"variable '{self.name}' {_unlike(value, self.matcher)}")


class Combination(Struct, frozen=True, kw_only=True):
    """All, any or none (`type`) of the conditions hold."""

    type: str
    conditions: tuple[Condition, ...]

    def holds(self, home: HomeView, instant: datetime | None) -> ConditionResult:
        """Whether it is so; where not, `branch` is the way to the one that decided, where one did."""
        return _COMBINE[self.type](self.conditions, home, instant)


Condition = DeviceState | PlaceState | TimeWindow | SunCondition | Weekday | DateRange | VariableState | Combination


def list_nested(conditions: Iterable[Condition]) -> Iterator[Condition]:
    """The conditions, and those within them."""
    for condition in conditions:
        yield condition
        if isinstance(condition, Combination):
            yield from list_nested(condition.conditions)


def check_all(conditions: Sequence[Condition], home: HomeView, instant: datetime | None) -> ConditionResult:
    """Whether all conditions hold; if not, the first that does not, by its number: `condition 2.1: brightness was …`.

    `instant` is None while the clock is not trusted.
    """
    outcome = _all(conditions, home, instant)
    return HOLDS if outcome.holds else refused(f"condition {outcome.branch}: {outcome.reason}", outcome.branch)


def _all(conditions: Sequence[Condition], home: HomeView, instant: datetime | None) -> ConditionResult:
    for number, condition in enumerate(conditions, 1):
        outcome = condition.holds(home, instant)
        if not outcome.holds:
            return refused(outcome.reason, _branch(number, outcome))
    return HOLDS


def _any(conditions: Sequence[Condition], home: HomeView, instant: datetime | None) -> ConditionResult:
    """The reason of none is the reason of all: none holds, each for its own."""
    reasons = []
    for number, condition in enumerate(conditions, 1):
        outcome = condition.holds(home, instant)
        if outcome.holds:
            return HOLDS
        reasons.append(f"{_branch(number, outcome)}: {outcome.reason}")
    return refused(f"none of {len(conditions)} holds ({'; '.join(reasons)})")


def _none(conditions: Sequence[Condition], home: HomeView, instant: datetime | None) -> ConditionResult:
    for number, condition in enumerate(conditions, 1):
        if condition.holds(home, instant).holds:
            return refused(
                f"{condition.type} holds, and must not{describe_seen(condition, home, instant)}", str(number)
            )
    return HOLDS


def describe_seen(condition: Condition, home: HomeView, instant: datetime | None) -> str:
    """What a condition that holds compared, ` (power was 'on')`; nothing for a place or a combination."""
    now = instant or EPOCH  # what asks for the time holds only where it is known
    match condition:
        case DeviceState(device_id=device_id, attribute=attribute):
            values = [each.attributes.get(attribute) for each in home.registry.find_devices([device_id])]
            return f" ({attribute} was {', '.join(map(describe, values))})"
        case VariableState(name=name):
            return f" (variable '{name}' was {describe(home.get_variable(name))})"
        case Weekday(locale=locale):
            return f" (day was {WEEKDAYS[locale.local(now).weekday()]})"
        case DateRange(locale=locale):
            return f" (date was {locale.local(now):%m-%d})"
        case TimeWindow(locale=locale) | SunCondition(locale=locale):
            return f" (time was {locale.clock(now)})"
    return ""


_COMBINE = {"all": _all, "any": _any, "none": _none}


def _branch(number: int, outcome: ConditionResult) -> str:
    return f"{number}.{outcome.branch}" if outcome.branch else str(number)


def _unlike(value: Value, matcher: Matcher) -> str:
    is_lacking = isinstance(matcher, Within) and number_in(value) is None
    return f"was {describe(value)}, needs {'a number ' if is_lacking else ''}{matcher}"


def _shown_day(day: tuple[int, int]) -> str:
    return f"{day[0]:02}-{day[1]:02}"


def _devices(count: int) -> str:
    return f"{count} device" if count == 1 else f"{count} devices"
