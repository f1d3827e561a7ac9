"""The HTTP client for vendors. Whatever the server does, the result is a body, `Unreachable`, or `BadAnswer`."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp._websocket.reader import WebSocketDataQueue, WebSocketReader

from appliance.adapters.device_http.access import HttpAccess
from appliance.adapters.device_http.client import MAX_RESPONSE_BYTES, RETRY_AFTER_SECS, HttpClient, _new_origin
from appliance.adapters.device_http.connector import UnreadMessages, _Protocol
from appliance.adapters.device_http.errors import HttpRefused
from appliance.adapters.device_http.server_events import EventDecoder, ServerEvent, read_events
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.device_http.web_socket import LARGE_MESSAGE, Messages
from appliance.adapters.device_json import parse_json
from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.clock import Clock
from appliance.errors import AdapterFailed, BadAnswer, Unreachable, Unreadable
from tests.adapters.mqtt.broker import CERTIFICATE, KEY
from tests.fakes.clock import VirtualClock
from tests.fakes.memory import peak_bytes
from tests.fakes.rows import each_row
from tests.fakes.vendor import RawVendor, Speech, endlessly, resetting_after, saying

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GOOD = OK + b'Content-Type: application/json\r\nContent-Length: 13\r\n\r\n{"lights":[]}'


def _sized(length: int) -> bytes:
    return OK + f"Content-Length: {length}\r\n\r\n".encode()


def _answer(status_line: bytes) -> bytes:
    return b"HTTP/1.1 " + status_line + b"\r\nContent-Length: 0\r\n\r\n"


async def _ask(
    session: DeviceSession, clock: VirtualClock, url: str, *, repeat: bool = True
) -> tuple[HttpClient, bytes | AdapterFailed]:
    http = HttpClient(session, url, clock)
    try:
        return http, await clock.run(http.request("GET", "/x", repeat=repeat))
    except AdapterFailed as error:
        return http, error


@pytest.mark.parametrize(
    ("speech", "body"),
    [
        (GOOD, b'{"lights":[]}'),
        (_answer(b"204 No Content"), b""),
        (_sized(2) + b"ok", b"ok"),
        (OK + b"\r\nuntil the end", b"until the end"),
        (CHUNKED + b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", b"abcde"),
        (CHUNKED + b"1\r\nx\r\n" * 60_000 + b"0\r\n\r\n", b"x" * 60_000),
        (b"HTTP/1.0 201 Created\r\n\r\nold", b"old"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD, b'{"lights":[]}'),
        (saying(*(bytes([byte]) for byte in _sized(1) + b"x")), b"x"),
        (OK + b"Set-Cookie: \xff\xfe=;;;\x7f\r\nContent-Length: 1\r\n\r\nx", b"x"),
    ],
)
async def test_the_body_of_a_success_is_returned(
    session: DeviceSession, clock: VirtualClock, speech: Speech | bytes, body: bytes
) -> None:
    async with RawVendor(speech) as vendor:
        http, outcome = await _ask(session, clock, vendor.url)
        assert outcome == body
        assert (http.answers, len(vendor.heads)) == (1, 1)


@pytest.mark.parametrize(
    ("status_line", "phrase", "status"),
    [
        (b"403 Forbidden", "403 Forbidden", 403),
        (b"304 Not Modified", "304 Not Modified", 304),
        (b"101 Switching Protocols", "101 Switching Protocols", 101),
        (b"500", "500 Internal Server Error", 500),
        (b"500 K\xe4se", "500 Internal Server Error", 500),
        (b"500 " + b"x" * 5000, "500 Internal Server Error", 500),
        (b"999 Odder", "999", 999),
        (b"000 Oddest", "0", 0),
    ],
)
async def test_any_status_but_success_is_a_refusal_with_its_usual_name(
    session: DeviceSession, clock: VirtualClock, status_line: bytes, phrase: str, status: int
) -> None:
    async with RawVendor(_answer(status_line)) as vendor:
        http, outcome = await _ask(session, clock, vendor.url)
        assert isinstance(outcome, HttpRefused)
        assert (str(outcome), outcome.status) == (f"{vendor.url}/x answered {phrase}", status)
        assert (http.answers, len(vendor.heads)) == (1, 1)


@pytest.mark.parametrize("status", [301, 308])
@pytest.mark.parametrize("place", ["{}/elsewhere", "http://[::", "", "file:///etc/passwd"])
async def test_a_redirect_is_never_followed(
    session: DeviceSession, clock: VirtualClock, status: int, place: str
) -> None:
    async with RawVendor(GOOD) as other:
        where = place.format(other.url)
        speech = f"HTTP/1.1 {status} Moved\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n"
        async with RawVendor(speech.encode()) as vendor:
            _, outcome = await _ask(session, clock, vendor.url)
        assert isinstance(outcome, HttpRefused)
        assert (outcome.status, other.heads) == (status, [])


@pytest.mark.parametrize(
    ("location", "origin"),
    [
        ("https://192.168.1.5/", "https://192.168.1.5"),
        ("http://192.168.1.5:8080/x", "http://192.168.1.5:8080"),
        ("http://192.168.1.5/login", None),
        ("HTTP://192.168.1.5:80", None),
        ("/login", None),
        ("http://192.168.1.5:99999/", None),
    ],
)
def test_only_another_origin_is_a_new_address(location: str, origin: str | None) -> None:
    assert _new_origin("http://192.168.1.5", 302, {"Location": location}) == origin


async def test_requests_on_one_connection_are_exact(session: DeviceSession, clock: VirtualClock) -> None:
    received = b""

    async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        while data := await reader.read(4096):
            received += data
            writer.write(GOOD)
        writer.close()

    async with await asyncio.start_server(answer_all, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        http = HttpClient(session, f"http://{address}", clock, HttpAccess(headers={"X-Own": "ü"}))
        await http.request("GET", "/a b?c=d")
        await http.request("PUT", "/e", json={"f": 1})
        await http.request("POST", "/g")
        await http.request("GET", "/h", repeat=False)
    same = f"Host: {address}\r\nUser-Agent: Lares\r\nAccept-Encoding: identity\r\nX-Own: ü\r\nAccept: */*\r\n"
    assert received.decode() == (
        f"GET /a%20b?c=d HTTP/1.1\r\n{same}\r\n"
        f'PUT /e HTTP/1.1\r\n{same}Content-Length: 7\r\nContent-Type: application/json\r\n\r\n{{"f":1}}'
        f"POST /g HTTP/1.1\r\n{same}Content-Length: 0\r\nContent-Type: application/octet-stream\r\n\r\n"
        f"GET /h HTTP/1.1\r\n{same}Connection: close\r\n\r\n"
    )


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\0"])
async def test_a_header_cannot_contain_control_characters(
    session: DeviceSession, clock: VirtualClock, value: str
) -> None:
    async with RawVendor(GOOD) as vendor:
        http = HttpClient(session, vendor.url, clock, HttpAccess(headers={"X-Own": value}))
        with pytest.raises(ValueError, match="control character"):
            await http.request("GET", "/x")
        assert vendor.heads == []


NOT_HTTP: dict[str, Speech | bytes] = {
    "junk": b"\x00\x01\x02 garbage\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "HTTP/0.9": b"<html>hello</html>",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no status": b"HTTP/1.1 fine OK\r\n\r\n",
    "negative length": OK + b"Content-Length: -4\r\n\r\n",
    "two lengths": OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "absurd length": OK + b"Content-Length: 99999999999999999999999999\r\n\r\n",
    "bad chunk": CHUNKED + b"zz\r\nab\r\n",
    "more than one answer": GOOD + b"and yet more",
    "endless line": endlessly(OK + b"X: ", b"y" * 65536),
    "endless headers": endlessly(OK, b"X-Header: y\r\n" * 1000),
    "endless trailers": endlessly(CHUNKED + b"0\r\n", b"X-Header: y\r\n" * 1000),
}

BROKEN_OFF: dict[str, Speech | bytes] = {
    "half a body": _sized(20) + b"{}",
    "no body": _sized(20),
    "half a chunk": CHUNKED + b"20\r\nab",
    "no last chunk": CHUNKED + b"2\r\nab\r\n",
    "reset in the body": resetting_after(_sized(20), b"{}"),
    "reset between chunks": resetting_after(CHUNKED, b"2\r\nab\r\n"),
}


TOO_LONG: dict[str, Speech | bytes] = {
    "endless body": endlessly(OK + b"\r\n", b"y" * 65536),
    "endless chunks": endlessly(CHUNKED, b"1000\r\n" + b"y" * 4096 + b"\r\n"),
    "a body of a TiB": endlessly(_sized(1 << 40), b"y" * 65536),
    "one byte too many": _sized(MAX_RESPONSE_BYTES + 1) + b"y" * (MAX_RESPONSE_BYTES + 1),
}
ENDLESS_FRAMING: dict[str, Speech | bytes] = {
    "endless chunk extension": endlessly(CHUNKED + b"1;", b"e" * 65536),
    "endless zeros of a chunk size": endlessly(CHUNKED + b"0", b"0" * 65536),
    "a long extension of each chunk": endlessly(CHUNKED, b"1;" + b"e" * 4000 + b"\r\nx\r\n"),
    "a long extension of each compressed chunk": endlessly(
        CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"), b"1;" + b"e" * 4000 + b"\r\nx\r\n"
    ),
}
MALFORMED_BODY: dict[str, Speech | bytes] = {
    "a malformed chunk after a good one": saying(CHUNKED + b"2\r\nab\r\n", b"zz\r\nab\r\n"),
}
BAD_ANSWERS = {
    "answered with something that is not HTTP": NOT_HTTP,
    "closed the connection during its answer": BROKEN_OFF,
    "answered with more than 64 KiB": TOO_LONG,
    "answered with too many bytes between the parts of the body": ENDLESS_FRAMING,
    "answered with a malformed body": MALFORMED_BODY,
}


@pytest.mark.parametrize(
    ("speech", "reason"),
    [
        pytest.param(speech, reason, id=name)
        for reason, speeches in BAD_ANSWERS.items()
        for name, speech in speeches.items()
    ],
)
async def test_an_incomplete_or_endless_answer_is_a_bad_answer_and_not_repeated(
    session: DeviceSession, clock: VirtualClock, speech: Speech | bytes, reason: str
) -> None:
    async with RawVendor(speech) as vendor:
        http, outcome = await _ask(session, clock, vendor.url)
        assert isinstance(outcome, BadAnswer)
        assert str(outcome) == f"{vendor.url} {reason}"
        assert (http.answers, len(vendor.heads)) == (1, 1)


SILENCE: dict[str, tuple[Speech | bytes, str]] = {
    "closed at once": (b"", "it closed the connection"),
    "half a head": (OK + b"Content-Le", "it closed the connection"),
    "half a status": (b"HTTP/1.", "it closed the connection"),
    "reset at once": (resetting_after(), "connection reset by peer"),
}


@pytest.mark.parametrize(("speech", "reason"), SILENCE.values(), ids=SILENCE.keys())
async def test_an_unanswered_request_is_repeated_once(
    session: DeviceSession, clock: VirtualClock, speech: Speech | bytes, reason: str
) -> None:
    async with RawVendor(speech) as vendor:
        http, outcome = await _ask(session, clock, vendor.url)
        assert isinstance(outcome, Unreachable)
        assert str(outcome) == f"{vendor.url} does not answer ({reason})"
        assert (http.answers, len(vendor.heads)) == (0, 2)
        assert clock.monotonic() == RETRY_AFTER_SECS == 0.25
        _, outcome = await _ask(session, clock, vendor.url, repeat=False)
        assert isinstance(outcome, Unreachable) and len(vendor.heads) == 3, "one that must not be repeated is not"


async def test_the_answer_to_a_repeated_request_is_returned(session: DeviceSession, clock: VirtualClock) -> None:
    async with RawVendor(b"") as vendor:

        async def second_time_lucky(writer: asyncio.StreamWriter) -> None:
            if len(vendor.heads) == 2:
                await saying(GOOD)(writer)

        vendor.speech = second_time_lucky
        http, outcome = await _ask(session, clock, vendor.url)
        assert (outcome, http.answers) == (b'{"lights":[]}', 1)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://" + "a" * 70 + ".invalid", "invalid host name"),
        ("http://a..invalid", "invalid host name"),
        ("http://256.1.1.1", "256.1.1.1 - is not a canonical IPv4 address"),
    ],
)
async def test_a_bad_address_is_unreachable(
    session: DeviceSession, clock: VirtualClock, url: str, reason: str
) -> None:
    http, outcome = await _ask(session, clock, url)
    assert isinstance(outcome, Unreachable)
    assert (str(outcome), http.answers) == (f"{url} does not answer ({reason})", 0)


async def test_a_device_that_does_not_speak_tls_is_unreachable_over_https(
    session: DeviceSession, clock: VirtualClock, light: LightSimulator
) -> None:
    url = light.url.replace("http:", "https:")
    _, outcome = await _ask(session, clock, url)
    assert isinstance(outcome, Unreachable)
    assert str(outcome).startswith(f"{url} does not answer (") and str(outcome).isprintable()


@pytest.mark.parametrize(
    "byte",
    [b"\n", *(pytest.param(each, marks=pytest.mark.slow) for each in (b"\x00", b"\r", b"\xff", b" ", b":", b"9"))],
)
async def test_a_wrong_byte_is_an_answer_or_an_error(
    session: DeviceSession, clock: VirtualClock, byte: bytes
) -> None:
    for place in range(len(GOOD)):
        async with RawVendor(GOOD[:place] + byte + GOOD[place + 1 :]) as vendor:
            _, outcome = await _ask(session, clock, vendor.url)
        assert isinstance(outcome, bytes | BadAnswer | Unreachable)
        if isinstance(outcome, AdapterFailed):
            assert str(outcome).isprintable() and len(str(outcome)) < 120


PLAIN = b'{"lights":[]}'


def _coded(coding: str, body: bytes) -> bytes:
    return OK + f"Content-Encoding: {coding}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    ("speech", "body"),
    [
        (_coded("gzip", gzip.compress(PLAIN, mtime=0)), PLAIN),
        (_coded("GZip", gzip.compress(PLAIN, mtime=0)), PLAIN),
        (_coded("x-gzip", gzip.compress(b"", mtime=0)), b""),
        (_coded("deflate", zlib.compress(PLAIN)), PLAIN),
        (_coded("gzip", PLAIN), PLAIN),
        (_coded("gzip", b""), b""),
        (_coded("br", b"\x1f\x8bx"), b"\x1f\x8bx"),
        (_coded("nonsense", PLAIN), PLAIN),
        (OK + b"Content-Length: 13\r\nContent-Length: 13\r\n\r\n" + PLAIN, PLAIN),
        (OK + b"content-length: 13\r\nA: b\r\nContent-Length:  13 \r\n\r\n" + PLAIN, PLAIN),
        (OK + b"Content-Length: 13, 13\r\n\r\n" + PLAIN, PLAIN),
        (OK + b"A: b\r\r\nContent-Length: 13\r\r\n\r\n" + PLAIN, PLAIN),
        (saying(*(bytes([each]) for each in OK + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx")), b"x"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", b"x"),
    ],
)
async def test_an_odd_form_of_a_good_answer_is_read(
    session: DeviceSession, clock: VirtualClock, speech: Speech | bytes, body: bytes
) -> None:
    async with RawVendor(speech) as vendor:
        assert (await _ask(session, clock, vendor.url))[1] == body


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (gzip.compress(bytes(MAX_RESPONSE_BYTES + 1), mtime=0), "answered with more than 64 KiB"),
        (gzip.compress(PLAIN, mtime=0)[:-9], "answered with a gzip body that is incomplete"),
    ],
)
async def test_a_compressed_body_is_bounded(
    session: DeviceSession, clock: VirtualClock, body: bytes, reason: str
) -> None:
    async with RawVendor(_coded("gzip", body)) as vendor:
        _, outcome = await _ask(session, clock, vendor.url)
    assert isinstance(outcome, Unreadable) and str(outcome) == f"{vendor.url} {reason}"


@pytest.mark.parametrize("body", [b'\xef\xbb\xbf{"a": 1}', b'{"a": 1}\0', b'{"a": 1}\0\0\r\n', '\ufeff{"a": 1}\0'])
def test_a_byte_order_mark_and_zero_bytes_around_json_are_ignored(body: bytes | str) -> None:
    assert parse_json(body, "http://lamp") == {"a": 1}


@pytest.mark.parametrize(
    ("inside", "name"),
    [
        (b"K\xc3", "K\ufffd"),
        (b"K\xfcche", "K\ufffdche"),
        (b"\\ud83d", "\ufffd"),
        (b"\\ude00!", "\ufffd!"),
        (b"\\ud83d\\ude00\xff", "\U0001f600\ufffd"),
        (b"a\x01b\nc", "a b c"),
    ],
)
def test_a_forbidden_character_in_json_affects_only_its_text(inside: bytes, name: str) -> None:
    assert parse_json(b'{"on": true, "name": "' + inside + b'"}', "http://lamp") == {"on": True, "name": name}


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ('{"t": NaN, "h": 40, "name": "NaN \\" nan"}', {"t": None, "h": 40, "name": 'NaN " nan'}),
        ("[nan,-inf, Infinity,-Infinity ,1]", [None, None, None, None, 1]),
        ('{"a": [NaN], "b": "x\x01"}', {"a": [None], "b": "x "}),
        (r'{"a": "\\\253_\"\u00e4\x\ud8", "b": 1}', {"a": '\\\\253_"ä\\x\\ud8', "b": 1}),
    ],
)
def test_nan_affects_only_its_value(body: str, value: Any) -> None:
    assert parse_json(body, "http://lamp") == value


@pytest.mark.parametrize("body", ["nano", '{"a": NaN', '{"NaN: 1}', "NaN-1", '"' + '\\"' * 100_000])
def test_other_words_are_not_json(body: str) -> None:
    with pytest.raises(Unreadable):
        parse_json(body, "http://lamp")


@pytest.mark.parametrize(
    ("status", "header", "pause"), [(429, b"", 0.5), (503, b"", 0.5), (503, b"Retry-After: 1\r\n", 1.0)]
)
@pytest.mark.parametrize("repeat", [True, False])
async def test_a_request_to_a_busy_device_is_repeated_once_if_allowed(
    session: DeviceSession, clock: VirtualClock, status: int, header: bytes, pause: float, repeat: bool
) -> None:
    busy = f"HTTP/1.1 {status} Busy\r\nContent-Length: 0\r\n".encode() + header + b"\r\n"
    async with RawVendor(b"") as vendor:

        async def free_at_the_second(writer: asyncio.StreamWriter) -> None:
            await saying(GOOD if len(vendor.heads) == 2 else busy)(writer)

        vendor.speech = free_at_the_second
        _, outcome = await _ask(session, clock, vendor.url, repeat=repeat)
        assert isinstance(outcome, HttpRefused) if not repeat else outcome == PLAIN
        assert clock.monotonic() == (pause if repeat else 0)


async def test_a_device_that_is_busy_twice_refuses(session: DeviceSession, clock: VirtualClock) -> None:
    async with RawVendor(_answer(b"503 Busy")) as vendor:
        _, outcome = await _ask(session, clock, vendor.url)
        assert isinstance(outcome, HttpRefused) and len(vendor.heads) == 2


async def test_the_host_header_of_a_named_device_is_its_address(session: DeviceSession, clock: VirtualClock) -> None:
    async with RawVendor(GOOD) as vendor:
        named = vendor.url.replace("127.0.0.1", "localhost")
        for sends_address in (False, True):
            http = HttpClient(session, named, clock, sends_address=sends_address)
            assert await http.request("GET", "/x") == PLAIN
        hosts = [head.split(b"Host: ")[1].split(b"\r\n")[0].decode() for head in vendor.heads]
    assert hosts == [named.removeprefix("http://"), vendor.url.removeprefix("http://")]


async def test_a_name_without_an_address_is_unreachable(session: DeviceSession, clock: VirtualClock) -> None:
    http = HttpClient(session, "http://nobody.invalid", clock, sends_address=True)
    with pytest.raises(Unreachable, match=r"http://nobody\.invalid does not answer \(.+\)"):
        await clock.run(http.request("GET", "/x"))


async def test_cookies_are_not_kept_and_proxies_not_used(
    session: DeviceSession, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with RawVendor(OK + b"Set-Cookie: a=b\r\nContent-Length: 0\r\n\r\n") as vendor:
        named = vendor.url.replace("127.0.0.1", "localhost")  # cookies are never kept for a numeric address
        for _ in range(2):
            assert (await _ask(session, clock, named))[1] == b""
    assert b"cookie" not in vendor.heads[1].lower()


class PeerCounter:
    """A vendor that records the connection of each request."""

    def __init__(self) -> None:
        self.peers: list[object] = []
        self.url = ""

    async def __aenter__(self) -> PeerCounter:
        application = web.Application()
        application.router.add_get("/x", self._note)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _note(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        self.peers.append(request.transport.get_extra_info("peername"))
        return web.Response()


async def test_only_a_repeatable_request_uses_a_kept_connection(session: DeviceSession, clock: VirtualClock) -> None:
    async with PeerCounter() as vendor:
        http = HttpClient(session, vendor.url, clock)
        for repeat in (True, True, False, False, True):
            await http.request("GET", "/x", repeat=repeat)
            await asyncio.sleep(0.001)
        assert [vendor.peers.index(each) for each in vendor.peers] == [0, 0, 2, 3, 0]


class OnceAConnection(PeerCounter):
    """Closes a connection at its second request."""

    async def _note(self, request: web.Request) -> web.Response:
        await super()._note(request)
        if self.peers.count(self.peers[-1]) > 1 and request.transport is not None:
            request.transport.abort()
        return web.Response()


async def test_a_request_is_repeated_after_a_closed_connection(session: DeviceSession, clock: VirtualClock) -> None:
    async with OnceAConnection() as vendor:
        http = HttpClient(session, vendor.url, clock)
        for _ in range(3):
            await clock.run(http.request("GET", "/x"))
        assert [vendor.peers.index(each) for each in vendor.peers] == [0, 0, 2, 3]


async def _echo(request: web.Request) -> web.WebSocketResponse:
    """Echo messages. `close` closes the connection, `huge` returns 100 kB, and `bytes` returns invalid text."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.data == '"close"':
            await socket.close()
        elif message.data == '"huge"':
            await socket.send_str("1" * 100_000)
        else:
            await socket.send_str(message.data)
    return socket


