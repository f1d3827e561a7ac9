"""Credentials of a section: Basic, Bearer, and Digest authentication. The Digest challenge is that of a Shelly
device."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.lua_kinds.access import read_access
from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.adapters.simulated_device import SimulatedDevice
from appliance.errors import BadAnswer
from tests.adapters.lua_kinds.test_own_origins import origins_of, settings_of

REALM, NONCE = "shellypro3-aabbccddeeff", "1725185413"


class Locked(SimulatedDevice):
    """Records the requests. Like a Shelly of the second generation, the server requires Digest with SHA-256."""

    content_type = "text/plain"

    def _routes(self) -> Any:
        return [web.get("/digest", self._digest), web.get("/plain", self._plain), web.get("/socket", self._open)]

    async def _plain(self, request: web.Request) -> web.Response:
        return web.Response(text=request.headers.get("Authorization", "none"))

    async def _open(self, request: web.Request) -> web.StreamResponse:
        if (refused := await self._digest(request)).status != 200:
            return refused
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json("open")
        return socket

    async def _digest(self, request: web.Request) -> web.Response:
        header = dict(re.findall(r'(\w+)="?([^",]+)', request.headers.get("Authorization", "")))
        challenge = f'Digest qop="auth", realm="{REALM}", nonce="{NONCE}", algorithm=SHA-256'
        if header.get("response") != _response(header, request.path):
            return web.Response(status=401, headers={"WWW-Authenticate": challenge})
        return web.Response(text="open")


def _response(header: dict[str, str], path: str) -> str:
    def hashed(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    secret, what = hashed(f"admin:{REALM}:pw-1"), hashed(f"GET:{path}")
    return hashed(f"{secret}:{NONCE}:{header.get('nc')}:{header.get('cnonce')}:auth:{what}")


@pytest.mark.parametrize(
    ("values", "path", "expected"),
    [
        ({"password": "pw-1", "auth": "digest"}, "/digest", (200, "open")),
        ({"password": "pw-2", "auth": "digest"}, "/digest", (401, "")),
        ({"password": "pw-1"}, "/plain", (200, "Basic YWRtaW46cHctMQ==")),
        ({"password": "pw-1", "username": "me", "auth": "none"}, "/plain", (200, "none")),
        ({"token": "t-1", "password": "pw-1"}, "/plain", (200, "Bearer t-1")),
        ({"token_file": "token"}, "/plain", (200, "Bearer from-file")),
    ],
)
async def test_credentials_are_sent(
    tmp_path: Path, values: dict[str, Any], path: str, expected: tuple[int, str]
) -> None:
    (tmp_path / "token").write_text("from-file\n")
    if "token_file" in values:
        values = {"token_file": str(tmp_path / "token")}
    async with Locked() as vendor, DeviceSession() as session:
        answer = await origins_of(session, vendor.url, **values).exchange(WebRequest(method="GET", path=path))
        assert (answer.status, answer.body.decode()) == expected
        secrets = read_access(settings_of(vendor.url, **values), tmp_path).secrets
        assert all(each in secrets for each in ("from-file",) if "token_file" in values)


@pytest.mark.parametrize("auth", ["none", "basic", "digest", "bearer"])
def test_lua_gets_secrets_from_files_with_any_authentication(tmp_path: Path, auth: str) -> None:
    for name in ("token", "password"):
        (tmp_path / name).write_text(f"{name}-1\n")
    settings = settings_of("http://10.0.0.1", token_file="token", password_file="password", auth=auth)
    given = read_access(settings, tmp_path).for_lua
    assert (given["token"], given["password"]) == ("token-1", "password-1")


@pytest.mark.parametrize(("password", "expected"), [("pw-1", "open"), ("pw-2", "401 Unauthorized")])
async def test_a_listening_connection_uses_the_credentials(password: str, expected: str) -> None:
    async with Locked() as vendor, DeviceSession() as session:
        values = {"password": password, "auth": "digest"}
        http = origins_of(session, vendor.url, **values).main
        try:
            async with http.messages("/socket", silence_secs=20) as messages:
                answer = await anext(messages)
        except BadAnswer as refused:
            answer = str(refused)
        assert expected in answer
