"""The state of the hub, for `lares status`, `doctor`, `check`, and `simulate`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from appliance.api import schemas
from appliance.api.roles import Role
from appliance.api.route import ApiParts, ApiResource, Call, route
from appliance.api.why.device import state_since
from appliance.automations.automations import View
from appliance.event_loop import in_steps, wait_for_short_turn
from appliance.health import AdapterStatus
from appliance.history.execution_history import ExecutionStatus
from appliance.home.model import AWAY
from appliance.log_buffer import LogEntry, LogQuery
from appliance.lua.running.executor import list_executions
from appliance.store.record_keys import HOME_STATE_PREFIXES
from appliance.tables.json_schema import (
    BOOLEAN,
    COUNT,
    INSTANT,
    NUMBER,
    OBJECT,
    TEXT,
    Part,
    Schema,
    array_of,
    described,
    maybe,
    one_of,
    record,
)
from appliance.tasks import SharedRun, Tasks

FAULTS = LogQuery(level="warning", limit=200)
MAX_FAULTS = 5
"""Maximum number of faults in the status. Each fault is listed once; log lines about keys are excluded."""


_ADAPTER = record(
    "AdapterReport",
    name=TEXT,
    status=one_of(*AdapterStatus),
    message=maybe(TEXT),
    file_fault=maybe(TEXT),
    last_success=maybe(INSTANT),
)
_OFFLINE = record("OfflineDevice", id=TEXT, name=TEXT, state=TEXT, since=INSTANT)
_LAST_RUN = record("LastRun", at=Part(INSTANT, "executed_at"), status=one_of(*ExecutionStatus), error=maybe(TEXT))
_NEXT_FIRE: Schema = {**maybe(INSTANT)}  # JSON already
_STARTED_AT: Schema = {**INSTANT}
_AUTOMATION = record("AutomationReport", id=TEXT, is_enabled=BOOLEAN, next_fire=_NEXT_FIRE, last=maybe(_LAST_RUN))
_FAILED_CALL = record("FailedCall", source=TEXT, target=TEXT, reason=TEXT, at=INSTANT, count=COUNT)


CONFIG_CHANGES = {**array_of(TEXT), "description": "Changes of default.toml that are not yet active, and what to do."}


_STATUS = record(
    "Status",
    version=TEXT,
    started_at=_STARTED_AT,
    uptime_secs=NUMBER,
    timezone=TEXT,
    waiting_for=array_of(TEXT),
    safe=maybe(TEXT),
    config=CONFIG_CHANGES,
    memory_bytes=maybe(COUNT),
    card=OBJECT,
    lua=OBJECT,
    adapters=array_of(_ADAPTER),
    devices=record("DevicesReport", total=COUNT, offline=array_of(_OFFLINE)),
    automations=array_of(_AUTOMATION),
    executions=array_of(schemas.EXECUTION),
    failed_calls=array_of(_FAILED_CALL),
    faults=array_of(schemas.LOG_ENTRY),
)


_STATE = described("StoredState", values=OBJECT)


def _newest(entries: Iterable[LogEntry]) -> list[LogEntry]:
    """Return the first `MAX_FAULTS` entries with different messages."""
    found: dict[tuple[str, str], LogEntry] = {}
    for each in entries:
        found.setdefault((each.part, each.message), each)
    return list(found.values())[:MAX_FAULTS]


class StatusApi(ApiResource):
    """Handlers of `/diagnostics/status` and `/diagnostics/state`. Clients that request the same path at the same time
    share one computation."""

    def __init__(self, parts: ApiParts) -> None:
        super().__init__(parts)
        self._state = SharedRun(self._encode_state, Tasks(), "state of the home")
        self._status = SharedRun(self._encode_status, Tasks(), "status")

    @route("GET", "/diagnostics/state", Role.ADMIN, _STATE)
    async def list_state(self, call: Call) -> object:
        """Return the state of the home by store key, without secrets. Include values that are not stored yet."""
        state = await self._state.result()
        await wait_for_short_turn()  # the copies for several clients would make one turn long
        return state

    @route("GET", "/diagnostics/status", Role.ADMIN, _STATUS)
    async def show_status(self, call: Call) -> object:
        """Return the state of the hub: adapters, offline devices, automations, card, Lua, and newest faults."""
        return await self._status.result()

    async def _encode_state(self) -> bytes:
        async with self.parts.unsent.room_for_answer():
            values = await self.hub.store.recorder.list_present(HOME_STATE_PREFIXES)
            pairs = (b"%b:%b" % (orjson.dumps(key), value) for key, value in values.items())
            return await asyncio.to_thread(lambda: b"".join((b'{"values":{', b",".join(pairs), b"}}")))

    async def _encode_status(self) -> bytes:
        hub, figures = self.hub, await self.parts.figures.collect()
        offline: list[dict[str, Any]] = []
        await in_steps(hub.clock, map(offline.append, self._list_offline()))
        automations: list[dict[str, Any]] = []
        await in_steps(hub.clock, map(automations.append, map(self._describe, hub.automations.list_views())))
        status = {
            **{name: figures["hub"][name] for name in ("version", "started_at", "uptime_secs", "safe")},
            "timezone": hub.timezone.key,
            "waiting_for": hub.health.list_missing(),
            "config": (await hub.adapter_sections.find_config_changes()).sentences(),
            "memory_bytes": figures["process"]["resident_bytes"],
            "card": figures["store"]["card"] | {"failure": figures["store"]["failure"]},
            "lua": figures["scripts"],
            "adapters": hub.health.list_adapters(),
            "devices": {"total": len(hub.registry.list_devices()), "offline": offline},
            "automations": automations,
            "executions": list_executions(hub.executors),
            "failed_calls": hub.failed_calls.list_newest(),
            "faults": _newest(each for each in hub.log.list_entries(FAULTS) if each.part != "keys"),
        }
        return await asyncio.to_thread(lambda: orjson.dumps(_STATUS(status)))

    def _list_offline(self) -> Iterator[dict[str, Any]]:
        return (
            {
                "id": device.id,
                "name": device.name,
                "state": device.attributes["state"],
                "since": state_since(self.hub, device),
            }
            for device in self.hub.registry.list_devices()
            if device.attributes.get("state") in AWAY
        )

    def _describe(self, view: View) -> dict[str, Any]:
        automations, id_ = self.hub.automations, view.definition.id
        return {
            "id": id_,
            "is_enabled": view.is_enabled,
            "next_fire": automations.due_times.show_next_fire(id_),
            "last": automations.find_last_result(id_),
        }