@asynccontextmanager
async def serving(socket: Callable[[web.Request], Awaitable[web.WebSocketResponse]]) -> AsyncIterator[str]:
    """Run a server with this WebSocket at `/ws`, and yield its address."""
    app = web.Application()
    app.add_routes([web.get("/ws", socket)])
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_a_websocket_sends_texts_and_json_and_is_bounded(session: DeviceSession, clock: VirtualClock) -> None:
    async with serving(_echo) as url:
        http = HttpClient(session, url, clock)
        async with http.messages("/ws", silence_secs=20, max_bytes=1000) as messages:
            await messages.send({"a": [1, None]})
            assert await anext(messages) == {"a": [1, None]}
            await messages.send("plain")
            with pytest.raises(BadAnswer, match="not JSON"):
                await anext(messages)
            await messages.send('"close"')
            assert [each async for each in messages] == []
            with pytest.raises(Unreachable, match="has closed the connection"):
                await messages.send("late")
        async with http.messages("/ws", silence_secs=20, max_bytes=1000, parse=lambda body, _: body) as messages:
            await messages.send("plain")
            assert await anext(messages) == "plain"
            await messages.send('"huge"')
            with pytest.raises(BadAnswer, match="too large"):
                await anext(messages)


class Ready:
    """A WebSocket or body that never waits for its next part, and counts how often other tasks run."""

    def __init__(self, parts: list[Any]) -> None:
        self._parts = iter(parts)
        self.turns = 0
        self.content = self
        self.pong = self.readany = self._next

    async def _next(self, _: object = None) -> Any:
        return next(self._parts, b"")

    async def __anext__(self) -> Any:
        return next(self._parts)

    async def count(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


TEXT, PONG = (aiohttp.WSMessage(kind, b"7", None) for kind in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.PONG))


