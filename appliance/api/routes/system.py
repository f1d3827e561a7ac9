"""The hub itself: alive, ready, what it can name, and how it is inside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from sanic import HTTPResponse

from appliance.api import payloads, schemas
from appliance.api.answers import json_answer
from appliance.api.auth import Role
from appliance.api.route import Call, Route
from appliance.errors import NotReady
from appliance.health import Health
from appliance.settings import LuaFolder

Probe = Callable[[], Mapping[str, Any]]
"""One part's figures for `GET /diagnostics`."""

_HEALTHY = orjson.dumps({"status": "ok"})


class System:
    """What answers the routes about the hub itself.

    `probes` are the parts that diagnostics show, `folders` the folders of Lua files, both by name.
    """

    def __init__(self, health: Health, probes: Mapping[str, Probe], folders: Mapping[str, LuaFolder]) -> None:
        self._health = health
        self._probes = probes
        self._folders = folders
        self._catalog = orjson.dumps(payloads.catalog())

    async def show_health(self, call: Call) -> HTTPResponse:
        """The process answers."""
        return json_answer(_HEALTHY)

    async def show_ready(self, call: Call) -> HTTPResponse:
        """Every adapter's first poll has ended; before that 503 names the missing ones."""
        if missing := self._health.list_missing():
            raise NotReady(f"starting: {', '.join(missing)}")
        return json_answer(_HEALTHY)

    async def list_capabilities(self, call: Call) -> HTTPResponse:
        """The capability catalog."""
        return json_answer(self._catalog)

    async def show_diagnostics(self, call: Call) -> HTTPResponse:
        """Every part's figures."""
        return json_answer({name: probe() for name, probe in self._probes.items()})

    async def show_reload_watch(self, call: Call) -> HTTPResponse:
        """Which folders are watched."""
        watches = [
            {"target": target, "enabled": folder.watch, "directory": folder.directory}
            for target, folder in self._folders.items()
        ]
        return json_answer({"status": "ok", "watches": watches})


def probe_process() -> dict[str, Any]:
    """The process's resident memory in bytes (Linux only, else null) and its threads."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        resident: int | None = pages * 4096
    except OSError:
        resident = None
    return {"resident_bytes": resident, "threads": threading.active_count()}


ROUTES = (
    Route(
        method="GET",
        path="/health",
        role=None,
        handler=System.show_health,
        answers=(200,),
        holds=schemas.DONE,
        summary="The hub's process answers.",
    ),
    Route(
        method="GET",
        path="/ready",
        role=None,
        handler=System.show_ready,
        answers=(200, 503),
        holds=schemas.DONE,
        summary="The hub has started: every adapter's first poll has ended, reached or not.",
    ),
    Route(
        method="GET",
        path="/capabilities",
        role=Role.READ,
        handler=System.list_capabilities,
        answers=(200,),
        holds=schemas.CATALOG,
        summary="The capability catalog.",
    ),
    Route(
        method="GET",
        path="/diagnostics",
        role=Role.ADMIN,
        handler=System.show_diagnostics,
        answers=(200,),
        holds=schemas.DIAGNOSTICS,
        summary="How the hub is inside: counts, and the figures of each part.",
    ),
    Route(
        method="GET",
        path="/diagnostics/reload_watch",
        role=Role.ADMIN,
        handler=System.show_reload_watch,
        answers=(200,),
        holds=schemas.WATCHES,
        summary="Which folders of Lua files are watched, so that a saved file is loaded.",
    ),
)
