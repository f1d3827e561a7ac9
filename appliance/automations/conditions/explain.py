"""Writes the sentences about conditions with their current values. A condition creates the parts of its sentence as a
`Fact` (`base`). `combine` joins these parts into the reason for a refusal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import Enum

from appliance.automations.conditions.base import Condition, Fact
from appliance.automations.conditions.combine import Combination
from appliance.automations.environment import Environment


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
                holds = condition.evaluate(environment, instant).holds
                yield f"{label}: {_verdict(needed, holds=holds)}: {condition.type} of {len(condition.conditions)}"
            yield from explain(condition.conditions, environment, instant, f"{prefix}{number}.", inner)
        else:
            fact = condition.evaluate(environment, instant)
            yield f"{label}: {_verdict(needed, holds=fact.holds)}: {fact.present or fact.past}{_needs(fact, needed)}"


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