class _Pipe(asyncio.Transport):
    """A transport to nowhere."""

    max_size = 0

    def abort(self) -> None:
        """Do nothing."""


async def test_unread_messages_of_all_connections_share_a_budget() -> None:
    loop, unread = asyncio.get_running_loop(), UnreadMessages(10_000)
    one, other = (_Protocol(loop, unread) for _ in range(2))
    queues = [WebSocketDataQueue(each, 1 << 16, loop=loop) for each in (one, other)]
    for protocol, queue in zip((one, other), queues, strict=True):
        protocol._upgraded = True
        protocol.connection_made(_Pipe())
        protocol.set_parser(WebSocketReader(queue, 1 << 20, False, True), queue)
    head = b"\x82\x7e" + (8000).to_bytes(2)
    one.data_received(head + bytes(5000))
    assert unread.held == 5004
    one.data_received(bytes(3000))
    assert 8000 <= unread.held < 8200, "the message waits for its reader"
    assert len((await queues[0].read()).data) == 8000
    one.note_read(8000)
    one.data_received(head + bytes(500))
    other.data_received(head + bytes(1100))
    assert unread.held == 9608
    one.data_received(bytes(500))
    assert unread.held == 9004, "the connection with the most unread bytes is closed, although another one exceeds"
    with pytest.raises(aiohttp.WebSocketError):
        await queues[1].read()
    one.note_read(0)
    assert unread.held == 1004
    other.note_read(8000)
    one.connection_lost(None)
    assert unread.held == 0 and not unread.connections


