"""The common parts of all conditions: the comparison, and its sentences."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from appliance.automations.environment import Environment
from appliance.automations.fields import (
    NamedThing,
)
from appliance.home_locale import Locale
from appliance.tables.fields import Table


class ConditionResult(Struct, frozen=True, kw_only=True):
    """Whether something holds, and if not, the reason with the compared values; the reason is empty if it holds.

    `branch` is the path to the deciding condition within a combination, such as `1.2`; empty if it is the condition
    itself.
    """

    holds: bool
    reason: str = ""
    branch: str = ""


HOLDS = ConditionResult(holds=True)


def refused(reason: str, branch: str = "") -> ConditionResult:
    """Return the result of a condition that does not hold, with the reason."""
    return ConditionResult(holds=False, reason=reason, branch=branch)


class Fact(Struct, frozen=True, kw_only=True):
    """A comparison: `name` has `value` and must be `needs`; all sentences about comparisons are made here.

    `sentence` replaces name and value if these do not fit: for a missing device, or an untrusted clock. Without
    `needs`, the sentence is complete by itself.
    """

    holds: bool
    name: str = ""
    value: str = ""
    needs: str = ""
    sentence: str = ""
    kind: str = ""
    device_id: str = ""

    @property
    def past(self) -> str:
        """The past form: `brightness was 20`, `variable 'mode' was 'home'`."""
        return self.sentence or f"{self.name if not self.kind else f'{self.kind} {self.name!r}'} was {self.value}"

    @property
    def refusal(self) -> str:
        """Why the condition did not hold: `brightness was 20, needs above 50`."""
        return f"{self.past}, needs {self.needs}" if self.needs else self.past

    @property
    def present(self) -> str:
        """The present form: `brightness of 'desk:light:0' = 20`."""
        return self.sentence or f"{self.name}{f' of {self.device_id!r}' if self.device_id else ''} = {self.value}"


class Condition(Struct, frozen=True, kw_only=True):
    """The field of every kind: its `type`."""

    type: str = ""

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, depth: int) -> Condition | None:
        """Read a condition of this type from a table, for a home at this place; return None if something is wrong.
        `depth` is its nesting level, from 1."""
        raise NotImplementedError

    def look(self, home: Environment, instant: datetime | None) -> Fact:
        """Compare with the home as it is now; `instant` is None while the clock is not trusted."""
        raise NotImplementedError

    def holds(self, home: Environment, instant: datetime | None) -> ConditionResult:
        """Return whether the condition holds, and why not."""
        fact = self.look(home, instant)
        return HOLDS if fact.holds else refused(fact.refusal)

    def names(self) -> list[NamedThing]:
        """Return the things of the home that the condition names, except those in its inner conditions."""
        return []
