"""Triggers: what an automation waits for, as values. Those of events answer `match`, those of time `next_after`.

Both give the event table that Lua gets, as plain data. Those of devices stand in `device_triggers.py`, those of time
in `time_triggers.py`.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct, field

from appliance.automations.device_triggers import DeviceEventTrigger, DeviceTrigger, Match
from appliance.automations.matchers import Anything, Matcher, same
from appliance.automations.time_triggers import TimedTrigger
from appliance.clock import timestamp
from appliance.home.events import (
    AdapterStarted,
    Event,
    HookCalled,
    SystemErrorReported,
    TimerFired,
    VariableChanged,
)
from appliance.home.values import Value


class AdapterLifecycle(Struct, frozen=True, kw_only=True):
    """An adapter starts; None is any adapter."""

    type: ClassVar[str] = "adapter_lifecycle"
    id: str | None = None
    adapter: str | None = None

    def match(self, event: Event) -> Match | None:
        """The event table if the event is the start of the adapter, or of any where none is named."""
        if not isinstance(event, AdapterStarted) or self.adapter not in (None, event.adapter):
            return None
        return Match(event={"type": self.type, "adapter": event.adapter, "event": "started"})


class SystemErrorTrigger(Struct, frozen=True, kw_only=True):
    """Something fails at run time; with `contains`, only if its message holds this text."""

    type: ClassVar[str] = "system_error"
    id: str | None = None
    contains: str | None = None

    def match(self, event: Event) -> Match | None:
        """The event table if the event is an error whose message contains the text."""
        if not isinstance(event, SystemErrorReported) or (self.contains or "") not in event.message:
            return None
        return Match(event={"type": self.type, "message": event.message})


class VariableTrigger(Struct, frozen=True, kw_only=True):
    """A variable changes to a value that matches; without equals, above and below its removal is a change too."""

    type: ClassVar[str] = "variable_change"
    id: str | None = None
    name: str
    matcher: Matcher = field(default_factory=Anything)

    def match(self, event: Event) -> Match | None:
        """The event table if the event is a change of the variable to a value that matches."""
        if not isinstance(event, VariableChanged) or event.name != self.name or same(event.value, event.previous):
            return None
        is_removal = event.value is None and isinstance(self.matcher, Anything)
        if not is_removal and not (self.matcher.holds(event.value) and self.matcher.entered_from(event.previous)):
            return None
        table = {"type": self.type, "name": self.name, "value": event.value}
        return Match(event=table if event.previous is None else {**table, "previous_value": event.previous})


class TimerTrigger(Struct, frozen=True, kw_only=True):
    """A timer that Lua started is over."""

    type: ClassVar[str] = "timer"
    id: str | None = None
    name: str

    def match(self, event: Event) -> Match | None:
        """The event table if the event is the end of this timer."""
        if not isinstance(event, TimerFired) or event.name != self.name:
            return None
        table: dict[str, Value] = {"type": self.type, "name": self.name, "scheduled_at": timestamp(event.due_at)}
        if event.payload is not None:
            table["payload"] = event.payload
        late = {} if event.late_secs is None else {"late_secs": event.late_secs}
        return Match(event={**table, **late}, after=event.stored)


class WebhookTrigger(Struct, frozen=True, kw_only=True):
    """Somebody calls the hook of this id."""

    type: ClassVar[str] = "webhook"
    id: str | None = None
    hook: str

    def match(self, event: Event) -> Match | None:
        """The event table if the event is a call of this hook; `data` is absent where the body stated nothing."""
        if not isinstance(event, HookCalled) or event.hook != self.hook:
            return None
        data = {} if event.data is None else {"data": event.data}
        return Match(event={"type": self.type, "hook": event.hook, "query": dict(event.query), **data})


EventTrigger = (
    DeviceTrigger
    | DeviceEventTrigger
    | AdapterLifecycle
    | SystemErrorTrigger
    | VariableTrigger
    | TimerTrigger
    | WebhookTrigger
)
"""The triggers that events match; each has `match(event)`."""

Trigger = EventTrigger | TimedTrigger
