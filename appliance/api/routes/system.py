"""The hub itself: health, diagnostics, log, adapters, backup, documents, and event stream."""

from __future__ import annotations

import asyncio
from functools import cache, cached_property
from typing import Any

import orjson
from msgspec.structs import replace
from sanic import HTTPResponse

from appliance.adapters.discovery.discovery import DEFAULT_SEARCH_SECS, MAX_SEARCH_SECS
from appliance.api import schemas
from appliance.api.auth import Role
from appliance.api.frames import FRAMES
from appliance.api.metrics import CONTENT_TYPE, write_metrics
from appliance.api.openapi import describe, describe_events
from appliance.api.responses import Response
from appliance.api.route import ApiParts, ApiResource, Call, route
from appliance.api.sanic_http.connection import StrictConnection
from appliance.api.validation import anything, choice, table, whole_number
from appliance.api.websocket import accept_handshake
from appliance.errors import NotReady
from appliance.home.capabilities import CAPABILITIES, OWNERSHIP
from appliance.log_buffer import LOG_LEVELS, MAX_LOG_ENTRIES, LogQuery
from appliance.tables.fields import Field
from appliance.tables.json_schema import ANY, COUNT, TEXT, array_of, maybe, only, record

MAX_NUMBER = 999_999_999

MAX_HEARTBEAT_SECS = 3600

TAR = "application/x-tar"

_HEALTHY = orjson.dumps({"status": "ok"})

_LEVEL = choice(*LOG_LEVELS, default="debug", description="Entries of this level and above.")
_LOG_QUERY = {
    "level": Field(_LEVEL, required=False),
    "part": Field(anything, required=False),
    "contains": Field(anything, required=False),
    "limit": Field(whole_number(1, MAX_LOG_ENTRIES, default=LogQuery().limit), required=False),
    "after": Field(whole_number(0, MAX_NUMBER, default=0), required=False),
}
_LAST = {**COUNT, "description": "The number of the newest entry; use it as `after` to get later entries."}
_LOG = record("Log", entries=array_of(schemas.LOG_ENTRY), last=_LAST)

_RELOADS = record("Reloads", reloads=array_of(schemas.RELOADED), config=array_of(TEXT))
_RESULT = record("OperationResult", status=only("ok"), result=ANY)

_SECONDS = whole_number(1, MAX_SEARCH_SECS, default=DEFAULT_SEARCH_SECS)
_FOUND = record("Found", kind=TEXT, name=TEXT, address=TEXT, serial=maybe(TEXT), section=TEXT)
_DISCOVERY = record("Discovery", found=array_of(_FOUND))

_HEARTBEAT = {"heartbeat_secs": Field(whole_number(1, MAX_HEARTBEAT_SECS), required=False)}


@cache
def _encode_catalog() -> bytes:
    return orjson.dumps(schemas.CATALOG({"capabilities": CAPABILITIES.values(), "ownership": OWNERSHIP}))


class SystemApi(ApiResource):
    """Handlers of the routes about the hub itself."""

    @route("GET", "/health", None, schemas.DONE)
    async def show_health(self, call: Call) -> object:
        """Report that the hub's process answers."""
        return _HEALTHY

    @route("GET", "/ready", None, schemas.DONE, statuses=(200, 503))
    async def show_ready(self, call: Call) -> object:
        """Report whether the hub has started: every adapter's first poll has ended, successfully or not."""
        if missing := self.hub.health.list_missing():
            raise NotReady(f"starting: {', '.join(missing)}")
        return _HEALTHY

    @route("GET", "/capabilities", Role.READ, schemas.CATALOG)
    async def list_capabilities(self, call: Call) -> object:
        """Return the capability catalog."""
        return _encode_catalog()

    @route("GET", "/diagnostics", Role.ADMIN, schemas.DIAGNOSTICS)
    async def show_diagnostics(self, call: Call) -> object:
        """Return the internal state of the hub: counts, and the figures of each part."""
        return self.parts.figures.tree()

    @route("POST", "/diagnostics/clock/trust", Role.ADMIN, schemas.DONE, statuses=(200, 503))
    async def trust_clock(self, call: Call) -> object:
        """Trust the clock as it is now, also after restarts, if nothing synchronises it."""
        await self.hub.trust_clock()
        return _HEALTHY

    @route("POST", "/diagnostics/reload", Role.ADMIN, _RELOADS)
    async def reload(self, call: Call) -> object:
        """Reload adapter sections, kinds, scenes, automations and scripts, as SIGHUP and `lares reload` do."""
        reloads = await self.hub.reload()
        return {"reloads": reloads, "config": (await self.hub.adapter_sections.find_config_changes()).at_next_start()}

    @route("GET", "/diagnostics/reload_watch", Role.ADMIN, schemas.WATCHES)
    async def show_reload_watch(self, call: Call) -> object:
        """Return which folders of Lua files are watched, so that saved files are loaded."""
        folders = self.hub.folders.items()
        return {"watches": [{"target": k, "enabled": each.watch, "directory": each.directory} for k, each in folders]}


