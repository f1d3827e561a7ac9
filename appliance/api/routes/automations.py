"""Automations: which there are, switching them, running them by hand, and what became of them."""

from __future__ import annotations

from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.error_responses import failed_execution_body, refusal_body
from appliance.api.periods import PERIOD
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.api.validation import body, boolean, nullable, table
from appliance.automations.automations import Automations as Parts
from appliance.errors import ConfigFailed
from appliance.history.card_history import CardHistory
from appliance.history.execution_history import ExecutionStatus
from appliance.history.period import Period
from appliance.lua.reload import Reloader
from appliance.tables.fields import Field
from appliance.tables.json_schema import array_of

MANUAL = {"type": "manual"}
"""The event of a run by hand that states none."""

SWITCH_BODY = body("SwitchRequest", {"enabled": Field(boolean)})
RUN_BODY = body("ByHandRequest", {"trigger_payload": Field(nullable(table), required=False)})


class AutomationsApi:
    """Handlers of the routes under `/automations`."""

    def __init__(self, automations: Parts, reloader: Reloader, card: CardHistory | None) -> None:
        self._automations = automations
        self._card = card
        self._reloader = reloader

    @route("GET", "/automations", Role.READ, array_of(schemas.AUTOMATION))
    async def list_all(self, call: Call) -> HTTPResponse:
        """Every automation by id."""
        return json_response(schemas.AUTOMATION.each(self._automations.list_views()))

    @route("GET", "/automations/<automation_id>", Role.READ, schemas.AUTOMATION)
    async def get(self, call: Call, automation_id: str) -> HTTPResponse:
        """One automation."""
        return json_response(schemas.AUTOMATION(self._automations.view(automation_id)))

    @route("POST", "/automations/reload", Role.ADMIN, schemas.RELOADED)
    async def reload(self, call: Call) -> HTTPResponse:
        """Read every automation's file anew. If one has a fault, the answer lists all and nothing changes."""
        return json_response(schemas.RELOADED(await self._reloader.reload()))

    @route(
        "POST",
        "/automations/<automation_id>/enabled",
        Role.WRITE,
        schemas.AUTOMATION,
        statuses=(200, 503),
        body=SWITCH_BODY,
    )
    async def switch(self, call: Call, automation_id: str) -> HTTPResponse:
        """Switch the automation on or off, over restarts and reloads."""
        self._automations.view(automation_id)
        body = await call.body()
        view = await self._automations.switch(automation_id, is_enabled=body["enabled"])
        return json_response(schemas.AUTOMATION(view))

    @route(
        "POST",
        "/automations/<automation_id>/execute",
        Role.WRITE,
        schemas.AUTOMATION_RESULT,
        body=RUN_BODY,
        body_optional=True,
    )
    async def execute(self, call: Call, automation_id: str) -> HTTPResponse:
        """Run the automation now, even if it is off, whatever its mode and cooldown; its conditions apply."""
        self._automations.view(automation_id)
        body = await call.body()
        stated = body.get("trigger_payload")
        ending = await self._automations.run_by_hand(automation_id, MANUAL if stated is None else stated)
        if ending.status in (ExecutionStatus.OK, ExecutionStatus.SKIPPED):
            return json_response(schemas.AUTOMATION_RESULT(ending))
        return json_response(failed_execution_body(f"automation '{automation_id}'", ending), 400)

    @route("POST", "/automations/<automation_id>/validate", Role.WRITE, schemas.VALIDATED, statuses=(200, 400))
    async def validate(self, call: Call, automation_id: str) -> HTTPResponse:
        """Read the automation's file as it is now, and change nothing; 400 lists its faults."""
        try:
            view = await self._automations.validate(automation_id)
        except ConfigFailed as failed:
            return json_response(refusal_body(failed), 400)
        return json_response(schemas.VALIDATED.of(automation=view))

    @route("GET", "/automations/<automation_id>/next", Role.READ, schemas.AUTOMATION_NEXT)
    async def list_next(self, call: Call, automation_id: str) -> HTTPResponse:
        """The next times at which the automation's schedules and intervals fall due, at most ten."""
        times = self._automations.list_next(automation_id)
        return json_response(schemas.AUTOMATION_NEXT.of(automation_id=automation_id, next=times))

    @route("POST", "/automations/<automation_id>/cancel", Role.WRITE, schemas.CANCELLED_COUNT)
    async def cancel(self, call: Call, automation_id: str) -> HTTPResponse:
        """End what runs and waits of it at once, in a sleep too; `cancelled` is how many those were."""
        count = self._automations.cancel(automation_id)
        return json_response(schemas.CANCELLED_COUNT.of(cancelled=count))

    @route("GET", "/automations/<automation_id>/history", Role.READ, schemas.AUTOMATION_HISTORY, query=PERIOD)
    async def list_history(self, call: Call, automation_id: str) -> HTTPResponse:
        """What became of the automation's triggers, the newest first; also why it did not run."""
        self._automations.view(automation_id)
        period = Period(**call.query())
        entries = self._automations.list_runs(automation_id, period)
        if self._card is not None:
            entries += await self._card.older_executions(entries, period, "automation", automation_id)
        return json_response(schemas.AUTOMATION_HISTORY.of(automation_id=automation_id, entries=entries))
