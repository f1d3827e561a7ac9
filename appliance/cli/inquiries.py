"""Inquiries: what a running hub answers on its socket, beside what concerns keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from appliance.api.hub_metrics import resident_bytes
from appliance.api.routes.log import LEVEL, LOG_ENTRY
from appliance.api.validation import body, nullable
from appliance.automations.home_view import CHANGED_PREFIX
from appliance.automations.states import AUTOMATION_PREFIX, TOGGLE_PREFIX
from appliance.automations.timers import TIMER_PREFIX
from appliance.automations.variables import VARIABLE_PREFIX
from appliance.cli.reasons import Reasons
from appliance.clock import timestamp
from appliance.errors import Invalid
from appliance.health import AdapterHealth
from appliance.history.execution_history import ExecutionEntry
from appliance.history.period import Period
from appliance.home.texts import identifier, text
from appliance.hub import Hub
from appliance.log_buffer import MAX_LOG_ENTRIES, LogQuery
from appliance.store.records import DEVICE_PREFIX, GROUP_PREFIX, PLACE_PREFIX, ROOM_PREFIX, STATE_PREFIX
from appliance.tables.fields import Field
from appliance.tables.json_schema import COUNT, Check
from appliance.version import VERSION

FAULTS = LogQuery(level="warning", limit=5)
"""The newest faults that the status shows."""

SIMULATED = (
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

AWAY = ("offline", "unavailable")


def _count(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise Invalid("must be a whole number from 0 on")
    return value


_NUMBER = Field(Check(schema=COUNT, run=_count), required=False)
_TEXT = Field(nullable(text(1000)), required=False)
LOG = body("LogRequest", {"level": LEVEL, "part": _TEXT, "contains": _TEXT, "limit": _NUMBER, "after": _NUMBER})
WHY = body("WhyRequest", {"id": Field(identifier)})


class Inquiries:
    """Answers requests about this hub. `actions` are the handlers by the `do` of a request."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._reasons = Reasons(hub)
        self.actions: Mapping[str, Callable[[Any], Awaitable[dict[str, Any]]]] = {
            "log": self._log,
            "status": self._status,
            "why": self._why,
            "lua": self._count_workers,
            "state": self._list_state,
            "trust-clock": self._trust_clock,
        }

    async def _log(self, request: Any) -> dict[str, Any]:
        stated = {name: value for name, value in LOG(request).items() if value is not None}
        entries = self._hub.log.list_entries(LogQuery(**{"limit": MAX_LOG_ENTRIES, **stated}))
        last = self._hub.log.list_entries(LogQuery(limit=1))
        return {"entries": LOG_ENTRY.each(entries), "last": last[0].number if last else 0}

    async def _count_workers(self, request: Any) -> dict[str, Any]:
        return self._hub.pool.figures()

    async def _list_state(self, request: Any) -> dict[str, Any]:
        return {"values": self._hub.recorder.list_present(SIMULATED)}

    async def _trust_clock(self, request: Any) -> dict[str, Any]:
        await self._hub.trust_clock()
        return {"now": timestamp(self._hub.clock.now())}

    async def _why(self, request: Any) -> dict[str, Any]:
        return self._reasons.explain(WHY(request)["id"])

    async def _status(self, request: Any) -> dict[str, Any]:
        hub, now = self._hub, self._hub.clock.now()
        return {
            "version": VERSION,
            "started_at": timestamp(hub.started_at),
            "uptime_secs": round((now - hub.started_at).total_seconds(), 3),
            "waiting_for": hub.health.list_missing(),
            "safe": hub.safe_because,
            "memory_bytes": resident_bytes(),
            "card": hub.recorder.figures() | {"failure": hub.document.figures()["failure"]},
            "adapters": [_adapter(health) for health in hub.health.list_adapters()],
            "devices": {"total": len(hub.registry.list_devices()), "offline": self._list_offline()},
            "automations": self._list_automations(),
            "faults": LOG_ENTRY.each(hub.log.list_entries(FAULTS)),
        }

    def _list_offline(self) -> list[dict[str, Any]]:
        return [
            {
                "id": device.id,
                "state": device.attributes["state"],
                "since": timestamp(self._reasons.state_since(device)),
            }
            for device in self._hub.registry.list_devices()
            if device.attributes.get("state") in AWAY
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


def _adapter(health: AdapterHealth) -> dict[str, Any]:
    return {
        "name": health.name,
        "status": health.status,
        "message": health.message,
        "last_success": None if health.last_success is None else timestamp(health.last_success),
    }
