"""Device schemas: what devices, the values of their capabilities and commands to them look like as JSON."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.api.shapes import (
    ANY,
    BOOLEAN,
    INSTANT,
    INTEGER,
    NUMBER,
    OBJECT,
    TEXT,
    Schema,
    Shape,
    array_of,
    described,
    maybe,
    one_of,
)
from appliance.api.validation import Check
from appliance.home import plain, values
from appliance.home.capabilities import ATTRIBUTES as ATTRIBUTES_KNOWN
from appliance.home.capabilities import CAPABILITIES, Capability
from appliance.home.commands import Command
from appliance.home.model import DeviceKind


def _between(low: int, high: int, schema: Schema = INTEGER) -> Schema:
    return {**schema, "minimum": low, "maximum": high}


def _value(title: str, /, **fields: Schema) -> Schema:
    return {"title": title, "type": "object", "required": [*fields], "properties": fields}


_TEMPERATURES = [
    _value("Kelvin", value=_between(*values.KELVIN_RANGE), unit={"const": "kelvin"}),
    _value("Mireds", value=_between(*values.MIRED_RANGE), unit={"const": "mireds"}),
]

TYPES: Mapping[str, Schema] = {
    "measurement": _value("Measurement", value=NUMBER, unit=TEXT),
    "accumulation": _value("Accumulation", value=NUMBER, unit=TEXT, period=TEXT),
    "number": NUMBER,
    "integer": INTEGER,
    "string": TEXT,
    "boolean": BOOLEAN,
    "integer_or_string": {"type": ["integer", "string"]},
    "percentage": _between(0, 100),
    "rgb_color": _value("RgbColor", **{each: _between(0, 255) for each in "rgb"}),
    "hex_color": {**TEXT, "pattern": "^#[0-9a-fA-F]{6}$"},
    "xy_color": _value("XyColor", **{each: _between(0, 1, NUMBER) for each in "xy"}),
    "hs_color": _value("HsColor", hue=_between(0, 360), saturation=_between(0, 100)),
    "color_temperature": {"title": "ColorTemperature", "oneOf": _TEMPERATURES},
}
"""The schema of each type of value but `enum`, whose values its capability lists."""


def schema_of(capability: Capability) -> Schema:
    """What a value of this capability looks like."""
    of_type = one_of(*capability.values) if capability.type == "enum" else TYPES[capability.type]
    return of_type if "title" in of_type else {**of_type, "description": capability.description}


COMMAND = Check(
    run=Command.parse,
    schema={
        "title": "Command",
        "description": "GET /capabilities says which actions a capability has, and what its values look like.",
        "type": "object",
        "required": ["capability", "action"],
        "properties": {
            "capability": one_of(*CAPABILITIES),
            "action": one_of(*sorted({action for each in CAPABILITIES.values() for action in each.actions})),
            "value": {"description": "What set, increase and decrease need, and no other action takes."},
            "transition_secs": maybe({**NUMBER, "minimum": 0}),
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
    "description": "For what no capability covers, as the device's commands name it (include=commands).",
    "type": "object",
    "required": ["capability", "action"],
    "properties": {
        "capability": {**TEXT, "pattern": r"^custom\.[^.\s]+\.\S+$"},
        "action": {**TEXT, "minLength": 1},
        "value": ANY,
        "transition_secs": maybe({**NUMBER, "minimum": 0}),
    },
}

ANY_COMMAND = Check(run=Command.parse, schema={"title": "AnyCommand", "anyOf": [COMMAND.schema, _CUSTOM_COMMAND]})

ATTRIBUTES: Schema = {
    "title": "Attributes",
    "description": "Canonical state by capability, and custom.<adapter>.<field>.",
    "type": "object",
    "properties": {key: schema_of(capability) for key, capability in ATTRIBUTES_KNOWN.items()},
    "patternProperties": {r"^custom\.": ANY},
    "additionalProperties": False,
}

METADATA = described("Metadata", source=TEXT, accuracy=maybe(NUMBER), vendor_specific=OBJECT)

INFO = Shape(
    {
        "title": "Info",
        "description": "What the vendor says of the device; what it does not say is absent.",
        "type": "object",
        "properties": dict.fromkeys(
            ("manufacturer", "model", "firmware", "serial", "parent_id", "area", "class"), TEXT
        ),
        "additionalProperties": False,
    },
    plain.info,
)

COMMAND_SPEC = described(
    "CommandSpec",
    capability=TEXT,
    actions=array_of(TEXT),
    schema={
        "title": "CommandSchema",
        "description": "The capability's schema with what this device narrows.",
        "type": "object",
        "required": ["type", "values"],
        "properties": {
            "type": TEXT,
            "values": array_of(TEXT),
            "min": NUMBER,
            "max": NUMBER,
            "step": NUMBER,
            "unit": TEXT,
        },
        "additionalProperties": False,
    },
)

_DEVICE = described(
    "Device",
    id=TEXT,
    name=TEXT,
    room_id=maybe(TEXT),
    kind=one_of(*DeviceKind),
    info=INFO,
    attributes=ATTRIBUTES,
    metadata=METADATA,
    updated_at=INSTANT,
    last_seen=INSTANT,
)
DEVICE: Schema = {
    **_DEVICE,
    "properties": {
        **_DEVICE["properties"],
        "commands": {**array_of(COMMAND_SPEC), "description": "Only where the query says include=commands."},
    },
}