async def test_a_stream_of_events_that_holds_the_most_bytes_is_closed() -> None:
    loop, unread = asyncio.get_running_loop(), UnreadMessages(10_000)
    large, small = (_Protocol(loop, unread) for _ in range(2))
    for each in (large, small):
        each.connection_made(_Pipe())
        each.begin_messages()
    answer: Any = SimpleNamespace(content=aiohttp.StreamReader(large, 1 << 16, loop=loop))
    large._payload = answer.content
    answer.content.feed_data(b"data: " + b"x" * 8000)
    small.note_event(0, 3000)
    with pytest.raises(BadAnswer, match="held the most unread data"):
        await anext(read_events(answer, Clock(), 1 << 20, large.note_event))
    assert unread.held == 3000


@pytest.mark.parametrize("data", [b"a", b"x" * LARGE_MESSAGE, b"x" * (LARGE_MESSAGE + 1)])
async def test_only_small_texts_are_decoded(data: bytes) -> None:
    """A decoded text may need four times as much memory."""
    ready: Any = Ready([aiohttp.WSMessage(aiohttp.WSMsgType.TEXT, data, None)])
    read = await anext(Messages("http://x", ready, Clock(), lambda body, _: body, lambda: None))
    assert read == (data if len(data) > LARGE_MESSAGE else data.decode())


