"""The definition of an automation, parsed from its file's table. All faults are reported together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import cached_property

from msgspec import Struct

from appliance.automations.change_times import Comparison
from appliance.automations.conditions.base import Condition
from appliance.automations.conditions.combine import list_nested
from appliance.automations.conditions.device import DeviceState
from appliance.automations.conditions.explain import explain
from appliance.automations.conditions.kinds import parse_conditions
from appliance.automations.environment import Environment
from appliance.automations.field_checks import seconds
from appliance.automations.policy import Policy
from appliance.automations.stored_hashes import key_of
from appliance.automations.triggers.base import TimedTrigger, Trigger
from appliance.automations.triggers.kinds import parse_trigger
from appliance.clock import Clock
from appliance.home.texts import MAX_ID_CHARS, MAX_NAME_CHARS, text
from appliance.home_locale import Locale
from appliance.lua.files.catalog import hint_of_field
from appliance.lua.running.modes import Mode, ModeType, mode_check
from appliance.tables.checks import boolean, function, string, suggest
from appliance.tables.fields import Problem, Table

RESERVED_IDS = ("reload",)
"""Ids that would conflict with a path of the API: `/automations/reload`."""

MAX_PARTS = 200
"""Maximum number of triggers, and of conditions including nested conditions. The number is limited because the hub
checks all triggers and conditions without a pause."""

EXAMPLE = "{ { type = … }, … }"


class AutomationDefinition(Struct, frozen=True, kw_only=True, dict=True):
    """An automation. Any trigger of an automation can start it. Apart from their Lua code, automations with equal
    definitions behave equally. If `enabled` is false, the automation is off until a person switches it on."""

    id: str
    name: str
    description: str
    triggers: tuple[Trigger, ...]
    conditions: tuple[Condition, ...]
    policy: Policy
    mode: Mode
    enabled: bool = True

    @cached_property
    def trigger_keys(self) -> tuple[str, ...]:
        """The key of each trigger; see `key_of`."""
        return tuple(map(key_of, self.triggers))

    @cached_property
    def comparisons(self) -> tuple[tuple[str, Comparison], ...]:
        """The comparisons of conditions with `for_secs`, each with its device id."""
        return tuple(
            (condition.device_id, condition.comparison)
            for condition in list_nested(self.conditions)
            if isinstance(condition, DeviceState) and condition.for_secs
        )

    @property
    def timer_names(self) -> set[str]:
        """The automation's timers with a trigger."""
        return {name for trigger in self.triggers for kind, name in trigger.subjects() if kind == "timer"}

    def compute_cached(self) -> None:
        """Compute the cached properties. The event loop needs the properties of thousands of files in one turn, so
        call this method on another thread."""
        _ = self.trigger_keys, self.comparisons

    def needs_clock(self) -> bool:
        """Return whether a trigger or condition depends on the time."""
        has_trigger = any(trigger.needs_clock for trigger in self.triggers)
        return has_trigger or any(condition.needs_clock for condition in list_nested(self.conditions))

    def explain(
        self, environment: Environment, instant: datetime | None, *, is_waiting: bool = False
    ) -> Iterator[str]:
        """Yield a sentence with current values for each trigger and condition.

        `instant` is None while the clock is not trusted. `is_waiting` is true if a match waits for its duration to
        end.
        """
        yield from (trigger.describe(environment, instant, is_waiting=is_waiting) for trigger in self.triggers)
        yield from explain(self.conditions, environment, instant)


FindWarnings = Callable[[AutomationDefinition], Iterable[Problem]]


def automation_parser(
    locale: Locale, clock: Clock, default_max: int, find_warnings: FindWarnings | None = None
) -> Callable[[Table], AutomationDefinition | None]:
    """Return a parser for the table in an automation's file. `default_max` is the mode's default `max`.
    `find_warnings` yields warnings about the definition."""

    def read(table: Table) -> AutomationDefinition | None:
        definition = parse(table, locale, clock.now(), default_max)
        if definition is not None:
            definition.compute_cached()
        if definition is not None and find_warnings is not None:
            table.findings.warnings += find_warnings(definition)
        return definition

    return read


