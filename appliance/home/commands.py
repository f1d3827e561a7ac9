"""Commands: a capability, an action and a value, parsed from JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from appliance.errors import Invalid, MalformedRequest, UnfitValue
from appliance.home import values
from appliance.home.capabilities import CAPABILITIES, Capability, is_custom
from appliance.home.values import Value
from appliance.tables.checks import is_number, shown

VALUED_ACTIONS = frozenset({"set", "increase", "decrease"})
"""The actions that need a value; no other takes one."""


MAX_CODE_CHARS = 64
"""Characters of the code of a lock or an alarm panel."""


class Command(Struct, frozen=True, kw_only=True):
    """One capability, one of its actions, and the value that the action needs, in canonical form.

    The actions and values of `custom.<adapter>.<field>` are checked by the device's `CommandSpec`.
    `transition_secs` asks for a fade of so many seconds; an adapter that cannot fade ignores it. `code` is what a
    lock or an alarm panel asks for; it is shown and kept nowhere.
    """

    capability: str
    action: str
    value: Value = None
    transition_secs: float | None = None
    code: str | None = None

    def __repr__(self) -> str:
        """Without the code, which no log may show."""
        return f"Command({self}, value={self.value!r}, transition_secs={self.transition_secs!r})"

    @staticmethod
    def parse(raw: Any) -> Command:
        """The command that a JSON object states; `Invalid` names the field and what it should be."""
        if not isinstance(raw, dict):
            raise MalformedRequest("a command must be an object with capability and action")
        key = _word(raw, "capability")
        value, transition_secs = raw.get("value"), _transition(raw.get("transition_secs"))
        if is_custom(key):
            action = _word(raw, "action")
            value = _checked(values.json_copy, _needed(value, key, action), key)
        else:
            capability = _capability(key)
            action = _action(raw, capability)
            try:
                value = _value(value, capability, action)
            except Invalid as fault:
                if value is None:
                    raise
                raise UnfitValue(str(fault), Command(capability=key, action=action, value=value)) from None
        code = _code(raw.get("code"))
        return Command(capability=key, action=action, value=value, transition_secs=transition_secs, code=code)

    def __str__(self) -> str:
        return f"{self.capability} {self.action}"


def _capability(key: str) -> Capability:
    if key not in CAPABILITIES:
        raise Invalid(f"unknown capability {shown(key)}; GET /capabilities lists them")
    return CAPABILITIES[key]


def _action(raw: dict[str, Any], capability: Capability) -> str:
    action = _word(raw, "action")
    if action not in capability.actions:
        offered = ", ".join(capability.actions)
        raise Invalid(f"{capability.key} has no action {shown(action)}; its actions are: {offered}")
    return action


def _word(raw: dict[str, Any], field: str) -> str:
    word = raw.get(field)
    if word is None:
        raise MalformedRequest(f"{field} must be a non-empty string")
    if not isinstance(word, str) or word == "":
        raise Invalid(f"{field} must be a non-empty string")
    return word


def _needed(value: Value, key: str, action: str) -> Value:
    """The value; `Invalid` where the action needs one and there is none, or the other way round."""
    if action in VALUED_ACTIONS and value is None:
        raise Invalid(f"{key} {action} needs a value")
    if action not in VALUED_ACTIONS and value is not None:
        raise Invalid(f"{key} {action} takes no value")
    return value


def _value(value: Value, capability: Capability, action: str) -> Value:
    if _needed(value, capability.key, action) is None:
        return None
    return _checked(capability.check, value, capability.key)


def _checked(check: Callable[[Value], Value], value: Value, key: str) -> Value:
    try:
        return check(value)
    except Invalid as fault:
        raise Invalid(f"value of {key}: {fault}") from None


def _code(code: Value) -> str | None:
    if code is not None and (not isinstance(code, str) or not 1 <= len(code) <= MAX_CODE_CHARS):
        raise Invalid(f"code must be a string of 1 to {MAX_CODE_CHARS} characters")
    return code


def _transition(seconds: Value) -> float | None:
    if seconds is None:
        return None
    if not is_number(seconds) or seconds < 0:
        raise Invalid(f"transition_secs must be a number of seconds from 0 on, not {shown(seconds)}")
    return float(seconds)