async def test_a_small_text_that_is_not_utf_8_is_malformed() -> None:
    ready: Any = Ready([aiohttp.WSMessage(aiohttp.WSMsgType.TEXT, b"\xff", None)])
    with pytest.raises(BadAnswer, match="malformed"):
        await anext(Messages("http://x", ready, Clock(), lambda body, _: body, lambda: None))


async def test_waiting_messages_do_not_block_the_loop() -> None:
    messages, pongs, lines = Ready([TEXT] * 1001), Ready([PONG] * 1000 + [TEXT]), Ready([b"\n" * 65536])
    for flood in (messages, pongs, lines):
        counting = asyncio.ensure_future(flood.count())
        if flood is lines:
            assert [each async for each in read_events(flood, Clock(), 1000)] == []  # type: ignore[arg-type]
        else:
            socket = Messages("http://x", flood, Clock(), parse_json, lambda: None)  # type: ignore[arg-type]
            while await anext(socket) and flood is messages and next(flood._parts, None) is not None:
                pass
        counting.cancel()
        assert flood.turns >= 10, flood


async def test_responses_without_a_request_end_the_connection(session: DeviceSession, clock: VirtualClock) -> None:
    ended = asyncio.Event()

    async def flood(writer: asyncio.StreamWriter) -> None:
        writer.write(GOOD)
        await asyncio.sleep(0.05)  # the connection must be idle
        try:
            while True:
                writer.write(_sized(0) * 100)
                await writer.drain()
                await asyncio.sleep(0)
        finally:
            ended.set()

    async with asyncio.timeout(10), RawVendor(flood) as vendor:
        assert await HttpClient(session, vendor.url, clock).request("GET", "/x") == b'{"lights":[]}'
        await ended.wait()


