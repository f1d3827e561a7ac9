"""Refusals: each faulty request is answered in JSON, and the log has no traceback."""

from __future__ import annotations

import gzip
import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, cast

import orjson
import pytest
from msgspec.structs import force_setattr
from sanic import Request
from sanic.exceptions import BadRequest

from appliance import errors
from appliance.api.error_codes import CODES, status_of
from appliance.api.error_responses import error_response
from appliance.api.http_server.framing import parse_head
from appliance.api.http_server.http1 import CHUNKS_PER_TURN
from appliance.api.limits import MAX_SMALL_BODY_BYTES, ApiLimits
from tests.api.caller import KEY, UPGRADE, Caller, Reply, call, request, shown, turns_while
from tests.fakes.app import App, open_app

pytestmark = pytest.mark.asyncio(loop_scope="module")

A = f"{KEY}\r\n".encode()
POST = b"POST /rooms HTTP/1.1\r\nHost: lares\r\n" + A
GET = b"GET /health HTTP/1.1\r\nHost: lares\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
SOCKET = request("GET", "/events", KEY).removesuffix(b"\r\n")

MALFORMED: dict[str, tuple[bytes, int]] = {
    "no request at all": (b"what is this\r\n\r\n", 400),
    "an empty line": (b"\r\n\r\n", 400),
    "HTTP/0.9": (b"GET /health\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "a TLS greeting": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "a TLS greeting without an end": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 32, 400),
    "lines that end with LF": (b"GET /health HTTP/1.1\nHost: lares\n\n", 400),
    "headers that end with LF": (GET + b"X: a\nY: b\n\n", 400),
    "no target": (b"GET  HTTP/1.1\r\n\r\n", 400),
    "a relative target": (b"GET health HTTP/1.1\r\n\r\n", 400),
    "a host and a port for a target": (b"CONNECT lares:80 HTTP/1.1\r\n\r\n", 400),
    "a later version": (b"GET /health HTTP/1.2\r\n\r\n", 400),
    "a URL without a path": (b"GET http://lares HTTP/1.1\r\n\r\n", 400),
    "a URL with a port that is none": (b"GET http://lares:99999999999/health HTTP/1.1\r\n\r\n", 400),
    "another scheme": (b"GET file:///etc/passwd HTTP/1.1\r\n\r\n", 400),
    "only a query": (b"GET ?ids=x HTTP/1.1\r\n\r\n", 400),
    "only a fragment": (b"GET # HTTP/1.1\r\n\r\n", 400),
    "a target that is not ASCII": ("GET /gerät HTTP/1.1\r\n\r\n".encode(), 400),
    "a target with a control character": (b"GET /a\x01b HTTP/1.1\r\n\r\n", 400),
    "a target with a zero": (b"GET /a\x00b HTTP/1.1\r\n\r\n", 400),
    "a method that is not ASCII": (b"G\xffT /health HTTP/1.1\r\n\r\n", 400),
    "a method with a bracket": (b"G(T /health HTTP/1.1\r\n\r\n", 400),
    "no Host": (b"GET /health HTTP/1.1\r\n\r\n", 400),
    "no Host, and a body": (POST.replace(b"Host: lares\r\n", b"") + b"Content-Length: 2\r\n\r\n{}", 400),
    "two Hosts": (GET + b"Host: lares\r\n\r\n", 400),
    "two Hosts in HTTP/1.0": (GET.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Host: other\r\n\r\n", 400),
    "a Host that is none": (b"GET /health HTTP/1.1\r\nHost: ///\r\n\r\n", 400),
    "a Host that is two": (b"GET /health HTTP/1.1\r\nHost: a, b\r\n\r\n", 400),
    "a header without a colon": (GET + b"nonsense\r\n\r\n", 400),
    "a header that goes on in the next line": (GET + b"X: one\r\n two: three\r\n\r\n", 400),
    "a header with a zero": (GET + b"X: a\x00b\r\n\r\n", 400),
    "a header that is too large": (GET + b"X: " + b"a" * 9000 + b"\r\n\r\n", 431),
    "headers that are too many": (GET + b"X: y\r\n" * 2000 + b"\r\n", 431),
    "a head without an end": (GET + b"X: " + b"a" * 20_000, 431),
    "a target that is too long": (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 431),
    "an unknown expectation": (POST + b"Expect: a miracle\r\nContent-Length: 2\r\n\r\n{}", 417),
    "an expectation that is not ASCII": (POST + b"Expect: \xff\xfe\r\nContent-Length: 2\r\n\r\n{}", 417),
    "a chunk without an end of its size": (CHUNKED + b"2" * 100, 400),
    "a chunk that is longer than it says": (CHUNKED + b"2\r\n{}XX0\r\n\r\n", 400),
    "a chunk that is longer by a number": (CHUNKED + b"2\r\n{}22\r\n{}\r\n0\r\n\r\n", 400),
    "a request among the trailers": (CHUNKED + b"2\r\n{}\r\n0\r\nGET /health HTTP/1.1\r\n\r\n", 400),
    "a handshake without a key": (SOCKET + "\r\n".join([*UPGRADE[:3], "", ""]).encode(), 400),
    "a handshake with half a key": (SOCKET + "\r\n".join([*UPGRADE[:3], UPGRADE[3][:-4], "", ""]).encode(), 400),
    "a handshake with two keys": (SOCKET + "\r\n".join([*UPGRADE, UPGRADE[3], "", ""]).encode(), 400),
    "a handshake with a body": (SOCKET + "\r\n".join([*UPGRADE, "Content-Length: 2", "", "{}"]).encode(), 400),
    "a handshake with chunks": (
        SOCKET + "\r\n".join([*UPGRADE, "Transfer-Encoding: chunked", "", "0", "", ""]).encode(),
        400,
    ),
    "a handshake that is not ASCII": (SOCKET + b"Connection: Upgrade\r\nSec-WebSocket-Key: \xff\r\n\r\n", 400),
    "a handshake of another version": (
        SOCKET + "\r\n".join([*UPGRADE[:2], "Sec-WebSocket-Version: 8", UPGRADE[3], "", ""]).encode(),
        426,
    ),
    "a handshake of HTTP/1.0": (
        request("GET", "/events", KEY, *UPGRADE).replace(b" HTTP/1.1", b" HTTP/1.0"),
        400,
    ),
    "a handshake without Connection": (SOCKET + "\r\n".join([*UPGRADE[:1], *UPGRADE[2:], "", ""]).encode(), 426),
    "an upgrade to something else": (SOCKET + b"Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n", 426),
    "a WebSocket without an upgrade": (SOCKET + b"\r\n", 426),
    "a handshake by HEAD": (request("HEAD", "/events", KEY, *UPGRADE), 426),
}
"""The bytes of a request, and the status of the response. `test_framing` covers lengths, codings, and chunks."""

MESSAGES = {
    "a TLS greeting without an end": "this is TLS; begin the address with http://",
    "lines that end with LF": "the request line is malformed: it must be like 'GET /devices HTTP/1.1'",
    "headers that end with LF": "header 2 is malformed",
    "a target that is not ASCII": "percent-encode spaces and non-ASCII characters",
    "a header with a zero": "header 2 is malformed: it must be like 'Name: value'",
    "a header that goes on in the next line": "header 3 is malformed",
    "headers that are too many": "the request line and headers are larger than 8192 bytes",
    "a WebSocket without an upgrade": "this path is for WebSocket clients, and the handshake failed: missing",
    "a handshake with a body": "a WebSocket handshake must not have a body",
}
"""Error messages must name the problem, the place, and what to do."""

REUSABLE = {"a WebSocket without an upgrade", "a handshake without Connection"}
"""Faults after which the connection remains usable. After other faults, the server cannot know where the next request
begins.
"""


def check(reply: Reply, *, to_head: bool = False) -> None:
    """Check that an error is JSON, without a header that reveals the server's name."""
    assert reply.header("content-type") == "application/json"
    assert all(value.strip() for _, value in reply.headers), reply.headers
    assert not {"server", "x-powered-by", "alt-svc"} & {name for name, _ in reply.headers}
    assert b"Traceback" not in reply.body and b'File "' not in reply.body
    if not to_head:
        assert isinstance(reply.json["error"], str) and reply.json["error"]
        assert reply.status == CODES[reply.json["code"]].status


@pytest.mark.parametrize(
    ("line", "has_advice"),
    [
        (b"GET /health HTTP/1.2", False),
        (b"GET /health", False),
        (b"GET  HTTP/1.1", False),
        (b"CONNECT lares:80 HTTP/1.1", False),
        (b"GET health HTTP/1.1", False),
        (b"G(T /health HTTP/1.1", False),
        (b"GET /a b HTTP/1.1", True),
        (b"GET /a b HTTP/1.2", True),
        (b"GET /a\x01b HTTP/1.1", True),
        (b"GET /ger\xc3\xa4t", True),
    ],
)
async def test_only_a_target_with_forbidden_characters_gets_advice(line: bytes, has_advice: bool) -> None:
    for rest in (b"", b"\r\nHost: lares"):
        with pytest.raises(BadRequest, match="the request line is malformed") as failed:
            parse_head(line + rest)
        assert ("percent-encode" in str(failed.value)) == has_advice


@pytest.mark.parametrize("what", MALFORMED)
async def test_malformed_requests_are_refused(shared: App, quiet_log: pytest.LogCaptureFixture, what: str) -> None:
    data, status = MALFORMED[what]
    async with call(shared.url) as caller:
        reply = await caller.ask(data)
        assert reply.status == status
        check(reply, to_head=data.startswith(b"HEAD"))
        assert what not in MESSAGES or MESSAGES[what] in reply.json["error"]
        if what in REUSABLE:
            assert (await caller.ask(request("GET", "/health"))).status == 200
        else:
            assert reply.header("connection") == "close"
            assert await caller.rest() == b"", "and no second answer"
    assert (await shared.get("/health")).status == 200


GENTLE: dict[str, bytes] = {
    "HTTP/1.0": b"GET /health HTTP/1.0\r\n\r\n",
    "HTTP/1.0 with a Host": b"GET /health HTTP/1.0\r\nHost: lares\r\n\r\n",
    "an empty Host": b"GET /health HTTP/1.1\r\nHost:\r\n\r\n",
    "an address for a Host": b"GET /health HTTP/1.1\r\nHost:[fe80::1]:3000 \r\n\r\n",
    "a URL": b"GET http://lares:3000/health HTTP/1.1\r\nHost: lares\r\n\r\n",
    "a query": b"GET /health?%FF&=&&x=%zz;a HTTP/1.1\r\nHost: lares\r\n\r\n",
    "a header in Latin-1": GET + b"X: \xe4\r\n\r\n",
    "an empty header": GET + b"X:\r\n\r\n",
    "a header with blanks around it": GET + b"X: \t a b \t\r\n\r\n",
    "a header that comes twice": GET + b"X: a\r\nX: b\r\n\r\n",
    "a body that nobody reads": GET + b"Content-Length: 5\r\n\r\nhello",
    "chunks that nobody reads": GET + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "an upgrade that is not possible here": GET + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "an offer of HTTP/2": GET + b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: x\r\n\r\n",
    "a fragment": b"GET /health#top HTTP/1.1\r\nHost: lares\r\n\r\n",
}
"""Unusual but harmless requests."""


@pytest.mark.parametrize("what", GENTLE)
async def test_unusual_requests_are_answered(shared: App, quiet_log: pytest.LogCaptureFixture, what: str) -> None:
    async with call(shared.url) as caller:
        reply = await caller.ask(GENTLE[what])
        assert (reply.status, reply.body) == (200, b'{"status":"ok"}')
        assert {name for name, _ in reply.headers} == {"content-type", "content-length", "connection"}


async def test_an_unexpected_body_is_not_the_next_request(shared: App, quiet_log: pytest.LogCaptureFixture) -> None:
    smuggled = request("GET", "/devices", KEY)
    for path, status in (("/health", 200), ("/devices", 401), ("/nothing", 401)):
        async with call(shared.url) as caller:
            caller.send_at_once(request("GET", path, body=smuggled) + request("GET", "/ready"))
            assert (await caller.reply()).status == status
            assert (await caller.reply()).json == {"status": "ok"}
            assert await caller.is_open(0.05)


async def test_pipelined_requests_are_answered_in_order(shared: App) -> None:
    ids = [f"room-{number}" for number in range(50)]
    async with call(shared.url) as caller:
        caller.send_at_once(b"".join(request("GET", f"/rooms/{each}", KEY) for each in ids))
        for each in ids:
            assert (await caller.reply()).json == {"error": f"room '{each}' not found", "code": "room_not_found"}


async def test_the_type_that_a_body_claims_does_not_matter(shared: App) -> None:
    for content_type in ("text/plain", "application/octet-stream", "nonsense", "multipart/form-data; boundary=x"):
        body = b'{"id": "hall", "name": "Hall"}'
        answer = await shared.ask("POST", "/rooms", data=body, headers={"Content-Type": content_type})
        assert (answer.status, answer.json) == (200, {"id": "hall", "name": "Hall"})
    assert (await shared.delete("/rooms/hall")).status == 204


@pytest.mark.parametrize("is_chunked", [False, True], ids=["with its length", "in chunks"])
@pytest.mark.parametrize("path", ["/rooms", "/groups", "/devices/roku_tv:tv/room", "/devices/roku_tv:tv/command"])
async def test_a_body_has_a_limit(
    shared: App, quiet_log: pytest.LogCaptureFixture, path: str, is_chunked: bool
) -> None:
    limit = MAX_SMALL_BODY_BYTES
    for size, status in ((limit, 400), (limit + 1, 413), (3 * limit, 413)):
        async with call(shared.url) as caller:
            reply = await send_large(caller, "POST", path, size, is_chunked)
            assert reply.status == status
            check(reply)
            assert (await caller.ask(request("GET", "/health"))).status == 200, "and the connection lives on"
    assert (await shared.ask("POST", path, data=b" " * (limit + 1))).status == 413


async def test_a_body_over_the_configured_limit_names_the_key() -> None:
    async with open_app(limits=ApiLimits(body_bytes=2000)) as app:
        reply = await app.ask("POST", "/rooms", data=b" " * 2001)
        assert reply.status == 413
        assert reply.json["error"] == (
            "the body is larger than 2000 bytes, the limit of api.max_body_bytes in the configuration"
        )


@pytest.mark.parametrize(
    ("sent", "statuses", "least_turns"),
    [
        (CHUNKED + b"1\r\n \r\n" * 20_000 + b"0\r\n\r\n", [400], 20_000 // CHUNKS_PER_TURN),
        (request("GET", "/health") * 2000, [200] * 2000, 2000),
        (request("GET", "/nothing") * 2000, [401] * 2000, 2000),
    ],
    ids=["a body of many chunks", "many requests", "many refused"],
)
@pytest.mark.slow
async def test_many_requests_do_not_block_the_loop(
    shared: App, sent: bytes, statuses: list[int], least_turns: int
) -> None:
    async with call(shared.url) as caller:
        caller.send_at_once(sent)
        replies, turns = await turns_while(caller.reply, len(statuses))
    assert [each.status for each in replies] == statuses and turns >= least_turns


@pytest.mark.parametrize("is_chunked", [False, True], ids=["with its length", "in chunks"])
async def test_an_unused_body_is_discarded(
    shared: App, quiet_log: pytest.LogCaptureFixture, is_chunked: bool
) -> None:
    await shared.post("/rooms", {"id": "hall", "name": "Hall"})
    for method, path, status in (
        ("GET", "/rooms/hall", 200),
        ("GET", "/rooms/none", 404),
        ("DELETE", "/rooms/none", 404),
        ("DELETE", "/rooms/hall", 204),
    ):
        async with call(shared.url) as caller:
            assert (await send_large(caller, method, path, 2 << 20, is_chunked)).status == status
            assert (await caller.ask(request("GET", "/health"))).status == 200, "and the connection lives on"


async def test_a_body_far_beyond_the_limit_of_its_path_is_not_read() -> None:
    async with open_app(limits=ApiLimits(body_bytes=1 << 30)) as app:
        async with call(app.url) as caller:
            await caller.send(request("POST", "/rooms", KEY, "Content-Length: 99999999"))
            reply = await caller.reply()
            assert (reply.status, reply.header("connection")) == (413, "close")
        for method, status in (("POST", 413), ("GET", 200)):
            async with call(app.url) as caller:
                await caller.send(request(method, "/rooms", KEY, f"Content-Length: {'9' * 30}"))
                assert (await caller.reply()).status == status
        async with call(app.url) as caller:
            sent = request("POST", "/rooms", KEY, "Transfer-Encoding: chunked")
            await caller.send(sent + b"60000\r\n%b\r\n" % (b" " * 0x60000))
            assert b" 413 " in await caller.rest()


@pytest.mark.parametrize("is_chunked", [False, True], ids=["with its length", "in chunks"])
async def test_unfinished_bodies_of_all_connections_share_a_budget(*, is_chunked: bool) -> None:
    async with open_app(limits=ApiLimits(bodies_bytes=200_000)) as app, AsyncExitStack() as stack:
        begun = b"1000\r\n" + b" " * 0x1000 if is_chunked else b" " * 50_000
        length = "Transfer-Encoding: chunked" if is_chunked else "Content-Length: 60000"
        callers = [await stack.enter_async_context(call(app.url)) for _ in range(3)]
        for each in callers:
            await each.send(request("POST", "/rooms", KEY, length) + (begun + b"\r\n") * (12 if is_chunked else 1))
        async with call(app.url) as refused:
            reply = await refused.ask(request("POST", "/rooms", KEY, body=b" " * 1000))
            assert reply.status == 400, "a body that is there in full needs no budget"
        async with call(app.url) as refused:
            await refused.send(request("POST", "/rooms", KEY, "Content-Length: 65000") + b" " * 64_000)
            reply = await refused.reply()
            assert (reply.status, reply.json["code"], reply.header("retry-after")) == (503, "overloaded", "1")
        for each in callers:
            each.close()
        await shown(app, "sockets", "open", 1)
        async with call(app.url) as caller:
            await caller.send(request("POST", "/rooms", KEY, "Content-Length: 65000") + b" " * 64_000)
            assert (await caller.ask(b" " * 1000)).status == 400


@pytest.mark.parametrize(
    ("headers", "body", "status", "error"),
    [
        ([], None, 400, "the request has no body; send JSON, with its length in the header Content-Length"),
        (["Content-Length: 0"], None, 400, "the body cannot be read as JSON: it is empty"),
        (
            ["Content-Encoding: gzip"],
            gzip.compress(b"{}"),
            415,
            "the body is compressed (Content-Encoding: gzip); send it uncompressed",
        ),
        (["Content-Encoding: identity"], b'{"id":"den","name":"Den"}', 200, None),
        ([], b'\xef\xbb\xbf{"id":"den","name":"Den"}', 200, None),
    ],
    ids=["no length", "a length of nothing", "gzip", "identity", "a byte order mark"],
)
async def test_the_error_names_the_problem_of_a_body(
    shared: App, headers: list[str], body: bytes | None, status: int, error: str | None
) -> None:
    async with call(shared.url) as caller:
        reply = await caller.ask(request("POST", "/rooms", KEY, *headers, body=body))
    assert (reply.status, reply.json.get("error")) == (status, error)
    await shared.delete("/rooms/den")


async def send_large(caller: Caller, method: str, path: str, size: int, is_chunked: bool) -> Reply:
    """Send a body of blanks, and begin to read only afterwards, as simple clients do."""
    if not is_chunked:
        return await caller.ask(request(method, path, KEY, body=b" " * size))
    await caller.send(request(method, path, KEY, "Transfer-Encoding: chunked"))
    for at in range(0, size, 60_000):
        piece = min(60_000, size - at)
        await caller.send(b"%x\r\n%b\r\n" % (piece, b" " * piece))
    return await caller.ask(b"0\r\n\r\n")


async def test_a_client_with_expect_gets_the_refusal_before_it_sends_the_body(shared: App) -> None:
    async with call(shared.url) as caller:
        await caller.send(request("POST", "/rooms", KEY, "Expect: 100-continue", "Content-Length: 2000000"))
        reply = await caller.reply()
        assert (reply.status, reply.header("connection")) == (413, "close")
    async with call(shared.url) as caller:
        await caller.send(request("DELETE", "/rooms/none", KEY, "Expect: 100-continue", "Content-Length: 2"))
        reply = await caller.reply()
        assert (reply.status, reply.header("connection")) == (404, "close")
    for body in ("Content-Length: 2", "Transfer-Encoding: chunked"):
        async with call(shared.url) as caller:
            await caller.send(request("POST", "/rooms", "Expect: 100-continue", body))
            reply = await caller.reply()
            assert (reply.status, reply.header("connection")) == (401, "close"), "the client need not send the body"
    async with call(shared.url) as caller:
        await caller.send(request("POST", "/rooms", KEY, "Expect: 100-continue", "Content-Length: 2"))
        assert (await caller.reply()).status == 100
        assert (await caller.ask(b"{}")).json == {"error": "id is missing", "code": "invalid_request"}


@dataclass
class Asked:
    """The part of a request that an error response uses."""

    method: str = "GET"
    path: str = "/nothing"


def answer_of(error: Exception) -> tuple[int, dict[str, Any]]:
    answer = error_response(cast("Request", Asked()), error)
    assert answer.body is not None
    return answer.status, orjson.loads(answer.body)


def below(kind: type[errors.LaresError]) -> set[type[errors.LaresError]]:
    return {kind}.union(*(below(each) for each in kind.__subclasses__()))


NEVER_ANSWERED = {errors.AccessDenied, errors.LaresError, errors.ConfigFailed, errors.StartFailed}
"""Errors that end the start, or that are base classes and never raised themselves."""


WORDS: dict[type[errors.LaresError], tuple[Any, ...]] = {
    errors.NotFound: ("room", "x"),
    errors.AccessDenied: ("config/default.toml", "use sudo"),
    errors.NoPicture: ("camera", None),
    errors.InvalidFile: ("config/scenes/x.lua", [errors.Fault("config/scenes/x.lua", 12, "boo")]),
    errors.RateLimited: (0.5,),
    errors.UnfitValue: ("a sentence", {}),
    errors.ScriptFailed: (errors.Fault("config/scenes/x.lua", 12, "boo"),),
}
"""The arguments of those error classes that do not take exactly one sentence."""


async def test_every_error_has_a_status_and_its_own_message() -> None:
    for kind in below(errors.LaresError) - NEVER_ANSWERED:
        assert kind.code in CODES or kind is errors.NotFound, kind
        if kind.__module__ != errors.__name__:
            continue  # errors of other packages have other fields
        error = kind(*WORDS.get(kind, ("a sentence",)))
        status, body = answer_of(error)
        assert status == status_of(error) == CODES[error.code].status, kind
        more = {"errors": [{"line": 12, "message": "boo"}]} if kind is errors.InvalidFile else {}
        assert body == {"error": str(error), "code": error.code, **more}
        answer = error_response(cast("Request", Asked()), error)
        for name, value in CODES[error.code].headers.items():
            assert answer.headers[name] == value


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("the secret of the home"),
        errors.LaresError("the secret of the home"),
        errors.StartFailed("the secret of the home", 78),
        errors.ConfigFailed([errors.Fault("the secret of the home", 0, "cannot be read")]),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_unexpected_error_is_500_and_one_log_line(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert answer_of(error) == (500, {"error": "the hub failed to answer; see its log", "code": "internal"})
    [entry] = caplog.records
    assert entry.getMessage() == f"GET /nothing failed: {type(error).__name__}: {error}"
    assert entry.exc_info is not None and entry.exc_info[1] is error and entry.levelno == logging.ERROR


async def test_a_failing_listing_is_500_in_json_and_the_hub_continues(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with open_app() as app:
        await app.post("/rooms", {"id": "hall", "name": "Hall"})
        room = app.hub.registry.get_room("hall")
        force_setattr(room, "name", object())
        async with call(app.url) as caller:
            await caller.send(request("GET", "/rooms", KEY))
            answer = await caller.reply()
            assert (answer.status, answer.json) == (
                500,
                {"error": "the hub failed to answer; see its log", "code": "internal"},
            )
            assert (await caller.ask(request("GET", "/health"))).status == 200
        assert (await app.get("/devices")).status == 200
    [entry] = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert entry.getMessage().startswith("GET /rooms failed: TypeError: ") and entry.exc_info is not None


async def test_a_stopping_hub_begins_no_backup() -> None:
    async with open_app(adapters={}) as app:
        assert (await app.get("/diagnostics/backup")).status == 200
        app.hub.begin_to_stop()
        answer = await app.get("/diagnostics/backup")
    assert (answer.status, answer.json["code"]) == (400, "stopping")
