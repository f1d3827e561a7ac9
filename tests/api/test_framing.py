"""The framing of requests according to RFC 9112. Each row of the tables is one case, and ambiguous requests are
refused."""

from __future__ import annotations

import pytest
from sanic.exceptions import BadRequest

from appliance.api.http_server.framing import check_beginning, check_trailer, parse_chunk, parse_head
from tests.api.caller import KEY, call, request
from tests.fakes.app import App

pytestmark = pytest.mark.asyncio(loop_scope="module")

LINE = b"POST /rooms HTTP/1.1\r\nHost: lares"
LINE_10 = b"POST /rooms HTTP/1.0"

ACCEPTED: list[tuple[bytes, bool, int | None, bool]] = [
    (LINE, False, 0, True),
    (LINE + b"\r\nContent-Length: 0", True, 0, True),
    (LINE + b"\r\ncontent-length:12", True, 12, True),
    (LINE + b"\r\nCONTENT-LENGTH: \t 12 \t", True, 12, True),
    (LINE + b"\r\nContent-Length: 007", True, 7, True),
    (LINE + b"\r\nContent-Length: " + b"0" * 6000 + b"7", True, 7, True),
    *((LINE + b"\r\nContent-Length: " + b"9" * digits, True, 10**19 - 1, True) for digits in (19, 30, 6000)),
    (LINE + b"\r\nTransfer-Encoding: chunked", True, None, True),
    (LINE + b"\r\nTransfer-Encoding: Chunked", True, None, True),
    (LINE + b"\r\ntransfer-encoding:CHUNKED \t", True, None, True),
    (LINE + b"\r\nConnection: close", False, 0, False),
    (LINE + b"\r\nConnection: Close", False, 0, False),
    (LINE + b"\r\nConnection: keep-alive, close", False, 0, False),
    (LINE + b"\r\nConnection: close\r\nConnection: keep-alive", False, 0, False),
    (LINE + b"\r\nConnection: keep-alive\r\nConnection: close", False, 0, False),
    (LINE + b"\r\nConnection: Keep-Alive", False, 0, True),
    (LINE_10, False, 0, False),
    (LINE_10 + b"\r\nContent-Length: 2", True, 2, False),
    (LINE_10 + b"\r\nConnection: keep-alive", False, 0, True),
    (LINE_10 + b"\r\nConnection: Keep-Alive, x", False, 0, True),
    (LINE_10 + b"\r\nConnection: keep-alive, close", False, 0, False),
]
"""Each row: a head, whether it announces a body, the body's length (None for chunks), and whether the connection
continues."""

NBSP, LATIN_NBSP = "\u00a0".encode(), b"\xa0"

REFUSED: list[bytes] = [
    *(LINE_10 + b"\r\nTransfer-Encoding: " + value for value in (b"chunked", b"Chunked", b"identity", b"")),
    LINE_10 + b"\r\nHost: lares\r\nTransfer-Encoding: chunked\r\nContent-Length: 2",
    LINE_10 + b"\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked",
    *(
        LINE + b"\r\nTransfer-Encoding: " + value
        for value in (
            b"", b"chunked gzip", b"chunked, gzip", b"chunked, chunked", b"chunked, gzip, chunked",
            b"chunked, identity", b"chunked;q=1", b"chunked; x", b", chunked", b"gzip,", b'"chunked"',
            b"\x0bchunked", b"chunked\x0c", NBSP + b"chunked", b"chunked" + NBSP,
            LATIN_NBSP + b"chunked", b"ch\tunked", b"chun\xc4\xb8ed", b"chunked\x00", b"\xe2\x84\xaahunked",
        )
    ),
    *(
        LINE + b"\r\nContent-Length: " + value
        for value in (
            b"", b"-1", b"+1", b"1.0", b"1e3", b"0x10", b"1_0", b"1 0", b"1,1", b"1, 1", b"2;", b'"2"',
            NBSP + b"2", b"2" + NBSP, "٢".encode(), "２".encode(), b"\xb2", b"2\x0b", b"\x002",
            b"0" * 1_000_000 + b"x",  # a search with quadratic time would take an hour
        )
    ),
    LINE + b"\r\nContent-Length: 2\r\nContent-Length: 2",
    LINE + b"\r\nContent-Length: 2\r\ncontent-length: 3",
    LINE + b"\r\nContent-Length: 2\r\nTransfer-Encoding: chunked",
    LINE + b"\r\nTransfer-Encoding: chunked\r\nContent-Length: 2",
    LINE + b"\r\nTransfer-Encoding: chunked\r\nContent-Length: 0",
    LINE + b"\r\nTransfer-Encoding:\r\nTransfer-Encoding: chunked",
    LINE + b"\r\nTransfer-Encoding: chunked\r\ntransfer-encoding: chunked",
    LINE + b"\r\nTransfer-Encoding : chunked",
    LINE + b"\r\nTransfer-Encoding\t: chunked",
    LINE + b"\r\n Transfer-Encoding: chunked",
    LINE + b"\r\nTransfer-Encoding:\r\n chunked",
    LINE + b"\r\nTransfer-Encoding:\r\n\tchunked",
    LINE + b"\r\nX: y\r\n folded: z",
    LINE + b"\r\nX: y\nTransfer-Encoding: chunked",
    LINE + b"\r\nX: y\rTransfer-Encoding: chunked",
    LINE + b"\r\nTransfer-Encoding chunked",
    LINE + b"\r\nTransfer_Encoding\x00: chunked",
    LINE + b"\r\n: chunked",
    LINE.replace(b"HTTP/1.1", b"http/1.1"),
    LINE.replace(b"HTTP/1.1", b"HTTP/1.10"),
    LINE.replace(b"HTTP/1.1", b"HTTP/01.1"),
    LINE.replace(b"HTTP/1.1", b"HTTP/1.1 "),
    LINE.replace(b"HTTP/1.1", b"HTTP/2.0"),
    LINE.replace(b"HTTP/1.1", b""),
    LINE.replace(b" /rooms", b"  /rooms"),
    LINE.replace(b" /rooms", b"\t/rooms"),
    b" " + LINE,
    b"\r\n" + LINE,
]  # fmt: skip
"""Heads that must be refused."""

