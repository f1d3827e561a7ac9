"""Automations, their shared scripts, and executions."""

from __future__ import annotations

import orjson

from appliance.api import schemas
from appliance.api.error_responses import failed_execution_body, invalid_files_body
from appliance.api.responses import LimitedList, encode_list, json_response
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.api.routes.history import PERIOD, parse_period
from appliance.api.validation import body_check, boolean, choice, nullable, table
from appliance.errors import ConfigFailed
from appliance.history.execution_history import ExecutionStatus
from appliance.lua.running.executor import cancel_execution, list_executions
from appliance.tables.fields import Field
from appliance.tables.json_schema import array_of

MANUAL = {"type": "manual"}
"""The default event of a manual run."""


SWITCH_BODY = body_check("SwitchRequest", {"enabled": Field(boolean)})
RUN_BODY = body_check("ByHandRequest", {"trigger_payload": Field(nullable(table), required=False)})
_INCLUDE = {"include": Field(choice("times", description="Further fields of each automation."), required=False)}


class AutomationsApi(ApiResource):
    """Handlers of the routes under `/automations`."""

    @route("GET", "/automations", Role.READ, array_of(schemas.AUTOMATION), query=_INCLUDE, is_large=True)
    async def list_all(self, call: Call) -> object:
        """Return every automation by id. With `include=times`, add the next due times and newest executions."""
        automations = self.hub.automations
        views = automations.list_timed_views() if call.query()["include"] else automations.list_views()
        return await encode_list(self.hub.clock, schemas.AUTOMATION, views)

    @route("GET", "/automations/<automation_id>", Role.READ, schemas.AUTOMATION)
    async def get(self, call: Call, automation_id: str) -> object:
        """Return one automation."""
        return self.hub.automations.view(automation_id)

    @route("POST", "/automations/reload", Role.ADMIN, schemas.RELOADED, is_rate_limited=False)
    async def reload(self, call: Call) -> object:
        """Read the files of all automations again. If any file has an error, list all errors and change nothing."""
        return await self.hub.reloaders["automations"].reload()

    @route(
        "POST",
        "/automations/<automation_id>/enabled",
        Role.WRITE,
        schemas.AUTOMATION,
        statuses=(200, 503),
        body=SWITCH_BODY,
    )
    async def switch(self, call: Call, automation_id: str) -> object:
        """Switch the automation on or off. The switch survives restarts and reloads."""
        self.hub.automations.view(automation_id)
        stated = await call.read_body()
        return await self.hub.automations.switch(automation_id, is_enabled=stated["enabled"])

    @route(
        "POST",
        "/automations/<automation_id>/execute",
        Role.WRITE,
        schemas.AUTOMATION_RESULT,
        body=RUN_BODY,
        body_optional=True,
    )
    async def execute(self, call: Call, automation_id: str) -> object:
        """Run the automation now if its conditions hold, even if it is off. Ignore its mode and cooldown."""
        self.hub.automations.view(automation_id)
        stated = (await call.read_body())["trigger_payload"]
        event = MANUAL if stated is None else stated
        ending = await self.hub.automations.run_by_hand(automation_id, event, call.key_id)
        if ending.status in (ExecutionStatus.OK, ExecutionStatus.SKIPPED):
            return ending
        return json_response(failed_execution_body(f"automation '{automation_id}'", ending), 400)

    @route("POST", "/automations/<automation_id>/validate", Role.WRITE, schemas.VALIDATED, statuses=(200, 400))
    async def validate(self, call: Call, automation_id: str) -> object:
        """Check the automation's current file without changing anything; 400 lists its errors."""
        try:
            return {"automation": await self.hub.files.checks.validate(automation_id)}
        except ConfigFailed as failed:
            return json_response(invalid_files_body(failed), 400)

    @route("GET", "/automations/<automation_id>/next", Role.READ, schemas.AUTOMATION_NEXT)
    async def list_next(self, call: Call, automation_id: str) -> object:
        """Return at most ten next due times of the automation's schedules and intervals."""
        return {"automation_id": automation_id, "next": await self.hub.automations.list_next(automation_id)}

    @route("POST", "/automations/<automation_id>/cancel", Role.WRITE, schemas.CANCELLED_COUNT)
    async def cancel(self, call: Call, automation_id: str) -> object:
        """Cancel the automation's running and waiting executions now, even in a sleep. Return their number."""
        return {"cancelled": await self.hub.automations.cancel(automation_id)}

    @route(
        "GET",
        "/automations/<automation_id>/history",
        Role.READ,
        schemas.AUTOMATION_HISTORY,
        query=PERIOD,
        is_large=True,
        is_slow=True,
    )
    async def list_history(self, call: Call, automation_id: str) -> object:
        """Return the results of the automation's triggers, newest first, with the reasons for prevented runs."""
        self.hub.automations.view(automation_id)
        entries = LimitedList(schemas.AUTOMATION_RUN)
        await self.hub.history.read_executions("automation", automation_id, parse_period(call.query()), entries.add)
        return b'{"automation_id":%b,"entries":%b}' % (orjson.dumps(automation_id), entries.to_json())


class ExecutionsApi(ApiResource):
    """Handlers of the routes under `/executions`."""

    @route("GET", "/executions", Role.READ, schemas.EXECUTIONS, is_large=True)
    async def list_all(self, call: Call) -> object:
        """Return the running and waiting executions of scenes and automations, oldest first."""
        return {"executions": list_executions(self.hub.executors)}

    @route("POST", "/executions/<execution_id>/cancel", Role.WRITE, schemas.CANCELLED_EXECUTION)
    async def cancel(self, call: Call, execution_id: str) -> object:
        """Cancel one execution at once, even in a sleep. Clients that wait for the result get 400 and a sentence."""
        cancel_execution(self.hub.executors, execution_id)
        return {}


class ScriptsApi(ApiResource):
    """Handlers of the routes under `/scripts`."""

    @route("POST", "/scripts/reload", Role.ADMIN, schemas.RELOADED, is_rate_limited=False)
    async def reload(self, call: Call) -> object:
        """Compile every script and list all errors. Executions read a script when they require it."""
        return await self.hub.reloaders["scripts"].reload()
