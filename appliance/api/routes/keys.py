"""API keys: made, listed, revoked. The master key is none of them: it is neither listed nor revoked here."""

from __future__ import annotations

from typing import Any

from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.hooks import Hooks, explain_unheard
from appliance.api.keyring import Keyring
from appliance.api.responses import json_response, no_content
from appliance.api.route import Call, route
from appliance.api.validation import body, member_of, nullable
from appliance.errors import Invalid, MalformedRequest
from appliance.home.texts import hook_id, text
from appliance.tables.fields import Field
from appliance.tables.json_schema import TEXT, Check, array_of, described

MAX_LABEL_CHARS = 100

_FIELDS = body(
    "KeyRequest",
    {
        "label": Field(text(MAX_LABEL_CHARS)),
        "role": Field(member_of(Role)),
        "hook": Field(nullable(hook_id), required=False),
    },
)


def _check(raw: Any) -> dict[str, Any]:
    fields: dict[str, Any] = _FIELDS(raw)
    if fields["role"] is Role.HOOK and fields["hook"] is None:
        raise MalformedRequest("hook is missing: a key of the role hook opens one, by its id")
    if fields["role"] is not Role.HOOK and fields["hook"] is not None:
        raise Invalid(f"hook goes with the role hook, not with {fields['role']}")
    return fields


KEY_BODY = Check(schema=_FIELDS.schema, run=_check)

_SECRET = described("MasterKey", key=TEXT)


class ApiKeys:
    """Handlers of the routes under `/auth/keys`."""

    def __init__(self, keyring: Keyring, hooks: Hooks) -> None:
        self._keyring = keyring
        self._hooks = hooks

    @route("GET", "/auth/keys", Role.ADMIN, array_of(schemas.KEY))
    async def list_all(self, call: Call) -> HTTPResponse:
        """Every API key by id, without its secret."""
        return json_response(schemas.KEY.each(self._keyring.list_all()))

    @route("POST", "/auth/keys", Role.ADMIN, schemas.NEW_KEY, statuses=(200, 503), body=KEY_BODY)
    async def create(self, call: Call) -> HTTPResponse:
        """Make an API key with a label, a role, and maybe a hook; its secret is in this answer alone."""
        fields = await call.body()
        key, token = await self._keyring.create(**fields)
        made = {**schemas.KEY(key), "key": token}
        if key.hook is not None and not await self._hooks.is_heard(key.hook):
            made["warning"] = explain_unheard(key.hook)
        return json_response(made)

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
