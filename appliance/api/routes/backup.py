"""The backup, for a browser: the archive that `lares backup` writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sanic import HTTPResponse

from appliance.api.auth import Role
from appliance.api.responses import Response
from appliance.api.route import Call, route
from appliance.tables.json_schema import TEXT

MakeBackup = Callable[[], bytes]
"""Gives the archive's bytes; called on a thread of its own. Raises `Invalid` where nothing can be backed up."""

GZIP = "application/gzip"


class BackupApi:
    """Handler of `/diagnostics/backup`."""

    def __init__(self, make: MakeBackup) -> None:
        self._make = make
        self._one_at_a_time = asyncio.Semaphore()

    @route(
        "GET", "/diagnostics/backup", Role.ADMIN, {**TEXT, "format": "binary"}, statuses=(200, 400), media_type=GZIP
    )
    async def download(self, call: Call) -> HTTPResponse:
        """The archive that `lares backup` writes and `lares restore` takes."""
        async with self._one_at_a_time:
            body = await asyncio.to_thread(self._make)
        headers = {"content-disposition": 'attachment; filename="lares-backup.tar.gz"', "cache-control": "no-store"}
        return Response(body, 200, {"content-type": GZIP, **headers})
