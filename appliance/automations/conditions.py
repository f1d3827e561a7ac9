"""Conditions: whether an automation may run now, as values that answer `holds` and tell why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from appliance.automations.sun_position import SunPosition
from appliance.automations.verdict import HOLDS, Verdict, refused
from appliance.automations.wall_clock import Window
from appliance.automations.wanted import Wanted, Within, number_in, told
from appliance.errors import NotFound
from appliance.home.registry import Registry
from appliance.locale import Locale

UNTRUSTED = "the clock is not trusted yet"
"""Why a condition that asks for the time is false while nobody knows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """A device's attribute is what is wanted. `type` is `device_state`, or `presence`, which asks the same."""

    type: str = "device_state"
    device_id: str
    attribute: str
    wanted: Wanted

    def holds(self, home: Registry, instant: datetime | None) -> Verdict:
        """Whether it is so; a device or an attribute that is missing is not what is wanted."""
        devices = home.find_devices([self.device_id])
        if not devices:
            return refused(str(NotFound("device", self.device_id)))
        value = devices[0].attributes.get(self.attribute)
        if value is None:
            return refused(f"device '{self.device_id}' has no {self.attribute}, needs {self.wanted}")
        if self.wanted.holds(value):
            return HOLDS
        is_lacking = isinstance(self.wanted, Within) and number_in(value) is None
        return refused(f"{self.attribute} was {told(value)}, needs {'a number ' if is_lacking else ''}{self.wanted}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomState:
    """A room has at least and at most so many devices; None is no bound."""

    type: ClassVar[str] = "room_state"
    room_id: str
    min_devices: int | None = None
    max_devices: int | None = None

    def holds(self, home: Registry, instant: datetime | None) -> Verdict:
        """Whether it is so; a room that is missing has no number of devices."""
        try:
            count = len(home.list_room_devices(self.room_id))
        except NotFound as error:
            return refused(str(error))
        if count >= (self.min_devices or 0) and (self.max_devices is None or count <= self.max_devices):
            return HOLDS
        return refused(f"room '{self.room_id}' had {_devices(count)}, needs {self._needs()}")

    def _needs(self) -> str:
        bounds = (("at least", self.min_devices), ("at most", self.max_devices))
        return " and ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """The clocks in the home show a time within the window."""

    type: ClassVar[str] = "time_window"
    window: Window
    locale: Locale

    def holds(self, home: Registry, instant: datetime | None) -> Verdict:
        """Whether it is so; never while the time is not known."""
        if instant is None:
            return refused(f"{UNTRUSTED}, needs {self.window}")
        if self.window.holds(instant, self.locale):
            return HOLDS
        return refused(f"time was {self.locale.clock(instant)}, needs {self.window}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SunCondition:
    """It is after, before or between sunrise and sunset."""

    type: ClassVar[str] = "sun_position"
    position: SunPosition
    locale: Locale

    def holds(self, home: Registry, instant: datetime | None) -> Verdict:
        """Whether it is so; never while the time is not known."""
        if instant is None:
            return refused(f"{UNTRUSTED}, needs {self.position}")
        return self.position.holds(instant, self.locale)


Condition = DeviceState | RoomState | TimeWindow | SunCondition


def check_all(conditions: Sequence[Condition], home: Registry, instant: datetime | None) -> Verdict:
    """Whether all conditions hold; if not, the first that does not, by its number: `condition 2: brightness was …`.

    `instant` is None while the clock is not trusted.
    """
    for number, condition in enumerate(conditions, 1):
        verdict = condition.holds(home, instant)
        if not verdict.holds:
            return refused(f"condition {number}: {verdict.reason}")
    return HOLDS


def _devices(count: int) -> str:
    return f"{count} device" if count == 1 else f"{count} devices"
