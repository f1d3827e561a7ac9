"""Hooks: requests from phones, buttons, scripts, and devices."""

from __future__ import annotations

from collections.abc import Mapping

from sanic import Request

from appliance.adapters.base import HookRequest
from appliance.api import schemas
from appliance.api.hooks import read_data
from appliance.api.limits import MAX_HOOK_BYTES
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.tables.json_schema import ANY, Check

_SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
_HOOK_BODY = Check(schema=ANY, run=lambda value: value)


class HooksApi(ApiResource):
    """Handlers of `/hooks/<hook_id>`. Phones, buttons, scripts, and devices call hooks."""

    @route("GET", "/hooks/<hook_id>", Role.HOOK, schemas.DONE, statuses=(200, 400))
    async def call_by_get(self, call: Call, hook_id: str) -> object:
        """Call the hook with the data in the query. HEAD only reports whether the hook has a listener."""
        if call.request.method == "HEAD":
            await self.parts.hooks.require(hook_id)
        else:
            await self.parts.hooks.call(_hook_request(call.request, hook_id))
        return {}

    @route(
        "POST",
        "/hooks/<hook_id>",
        Role.HOOK,
        schemas.DONE,
        body=_HOOK_BODY,
        body_optional=True,
        max_body_bytes=MAX_HOOK_BYTES,
    )
    async def call_by_post(self, call: Call, hook_id: str) -> object:
        """Call the hook with JSON, a form, or no body. The body can have at most 16 KiB."""
        await self.parts.hooks.require(hook_id)
        body = await call.bodies.read(call.request, call.route.max_body_bytes)
        call.recheck()
        await self.parts.hooks.call(_hook_request(call.request, hook_id, body))
        return {}


def _hook_request(request: Request, hook: str, body: bytes = b"") -> HookRequest:
    return HookRequest(
        hook=hook,
        method=request.method,
        query=_query_of(request),
        headers={name: value for name, value in request.headers.items() if name not in _SECRET_HEADERS},
        data=read_data(body, request.headers.get("content-type", "")) if body else None,
        body=body,
    )


def _query_of(request: Request) -> Mapping[str, str]:
    """Return the query without the token. For a repeated parameter, return the last value."""
    given = request.get_args(keep_blank_values=True) if request.query_string else {}
    return {name: values[-1] for name, values in given.items() if name != "token"}
