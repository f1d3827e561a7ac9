"""Commands, and their parsing from JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from appliance.errors import BadAnswer, Invalid, MalformedRequest, UnfitValue
from appliance.home import values
from appliance.home.capabilities import CAPABILITIES, Capability, is_custom
from appliance.home.values import STEP_CHECKS, Value
from appliance.tables.checks import format_value, is_number

VALUED_ACTIONS = frozenset({"set", "increase", "decrease"})
"""The actions that need a value. All other actions take no value."""


RELATIVE_ACTIONS = frozenset({"toggle", "press", "next", "previous", "increase", "decrease"})
"""Actions whose effect accumulates when they are repeated."""

_OPPOSITES = {"on": "off", "off": "on"}

MAX_CODE_CHARS = 64
"""Maximum number of characters of a code for a lock or an alarm panel."""


class Command(Struct, frozen=True, kw_only=True):
    """A capability, one of its actions, and the action's value in canonical form.

    The action and value of a custom capability (`custom.<adapter>.<field>`) are checked by the device's
    `CommandSpec`. `transition_secs` is the requested duration of a fade; adapters without fades ignore it. `code` is
    for a lock or an alarm panel, and is never shown or stored.
    """

    capability: str
    action: str
    value: Value = None
    transition_secs: float | None = None
    code: str | None = None

    def __repr__(self) -> str:
        """Return the command without its code, because the code must not appear in a log."""
        return f"Command({self}, value={self.value!r}, transition_secs={self.transition_secs!r})"

    @staticmethod
    def parse(raw: Any) -> Command:
        """Parse a command from JSON. Raise `Invalid` with the field and the expected value."""
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

    @property
    def can_repeat(self) -> bool:
        """Return whether the command can safely be sent again if no answer arrived."""
        return self.action not in RELATIVE_ACTIONS

    @property
    def has_bare_value(self) -> bool:
        """Return whether the value is a number that needs a unit."""
        known = CAPABILITIES.get(self.capability)
        return known is not None and known.type == "measurement" and is_number(self.value)


def without_toggle(command: Command, shown_value: Value, device: str) -> Command:
    """Replace `toggle` with `on` or `off`, the opposite of the current value.

    Raise `BadAnswer` for `toggle` if the current value is unknown.
    """
    if command.action != "toggle":
        return command
    if (action := _OPPOSITES.get(str(shown_value))) is None:
        raise BadAnswer(f"{device} does not report whether it is on; instead of `toggle`, send `on` or `off`")
    return replace(command, action=action)


def _capability(key: str) -> Capability:
    if key not in CAPABILITIES:
        raise Invalid(f"unknown capability {format_value(key)}; GET /capabilities lists them")
    return CAPABILITIES[key]


def _action(raw: dict[str, Any], capability: Capability) -> str:
    action = _word(raw, "action")
    if action not in capability.actions:
        offered = ", ".join(capability.actions)
        raise Invalid(f"{capability.key} has no action {format_value(action)}; its actions are: {offered}")
    return action


def _word(raw: dict[str, Any], field: str) -> str:
    word = raw.get(field)
    if word is None:
        raise MalformedRequest(f"{field} must be a non-empty string")
    if not isinstance(word, str) or word == "":
        raise Invalid(f"{field} must be a non-empty string")
    return word


def _needed(value: Value, key: str, action: str) -> Value:
    """Return the value. Raise `Invalid` if the action needs a value and the value is missing, or if the action takes
    no value and a value is given."""
    if action in VALUED_ACTIONS and value is None:
        raise Invalid(f"{key}: the action '{action}' needs a value")
    if action not in VALUED_ACTIONS and value is not None:
        raise Invalid(f"{key}: the action '{action}' takes no value")
    return value


def _value(value: Value, capability: Capability, action: str) -> Value:
    if _needed(value, capability.key, action) is None:
        return None
    if capability.type == "measurement" and is_number(value):
        return value  # accept a number here, because the device may accept only one unit
    check = capability.check if action == "set" else STEP_CHECKS.get(capability.type, capability.check)
    return _checked(check, value, capability.key)


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
        raise Invalid(f"transition_secs must be 0 or more seconds, not {format_value(seconds)}")
    return float(seconds)
