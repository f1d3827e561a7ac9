"""Attacks by clients. The hub continues to answer other clients, and closes harmful connections."""

from __future__ import annotations

import asyncio
import itertools
import resource
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from appliance.api.app import ROUTES, build_app
from appliance.api.http_server.server import RESERVED_FILES, Server
from appliance.api.keyring import Keyring
from appliance.api.limits import ApiLimits
from appliance.clock import Clock
from appliance.tables.addresses import Address
from tests.api.caller import (
    BINARY,
    CLOSE,
    CONTINUATION,
    KEY,
    PING,
    TEXT,
    Caller,
    call,
    frame,
    read_events,
    request,
    shown,
)
from tests.fakes.app import LIGHT, MASTER, NO_MORE, App, open_app
from tests.fakes.patience import until

SLACK = 120.0
"""Extra seconds that a busy machine may need for almost instant work."""

MAX_CPU_SECS = 10.0
"""Maximum processor seconds of the hub and the test, including the floods, until other clients get answers."""


class Sockets:
    """Many connections that send these bytes and read nothing. Each connection has its own address."""

    def __init__(self, app: App) -> None:
        host, _, port = app.url.removeprefix("http://").partition(":")
        self._target = (host, int(port))
        self.open: list[socket.socket] = []

    async def dial(self, address: str, count: int, sentence: bytes = b"") -> None:
        """Open more connections from this address."""
        for number in range(count):
            one = socket.socket()
            self.open.append(one)
            one.setblocking(False)
            one.bind((address, 0))
            await asyncio.get_running_loop().sock_connect(one, self._target)
            if sentence:
                one.send(sentence)
            if number % 50 == 0:
                await asyncio.sleep(0)

    def count_closed(self) -> int:
        return sum(_is_closed(one) for one in self.open)

    def close(self) -> None:
        for one in self.open:
            one.close()


def _is_closed(one: socket.socket) -> bool:
    try:
        return one.recv(65536, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@asynccontextmanager
async def sockets_to(app: App) -> AsyncIterator[Sockets]:
    """Close all connections at the end of the test."""
    sockets = Sockets(app)
    try:
        yield sockets
    finally:
        sockets.close()


async def is_well(caller: Caller) -> None:
    """Check that a command, a listing, and a change are answered on this connection."""
    turn = b'{"capability":"power","action":"toggle"}'
    began = time.process_time()
    for asked in (
        request("GET", "/health"),
        request("POST", f"/devices/{LIGHT}/command", KEY, body=turn),
        request("GET", "/devices", KEY),
        request("POST", "/rooms", KEY, body=b'{"id":"a","name":"A"}'),
    ):
        assert (await caller.ask(asked, SLACK)).status == 200
    assert time.process_time() - began < MAX_CPU_SECS


async def answers_on_a_new_connection(app: App) -> None:
    async with call(app.url) as caller:
        await is_well(caller)


class TestTwoThousandSockets:
    @pytest.mark.slow
    async def test_one_address_leaves_connections_for_others(self, quiet_log: pytest.LogCaptureFixture) -> None:
        async with open_app() as app, call(app.url) as caller, sockets_to(app) as sockets:
            await sockets.dial("127.0.0.2", 2000)
            await is_well(caller)
            await answers_on_a_new_connection(app)
            await until(lambda: sockets.count_closed() == 1400, SLACK)
            figures = (await app.get("/diagnostics")).json["sockets"]
            assert figures["refused"] == 1400 and 601 <= figures["open"] <= 605

    async def test_the_limit_of_open_files_is_raised(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        async with open_app() as app:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
                for limits in (ApiLimits(), ApiLimits(connections=10)):
                    keyring = Keyring(app.hub.store.keys, Clock(), master_key=MASTER)
                    sanic_app = build_app(app.hub, keyring, limits, 10, **NO_MORE)
                    async with Server(sanic_app, Address(host="127.0.0.1", port=0), Clock(), work=app.hub):
                        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 1000 + RESERVED_FILES, "never fewer"
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def _send_16_mib(stream: Caller) -> None:
    await stream.send(b"\x82\xff" + (16 << 20).to_bytes(8, "big") + bytes(4))
    for _ in range(256):
        await stream.send(bytes(65536))


async def _send_16_mib_in_pieces(stream: Caller) -> None:
    await stream.send(frame(TEXT, b"x" * 4096, is_last=False))
    for _ in range(4096):
        await stream.send(frame(CONTINUATION, b"x" * 4096, is_last=False))


async def _send_nothing_in_pieces(stream: Caller) -> None:
    await stream.send(frame(TEXT, is_last=False))
    for _ in range(200):
        await stream.send(frame(CONTINUATION, is_last=False) * 1000)


async def _send_garbage(stream: Caller) -> None:
    for _ in range(64):
        await stream.send(b"\xff" * 65536)


async def _send_pings(stream: Caller) -> None:
    for _ in range(100):
        await stream.send(frame(PING, b"x" * 125) * 200)


async def _send_whole_messages(stream: Caller) -> None:
    for _ in range(64):
        await stream.send(frame(BINARY, bytes(65536)))


FLOODS: dict[str, tuple[Callable[[Caller], Coroutine[Any, Any, None]], int | None]] = {
    "a frame of 16 MiB": (_send_16_mib, 1009),
    "16 MiB in fragments": (_send_16_mib_in_pieces, 1009),
    "200,000 empty fragments": (_send_nothing_in_pieces, None),
    "nothing like a frame": (_send_garbage, 1002),
    "20,000 pings whose pongs nobody reads": (_send_pings, None),
    "64 messages as large as may be": (_send_whole_messages, None),
}
"""Floods of the event stream, and the close code, if there is one."""


@pytest.mark.slow
@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flooded_stream_delays_no_other_client(quiet_log: pytest.LogCaptureFixture, flood: str) -> None:
    send, code = FLOODS[flood]
    async with open_app() as app, call(app.url) as caller, read_events(app.url) as other:
        async with read_events(app.url) as stream:
            sending = asyncio.create_task(send(stream))
            for _ in range(5):
                await is_well(caller)
            assert (await other.event())["type"] == "device.state_changed"
            if code is not None:
                while (collected := await stream.frame())[0] == TEXT:
                    pass
                assert (collected[0], int.from_bytes(collected[1][:2], "big")) == (CLOSE, code)
            await asyncio.wait([sending], timeout=0 if code is None else SLACK)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        await shown(app, "events", "readers", 1, SLACK)


EXPECTED_HEADERS = {
    "content-type",
    "content-length",
    "connection",
    "www-authenticate",
    "upgrade",
    "sec-websocket-version",
}
"""Headers that a response may have without CORS."""

READABLE = [route.path for route in ROUTES if route.method == "GET" and "<" not in route.path]


async def test_no_answer_is_compressed_or_names_the_server(app: App) -> None:
    for path, token in itertools.product([*READABLE, "/nothing"], (KEY, "X: y")):
        async with call(app.url) as caller:
            reply = await caller.ask(request("GET", path, token, "Accept-Encoding: gzip, deflate, br, zstd"))
        received = {name for name, _ in reply.headers}
        of_file = {"cache-control", "content-disposition"} if path.endswith("/backup") else set()
        assert received <= EXPECTED_HEADERS | of_file, (path, received)
        assert len(reply.body) == int(reply.header("content-length") or 0), path
