"""Discovery: what announces itself in the local network."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sanic import HTTPResponse

from appliance.adapters.discovery.discovery import DEFAULT_SEARCH_SECS, MAX_SEARCH_SECS, Found
from appliance.api.auth import Role
from appliance.api.responses import json_response
from appliance.api.route import Call, route
from appliance.api.validation import whole_number
from appliance.tables.fields import Field
from appliance.tables.json_schema import TEXT, array_of, maybe, record

Search = Callable[[float], Awaitable[list[Found]]]
"""Searches for so many seconds."""

FOUND = record("Found", kind=TEXT, name=TEXT, address=TEXT, serial=maybe(TEXT), section=TEXT)
_DISCOVERY = record("Discovery", found=array_of(FOUND))


class DiscoveryApi:
    """Handler of `/discovery`."""

    def __init__(self, search: Search) -> None:
        self._search = search

    @route(
        "GET",
        "/discovery",
        Role.ADMIN,
        _DISCOVERY,
        query={"seconds": Field(whole_number(1, MAX_SEARCH_SECS, default=DEFAULT_SEARCH_SECS), required=False)},
    )
    async def search(self, call: Call) -> HTTPResponse:
        """Search the local network for devices by mDNS and SSDP, and answer once the seconds are over."""
        seconds = call.query()["seconds"] or DEFAULT_SEARCH_SECS
        return json_response(_DISCOVERY.of(found=await self._search(seconds)))
