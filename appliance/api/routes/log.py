"""The log: its latest entries, for those who cannot see the hub's standard error."""

from __future__ import annotations

from sanic import HTTPResponse

from appliance.api.auth import Role
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.api.validation import anything, choice, whole_number
from appliance.log_buffer import LOG_LEVELS, MAX_LOG_ENTRIES, LogBuffer, LogQuery
from appliance.tables.fields import Field
from appliance.tables.json_schema import COUNT, INSTANT, OBJECT, TEXT, array_of, record

LEVEL = Field(
    choice(*LOG_LEVELS, default="debug", description="Entries of this level and graver ones."), required=False
)
"""The lowest level to list."""

MAX_NUMBER = 999_999_999

LOG_ENTRY = record("LogEntry", at=INSTANT, level=TEXT, part=TEXT, message=TEXT, fields=OBJECT)
_LAST = {**COUNT, "description": "The number of the newest entry of all; `after` it come those that follow."}
_LOG = record("Log", entries=array_of(LOG_ENTRY), last=_LAST)


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
            "limit": Field(whole_number(1, MAX_LOG_ENTRIES, default=LogQuery().limit), required=False),
            "after": Field(whole_number(0, MAX_NUMBER, default=0), required=False),
        },
    )
    async def list_entries(self, call: Call) -> HTTPResponse:
        """The latest entries of the log that match, newest first, of the last 2,000."""
        stated = {name: value for name, value in call.query().items() if value is not None}
        found = self._buffer.list_entries(LogQuery(**stated))
        newest = self._buffer.list_entries(LogQuery(limit=1))
        return json_response(_LOG.of(entries=found, last=newest[0].number if newest else 0))