async def test_a_websocket_can_be_closed_while_messages_arrive(session: DeviceSession, clock: VirtualClock) -> None:
    async def flood(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        while True:
            await socket.send_str("7")
            await asyncio.sleep(0)

    async with asyncio.timeout(10), serving(flood) as url:
        async with HttpClient(session, url, clock).messages("/ws", silence_secs=20) as messages:
            assert await anext(messages) == 7


async def test_a_websocket_without_a_handshake_answer_fails(session: DeviceSession, clock: VirtualClock) -> None:
    async with RawVendor(endlessly(b"", b"", pause=0.01)) as vendor:
        with pytest.raises(Unreachable, match="timed out"):
            async with HttpClient(session, vendor.url, clock).messages("/ws", silence_secs=0.05):
                pass


STREAMS: tuple[tuple[bytes, list[ServerEvent]], ...] = (
    (b"data: a\n\n", [ServerEvent(data="a")]),
    (b"data:a\r\ndata: b\r\n\r\ndata:  c\r\rdata\n\n", [ServerEvent(data=each) for each in ("a\nb", " c", "")]),
    (b"\xef\xbb\xbf: comment\nevent: update\nid: 7\ndata: {}\n\n", [ServerEvent(event="update", data="{}", id="7")]),
    (
        b"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
        [ServerEvent(data=a, id=b) for a, b in ("a1", "b1", ("c", ""))],
    ),
    (b"event: nothing\n\ndata: a\nretry: 5\nodd: x\nid: a\0b\n\n", [ServerEvent(data="a")]),
    (b"data: \xff\n\ndata: cut off", [ServerEvent(data="\ufffd")]),
    (b"\n\n\r\r\n", []),
)


@each_row(("stream", "events"), STREAMS)
def test_an_event_stream_is_parsed_the_same_in_any_pieces(stream: bytes, events: list[ServerEvent]) -> None:
    for size in (1, 2, 3, 5, 1000):
        decoder = EventDecoder(100)
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert [event for piece in pieces for event in decoder.feed(piece)] == events, size


def test_decoding_an_event_copies_its_data_only_once() -> None:
    piece, decoder = b"data: " + b"x" * (1 << 22) + b"\n\n", EventDecoder(1 << 23)
    received = [piece[at : at + 2048] for at in range(0, len(piece), 2048)]
    assert peak_bytes(lambda: [event for each in received for event in decoder.feed(each)]) < 2.4 * len(piece)


@each_row("endless", [b"data: x\n", b"x", b":", b"data\r"])
def test_an_event_that_is_too_large_ends_the_stream(endless: bytes) -> None:
    decoder = EventDecoder(1000)
    with pytest.raises(BadAnswer, match="an event has more than 1000 bytes"):
        for _ in range(1001):
            assert not [*decoder.feed(endless)]


EVENTS = OK + b"Content-Type: text/event-stream; charset=utf-8\r\n\r\n"
CHUNKED_EVENTS = EVENTS.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")


async def test_server_sent_events_arrive_until_the_stream_ends(session: DeviceSession, clock: VirtualClock) -> None:
    async with RawVendor(saying(EVENTS, b"data: 1\n\nda", b"ta: 2\n\n")) as vendor:
        http = HttpClient(session, vendor.url, clock)
        async with http.events("/stream", silence_secs=20, last_id="7") as events:
            assert [each.data async for each in events] == ["1", "2"]
        assert http.answers == 1
        [head] = vendor.heads
        assert b"accept: text/event-stream" in head.lower() and b"last-event-id: 7" in head.lower()


async def test_a_stream_that_ends_with_its_head_has_its_events(session: DeviceSession, clock: VirtualClock) -> None:
    for body, data in ((b"", []), (b"data: 1\n\n", ["1"])):
        head = EVENTS.replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % len(body))
        async with (
            RawVendor(head + body) as vendor,
            HttpClient(session, vendor.url, clock).events("/stream", silence_secs=20) as events,
        ):
            assert [each.data async for each in events] == data


