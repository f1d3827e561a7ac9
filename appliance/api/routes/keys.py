"""API keys, the preferences stored for each key, and hooks, which can have keys of their own.

The master key is not an API key: it is neither listed nor revoked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from sanic import Request

from appliance.adapters.base import HookRequest
from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.body import read_bytes
from appliance.api.hooks import MAX_HOOK_BYTES, explain_unheard, read_data
from appliance.api.keyring import KEY_BODY
from appliance.api.responses import json_response
from appliance.api.route import ApiResource, Call, route
from appliance.api.validation import table
from appliance.errors import Invalid, MalformedRequest, TooLarge
from appliance.store.document import Document
from appliance.store.record_keys import PREFERENCES_PREFIX
from appliance.tables.checks import shown
from appliance.tables.json_schema import ANY, OBJECT, TEXT, Check, array_of, described

MAX_PREFERENCES_BYTES = 16 << 10

_SECRET = described("MasterKey", key=TEXT)
_SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
_HOOK_BODY = Check(schema=ANY, run=lambda value: value)


class ApiKeys(ApiResource):
    """Handlers of the routes under `/auth/keys`."""

    @route("GET", "/auth/keys", Role.ADMIN, array_of(schemas.KEY))
    async def list_all(self, call: Call) -> object:
        """Return every API key by id, without its secret."""
        return self.parts.keyring.list_all()

    @route("POST", "/auth/keys", Role.ADMIN, schemas.NEW_KEY, statuses=(200, 503), body=KEY_BODY)
    async def create(self, call: Call) -> object:
        """Make an API key with a label, a role, and optionally a hook; only this response contains its secret."""
        key, token = await self.parts.keyring.create(**await call.body())
        made = {**schemas.KEY(key), "key": token}
        if key.hook is not None and not await self.parts.hooks.is_heard(key.hook):
            made["warning"] = explain_unheard(key.hook)
        return json_response(made)

    @route("POST", "/auth/master", Role.ADMIN, _SECRET, statuses=(200, 400, 503))
    async def reset_master(self, call: Call) -> object:
        """Make a new master key, only on the box itself; its secret is only in this response."""
        if call.principal is None or not call.principal.is_on_box:
            raise Invalid("the master key is replaced on the box: `lares key reset-master`")
        return {"key": await self.parts.keyring.reset_master()}

    @route("DELETE", "/auth/keys/<key_id>", Role.ADMIN, statuses=(204, 503))
    async def revoke(self, call: Call, key_id: str) -> None:
        """Revoke the API key, and close the event streams that were opened with it."""
        await self.parts.keyring.revoke(key_id)


def read_preferences(document: Document, key_id: str) -> dict[str, Any]:
    """Return the preferences of a key; empty if there are none."""
    stored = document.get(PREFERENCES_PREFIX + key_id)
    found = {} if stored is None else orjson.loads(stored)
    return found if isinstance(found, dict) else {}


def check_preferences(raw: Any) -> dict[str, Any]:
    """Return the preferences of a key; raise `Invalid` if they are too large or malformed."""
    if not isinstance(raw, dict):
        raise MalformedRequest(f"the body must be a JSON object, not {shown(raw)}")
    checked: dict[str, Any] = table(raw)
    if (size := len(orjson.dumps(checked))) > MAX_PREFERENCES_BYTES:
        raise TooLarge(f"preferences have at most {MAX_PREFERENCES_BYTES} bytes, not {size}; nothing was changed")
    return checked


_PREFERENCES_BODY = Check(schema=OBJECT, run=check_preferences)


class PreferencesApi(ApiResource):
    """Handlers of `/preferences`: data that clients keep under their own key until it is revoked."""

    @route("GET", "/preferences", Role.READ, OBJECT)
    async def get(self, call: Call) -> object:
        """Return the object stored under the key of this request; empty if there is none."""
        assert call.principal is not None
        return read_preferences(self.hub.document, call.principal.key_id)

    @route("PUT", "/preferences", Role.WRITE, OBJECT, statuses=(200, 503), body=_PREFERENCES_BODY)
    async def put(self, call: Call) -> object:
        """Store an object of at most 16 KiB; it is on the card before the response."""
        assert call.principal is not None
        stated = await call.body()
        await self.hub.document.put_many({PREFERENCES_PREFIX + call.principal.key_id: stated or None})
        return stated


class HooksApi(ApiResource):
    """Handlers of `/hooks/<hook_id>`, which phones, buttons, scripts and devices call."""

    @route("GET", "/hooks/<hook_id>", Role.HOOK, schemas.DONE, statuses=(200, 400))
    async def call_by_get(self, call: Call, hook_id: str) -> object:
        """Call the hook with the data of the query. HEAD only reports whether anything listens to it."""
        if call.request.method == "HEAD":
            await self.parts.hooks.require(hook_id)
        else:
            await self.parts.hooks.call(_hook_request(call.request, hook_id))
        return {}

    @route("POST", "/hooks/<hook_id>", Role.HOOK, schemas.DONE, body=_HOOK_BODY, body_optional=True)
    async def call_by_post(self, call: Call, hook_id: str) -> object:
        """Call the hook with JSON, a form, or no body, of at most 16 KiB."""
        await self.parts.hooks.require(hook_id)
        body = await read_bytes(call.request, call.limits, MAX_HOOK_BYTES)
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
    """Return the query without the key; the last of repeated values counts."""
    given = request.get_args(keep_blank_values=True) if request.query_string else {}
    return {name: values[-1] for name, values in given.items() if name != "token"}