class LogApi(ApiResource):
    """Handler of `/diagnostics/log`."""

    @route("GET", "/diagnostics/log", Role.ADMIN, _LOG, query=_LOG_QUERY)
    async def list_entries(self, call: Call) -> object:
        """Return the matching entries among the last 2,000 of the log, newest first."""
        stated = {name: value for name, value in call.query().items() if value is not None}
        found, newest = self.hub.log.list_entries(LogQuery(**stated)), self.hub.log.list_entries(LogQuery(limit=1))
        return {"entries": found, "last": newest[0].number if newest else 0}


class MetricsPage(ApiResource):
    """Handler of `/metrics`."""

    @route("GET", "/metrics", Role.READ, TEXT, media_type=CONTENT_TYPE)
    async def show(self, call: Call) -> object:
        """Return the hub's counts and measurements in Prometheus's text format."""
        return Response(
            write_metrics(self.parts.figures.tree(), self.parts.requests), 200, {"content-type": CONTENT_TYPE}
        )


class AdaptersApi(ApiResource):
    """Handlers of the routes under `/adapters`."""

    @route("GET", "/adapters", Role.READ, array_of(schemas.ADAPTER))
    async def list_all(self, call: Call) -> object:
        """Return every enabled adapter by name, with its status: starting, running or degraded."""
        return self.hub.health.list_adapters()

    @route("POST", "/adapters/reload", Role.ADMIN, schemas.RELOADED)
    async def reload(self, call: Call) -> object:
        """Read the Lua files of kinds again. Each valid file is loaded; a file with a fault changes nothing."""
        return await self.hub.reloaders["adapters"].reload()

    @route("GET", "/adapters/<name>", Role.READ, schemas.ADAPTER_IN_FULL)
    async def get(self, call: Call, name: str) -> object:
        """Return one adapter: its status, last success, last error, and operations."""
        return replace(self.hub.health.get_adapter(name), operations=self.hub.dispatcher.operations_of(name))

    @route(
        "POST",
        "/adapters/<name>/operations/<operation>",
        Role.ADMIN,
        _RESULT,
        statuses=(200, 501, 503),
        body=table,
        body_optional=True,
    )
    async def run_operation(self, call: Call, name: str, operation: str) -> object:
        """Run one of the adapter's own operations with the body as its payload, as `ctx:invoke` does."""
        self.hub.health.get_adapter(name)
        payload = self.hub.registry.with_id(await call.body())
        return {"result": await self.hub.dispatcher.invoke(f"{name}:{operation}", payload)}


class DiscoveryApi(ApiResource):
    """Handler of `/discovery`."""

    @route("GET", "/discovery", Role.ADMIN, _DISCOVERY, query={"seconds": Field(_SECONDS, required=False)})
    async def search(self, call: Call) -> object:
        """Search the local network for devices by mDNS and SSDP, and respond after the requested seconds."""
        return {"found": await self.parts.search(call.query()["seconds"] or DEFAULT_SEARCH_SECS)}


class BackupApi(ApiResource):
    """Handler of `/diagnostics/backup`."""

    def __init__(self, parts: ApiParts) -> None:
        super().__init__(parts)
        self._one_at_a_time = asyncio.Semaphore()

    @route("GET", "/diagnostics/backup", Role.ADMIN, schemas.BINARY, statuses=(200, 400), media_type=TAR)
    async def download(self, call: Call) -> HTTPResponse:
        """Return the archive that `lares backup` writes and `lares restore` reads."""
        async with self._one_at_a_time:
            body = await asyncio.to_thread(self.parts.make_backup)
        name = f"lares-backup-{self.hub.clock.now():%Y-%m-%d}.tar"  # browsers unpack files that are called .tar.gz
        headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
        return Response(body, 200, {"content-type": TAR, **headers})


class EventsApi(ApiResource):
    """Handler of `/events`."""

    @route("GET", "/events", Role.READ, statuses=(101, 400, 426), query=_HEARTBEAT, is_websocket=True)
    async def read(self, call: Call) -> None:
        """Open the stream of event frames as a WebSocket; with `heartbeat_secs`, also frames `heartbeat`."""
        assert call.principal is not None
        interval = call.query()["heartbeat_secs"]
        protocol, answer = accept_handshake(call.request, call.limits)
        transport: Any = call.request.transport
        connection: StrictConnection = transport.get_protocol()
        socket = connection.upgrade(protocol, answer)
        with self.parts.stream.subscribe(socket, call.principal.key_id) as subscriber:
            while interval is not None and not socket.closed.done():
                subscriber.beat()
                await asyncio.wait({socket.closed}, timeout=interval)
            await socket.closed


class DocumentApi(ApiResource):
    """Handlers of `/openapi.json` and `/asyncapi.json`; each document is made at its first request."""

    @route("GET", "/openapi.json", Role.READ, {"type": "object", "required": ["openapi", "info", "paths"]})
    async def show(self, call: Call) -> object:
        """Return the OpenAPI 3.1 document of every route."""
        return self._openapi

    @route("GET", "/asyncapi.json", Role.READ, {"type": "object", "required": ["asyncapi", "info", "channels"]})
    async def show_events(self, call: Call) -> object:
        """Return the AsyncAPI 3.0 document of the event stream: every frame, its fields, and when it is sent."""
        return self._asyncapi

    @cached_property
    def _openapi(self) -> bytes:
        return orjson.dumps(describe(self.parts.routes))

    @cached_property
    def _asyncapi(self) -> bytes:
        return orjson.dumps(describe_events(FRAMES))
