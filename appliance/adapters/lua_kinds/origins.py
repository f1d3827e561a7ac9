"""Sends the requests of `ctx:http` to the section's allowed origins: scheme, host, and port."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin, urlsplit

from msgspec.structs import replace

from appliance.adapters.access_settings import url_path
from appliance.adapters.base import AdapterContext
from appliance.adapters.device_http.access import HttpAccess
from appliance.adapters.device_http.client import HttpClient, HttpResponse, origin_of
from appliance.adapters.lua_kinds.section import SectionSettings
from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.errors import BadAnswer, Invalid
from appliance.tables.checks import format_value, nearest, suggest
from appliance.tasks import time_limit

MAX_BODY_BYTES = 1 << 20
"""Size limit of a response."""

MAX_REDIRECTS = 3

_REDIRECTS = (301, 302, 303, 307, 308)


class Origins:
    """The `Transport` to a section's device. `main` is the client of `base_url`.

    Only `base_url` gets the section's credentials. Redirects to other origins are refused.
    """

    def __init__(self, settings: SectionSettings, access: HttpAccess, context: AdapterContext) -> None:
        session, base_url = context.open_session(), settings.values["base_url"]
        self.main = HttpClient(session, base_url or context.name, context.clock, access, MAX_BODY_BYTES)
        self._clients = {
            name: HttpClient(session, url, context.clock, max_bytes=MAX_BODY_BYTES)
            for name, url in settings.origins.items()
        }
        if base_url is not None:
            self._clients[""] = self.main

    async def exchange(self, request: WebRequest) -> HttpResponse:
        """Return the response. If a repeatable request is not answered, send it once more."""
        client = self._client(request.origin)
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._within(client, request)
            location = response.headers.get("location")
            if response.status not in _REDIRECTS or location is None or not request.is_reading:
                return response
            path = _follow(client.address, request.path, location)
            if path is None:
                raise BadAnswer(f"{client.address} redirects to {self._describe_target(client, response)}")
            request = replace(request, path=path, query={})
        raise BadAnswer(f"{client.address} redirects in a loop")

    def _describe_target(self, client: HttpClient, response: HttpResponse) -> str:
        if response.moved_to is None:
            return "another address, which is not allowed"
        return response.moved_to + ("; correct base_url" if client is self.main else ", which is not allowed")

    def _client(self, origin: str) -> HttpClient:
        if origin in self._clients:
            return self._clients[origin]
        if origin == "":
            raise Invalid("ctx:http: this section has no base_url")
        near = nearest(origin, [each for each in self._clients if each])
        raise Invalid(f"ctx:http: unknown origin {format_value(origin)}{suggest(near)}")

    async def _within(self, client: HttpClient, request: WebRequest) -> HttpResponse:
        answers = client.answers
        try:
            async with time_limit(request.timeout_secs):
                return await self._send(client, request)
        except TimeoutError:
            raise client.timeout_error(request.timeout_secs, answers) from None

    async def _send(self, client: HttpClient, request: WebRequest) -> HttpResponse:
        sent: dict[str, Any] = {"params": request.query} if request.query else {}
        if request.form is not None or request.body is not None:
            sent["data"] = request.form if request.form is not None else request.body
        found = await client.exchange(
            request.method,
            request.path,
            headers=request.headers,
            json=request.json,
            repeat=request.is_reading if request.repeat is None else request.repeat,
            repeat_busy=request.repeat is not False,
            **sent,
        )
        headers = {name.lower(): _readable(value) for name, value in found.headers.items()}
        return replace(found, headers=headers)


def _readable(value: str) -> str:
    """Replace the surrogates that represent invalid UTF-8."""
    return value.encode(errors="surrogateescape").decode(errors="replace")


def _follow(address: str, path: str, location: str) -> str | None:
    """Return the path of a redirect. Return None if the redirect leads to another origin."""
    here = urlsplit(address)
    prefix = here.path.rstrip("/")
    try:
        target = urlsplit(urljoin(address + path, location))
        found = url_path(target.path + (f"?{target.query}" if target.query else ""))
        is_own = origin_of(target) == origin_of(here) and found.startswith(f"{prefix}/") and location.isprintable()
    except (Invalid, ValueError):
        is_own = False
    return found.removeprefix(prefix) if is_own and "@" not in target.netloc else None
