"""Checks of the literal arguments in calls of `ctx`: capabilities, actions, values, and seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from appliance.automations.timers import check_timer
from appliance.errors import Fault, Invalid, LaresError
from appliance.home.capabilities import CAPABILITIES, KNOWN_ATTRIBUTES, is_custom
from appliance.home.commands import Command, CommandSpec, check_offered
from appliance.lua.execution import MAX_WAIT_SECS
from appliance.lua.failures import ErrorContext, hint_of
from appliance.lua.literals import UNKNOWN, LiteralCall, literal_calls
from appliance.lua.source import Source, by_text
from appliance.tables.checks import is_number, nearest

COMMANDS = frozenset({"command", "command_room", "command_group"})

SpecsOf = Mapping[str, tuple[CommandSpec, ...]]
"""The commands of each device by its id and alias."""


def find_wrong_literals(source: Source, specs: SpecsOf) -> Iterator[Fault]:
    """Yield a sentence for each literal that would certainly fail when the call runs."""
    for call in _list_calls(source):
        arguments = (*call.arguments, UNKNOWN, UNKNOWN)
        try:
            if call.method == "sleep":
                _check_seconds("ctx:sleep", arguments[0], MAX_WAIT_SECS)
            elif call.method == "start_timer":
                _check_timer(arguments[0], arguments[1])
            elif call.method == "wait_for":
                _check_wait(arguments[1])
            else:
                table = arguments[1] if call.method else arguments[0]
                device_id = arguments[0] if call.method == "command" else None
                _check_command(table, specs.get(device_id, ()) if isinstance(device_id, str) else (), device_id)
        except LaresError as fault:
            message = str(fault)
            hint = hint_of(ErrorContext(message=message))
            where = f"ctx:{call.method}: " if call.method in {*COMMANDS, "start_timer"} else ""
            yield Fault(source.name, call.line, f"{where}{message}{hint}")


@by_text
def _list_calls(source: Source) -> tuple[LiteralCall, ...]:
    return tuple(literal_calls(source, COMMANDS | {"sleep", "start_timer", "wait_for"}, "capability"))


def _check_seconds(what: str, seconds: Any, most: int) -> None:
    if is_number(seconds) and not 0 <= seconds <= most:
        raise Invalid(f"{what} takes 0 to {most} seconds, not {seconds:g}")


def _check_timer(name: Any, seconds: Any) -> None:
    if is_number(seconds):
        check_timer(name if isinstance(name, str) else "…", seconds, None)


def _check_wait(table: Any) -> None:
    if not isinstance(table, dict):
        return
    _check_seconds("ctx:wait_for: timeout_secs", table.get("timeout_secs"), MAX_WAIT_SECS)
    attribute = table.get("attribute", UNKNOWN)
    if isinstance(attribute, str) and attribute not in KNOWN_ATTRIBUTES and not is_custom(attribute):
        near = nearest(attribute, KNOWN_ATTRIBUTES)
        hint = "" if near is None else f"; did you mean {near}"
        raise Invalid(f"ctx:wait_for: {attribute!r} is not an attribute{hint}")


def _check_command(table: Any, specs: tuple[CommandSpec, ...], device_id: Any) -> None:
    """Raise a `LaresError` if the table cannot be a command, or is not one that the device offers."""
    if not isinstance(table, dict):
        return
    capability, action = table.get("capability", UNKNOWN), table.get("action", UNKNOWN)
    if capability is UNKNOWN or ("action" in table and action is UNKNOWN):
        _check_parts(capability, action)
        return
    _check_parts(capability, action)
    is_named = isinstance(capability, str) and isinstance(action, str)
    if specs and is_named and not any(each.capability == capability and action in each.actions for each in specs):
        check_offered(device_id, specs, Command(capability=capability, action=action))
    if _is_known(table):
        command = Command.parse(table)
        if specs:
            check_offered(device_id, specs, command)


def _check_parts(capability: Any, action: Any) -> None:
    if not isinstance(capability, str) or is_custom(capability):
        return
    if capability not in CAPABILITIES:
        raise Invalid(f"unknown capability '{capability}'")
    actions = CAPABILITIES[capability].actions
    if isinstance(action, str) and action not in actions:
        raise Invalid(f"{capability} has no action '{action}'; its actions are: {', '.join(actions)}")


def _is_known(value: Any) -> bool:
    """Return whether no part of the value is computed."""
    if isinstance(value, dict):
        return all(map(_is_known, value.values()))
    return all(map(_is_known, value)) if isinstance(value, list) else value is not UNKNOWN
