"""The combinations of conditions `all`, `any`, and `none`, and the check of a whole list of conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from appliance.automations.conditions.base import Condition, Fact
from appliance.automations.environment import Environment

_UNKNOWN = "unknown, because "


class Combination(Condition, frozen=True, kw_only=True):
    """A combination: all, any, or none of the conditions must hold, according to `type`."""

    conditions: tuple[Condition, ...]

    def evaluate(self, environment: Environment, instant: datetime | None) -> Fact:
        """Evaluate the conditions in order until the result is known."""
        return _COMBINE[self.type](each.evaluate(environment, instant) for each in self.conditions)


def list_nested(conditions: Iterable[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        yield condition
        if isinstance(condition, Combination):
            yield from list_nested(condition.conditions)


class Refusal(Struct, frozen=True):
    """The reason why an automation does not run. `condition` is the number of the condition that does not hold."""

    reason: str
    condition: int | None = None


def check_conditions(
    conditions: Sequence[Condition], environment: Environment, instant: datetime | None
) -> Refusal | None:
    """Return None if all conditions hold. Otherwise, the reason begins with the path of the first failed condition:
    `condition 2.1: brightness was …`.

    `instant` is None while the clock is not trusted.
    """
    fact = _all(each.evaluate(environment, instant) for each in conditions)
    if fact.holds:
        return None
    return Refusal(f"condition {fact.branch}: {fact.refusal}", int(fact.branch.partition(".")[0]))


def _all(facts: Iterable[Fact]) -> Fact:
    """Return the first refusal. The result is false if any condition does not hold, even after an unknown one."""
    refusal: Fact | None = None
    for number, fact in enumerate(facts, 1):
        if fact.holds:
            continue
        refusal = refusal or _refuse(fact.refusal, _path(number, fact), holds=None)
        if fact.holds is False:
            return replace(refusal, holds=False)
    return refusal or Fact(holds=True, past="all holds")


def _any(facts: Iterable[Fact]) -> Fact:
    """Return whether any condition holds. If none holds, the reason joins the reasons of all conditions."""
    refusals: list[Fact] = []
    for number, fact in enumerate(facts, 1):
        if fact.holds:
            return Fact(holds=True, past="any holds")
        refusals.append(replace(fact, branch=_path(number, fact)))
    reasons = "; ".join(f"{each.branch}: {each.refusal}" for each in refusals)
    is_unknown = any(each.holds is None for each in refusals)
    return _refuse(f"none of its conditions holds ({reasons})", holds=None if is_unknown else False)


def _none(facts: Iterable[Fact]) -> Fact:
    """Return the first condition that holds. If no condition holds, return the first unknown condition, because it
    may hold."""
    unknown: Fact | None = None
    for number, fact in enumerate(facts, 1):
        if fact.holds:
            return _refuse(f"{fact.past} but must not be", str(number), holds=False)
        if fact.holds is None:
            reason = fact.past.removeprefix(_UNKNOWN)  # a nested `none` has added these words
            unknown = unknown or _refuse(_UNKNOWN + reason, str(number), holds=None)
    return unknown or Fact(holds=True, past="none holds")


_COMBINE = {"all": _all, "any": _any, "none": _none}


def _refuse(reason: str, branch: str = "", *, holds: bool | None) -> Fact:
    return Fact(holds=holds, past=reason, branch=branch)


def _path(number: int, fact: Fact) -> str:
    return f"{number}.{fact.branch}" if fact.branch else str(number)
