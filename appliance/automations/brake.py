"""The brake: an automation that sets itself off again and again is paused.

What an automation does may set off another, and that one the first again. So of each thing that an execution
changes it is remembered which automations led to it; a trigger by that thing was caused by all of them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.events import CommandEnded, Event
from appliance.home.values import Value

PAUSE_SECS = 60.0
"""How long an automation is paused, in seconds."""

log = logging.getLogger("automations")

THINGS: Mapping[str, tuple[str, str]] = {
    "device_state_change": ("device", "device_id"),
    "weather_state": ("device", "device_id"),
    "device_event": ("device", "device_id"),
    "variable_change": ("variable", "name"),
    "timer": ("timer", "name"),
}
"""What an event is about, by its type: the kind of thing, and the field that holds its name."""

_NO_CAUSES: frozenset[str] = frozenset()


@dataclass(slots=True)
class _BrakeRecord:
    """One automation: when it ran because of itself, who caused its latest execution, until when it is paused."""

    runs: deque[float] = field(default_factory=deque)
    causes: frozenset[str] = _NO_CAUSES
    paused_until: float = float("-inf")


class Brake:
    """Pauses for a minute what ran more than `max_runs` times within `secs` seconds because of its own doing."""

    def __init__(self, bus: Bus, clock: Clock, *, max_runs: int = 10, secs: float = 10) -> None:
        self._clock = clock
        self._max_runs = max_runs
        self._secs = secs
        self._records: dict[str, _BrakeRecord] = {}
        self._causes: dict[tuple[str, str], tuple[float, frozenset[str]]] = {}
        bus.listen(self._on_event, CommandEnded)

    def note_effect(self, source: str, kind: str, name: str) -> None:
        """An execution, `automation:x` or `scene:x`, changes the thing of this kind and name, now.

        What a scene does that an automation runs was caused by that automation.
        """
        causes, now = self._causes_behind(source), self._clock.monotonic()
        if not causes:
            return
        before = self._causes.pop((kind, name), None)
        if before is not None and now - before[0] <= self._secs:
            causes |= before[1]
        self._causes[kind, name] = (now, causes)
        while now - next(iter(self._causes.values()))[0] > self._secs:
            del self._causes[next(iter(self._causes))]

    def _on_event(self, event: Event) -> None:
        assert isinstance(event, CommandEnded)
        self.note_effect(event.source, "device", event.device_id)

    def _causes_behind(self, source: str) -> frozenset[str]:
        kind, _, id_ = source.partition(":")
        if kind != "automation":
            return self._causes_of_thing(kind, id_)
        record = self._records.get(id_)
        return (_NO_CAUSES if record is None else record.causes) | {id_}

    def refusal(self, automation_id: str, event: Mapping[str, Value]) -> str | None:
        """Why the automation may not run for the event now; None where it may."""
        record, now = self._records.get(automation_id), self._clock.monotonic()
        if record is None:
            return None
        if now < record.paused_until:
            return f"brake: it set itself off too often; paused for {record.paused_until - now:.0f} s more"
        if automation_id not in self._causes_of(event) or len(self._recent(record)) < self._max_runs:
            return None
        record.paused_until = now + PAUSE_SECS
        record.runs.clear()
        sentence = f"it set itself off {self._max_runs} times within {self._secs:g} s; paused for {PAUSE_SECS:.0f} s"
        log.error("automation '%s': %s", automation_id, sentence)
        return f"brake: {sentence}"

    def note_execution(self, automation_id: str, event: Mapping[str, Value]) -> None:
        """Note an execution for the event; one that the automation caused itself counts towards `max_runs`."""
        causes = self._causes_of(event)
        if automation_id in causes:
            record = self._records.setdefault(automation_id, _BrakeRecord())
            record.runs.append(self._clock.monotonic())
            record.causes = causes
        elif causes or automation_id in self._records:
            self._records.setdefault(automation_id, _BrakeRecord()).causes = causes

    def paused_secs(self, automation_id: str) -> float | None:
        """For how many seconds more the automation is paused; None where it is not."""
        record = self._records.get(automation_id)
        left = 0.0 if record is None else record.paused_until - self._clock.monotonic()
        return left if left > 0 else None

    def _recent(self, record: _BrakeRecord) -> deque[float]:
        while record.runs and self._clock.monotonic() - record.runs[0] > self._secs:
            record.runs.popleft()
        return record.runs

    def _causes_of(self, event: Mapping[str, Value]) -> frozenset[str]:
        """The automations whose doing led to the event."""
        kind, key = THINGS.get(str(event.get("type")), ("", ""))
        return self._causes_of_thing(kind, str(event.get(key)))

    def _causes_of_thing(self, kind: str, name: str) -> frozenset[str]:
        found = self._causes.get((kind, name))
        if found is None or self._clock.monotonic() - found[0] > self._secs:
            return _NO_CAUSES
        return found[1]
