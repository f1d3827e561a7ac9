"""The table of all kinds of conditions, and the combinations `all`, `any`, and `none`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum

from msgspec.structs import replace

from appliance.automations.conditions.base import HOLDS, Condition, ConditionResult, Fact, refused
from appliance.automations.conditions.device import HOME_CONDITIONS
from appliance.automations.conditions.time import TIME_CONDITIONS
from appliance.automations.environment import Environment
from appliance.home_locale import Locale
from appliance.tables.checks import one_of
from appliance.tables.fields import Table

MAX_CONDITION_DEPTH = 8
"""The maximum nesting of `all`, `any`, and `none`."""


class Combination(Condition, frozen=True, kw_only=True):
    """A combination: all, any, or none of the conditions must hold, according to `type`."""

    conditions: tuple[Condition, ...]

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, depth: int) -> Condition | None:
        if depth > MAX_CONDITION_DEPTH:
            table.raw("conditions")
            table.fault("type", f"is nested more than {MAX_CONDITION_DEPTH} levels deep")
            return None
        if not table.has("conditions") or table.raw("conditions") in ({}, []):
            table.raw("conditions")
            table.fault("conditions", "is missing; add at least one condition")
            return None
        return cls(type=kind, conditions=parse_conditions(table, locale, depth + 1))

    def holds(self, environment: Environment, instant: datetime | None) -> ConditionResult:
        return _COMBINE[self.type](self.conditions, environment, instant)


CONDITION_KINDS: Mapping[str, type[Condition]] = {
    **HOME_CONDITIONS,
    **TIME_CONDITIONS,
    **dict.fromkeys(("all", "any", "none"), Combination),
}


_OTHER_NAMES = {"time": "time_window", "state": "device_state", "sun": "sun_position"}
"""Names of conditions in other home automation systems, for hints."""


def parse_conditions(table: Table, locale: Locale, depth: int = 1) -> tuple[Condition, ...]:
    """Read the field `conditions`, a list of tables. If a condition has faults, record them and omit the
    condition."""
    tables = table.tables("conditions", "{ { type = … }, … }")
    found = [_parse(each, locale, depth) for each in tables]
    return tuple(condition for condition in found if condition is not None)


def _parse(table: Table, locale: Locale, depth: int) -> Condition | None:
    kind = table.need("type", one_of(*CONDITION_KINDS, meant=_OTHER_NAMES))
    if kind is None:
        return None
    condition = CONDITION_KINDS[kind].parse(kind, table, locale, depth)
    table.refuse_others(f"a field of the condition {kind!r}")
    return condition


def list_nested(conditions: Iterable[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        yield condition
        if isinstance(condition, Combination):
            yield from list_nested(condition.conditions)


class Needed(Enum):
    """The result that a combination requires from a nested condition."""

    MUST = "must be"
    MUST_NOT = "must not be"
    MAY = "can be"


def explain(
    conditions: Sequence[Condition],
    environment: Environment,
    instant: datetime | None,
    prefix: str = "",
    needed: Needed = Needed.MUST,
) -> Iterator[str]:
    """Yield a sentence for each condition, including nested conditions: whether it holds or prevents a run.

    `instant` is None while the clock is not trusted.
    """
    for number, condition in enumerate(conditions, 1):
        label = f"condition {prefix}{number}"
        if isinstance(condition, Combination):
            inner = _NEEDED[condition.type] if needed is Needed.MUST else Needed.MAY
            if inner is Needed.MAY:
                holds = condition.holds(environment, instant).holds
                yield f"{label}: {_verdict(needed, holds=holds)}: {condition.type} of {len(condition.conditions)}"
            yield from explain(condition.conditions, environment, instant, f"{prefix}{number}.", inner)
        else:
            fact = condition.look(environment, instant)
            yield f"{label}: {_verdict(needed, holds=fact.holds)}: {fact.present}{_needs(fact, needed)}"


_NEEDED = {"all": Needed.MUST, "none": Needed.MUST_NOT, "any": Needed.MAY}


def _verdict(needed: Needed, *, holds: bool | None) -> str:
    if needed is Needed.MAY:
        return "holds" if holds else "does not hold"
    return "holds" if holds is (needed is Needed.MUST) else "blocked"


def _needs(fact: Fact, needed: Needed) -> str:
    if not fact.needs:
        return ""
    if needed is Needed.MUST_NOT:
        return " (must not be)" if fact.holds else f" (must not be {fact.needs})"
    return f" (must be {fact.needs})"


def check_all(conditions: Sequence[Condition], environment: Environment, instant: datetime | None) -> ConditionResult:
    """Return whether all conditions hold. If a condition does not hold, the reason begins with the number of the
    first failed condition: `condition 2.1: brightness was …`.

    `instant` is None while the clock is not trusted.
    """
    outcome = _all(conditions, environment, instant)
    return HOLDS if outcome.holds else refused(f"condition {outcome.branch}: {outcome.reason}", outcome.branch)


def _all(conditions: Sequence[Condition], environment: Environment, instant: datetime | None) -> ConditionResult:
    """Return the first refusal. The result is unknown if each refusal is unknown."""
    refusals: list[ConditionResult] = []
    for number, condition in enumerate(conditions, 1):
        outcome = condition.holds(environment, instant)
        if not outcome.holds:
            refusals.append(replace(outcome, branch=_branch(number, outcome)))
        if outcome.holds is False:
            break
    return replace(refusals[0], holds=refusals[-1].holds) if refusals else HOLDS


def _any(conditions: Sequence[Condition], environment: Environment, instant: datetime | None) -> ConditionResult:
    """Return whether any condition holds. If none holds, the reason joins the reasons of all conditions."""
    refusals: list[ConditionResult] = []
    for number, condition in enumerate(conditions, 1):
        outcome = condition.holds(environment, instant)
        if outcome.holds:
            return HOLDS
        refusals.append(replace(outcome, branch=_branch(number, outcome)))
    reasons = "; ".join(f"{each.branch}: {each.reason}" for each in refusals)
    is_unknown = any(each.holds is None for each in refusals)
    return refused(f"none of its conditions holds ({reasons})", is_unknown=is_unknown)


def _none(conditions: Sequence[Condition], environment: Environment, instant: datetime | None) -> ConditionResult:
    """Return the first condition that holds. If no condition holds, return the first unknown condition, because it
    may hold."""
    unknown: ConditionResult | None = None
    for number, condition in enumerate(conditions, 1):
        if isinstance(condition, Combination):
            outcome = condition.holds(environment, instant)
            holds, seen = outcome.holds, f"{condition.type} holds" if outcome.holds else outcome.reason
        else:
            fact = condition.look(environment, instant)
            holds, seen = fact.holds, fact.past
        if holds:
            return refused(f"{seen} but must not be", str(number))
        if holds is None:
            unknown = unknown or refused(f"unknown, because {seen}", str(number), is_unknown=True)
    return unknown or HOLDS


_COMBINE = {"all": _all, "any": _any, "none": _none}


def _branch(number: int, outcome: ConditionResult) -> str:
    return f"{number}.{outcome.branch}" if outcome.branch else str(number)
