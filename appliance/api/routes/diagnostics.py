"""Diagnostics: state of the hub, log, clock, reloads, and backup."""

from __future__ import annotations

import asyncio

from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.metrics import CONTENT_TYPE, write_metrics
from appliance.api.responses import Response
from appliance.api.roles import Role
from appliance.api.route import ApiParts, ApiResource, Call, route
from appliance.api.validation import any_text, choice, whole_number
from appliance.errors import Stopping
from appliance.log_buffer import LOG_LEVELS, MAX_LOG_ENTRIES, LogQuery
from appliance.tables.fields import Field
from appliance.tables.json_schema import COUNT, TEXT, array_of, record

MAX_NUMBER = 999_999_999


TAR = "application/x-tar"


_LEVEL = choice(*LOG_LEVELS, default="debug", description="Entries of this level and above.")
_LOG_QUERY = {
    "level": Field(_LEVEL, required=False),
    "part": Field(any_text, required=False),
    "contains": Field(any_text, required=False),
    "limit": Field(whole_number(1, MAX_LOG_ENTRIES, default=LogQuery().limit), required=False),
    "after": Field(whole_number(0, MAX_NUMBER, default=0), required=False),
}
_LAST = {**COUNT, "description": "The number of the newest entry; use it as `after` to get later entries."}
_LOG = record("Log", entries=array_of(schemas.LOG_ENTRY), last=_LAST)

_RELOADS = record("Reloads", reloads=array_of(schemas.RELOADED), config=array_of(TEXT))


class DiagnosticsApi(ApiResource):
    """Handlers of the routes under `/diagnostics`."""

    @route("GET", "/diagnostics", Role.ADMIN, schemas.DIAGNOSTICS)
    async def show_diagnostics(self, call: Call) -> object:
        """Return the internal state of the hub: counts, and data about each part."""
        return self.parts.figures.tree()

    @route("POST", "/diagnostics/clock/trust", Role.ADMIN, schemas.DONE, statuses=(200, 503))
    async def trust_clock(self, call: Call) -> object:
        """Trust the unsynchronised clock from now on, even after restarts."""
        await self.hub.trust_clock()
        return {}

    @route("POST", "/diagnostics/reload", Role.ADMIN, _RELOADS, is_rate_limited=False)
    async def reload(self, call: Call) -> object:
        """Reload adapter sections, kinds, scenes, automations, and scripts, like SIGHUP and `lares reload`."""
        reloads = await self.hub.reload()
        return {"reloads": reloads, "config": (await self.hub.adapter_sections.find_config_changes()).at_next_start()}

    @route("GET", "/diagnostics/reload_watch", Role.ADMIN, schemas.WATCHES)
    async def show_reload_watch(self, call: Call) -> object:
        """Return the watched folders of Lua files. When a file in these folders is saved, it is loaded at once."""
        folders = self.hub.folders.items()
        return {"watches": [{"target": k, "enabled": each.watch, "directory": each.directory} for k, each in folders]}


class LogApi(ApiResource):
    """Handler of `/diagnostics/log`."""

    @route("GET", "/diagnostics/log", Role.ADMIN, _LOG, query=_LOG_QUERY)
    async def list_entries(self, call: Call) -> object:
        """Return the matching entries among the last 2,000 log entries, newest first."""
        stated = {name: value for name, value in call.query().items() if value is not None}
        found, newest = self.hub.log.list_entries(LogQuery(**stated)), self.hub.log.list_entries(LogQuery(limit=1))
        return {"entries": found, "last": newest[0].number if newest else 0}


class MetricsPage(ApiResource):
    """Handler of `/metrics`."""

    @route("GET", "/metrics", Role.READ, TEXT, media_type=CONTENT_TYPE)
    async def show(self, call: Call) -> object:
        """Return the hub's metrics in Prometheus's text format."""
        return Response(
            write_metrics(self.parts.figures.tree(), self.parts.requests), 200, {"content-type": CONTENT_TYPE}
        )


class BackupApi(ApiResource):
    """Handler of `/diagnostics/backup`."""

    def __init__(self, parts: ApiParts) -> None:
        super().__init__(parts)
        self._one_at_a_time = asyncio.Semaphore()

    @route("GET", "/diagnostics/backup", Role.ADMIN, schemas.BINARY, statuses=(200, 400), media_type=TAR)
    async def download(self, call: Call) -> HTTPResponse:
        """Return an archive like that of `lares backup`, for `lares restore`."""
        async with self._one_at_a_time:
            if self.hub.is_stopping:
                raise Stopping("the hub is stopping; request the backup again after the hub's next start")
            body = await asyncio.to_thread(self.parts.make_backup)
        name = f"lares-backup-{self.hub.clock.now():%Y-%m-%d}.tar"  # browsers unpack files that are called .tar.gz
        headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
        return Response(body, 200, {"content-type": TAR, **headers})
