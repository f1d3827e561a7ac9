"""Variables: the values that scenes and automations share."""

from __future__ import annotations

from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.responses import json_response, no_content
from appliance.api.route import Call, route
from appliance.api.validation import body, json_value
from appliance.automations.variables import Variables as Parts
from appliance.tables.fields import Field
from appliance.tables.json_schema import array_of

SOURCE = "variables"
"""Who sets a variable over HTTP."""

VARIABLE_BODY = body("VariableRequest", {"value": Field(json_value)})


class VariablesApi:
    """Handlers of the routes under `/variables`."""

    def __init__(self, variables: Parts) -> None:
        self._variables = variables

    @route("GET", "/variables", Role.READ, array_of(schemas.VARIABLE))
    async def list_all(self, call: Call) -> HTTPResponse:
        """Every variable by name."""
        return json_response(schemas.VARIABLE.each(self._variables.list_all()))

    @route("GET", "/variables/<name>", Role.READ, schemas.VARIABLE)
    async def get(self, call: Call, name: str) -> HTTPResponse:
        """One variable."""
        return json_response(schemas.VARIABLE(self._variables.get(name)))

    @route("PUT", "/variables/<name>", Role.WRITE, schemas.VARIABLE, statuses=(200, 503), body=VARIABLE_BODY)
    async def put(self, call: Call, name: str) -> HTTPResponse:
        """Set the variable; it is on the card before this is answered."""
        body = await call.body()
        await self._variables.set_durable(name, body["value"], SOURCE)
        return json_response(schemas.VARIABLE.of(name=name, value=body["value"]))

    @route("DELETE", "/variables/<name>", Role.WRITE, statuses=(204, 503))
    async def remove(self, call: Call, name: str) -> HTTPResponse:
        """Remove the variable."""
        self._variables.get(name)
        await self._variables.set_durable(name, None, SOURCE)
        return no_content()
