"""Schemas of responses. A schema also encodes responses. If only one file of routes uses a schema, the schema is
in that file."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.dispatch import Status
from appliance.api.error_codes import CODES
from appliance.api.roles import Role
from appliance.automations.triggers.kinds import TRIGGER_KINDS
from appliance.health import AdapterStatus
from appliance.history.execution_history import ExecutionStatus
from appliance.home.values import CHECKS
from appliance.tables.json_schema import (
    ANY,
    BOOLEAN,
    COUNT,
    INSTANT,
    OBJECT,
    TEXT,
    Part,
    Record,
    Schema,
    array_of,
    described,
    maybe,
    one_of,
    only,
    record,
)

ERROR: Schema = {
    "title": "Error",
    "type": "object",
    "required": ["error", "code"],
    "properties": {
        "error": {**TEXT, "minLength": 1, "description": "A sentence for a person."},
        "code": {
            **one_of(*CODES),
            "description": "The kind of error, for programs; the meaning of a code never changes.\n\n"
            + "\n".join(f"- `{name}`: {code.meaning}" for name, code in CODES.items()),
        },
    },
}
"""The body of every error response. Some responses have more fields."""


def error_of(status: int) -> Schema:
    """Return the body for this status: an `ERROR` with one of the status's codes."""
    codes = [name for name, code in CODES.items() if code.status == status]
    return {"allOf": [ERROR, {"type": "object", "properties": {"code": one_of(*codes)}}]}


DONE = record("Done", status=only("ok"))
"""The body of a response that contains no other data: `{"status": "ok"}`."""

FILE_FAULT = record("FileFault", line=COUNT, message=TEXT)
SAVED_FILE = record("SavedFile", path=TEXT, version=TEXT, warnings=array_of(FILE_FAULT))

OUTCOME_STATUS = one_of(*Status)
OUTCOME = record("Outcome", device_id=TEXT, status=OUTCOME_STATUS, message=maybe(TEXT))

ADAPTER = record("Adapter", name=TEXT, status=one_of(*AdapterStatus))

_JUDGED = {None: "unknown", True: "ok", False: "error"}
"""The word for each value of an adapter's `is_well`. Until the first poll ends, `is_well` is None."""

ADAPTER_HEALTH = record(
    "AdapterHealth",
    status=Part(one_of(*_JUDGED.values()), lambda health: _JUDGED[health.is_well]),
    message=maybe(TEXT),
    last_updated=maybe(INSTANT),
)
_FILE_FAULT: Schema = {
    **TEXT,
    "description": "The error in the Lua file that defines the adapter's kind. An earlier version of the file may "
    "be running.",
}
ADAPTER_IN_FULL = Record(
    "AdapterInFull",
    {
        "name": TEXT,
        "runtime_status": Part(one_of(*AdapterStatus), "status"),
        "health": Part(ADAPTER_HEALTH, lambda health: health),
        "last_success": maybe(INSTANT),
        "last_error": maybe(TEXT),
        "dropped": array_of(record("DroppedAttribute", device_id=TEXT, attribute=TEXT, reason=TEXT)),
        "operations": array_of(TEXT),
    },
    {"file_fault": _FILE_FAULT},
)

CAPABILITY = Record(
    "Capability",
    {
        "domain": TEXT,
        "key": TEXT,
        "schema": Part(
            record("CapabilitySchema", type=one_of(*CHECKS, "enum"), values=array_of(TEXT)),
            lambda capability: capability,
        ),
        "read_only": BOOLEAN,
        "actions": array_of(TEXT),
        "description": TEXT,
    },
    {
        "unit": {**TEXT, "description": "The unit of values that are plain numbers."},
        "period": {**TEXT, "description": "The default period of an accumulation."},
    },
)
OWNERSHIP_SHAPE = described(
    "Ownership",
    canonical_attribute_location=TEXT,
    custom_attribute_prefix=TEXT,
    vendor_metadata_field=TEXT,
    rules=array_of(TEXT),
)
CATALOG = record("Catalog", capabilities=array_of(CAPABILITY), ownership=OWNERSHIP_SHAPE)

SCENE = record("Scene", id=TEXT, name=TEXT, description=TEXT)
RESULT = described("Result", target=TEXT, status=one_of(*Status), message=maybe(TEXT))
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
CANCELLED_COUNT = record("Cancelled", status=only("ok"), cancelled=COUNT)
_RUN: Mapping[str, Schema] = {
    "status": one_of(*ExecutionStatus),
    "error": maybe(TEXT),
    "results": array_of(RESULT),
    "warnings": array_of(TEXT),
    "trace": array_of(STEP),
}
SCENE_RUN = record("SceneRun", executed_at=INSTANT, scene_id=Part(TEXT, "subject"), **_RUN)
SCENE_HISTORY = record("SceneHistory", scene_id=TEXT, entries=array_of(SCENE_RUN))

