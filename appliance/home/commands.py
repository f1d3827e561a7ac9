"""Command: what a client asks of a device, in canonical words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from appliance.errors import Invalid
from appliance.home import values
from appliance.home.capabilities import CAPABILITIES, Capability
from appliance.home.values import Value

VALUED_ACTIONS = frozenset({"set", "increase", "decrease"})
"""The actions that need a value; no other takes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One capability, one of its actions, and the value that the action needs, in canonical form.

    `transition_secs` asks for a fade of so many seconds; an adapter that cannot fade ignores it.
    """

    capability: str
    action: str
    value: Value = None
    transition_secs: float | None = None

    @staticmethod
    def parse(raw: Any) -> Command:
        """The command that a JSON object states; `Invalid` names the field and what it should be."""
        if not isinstance(raw, dict):
            raise Invalid("a command must be an object with capability and action")
        capability = _capability(raw)
        action = _action(raw, capability)
        return Command(
            capability=capability.key,
            action=action,
            value=_value(raw.get("value"), capability, action),
            transition_secs=_transition(raw.get("transition_secs")),
        )

    def __str__(self) -> str:
        return f"{self.capability} {self.action}"


def _capability(raw: dict[str, Any]) -> Capability:
    key = _word(raw, "capability")
    if key not in CAPABILITIES:
        raise Invalid(f"unknown capability {values.shown(key)}; GET /capabilities lists them")
    return CAPABILITIES[key]


def _action(raw: dict[str, Any], capability: Capability) -> str:
    action = _word(raw, "action")
    if action not in capability.actions:
        offered = ", ".join(capability.actions)
        raise Invalid(f"{capability.key} has no action {values.shown(action)}; its actions are: {offered}")
    return action


def _word(raw: dict[str, Any], field: str) -> str:
    word = raw.get(field)
    if not isinstance(word, str) or word == "":
        raise Invalid(f"{field} must be a non-empty string")
    return word


def _value(value: Value, capability: Capability, action: str) -> Value:
    if action not in VALUED_ACTIONS:
        if value is not None:
            raise Invalid(f"{capability.key} {action} takes no value")
        return None
    if value is None:
        raise Invalid(f"{capability.key} {action} needs a value")
    try:
        return capability.check(value)
    except Invalid as fault:
        raise Invalid(f"value of {capability.key}: {fault}") from None


def _transition(seconds: Value) -> float | None:
    if seconds is None:
        return None
    if not values.is_number(seconds) or seconds < 0:
        raise Invalid(f"transition_secs must be a number of seconds from 0 on, not {values.shown(seconds)}")
    return float(seconds)
