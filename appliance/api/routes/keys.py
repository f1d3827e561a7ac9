"""API keys.

The master key is not an API key: it is neither listed nor revoked here.
"""

from __future__ import annotations

from appliance.api import schemas
from appliance.api.hooks import explain_missing_listener
from appliance.api.keyring import KEY_BODY
from appliance.api.responses import json_response
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.errors import Invalid
from appliance.tables.json_schema import TEXT, array_of, described

_SECRET = described("MasterKey", key=TEXT)


class ApiKeys(ApiResource):
    """Handlers of the routes under `/auth/keys`."""

    @route("GET", "/auth/keys", Role.ADMIN, array_of(schemas.KEY))
    async def list_all(self, call: Call) -> object:
        """Return every API key by id, without its secret."""
        return self.parts.keyring.list_all()

    @route(
        "POST", "/auth/keys", Role.ADMIN, schemas.NEW_KEY, statuses=(200, 503), body=KEY_BODY, is_rate_limited=False
    )
    async def create(self, call: Call) -> object:
        """Create an API key with a label, a role, and optionally a hook. Only this response contains its secret."""
        key, token = await self.parts.keyring.create(**await call.read_body())
        made = {**schemas.KEY(key), "key": token}
        if key.hook is not None and not await self.parts.hooks.has_listener(key.hook):
            made["warning"] = explain_missing_listener(key.hook)
        return json_response(made)

    @route("POST", "/auth/master", Role.ADMIN, _SECRET, statuses=(200, 400, 503), is_rate_limited=False)
    async def reset_master(self, call: Call) -> object:
        """Create a new master key, only on the hub's machine itself. Only this response contains its secret."""
        if call.principal is None or not call.principal.is_on_box:
            raise Invalid("to replace the master key, run `lares key reset-master` on the hub's machine")
        return {"key": await self.parts.keyring.reset_master()}

    @route("DELETE", "/auth/keys/<key_id>", Role.ADMIN, statuses=(204, 503), is_rate_limited=False)
    async def revoke(self, call: Call, key_id: str) -> None:
        """Revoke the API key, and close the event streams that were opened with it."""
        await self.parts.keyring.revoke(key_id)