def parse(table: Table, locale: Locale, now: datetime, default_max: int) -> AutomationDefinition | None:
    """Parse a definition. A schedule without a time after `now` is a fault. Record all faults in the table's
    findings. Return None if an essential field is wrong."""
    id_ = table.need("id", text(MAX_ID_CHARS))
    if id_ in RESERVED_IDS:
        table.fault("id", f"must not be '{id_}', which is a path of the API; choose another id")
    name = table.need("name", text(MAX_NAME_CHARS))
    description = table.take("description", string)
    triggers = _triggers(table, locale, now)
    conditions = parse_conditions(table, locale)
    for field, count in (("triggers", len(triggers)), ("conditions", sum(1 for _ in list_nested(conditions)))):
        if count > MAX_PARTS:
            table.fault(
                field,
                f"has {count} entries, but can have at most {MAX_PARTS}; split it into several files",
            )
    policy = _policy(table, triggers)
    mode = table.take("mode", mode_check(default_max))
    if policy.cooldown_secs and mode is not None and mode.type in (ModeType.QUEUED, ModeType.RESTART):
        table.warn("mode", "has no effect, because state.cooldown_secs ignores every trigger during a run")
    enabled = table.take("enabled", boolean)
    table.need("execute", function)
    table.refuse_others("a field of an automation", _hint_of_field)
    if id_ is None or name is None or not triggers:
        return None
    return AutomationDefinition(
        id=id_,
        name=name,
        description=description or "",
        triggers=triggers,
        conditions=conditions,
        policy=policy,
        mode=mode or Mode(type=ModeType.PARALLEL, max=default_max),
        enabled=enabled is not False,
    )


def _hint_of_field(name: str, known: list[str]) -> str:
    if name in Policy.__struct_fields__:
        return suggest(f"state = {{ {name} = … }}")
    return hint_of_field(name, known)


def _triggers(table: Table, locale: Locale, now: datetime) -> tuple[Trigger, ...]:
    """Parse the table `trigger`, or each table in the list `triggers`."""
    table.raw("trigger")
    if table.raw("triggers") is not None and table.has("trigger"):
        table.fault("triggers", "cannot be used together with trigger; choose one")
        return ()
    if table.has("trigger"):
        one = table.table("trigger", "one table (use triggers for a list)")
        tables = [] if one is None else [one]
    elif not table.has("triggers"):
        table.fault("trigger", "is missing")
        return ()
    else:
        tables = table.tables("triggers", EXAMPLE)
        if table.raw("triggers") in ({}, []):
            table.fault("triggers", "must contain at least one trigger")
    found = [parse_trigger(each, locale, now) for each in tables]
    triggers = tuple(each for each in found if each is not None)
    _refuse_same_ids(table, triggers)
    return triggers


def _refuse_same_ids(table: Table, triggers: tuple[Trigger, ...]) -> None:
    seen: set[str] = set()
    for trigger in triggers:
        if trigger.id is not None and trigger.id in seen:
            table.fault("triggers", f"contain the id '{trigger.id}' twice; give each trigger a different id")
        seen |= set() if trigger.id is None else {trigger.id}


def _policy(table: Table, triggers: tuple[Trigger, ...]) -> Policy:
    state = table.table("state")
    if state is None:
        return Policy()
    policy = Policy(
        cooldown_secs=state.take("cooldown_secs", seconds) or 0,
        dedupe_window_secs=state.take("dedupe_window_secs", seconds) or 0,
        resumable_schedule=state.take("resumable_schedule", boolean) or False,
    )
    state.refuse_others("a field of state")
    if policy.resumable_schedule and triggers and not any(isinstance(each, TimedTrigger) for each in triggers):
        state.warn("resumable_schedule", "has no effect, because no trigger has a schedule")
    return policy
