"""In a section, `ctx:http` reaches only the origins of this section."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from appliance.adapters.access_settings import url_path
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.lua_kinds.access import read_access
from appliance.adapters.lua_kinds.origins import MAX_BODY_BYTES, Origins, _follow
from appliance.adapters.lua_kinds.section import SectionSettings
from appliance.adapters.lua_kinds.web_request import WebRequest, for_lua, read_request
from appliance.adapters.simulated_device import SimulatedDevice
from appliance.clock import Clock
from appliance.errors import BadAnswer, Invalid, Unanswered, Unreachable
from tests.adapters.lua_kinds.vendor import Vendor
from tests.fakes.context import context_of
from tests.fakes.vendor import RawVendor

PATHS = (
    "http://other.example/x",
    "https://10.0.0.1/x",
    "//other.example/x",
    "///other.example/x",
    "other.example",
    "@other.example/x",
    "user:secret@other.example",
    ":80@other.example/",
    ".other.example/",
    "",
    "?a=b",
    "#x",
    "/x#y",
    "/x\r\nHost: other.example",
    "/x\nX: 1",
    "/x y",
    "/\t",
    "/x\0",
    "\\\\other.example\\x",
    "/\\other.example",
    "[::1]/x",
    "file:///etc/passwd",
    "//[::ffff:127.0.0.1]/x",
    "//[fe80::1%25lo]/x",
    "//0x7f000001/x",
    "//017700000001/x",
    "//2130706433/x",
    "http:/x",
    "https:x",
    "javascript:x",
    "\\x",
    "\t//other.example/x",
    " /x",
    "/x\x0b",
    "/x\x7f",
    "*",
    "/..//other.example/x",
    "/x/../..//other.example",
    "/%2e%2E//other.example",
    "/.%2e/x",
    "/./x",
    "/x/..?a",
)

REQUESTS: tuple[dict[str, Any], ...] = (
    *({"path": path} for path in PATHS),
    {"path": "/x", "headers": {"Host": "other.example"}},
    {"path": "/x", "headers": {"host": "other.example"}},
    {"path": "/x", "headers": {"X": "a\r\nHost: other.example"}},
    {"path": "/x", "headers": {"X\r\nHost": "a"}},
    {"path": "/x", "headers": {"Transfer-Encoding": "chunked"}},
    {"path": "/x", "headers": {"Content-Length": "0"}},
    {"path": "/x", "headers": {"Connection": "close"}},
    {"path": "/x", "headers": {"Proxy-Authorization": "x"}},
    {"path": "/x", "method": "CONNECT"},
    {"path": "/x", "method": "GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST"},
    {"path": "/x", "url": "http://other.example"},
    {"path": "/x", "proxy": "http://other.example"},
)

LOCATIONS = (
    "http://other.example/",
    "https://lamp.local/",
    "http://lamp.local:81/",
    "//other.example/x",
    "http://lamp.local@other.example/",
    "http://user@lamp.local/",
    "http://127.0.0.1/",
    "http://[::1]/",
    "http://lamp.local.other.example/",
    "ftp://lamp.local/",
    "http://lamp.local:99999/",
    "http://lamp.local:0x50/",
    "http://lamp.local:80:80/",
    "http://lamp.local:8\u0660/",
    "http://lamp.local./",
    "http://lamp.local%2eother.example/",
    "http://lamp.local%00.other.example/",
    "http://xn--lamp-local.example/",
    "http://l\u0430mp.local/",
    "http://lamp\u3002local/",
    "http://[::ffff:127.0.0.1]/",
    "http://[fe80::1%25lo]/",
    "http://0x7f000001/",
    "http://017700000001/",
    "http://2130706433/",
    "http://127.1/",
    "http:\\\\other.example\\x",
    "/\\other.example/x",
    "\\\\other.example\\x",
    "/\t/other.example/x",
    "\t//other.example/x",
    "http:////other.example/x",
    "ws://lamp.local/",
    "file:///etc/passwd",
    "data:text/plain,x",
    "javascript:x",
    "http://:80/",
    "http://lamp.local:80@other.example/",
    "http://@lamp.local/",
    "http://lamp.local:0/",
    "http://lamp.local:65536/",
    "http://lamp\t.local/",
    "http://lamp\n.local/y",
    "http://lamp.local\r/y",
    "/y\n",
)


@pytest.mark.parametrize("raw", REQUESTS, ids=repr)
def test_a_request_that_could_reach_another_origin_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="ctx:http: "):
        read_request(raw)
    if raw["path"] != "/x":
        with pytest.raises(Invalid):  # the same function checks `listen.path`
            url_path(raw["path"])


@pytest.mark.parametrize("location", LOCATIONS)
def test_no_redirect_leads_to_another_origin(location: str) -> None:
    assert _follow("http://lamp.local", "/x", location) is None


@pytest.mark.parametrize(
    ("address", "location", "path"),
    [
        ("http://lamp.local", "/y?a=b", "/y?a=b"),
        ("http://lamp.local", "z", "/z"),
        ("http://lamp.local", "HTTP://LAMP.local:080/y", "/y"),
        ("http://lamp.local/hub", "/hub/y", "/y"),
    ],
)
def test_a_redirect_on_the_same_origin_is_followed(address: str, location: str, path: str) -> None:
    assert _follow(address, "/x", location) == path


def test_the_request_of_a_file_is_sent_as_written() -> None:
    assert read_request(
        {"method": "post", "path": "/a?b=c", "query": {"n": 1.5, "y": True, "z": 2.0}, "json": {}}
    ) == (WebRequest(method="POST", path="/a?b=c", query={"n": "1.5", "y": "true", "z": "2"}, json={}))
    assert url_path("/cm%20d") == "/cm%20d"
    with pytest.raises(Invalid, match="one of json, form, and body"):
        read_request({"path": "/", "json": 1, "body": "x"})
    with pytest.raises(Invalid, match=r"did you mean query\?"):
        read_request({"path": "/", "qery": {}})


def settings_of(base_url: str, **values: Any) -> SectionSettings:
    names = ("token", "token_file", "password", "password_file", "auth", "username", "headers", "ca_file")
    stated = {**dict.fromkeys((*names, "fingerprint")), "base_url": base_url, **values}
    return SectionSettings(values=stated, secrets=(), origins={"other": base_url})


class Spiteful(SimulatedDevice):
    content_type = "text/plain"
    target = ""

    def _routes(self) -> Any:
        return [web.route("*", "/{path:.*}", self._answer)]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        match request.path:
            case "/endless":
                return web.Response(body=b"x" * (MAX_BODY_BYTES + 1))
            case "/bomb":
                return web.Response(body=b"\x1f\x8b" + bytes(100), headers={"Content-Encoding": "gzip"})
            case "/circle":
                return web.Response(status=302, headers={"Location": "/circle"})
            case "/away":
                return web.Response(status=302, headers={"Location": self.target})
            case "/slow":
                await Clock().sleep(30)
        return web.Response(text=request.headers.get("Authorization", "none"))


async def test_a_hostile_vendor_causes_one_error_and_reaches_no_other_address() -> None:
    async with Spiteful() as vendor, Vendor() as other, DeviceSession() as session:
        vendor.target = f"{other.url}/secret"
        origins = origins_of(session, vendor.url, token="tok")
        for path, origin, reason in (
            ("/endless", "", "more than"),
            ("/circle", "", "in a loop"),
            ("/away", "", f"redirects to {other.url}; correct base_url"),
            ("/away", "other", f"redirects to {other.url}, which is not allowed"),
        ):
            with pytest.raises(BadAnswer, match=reason):
                await origins.exchange(WebRequest(method="GET", path=path, origin=origin))
        assert (await origins.exchange(WebRequest(method="GET", path="/bomb"))).body[:2] == b"\x1f\x8b"
        with pytest.raises((Unanswered, Unreachable), match="no data for"):
            await origins.exchange(WebRequest(method="GET", path="/slow", timeout_secs=0.05))
        with pytest.raises(BadAnswer, match="302"):
            async with origins.main.messages("/away", silence_secs=20):
                pass
        with pytest.raises(BadAnswer, match="302"):
            async with origins.main.events("/away", silence_secs=20):
                pass
        assert other.requests == []
        moved = for_lua(await origins.exchange(WebRequest(method="POST", path="/away")))
        assert (moved["status"], moved["moved_to"]) == (302, other.url)
        assert (await origins.exchange(WebRequest(method="GET", path="/"))).body == b"Bearer tok"
        assert (await origins.exchange(WebRequest(method="GET", path="/", origin="other"))).body == b"none"
        with pytest.raises(Invalid, match=r"unknown origin 'othr'; did you mean other\?"):
            await origins.exchange(WebRequest(method="GET", path="/", origin="othr"))


async def test_headers_and_bodies_of_any_bytes_cross_to_lua() -> None:
    sentence = b"HTTP/1.1 200 OK\r\nX: \xff\xfe\xc3\xa9\r\nContent-Length: 3\r\n\r\n\xff\0\xa9"
    async with RawVendor(sentence) as vendor, DeviceSession() as session:
        answer = for_lua(await origins_of(session, vendor.url).exchange(WebRequest(method="GET", path="/")))
    crossed = orjson.loads(orjson.dumps(answer))
    assert crossed["body"].encode("latin-1") == b"\xff\0\xa9" and crossed["headers"]["x"] == "\ufffd\ufffdé"


def origins_of(session: DeviceSession, url: str, **values: Any) -> Origins:
    settings = settings_of(url, **values)
    return Origins(settings, read_access(settings, Path()).http, context_of("it", session, Clock()))
