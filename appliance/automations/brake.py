"""The brake pauses an automation that triggers itself repeatedly, directly or through other automations.

When an execution changes a subject, such as an attribute or a variable, the brake stores the automations that caused
the change. If the subject then triggers an automation, the stored automations are the cause of the new execution. An
automation is the cause of an attribute's change only if the automation has commanded the new value, and no other
command was sent between that command and the change. The brake never pauses actions by people.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from itertools import takewhile

from msgspec import Struct, field
from msgspec.structs import replace

from appliance.automations.names.named_things import SubjectKind
from appliance.automations.requirement import Requirement
from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.events import CommandStarted, DeviceStateChanged, Event
from appliance.home.values import Value

PAUSE_SECS = 60.0

MAX_SLOW_RUNS, SLOW_SECS = 30, 300.0
"""An automation is also paused after it has caused `MAX_SLOW_RUNS` of its own runs within `SLOW_SECS`."""

log = logging.getLogger("automations")

_NO_CAUSES: frozenset[str] = frozenset()
_ANY = Requirement()


class _Effect(Struct, frozen=True):
    """The time and the causes of a subject's latest change. For a command, `expected` is the commanded value."""

    at: float
    causes: frozenset[str]
    expected: Requirement


class _BrakeRecord(Struct):
    """The brake's data about an automation: the times of the runs that the automation itself caused, the causes of
    its latest execution, and the end of its pause."""

    runs: deque[float] = field(default_factory=deque)
    causes: frozenset[str] = _NO_CAUSES
    paused_until: float = float("-inf")


