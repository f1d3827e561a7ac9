"""The result of a condition: yes, or no with a reason for a person."""

from __future__ import annotations

from msgspec import Struct


class ConditionResult(Struct, frozen=True, kw_only=True):
    """Whether something holds, and why not, with the values compared; the reason is empty when it does.

    `branch` is the way to the condition within a combination that decided, `1.2`; empty where it is the thing itself.
    """

    holds: bool
    reason: str = ""
    branch: str = ""


HOLDS = ConditionResult(holds=True)
"""A yes, which needs no reason."""


def untrusted(needs: object) -> ConditionResult:
    """The result for what depends on the time, and needs this, while the clock is not trusted."""
    return refused(f"the clock is not trusted yet, needs {needs}")


def refused(reason: str, branch: str = "") -> ConditionResult:
    """The result that something does not hold, with its reason."""
    return ConditionResult(holds=False, reason=reason, branch=branch)
