"""Finds the next and the missed times of automations for the API."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import merge
from typing import Any

from appliance.automations.active_triggers import ActiveTrigger
from appliance.automations.automation_states import AutomationStates
from appliance.automations.environment import Environment
from appliance.automations.schedule.scheduled_calls import CalendarCall, DelayedCall
from appliance.automations.triggers.base import TimedTrigger
from appliance.automations.triggers.time import Interval
from appliance.clock import timestamp

MAX_NEXT = 10


class DueTimes:
    """The times of the active triggers. `active` contains the triggers by automation id."""

    def __init__(
        self, active: Mapping[str, Sequence[ActiveTrigger]], states: AutomationStates, environment: Environment
    ) -> None:
        self._active = active
        self._states = states
        self._brake = environment.brake
        self._clock = environment.clock

    def find_times(self, id_: str) -> Generator[None, None, list[datetime]]:
        """Return at most the next ten times of the automation's schedules and intervals, in order. A step computes
        one time of one trigger, which takes milliseconds for rare schedules."""
        found: list[datetime] = []
        for time in merge(*map(self._next_of, self._active.get(id_, ()))):
            if time not in found:
                if len(found) == MAX_NEXT:
                    break
                found.append(time)
            yield
        return found

    def find_missed(self, id_: str) -> datetime | None:
        """Return the first occurrence that the automation's schedules missed after their last fired occurrence, or
        None."""
        calls = (active.call for active in self._active.get(id_, ()) if isinstance(active.call, CalendarCall))
        return min((missed for call in calls if (missed := call.find_missed())), default=None)

    def count_waits(self, id_: str) -> int:
        """Return the number of the automation's running waits."""
        return sum(len(active.waits) for active in self._active.get(id_, ()))

    def iterate_waits(self, id_: str) -> Iterator[tuple[str, datetime]]:
        """Yield the device id and the end of each running wait of the automation, computed on demand."""
        for active in self._active.get(id_, ()):
            for device_id in active.waits:
                yield device_id, self._instant_of(active.waits[device_id].due)

    def figures_of(self, id_: str) -> dict[str, Any]:
        state = self._states.of(id_)
        return {
            "armed": state.is_enabled,
            "waiting": any(active.waits for active in self._active.get(id_, ())),
            "next_fire": self.show_next_fire(id_),
            "last_run": _shown(None if state.run is None else state.run.executed_at),
            "braked_secs": self._brake.paused_secs(id_),
        }

    def list_figures(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the data of each automation by id, computed on demand."""
        return ((id_, self.figures_of(id_)) for id_ in sorted(self._active))

    def show_next_fire(self, id_: str) -> str | None:
        """Return the automation's next due time or end of a wait, even if the automation is off."""
        return _shown(self._next_fire(id_))

    def find_next(self, id_: str) -> datetime | None:
        """Return the automation's next time. Return None if the automation is off or has no next time."""
        return self._next_fire(id_) if self._states.of(id_).is_enabled else None

    def _next_fire(self, id_: str) -> datetime | None:
        """Return the automation's next due time or end of a wait, or None."""
        active_triggers = self._active.get(id_, ())
        ends = [first.due for active in active_triggers if (first := active.waits.find_first()) is not None]
        times = [self._instant_of(min(ends))] if ends else []
        times += [due for active in active_triggers if (due := self._due_of(active)) is not None]
        return min(times, default=None)

    def _due_of(self, active: ActiveTrigger) -> datetime | None:
        if isinstance(active.call, DelayedCall):
            return self._instant_of(active.call.due)
        return None if active.call is None else active.call.due

    def _instant_of(self, due: float) -> datetime:
        return self._clock.now() + timedelta(seconds=due - self._clock.monotonic())

    def _next_of(self, active: ActiveTrigger) -> Iterator[datetime]:
        due, trigger = self._due_of(active), active.trigger
        for _ in range(MAX_NEXT):
            if due is None or not isinstance(trigger, TimedTrigger):
                return
            yield due
            due = (
                due + timedelta(seconds=trigger.every_secs)
                if isinstance(trigger, Interval)
                else trigger.next_after(due)
            )


def _shown(instant: datetime | None) -> str | None:
    return None if instant is None else timestamp(instant)
