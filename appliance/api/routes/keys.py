"""API keys: made, listed, revoked. The master key is none of them: it is neither listed nor revoked here."""

from __future__ import annotations

from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.keyring import Keyring
from appliance.api.responses import json_response, no_content
from appliance.api.route import Call, route
from appliance.api.validation import body, member_of
from appliance.errors import Invalid
from appliance.home.texts import text
from appliance.tables.fields import Field
from appliance.tables.json_schema import TEXT, array_of, described

MAX_LABEL_CHARS = 100

KEY_BODY = body("KeyRequest", {"label": Field(text(MAX_LABEL_CHARS)), "role": Field(member_of(Role))})

_SECRET = described("MasterKey", key=TEXT)


class ApiKeys:
    """Handlers of the routes under `/auth/keys`."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    @route("GET", "/auth/keys", Role.ADMIN, array_of(schemas.KEY))
    async def list_all(self, call: Call) -> HTTPResponse:
        """Every API key by id, without its secret."""
        return json_response(schemas.KEY.each(self._keyring.list_all()))

    @route("POST", "/auth/keys", Role.ADMIN, schemas.NEW_KEY, statuses=(200, 503), body=KEY_BODY)
    async def create(self, call: Call) -> HTTPResponse:
        """Make an API key with a label and a role; its secret is in this answer alone."""
        fields = await call.body()
        key, token = await self._keyring.create(fields["label"], fields["role"])
        return json_response({**schemas.KEY(key), "key": token})

    @route("POST", "/auth/master", Role.ADMIN, _SECRET, statuses=(200, 400, 503))
    async def reset_master(self, call: Call) -> HTTPResponse:
        """Make a new master key, on the box alone (`lares key reset-master`); its secret is in this answer alone."""
        if call.principal is None or not call.principal.is_on_box:
            raise Invalid("the master key is replaced on the box: `lares key reset-master`")
        return json_response({"key": await self._keyring.reset_master()})

    @route("DELETE", "/auth/keys/<key_id>", Role.ADMIN, statuses=(204, 503))
    async def revoke(self, call: Call, key_id: str) -> HTTPResponse:
        """Revoke the API key, and close the event streams that came with it."""
        await self._keyring.revoke(key_id)
        return no_content()
