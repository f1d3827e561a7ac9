"""A backup of the running hub."""

from __future__ import annotations

import asyncio

from sanic import HTTPResponse

from appliance.api import schemas
from appliance.api.responses import Response
from appliance.api.roles import Role
from appliance.api.route import ApiParts, ApiResource, Call, route
from appliance.errors import Stopping

TAR = "application/x-tar"


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