class Brake:
    """Pauses an automation for a minute if it has caused too many of its own runs: more than `max_runs` within
    `secs` seconds, or `MAX_SLOW_RUNS` within `SLOW_SECS`."""

    def __init__(self, bus: Bus, clock: Clock, *, max_runs: int = 10, secs: float = 10) -> None:
        self._clock = clock
        self._max_runs = max_runs
        self._secs = secs
        self._records: dict[str, _BrakeRecord] = {}
        self._effects: dict[tuple[str, ...], _Effect] = {}
        bus.listen(self._on_event, CommandStarted, DeviceStateChanged)

    def note_effect(self, source: str, kind: SubjectKind, *names: str, expected: Requirement = _ANY) -> None:
        """Record that an execution (`automation:x` or `scene:x`) changes a subject, such as a variable. If an
        automation runs a scene, the automation is the cause of the scene's effects."""
        if causes := self._causes_behind(source):
            subject = (kind, *names)
            self._note(subject, causes | self._causes_of(subject), expected)

    def note_invoke(self, source: str, payload: Mapping[str, Value]) -> None:
        """Record the execution as the cause of later values and events, as a command does. The operation's payload
        names the device."""
        device_id, attributes = str(payload.get("device_id")), payload.get("attributes")
        for name, value in attributes.items() if isinstance(attributes, Mapping) else ():
            self._note_command(source, device_id, name, Requirement(equals=value))
        if "event" in payload:
            self.note_effect(source, "event", device_id, str(payload["event"]))

    def _on_event(self, event: Event) -> None:
        if isinstance(event, CommandStarted):
            command = event.command
            self._note_command(event.source, event.device_id, command.capability, _expected_of(command))
        elif isinstance(event, DeviceStateChanged) and event.previous is not None:
            self._on_change(event)

    def _note_command(self, source: str, device_id: str, attribute: str, expected: Requirement) -> None:
        """Store an attribute's commanded value. The new value replaces any earlier commanded value."""
        subject, causes = ("command", device_id, attribute), self._causes_behind(source)
        self._note(subject, causes and causes | self._causes_of(subject), expected)

    def _on_change(self, event: DeviceStateChanged) -> None:
        if not self._effects:
            return
        device, everything = event.device, _NO_CAUSES
        for attribute in event.changed:
            command, value = ("command", device.id, attribute), device.attributes.get(attribute)
            causes = self._causes_of(command)
            if causes and self._effects[command].expected.holds(value):
                self._effects[command] = replace(self._effects[command], expected=Requirement(equals=value))
            else:  # the change has another cause
                causes = _NO_CAUSES
                self._effects.pop(command, None)
            everything |= causes
            self._note(("device", device.id, attribute), causes)
        self._note(("device", device.id), everything)

    def _note(self, subject: tuple[str, ...], causes: frozenset[str], expected: Requirement = _ANY) -> None:
        """Store the causes of the subject's latest change, and remove expired records."""
        self._effects.pop(subject, None)
        if causes:
            self._effects[subject] = _Effect(self._clock.monotonic(), causes, expected)
            self.remove_expired()

    def remove_expired(self) -> None:
        """Remove expired records. Without this call, a quiet home would keep the records of a flood."""
        now = self._clock.monotonic()
        for subject in [*takewhile(lambda each: now - self._effects[each].at > self._secs, self._effects)]:
            del self._effects[subject]

    def _causes_behind(self, source: str) -> frozenset[str]:
        kind, _, id_ = source.partition(":")
        if kind != "automation":
            return self._causes_of((kind, id_))
        record = self._records.get(id_)
        return (_NO_CAUSES if record is None else record.causes) | {id_}

    def apply(self, automation_id: str, subject: tuple[str, ...]) -> str | None:
        """Return why the automation must not run for a change of the subject now, or None if it may run. If the
        automation has reached a limit, pause it."""
        record, now = self._records.get(automation_id), self._clock.monotonic()
        if record is None:
            return None
        if now < record.paused_until:
            return f"brake: it triggered itself too often; paused for {record.paused_until - now:.0f} s more"
        limit = self._limit_reached(record, now) if automation_id in self._causes_of(subject) else None
        if limit is None:
            return None
        record.paused_until = now + PAUSE_SECS
        record.runs.clear()
        sentence = f"it triggered itself {limit[0]} times within {limit[1]:g} s; paused for {PAUSE_SECS:.0f} s"
        log.error("automation '%s': %s", automation_id, sentence)
        return f"brake: {sentence}"

    def note_execution(self, automation_id: str, subject: tuple[str, ...]) -> None:
        """If the automation caused the subject's change itself, count the execution towards `max_runs`."""
        causes = self._causes_of(subject)
        if automation_id in causes:
            record = self._records.setdefault(automation_id, _BrakeRecord())
            record.runs.append(self._clock.monotonic())
            record.causes = causes
        elif causes or automation_id in self._records:
            self._records.setdefault(automation_id, _BrakeRecord()).causes = causes

    def paused_secs(self, automation_id: str) -> float | None:
        """Return the remaining seconds of the automation's pause, or None if it is not paused."""
        record = self._records.get(automation_id)
        left = 0.0 if record is None else record.paused_until - self._clock.monotonic()
        return left if left > 0 else None

    def _limit_reached(self, record: _BrakeRecord, now: float) -> tuple[int, float] | None:
        """If a limit is exceeded, return it as a number of runs and seconds. Remove runs that are too old for both
        limits."""
        limits = ((self._max_runs, self._secs), (MAX_SLOW_RUNS, SLOW_SECS))
        while record.runs and now - record.runs[0] > max(self._secs, SLOW_SECS):
            record.runs.popleft()
        return next((limit for limit in limits if sum(now - at <= limit[1] for at in record.runs) >= limit[0]), None)

    def _causes_of(self, subject: tuple[str, ...]) -> frozenset[str]:
        """Return the automations that caused the subject's latest change."""
        found = self._effects.get(subject)
        if found is None or self._clock.monotonic() - found.at > self._secs:
            return _NO_CAUSES
        return found.causes


def _expected_of(command: Command) -> Requirement:
    """Return the requirement that the device's value will meet after the command. If the exact value is unknown,
    every value matches."""
    if command.action in ("on", "off"):
        return Requirement(equals=command.action)
    is_exact = command.action == "set" and not command.capability.startswith("color")  # devices round colours
    return Requirement(equals=command.value) if is_exact else Requirement()