async def test_a_silent_stream_ends_after_its_limit(session: DeviceSession, clock: VirtualClock) -> None:
    async with RawVendor(endlessly(EVENTS + b"data: 1\n\n", b"", pause=0.01)) as vendor:
        http = HttpClient(session, vendor.url, clock)
        async with http.events("/stream", silence_secs=0.05) as events:
            assert [each.data async for each in events] == ["1"]


@pytest.mark.parametrize(
    ("speech", "kind", "sentence"),
    [
        (_answer(b"404 Not Found"), HttpRefused, "answered 404 Not Found"),
        (GOOD, BadAnswer, "not answer with an event stream"),
        (b"\0\0\0\r\n\r\n", BadAnswer, "not HTTP"),
        (b"", Unreachable, "does not answer"),
        (EVENTS + b"data: " + b"x" * 200, BadAnswer, "more than 100 bytes"),
        (endlessly(CHUNKED_EVENTS + b"1;", b"e" * 65536), BadAnswer, "not HTTP"),
    ],
)
async def test_an_answer_other_than_an_event_stream_is_reported(
    session: DeviceSession, clock: VirtualClock, speech: Speech | bytes, kind: type[AdapterFailed], sentence: str
) -> None:
    async with RawVendor(speech) as vendor:
        http = HttpClient(session, vendor.url, clock)
        with pytest.raises(kind, match=sentence):
            async with http.events("/stream", silence_secs=20, max_bytes=100) as events:
                assert not [each async for each in events]