UNKNOWN = [b"gzip", b"identity", b"xchunked", b"chunkedx", b"gzip, chunked", b"identity,chunked", b"GZIP \t, Chunked"]
"""Transfer codings that are well-formed but unknown."""

CHUNKS: dict[bytes, int | None] = {
    b"0": 0, b"1": 1, b"a": 10, b"A": 10, b"ff": 255, b"000017": 23, b"7fffffffffffff": 0x7FFFFFFFFFFFFF,
    b"17;a": 23, b"17;a=b": 23, b"17 ; a = b": 23, b"17\t;\ta": 23, b'17;a="b c;d\\""': 23, b"17;a;b=c;d": 23,
    b'17;a=""': 23, b"": None, b" 17": None, b"17 ": None, b" 17 ": None, b"17\t": None, b"1 7": None, b"+17": None,
    b"-17": None, b"0x17": None, b"0X17": None, b"1_7": None, b"17h": None, b"17,": None, b"17;": None,
    b"17;;a": None, b"17;a=": None, b"17;=b": None, b'17;a="b': None, b"17;a b": None, b"17;a=b c": None,
    b"17;a\x00": None, b"17;a\n": None, b"17\n": None, b"17\r": None, b"17;a=\x7f": None, b"g": None, b"1.0": None,
    b"1e": 30,
    b"f" * 15: 0xFFFFFFFFFFFFFFF, b"f" * 16: None, "１".encode(): None, "٣".encode(): None, NBSP + b"17": None,
}  # fmt: skip
"""The line before a chunk, and the chunk's size. If the size is None, the line must be refused."""


async def test_unambiguous_heads_are_accepted() -> None:
    for raw, has_body, length, is_persistent in ACCEPTED:
        head = parse_head(raw).fields
        assert (head.has_body, head.length, head.is_persistent) == (has_body, length, is_persistent), raw


async def test_fields_of_the_previous_request_are_reused_only_if_equal() -> None:
    fields = b"\r\nHost: lares\r\nContent-Length: 2"
    before = parse_head(b"POST /rooms HTTP/1.1" + fields).fields
    same = parse_head(b"PUT /rooms/a HTTP/1.1" + fields, before)
    assert (same.method, same.target, same.fields is before) == ("PUT", b"/rooms/a", True)
    assert parse_head(b"PUT /rooms/a HTTP/1.1" + fields + b"2", before).fields.length == 22
    assert not parse_head(b"PUT /rooms/a HTTP/1.0" + fields, before).fields.is_persistent
    with pytest.raises(BadRequest):
        parse_head(b"PUT /rooms/ a HTTP/1.1" + fields, before)


async def test_ambiguous_heads_are_refused() -> None:
    taken = []
    for raw in REFUSED:
        try:
            taken.append((raw, parse_head(raw)))
        except BadRequest:
            continue
    assert not taken


async def test_invalid_heads_are_refused_as_they_arrive() -> None:
    for raw in (b"\x16\x03", b"GET /rooms HTTP/1.1\n", b"GET /\x00", LINE + b"\r\nX: y\n", LINE + b"\r\nX: \x7f"):
        with pytest.raises(BadRequest):
            check_beginning(raw, len(raw) - 1)
    whole = LINE + b"\r\nX: \xe4\ty\r\nY"
    for end in range(1, len(whole)):
        check_beginning(whole[:end], end - 1)


