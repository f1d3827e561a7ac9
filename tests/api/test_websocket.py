"""The event stream as a WebSocket: the cases of the Autobahn suite for the hub's additions to the package
`websockets`.

The numbers before the cases are chapters of the suite: framing, fragmentation, UTF-8, close handling, limits. Each
behaviour of the package itself has one case.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise

import pytest

from appliance.api.http_server.websocket import MAX_READ_BYTES
from appliance.api.limits import ApiLimits
from tests.api.caller import (
    BINARY,
    CLOSE,
    CONTINUATION,
    KEY,
    PING,
    PONG,
    TEXT,
    UPGRADE,
    Caller,
    call,
    frame,
    read_events,
    request,
    turns_while,
)
from tests.fakes.app import App, open_app

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 65_536
DONE, WRONG, NO_TEXT, TOO_LARGE, TRY_AGAIN = 1000, 1002, 1007, 1009, 1013
PONGS = frame(PING, b"still there?")
"""The final frames of each case in which the connection remains open. These frames prove that the connection
works."""


@dataclass(frozen=True, slots=True)
class Case:
    """Frames of a client, the payloads of the received pongs, and the close code, if any."""

    sent: bytes
    pongs: tuple[bytes, ...] = ()
    code: int | None = None


def masked(data: bytes, mask: bytes = b"\x11\xfe\x00\x7a") -> bytes:
    """Return a short frame with a mask that changes the payload."""
    payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data[6:]))
    return data[:2] + mask + payload


def first(opcode: int, payload: bytes = b"") -> bytes:
    """Return the first frame of a fragmented message."""
    return frame(opcode, payload, is_last=False)


def pieces(opcode: int, payload: bytes, size: int) -> bytes:
    cuts = [*range(0, len(payload), size), len(payload)]
    parts = [payload[start:end] for start, end in pairwise(cuts)]
    sent = [first(CONTINUATION if number else opcode, part) for number, part in enumerate(parts[:-1])]
    return b"".join(sent) + frame(CONTINUATION if sent else opcode, parts[-1])


def with_bits(data: bytes, bits: int) -> bytes:
    return bytes([data[0] | bits << 4]) + data[1:]


def goodbye(code: int, reason: bytes = b"") -> bytes:
    return frame(CLOSE, code.to_bytes(2, "big") + reason)


SIZES = (0, 1, 125, 126, 127, 128, 65_535, LIMIT)
FRAMING = {
    **{f"1.1 a text of {size} bytes": Case(frame(TEXT, b"*" * size)) for size in SIZES},
    **{f"1.2 {size} bytes": Case(frame(BINARY, b"\xfe" * size)) for size in SIZES},
    "1.3 a mask that is not zero": Case(masked(frame(PING, b"who is there")), (b"who is there",)),
    "1.3 a length written longer than need be": Case(b"\x81\xfe\x00\x05" + bytes(4) + b"hello"),
    "2.5 a ping of 126 bytes": Case(frame(PING, b"x" * 126), code=WRONG),
    "3.1 a reserved bit": Case(with_bits(frame(TEXT), 4), code=WRONG),
    "4.1 an opcode that is none": Case(b"\x83\x80" + bytes(4), code=WRONG),
    "a frame without a mask": Case(b"\x81\x01x", code=WRONG),
    "1.3 a length written as long as can be": Case(b"\x82\xff" + (5).to_bytes(8, "big") + bytes(4) + b"hello"),
}
FRAGMENTS = {
    "5.1 a ping in two": Case(first(PING, b"a") + frame(CONTINUATION, b"b"), code=WRONG),
    "5.2 a pong in two": Case(first(PONG, b"a") + frame(CONTINUATION, b"b"), code=WRONG),
    "5.2 a goodbye in two": Case(first(CLOSE, b"\x03") + frame(CONTINUATION, b"\xe8"), code=WRONG),
    "5.3 a text in two": Case(pieces(TEXT, b"one and two", 6)),
    "5.4 bytes in two": Case(pieces(BINARY, b"\xfe" * 20, 10)),
    "5.6 a ping in between": Case(first(TEXT, b"a") + frame(PING, b"p") + frame(CONTINUATION, b"b"), (b"p",)),
    "5.7 pings in between": Case(
        first(TEXT, b"a")
        + frame(PING, b"1")
        + first(CONTINUATION, b"b")
        + frame(PING, b"2")
        + frame(CONTINUATION)
        + frame(PING, b"3"),
        (b"1", b"2", b"3"),
    ),
    "5.8 a pong in between": Case(first(TEXT, b"a") + frame(PONG, b"p") + frame(CONTINUATION, b"b")),
    "5.9 a continuation of nothing": Case(frame(CONTINUATION, b"x"), code=WRONG),
    "5.10 one that goes on": Case(first(CONTINUATION, b"x") + frame(TEXT, b"y"), code=WRONG),
    "5.12 one behind a whole message": Case(frame(TEXT, b"x") + frame(CONTINUATION, b"y"), code=WRONG),
    "5.15 one behind a message in two": Case(pieces(TEXT, b"ab", 1) + first(CONTINUATION, b"c"), code=WRONG),
    "5.18 a text within a text": Case(first(TEXT, b"x") + frame(TEXT, b"y"), code=WRONG),
    "5.18 bytes within a text": Case(first(TEXT, b"x") + first(BINARY, b"y"), code=WRONG),
    "5.19 fragments of nothing": Case(first(TEXT) + first(CONTINUATION) * 50 + frame(CONTINUATION)),
    "5.20 a thousand fragments": Case(pieces(TEXT, b"x" * 1000, 1)),
}
GREETING = "Hello-µ@ßöäüàá-UTF-8!! κόσμε 🏠".encode()
NOT_UTF8 = {
    "a lone continuation byte": b"\x80",
    "a first byte before a blank": b"\xe2 ",
    "an overlong slash": b"\xc0\xaf",
    "half of a surrogate pair": b"\xed\xa0\x80",
    "beyond Unicode": b"\xf4\x90\x80\x80",
}
UTF8 = {
    "6.1 empty texts": Case(frame(TEXT) + first(TEXT) + first(CONTINUATION) + frame(CONTINUATION)),
    "6.2 a text": Case(frame(TEXT, GREETING)),
    "6.2 cut at every byte": Case(pieces(TEXT, GREETING, 1)),
    "6.2 cut with pings within a letter": Case(
        first(TEXT, b"\xf0\x9f") + frame(PING, b"\x8f") + frame(CONTINUATION, b"\x8f\xa0"), (b"\x8f",)
    ),
    "6.3 wrong, cut at every byte": Case(pieces(TEXT, GREETING + b"\xed\xa0\x80" + GREETING, 1), code=NO_TEXT),
    "6.4 wrong before its end": Case(first(TEXT, GREETING + b"\xf4\x90"), code=NO_TEXT),
    "6.4 wrong in its second piece": Case(first(TEXT, GREETING) + first(CONTINUATION, b"\xff"), code=NO_TEXT),
    "6.5 the noncharacters": Case(frame(TEXT, "\ufffe\uffff\U0010ffff\x00".encode())),
    **{f"6.6 {what}": Case(frame(TEXT, b"a" + data), code=NO_TEXT) for what, data in NOT_UTF8.items()},
    **{f"6.7 {what} as bytes": Case(frame(BINARY, b"a" + data)) for what, data in NOT_UTF8.items()},
    "6.8 one text wrong, after bytes": Case(
        frame(BINARY, b"\xff") + frame(TEXT, b"a") + frame(TEXT, b"\xff"), code=NO_TEXT
    ),
}
LIMITS = {
    "9.1 a text that is too large": Case(frame(TEXT, b"*" * (LIMIT + 1)), code=TOO_LARGE),
    "9.2 bytes that are": Case(frame(BINARY, b"*" * (LIMIT + 1)), code=TOO_LARGE),
    "9.2 a stated length of 2^62 bytes": Case(b"\x82\xff" + (1 << 62).to_bytes(8, "big"), code=TOO_LARGE),
    "9.2 a stated length of 2^63 bytes": Case(b"\x82\xff" + (1 << 63).to_bytes(8, "big"), code=TOO_LARGE),
    "9.3 a large one in small pieces": Case(pieces(TEXT, b"*" * LIMIT, 64)),
    "9.4 in large pieces": Case(pieces(BINARY, b"*" * LIMIT, LIMIT - 1)),
    "9.5 too large in small pieces": Case(pieces(TEXT, b"*" * (LIMIT + 1), 64), code=TOO_LARGE),
    "9.6 too large in two": Case(first(BINARY, b"*" * LIMIT) + first(CONTINUATION, b"*"), code=TOO_LARGE),
    "9.7 full, and a ping in between": Case(
        first(BINARY, b"*" * LIMIT) + frame(PING, b"p" * 125) + frame(CONTINUATION), (b"p" * 125,)
    ),
    "9.8 full ones, one after another": Case(frame(BINARY, b"*" * LIMIT) * 20),
}
FAMILIES = {"framing": FRAMING, "fragments": FRAGMENTS, "text": UTF8, "limits": LIMITS}


async def expect(stream: Caller, case: Case) -> None:
    """Receive exactly the expected frames of the case, followed by a last pong or by the end of the connection."""
    for payload in case.pongs:
        assert await stream.frame() == (PONG, payload)
    if case.code is None:
        assert await stream.frame() == (PONG, b"still there?")
    else:
        opcode, payload = await stream.frame()
        assert (opcode, int.from_bytes(payload[:2], "big")) == (CLOSE, case.code)
        assert payload[2:].decode(), "the frame contains the reason"
        assert await stream.rest() == b""


@pytest.mark.parametrize("parts", [1, 25], ids=["at once", "in drops"])
@pytest.mark.parametrize("family", FAMILIES)
async def test_each_case(
    shared: App, quiet_log: pytest.LogCaptureFixture, subtests: pytest.Subtests, family: str, parts: int
) -> None:
    for what, case in FAMILIES[family].items():
        with subtests.test(what):
            sent = case.sent + PONGS
            step = max(1, len(sent) // parts)
            async with read_events(shared.url) as stream:
                for at in range(0, len(sent), step):
                    stream.send_at_once(sent[at : at + step])
                    await shared.hub.clock.sleep(0)
                await expect(stream, case)


class TestGoodbye:
    """Chapter 7: the hub answers a Close frame with the same code, and sends nothing afterwards."""

    @pytest.mark.parametrize("code", [1000, 1014, 4999])
    async def test_a_valid_close_code_is_echoed(self, shared: App, code: int) -> None:
        await self.part(shared, goodbye(code, b"bye"), code.to_bytes(2, "big") + b"bye")

    @pytest.mark.parametrize("code", [0, 1005, 65_535])
    async def test_an_invalid_close_code_is_1002(self, shared: App, code: int) -> None:
        async with read_events(shared.url) as stream:
            await stream.send(goodbye(code, b"bye") + PONGS)
            await expect(stream, Case(b"", code=WRONG))

    @pytest.mark.parametrize("payload", [b"", b"\x03\xe8", b"\x03\xe8" + b"x" * 123, b"\x03\xe8" + GREETING])
    async def test_a_close_reason_can_fill_a_frame(self, shared: App, payload: bytes) -> None:
        await self.part(shared, frame(CLOSE, payload), payload)

    @pytest.mark.parametrize(
        ("payload", "code"),
        [
            (b"\x03", WRONG),
            (b"\x03\xe8" + b"x" * 124, WRONG),
            (b"\x03\xe8\xce\xba\xff", NO_TEXT),
            (b"\x03\xe8\xf0\x9f", NO_TEXT),
        ],
        ids=["half a code", "too long", "not UTF-8", "half a letter"],
    )
    async def test_a_malformed_close_frame_ends_it_too(self, shared: App, payload: bytes, code: int) -> None:
        async with read_events(shared.url) as stream:
            await stream.send(frame(CLOSE, payload) + PONGS)
            opcode, sent = await stream.frame()
            assert (opcode, int.from_bytes(sent[:2], "big")) == (CLOSE, code)
            assert await stream.rest() == b""

    @pytest.mark.parametrize(
        "after",
        [goodbye(DONE), frame(PING, b"p"), frame(TEXT, b"x"), first(TEXT, b"x"), frame(TEXT, b"\xff"), b"\xff" * 100],
        ids=["another", "a ping", "a text", "half a text", "no text", "nothing like it"],
    )
    async def test_later_frames_are_ignored(self, shared: App, after: bytes) -> None:
        await self.part(shared, goodbye(DONE) + after, DONE.to_bytes(2, "big"))

    async def part(self, shared: App, sent: bytes, code: bytes) -> None:
        """Send a Close frame. Expect the code and the end of the connection."""
        async with read_events(shared.url) as stream:
            await stream.send(frame(PING, b"a") + sent)
            assert [await stream.frame(), await stream.frame()] == [(PONG, b"a"), (CLOSE, code)]
            assert await stream.rest() == b""


@pytest.mark.slow
async def test_while_a_flood_of_pings_is_answered_the_loop_turns(shared: App) -> None:
    async with read_events(shared.url) as stream:
        stream.send_at_once(frame(PING) * 20_000)
        _, turns = await turns_while(stream.frame, 20_000)
    assert turns >= 20_000 * len(frame(PING)) // MAX_READ_BYTES >= 100


async def test_unfinished_frames_of_all_connections_share_a_budget() -> None:
    async with open_app(limits=ApiLimits(frames_bytes=200_000)) as app, AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(read_events(app.url)) for _ in range(4)]
        for each in streams:
            await each.send(frame(BINARY, b"x" * 60_000)[:-1])
        answers = {asyncio.ensure_future(each.frame()): each for each in streams}
        [ended], waiting = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
        opcode, payload = await ended
        assert (opcode, int.from_bytes(payload[:2], "big")) == (CLOSE, TRY_AGAIN)
        assert await answers[ended].rest() == b""
        for answer in waiting:
            answer.cancel()
        await asyncio.wait(waiting)
        for answer in waiting:
            await answers[answer].send(b"x" + PONGS)
            assert await answers[answer].frame() == (PONG, b"still there?")
        async with read_events(app.url) as stream:
            await stream.send(frame(BINARY, b"x" * 60_000)[:-1])
            await stream.send(b"x" + PONGS)
            assert await stream.frame() == (PONG, b"still there?"), "finished frames need no budget"


async def test_compression_is_not_negotiated(shared: App) -> None:
    """Chapters 12 and 13: the hub ignores an offer of compression, and rejects a compressed frame."""
    for offer in ("permessage-deflate", "permessage-deflate; client_max_window_bits, x-webkit-deflate-frame"):
        async with call(shared.url) as caller:
            asked = request("GET", "/events", KEY, *UPGRADE, f"Sec-WebSocket-Extensions: {offer}")
            reply = await caller.ask(asked)
            assert (reply.status, reply.header("sec-websocket-extensions")) == (101, None)
            await caller.send(with_bits(frame(TEXT, b"\xf2\x48\xcd\xc9\xc9\x07\x00"), 4))
            await expect(caller, Case(b"", code=WRONG))
