"""Scenes: which there are, and running them."""

from __future__ import annotations

import asyncio

from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.error_responses import failed_execution_body
from appliance.api.periods import PERIOD
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.errors import DroppedByMode
from appliance.history.card_history import CardHistory
from appliance.history.execution_history import ExecutionStatus
from appliance.history.period import Period
from appliance.lua.modes import Decision
from appliance.lua.reload import Reloader
from appliance.scenes import Scenes as Parts
from appliance.tables.json_schema import array_of


class ScenesApi:
    """Handlers of the routes under `/scenes`."""

    def __init__(self, scenes: Parts, reloader: Reloader, card: CardHistory | None) -> None:
        self._scenes = scenes
        self._card = card
        self._reloader = reloader

    @route("GET", "/scenes", Role.READ, array_of(schemas.SCENE))
    async def list_all(self, call: Call) -> HTTPResponse:
        """Every scene by id."""
        return json_response(schemas.SCENE.each(self._scenes.list_scenes()))

    @route("POST", "/scenes/reload", Role.ADMIN, schemas.RELOADED)
    async def reload(self, call: Call) -> HTTPResponse:
        """Read every scene's file anew. If one has a fault, the answer lists all faults and nothing changes."""
        return json_response(schemas.RELOADED(await self._reloader.reload()))

    @route("POST", "/scenes/<scene_id>/execute", Role.WRITE, schemas.EXECUTED, statuses=(200, 202, 400, 423))
    async def execute(self, call: Call, scene_id: str) -> HTTPResponse:
        """Run the scene: the result of each of its commands, in the order of the calls."""
        execution = self._scenes.execute(scene_id)
        if execution.decision is Decision.QUEUE:
            return json_response(schemas.EXECUTED.of(status="queued", results=[]), 202)
        ending = await asyncio.shield(execution.ended)
        if ending.status is ExecutionStatus.DROPPED:
            raise DroppedByMode(f"scene '{scene_id}' did not run; {ending.error}")
        if ending.status is ExecutionStatus.OK:
            return json_response(schemas.EXECUTED.of(status="ok", results=ending.results))
        return json_response(failed_execution_body(f"scene '{scene_id}'", ending), 400)

    @route("POST", "/scenes/<scene_id>/cancel", Role.WRITE, schemas.CANCELLED_COUNT)
    async def cancel(self, call: Call, scene_id: str) -> HTTPResponse:
        """End what runs and waits of it at once, in a sleep too; `cancelled` is how many those were."""
        count = self._scenes.cancel(scene_id)
        return json_response(schemas.CANCELLED_COUNT.of(cancelled=count))

    @route("GET", "/scenes/<scene_id>/history", Role.READ, schemas.SCENE_HISTORY, query=PERIOD)
    async def list_history(self, call: Call, scene_id: str) -> HTTPResponse:
        """What became of the scene's executions, the newest first."""
        self._scenes.catalog.get(scene_id)
        period = Period(**call.query())
        entries = self._scenes.list_runs(scene_id, period)
        if self._card is not None:
            entries += await self._card.older_executions(entries, period, "scene", scene_id)
        return json_response(schemas.SCENE_HISTORY.of(scene_id=scene_id, entries=entries))
