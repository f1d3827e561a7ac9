"""The kinds of trigger, by their `type`; each stands, with all that there is to know of it, in one of three files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from appliance.automations import automation_fields as check
from appliance.automations.device_triggers import DEVICE_TRIGGERS
from appliance.automations.time_triggers import TIMED_TRIGGERS
from appliance.automations.triggers import EVENT_TRIGGERS, Trigger
from appliance.home_locale import Locale
from appliance.tables.checks import one_of
from appliance.tables.fields import Table

TRIGGER_KINDS: Mapping[str, type[Trigger]] = {**DEVICE_TRIGGERS, **EVENT_TRIGGERS, **TIMED_TRIGGERS}


def parse_trigger(table: Table, locale: Locale, now: datetime) -> Trigger | None:
    """The trigger that a table states, for a home at this place; None where something is wrong, which is noted."""
    kind = table.need("type", one_of(*TRIGGER_KINDS))
    if kind is None:
        return None
    id_ = table.take("id", check.text)
    trigger = TRIGGER_KINDS[kind].parse(kind, table, locale, now)
    table.refuse_others(f"a field of the trigger {kind}")
    return trigger if trigger is None or id_ is None else replace(trigger, id=id_)