EXECUTION = record(
    "Execution",
    id=TEXT,
    kind=one_of("scene", "automation"),
    of=TEXT,
    name=TEXT,
    started_at=INSTANT,
    status=one_of("queued", "running", "waiting"),
    doing=TEXT,
    cpu_secs={"type": "number", "minimum": 0},
)
EXECUTIONS = record("Executions", executions=array_of(EXECUTION))
CANCELLED_EXECUTION = record("CancelledExecution", status=only("ok"))

AUTOMATION = Record(
    "Automation",
    {
        "id": Part(TEXT, "definition.id"),
        "name": Part(TEXT, "definition.name"),
        "description": Part(TEXT, "definition.description"),
        "trigger_type": Part(one_of(*TRIGGER_KINDS), lambda view: view.definition.triggers[0].type),
        "triggers": Part(
            array_of(record("Trigger", id=maybe(TEXT), type=one_of(*TRIGGER_KINDS))),
            "definition.triggers",
        ),
        "condition_count": Part(COUNT, lambda view: len(view.definition.conditions)),
        "status": Part(one_of("enabled", "disabled"), lambda view: "enabled" if view.is_enabled else "disabled"),
        "enabled_in_file": Part(BOOLEAN, "definition.enabled"),
        "last_run": Part(maybe(INSTANT), lambda view: view.run and view.run.executed_at),
        "last_error": Part(maybe(TEXT), lambda view: view.run and view.run.error),
        "running": COUNT,
    },
    {
        "next_run": INSTANT,
        "last": record(
            "LastExecution",
            at=Part(INSTANT, "executed_at"),
            status=one_of(*ExecutionStatus),
            duration_ms=COUNT,
            warnings=Part(COUNT, lambda entry: len(entry.warnings)),
        ),
    },
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
    automation_id=Part(TEXT, "subject"),
    trigger_payload=OBJECT,
    duration_ms=COUNT,
    **_RUN,
)
AUTOMATION_HISTORY = record("AutomationHistory", automation_id=TEXT, entries=array_of(AUTOMATION_RUN))
AUTOMATION_NEXT = record("AutomationNext", automation_id=TEXT, next=array_of(INSTANT))
VARIABLE = record("Variable", name=TEXT, value=ANY)
TIMER = record("Timer", name=TEXT, due_at=INSTANT, payload=ANY)
VALIDATED = record("Validated", status=only("ok"), automation=AUTOMATION)

FAULT = record("Fault", file=TEXT, line=COUNT, message=TEXT)
RELOADED_PARTS: Mapping[str, Schema | Part] = {
    "target": one_of("scenes", "automations", "scripts", "adapters"),
    "loaded_count": COUNT,
    "errors": Part(array_of(FAULT), "faults"),
    "duration_ms": COUNT,
}
_RELOADED_SECTIONS: Mapping[str, Schema | Part] = {
    "sections": Part(
        {
            "description": "For `adapters`: the changed sections of default.toml.",
            "type": "object",
            "additionalProperties": one_of("started", "stopped", "replaced"),
        },
        lambda done: done.sections or None,
    ),
    "next_start": Part(
        {**array_of(TEXT), "description": "For `adapters`: changed keys that take effect at the next start."},
        lambda done: [*done.next_start] or None,
    ),
}
RELOADED = Record(
    "Reloaded",
    {"status": Part(one_of("ok", "error"), lambda done: "error" if done.faults else "ok"), **RELOADED_PARTS},
    _RELOADED_SECTIONS,
)
WATCH = described("Watch", target=TEXT, enabled=BOOLEAN, directory=TEXT)
WATCHES = record("Watches", status=only("ok"), watches=array_of(WATCH))

_KEY: dict[str, Schema] = {"id": TEXT, "label": TEXT, "role": one_of(*Role), "created_at": INSTANT}

_HOOK: dict[str, Schema] = {
    "hook": {**TEXT, "description": "The only hook that a key with the role `hook` can call."}
}

KEY = Record("Key", _KEY, _HOOK)
"""A key without its secret. The hub does not store the secret."""

_NEW = {**_KEY, "key": {**TEXT, "description": "The secret; no later response contains it."}}
NEW_KEY = Record(
    "NewKey", _NEW, {**_HOOK, "warning": {**TEXT, "description": "Present if nothing listens to the hook yet."}}
)

LOG_ENTRY = record("LogEntry", at=INSTANT, level=TEXT, part=TEXT, message=TEXT, fields=OBJECT)

BINARY: Schema = {**TEXT, "format": "binary"}

DIAGNOSTICS: Schema = {
    "title": "Diagnostics",
    "description": "The diagnostics of each part of the hub, by the part's name.",
    "type": "object",
    "properties": {"counts": {"type": "object", "additionalProperties": COUNT}},
    "additionalProperties": OBJECT,
}
