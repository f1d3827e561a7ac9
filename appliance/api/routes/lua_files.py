"""Resources of Lua files: scenes, automations, scripts; their executions, and the variables and timers they share."""

from __future__ import annotations

import asyncio

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.responses import failed_execution_body, json_response, refusal_body
from appliance.api.route import ApiResource, Call, route
from appliance.api.validation import PERIOD, body, boolean, choice, json_value, nullable, table
from appliance.errors import ConfigFailed, DroppedByMode
from appliance.history.execution_history import ExecutionStatus
from appliance.history.period import Period
from appliance.lua.executor import cancel_execution, list_executions
from appliance.lua.modes import Decision
from appliance.tables.fields import Field
from appliance.tables.json_schema import array_of

MANUAL = {"type": "manual"}
"""The event of a manual run that states no event."""

SOURCE = "variables"
"""The source of variables that are set over HTTP."""

SWITCH_BODY = body("SwitchRequest", {"enabled": Field(boolean)})
RUN_BODY = body("ByHandRequest", {"trigger_payload": Field(nullable(table), required=False)})
_INCLUDE = {"include": Field(choice("times", description="Further fields of each automation."), required=False)}

VARIABLE_BODY = body("VariableRequest", {"value": Field(json_value)})


class ScenesApi(ApiResource):
    """Handlers of the routes under `/scenes`."""

    @route("GET", "/scenes", Role.READ, array_of(schemas.SCENE))
    async def list_all(self, call: Call) -> object:
        """Return every scene by id."""
        return self.hub.scenes.list_scenes()

    @route("POST", "/scenes/reload", Role.ADMIN, schemas.RELOADED)
    async def reload(self, call: Call) -> object:
        """Read every scene's file again. If a file has a fault, the response lists all faults and nothing changes."""
        return await self.hub.reloaders["scenes"].reload()

    @route("POST", "/scenes/<scene_id>/execute", Role.WRITE, schemas.EXECUTED, statuses=(200, 202, 400, 423))
    async def execute(self, call: Call, scene_id: str) -> object:
        """Run the scene and return the result of each of its commands, in the order of the calls."""
        execution = self.hub.scenes.execute(scene_id)
        if execution.decision is Decision.QUEUE:
            return json_response({"status": "queued", "results": []}, 202)
        ending = await asyncio.shield(execution.ended)
        if ending.status is ExecutionStatus.DROPPED:
            raise DroppedByMode(f"scene '{scene_id}' did not run; {ending.error}")
        if ending.status is ExecutionStatus.OK:
            return ending
        return json_response(failed_execution_body(f"scene '{scene_id}'", ending), 400)

    @route("POST", "/scenes/<scene_id>/cancel", Role.WRITE, schemas.CANCELLED_COUNT)
    async def cancel(self, call: Call, scene_id: str) -> object:
        """Cancel the scene's running and waiting executions now, even in a sleep; `cancelled` counts them."""
        return {"cancelled": self.hub.scenes.cancel(scene_id)}

    @route("GET", "/scenes/<scene_id>/history", Role.READ, schemas.SCENE_HISTORY, query=PERIOD)
    async def list_history(self, call: Call, scene_id: str) -> object:
        """Return the results of the scene's executions, newest first."""
        self.hub.scenes.catalog.get(scene_id)
        entries = await self.hub.history.list_executions("scene", scene_id, Period(**call.query()))
        return {"scene_id": scene_id, "entries": entries}


