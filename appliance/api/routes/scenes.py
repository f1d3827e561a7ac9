"""Scenes."""

from __future__ import annotations

import orjson

from appliance.api import schemas
from appliance.api.error_responses import failed_execution_body
from appliance.api.responses import LimitedList, json_response
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.api.routes.history import PERIOD, parse_period
from appliance.errors import DroppedByMode
from appliance.history.execution_history import ExecutionStatus
from appliance.lua.running.modes import Decision
from appliance.tables.json_schema import array_of


class ScenesApi(ApiResource):
    """Handlers of the routes under `/scenes`."""

    @route("GET", "/scenes", Role.READ, array_of(schemas.SCENE), is_large=True)
    async def list_all(self, call: Call) -> object:
        """Return every scene by id."""
        return self.hub.scenes.catalog.list_definitions()

    @route("POST", "/scenes/reload", Role.ADMIN, schemas.RELOADED, is_rate_limited=False)
    async def reload(self, call: Call) -> object:
        """Read the files of all scenes again. If any file has an error, list all errors and change nothing."""
        return await self.hub.reloaders["scenes"].reload()

    @route("POST", "/scenes/<scene_id>/execute", Role.WRITE, schemas.EXECUTED, statuses=(200, 202, 400, 423))
    async def execute(self, call: Call, scene_id: str) -> object:
        """Run the scene and return the result of each of its commands, in call order."""
        execution = self.hub.scenes.execute(scene_id, client=call.key_id)
        if execution.decision is Decision.QUEUE:
            return json_response({"status": "queued", "results": []}, 202)
        ending = await execution.result()
        if ending.status is ExecutionStatus.DROPPED:
            raise DroppedByMode(f"scene '{scene_id}' did not run; {ending.error}")
        if ending.status is ExecutionStatus.OK:
            return ending
        return json_response(failed_execution_body(f"scene '{scene_id}'", ending), 400)

    @route("POST", "/scenes/<scene_id>/cancel", Role.WRITE, schemas.CANCELLED_COUNT)
    async def cancel(self, call: Call, scene_id: str) -> object:
        """Cancel the scene's running and waiting executions now, even in a sleep. Return their number."""
        return {"cancelled": await self.hub.scenes.cancel(scene_id)}

    @route(
        "GET",
        "/scenes/<scene_id>/history",
        Role.READ,
        schemas.SCENE_HISTORY,
        query=PERIOD,
        is_large=True,
        is_slow=True,
    )
    async def list_history(self, call: Call, scene_id: str) -> object:
        """Return the results of the scene's executions, newest first."""
        self.hub.scenes.catalog.get(scene_id)
        entries = LimitedList(schemas.SCENE_RUN)
        await self.hub.history.read_executions("scene", scene_id, parse_period(call.query()), entries.add)
        return b'{"scene_id":%b,"entries":%b}' % (orjson.dumps(scene_id), entries.to_json())
