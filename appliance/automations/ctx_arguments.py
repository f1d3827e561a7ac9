"""Checks for the arguments of `ctx` methods. The hub checks all arguments at run time; `lares check` checks
literals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from appliance.adapters.lua_calls import SCRIPT_LOG_LEVELS
from appliance.adapters.notification import parse_actions
from appliance.automations.field_checks import take_attribute
from appliance.automations.requirement import Requirement, take_requirement
from appliance.automations.timers import check_timer
from appliance.automations.variables import check_variable
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.lua.running.ctx_calls import MAX_WAIT_SECS
from appliance.tables.checks import LUA, boolean, format_value, nearest, number, suggest
from appliance.tables.fields import Findings, Table

MAX_NOTIFICATION_CHARS = 4096

MAX_SNAPSHOT_DEVICES = 1_000


def check_sleep(seconds: float) -> None:
    if not 0 <= seconds <= MAX_WAIT_SECS:
        raise Invalid(f"ctx:sleep takes 0 to {MAX_WAIT_SECS} seconds, not {format_value(seconds)}")


def parse_wait(raw: Any) -> tuple[str, Requirement, float]:
    """Return the attribute, the value to wait for, and the timeout in seconds."""
    table = _options(raw, "ctx:wait_for")
    attribute = take_attribute(table)
    if not table.has("attribute"):
        table.fault("attribute", "is missing")
    requirement = take_requirement(table, attribute)
    secs = table.need("timeout_secs", number)
    _finish(table, "ctx:wait_for")
    if requirement.is_any or attribute is None or secs is None:
        raise Invalid("ctx:wait_for needs equals, above, or below")
    check_timeout(secs)
    return attribute, requirement, secs


def check_timeout(secs: float) -> None:
    if not 0 <= secs <= MAX_WAIT_SECS:
        raise Invalid(f"ctx:wait_for: timeout_secs must be from 0 to {MAX_WAIT_SECS}, not {format_value(secs)}")


def parse_is_durable(options: Any) -> bool:
    """Return whether the options of `ctx:set` request a durable value."""
    table = _options(options, "ctx:set")
    is_durable = table.take("durable", boolean) or False
    _finish(table, "ctx:set")
    return is_durable


def check_payload(payload: Any) -> None:
    if payload is not None and not isinstance(payload, dict) and payload != []:
        raise Invalid("ctx:invoke: the payload must be a table with named fields")


def check_notification(message: str, fields: Any) -> None:
    if not message.strip() or len(message) > MAX_NOTIFICATION_CHARS:
        raise Invalid(f"ctx:notify: the message must have 1 to {MAX_NOTIFICATION_CHARS} characters")
    if fields is not None and not isinstance(fields, dict) and fields != []:
        raise Invalid("ctx:notify: the fields must be a table with named fields")
    if isinstance(fields, dict):
        try:
            parse_actions(fields.get("actions"))
        except Invalid as fault:
            raise Invalid(f"ctx:notify: {fault}") from None


def parse_device_ids(ids: Any) -> list[str]:
    ids = [] if ids == {} else ids  # an empty Lua table becomes an empty object
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise Invalid('ctx:snapshot takes a list of device ids: { "elgato_lights:light:0" }')
    if len(ids) > MAX_SNAPSHOT_DEVICES:
        raise Invalid(f"ctx:snapshot takes at most {MAX_SNAPSHOT_DEVICES} devices, not {len(ids)}")
    return ids


def check_snapshot(snapshot: Any) -> None:
    if not isinstance(snapshot, dict) or not all(isinstance(each, dict) for each in snapshot.values()):
        raise Invalid("ctx:restore takes the result of ctx:snapshot")
    if len(snapshot) > MAX_SNAPSHOT_DEVICES:
        raise Invalid(f"ctx:restore takes at most {MAX_SNAPSHOT_DEVICES} devices, not {len(snapshot)}")


def check_level(level: str) -> None:
    """Check the level of `ctx:log`. At run time, `prelude/ctx.lua` does the same check."""
    if level not in SCRIPT_LOG_LEVELS:
        *others, last = SCRIPT_LOG_LEVELS
        hint = suggest(nearest(level, SCRIPT_LOG_LEVELS))
        raise Invalid(f"ctx:log: level must be {', '.join(others)} or {last}, not {format_value(level)}{hint}")


def _check_set(name: Any, value: Any, options: Any) -> None:
    check_variable(name, value)
    parse_is_durable(options)


CHECKS: Mapping[str, Callable[[Any, Any, Any], object]] = {
    "command": lambda _, command, __: Command.parse(command),
    "command_room": lambda _, command, __: Command.parse(command),
    "command_group": lambda _, command, __: Command.parse(command),
    "invoke": lambda _, payload, __: check_payload(payload),
    "notify": lambda message, fields, _: check_notification(message, fields),
    "sleep": lambda seconds, *_: check_sleep(seconds),
    "wait_for": lambda _, condition, __: parse_wait(condition),
    "set": _check_set,
    "start_timer": check_timer,
    "snapshot": lambda ids, *_: parse_device_ids(ids),
    "restore": lambda snapshot, *_: check_snapshot(snapshot),
    "log": lambda level, *_: check_level(level),
}
"""Checks of each method's arguments. A check raises `Invalid` if the call would fail. The arguments must already have
the right Lua types."""


def _options(raw: Any, call: str) -> Table:
    if raw is not None and not isinstance(raw, dict) and raw != []:
        raise Invalid(f"{call}: the options must be a table with named fields")
    return Table(raw or {}, Findings(LUA))


def _finish(table: Table, call: str) -> None:
    table.refuse_others(f"a field of {call}")
    if table.findings.faults:
        raise Invalid(f"{call}: {'; '.join(map(str, table.findings.faults))}")
