"""Checks the literal arguments of `ctx` calls in Lua source text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from appliance.automations.ctx_arguments import CHECKS, check_timeout
from appliance.automations.field_checks import variable_name
from appliance.automations.timers import check_timer
from appliance.errors import Fault, Invalid, LaresError
from appliance.home.capabilities import CAPABILITIES, KNOWN_ATTRIBUTES, is_custom
from appliance.home.command_specs import CommandSpec, check_offered
from appliance.home.commands import Command
from appliance.lua.text.hints import ErrorContext, hint_of
from appliance.lua.text.literal_calls import ARGUMENTS, UNKNOWN, LiteralCall, literal_calls
from appliance.lua.text.source import Source, by_text
from appliance.tables.checks import nearest, suggest

COMMANDS = frozenset({"command", "command_room", "command_group"})

SpecsOf = Mapping[str, tuple[CommandSpec, ...]]
"""The commands of each device by its id and alias. A device with unknown commands is absent."""

_LUA_TYPES = {str: "string", bool: "boolean", int: "number", float: "number", dict: "table", list: "table"}


def find_wrong_literals(source: Source, specs: SpecsOf) -> Iterator[Fault]:
    """Yield a fault for each call with wrong literal arguments."""
    in_tables = set()
    lines: list[str] = []
    for call in _list_calls(source):
        try:
            _check(call, specs)
        except LaresError as fault:
            message = str(fault)
            if not call.method:
                in_tables.add(message)
            elif message in in_tables:  # the table in the local variable has already caused this warning
                continue
            prefix = f"ctx:{call.method}"
            where = f"{prefix}: " if call.method and not message.startswith(prefix) else ""
            lines = lines or source.chunk.decode(errors="replace").split("\n")
            hint = hint_of(ErrorContext(message=message, line=lines[call.line - 1]))
            yield Fault(source.name, call.line, f"{where}{message}{hint}")


@by_text
def _list_calls(source: Source) -> tuple[LiteralCall, ...]:
    return tuple(literal_calls(source, frozenset(ARGUMENTS), "capability"))


def _check(call: LiteralCall, specs: SpecsOf) -> None:
    """Raise a `LaresError` if the call would fail. Most checks apply only to `ctx`, because other objects may have
    methods with equal names."""
    if not call.method:
        _check_command(call.arguments[0], None, None)
        return
    first, second, third, *_ = (*call.arguments, *(UNKNOWN if call.is_open else None,) * 3)
    if call.object == "ctx":
        _check_types(call, (first, second, third))
        _check_name(call.method, first)
    if call.method in COMMANDS:
        if call.object == "ctx":
            _check_fields(second)
        device_id = first if call.method == "command" else None
        _check_command(second, specs.get(device_id) if isinstance(device_id, str) else None, device_id)
    elif call.method == "wait_for":
        _check_wait(second)
    elif call.method == "start_timer" and isinstance(second, int | float):
        check_timer(first if isinstance(first, str) else "…", second, None)
    if _is_known([first, second, third]) and (call.object == "ctx" or call.method == "sleep"):
        CHECKS.get(call.method, lambda *_: None)(first, second, third)
    elif call.method == "log" and call.object == "ctx" and isinstance(first, str):
        CHECKS["log"](first, None, None)


def _check_types(call: LiteralCall, arguments: tuple[Any, ...]) -> None:
    expected = ARGUMENTS[call.method]
    for number, (value, type_) in enumerate(zip(arguments, expected, strict=False), 1):
        name, is_optional = type_.removesuffix("?"), type_.endswith("?")
        found = "nil" if value is None else _LUA_TYPES.get(type(value))
        if name == "any" or found in (None, name) or (value is None and is_optional):
            continue
        signature = f"ctx:{call.method}({', '.join(expected).replace('?', ' or nothing')})"
        if value is None and number > len(call.arguments):
            raise Invalid(f"ctx:{call.method} needs argument {number}, a {name}; write {signature}")
        raise Invalid(f"ctx:{call.method}: argument {number} must be a {name}, not {found}; write {signature}")


def _check_name(method: str, name: Any) -> None:
    """Check the name of a variable if it is a literal. The value may be computed."""
    if method in ("get", "set") and isinstance(name, str):
        try:
            variable_name(name)
        except Invalid as fault:
            raise Invalid(f"the variable's name {fault}") from None


def _check_wait(table: Any) -> None:
    if not isinstance(table, dict):
        return
    if isinstance(secs := table.get("timeout_secs"), int | float):
        check_timeout(secs)
    attribute = table.get("attribute", UNKNOWN)
    if isinstance(attribute, str) and attribute not in KNOWN_ATTRIBUTES and not is_custom(attribute):
        near = nearest(attribute, KNOWN_ATTRIBUTES)
        raise Invalid(f"ctx:wait_for: {attribute!r} is not an attribute{suggest(near)}")


def _check_fields(table: Any) -> None:
    """Raise `Invalid` for an unknown field of a command. At run time, the hub ignores such a field."""
    known = Command.__struct_fields__
    for name in table if isinstance(table, dict) else ():
        if isinstance(name, str) and name not in known:
            raise Invalid(f"{name} is not a field of a command{suggest(nearest(name, known))}")


def _check_command(table: Any, specs: tuple[CommandSpec, ...] | None, device_id: Any) -> None:
    """Raise a `LaresError` if the table is not a command, or if the device does not offer the command."""
    if not isinstance(table, dict):
        return
    capability, action = table.get("capability", UNKNOWN), table.get("action", UNKNOWN)
    _check_parts(capability, action)
    if capability is UNKNOWN or ("action" in table and action is UNKNOWN):
        return
    is_named = isinstance(capability, str) and isinstance(action, str)
    if (
        specs is not None
        and is_named
        and not any(each.capability == capability and action in each.actions for each in specs)
    ):
        check_offered(device_id, specs, Command(capability=capability, action=action))
    if _is_known(table):
        command = Command.parse(table)
        if specs is not None:
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
    """Return whether every part of the value is literal."""
    if isinstance(value, dict):
        return all(map(_is_known, value.values()))
    return all(map(_is_known, value)) if isinstance(value, list) else value is not UNKNOWN
