"""Active triggers: the triggers of the loaded automations, with their schedules and waits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from msgspec import Struct, field

from appliance.automations.definition import AutomationDefinition, state_fields
from appliance.automations.policy import plain
from appliance.automations.schedule import Alarm, TimerHandle
from appliance.automations.triggers.base import Match, Trigger
from appliance.automations.triggers.device import DeviceTrigger
from appliance.lua.catalog import Asset


def wait_key(trigger: DeviceTrigger) -> str:
    """Return a text that is the same for triggers with the same meaning, over reloads and restarts."""
    stated = state_fields(trigger)
    if trigger.devices.ids:
        stated["device_id"] = sorted(trigger.devices.ids)
    return hash_text(json.dumps(plain(stated), sort_keys=True))


def hash_text(text: str) -> str:
    """Return a short text that is the same for equal texts."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


class Wait(Struct, kw_only=True):
    """A wait of one device: the match that it will fire, and the timer that ends it."""

    match: Match
    timer: TimerHandle


class ActiveTrigger(Struct, eq=False, kw_only=True):
    """One trigger of an automation. `due` is its schedule or interval; `waits` holds the waits of its devices, by
    id."""

    asset: Asset[AutomationDefinition]
    trigger: Trigger
    due: Alarm | TimerHandle | None = None
    waits: dict[str, Wait] = field(default_factory=dict)
    is_stopped: bool = False

    @property
    def id(self) -> str:
        """The automation's id."""
        return self.asset.definition.id

    @property
    def label(self) -> str:
        """The automation's name in the log."""
        return f"automation '{self.id}'"

    @property
    def key(self) -> str:
        """The key of the trigger's stored waits; empty if the trigger has no devices."""
        return wait_key(self.trigger) if isinstance(self.trigger, DeviceTrigger) else ""

    def is_for(self, trigger: Trigger, *, resumes: bool) -> bool:
        """Return whether this active trigger can continue as `trigger` after a reload."""
        if self.resumes != resumes:
            return False
        return self.trigger == trigger or (isinstance(trigger, DeviceTrigger) and self.key == wait_key(trigger))

    @property
    def resumes(self) -> bool:
        """Whether the trigger's schedule resumes after a restart."""
        return self.asset.definition.policy.resumable_schedule


Fire = Callable[[ActiveTrigger, Match], None]
"""Called with a trigger that matched, and its match."""
