"""The origins of a section over HTTP: scheme, host and port as the configuration or the file states them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec.structs import replace

from appliance.adapters.base import AdapterContext
from appliance.adapters.device_http import HttpClient
from appliance.adapters.http_access import HttpAccess
from appliance.adapters.lua_kinds.section import SectionSettings
from appliance.adapters.lua_kinds.web_request import MAX_BODY_BYTES, WebRequest, WebResponse
from appliance.adapters.url_paths import url_path
from appliance.errors import AdapterFailed, BadAnswer, Invalid, Unanswered, Unreachable
from appliance.tables.checks import nearest, shown
from appliance.tables.plain_files import MAX_SECRET_BYTES, read_plain

MAX_REDIRECTS = 3

_REDIRECTS = (301, 302, 303, 307, 308)


class Origins:
    """The `Transport` of a section that reaches its vendor. `main` is the client of `base_url`.

    Credentials of the section go to `base_url` alone. No redirect leads to another origin.
    """

    def __init__(self, settings: SectionSettings, context: AdapterContext) -> None:
        session, base_url = context.open_session(), settings.values["base_url"]
        self._settings = settings
        self._access, self.secrets = _access_of(settings, context)
        self.main = HttpClient(session, base_url or context.name, context.clock, self._access, MAX_BODY_BYTES)
        self._clients = {
            name: HttpClient(session, url, context.clock, max_bytes=MAX_BODY_BYTES)
            for name, url in settings.origins.items()
        }
        if base_url is not None:
            self._clients[""] = self.main

    async def exchange(self, request: WebRequest) -> WebResponse:
        """The response; a request that only reads is sent once more if nothing came back."""
        client = self._client(request.origin)
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._within(client, request)
            location = response.headers.get("location")
            if response.status not in _REDIRECTS or location is None or not request.is_reading:
                return response
            request = replace(request, path=_follow(client.address, request.path, location), query={})
        raise BadAnswer(f"{client.address} redirects in a circle")

    def settings_for_lua(self) -> Mapping[str, Any]:
        """What the file sees as `ctx.settings`: the section's values, with what its files of secrets hold."""
        found = self._settings.for_lua()
        for name in ("password", "token"):
            if (value := getattr(self._access, name)) is not None:
                found[name] = value
        return found

    def _client(self, origin: str) -> HttpClient:
        if origin in self._clients:
            return self._clients[origin]
        if origin == "":
            raise Invalid("ctx:http: this section has no base_url")
        near = nearest(origin, [each for each in self._clients if each])
        raise Invalid(f"ctx:http: there is no origin {shown(origin)}{f'; did you mean {near}' if near else ''}")

    async def _within(self, client: HttpClient, request: WebRequest) -> WebResponse:
        answers = client.answers
        try:
            async with asyncio.timeout(request.timeout_secs):
                return await self._send(client, request)
        except TimeoutError:
            sentence = f"{client.address} does not answer (nothing for {request.timeout_secs:g} s)"
            raise (Unreachable if client.answers == answers else Unanswered)(sentence) from None

    async def _send(self, client: HttpClient, request: WebRequest) -> WebResponse:
        sent: dict[str, Any] = {"params": request.query or None, "json": request.json}
        if request.form is not None or request.body is not None:
            sent["data"] = request.form if request.form is not None else request.body
        found = await client.exchange(
            request.method, request.path, headers=request.headers, repeat=request.is_reading, **sent
        )
        headers = {name.lower(): _readable(value) for name, value in found.headers.items()}
        return WebResponse(status=found.status, headers=headers, body=found.body)


def _readable(value: str) -> str:
    """The value of a header, in which bytes that are no UTF-8 are lone surrogates."""
    return value.encode(errors="surrogateescape").decode(errors="replace")


def _follow(address: str, path: str, location: str) -> str:
    """The path that a redirect names. Raises `BadAnswer` where it leads to another origin."""
    here = urlsplit(address)
    prefix = here.path.rstrip("/")
    try:
        target = urlsplit(urljoin(address + path, location))
        found = url_path(target.path + (f"?{target.query}" if target.query else ""))
        is_own = _origin(target) == _origin(here) and found.startswith(f"{prefix}/") and location.isprintable()
    except (Invalid, ValueError):
        is_own = False
    if not is_own or "@" in target.netloc:
        raise BadAnswer(f"{address} redirects to another address, which is not followed")
    return found.removeprefix(prefix)


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, usual if parts.port is None else parts.port


def _access_of(settings: SectionSettings, context: AdapterContext) -> tuple[HttpAccess, tuple[str, ...]]:
    """The credentials of a section, and every secret in them. Raises `AdapterFailed` for an unreadable file."""
    values = settings.values
    token = values["token"] or _read_secret(values["token_file"], "token_file", context)
    password = values["password"] or _read_secret(values["password_file"], "password_file", context)
    auth = values["auth"] or ("bearer" if token else "basic" if password else "none")
    is_named = auth in ("basic", "digest")
    access = HttpAccess(
        headers=values["headers"] or {},
        username=(values["username"] or "admin") if is_named else None,
        password=password if is_named else None,
        is_digest=auth == "digest",
        token=token if auth == "bearer" else None,
        ca_file=None if values["ca_file"] is None else context.root / values["ca_file"],
        fingerprint=values["fingerprint"],
    )
    read = tuple(each for each in (token, password) if each)
    return access, tuple({*settings.secrets, *read})


def _read_secret(name: str | None, key: str, context: AdapterContext) -> str | None:
    if name is None:
        return None
    try:
        lines = read_plain(context.root / name, MAX_SECRET_BYTES).decode(errors="replace").splitlines()
    except OSError as error:
        raise AdapterFailed(f"{key} {name} cannot be read: {error.strerror}") from None
    return lines[0].strip() if lines else None
