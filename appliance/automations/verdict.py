"""Verdict: yes, or no with a reason for a person."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether something holds, and why not, with the values compared; the reason is empty when it does.

    `branch` is the way to the condition within a combination that decided, `1.2`; empty where it is the thing itself.
    """

    holds: bool
    reason: str = ""
    branch: str = ""


HOLDS = Verdict(holds=True)
"""A yes, which needs no reason."""


def untrusted(needs: object) -> Verdict:
    """The verdict on what depends on the time, and needs this, while the clock is not trusted."""
    return refused(f"the clock is not trusted yet, needs {needs}")


def refused(reason: str, branch: str = "") -> Verdict:
    """The verdict that something does not hold, with its reason."""
    return Verdict(holds=False, reason=reason, branch=branch)
