"""Definition: what one automation file says, parsed from the plain data of its table, with every fault at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from appliance.automations.condition_kinds import parse_conditions
from appliance.automations.conditions import Condition
from appliance.automations.fields import Fields, Notes, as_table, seconds
from appliance.automations.known_names import KnownNames
from appliance.automations.policy import Policy
from appliance.automations.time_triggers import TimedTrigger
from appliance.automations.trigger_kinds import parse_trigger
from appliance.automations.triggers import Trigger
from appliance.clock import Clock
from appliance.errors import Invalid
from appliance.home import values
from appliance.home.texts import LONGEST_ID, LONGEST_NAME
from appliance.home.values import Value
from appliance.locale import Locale
from appliance.lua.fields import Reader, function, text
from appliance.lua.modes import Mode, ModeType, mode_check

T = TypeVar("T")

RESERVED_IDS = ("reload",)
"""Ids that automations cannot have: `/automations/reload` is no automation."""

EXAMPLE = "{ { type = … }, … }"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One automation, set off by each of its triggers. Equal definitions do the same, but for their Lua."""

    id: str
    name: str
    description: str
    triggers: tuple[Trigger, ...]
    conditions: tuple[Condition, ...]
    policy: Policy
    mode: Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What became of a file's table: the definition, or None and the faults; and warnings in either case."""

    definition: Definition | None
    faults: tuple[str, ...]
    warnings: tuple[str, ...]


def automation_parser(
    locale: Locale, clock: Clock, default_max: int, known: KnownNames | None = None
) -> Callable[[Reader], Definition]:
    """What reads an automation from what its file returned; `default_max` holds where its mode states no max.

    What the file names and is not among the `known` names is a warning.
    """

    def read(reader: Reader) -> Definition:
        parsed = parse(reader.described, locale, clock.now(), default_max)
        for sentence in parsed.faults:
            reader.refuse(sentence)
        for sentence in parsed.warnings:
            reader.warn(sentence)
        reader.finish()
        assert parsed.definition is not None
        if known is not None:
            for sentence in known.warnings_of(parsed.definition.triggers, parsed.definition.conditions):
                reader.warn(sentence)
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
    if id_ in RESERVED_IDS:
        fields.fault("id", f"must not be '{id_}', which is a path of the API; choose another")
    name = fields.need("name", _or_invalid(text(LONGEST_NAME).check))
    description = fields.take("description", values.string)
    triggers = _triggers(fields, locale, now)
    conditions = parse_conditions(fields, locale)
    policy = _policy(fields, triggers)
    mode = fields.take("mode", _or_invalid(mode_check(default_max)))
    fields.need("execute", _or_invalid(function))
    fields.refuse_others("an automation")
    if id_ is None or name is None or not triggers:
        return None
    return Definition(
        id=id_,
        name=name,
        description=description or "",
        triggers=triggers,
        conditions=conditions,
        policy=policy,
        mode=mode or Mode(type=ModeType.PARALLEL, max=default_max),
    )


def _triggers(fields: Fields, locale: Locale, now: datetime) -> tuple[Trigger, ...]:
    """What `trigger` states, or each table of the list `triggers`."""
    raw, many = as_table(fields.raw("trigger")), as_table(fields.raw("triggers"))
    if raw is not None and many is not None:
        fields.fault("triggers", "cannot stand beside trigger; choose one")
        return ()
    if raw is None and many is None:
        fields.fault("trigger", "is missing")
        return ()
    if raw is not None and not isinstance(raw, Mapping):
        fields.fault("trigger", f"must be a table, not {values.shown(raw)}")
        return ()
    if many == {}:
        fields.fault("triggers", "must hold at least one trigger")
    tables = fields.tables("triggers", EXAMPLE) if raw is None else [Fields(raw, "trigger", fields.notes)]
    found = [parse_trigger(table, locale, now) for table in tables]
    triggers = tuple(each for each in found if each is not None)
    _refuse_same_ids(fields, triggers)
    return triggers


def _refuse_same_ids(fields: Fields, triggers: tuple[Trigger, ...]) -> None:
    seen: set[str] = set()
    for trigger in triggers:
        if trigger.id is not None and trigger.id in seen:
            fields.fault("triggers", f"hold the id '{trigger.id}' twice; give each its own")
        seen |= set() if trigger.id is None else {trigger.id}


def _or_invalid(check: Callable[[Any], T]) -> Callable[[Any], T]:
    """The check of a definition's field, made of one that raises `ValueError`."""

    def checked(value: Any) -> T:
        try:
            return check(value)
        except ValueError as fault:
            raise Invalid(str(fault)) from None

    return checked


def _policy(fields: Fields, triggers: tuple[Trigger, ...]) -> Policy:
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
    if policy.resumable_schedule and triggers and not any(isinstance(each, TimedTrigger) for each in triggers):
        kinds = " and ".join(dict.fromkeys(each.type for each in triggers))
        fields.notes.warnings.append(f"state.resumable_schedule does nothing: {kinds} has no schedule")
    return policy
