"""Schemas: what the answers hold. A resource of its own file may keep its schemas there."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.dispatch import Status
from appliance.api.auth import Role
from appliance.api.errors import CODES
from appliance.api.validation import (
    ANY,
    BOOLEAN,
    COUNT,
    INSTANT,
    INTEGER,
    NUMBER,
    OBJECT,
    TEXT,
    Check,
    Schema,
    array_of,
    identifier,
    maybe,
    name,
    one_of,
    record,
)
from appliance.automations.trigger_kinds import TRIGGER_KINDS
from appliance.health import AdapterStatus
from appliance.history.runs import RunStatus
from appliance.home import values
from appliance.home.capabilities import ATTRIBUTES as ATTRIBUTES_KNOWN
from appliance.home.capabilities import CAPABILITIES, Capability
from appliance.home.commands import Command
from appliance.home.model import Kind


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

ERROR: Schema = {
    "title": "Error",
    "type": "object",
    "required": ["error", "code"],
    "properties": {
        "error": {**TEXT, "minLength": 1, "description": "A sentence for a person."},
        "code": {
            **one_of(*CODES),
            "description": "The same for a program; a code never changes its meaning.\n\n"
            + "\n".join(f"- `{name}`: {code.meaning}" for name, code in CODES.items()),
        },
    },
}
"""Every body that is not 2xx; some hold more."""


def error_of(status: int) -> Schema:
    """The body of this status: an `ERROR` with one of the codes that the status has."""
    codes = [name for name, code in CODES.items() if status in code.statuses]
    return {"allOf": [ERROR, {"type": "object", "properties": {"code": one_of(*codes)}}]}


DONE = record("Done", status={"const": "ok"})

ATTRIBUTES: Schema = {
    "title": "Attributes",
    "description": "Canonical state by capability, and custom.<adapter>.<field>.",
    "type": "object",
    "properties": {key: schema_of(capability) for key, capability in ATTRIBUTES_KNOWN.items()},
    "patternProperties": {r"^custom\.": ANY},
    "additionalProperties": False,
}

METADATA = record("Metadata", source=TEXT, accuracy=maybe(NUMBER), vendor_specific=OBJECT)

INFO: Schema = {
    "title": "Info",
    "description": "What the vendor says of the device; what it does not say is absent.",
    "type": "object",
    "properties": dict.fromkeys(("manufacturer", "model", "firmware", "serial", "parent_id", "area", "class"), TEXT),
    "additionalProperties": False,
}

COMMAND_SPEC = record(
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

_DEVICE = record(
    "Device",
    id=TEXT,
    name=TEXT,
    room_id=maybe(TEXT),
    kind=one_of(*Kind),
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

ROOM = record("Room", id=identifier.schema, name=name.schema)
GROUP = record("Group", id=identifier.schema, name=name.schema, members=array_of(TEXT))

OUTCOME_STATUS = one_of(*Status)
OUTCOME = record("Outcome", device_id=TEXT, status=OUTCOME_STATUS, message=maybe(TEXT))

ADAPTER = record("Adapter", name=TEXT, status=one_of(*AdapterStatus))

ADAPTER_HEALTH = record(
    "AdapterHealth",
    status=one_of("unknown", "ok", "error"),
    message=maybe(TEXT),
    last_updated=maybe(INSTANT),
)
ADAPTER_IN_FULL = record(
    "AdapterInFull",
    name=TEXT,
    runtime_status=one_of(*AdapterStatus),
    health=ADAPTER_HEALTH,
    last_success=maybe(INSTANT),
    last_error=maybe(TEXT),
    dropped=array_of(record("DroppedAttribute", device_id=TEXT, attribute=TEXT, reason=TEXT)),
)

CAPABILITY = record(
    "Capability",
    domain=TEXT,
    key=TEXT,
    schema=record("CapabilitySchema", type=one_of(*values.CHECKS, "enum"), values=array_of(TEXT)),
    read_only=BOOLEAN,
    actions=array_of(TEXT),
    description=TEXT,
)
OWNERSHIP = record(
    "Ownership",
    canonical_attribute_location=TEXT,
    custom_attribute_prefix=TEXT,
    vendor_metadata_field=TEXT,
    rules=array_of(TEXT),
)
CATALOG = record("Catalog", capabilities=array_of(CAPABILITY), ownership=OWNERSHIP)

SCENE = record("Scene", id=TEXT, name=TEXT, description=TEXT)
RESULT = record("Result", target=TEXT, status=one_of(*Status), message=maybe(TEXT))
EXECUTED = record("Executed", status=one_of("ok", "queued"), results=array_of(RESULT))
STEP: Schema = {
    "title": "Step",
    "type": "object",
    "required": ["at_ms", "step"],
    "properties": {
        "at_ms": COUNT,
        "step": one_of("condition", "command", "invoke", "sleep", "log", "scene", "wait"),
    },
}
CANCELLED = record("Cancelled", status={"const": "ok"}, cancelled=COUNT)
SCENE_RUN = record(
    "SceneRun",
    executed_at=INSTANT,
    scene_id=TEXT,
    status=one_of(*RunStatus),
    error=maybe(TEXT),
    results=array_of(RESULT),
    warnings=array_of(TEXT),
    trace=array_of(STEP),
)
SCENE_HISTORY = record("SceneHistory", scene_id=TEXT, entries=array_of(SCENE_RUN))

AUTOMATION = record(
    "Automation",
    id=TEXT,
    name=TEXT,
    description=TEXT,
    trigger_type=one_of(*TRIGGER_KINDS),
    triggers=array_of(record("Trigger", id=maybe(TEXT), type=one_of(*TRIGGER_KINDS))),
    condition_count=COUNT,
    status=one_of("enabled", "disabled"),
    last_run=maybe(INSTANT),
    last_error=maybe(TEXT),
)
AUTOMATION_RESULT = record(
    "AutomationResult",
    status=one_of("ok", "skipped"),
    error=maybe(TEXT),
    duration_ms=COUNT,
    results=array_of(RESULT),
)
AUTOMATION_RUN = record(
    "AutomationRun",
    executed_at=INSTANT,
    automation_id=TEXT,
    trigger_payload=OBJECT,
    status=one_of(*RunStatus),
    duration_ms=COUNT,
    error=maybe(TEXT),
    results=array_of(RESULT),
    warnings=array_of(TEXT),
    trace=array_of(STEP),
)
AUTOMATION_HISTORY = record("AutomationHistory", automation_id=TEXT, entries=array_of(AUTOMATION_RUN))
AUTOMATION_NEXT = record("AutomationNext", automation_id=TEXT, next=array_of(INSTANT))
VARIABLE = record("Variable", name=TEXT, value=ANY)
TIMER = record("Timer", name=TEXT, due_at=INSTANT, payload=ANY)
VALIDATED = record("Validated", status={"const": "ok"}, automation=AUTOMATION)

FAULT = record("Fault", file=TEXT, line=COUNT, message=TEXT)
RELOADED = record(
    "Reloaded",
    status=one_of("ok", "error"),
    target=one_of("scenes", "automations", "scripts"),
    loaded_count=COUNT,
    errors=array_of(FAULT),
    duration_ms=COUNT,
)
WATCH = record("Watch", target=TEXT, enabled=BOOLEAN, directory=TEXT)
WATCHES = record("Watches", status={"const": "ok"}, watches=array_of(WATCH))

_KEY: dict[str, Schema] = {"id": TEXT, "label": TEXT, "role": one_of(*Role), "created_at": INSTANT}

KEY = record("Key", **_KEY)
NEW_KEY = record("NewKey", **_KEY, key={**TEXT, "description": "The secret, shown here and never again."})

DIAGNOSTICS: Schema = {
    "title": "Diagnostics",
    "description": "The figures of each part, by its name.",
    "type": "object",
    "properties": {"counts": {"type": "object", "additionalProperties": COUNT}},
    "additionalProperties": OBJECT,
}
