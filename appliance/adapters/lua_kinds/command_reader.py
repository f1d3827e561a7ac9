"""Reads the commands that a Lua file lists for its devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from appliance.errors import Invalid
from appliance.home.capabilities import CAPABILITIES
from appliance.home.command_specs import CommandSpec
from appliance.home.model import Device
from appliance.home.values import CHECKS
from appliance.tables.checks import Mismatch, format_value, listed, number, one_of, string
from appliance.tables.fields import Field, Fields, Table

MAX_COMMANDS = 250
"""Maximum number of commands of one device. The limit is low, because all commands are checked without a pause for
other tasks."""

MAX_KNOWN_DEVICES = 4000
"""Maximum number of devices whose commands are remembered."""

EXPLICIT_ACTIONS = frozenset({"get", "increase", "decrease", "reset"})
"""Actions that a command offers only if the file lists them."""


def array(value: Any) -> list[Any]:
    """Check a list. An empty Lua table can be a list or an object."""
    if value == {}:
        return []
    if not isinstance(value, list):
        raise Mismatch("a list", value)
    return value


def _listed(each: Callable[[Any], str], value: Any) -> tuple[str, ...]:
    return listed(each)(array(value))


_texts = partial(_listed, string)


def _actions(value: Any) -> tuple[str, ...]:
    if not (found := _texts(value)):
        raise Invalid("must name at least one action")
    return found


def _above_zero(value: Any) -> float:
    if (found := number(value)) <= 0:
        raise Mismatch("a number above 0", value)
    return found


_COMMAND: Fields = {
    "capability": Field(string),
    "actions": Field(_actions),
    "min": Field(number, required=False),
    "max": Field(number, required=False),
    "step": Field(_above_zero, required=False),
    "unit": Field(string, required=False),
    "values": Field(_texts, required=False),
    "type": Field(one_of(*CHECKS, "enum"), required=False),
}


class CommandReader:
    """Reads the commands of devices. The commands of a device are read again only if the file lists other
    commands."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[Any, tuple[CommandSpec, ...]]] = {}  # the list and its commands, by device

    def read(self, table: Table, device_id: str, stated: Any, known: Device | None) -> tuple[CommandSpec, ...]:
        """Return the valid commands in the field `commands`. Record a fault for each other entry.

        If the file lists no commands, or the same commands as before, return the earlier result.
        """
        last = self._read.get(device_id)
        if stated is None or (last is not None and last[0] == stated):
            table.raw("commands")
            return last[1] if last is not None else () if known is None else known.commands or ()
        specs: dict[str, CommandSpec] = {}
        example = '{ { capability = "power", actions = { "on", "off" } } }'
        for inner in table.tables("commands", example, "a capability, such as 'power', or a table"):
            count = len(inner.findings.faults)
            found = inner.read(_COMMAND)
            inner.refuse_others("a field of a command")
            if (known_capability := CAPABILITIES.get(found["capability"])) is not None:
                check = one_of(*known_capability.actions)
                inner.read({"actions": Field(partial(_listed, check), required=False)})
            low, high = found["min"], found["max"]
            if low is not None and high is not None and low > high:
                inner.fault("min", f"is greater than max: {format_value(low)}, {format_value(high)}")
            if found["capability"] in specs:
                inner.fault("capability", f"is listed twice: {format_value(found['capability'])}")
            if len(inner.findings.faults) == count:
                specs[found["capability"]] = CommandSpec(**{**found, "values": tuple(found["values"] or ())})
        return tuple(sorted(specs.values(), key=lambda spec: spec.capability))

    def remember(self, device_id: str, stated: Any, specs: tuple[CommandSpec, ...]) -> None:
        """Remember the valid commands of a valid device."""
        if stated is not None:
            if len(self._read) >= MAX_KNOWN_DEVICES:
                self._read.clear()
            self._read[device_id] = stated, specs

    def forget(self, device_id: str) -> None:
        """Forget the commands of a removed device."""
        self._read.pop(device_id, None)

    def handles_toggle(self, device_id: str) -> bool:
        """Return whether the file lists the device's action `toggle`."""
        stated = self._read.get(device_id, ([], ()))[0]
        return isinstance(stated, list) and any(map(_lists_toggle, stated))


def with_actions(command: Any) -> Any:
    """Return a command as a table. If the command is the name of a capability, the actions and the range come from
    the catalog."""
    if not isinstance(command, str) or (known := CAPABILITIES.get(command)) is None:
        return command
    bounds = {"min": 0, "max": 100} if known.type == "percentage" else {}
    actions = [each for each in known.actions if each not in EXPLICIT_ACTIONS]
    return {"capability": command, "actions": actions, **bounds}


def _lists_toggle(command: Any) -> bool:
    """Return whether a command from the file lists the action `toggle`."""
    actions = command.get("actions") if isinstance(command, Mapping) else None
    return isinstance(actions, list) and "toggle" in actions
