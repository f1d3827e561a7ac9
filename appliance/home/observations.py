"""Checks observations, and drops values that the catalog does not allow."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from appliance.errors import Invalid
from appliance.home.capabilities import KNOWN_ATTRIBUTES, is_custom
from appliance.home.command_specs import CommandSpec
from appliance.home.model import Device, DeviceKind, Info, Metadata, Observation
from appliance.home.texts import MAX_ID_CHARS, MAX_NAME_CHARS, clean_text, strip_id
from appliance.home.values import MAX_JSON_DEPTH, Value, json_copy
from appliance.tables.checks import format_value

Dropped = dict[str, str]
"""The reasons why attributes and fields were dropped, by name. The name is the subject of the sentence, and the
reason contains the rest of the sentence."""

_SCALARS = (str, int, float, bool)

MAX_COMMANDS = 1000
"""Maximum number of commandable capabilities per device."""


def check_attributes(seen: Any, known: Mapping[str, Value], dropped: Dropped) -> dict[str, Value]:
    """Return the valid attributes in canonical form. For each invalid attribute, add the reason to `dropped`.

    `known` contains the device's previous attributes, whose values are valid.
    """
    if type(seen) is not dict and not isinstance(seen, Mapping):
        dropped["attributes"] = f"must be an object, not {format_value(seen)}"
        return {}
    valid: dict[str, Value] = {}
    for key, value in seen.items():
        before = known.get(key)
        is_comparable = type(value) is type(before) and (type(value) in _SCALARS or key in KNOWN_ATTRIBUTES)
        if before is not None and is_comparable and value == before:
            valid[key] = before
            continue
        try:
            valid[key] = _check_attribute(key, value)
        except Invalid as fault:
            dropped[_shown_key(key)] = str(fault)
    return valid


def device_after(before: Device, seen: Observation, state: str, now: datetime, dropped: Dropped) -> Device:
    """Return the device after the observation, with this `state`. Raise `Invalid` for an unknown kind.

    For each other invalid part, add the reason to `dropped`. A dropped attribute is unknown. If the observation has
    no name or no info, the device keeps its earlier name or info. Parts that have not changed remain the same
    objects.
    """
    if not isinstance(seen.kind, DeviceKind):
        raise Invalid(f"kind must be one of {', '.join(DeviceKind)}, not {format_value(seen.kind)}")
    dropped.update(seen.wrong)
    attributes = {**check_attributes(seen.attributes, before.attributes, dropped), "state": state}
    is_as_before = attributes == before.attributes
    metadata, name, info, commands = before.metadata, before.vendor_name, before.info, before.commands
    if seen.vendor_specific != metadata.vendor_specific:
        checked = Metadata(source=metadata.source, vendor_specific=_check_vendor_data(seen.vendor_specific, dropped))
        metadata = metadata if checked == metadata else checked
    if seen.name != name:
        name = _check_text("name", seen.name, dropped) or name
    if seen.info != info:
        stated = _check_info(seen.info, dropped)
        info = info if stated in (info, None) else stated
    if seen.commands != commands:
        commands = _check_commands(seen.commands, commands, dropped)
    return Device(  # `replace` would take twice as long, and every observation calls this function
        id=before.id,
        room_id=before.room_id,
        kind=seen.kind,
        attributes=before.attributes if is_as_before else attributes,
        metadata=metadata,
        updated_at=before.updated_at if is_as_before else now,
        last_seen=now,
        person_name=before.person_name,
        vendor_name=name,
        alias=before.alias,
        info=info,
        commands=commands,
        last=before.last,
    )


def check_device_id(device_id: Any) -> None:
    """Raise `Invalid` if the text cannot be the id of a device."""
    _check_id(device_id, "the device id", "a valid device id")


def check_event(event: Any, data: Any) -> tuple[str, dict[str, Value]]:
    """Return the valid name and data of a device's event. Raise `Invalid` if the name or the data is invalid."""
    _check_id(event, "the name of an event", "a valid event name")
    if not isinstance(data, Mapping):
        raise Invalid(f"the data of the event {event} must be an object, not {format_value(data)}")
    return event, json_copy(data)


def _check_id(value: Any, what: str, expected: str) -> None:
    try:
        is_id = isinstance(value, str) and strip_id(value) == value
    except Invalid as fault:
        raise Invalid(f"{what} {fault}") from None
    if not is_id:
        raise Invalid(f"{format_value(value)} is not {expected}")


def _check_attribute(key: Any, value: Value) -> Value:
    if not isinstance(key, str) or key == "state":
        raise Invalid("is not an attribute that an adapter may report")
    if (entry := KNOWN_ATTRIBUTES.get(key)) is not None:
        return entry.check(value)
    if not is_custom(key):
        raise Invalid("is neither in the catalog nor custom.<adapter>.<field>")
    return json_copy(value)


def _check_vendor_data(data: Any, dropped: Dropped) -> Mapping[str, Value]:
    if not isinstance(data, Mapping):
        dropped["vendor_specific"] = f"must be an object, not {format_value(data)}"
        return {}
    valid: dict[str, Value] = {}
    for key, value in data.items():
        try:
            valid |= json_copy({key: value}, MAX_JSON_DEPTH - 1)
        except Invalid as fault:
            dropped[f"vendor_specific.{_shown_key(key)}"] = str(fault)
    return valid


def _check_text(field: str, value: Any, dropped: Dropped) -> str | None:
    """Return the text without invisible characters. Return None if the result is empty."""
    if value is None:
        return None
    if not isinstance(value, str):
        dropped[field] = f"must be a string, not {format_value(value)}"
        return None
    return clean_text(value, MAX_NAME_CHARS)


def _check_info(info: Any, dropped: Dropped) -> Info | None:
    """Return the valid parts of the info. Return None if all parts are empty."""
    if not isinstance(info, Info):
        dropped["info"] = f"must be an Info, not {format_value(info)}"
        return None
    stated = {name: _check_text(name, getattr(info, name), dropped) for name in Info.__struct_fields__}
    return Info(**stated) if any(stated.values()) else None


def _check_commands(
    commands: Any, known: tuple[CommandSpec, ...] | None, dropped: Dropped
) -> tuple[CommandSpec, ...]:
    """Return the valid commands, sorted by capability."""
    is_tuple = isinstance(commands, tuple)
    if is_tuple and known is not None and len(commands) == len(known) and all(map(commands.__contains__, known)):
        return known
    if not is_tuple or not all(isinstance(each, CommandSpec) for each in commands):
        dropped["commands"] = "must be a tuple of CommandSpec"
        return ()
    valid = []
    for each in commands[:MAX_COMMANDS]:
        try:
            valid.append(_check_spec(each))
        except Invalid as fault:
            dropped["commands"] = f"the capability {format_value(each.capability)} {fault}"
    return tuple(sorted(valid, key=lambda spec: spec.capability))


def _check_spec(spec: CommandSpec) -> CommandSpec:
    if not isinstance(spec.capability, str) or not (
        spec.capability in KNOWN_ATTRIBUTES or is_custom(spec.capability)
    ):
        raise Invalid("is neither in the catalog nor custom.<adapter>.<field>")
    json_copy([spec.actions, spec.unit, spec.values, spec.min, spec.max, spec.step, spec.type])
    return spec


def _shown_key(key: Any) -> str:
    return key if isinstance(key, str) and key.isprintable() and len(key) <= MAX_ID_CHARS else format_value(key)