class AutomationsApi(ApiResource):
    """Handlers of the routes under `/automations`."""

    @route("GET", "/automations", Role.READ, array_of(schemas.AUTOMATION), query=_INCLUDE)
    async def list_all(self, call: Call) -> object:
        """Return every automation by id; with `include=times`, also its next due time and newest execution."""
        automations = self.hub.automations
        return automations.list_timed_views() if call.query()["include"] else automations.list_views()

    @route("GET", "/automations/<automation_id>", Role.READ, schemas.AUTOMATION)
    async def get(self, call: Call, automation_id: str) -> object:
        """Return one automation."""
        return self.hub.automations.view(automation_id)

    @route("POST", "/automations/reload", Role.ADMIN, schemas.RELOADED)
    async def reload(self, call: Call) -> object:
        """Read every automation's file again. If one has a fault, all faults are listed and nothing changes."""
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
        """Switch the automation on or off; this outlives restarts and reloads."""
        self.hub.automations.view(automation_id)
        stated = await call.body()
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
        """Run the automation now, even if it is off, regardless of mode and cooldown; its conditions apply."""
        self.hub.automations.view(automation_id)
        stated = (await call.body())["trigger_payload"]
        ending = await self.hub.automations.run_by_hand(automation_id, MANUAL if stated is None else stated)
        if ending.status in (ExecutionStatus.OK, ExecutionStatus.SKIPPED):
            return ending
        return json_response(failed_execution_body(f"automation '{automation_id}'", ending), 400)

    @route("POST", "/automations/<automation_id>/validate", Role.WRITE, schemas.VALIDATED, statuses=(200, 400))
    async def validate(self, call: Call, automation_id: str) -> object:
        """Read the automation's file as it is now, without changing anything; 400 lists its faults."""
        try:
            return {"automation": await self.hub.automations.validate(automation_id)}
        except ConfigFailed as failed:
            return json_response(refusal_body(failed), 400)

    @route("GET", "/automations/<automation_id>/next", Role.READ, schemas.AUTOMATION_NEXT)
    async def list_next(self, call: Call, automation_id: str) -> object:
        """Return the next due times of the automation's schedules and intervals, at most ten."""
        return {"automation_id": automation_id, "next": self.hub.automations.list_next(automation_id)}

    @route("POST", "/automations/<automation_id>/cancel", Role.WRITE, schemas.CANCELLED_COUNT)
    async def cancel(self, call: Call, automation_id: str) -> object:
        """Cancel the automation's running and waiting executions now, even in a sleep; `cancelled` counts them."""
        return {"cancelled": self.hub.automations.cancel(automation_id)}

    @route("GET", "/automations/<automation_id>/history", Role.READ, schemas.AUTOMATION_HISTORY, query=PERIOD)
    async def list_history(self, call: Call, automation_id: str) -> object:
        """Return the results of the automation's triggers, newest first; also the reasons why it did not run."""
        self.hub.automations.view(automation_id)
        entries = await self.hub.history.list_executions("automation", automation_id, Period(**call.query()))
        return {"automation_id": automation_id, "entries": entries}


class ExecutionsApi(ApiResource):
    """Handlers of the routes under `/executions`."""

    @route("GET", "/executions", Role.READ, schemas.EXECUTIONS)
    async def list_all(self, call: Call) -> object:
        """Return the running and waiting executions of scenes and automations, oldest first."""
        return {"executions": list_executions(self.hub.executors)}

    @route("POST", "/executions/<execution_id>/cancel", Role.WRITE, schemas.CANCELLED_EXECUTION)
    async def cancel(self, call: Call, execution_id: str) -> object:
        """Cancel one execution at once, even during a sleep. Clients that wait for it get 400 and a sentence."""
        cancel_execution(self.hub.executors, execution_id)
        return {}


class ScriptsApi(ApiResource):
    """Handlers of the routes under `/scripts`."""

    @route("POST", "/scripts/reload", Role.ADMIN, schemas.RELOADED)
    async def reload(self, call: Call) -> object:
        """Compile every script and list all faults. Executions read scripts when they require them."""
        return await self.hub.reloaders["scripts"].reload()


class VariablesApi(ApiResource):
    """Handlers of the routes under `/variables`."""

    @route("GET", "/variables", Role.READ, array_of(schemas.VARIABLE))
    async def list_all(self, call: Call) -> object:
        """Return every variable by name."""
        return self.hub.variables.list_all()

    @route("GET", "/variables/<name>", Role.READ, schemas.VARIABLE)
    async def get(self, call: Call, name: str) -> object:
        """Return one variable."""
        return self.hub.variables.get(name)

    @route("PUT", "/variables/<name>", Role.WRITE, schemas.VARIABLE, statuses=(200, 503), body=VARIABLE_BODY)
    async def put(self, call: Call, name: str) -> object:
        """Set the variable; it is on the card before the response."""
        stated = await call.body()
        await self.hub.variables.set_durable(name, stated["value"], SOURCE)
        return {"name": name, "value": stated["value"]}

    @route("DELETE", "/variables/<name>", Role.WRITE, statuses=(204, 503))
    async def remove(self, call: Call, name: str) -> None:
        """Remove the variable."""
        self.hub.variables.get(name)
        await self.hub.variables.set_durable(name, None, SOURCE)


class TimersApi(ApiResource):
    """Handlers of the routes under `/timers`."""

    @route("GET", "/timers", Role.READ, array_of(schemas.TIMER))
    async def list_all(self, call: Call) -> object:
        """Return every running timer, by name."""
        return self.hub.timers.list_all()

    @route("DELETE", "/timers/<name>", Role.WRITE, statuses=(204, 503))
    async def remove(self, call: Call, name: str) -> None:
        """Cancel the timer."""
        await self.hub.timers.remove(name)
