"""The latest log entries in memory."""

from __future__ import annotations

import orjson

from appliance.api import schemas
from appliance.api.responses import encode_limited
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.api.validation import any_text, choice, whole_number
from appliance.log_buffer import LOG_LEVELS, MAX_LOG_ENTRIES, LogQuery
from appliance.tables.fields import Field
from appliance.tables.json_schema import COUNT, TEXT, array_of, record

MAX_NUMBER = 999_999_999

_LEVEL = choice(*LOG_LEVELS, default="debug", description="Entries of this level and above.")
_LOG_QUERY = {
    "level": Field(_LEVEL, required=False),
    "part": Field(any_text, required=False),
    "contains": Field(any_text, required=False),
    "limit": Field(whole_number(1, MAX_LOG_ENTRIES, default=LogQuery().limit), required=False),
    "after": Field(whole_number(0, MAX_NUMBER, default=0), required=False),
}
_LAST = {**COUNT, "description": "The number of the newest entry; use it as `after` to get later entries."}
_ZONE = {**TEXT, "description": "The home's time zone."}
_LOG = record("Log", entries=array_of(schemas.LOG_ENTRY), last=_LAST, timezone=_ZONE)


class LogApi(ApiResource):
    """Handler of `/diagnostics/log`."""

    @route("GET", "/diagnostics/log", Role.ADMIN, _LOG, query=_LOG_QUERY, is_large=True)
    async def list_entries(self, call: Call) -> object:
        """Return the matching entries among the last 2,000 log entries, newest first."""
        stated = {name: value for name, value in call.query().items() if value is not None}
        found, newest = self.hub.log.list_entries(LogQuery(**stated)), self.hub.log.list_entries(LogQuery(limit=1))
        entries = await encode_limited(self.hub.clock, schemas.LOG_ENTRY, found)
        last, zone = newest[0].number if newest else 0, orjson.dumps(self.hub.timezone.key)
        return b'{"entries":%b,"last":%d,"timezone":%b}' % (entries, last, zone)
