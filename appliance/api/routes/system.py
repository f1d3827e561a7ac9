"""The hub itself: alive, ready, what it can name, and how it is inside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import orjson
from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.diagnostics import Probe
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.errors import NotReady
from appliance.health import Health
from appliance.home.capabilities import CAPABILITIES, OWNERSHIP
from appliance.settings import LuaFolder

_HEALTHY = orjson.dumps({"status": "ok"})


class SystemApi:
    """Handlers of the routes about the hub itself.

    `probes` are the parts that diagnostics show, `folders` the folders of Lua files, both by name. `trust_clock` has
    the clock trusted, over restarts too.
    """

    def __init__(
        self,
        health: Health,
        probes: Mapping[str, Probe],
        folders: Mapping[str, LuaFolder],
        trust_clock: Callable[[], Awaitable[None]],
    ) -> None:
        self._health = health
        self._trust_clock = trust_clock
        self._probes = probes
        self._folders = folders
        self._catalog = orjson.dumps(schemas.CATALOG.of(capabilities=CAPABILITIES.values(), ownership=OWNERSHIP))

    @route("GET", "/health", None, schemas.DONE)
    async def show_health(self, call: Call) -> HTTPResponse:
        """The hub's process answers."""
        return json_response(_HEALTHY)

    @route("GET", "/ready", None, schemas.DONE, statuses=(200, 503))
    async def show_ready(self, call: Call) -> HTTPResponse:
        """The hub has started: every adapter's first poll has ended, reached or not."""
        if missing := self._health.list_missing():
            raise NotReady(f"starting: {', '.join(missing)}")
        return json_response(_HEALTHY)

    @route("GET", "/capabilities", Role.READ, schemas.CATALOG)
    async def list_capabilities(self, call: Call) -> HTTPResponse:
        """The capability catalog."""
        return json_response(self._catalog)

    @route("GET", "/diagnostics", Role.ADMIN, schemas.DIAGNOSTICS)
    async def show_diagnostics(self, call: Call) -> HTTPResponse:
        """How the hub is inside: counts, and the figures of each part."""
        return json_response({name: probe() for name, probe in self._probes.items()})

    @route("POST", "/diagnostics/clock/trust", Role.ADMIN, schemas.DONE, statuses=(200, 503))
    async def trust_clock(self, call: Call) -> HTTPResponse:
        """Trust the clock as it is now, also after restarts, where nothing synchronises it."""
        await self._trust_clock()
        return json_response(_HEALTHY)

    @route("GET", "/diagnostics/reload_watch", Role.ADMIN, schemas.WATCHES)
    async def show_reload_watch(self, call: Call) -> HTTPResponse:
        """Which folders of Lua files are watched, so that a saved file is loaded."""
        watches = [
            {"target": target, "enabled": folder.watch, "directory": folder.directory}
            for target, folder in self._folders.items()
        ]
        return json_response(schemas.WATCHES.of(watches=watches))
