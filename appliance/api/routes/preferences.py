"""Preferences: data that clients store under their API key."""

from __future__ import annotations

from typing import Any

import orjson

from appliance.api.limits import MAX_PREFERENCES_BYTES
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.api.validation import any_object_body
from appliance.errors import TooLarge
from appliance.store.document import Document
from appliance.store.record_keys import PREFERENCES_PREFIX
from appliance.tables.json_schema import OBJECT, Check


def read_preferences(document: Document, key_id: str) -> dict[str, Any]:
    """Return the preferences of a key, or an empty object."""
    stored = document.get(PREFERENCES_PREFIX + key_id)
    found = {} if stored is None else orjson.loads(stored)
    return found if isinstance(found, dict) else {}


def check_preferences(raw: Any) -> dict[str, Any]:
    """Return the preferences. Raise `MalformedRequest`, `Invalid`, or `TooLarge` if the preferences are invalid."""
    checked: dict[str, Any] = any_object_body(raw)
    if (size := len(orjson.dumps(checked))) > MAX_PREFERENCES_BYTES:
        raise TooLarge(f"preferences can have at most {MAX_PREFERENCES_BYTES} bytes, not {size}; nothing was changed")
    return checked


_PREFERENCES_BODY = Check(schema=OBJECT, run=check_preferences)


class PreferencesApi(ApiResource):
    """Handlers of `/preferences`. Clients store preferences under their API key until the key is revoked."""

    @route("GET", "/preferences", Role.READ, OBJECT)
    async def get(self, call: Call) -> object:
        """Return the object stored under the key of this request, or an empty object."""
        assert call.principal is not None
        return read_preferences(self.hub.store.document, call.principal.key_id)

    @route("PUT", "/preferences", Role.WRITE, OBJECT, statuses=(200, 503), body=_PREFERENCES_BODY)
    async def put(self, call: Call) -> object:
        """Store an object of at most 16 KiB. The response is sent after the object is stored."""
        assert call.principal is not None
        stated = await call.read_body()
        await self.hub.store.document.put_many({PREFERENCES_PREFIX + call.principal.key_id: stated or None})
        return stated
