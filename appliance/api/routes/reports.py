"""Reports: how the hub does as a whole, what it decided and why, and the state that a simulation begins with."""

from __future__ import annotations

from typing import Any

from sanic import HTTPResponse

from appliance.api.auth import Role
from appliance.api.hub_metrics import resident_bytes
from appliance.api.reasons import Reasons
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.api.routes.log import LOG_ENTRY
from appliance.api.schemas import EXECUTION
from appliance.automations.home_view import CHANGED_PREFIX
from appliance.automations.states import AUTOMATION_PREFIX, TOGGLE_PREFIX
from appliance.automations.timers import TIMER_PREFIX
from appliance.automations.variables import VARIABLE_PREFIX
from appliance.clock import timestamp
from appliance.health import AdapterStatus
from appliance.history.execution_history import ExecutionEntry, ExecutionStatus
from appliance.history.period import Period
from appliance.home.texts import identifier
from appliance.hub import Hub
from appliance.log_buffer import LogQuery
from appliance.lua.executor import list_executions
from appliance.store.records import DEVICE_PREFIX, GROUP_PREFIX, PLACE_PREFIX, ROOM_PREFIX, STATE_PREFIX
from appliance.tables.fields import Field
from appliance.tables.json_schema import (
    BOOLEAN,
    COUNT,
    INSTANT,
    NUMBER,
    OBJECT,
    TEXT,
    array_of,
    described,
    maybe,
    one_of,
    record,
)
from appliance.version import VERSION

FAULTS = LogQuery(level="warning", limit=5)
"""The newest faults that the status shows."""

SIMULATED_PREFIXES = (
    ROOM_PREFIX,
    GROUP_PREFIX,
    PLACE_PREFIX,
    DEVICE_PREFIX,
    STATE_PREFIX,
    TOGGLE_PREFIX,
    AUTOMATION_PREFIX,
    VARIABLE_PREFIX,
    TIMER_PREFIX,
    CHANGED_PREFIX,
)
"""What a simulation needs of the home's state, by the prefixes of the keys in the document."""

UNREACHABLE_STATES = ("offline", "unavailable")

_ADAPTER = record(
    "AdapterReport", name=TEXT, status=one_of(*AdapterStatus), message=maybe(TEXT), last_success=maybe(INSTANT)
)
_OFFLINE = described("OfflineDevice", id=TEXT, state=TEXT, since=INSTANT)
_LAST_RUN = described("LastRun", at=INSTANT, status=one_of(*ExecutionStatus), error=maybe(TEXT))
_AUTOMATION = described(
    "AutomationReport", id=TEXT, is_enabled=BOOLEAN, next_fire=maybe(INSTANT), last=maybe(_LAST_RUN)
)
_FAILED_CALL = record("FailedCall", source=TEXT, target=TEXT, reason=TEXT, at=INSTANT, count=COUNT)
_STATUS = described(
    "Status",
    version=TEXT,
    started_at=INSTANT,
    uptime_secs=NUMBER,
    timezone=TEXT,
    waiting_for=array_of(TEXT),
    safe=maybe(TEXT),
    memory_bytes=maybe(COUNT),
    card=OBJECT,
    lua=OBJECT,
    adapters=array_of(_ADAPTER),
    devices=described("DevicesReport", total=COUNT, offline=array_of(_OFFLINE)),
    automations=array_of(_AUTOMATION),
    executions=array_of(EXECUTION),
    failed_calls=array_of(_FAILED_CALL),
    faults=array_of(LOG_ENTRY),
)
_DECISION = described("Decision", at=INSTANT, sentence=TEXT)
_WHY = described("Why", kind=TEXT, id=TEXT, timezone=TEXT, summary=array_of(TEXT), decisions=array_of(_DECISION))
_STATE = described("StoredState", values=OBJECT)


class ReportsApi:
    """Handlers of what `lares status`, `why`, `doctor`, `check` and `simulate` ask."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._reasons = Reasons(hub)

    @route("GET", "/why", Role.READ, _WHY, statuses=(200, 404), query={"id": Field(identifier)})
    async def explain(self, call: Call) -> HTTPResponse:
        """How the automation, scene or device of this id is, and its last ten decisions, in sentences."""
        return json_response({**await self._reasons.explain(call.query()["id"]), "timezone": self._hub.timezone.key})

    @route("GET", "/diagnostics/state", Role.ADMIN, _STATE)
    async def list_state(self, call: Call) -> HTTPResponse:
        """The state of the home by the keys of the store, also what is not on the card yet; no secrets."""
        return json_response({"values": self._hub.recorder.list_present(SIMULATED_PREFIXES)})

    @route("GET", "/diagnostics/status", Role.ADMIN, _STATUS)
    async def show_status(self, call: Call) -> HTTPResponse:
        """How the hub does, on one screen: adapters, devices offline, automations, card, Lua, newest faults."""
        hub, now = self._hub, self._hub.clock.now()
        return json_response(
            {
                "version": VERSION,
                "started_at": timestamp(hub.started_at),
                "uptime_secs": round((now - hub.started_at).total_seconds(), 3),
                "timezone": hub.timezone.key,
                "waiting_for": hub.health.list_missing(),
                "safe": hub.safe_because,
                "memory_bytes": resident_bytes(),
                "card": hub.recorder.figures() | {"failure": hub.document.figures()["failure"]},
                "lua": hub.pool.figures(),
                "adapters": _ADAPTER.each(hub.health.list_adapters()),
                "devices": {"total": len(hub.registry.list_devices()), "offline": self._list_offline()},
                "automations": self._list_automations(),
                "executions": EXECUTION.each(list_executions(hub.executors)),
                "failed_calls": _FAILED_CALL.each(hub.failed_calls.list_newest()),
                "faults": LOG_ENTRY.each(hub.log.list_entries(FAULTS)),
            }
        )

    def _list_offline(self) -> list[dict[str, Any]]:
        return [
            {
                "id": device.id,
                "state": device.attributes["state"],
                "since": timestamp(self._reasons.state_since(device)),
            }
            for device in self._hub.registry.list_devices()
            if device.attributes.get("state") in UNREACHABLE_STATES
        ]

    def _list_automations(self) -> list[dict[str, Any]]:
        automations = self._hub.automations
        armed = automations.figures()["each"]
        return [
            {
                "id": (id_ := view.definition.id),
                "is_enabled": view.is_enabled,
                "next_fire": armed.get(id_, {}).get("next_fire"),
                "last": _last(automations.list_runs(id_, Period(limit=1))),
            }
            for view in automations.list_views()
        ]


def _last(runs: list[ExecutionEntry]) -> dict[str, Any] | None:
    return next(({"at": timestamp(run.executed_at), "status": run.status, "error": run.error} for run in runs), None)
