"""The hub itself: whether it runs, and the catalog of capabilities."""

from __future__ import annotations

from functools import cache

import orjson

from appliance.api import schemas
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.errors import NotReady
from appliance.home.capabilities import CAPABILITIES, OWNERSHIP


@cache
def _encode_catalog() -> bytes:
    return orjson.dumps(schemas.CATALOG({"capabilities": CAPABILITIES.values(), "ownership": OWNERSHIP}))


class SystemApi(ApiResource):
    """Handlers of the routes about the hub itself."""

    @route("GET", "/health", None, schemas.DONE)
    async def show_health(self, call: Call) -> object:
        """Report that the hub's process answers."""
        return {}

    @route("GET", "/ready", None, schemas.DONE, statuses=(200, 503))
    async def show_ready(self, call: Call) -> object:
        """Report whether the hub has started: every adapter's first poll has ended, successfully or not."""
        if missing := self.hub.health.list_missing():
            raise NotReady(f"starting: {', '.join(missing)}")
        return {}

    @route("GET", "/capabilities", Role.READ, schemas.CATALOG)
    async def list_capabilities(self, call: Call) -> object:
        """Return the capability catalog."""
        return _encode_catalog()
