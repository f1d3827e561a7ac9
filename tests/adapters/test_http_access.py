"""How requests are let in: credentials, headers, bodies, and certificates that are not the right ones."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from appliance.adapters.device_http import DeviceSession, HttpClient
from appliance.adapters.http_access import HttpAccess
from appliance.errors import AdapterFailed, Unreachable
from tests.fakes.clock import VirtualClock
from tests.fakes.vendor import RawVendor

OK = b"HTTP/1.1 200 OK\r\nX-Kind: lamp\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
ASKED = (
    b"HTTP/1.1 401 Unauthorized\r\n"
    b'WWW-Authenticate: Digest realm="box", nonce="abc", qop="auth", algorithm=SHA-256\r\n'
    b"Connection: close\r\nContent-Length: 0\r\n\r\n"
)


def _basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("access", "header"),
    [
        (HttpAccess(username="me", password="ü"), f"authorization: {_basic('me:ü')}"),
        (HttpAccess(token="t-1"), "authorization: Bearer t-1"),
        (HttpAccess(headers={"X-Api": "7"}), "x-api: 7"),
    ],
)
async def test_credentials_and_headers_come_with_every_request(
    session: DeviceSession, clock: VirtualClock, access: HttpAccess, header: str
) -> None:
    async with RawVendor(OK) as vendor:
        client = HttpClient(session, vendor.url, clock, access)
        for _ in range(2):
            response = await client.exchange("GET", "/a", headers={"X-More": "1"})
            assert (response.status, response.headers["x-kind"], response.body) == (200, "lamp", b"{}")
    name, _, value = header.partition(": ")
    for head in vendor.heads:
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
        assert {key.lower(): each for key, each in fields.items()}[name] == value and fields["X-More"] == "1"
    assert "ü" not in repr(access) and "t-1" not in repr(access)


async def test_digest_answers_the_challenge(session: DeviceSession, clock: VirtualClock) -> None:
    async with RawVendor(ASKED) as vendor:
        client = HttpClient(session, vendor.url, clock, HttpAccess(username="me", password="x", is_digest=True))
        assert (await client.exchange("GET", "/a")).status == 401
    first, second = vendor.heads
    assert b"Authorization" not in first
    assert b'Authorization: Digest username="me", realm="box", nonce="abc"' in second and b"SHA-256" in second


async def test_queries_and_forms_are_encoded(session: DeviceSession, clock: VirtualClock) -> None:
    async with RawVendor(OK) as vendor:
        client = HttpClient(session, vendor.url, clock)
        await client.request("GET", "/a", query={"cmnd": "Power On&x"})
        await client.request("POST", "/b", form={"a": "1"})
    assert vendor.heads[0].startswith(b"GET /a?cmnd=Power+On%26x HTTP/1.1")
    assert b"Content-Type: application/x-www-form-urlencoded" in vendor.heads[1]


async def test_what_is_no_certificate_is_said(session: DeviceSession, clock: VirtualClock, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    for path in (file, tmp_path / "absent.pem"):
        with pytest.raises(AdapterFailed, match="holds no certificates"):
            HttpClient(session, "https://127.0.0.1", clock, HttpAccess(ca_file=path))
    async with RawVendor(OK) as vendor:
        pinned = HttpAccess(fingerprint=":".join(["ab"] * 32))
        client = HttpClient(session, vendor.url.replace("http:", "https:"), clock, pinned)
        with pytest.raises(Unreachable):
            await client.exchange("GET", "/a")
