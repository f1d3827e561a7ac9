"""Payloads: what the home's things look like as JSON, and what a request's JSON must look like."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import is_
from typing import Any

import orjson

from appliance.adapters.dispatch import Outcome
from appliance.api.auth import Role
from appliance.api.errors import error_body
from appliance.api.validation import (
    Shape,
    body,
    boolean,
    identifier,
    json_value,
    list_of,
    member_of,
    name,
    nullable,
    table,
    text,
)
from appliance.automations.automations import View
from appliance.automations.timers import Timer
from appliance.automations.variables import Variable
from appliance.clock import timestamp
from appliance.errors import ConfigFailed, Fault, RunCancelled, ScriptFailed
from appliance.health import AdapterHealth
from appliance.history.runs import RunEntry, RunStatus
from appliance.home import events, plain
from appliance.home.capabilities import CAPABILITIES, OWNERSHIP
from appliance.home.model import Device
from appliance.lua.executions import Ending
from appliance.lua.reload import Reload
from appliance.scenes import Scene
from appliance.store.keys import Key
from appliance.tables.fields import Field

MAX_LABEL_CHARS = 100

_ROOM: Shape = {"id": Field(identifier), "name": Field(name)}

ROOM = body("RoomRequest", _ROOM)
GROUP = body("GroupRequest", {**_ROOM, "members": Field(list_of(identifier), required=False)})
MEMBERS = body("MembersRequest", {"members": Field(list_of(identifier))})
SWITCH = body("SwitchRequest", {"enabled": Field(boolean)})
VARIABLE = body("VariableRequest", {"value": Field(json_value)})
BY_HAND = body("ByHandRequest", {"trigger_payload": Field(nullable(table), required=False)})
NAMING = body("NamingRequest", {"name": Field(nullable(name))})
ASSIGNMENT = body("AssignmentRequest", {"room_id": Field(nullable(identifier))})
KEY = body("KeyRequest", {"label": Field(text(MAX_LABEL_CHARS)), "role": Field(member_of(Role))})


def key(thing: Key) -> dict[str, Any]:
    """A key as JSON, without its secret, which nobody has."""
    return {
        "id": thing.id,
        "label": thing.label,
        "role": thing.role,
        "created_at": timestamp(thing.created_at),
    }


def outcome(thing: Outcome) -> dict[str, Any]:
    """The result of a command to one device as JSON."""
    return {"device_id": thing.device_id, "status": thing.status, "message": thing.message}


def adapter(health: AdapterHealth) -> dict[str, Any]:
    """An adapter in full as JSON. `health.status` is `unknown` until a poll has ended, then `ok` or `error`."""
    judged = {None: "unknown", True: "ok", False: "error"}[health.is_well]
    return {
        "name": health.name,
        "runtime_status": health.status,
        "health": {"status": judged, "message": health.message, "last_updated": _moment(health.last_updated)},
        "last_success": _moment(health.last_success),
        "last_error": health.last_error,
        "dropped": [
            {"device_id": each.device_id, "attribute": each.attribute, "reason": each.reason}
            for each in health.dropped
        ],
    }


def catalog() -> dict[str, Any]:
    """The capability catalog as JSON."""
    entries = [
        {
            "domain": entry.domain,
            "key": entry.key,
            "schema": {"type": entry.type, "values": entry.values},
            "read_only": entry.read_only,
            "actions": entry.actions,
            "description": entry.description,
        }
        for entry in CAPABILITIES.values()
    ]
    return {"capabilities": entries, "ownership": OWNERSHIP}


def scene(thing: Scene) -> dict[str, Any]:
    """A scene as JSON."""
    return {"id": thing.id, "name": thing.name, "description": thing.description}


def scene_run(entry: RunEntry) -> dict[str, Any]:
    """What became of one execution of a scene as JSON."""
    return {
        "executed_at": timestamp(entry.executed_at),
        "scene_id": entry.subject,
        "status": entry.status,
        "error": entry.error,
        "results": entry.results,
        "warnings": entry.warnings,
        "trace": entry.trace,
    }


def automation(thing: View) -> dict[str, Any]:
    """An automation as JSON."""
    return {
        "id": thing.definition.id,
        "name": thing.definition.name,
        "description": thing.definition.description,
        "trigger_type": thing.definition.triggers[0].type,
        "triggers": [{"id": trigger.id, "type": trigger.type} for trigger in thing.definition.triggers],
        "condition_count": len(thing.definition.conditions),
        "status": "enabled" if thing.is_enabled else "disabled",
        "last_run": _moment(thing.last_run),
        "last_error": thing.last_error,
    }


def variable(thing: Variable) -> dict[str, Any]:
    """A variable as JSON."""
    return {"name": thing.name, "value": thing.value}


def timer(thing: Timer) -> dict[str, Any]:
    """A timer as JSON; `payload` is null where it has none."""
    return {"name": thing.name, "due_at": timestamp(thing.due_at), "payload": thing.payload}


def automation_result(ending: Ending) -> dict[str, Any]:
    """How a run by hand ended as JSON."""
    return {
        "status": ending.status,
        "error": ending.error,
        "duration_ms": ending.duration_ms,
        "results": ending.results,
    }


def automation_run(entry: RunEntry) -> dict[str, Any]:
    """What became of one trigger of an automation as JSON."""
    return {
        "executed_at": timestamp(entry.executed_at),
        "automation_id": entry.subject,
        "trigger_payload": entry.trigger_payload,
        "status": entry.status,
        "duration_ms": entry.duration_ms,
        "error": entry.error,
        "results": entry.results,
        "warnings": entry.warnings,
        "trace": entry.trace,
    }


def refusal(failed: ConfigFailed) -> dict[str, Any]:
    """What is wrong with files as JSON."""
    return error_body(str(failed), ScriptFailed.code, errors=[fault(each) for each in failed.faults])


def failed_run(what: str, ending: Ending) -> dict[str, Any]:
    """The body of the error that an execution of `what` (`scene 'x'`) came to; it was not ok."""
    is_cancelled = ending.status is RunStatus.CANCELLED
    how, code = ("was cancelled", RunCancelled.code) if is_cancelled else ("failed", ScriptFailed.code)
    return error_body(f"{what} {how}: {ending.error}", code, results=ending.results)


def fault(thing: Fault) -> dict[str, Any]:
    """What is wrong with a file as JSON; `line` is 0 where it is the whole file."""
    return {"file": thing.file, "line": thing.line, "message": thing.message}


def reload(done: Reload) -> dict[str, Any]:
    """The result of a reload as JSON."""
    return {"status": "ok" if done.is_ok else "error", **_reloaded(done)}


def _reloaded(done: Reload | events.CatalogReloaded | events.CatalogReloadFailed) -> dict[str, Any]:
    return {
        "target": done.target,
        "loaded_count": done.loaded_count,
        "errors": [fault(each) for each in done.faults],
        "duration_ms": done.duration_ms,
    }


class DeviceEncoder:
    """Encodes devices, each once per change: what a mere sighting moves is put behind the bytes that are kept."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Device, bytes, bytes]] = {}
        self._last: tuple[Sequence[Device], bytes] = ((), b"[]")

    def forget_removed(self, event: events.Event) -> None:
        """Called with every event: what is kept of a device that was removed goes with it."""
        if isinstance(event, events.DeviceRemoved):
            self._kept.pop(event.device_id, None)
            self._last = ((), b"[]")

    def encode(self, device: Device) -> bytes:
        """The device as JSON."""
        kept = self._kept.get(device.id)
        if kept is not None and kept[0] is device:
            return kept[2]
        head = kept[1] if kept is not None and _differ_in_sighting(kept[0], device) else _encode_head(device)
        whole = b'%b,"last_seen":"%b"}' % (head, timestamp(device.last_seen).encode())
        self._kept[device.id] = (device, head, whole)
        return whole

    def encode_with_commands(self, device: Device) -> bytes:
        """The device as JSON, with what it can be commanded."""
        return b'%b,"commands":%b}' % (self.encode(device)[:-1], orjson.dumps(plain.commands(device)))

    def encode_list(self, devices: Sequence[Device]) -> bytes:
        """The devices as a JSON array; asked for the same ones again, it gives the same bytes."""
        if devices is not self._last[0] and not _are_same(self._last[0], devices):
            self._last = (tuple(devices), b"[%b]" % b",".join([self.encode(device) for device in devices]))
        return self._last[1]


def _are_same(some: Sequence[Device], others: Sequence[Device]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _differ_in_sighting(one: Device, other: Device) -> bool:
    """Whether at most `last_seen` differs. The registry keeps unchanged parts as the same objects."""
    return (
        one.attributes is other.attributes
        and one.metadata is other.metadata
        and one.info is other.info
        and one.name == other.name
        and one.kind is other.kind
        and one.room_id == other.room_id
        and one.updated_at == other.updated_at
    )


def _encode_head(device: Device) -> bytes:
    """The object without its last field and without its closing brace."""
    return orjson.dumps(plain.device_head(device))[:-1]


def _moment(instant: datetime | None) -> str | None:
    return None if instant is None else timestamp(instant)
