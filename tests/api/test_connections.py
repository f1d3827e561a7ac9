"""Connections: their maximum number, and which idle connection is closed to make room for a new one."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import resource
import socket
import struct
import time
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sanic.compat import Header

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.api.http_server.connection import READ_BYTES, Connection
from appliance.api.http_server.connection_limiter import (
    EMPTY_CONNECTIONS_EXPIRED_PER_SEC,
    MAX_EMPTY_CONNECTIONS,
    MAX_SPARED_CONNECTIONS,
    ConnectionLimiter,
)
from appliance.api.http_server.http1 import StrictHttp1
from appliance.api.http_server.listener import MAX_ACCEPTS_AT_ONCE, Listener, address_of
from appliance.api.http_server.proxies import MAX_HOPS, TrustedProxies
from appliance.api.http_server.websocket import WebSocket
from appliance.api.http_server.websocket_protocol import StrictProtocol
from appliance.api.limits import ApiLimits
from appliance.event_loop import MAX_EVENTS_PER_TURN, MAX_RESUMED_PER_TURN, run
from tests.api.caller import CLOSE, KEY, TEXT, UPGRADE, Caller, call, frame, request, shown
from tests.attacks.test_clients import SLACK, sockets_to
from tests.fakes.app import App, open_app
from tests.fakes.patience import until
from tests.fakes.process import configure, light_section, running


@dataclass(eq=False)
class Fake:
    is_idle: bool = True
    is_aborted: bool = field(default=False)

    def abort(self) -> None:
        self.is_aborted = True


class Closing(asyncio.Protocol):
    """A connection that ends at once."""

    def connection_made(self, transport: Any) -> None:
        transport.close()


def fill(limiter: ConnectionLimiter, **counts: int) -> dict[str, list[Fake]]:
    """Create connections for each peer, one peer after the other."""
    made: dict[str, list[Fake]] = {}
    for peer, count in counts.items():
        made[peer] = [Fake() for _ in range(count)]
        for each in made[peer]:
            assert limiter.make_room(peer) is None
            limiter.add(peer, each)
    return made


def test_a_client_has_the_same_address_over_ipv4_and_ipv6() -> None:
    for address in ("192.0.2.7", "2001:db8::ffff:1", "fe80::1"):
        assert address_of((address, 1)) == address_of((address.replace("192", "::ffff:192"), 1, 0, 0)) == address


class TestTable:
    def test_the_peer_with_the_most_connections_loses_its_oldest_idle_one(self) -> None:
        limiter = ConnectionLimiter(capacity=10, per_peer=8, now=lambda: 0.0)
        made = fill(limiter, a=6, b=4)
        made["a"][0].is_idle = False
        assert limiter.make_room("c") is None
        assert [each.is_aborted for each in made["a"]] == [False, True, False, False, False, False]
        assert not any(each.is_aborted for each in made["b"])
        assert (limiter.count, limiter.evicted, limiter.refused) == (9, 1, 0)

    def test_a_request_makes_a_connection_the_last_candidate_for_closing(self) -> None:
        limiter = ConnectionLimiter(capacity=3, per_peer=3, now=lambda: 0.0)
        made = fill(limiter, a=3)
        limiter.refresh("a", made["a"][0])
        assert limiter.make_room("b") is None
        assert [each.is_aborted for each in made["a"]] == [False, True, False]

    def test_an_address_with_more_than_half_of_all_connections_gets_no_more(self) -> None:
        limiter = ConnectionLimiter(capacity=10, per_peer=10, now=lambda: 0.0)
        made = fill(limiter, a=6, b=4)
        assert limiter.make_room("a") == "the limit for all addresses is reached (api.max_connections)"
        assert limiter.make_room("b") is None and made["a"][0].is_aborted
        assert limiter.refused == 1

    def test_busy_connections_are_not_closed(self) -> None:
        limiter = ConnectionLimiter(capacity=4, per_peer=3, now=lambda: 0.0)
        made = fill(limiter, a=3, b=1)
        for each in (*made["a"], *made["b"]):
            each.is_idle = False
        assert limiter.make_room("c")
        assert limiter.refused == 1 and limiter.count == 4

    def test_a_flood_of_busy_connections_loses_the_least_recently_used_one(self) -> None:
        """Otherwise, a client that sends no body or reads no answer would lock out all others."""
        limiter = ConnectionLimiter(capacity=100, per_peer=60, now=lambda: 0.0)
        made = fill(limiter, a=MAX_SPARED_CONNECTIONS + 8, b=60)
        for each in (*made["a"], *made["b"]):
            each.is_idle = False
        limiter.refresh("b", made["b"][0])
        assert limiter.make_room("c") is None
        assert [each for each in (*made["a"], *made["b"]) if each.is_aborted] == [made["b"][1]]

    def test_idle_connections_of_many_addresses_make_room(self) -> None:
        """The peer with the most connections may be a page with event streams, which are never idle."""
        limiter = ConnectionLimiter(capacity=40, per_peer=30, now=lambda: 0.0)
        made = fill(limiter, page=4, **{f"a{number}": 1 for number in range(36)})
        for each in made["page"]:
            each.is_idle = False
        assert limiter.make_room("c") is None
        assert [peer for peer, [*each] in made.items() if any(one.is_aborted for one in each)] == ["a0"]

    def test_a_peer_has_no_more_than_its_own_limit(self) -> None:
        limiter = ConnectionLimiter(capacity=10, per_peer=3, now=lambda: 0.0)
        made = fill(limiter, a=3)
        assert limiter.make_room("a") == "a has reached the limit for one address (api.max_connections_per_peer)"
        assert limiter.make_room("b") is None
        limiter.remove("a", made["a"][0])
        assert limiter.make_room("a") is None

    def test_a_closed_connection_is_not_counted_twice(self) -> None:
        limiter = ConnectionLimiter(capacity=10, per_peer=3, now=lambda: 0.0)
        [one] = fill(limiter, a=1)["a"]
        for _ in range(2):
            limiter.remove("a", one)
        limiter.refresh("a", one)
        assert limiter.count == 0 and not limiter._open


@pytest.mark.slow
def test_only_a_peer_that_connects_repeatedly_without_a_request_is_rejected() -> None:
    now = [5.0]
    limiter = ConnectionLimiter(capacity=10, per_peer=10, now=lambda: now[0])

    def come_and_go() -> bool:
        if may_come := (refusal := limiter.make_room("comes and goes")) is None:
            one = Fake()
            limiter.add("comes and goes", one)
            limiter.remove("comes and goes", one)
        assert may_come or refusal == "comes and goes opened 600 or more connections without a request"
        return may_come

    for number in range(3 * MAX_EMPTY_CONNECTIONS):
        one = Fake()
        assert limiter.make_room("asks") is None
        limiter.add("asks", one)
        limiter.refresh("asks", one)
        limiter.remove("asks", one)
        assert come_and_go() == (number < MAX_EMPTY_CONNECTIONS)
    assert limiter.refused == 2 * MAX_EMPTY_CONNECTIONS
    let_in = 0
    for _ in range(4000):  # 4,000 rounds are ten seconds of a flood
        now[0] += 1 / 400
        let_in += come_and_go()
    assert let_in == pytest.approx(10 * EMPTY_CONNECTIONS_EXPIRED_PER_SEC, abs=2), (
        "a flood that goes on gets no fresh start"
    )
    now[0] += MAX_EMPTY_CONNECTIONS / EMPTY_CONNECTIONS_EXPIRED_PER_SEC + 1
    assert come_and_go() and not limiter._without_request
    assert list(limiter._empty) == ["comes and goes"]


ORDER = b'{"capability":"power","action":"toggle"}'
LIGHT_COMMAND = "/devices/elgato_lights:light:0/command"
ENDS: dict[str, list[bytes]] = {
    "no request": [],
    "half a head": [b"GET / HTTP/1.1\r\nHo"],
    "a malformed head": [b"GET / HTTP/1.1\r\nHo st: x\r\n\r\n"],
    "no key": [request("GET", "/rooms")],
    "no key, and the end": [request("GET", "/rooms", "Connection: close")],
    "no such path": [request("GET", "/nothing", KEY)],
    "an answer": [request("GET", "/rooms", KEY), request("GET", "/devices", KEY)],
    "a body that is not JSON": [request("POST", "/rooms", KEY, body=b"{")],
    "half a body": [request("POST", "/rooms", KEY, "Content-Length: 1000") + b"{"],
    "half a chunk": [request("POST", "/rooms", KEY, "Transfer-Encoding: chunked") + b"ff\r\n{"],
    "half a body without a key": [request("POST", "/rooms", "Content-Length: 1000") + b"{"],
    "a command": [request("POST", LIGHT_COMMAND, KEY, body=ORDER)],
    "a command, and more requests than are read": [
        request("POST", LIGHT_COMMAND, KEY, body=ORDER) + request("GET", "/health") * (READ_BYTES // 10)
    ],
    "no key for the stream": [request("GET", "/events", *UPGRADE)],
    "a handshake that fails": [request("GET", "/events", KEY)],
    "a stream": [request("GET", "/events", KEY, *UPGRADE)],
    "a stream that is closed": [request("GET", "/events", KEY, *UPGRADE), frame(CLOSE, b"\x03\xe8")],
    "a stream with a broken frame": [request("GET", "/events", KEY, *UPGRADE), b"\xff" * 20],
    "a stream with half a frame": [request("GET", "/events", KEY, *UPGRADE), frame(TEXT, b"x" * 60_000)[:-1]],
    "a stream with half a message": [request("GET", "/events", KEY, *UPGRADE), frame(TEXT, b"x", is_last=False)],
}


def list_kept(app: App) -> list[str]:
    """Return the connections in memory and their parts, not including those of the requesting client."""
    loop = asyncio.get_running_loop()
    kinds = (Connection, StrictHttp1, WebSocket, StrictProtocol)
    found = [each for each in gc.get_objects() if isinstance(each, kinds)]
    mine = [each for each in found if getattr(each, "loop", getattr(each, "_loop", loop)) is loop]
    connections = [each for each in mine if isinstance(each, Connection)]
    is_open = [each for each in connections if each.conn_info and not each.conn_info.lost]
    https = [each.http for each in is_open]
    closed: list[object] = [each for each in mine if each not in is_open and each not in https]
    transports = [each for each in gc.get_objects() if isinstance(each, asyncio.Transport) and each.is_closing()]
    port = int(app.url.rpartition(":")[2])
    closed += [each for each in transports if (each.get_extra_info("sockname") or ("", 0))[1] == port]
    return [type(each).__name__ for each in closed]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(
            sent,
            id=name,
            marks=[] if name in ("an answer", "half a body", "a stream with half a frame") else [pytest.mark.slow],
        )
        for name, sent in ENDS.items()
    ],
)
async def test_a_closed_connection_is_freed_at_once_without_the_collector(sent: list[bytes]) -> None:
    async with open_app(limits=ApiLimits(body_secs=0.3)) as app:
        gc.collect()
        gc.disable()
        try:
            for is_reset in (False, True):
                for _ in range(5):
                    await end_connection(app, sent, is_reset=is_reset)
                await shown(app, "sockets", "open", 1)
                await until(lambda: not list_kept(app))  # the garbage collector is off
        finally:
            gc.enable()


async def test_a_connection_that_is_lost_just_before_the_answer_is_freed_without_the_collector() -> None:
    async with open_app() as app, call(app.url) as caller:
        gc.collect()
        gc.disable()
        try:
            await caller.ask(request("GET", "/rooms", KEY))
            port = caller.socket.getsockname()[1]
            connections = [each for each in gc.get_objects() if isinstance(each, Connection)]
            [connection] = [each for each in connections if each.conn_info and each.conn_info.client_port == port]
            connection.data_received(request("GET", "/rooms", KEY))
            assert connection.transport is not None
            connection.transport.abort()  # the answer is ready before `connection_lost` is called
            del connection, connections
            await until(lambda: not list_kept(app))
        finally:
            gc.enable()


async def end_connection(app: App, sent: list[bytes], *, is_reset: bool) -> None:
    async with call(app.url) as caller:
        for each in sent:
            await caller.send(each)
            await asyncio.sleep(0.005)
        if is_reset:
            caller.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_few_pipelined_requests_of_all_clients_are_served_per_turn() -> None:
    async def count_most() -> int:
        async with open_app() as app:
            host, port = app.url.removeprefix("http://").split(":")
            with ExitStack() as stack:
                clients = [stack.enter_context(socket.create_connection((host, int(port)))) for _ in range(150)]
                for each in clients:
                    each.sendall(request("GET", "/health") * 4)
                    each.setblocking(False)
                most = received = 0
                while received < 4 * len(clients):
                    await asyncio.sleep(0)
                    new = sum(map(_count_answers, clients))
                    most, received = max(most, new), received + new
        return most

    assert run(count_most()) <= MAX_EVENTS_PER_TURN + MAX_RESUMED_PER_TURN


def _count_answers(client: socket.socket) -> int:
    try:
        return client.recv(1 << 16).count(b"HTTP/1.1 200")
    except BlockingIOError:
        return 0


async def test_a_request_that_is_being_answered_is_not_idle() -> None:
    async with open_app(limits=ApiLimits(connections=40)) as app, sockets_to(app) as sockets:
        app.light.faults.delay = 0.5
        await sockets.dial("127.0.0.9", 39)
        body = b'{"capability":"power","action":"toggle"}'
        async with call(app.url) as waiting:
            await waiting.send(request("POST", "/devices/elgato_lights:light:0/command", KEY, body=body))
            await until(lambda: app.light.requests)
            await sockets.dial("127.0.0.8", 60)
            assert (await waiting.reply(SLACK)).status == 200


async def test_without_file_descriptors_a_flood_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with open_app(adapters={}) as app, call(app.url) as caller:
        host, port = app.url.removeprefix("http://").split(":")
        clients = [socket.socket() for _ in range(300)]
        with socket.socket() as probe:
            free = probe.fileno() + 4
        try:
            for each in clients:
                each.setblocking(False)
                each.connect_ex((host, int(port)))
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
            await asyncio.sleep(1.0)
            assert (await caller.ask(request("GET", "/rooms", KEY), SLACK)).status == 200
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for each in clients:
                each.close()
        async with asyncio.timeout(SLACK):
            while (await app.get("/diagnostics")).json["sockets"]["open"] > 3:  # noqa: ASYNC110 - no event to await
                await asyncio.sleep(0.05)
        async with call(app.url) as another:
            assert (await another.ask(request("GET", "/health"), SLACK)).status == 200
    lines = [each for each in caplog.records if "refused" in each.getMessage()]
    assert len(lines) == 1 and lines[0].exc_info is None
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


@pytest.mark.slow
async def test_with_few_descriptors_other_parts_keep_theirs_in_a_flood(tmp_path: Path) -> None:
    async with LightSimulator() as light:
        configure(tmp_path, light_section(light.url))
        async with running(tmp_path, max_files=200) as hub:
            await hub.ready()
            host, port = hub.url.removeprefix("http://").split(":")
            clients = [socket.socket() for _ in range(400)]
            try:
                for each in clients:
                    each.setblocking(False)
                    each.connect_ex((host, int(port)))
                for number in range(20):
                    assert await hub.post("/rooms", id="den", name=f"Den {number}") == 200
                    body = {"capability": "power", "action": "toggle"}
                    assert await hub.post("/devices/elgato_lights:light:0/command", **body) == 200
                sockets = (await hub.get("/diagnostics"))["sockets"]
            finally:
                for each in clients:
                    each.close()
            assert sockets["open"] <= 100 and sockets["refused"] >= 300
            log = hub.log.read_text()
            assert "Traceback" not in log and len(log.splitlines()) < 30, log


BEHIND = TrustedProxies(map(ipaddress.ip_network, ("127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8")))

NAMED = {
    (("x-forwarded-for", "203.0.113.7"),): "203.0.113.7",
    (("x-forwarded-for", "6.6.6.6, 203.0.113.7"),): "203.0.113.7",
    (("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "203.0.113.7, 10.1.2.3")): "203.0.113.7",
    (("x-forwarded-for", "garbage, 203.0.113.7:51000 ,10.1.2.3"),): "203.0.113.7",
    (("x-forwarded-for", "[2001:db8::7]:443, [fd00::1]"),): "2001:db8::7",
    (("x-forwarded-for", "2001:DB8:0::7"),): "2001:db8::7",
    (("x-forwarded-for", "::ffff:203.0.113.7"),): "203.0.113.7",
    (("x-forwarded-for", "10.0.0.9"),): "10.0.0.9",
    (("forwarded", 'for=6.6.6.6, for="[2001:db8::7]:4711";proto=http;by=10.0.0.1'),): "2001:db8::7",
    (("forwarded", "For=203.0.113.7; host=x , for=10.1.1.1"),): "203.0.113.7",
    (("forwarded", "for=203.0.113.7;"), ("x-forwarded-for", "203.0.113.7")): "203.0.113.7",
    (("forwarded", "for=6.6.6.6"), ("x-forwarded-for", "203.0.113.7")): None,
    (("forwarded", 'for="203.0.113.7'),): None,
    (("forwarded", "by=10.0.0.1"),): None,
    (("x-forwarded-for", "203.0.113.7, unknown"),): None,
    (("x-forwarded-for", "203.0.113.7, _hidden, 10.0.0.1"),): None,
    (("x-forwarded-for", "203.0.113.7, 999.1.1.1"),): None,
    (("x-forwarded-for", ""),): None,
    (("x-forwarded-for", "203.0.113.7" + ", 10.0.0.1" * (MAX_HOPS - 1)),): "203.0.113.7",
    (("x-forwarded-for", "203.0.113.7" + ", 10.0.0.1" * MAX_HOPS),): None,
    (("forwarded", "for=203.0.113.7" + ", for=10.0.0.1" * MAX_HOPS),): None,
    (): None,
}


@pytest.mark.parametrize("stated", NAMED, ids=str)
def test_a_request_over_a_proxy_counts_for_its_last_untrusted_hop(stated: tuple[tuple[str, str], ...]) -> None:
    assert BEHIND.client_of("127.0.0.1", Header(stated)) == (NAMED[stated] or "a client of 127.0.0.1")


def test_only_configured_proxies_are_trusted() -> None:
    trusted = ("127.0.0.1", "::ffff:127.0.0.1", "10.255.0.1", "::1", "fd12::1")
    assert [BEHIND.trusts(each) for each in (*trusted, "127.0.0.2", "11.0.0.1", "2001:db8::1", "")] == [True] * 5 + [
        False
    ] * 4
    assert not TrustedProxies(()).trusts("127.0.0.1")


async def test_unfinished_requests_of_one_client_do_not_block_others_at_the_same_proxy() -> None:
    """If a client adds hops to the headers, its address does not change."""
    limits = ApiLimits(connections_per_peer=5, trusted_proxies=(ipaddress.ip_network("127.0.0.1"),))
    async with open_app(limits=limits) as app, AsyncExitStack() as stack:
        callers = [await stack.enter_async_context(call(app.url)) for _ in range(12)]
        for number, caller in enumerate(callers):
            hops = f"X-Forwarded-For: 6.6.6.{number}, 203.0.113.7"
            await caller.send(request("POST", "/rooms", KEY, hops, "Content-Length: 9"))
        for caller in callers[5:]:  # the event loop accepts connections in the order in which the clients connected
            refused = await caller.reply()
            assert (refused.status, refused.json["code"]) == (429, "rate_limited")
            assert "203.0.113.7 has the maximum number of connections for one address" in refused.json["error"]
        async with call(app.url) as other:
            reply = await other.ask(request("GET", "/rooms", KEY, "X-Forwarded-For: 203.0.113.8"))
            assert reply.status == 200
        async with call(app.url) as same:
            reply = await same.ask(request("GET", "/rooms", KEY, "X-Forwarded-For: 203.0.113.7"))
            assert reply.status == 429


async def test_headers_from_other_addresses_are_ignored() -> None:
    async with open_app(limits=ApiLimits(connections_per_peer=5)) as app, AsyncExitStack() as stack:
        callers = [await stack.enter_async_context(call(app.url)) for _ in range(6)]
        asked = [request("GET", "/rooms", KEY, f"X-Forwarded-For: 203.0.113.{number}") for number in range(6)]
        answers = await asyncio.gather(*map(Caller.ask, callers, asked), return_exceptions=True)
        assert any(isinstance(each, OSError | EOFError) for each in answers), "all count to one address"


def test_connections_are_accepted_while_hundreds_of_sockets_are_ready() -> None:
    """In each turn, the loop reads only some of the ready sockets. The listening socket may be the last of them."""

    async def count_turns() -> int:
        loop, limiter, clients = asyncio.get_running_loop(), ConnectionLimiter(99, 99, time.monotonic), 64
        new_connection: Any = lambda _: Closing()  # noqa: E731
        with socket.create_server(("127.0.0.1", 0)) as listening, ExitStack() as stack:
            listening.setblocking(False)
            for _ in range(200):
                ready, other = map(stack.enter_context, socket.socketpair())
                other.send(b"x")
                loop.add_reader(ready, lambda: None)
                stack.callback(loop.remove_reader, ready)
            async with Listener(listening, limiter, new_connection):
                for _ in range(clients):
                    stack.enter_context(socket.create_connection(listening.getsockname()))
                turns = 0
                while limiter.count < clients:
                    await asyncio.sleep(0)
                    turns += 1
                await asyncio.sleep(0.01)
        return turns

    assert run(count_turns()) <= 200 / MAX_EVENTS_PER_TURN + 64 / MAX_ACCEPTS_AT_ONCE + 2


def test_a_flood_of_connections_is_accepted_in_equal_batches() -> None:
    """If the selector reports the listening socket while a batch is scheduled, no second batch joins this turn."""

    async def count_most() -> int:
        limiter, clients = ConnectionLimiter(999, 999, time.monotonic), 10 * MAX_ACCEPTS_AT_ONCE
        new_connection: Any = lambda _: asyncio.Protocol()  # noqa: E731
        with socket.create_server(("127.0.0.1", 0), backlog=clients) as listening, ExitStack() as stack:
            listening.setblocking(False)
            for _ in range(clients):
                stack.enter_context(socket.create_connection(listening.getsockname()))
            most = 0
            async with Listener(listening, limiter, new_connection):
                while (before := limiter.count) < clients:
                    await asyncio.sleep(0)
                    most = max(most, limiter.count - before)
        return most

    assert asyncio.run(count_most()) <= 2 * MAX_ACCEPTS_AT_ONCE
