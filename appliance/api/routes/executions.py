"""Executions: what runs and waits of scenes and automations now, and ending one of them."""

from __future__ import annotations

from collections.abc import Sequence

from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.lua.executor import Executor, cancel_execution, list_executions


class ExecutionsApi:
    """Handlers of the routes under `/executions`."""

    def __init__(self, executors: Sequence[Executor]) -> None:
        self._executors = executors

    @route("GET", "/executions", Role.READ, schemas.EXECUTIONS)
    async def list_all(self, call: Call) -> HTTPResponse:
        """What runs and waits of scenes and automations, the oldest first."""
        return json_response(schemas.EXECUTIONS.of(executions=list_executions(self._executors)))

    @route("POST", "/executions/<execution_id>/cancel", Role.WRITE, schemas.CANCELLED_EXECUTION)
    async def cancel(self, call: Call, execution_id: str) -> HTTPResponse:
        """End one execution at once, in a sleep too. Whoever waits for it gets 400 and a sentence."""
        cancel_execution(self._executors, execution_id)
        return json_response(schemas.CANCELLED_EXECUTION.of())