async def test_an_unknown_transfer_coding_is_reported_and_ends_the_connection(shared: App) -> None:
    for value in UNKNOWN:
        coded = request("POST", "/rooms", KEY, f"Transfer-Encoding: {value.decode()}") + ROOM
        async with call(shared.url) as caller:
            reply = await caller.ask(coded)
            assert (reply.status, reply.json["code"]) == (501, "unknown_transfer_coding"), value
            assert (reply.header("connection"), await caller.rest()) == ("close", b""), value


async def test_sizes_of_chunks_follow_the_grammar() -> None:
    wrong = []
    for line, size in CHUNKS.items():
        try:
            found: int | None = parse_chunk(line)
        except BadRequest:
            found = None
        if found != size:
            wrong.append((line, found))
    assert not wrong


async def test_trailers_are_fields() -> None:
    for line in (b"X: y", b"X:", b"Content-Length: 5", b"x-y:\t z "):
        check_trailer(line)
    for line in (b"X", b" X: y", b"X : y", b": y", b"X: \x00", b"GET / HTTP/1.1", b"X: a\nb"):
        with pytest.raises(BadRequest):
            check_trailer(line)


ROOM = b'{"id":"hall","name":"H"}'
CHUNKED = request("POST", "/rooms", KEY, "Transfer-Encoding: Chunked")

SERVED: dict[str, tuple[bytes, int]] = {
    "one chunk": (b"18\r\n" + ROOM + b"\r\n0\r\n\r\n", 200),
    "extensions": (b'c;a="b"\r\n' + ROOM[:12] + b"\r\nc ;x\r\n" + ROOM[12:] + b"\r\n0;end\r\n\r\n", 200),
    "leading zeros": (b"00018\r\n" + ROOM + b"\r\n000\r\n\r\n", 200),
    "trailers": (b"18\r\n" + ROOM + b"\r\n0\r\nX: y\r\nContent-Length: 9\r\n\r\n", 200),
    "blanks around the size": (b" 18 \r\n" + ROOM + b"\r\n0\r\n\r\n", 400),
    "a blank behind the size": (b"18 \r\n" + ROOM + b"\r\n0\r\n\r\n", 400),
    "a line feed alone": (b"18\n" + ROOM + b"\r\n0\r\n\r\n", 400),
    "a line feed alone behind the chunk": (b"18\r\n" + ROOM + b"\n0\r\n\r\n", 400),
    "a folded trailer": (b"18\r\n" + ROOM + b"\r\n0\r\nX: y\r\n z\r\n\r\n", 400),
    "trailers without end": (b"18\r\n" + ROOM + b"\r\n0\r\n" + b"X: y\r\n" * 3000, 400),
    "an extension without end": (b"18;" + b"x" * 1000 + b"\r\n" + ROOM + b"\r\n0\r\n\r\n", 400),
    "a chunk too short": (b"17\r\n" + ROOM + b"\r\n0\r\n\r\n", 400),
}


@pytest.mark.parametrize("in_drops", [False, True], ids=["at once", "in drops"])
async def test_chunks_are_served_or_end_the_connection(shared: App, in_drops: bool) -> None:
    for what, (body, status) in SERVED.items():
        async with call(shared.url) as caller:
            step = 7 if in_drops else len(CHUNKED + body)
            for at in range(0, len(CHUNKED + body), step):
                caller.send_at_once((CHUNKED + body)[at : at + step])
                await shared.hub.clock.sleep(0)
            reply = await caller.reply()
            assert reply.status == status, (what, reply)
            if status == 200:
                assert (await caller.ask(request("GET", "/health"))).status == 200, what
            else:
                assert (reply.header("connection"), await caller.rest()) == ("close", b""), what


async def test_one_empty_line_before_a_request_is_ignored_and_a_second_is_refused(shared: App) -> None:
    async with call(shared.url) as caller:
        for _ in range(2):
            assert (await caller.ask(b"\r\n" + request("GET", "/health"))).status == 200
        assert (await caller.ask(b"\r\n\r\n" + request("GET", "/health"))).status == 400


async def test_http_1_0_is_served_without_chunks_and_without_expect(shared: App) -> None:
    old = request("POST", "/rooms", KEY, "Expect: 100-continue", body=ROOM).replace(b"HTTP/1.1", b"HTTP/1.0")
    async with call(shared.url) as caller:
        reply = await caller.ask(old)
        assert (reply.status, reply.header("connection"), await caller.rest()) == (200, "close", b"")
    async with call(shared.url) as caller:
        reply = await caller.ask(CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"18\r\n" + ROOM + b"\r\n0\r\n\r\n")
        assert (reply.status, reply.json["code"], await caller.rest()) == (400, "invalid_request", b"")
