"""The base of all conditions, and the result of a condition."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from appliance.automations.environment import Environment
from appliance.automations.names.named_things import NamedThing
from appliance.home_locale import Locale
from appliance.tables.fields import Table


class Fact(Struct, frozen=True, kw_only=True):
    """The result of a condition, with the compared values.

    - `holds`: the result; None (neither a match nor a non-match) if the compared value is unknown.
    - `past`: a sentence in the past tense, such as `brightness was 20` or `variable 'mode' was 'home'`.
    - `present`: the sentence in the present tense, such as `brightness of 'desk:light:0' = 20`; empty if `past` fits
      both tenses.
    - `needs`: the required value; empty if the sentence is complete.
    - `branch`: the path to the deciding condition within a combination, such as `1.2`.
    """

    holds: bool | None
    past: str = ""
    present: str = ""
    needs: str = ""
    branch: str = ""

    @property
    def refusal(self) -> str:
        """Return the reason why the condition did not hold: `brightness was 20, needs above 50`. Return an empty
        string if the condition held."""
        if self.holds:
            return ""
        return f"{self.past}, needs {self.needs}" if self.needs else self.past


class Condition(Struct, frozen=True, kw_only=True):
    """A condition of an automation."""

    type: str = ""

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale) -> Condition | None:
        """Read a condition of this type from a table. Return None if the table has faults.
        Combinations are parsed in `kinds`."""
        raise NotImplementedError

    def evaluate(self, environment: Environment, instant: datetime | None) -> Fact:
        """Compare the condition with the current state of the home. `instant` is None while the clock is not
        trusted."""
        raise NotImplementedError

    @property
    def needs_clock(self) -> bool:
        """Return whether the condition depends on the time. The conditions inside a combination are not included."""
        return False

    def names(self) -> list[NamedThing]:
        """Return the devices, rooms, and variables that the condition names. Nested conditions are not included."""
        return []
