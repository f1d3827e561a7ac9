"""Devices, rooms, groups, and commands as JSON for the API and Lua. Each declaration both describes and encodes a
type."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.home.capabilities import CAPABILITIES, KNOWN_ATTRIBUTES, Capability
from appliance.home.command_specs import COMMAND_SCHEMA
from appliance.home.commands import Command
from appliance.home.model import DeviceKind
from appliance.home.texts import alias, identifier, name
from appliance.home.values import CHECKS
from appliance.tables.json_schema import (
    ANY,
    INSTANT,
    NUMBER,
    OBJECT,
    TEXT,
    Check,
    Part,
    Record,
    Schema,
    array_of,
    maybe,
    one_of,
    record,
)

_INFO_FIELDS: Mapping[str, Schema | Part] = {
    **dict.fromkeys(("manufacturer", "model", "firmware", "serial", "parent_id", "area"), TEXT),
    "class": Part(TEXT, "device_class"),
}

INFO = Record("Info", {}, _INFO_FIELDS, "The vendor's description of the device; unknown fields are absent.")

COMMAND_SPEC = record(
    "CommandSpec", capability=TEXT, actions=array_of(TEXT), schema=Part(COMMAND_SCHEMA, lambda spec: spec)
)


def _schema_of(capability: Capability) -> Schema:
    is_enum = capability.type == "enum"
    of_type = one_of(*capability.values) if is_enum else CHECKS[capability.type].schema
    return of_type if "title" in of_type else {**of_type, "description": capability.description}


ATTRIBUTES: Schema = {
    "title": "Attributes",
    "description": "The attributes. Each key is a capability or custom.<adapter>.<field>.",
    "type": "object",
    "properties": {key: _schema_of(capability) for key, capability in KNOWN_ATTRIBUTES.items()},
    "patternProperties": {r"^custom\.": ANY},
    "additionalProperties": False,
}

METADATA = record("Metadata", source=TEXT, accuracy=maybe(NUMBER), vendor_specific=OBJECT)

_HEAD_FIELDS: Mapping[str, Schema | Part] = {
    "id": TEXT,
    "name": TEXT,
    "room_id": maybe(TEXT),
    "kind": one_of(*DeviceKind),
    "info": INFO,
    "attributes": ATTRIBUTES,
    "metadata": METADATA,
    "updated_at": INSTANT,
}

_ALIAS: Mapping[str, Schema | Part] = {
    "alias": {**alias.schema, "description": "The short id that people chose; absent if there is no alias."}
}

DEVICE_HEAD = Record("DeviceHead", _HEAD_FIELDS, _ALIAS)
"""A device without its last field `last_seen`, because this field changes with every observation."""

DEVICE_COMMANDS = array_of(COMMAND_SPEC)

DEVICE_WITHOUT_COMMANDS = Record("Device", {**_HEAD_FIELDS, "last_seen": INSTANT}, _ALIAS)

DEVICE = Record(
    "Device",
    {**_HEAD_FIELDS, "last_seen": INSTANT},
    {
        **_ALIAS,
        "commands": Part(
            {**DEVICE_COMMANDS, "description": "Only with include=commands in the query."},
            lambda device: DEVICE_COMMANDS(device.commands or ()),
        ),
        "labels": {
            "description": "The vendor's labels for attributes; only with include=commands.",
            "type": "object",
            "additionalProperties": TEXT,
        },
    },
)
"""A device with its commands, sorted by capability, and the vendor's labels of attributes."""

ROOM = record("Room", id=identifier.schema, name=name.schema)
GROUP = record("Group", id=identifier.schema, name=name.schema, members=array_of(TEXT))

_TRANSITION = maybe({**NUMBER, "minimum": 0})

_CODE = maybe({**TEXT, "description": "The code of a lock or an alarm panel."})

STATED_COMMAND = Record(
    "StatedCommand", {"capability": TEXT, "action": TEXT}, {"value": ANY, "transition_secs": NUMBER}
)
"""A command without its empty fields."""

COMMAND = Check(
    run=Command.parse,
    schema={
        "title": "Command",
        "description": "GET /capabilities lists the actions of each capability and the form of its values.",
        "type": "object",
        "required": ["capability", "action"],
        "properties": {
            "capability": one_of(*CAPABILITIES),
            "action": one_of(*sorted({action for each in CAPABILITIES.values() for action in each.actions})),
            "value": {"description": "Required for set, increase, and decrease; otherwise omitted."},
            "transition_secs": _TRANSITION,
            "code": _CODE,
        },
        "examples": [
            {"capability": "power", "action": "on"},
            {"capability": "brightness", "action": "set", "value": 40},
            {"capability": "color_temperature", "action": "set", "value": {"value": 4000, "unit": "kelvin"}},
        ],
    },
)

_CUSTOM_COMMAND: Schema = {
    "title": "CustomCommand",
    "description": "A command for a custom attribute; only with include=commands.",
    "type": "object",
    "required": ["capability", "action"],
    "properties": {
        "capability": {**TEXT, "pattern": r"^custom\.[^.\s]+\.\S+$"},
        "action": {**TEXT, "minLength": 1},
        "value": ANY,
        "transition_secs": _TRANSITION,
        "code": _CODE,
    },
}

ANY_COMMAND = Check(run=Command.parse, schema={"title": "AnyCommand", "anyOf": [COMMAND.schema, _CUSTOM_COMMAND]})
