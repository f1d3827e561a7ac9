"""Hooks: the one way in for phones, buttons, scripts and devices that call."""

from __future__ import annotations

from collections.abc import Mapping

from sanic import HTTPResponse, Request

from appliance.adapters.base import HookRequest
from appliance.api.auth import Role
from appliance.api.body import read_bytes
from appliance.api.hooks import MAX_HOOK_BYTES, Hooks, read_data
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.api.schemas import DONE
from appliance.tables.json_schema import ANY, Check

_SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})

_BODY = Check(schema=ANY, run=lambda value: value)


class HooksApi:
    """Handlers of `/hooks/<hook_id>`."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    @route("GET", "/hooks/<hook_id>", Role.HOOK, DONE, statuses=(200, 400))
    async def call_by_get(self, call: Call, hook_id: str) -> HTTPResponse:
        """Call the hook with what the query states. HEAD only says whether anything listens to it."""
        if call.request.method == "HEAD":
            await self._hooks.require(hook_id)
        else:
            await self._hooks.call(_request(call.request, hook_id))
        return json_response(DONE.of())

    @route("POST", "/hooks/<hook_id>", Role.HOOK, DONE, body=_BODY, body_optional=True)
    async def call_by_post(self, call: Call, hook_id: str) -> HTTPResponse:
        """Call the hook with a body of JSON, a form, or none, of at most 16 KiB."""
        await self._hooks.require(hook_id)
        body = await read_bytes(call.request, call.limits, MAX_HOOK_BYTES)
        call.recheck()
        await self._hooks.call(_request(call.request, hook_id, body))
        return json_response(DONE.of())


def _request(request: Request, hook: str, body: bytes = b"") -> HookRequest:
    return HookRequest(
        hook=hook,
        method=request.method,
        query=_query(request),
        headers={name: value for name, value in request.headers.items() if name not in _SECRET_HEADERS},
        data=read_data(body, request.headers.get("content-type", "")) if body else None,
        body=body,
    )


def _query(request: Request) -> Mapping[str, str]:
    """The query without the key; of what was given twice, the last counts."""
    given = request.get_args(keep_blank_values=True) if request.query_string else {}
    return {name: values[-1] for name, values in given.items() if name != "token"}
