"""Definition: what one automation file says, parsed from the plain data of its table, with every fault at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from appliance.automations.condition_kinds import CONDITION_KINDS
from appliance.automations.conditions import Condition
from appliance.automations.fields import Fields, Notes, as_table, one_of, seconds
from appliance.automations.policy import Policy
from appliance.automations.trigger_kinds import TRIGGER_KINDS
from appliance.automations.triggers import CronTrigger, Interval, SunTrigger, Trigger, WallClock
from appliance.clock import Clock
from appliance.errors import Invalid
from appliance.home import values
from appliance.home.texts import LONGEST_ID, LONGEST_NAME
from appliance.home.values import Value
from appliance.locale import Locale
from appliance.lua.fields import Reader, function, text
from appliance.lua.modes import Mode, ModeType, mode_check

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One automation. Equal definitions do the same, but for their Lua."""

    id: str
    name: str
    description: str
    trigger: Trigger
    conditions: tuple[Condition, ...]
    policy: Policy
    mode: Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What became of a file's table: the definition, or None and the faults; and warnings in either case."""

    definition: Definition | None
    faults: tuple[str, ...]
    warnings: tuple[str, ...]


def automation_parser(locale: Locale, clock: Clock, default_max: int) -> Callable[[Reader], Definition]:
    """What reads an automation from what its file returned; `default_max` holds where its mode states no max."""

    def read(reader: Reader) -> Definition:
        parsed = parse(reader.described, locale, clock.now(), default_max)
        for sentence in parsed.faults:
            reader.refuse(sentence)
        for sentence in parsed.warnings:
            reader.warn(sentence)
        reader.finish()
        assert parsed.definition is not None
        return parsed.definition

    return read


def parse(raw: Value, locale: Locale, now: datetime, default_max: int) -> Parsed:
    """The definition that a table states, for a home at this place; what can never come after `now` is a fault.

    Each fault is a sentence that begins with the field's path.
    """
    notes = Notes()
    definition = _definition(raw, locale, now, default_max, notes)
    found = None if notes.faults else definition
    return Parsed(definition=found, faults=tuple(notes.faults), warnings=tuple(notes.warnings))


def _definition(raw: Value, locale: Locale, now: datetime, default_max: int, notes: Notes) -> Definition | None:
    if not isinstance(raw := as_table(raw), Mapping):
        notes.faults.append(f"the file must return a table, not {values.shown(raw)}")
        return None
    fields = Fields(raw, "", notes)
    id_ = fields.need("id", _or_invalid(text(LONGEST_ID).check))
    name = fields.need("name", _or_invalid(text(LONGEST_NAME).check))
    description = fields.take("description", values.string)
    trigger = _trigger(fields, locale, now)
    conditions = _conditions(fields, locale)
    policy = _policy(fields, trigger)
    mode = fields.take("mode", _or_invalid(mode_check(default_max)))
    fields.need("execute", _or_invalid(function))
    fields.refuse_others("an automation")
    if id_ is None or name is None or trigger is None:
        return None
    return Definition(
        id=id_,
        name=name,
        description=description or "",
        trigger=trigger,
        conditions=conditions,
        policy=policy,
        mode=mode or Mode(type=ModeType.PARALLEL, max=default_max),
    )


def _trigger(fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    raw = fields.raw("trigger")
    if raw is None:
        fields.fault("trigger", "is missing")
        return None
    if not isinstance(raw := as_table(raw), Mapping):
        fields.fault("trigger", f"must be a table, not {values.shown(raw)}")
        return None
    inner = Fields(raw, "trigger", fields.notes)
    kind = inner.need("type", one_of(TRIGGER_KINDS))
    if kind is None:
        return None
    trigger = TRIGGER_KINDS[kind](inner, locale, now)
    inner.refuse_others(f"the trigger {kind}")
    return trigger


def _conditions(fields: Fields, locale: Locale) -> tuple[Condition, ...]:
    raw = fields.raw("conditions")
    if isinstance(raw, Mapping) and raw:
        fields.fault("conditions", "must be a list of tables: { { type = … }, … }")
        return ()
    if not isinstance(raw, Mapping | list | tuple | None):
        fields.fault("conditions", f"must be a list of tables, not {values.shown(raw)}")
        return ()
    found = [_condition(each, number, fields, locale) for number, each in enumerate(raw or (), 1)]
    return tuple(condition for condition in found if condition is not None)


def _or_invalid(check: Callable[[Any], T]) -> Callable[[Any], T]:
    """The check of a definition's field, made of one that raises `ValueError`."""

    def checked(value: Any) -> T:
        try:
            return check(value)
        except ValueError as fault:
            raise Invalid(str(fault)) from None

    return checked


def _condition(raw: Value, number: int, fields: Fields, locale: Locale) -> Condition | None:
    path = f"conditions[{number}]"
    if not isinstance(raw := as_table(raw), Mapping):
        fields.fault(path, f"must be a table, not {values.shown(raw)}")
        return None
    inner = Fields(raw, path, fields.notes)
    kind = inner.need("type", one_of(CONDITION_KINDS))
    if kind is None:
        return None
    condition = CONDITION_KINDS[kind](inner, locale)
    inner.refuse_others(f"the condition {kind}")
    return condition


def _policy(fields: Fields, trigger: Trigger | None) -> Policy:
    raw = fields.raw("state")
    if raw is None:
        return Policy()
    if not isinstance(raw := as_table(raw), Mapping):
        fields.fault("state", f"must be a table, not {values.shown(raw)}")
        return Policy()
    inner = Fields(raw, "state", fields.notes)
    policy = Policy(
        cooldown_secs=inner.take("cooldown_secs", seconds) or 0,
        dedupe_window_secs=inner.take("dedupe_window_secs", seconds) or 0,
        resumable_schedule=inner.take("resumable_schedule", values.boolean) or False,
    )
    inner.refuse_others("state")
    if policy.resumable_schedule and not isinstance(trigger, WallClock | CronTrigger | SunTrigger | Interval | None):
        fields.notes.warnings.append(f"state.resumable_schedule does nothing: {trigger.type} has no schedule")
    return policy
