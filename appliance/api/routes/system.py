"""The hub itself: whether it runs, and the catalog of capabilities."""

from __future__ import annotations

from functools import cache

import orjson

from appliance.api import schemas
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.errors import NotReady
from appliance.home.capabilities import CAPABILITIES, OWNERSHIP
from appliance.store.lock import LOST


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
        """Report whether every adapter's first poll has ended, and no other hub has taken the data directory."""
        if self.hub.store.has_lost_lock:
            raise NotReady(LOST)
        if missing := self.hub.health.list_missing():
            raise NotReady(f"starting: {', '.join(missing)}")
        return {}

    @route("GET", "/capabilities", Role.READ, schemas.CATALOG)
    async def list_capabilities(self, call: Call) -> object:
        """Return the capability catalog."""
        return _encode_catalog()
