"""Active triggers: the triggers of the loaded automations, with their schedules and waits."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from appliance.automations.definition import AutomationDefinition
from appliance.automations.schedule.scheduled_calls import CalendarCall, DelayedCall
from appliance.automations.triggers.base import Match, Trigger
from appliance.automations.triggers.device import DeviceTrigger
from appliance.lua.files.catalog import LoadedFile


class Wait(Struct, kw_only=True):
    """A running wait. When `call` is due, the trigger fires `match`."""

    trigger: DeviceTrigger
    match: Match
    call: DelayedCall


class ActiveTrigger(Struct, eq=False, kw_only=True):
    """A trigger of a loaded automation.

    - `key`: identifies the trigger within the automation, also in the storage of waits (`stored_hashes.key_of`).
    - `call`: the scheduler's call for the trigger's schedule or interval.
    - `waits`: the trigger's running waits by device id.
    """

    file: LoadedFile[AutomationDefinition]
    trigger: Trigger
    key: str
    call: CalendarCall | DelayedCall | None = None
    waits: dict[str, Wait] = field(default_factory=dict)
    is_stopped: bool = False

    @property
    def id(self) -> str:
        return self.file.definition.id

    @property
    def label(self) -> str:
        return f"automation '{self.id}'"

    @property
    def resumes(self) -> bool:
        return self.file.definition.policy.resumable_schedule

    def wait_key(self, device_id: str) -> str:
        """Return the storage key of the trigger's wait for the device."""
        return f"{self.key} {device_id}"


Fire = Callable[[ActiveTrigger, Match], None]
"""Runs the automation after a trigger has matched."""
