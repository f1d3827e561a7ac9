"""Active triggers: what is under way for a trigger of an automation that is in force."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from msgspec import Struct, field

from appliance.automations.alarms import Alarm, TimerHandle
from appliance.automations.definition import AutomationDefinition
from appliance.automations.device_triggers import DeviceTrigger
from appliance.automations.policy import plain
from appliance.automations.triggers import Match, Trigger
from appliance.lua.lua_catalog import Asset


class Wait(Struct, kw_only=True):
    """A wait of one device: what it will fire, and the timer that ends it."""

    match: Match
    timer: TimerHandle


class ActiveTrigger(Struct, eq=False, kw_only=True):
    """One trigger of an automation. `due` is its schedule or interval, `waits` are those of its devices, by id."""

    asset: Asset[AutomationDefinition]
    trigger: Trigger
    due: Alarm | TimerHandle | None = None
    waits: dict[str, Wait] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The automation's id."""
        return self.asset.definition.id

    @property
    def label(self) -> str:
        """What the log calls it."""
        return f"automation '{self.id}'"

    @property
    def keys(self) -> tuple[str, str]:
        """The same for triggers of devices of the same meaning, over restarts: as of now, and in version 0.1."""
        if not isinstance(self.trigger, DeviceTrigger):
            return "", ""
        texts = json.dumps(plain(self.trigger.meaning), sort_keys=True), self.trigger.old_repr
        new, old = (hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest() for text in texts)
        return new, old

    @property
    def key(self) -> str:
        """What the waits of this trigger are kept under."""
        return self.keys[0]

    def is_for(self, trigger: Trigger, *, resumes: bool) -> bool:
        """Whether this is for a trigger that says the same."""
        other = ActiveTrigger(asset=self.asset, trigger=trigger)
        return self.resumes == resumes and (self.trigger == trigger or (self.key != "" and self.key == other.key))

    @property
    def resumes(self) -> bool:
        """Whether its schedule goes on after a restart where it was."""
        return self.asset.definition.policy.resumable_schedule


Fire = Callable[[ActiveTrigger, Match], None]
"""What is done with a trigger that matched, and its event."""
