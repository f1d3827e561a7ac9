"""Triggers on variables, timers, hooks, adapters, and errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar

from appliance.automations import field_checks as check
from appliance.automations.environment import Environment
from appliance.automations.names.named_things import NamedThing, Subject
from appliance.automations.requirement import MUST_CHANGE, Requirement, describe_requirement, take_requirement
from appliance.automations.schedule.clock_watch import UNTRUSTED
from appliance.automations.triggers.base import EventTrigger, Match, Trigger
from appliance.clock import timestamp
from appliance.home import events
from appliance.home.events import Event
from appliance.home.texts import hook_id
from appliance.home.values import Value, describe, same
from appliance.home_locale import Locale
from appliance.tables.checks import one_of
from appliance.tables.fields import Table


class AdapterLifecycle(EventTrigger, frozen=True, kw_only=True):
    """An adapter starts. If `adapter` is None, any adapter matches."""

    type: str = "adapter_lifecycle"
    adapter: str | None = None

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger:
        table.take("event", one_of("started"))
        return cls(adapter=table.take("adapter", check.text))

    def names(self) -> list[NamedThing]:
        return [] if self.adapter is None else [NamedThing("adapter", "adapter", self.adapter)]

    def subjects(self) -> list[Subject]:
        return [("adapter", "")]

    def describe(self, environment: Environment, instant: datetime | None, *, is_waiting: bool = False) -> str:
        return f"waits until {'an adapter' if self.adapter is None else f'the adapter {self.adapter!r}'} starts"

    def match(self, event: Event) -> Match | None:
        if not isinstance(event, events.AdapterStarted) or self.adapter not in (None, event.adapter):
            return None
        return Match(event={"type": self.type, "adapter": event.adapter, "event": "started"}, subject=())


class SystemErrorTrigger(EventTrigger, frozen=True, kw_only=True):
    """An error occurs at run time. If `contains` is set, the message must contain this text."""

    type: str = "system_error"
    contains: str | None = None

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger:
        return cls(contains=table.take("contains", check.text))

    def subjects(self) -> list[Subject]:
        return [("error", "")]

    def describe(self, environment: Environment, instant: datetime | None, *, is_waiting: bool = False) -> str:
        return "waits until " + (
            "something fails" if self.contains is None else f"an error message contains {self.contains!r}"
        )

    def match(self, event: Event) -> Match | None:
        if not isinstance(event, events.SystemErrorReported) or (self.contains or "") not in event.message:
            return None
        return Match(event={"type": self.type, "message": event.message}, subject=())


class VariableTrigger(EventTrigger, frozen=True, kw_only=True):
    """A variable changes to a matching value. If `equals`, `above`, and `below` are all missing, every change and
    the removal match. If one of them is set, the trigger compares the new value with the last comparable value,
    even from before a removal. A variable's first value then does not match."""

    type: str = "variable_change"
    name: str
    requirement: Requirement = Requirement()

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
        name, requirement = table.need("name", check.variable_name), take_requirement(table, None)
        return None if name is None else cls(name=name, requirement=requirement)

    def names(self) -> list[NamedThing]:
        return [NamedThing("name", "variable", self.name)]

    def describe(self, environment: Environment, instant: datetime | None, *, is_waiting: bool = False) -> str:
        value = environment.variables.find(self.name)
        shown = "is not set" if value is None else f"is {describe(value)}"
        if value is not None and self.requirement.must_change(value):
            shown = f"is already {describe(value)}{'' if is_waiting else MUST_CHANGE}"
        demand = f"for variable {describe_requirement(self.name, self.requirement)}"
        change = f"until variable {self.name} changes" if self.requirement.is_any else demand
        return f"waits {change}; the variable {shown}"

    def match(self, event: Event) -> Match | None:
        if not isinstance(event, events.VariableChanged) or event.name != self.name:
            return None
        if self.requirement.is_any:
            previous, is_match = event.previous, not same(event.value, event.previous)
        else:
            previous = self.requirement.last_usable(event.known)
            is_match = self.requirement.is_entered(event.value, previous)
        if not is_match:
            return None
        table = {"type": self.type, "name": self.name, "value": event.value}
        if previous is not None:
            table["previous_value"] = previous
        return Match(event=table, subject=("variable", self.name))


class TimerTrigger(EventTrigger, frozen=True, kw_only=True):
    """A timer ends."""

    needs_clock: ClassVar[bool] = True

    type: str = "timer"
    name: str

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
        name = table.need("name", check.timer_name)
        return None if name is None else cls(name=name)

    def names(self) -> list[NamedThing]:
        return [NamedThing("name", "timer", self.name)]

    def describe(self, environment: Environment, instant: datetime | None, *, is_waiting: bool = False) -> str:
        due = environment.timers.find_end(self.name)
        doubt = f", and {UNTRUSTED}" if instant is None else ""
        remaining = "the timer is not running" if due is None else f"it ends at {timestamp(due)}{doubt}"
        return f"waits until the timer '{self.name}' ends; {remaining}"

    def match(self, event: Event) -> Match | None:
        if not isinstance(event, events.TimerFired) or event.name != self.name:
            return None
        table: dict[str, Value] = {"type": self.type, "name": self.name, "scheduled_at": timestamp(event.due_at)}
        if event.payload is not None:
            table["payload"] = event.payload
        if event.late_secs is not None:
            table["late_secs"] = event.late_secs
        return Match(event=table, subject=("timer", self.name))


class WebhookTrigger(EventTrigger, frozen=True, kw_only=True):
    """A client calls a hook."""

    type: str = "webhook"
    hook: str

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
        hook = table.need("hook", hook_id)
        return None if hook is None else cls(hook=hook)

    def subjects(self) -> list[Subject]:
        return [("hook", self.hook)]

    def describe(self, environment: Environment, instant: datetime | None, *, is_waiting: bool = False) -> str:
        return f"waits for a call of the hook '{self.hook}'"

    def match(self, event: Event) -> Match | None:
        """Match each call. If the call has no body, the event has no `data`."""
        if not isinstance(event, events.HookCalled) or event.hook != self.hook:
            return None
        data = {} if event.data is None else {"data": event.data}
        return Match(event={"type": self.type, "hook": event.hook, "query": dict(event.query), **data}, subject=())


EVENT_TRIGGERS: Mapping[str, type[Trigger]] = {
    "variable_change": VariableTrigger,
    "timer": TimerTrigger,
    "webhook": WebhookTrigger,
    "adapter_lifecycle": AdapterLifecycle,
    "system_error": SystemErrorTrigger,
}


SUBJECTS: Mapping[type[Event], Callable[[Any], Subject]] = {
    events.VariableChanged: lambda event: ("variable", event.name),
    events.TimerFired: lambda event: ("timer", event.name),
    events.HookCalled: lambda event: ("hook", event.hook),
    events.AdapterStarted: lambda event: ("adapter", ""),
    events.SystemErrorReported: lambda event: ("error", ""),
}
"""Maps each type of event without a device to a function that returns the event's subject."""