@pytest.mark.parametrize(
    ("location", "end"),
    [
        ("https://10.0.0.7/api?password=secret", "; correct its address: it is now https://10.0.0.7"),
        ("http://[fe80::1]:8080", r"; correct its address: it is now http://\[fe80::1\]:8080"),
        ("/login.html", ""),
        ("https://me:secret@10.0.0.7/", ""),
        ("ftp://10.0.0.7/", ""),
    ],
)
async def test_an_error_names_the_new_address_of_a_device(
    session: DeviceSession, clock: VirtualClock, location: str, end: str
) -> None:
    head = f"HTTP/1.1 301 Gone\r\nConnection: close\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
    async with RawVendor(head.encode()) as vendor:
        with pytest.raises(HttpRefused, match=f"/a answered 301 Moved Permanently{end}$"):
            await HttpClient(session, vendor.url, clock).request("GET", "/a")


async def test_headers_are_sent_and_no_secret_is_shown(session: DeviceSession, clock: VirtualClock) -> None:
    access = HttpAccess(username="me", password="ü", headers={"X-Api": "7"})
    async with RawVendor(OK + b"Connection: close\r\nContent-Length: 0\r\n\r\n") as vendor:
        client = HttpClient(session, vendor.url, clock, access)
        for _ in range(2):
            await client.exchange("GET", "/a", headers={"X-More": "1"})
    for head in vendor.heads:
        assert {b"X-Api: 7", b"X-More: 1", b"Authorization: Basic bWU6w7w="} <= {*head.split(b"\r\n")}
    assert "ü" not in repr(access) and "t-1" not in repr(HttpAccess(token="t-1"))


async def test_a_login_of_an_unknown_sort_is_an_answer(session: DeviceSession, clock: VirtualClock) -> None:
    asked = b'WWW-Authenticate: Digest realm="x", nonce="1", algorithm=WIBBLE\r\nContent-Length: 0\r\n\r\n'
    async with RawVendor(b"HTTP/1.1 401 No\r\nConnection: close\r\n" + asked) as vendor:
        client = HttpClient(session, vendor.url, clock, HttpAccess(username="a", password="b", is_digest=True))
        with pytest.raises(BadAnswer, match="uses an unsupported authentication scheme"):
            await client.exchange("GET", "/a")


async def test_queries_and_forms_are_encoded(session: DeviceSession, clock: VirtualClock) -> None:
    async with RawVendor(OK + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}") as vendor:
        client = HttpClient(session, vendor.url, clock)
        await client.exchange("GET", "/a", params={"cmnd": "Power On&x"})
        await client.exchange("POST", "/b", data={"a": "1"})
    assert vendor.heads[0].startswith(b"GET /a?cmnd=Power+On%26x HTTP/1.1")
    assert b"Content-Type: application/x-www-form-urlencoded" in vendor.heads[1]


async def test_an_invalid_ca_file_is_reported(session: DeviceSession, clock: VirtualClock, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    for path in (file, tmp_path / "absent.pem"):
        with pytest.raises(
            AdapterFailed, match=r"(ca|absent)\.pem contains no certificates: no(t in PEM format| such file)"
        ):
            HttpClient(session, "https://127.0.0.1", clock, HttpAccess(ca_file=path))
    async with RawVendor(OK + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}") as vendor:
        pinned = HttpAccess(fingerprint=":".join(["ab"] * 32))
        client = HttpClient(session, vendor.url.replace("http:", "https:"), clock, pinned)
        with pytest.raises(Unreachable):
            await client.exchange("GET", "/a")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE, KEY)
    own = hashlib.sha256(ssl.PEM_cert_to_DER_cert(CERTIFICATE.read_text())).hexdigest()
    untrusted, other = "is not trusted: self-signed certificate", "has a different fingerprint"
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=tls) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for access, sentence in ((HttpAccess(), untrusted), (pinned, f"{other}, {own}")):
            with pytest.raises(Unreachable, match=rf"does not answer \(its certificate {sentence}\)$"):
                await HttpClient(session, url, clock, access).exchange("GET", "/a")
