"""Verdict: yes, or no with a reason for a person."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether something holds, and why not, with the values compared; the reason is empty when it does."""

    holds: bool
    reason: str = ""


HOLDS = Verdict(holds=True)
"""The one yes."""


def refused(reason: str) -> Verdict:
    """A no with its reason."""
    return Verdict(holds=False, reason=reason)
