"""The log: its latest entries, for those who cannot see the hub's standard error."""

from __future__ import annotations

from sanic import HTTPResponse

from appliance.api.auth import Role
from appliance.api.periods import LIMIT
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.api.validation import anything, choice
from appliance.log_buffer import LOG_LEVELS, LogBuffer, LogQuery
from appliance.tables.fields import Field
from appliance.tables.json_schema import INSTANT, OBJECT, TEXT, array_of, record

LEVEL = Field(
    choice(*LOG_LEVELS, default="debug", description="Entries of this level and graver ones."), required=False
)
"""The lowest level to list."""

LOG_ENTRY = record("LogEntry", at=INSTANT, level=TEXT, part=TEXT, message=TEXT, fields=OBJECT)
_LOG = record("Log", entries=array_of(LOG_ENTRY))


class LogApi:
    """Handler of `/diagnostics/log`."""

    def __init__(self, buffer: LogBuffer) -> None:
        self._buffer = buffer

    @route(
        "GET",
        "/diagnostics/log",
        Role.ADMIN,
        _LOG,
        query={
            "level": LEVEL,
            "part": Field(anything, required=False),
            "contains": Field(anything, required=False),
            "limit": LIMIT,
        },
    )
    async def list_entries(self, call: Call) -> HTTPResponse:
        """The latest entries of the log that match, newest first, of the last 2,000."""
        stated = {name: value for name, value in call.query().items() if value is not None}
        found = self._buffer.list_entries(LogQuery(**stated))
        return json_response(_LOG.of(entries=found))
