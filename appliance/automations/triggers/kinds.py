"""All kinds of triggers, and the parser that chooses the kind."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from appliance.automations import field_checks as check
from appliance.automations.triggers.base import Trigger
from appliance.automations.triggers.device import DEVICE_TRIGGERS
from appliance.automations.triggers.event import EVENT_TRIGGERS
from appliance.automations.triggers.time import TIMED_TRIGGERS
from appliance.home_locale import Locale
from appliance.tables.checks import one_of
from appliance.tables.fields import Table

TRIGGER_KINDS: Mapping[str, type[Trigger]] = {**DEVICE_TRIGGERS, **EVENT_TRIGGERS, **TIMED_TRIGGERS}


_OTHER_NAMES = {
    **dict.fromkeys(("time", "at"), "wall_clock"),
    **dict.fromkeys(("state", "numeric_state", "device"), "device_state_change"),
    "event": "device_event",
}
"""Names of triggers in other home automation systems, for hints."""


def parse_trigger(table: Table, locale: Locale, now: datetime) -> Trigger | None:
    """Parse a trigger's table. If the table has faults, record them and return None."""
    kind = table.need("type", one_of(*TRIGGER_KINDS, meant=_OTHER_NAMES))
    if kind is None:
        return None
    id_ = table.take("id", check.text)
    trigger = TRIGGER_KINDS[kind].parse(kind, table, locale, now)
    table.refuse_others(f"a field of the trigger {kind!r}")
    return trigger if trigger is None or id_ is None else replace(trigger, id=id_)
