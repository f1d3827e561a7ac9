"""Preferences: what a client keeps under its own key, like the favourites of the page. The hub does not read it."""

from __future__ import annotations

from typing import Any

import orjson
from sanic import HTTPResponse

from appliance.api.auth import Role
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.api.validation import table
from appliance.errors import MalformedRequest, TooLarge
from appliance.store.document import Document
from appliance.store.records import PREFERENCES_PREFIX
from appliance.tables.checks import shown
from appliance.tables.json_schema import OBJECT, Check

MAX_PREFERENCES_BYTES = 16 << 10


def _check(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise MalformedRequest(f"the body must be a JSON object, not {shown(raw)}")
    checked: dict[str, Any] = table(raw)
    if (size := len(orjson.dumps(checked))) > MAX_PREFERENCES_BYTES:
        raise TooLarge(f"preferences have at most {MAX_PREFERENCES_BYTES} bytes, not {size}; nothing was changed")
    return checked


def read_preferences(document: Document, key_id: str) -> dict[str, Any]:
    """The preferences of a key; empty if there are none."""
    stored = document.get(PREFERENCES_PREFIX + key_id)
    found = {} if stored is None else orjson.loads(stored)
    return found if isinstance(found, dict) else {}


class PreferencesApi:
    """Handlers of `/preferences`: each key has its own, and they end with it."""

    def __init__(self, document: Document) -> None:
        self._document = document

    @route("GET", "/preferences", Role.READ, OBJECT)
    async def get(self, call: Call) -> HTTPResponse:
        """The object that was kept under the key of this request; empty if there is none."""
        assert call.principal is not None
        return json_response(read_preferences(self._document, call.principal.key_id))

    @route("PUT", "/preferences", Role.WRITE, OBJECT, statuses=(200, 503), body=Check(schema=OBJECT, run=_check))
    async def put(self, call: Call) -> HTTPResponse:
        """Keep an object of at most 16 KiB; it is on the card before this is answered."""
        assert call.principal is not None
        stated = await call.body()
        await self._document.put_many({PREFERENCES_PREFIX + call.principal.key_id: stated or None})
        return json_response(stated)
