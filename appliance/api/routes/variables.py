"""The variables and timers of automations."""

from __future__ import annotations

from typing import Any

from appliance.api import schemas
from appliance.api.responses import encode_list
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.api.validation import body_check
from appliance.errors import Invalid
from appliance.tables.fields import Field
from appliance.tables.json_schema import ANY, Check, array_of

SOURCE = "variables"
"""The source of variables that are set over HTTP."""


def _value(value: Any) -> Any:
    if value is None:
        raise Invalid("must not be null; to remove a variable, use DELETE")
    return value


VARIABLE_BODY = body_check("VariableRequest", {"value": Field(Check(schema=ANY, run=_value))})


class VariablesApi(ApiResource):
    """Handlers of the routes under `/variables`."""

    @route("GET", "/variables", Role.READ, array_of(schemas.VARIABLE))
    async def list_all(self, call: Call) -> object:
        """Return every variable by name."""
        return self.hub.environment.variables.list_all()

    @route("GET", "/variables/<name>", Role.READ, schemas.VARIABLE)
    async def get(self, call: Call, name: str) -> object:
        """Return one variable."""
        return self.hub.environment.variables.get(name)

    @route("PUT", "/variables/<name>", Role.WRITE, schemas.VARIABLE, statuses=(200, 503), body=VARIABLE_BODY)
    async def put(self, call: Call, name: str) -> object:
        """Set the variable. The response is sent after the value is stored."""
        stated = await call.read_body()
        await self.hub.environment.variables.set_durable(name, stated["value"], SOURCE)
        return {"name": name, "value": stated["value"]}

    @route("DELETE", "/variables/<name>", Role.WRITE, statuses=(204, 503))
    async def remove(self, call: Call, name: str) -> None:
        """Remove the variable."""
        self.hub.environment.variables.get(name)
        await self.hub.environment.variables.set_durable(name, None, SOURCE)


class TimersApi(ApiResource):
    """Handlers of the routes under `/timers`."""

    @route("GET", "/timers", Role.READ, array_of(schemas.TIMER), is_large=True)
    async def list_all(self, call: Call) -> object:
        """Return every running timer, by name."""
        return await encode_list(self.hub.clock, schemas.TIMER, self.hub.environment.timers.list_all())

    @route("DELETE", "/timers/<name>", Role.WRITE, statuses=(204, 503))
    async def remove(self, call: Call, name: str) -> None:
        """Cancel the timer."""
        await self.hub.environment.timers.remove(name)
