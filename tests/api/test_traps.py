"""Pitfalls of Sanic 25.12, and the hub's behaviour that avoids them."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from sanic import Sanic

from appliance.api.app import build_app
from appliance.api.http_server.connection import DISCONNECT_CHECK_SECS, LINGER_SECS, READ_BYTES
from appliance.api.http_server.server import Server
from appliance.api.keyring import Keyring
from appliance.api.limits import ApiLimits
from appliance.clock import Clock
from appliance.home.events import RoomAdded, SystemErrorReported
from appliance.home.model import Room
from appliance.tables.addresses import Address
from tests.api.caller import CLOSE, KEY, PING, TEXT, UPGRADE, Caller, call, read_events, request, shown
from tests.fakes.app import MASTER, NO_MORE, App, open_app
from tests.fakes.patience import until
from tests.fakes.registry import make

pytestmark = pytest.mark.slow

LIGHT = "elgato_lights:light:0"
TURN_ON = b'{"capability": "power", "action": "on"}'
GOING_AWAY, INTERNAL_ERROR = b"\x03\xe9", b"\x03\xf3"

BEYOND_READ_BUFFER = request("GET", "/health") * (READ_BYTES // 10)
"""More requests than a connection reads while another request runs."""

SLACK = 20.0
"""Extra seconds for a busy machine."""


class LateClock(Clock):
    """The machine's clock, with an adjustable number of seconds added."""

    late_secs = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.late_secs


@asynccontextmanager
async def ending(limits: ApiLimits) -> AsyncIterator[tuple[App, AsyncExitStack]]:
    """Run a hub. Yield the hub, and an exit stack that stops it."""
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(open_app(limits=limits)), stack


async def stop(stack: AsyncExitStack, within: float) -> float:
    """Stop the hub within this time, and return the seconds that it took."""
    began = time.monotonic()
    async with asyncio.timeout(within):
        await stack.aclose()
    return time.monotonic() - began


class TestStopping:
    async def test_an_idle_hub_ends_at_once(self) -> None:
        async with ending(ApiLimits()) as (app, stack), call(app.url) as silent, call(app.url) as idle:
            assert (await idle.ask(request("GET", "/health"))).status == 200
            assert await stop(stack, SLACK) < ApiLimits().stop_secs
            assert await silent.rest() == await idle.rest() == b""

    async def test_a_request_in_progress_is_answered(self, quiet_log: pytest.LogCaptureFixture) -> None:
        async with ending(ApiLimits()) as (app, stack), call(app.url) as caller:
            app.light.faults.delay = 0.1
            await caller.send(request("POST", f"/devices/{LIGHT}/command", KEY, body=TURN_ON))
            await until(lambda: app.light.writes)
            assert await stop(stack, ApiLimits().stop_secs + SLACK) < ApiLimits().stop_secs
            assert (await caller.reply()).json == {"status": "ok"}
            assert await caller.rest() == b""

    async def test_further_requests_of_a_busy_connection_delay_no_stop(
        self, quiet_log: pytest.LogCaptureFixture
    ) -> None:
        async with ending(ApiLimits()) as (app, stack), call(app.url) as caller:
            app.light.faults.delay = 0.1
            await caller.send(request("POST", f"/devices/{LIGHT}/command", KEY, body=TURN_ON) * 100)
            await until(lambda: app.light.writes)
            assert await stop(stack, ApiLimits().stop_secs + SLACK) < ApiLimits().stop_secs
            assert (await caller.reply()).json == {"status": "ok"}
            assert await caller.rest() == b""

    async def test_a_slow_command_gets_an_error_when_the_hub_stops(self, quiet_log: pytest.LogCaptureFixture) -> None:
        async with ending(ApiLimits(stop_secs=0.2)) as (app, stack), call(app.url) as caller:
            app.light.faults.silent = True
            await caller.send(request("POST", f"/devices/{LIGHT}/command", KEY, body=TURN_ON))
            await until(lambda: app.light.writes or ("GET", "/elgato/lights") in app.light.requests)
            assert await stop(stack, SLACK) >= 0.2
            answer = await caller.reply()
            assert (answer.status, answer.json["error"][:23]) == (400, "the hub is stopping; th")
            assert await caller.rest() == b""

    async def test_the_time_for_requests_begins_with_the_stop_request(
        self, quiet_log: pytest.LogCaptureFixture
    ) -> None:
        clock = LateClock()
        async with AsyncExitStack() as stack:
            app = await stack.enter_async_context(open_app(limits=ApiLimits(stop_secs=3600), clock=clock))
            caller = await stack.enter_async_context(call(app.url))
            app.light.faults.silent = True
            await caller.send(request("POST", f"/devices/{LIGHT}/command", KEY, body=TURN_ON))
            await until(lambda: app.light.writes or ("GET", "/elgato/lights") in app.light.requests)
            app.hub.record_stop()
            clock.late_secs = 3600
            await stop(stack, SLACK)

    @pytest.mark.parametrize(
        "half",
        [
            b"GET /hea",
            b"POST /rooms HTTP/1.1\r\nHost: lares\r\n",
            request("POST", "/rooms", KEY, "Content-Length: 10") + b"{",
            request("POST", "/rooms", KEY, "Transfer-Encoding: chunked") + b"5\r\n{",
            request("POST", "/rooms", "Content-Length: 10") + b"{",
        ],
        ids=["half a line", "half a head", "half a body", "half a chunk", "half a body after its answer"],
    )
    async def test_incomplete_requests_delay_no_stop(self, quiet_log: pytest.LogCaptureFixture, half: bytes) -> None:
        async with ending(ApiLimits(stop_secs=0.5)) as (app, stack), call(app.url) as caller:
            await caller.send(half)
            assert (await app.get("/health")).status == 200
            await stop(stack, SLACK)
            await caller.rest()

    async def test_three_hundred_streams_get_a_close_frame(self, quiet_log: pytest.LogCaptureFixture) -> None:
        async with AsyncExitStack() as readers, ending(ApiLimits(stop_secs=0.5)) as (app, stack):
            streams = [await readers.enter_async_context(read_events(app.url)) for _ in range(299)]
            stuck = await readers.enter_async_context(read_events(app.url, small=True))
            stuck.stop_reading()
            for _ in range(300):
                app.hub.bus.publish(SystemErrorReported(message="x" * 1500))
            await asyncio.gather(*(take(stream, 300) for stream in streams))
            assert await stop(stack, 0.5 + SLACK) >= 0.5, "it waited for the one"
            goodbyes = await asyncio.gather(*(next_frame(stream) for stream in streams))
            assert goodbyes == [(CLOSE, GOING_AWAY)] * 299

    async def test_a_stop_leaves_no_task_or_connection(self) -> None:
        tasks, apps = len(asyncio.all_tasks()), set(Sanic._app_registry)
        async with ending(ApiLimits(stop_secs=0.2)) as (app, stack):
            async with read_events(app.url), call(app.url) as caller:
                await caller.send(b"GET /hea")
                await stop(stack, SLACK)
            with pytest.raises(OSError):
                async with call(app.url):
                    pass
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
        assert set(Sanic._app_registry) == apps


async def next_frame(stream: Caller) -> tuple[int, bytes]:
    """Return the next frame that is not a ping."""
    while (frame := await stream.frame())[0] == PING:
        pass
    return frame


async def take(stream: Caller, count: int) -> None:
    for _ in range(count):
        assert (await next_frame(stream))[0] == TEXT


class TestLettingGo:
    async def test_a_missing_body_is_408_and_closes_the_connection(self, quiet_log: pytest.LogCaptureFixture) -> None:
        async with open_app(limits=ApiLimits(body_secs=0.1)) as app:
            for path in ("/rooms", "/groups", f"/devices/{LIGHT}/command", f"/devices/{LIGHT}/room"):
                for length in ("Content-Length: 10", "Transfer-Encoding: chunked"):
                    async with call(app.url) as caller:
                        reply = await caller.ask(request("POST", path, KEY, length))
                        assert (reply.status, reply.header("connection")) == (408, "close")
                        assert reply.json == {
                            "error": "the body did not arrive within 0.1 s",
                            "code": "request_timeout",
                        }
                        assert await caller.rest() == b""

    async def test_a_trickling_body_is_408_too(self) -> None:
        async with open_app(limits=ApiLimits(body_secs=0.3)) as app, call(app.url) as caller:
            await caller.send(request("POST", "/rooms", KEY, "Content-Length: 60000"))
            trickle = asyncio.create_task(trickle_into(caller))
            assert (await caller.reply()).status == 408
            assert await caller.rest() == b""
            trickle.cancel()

    async def test_an_unwanted_missing_body_ends_the_connection(self, quiet_log: pytest.LogCaptureFixture) -> None:
        async with open_app(limits=ApiLimits(body_secs=0.3)) as app, call(app.url) as caller:
            assert (await caller.ask(request("GET", "/health", "Content-Length: 10"))).status == 200
            assert await caller.rest(0.3 + LINGER_SECS + SLACK) == b""

    async def test_a_body_that_floods_after_its_answer_ends_the_connection(self) -> None:
        async with open_app(limits=ApiLimits(body_bytes=10_000)) as app, call(app.url) as caller:
            assert (await caller.ask(request("POST", "/rooms", "Content-Length: 1000000000"))).status == 401
            caller.send_at_once(b"x" * 50_000)
            assert await caller.rest() == b""

    @pytest.mark.parametrize("is_chunked", [False, True], ids=["with its length", "in chunks"])
    async def test_a_missing_body_without_a_key_ends_the_connection(self, *, is_chunked: bool) -> None:
        begun = request("POST", "/rooms", "Transfer-Encoding: chunked" if is_chunked else "Content-Length: 60000")
        async with open_app() as app, call(app.url) as caller:
            await caller.send(begun + (b"4\r\n    \r\n" if is_chunked else b" " * 30_000))
            reply = await caller.reply()
            assert (reply.status, reply.header("connection")) == (401, "close")
            assert await caller.rest(LINGER_SECS + SLACK) == b""

    async def test_a_whole_body_without_a_key_keeps_the_connection(self) -> None:
        async with open_app() as app, call(app.url) as caller:
            assert (await caller.ask(request("POST", "/rooms", body=b" " * 5_000))).status == 401
            assert (await caller.ask(request("GET", "/health"))).status == 200

    async def test_a_trickling_head_is_408(self, quiet_log: pytest.LogCaptureFixture) -> None:
        async with open_app(limits=ApiLimits(head_secs=0.3)) as app, call(app.url) as caller:
            await caller.send(b"GET /health HTTP/1.1\r\nX: ")
            trickle = asyncio.create_task(trickle_into(caller))
            reply = await caller.reply(0.3 + SLACK)
            assert (reply.status, reply.json) == (
                408,
                {"error": "the request line and headers did not arrive within 0.3 s", "code": "request_timeout"},
            )
            assert await caller.rest() == b""
            trickle.cancel()

    async def test_a_late_head_is_408_even_after_sanics_timer(self, quiet_log: pytest.LogCaptureFixture) -> None:
        async with open_app(limits=ApiLimits(head_secs=0.3)) as app, call(app.url) as caller:
            await caller.send(b"GET /health HTTP/1.1\r\nX: ")
            await asyncio.sleep(0.05)
            time.sleep(0.5)  # noqa: ASYNC251 - the loop is to be held
            assert (await caller.reply()).json["error"] == "the request line and headers did not arrive within 0.3 s"

    async def test_a_silent_client_is_disconnected(self) -> None:
        async with open_app(limits=ApiLimits(idle_secs=0.3)) as app:
            async with call(app.url) as caller:
                assert await caller.rest(0.3 + SLACK) == b""
            async with call(app.url) as caller:
                assert (await caller.ask(request("GET", "/health"))).status == 200
                assert await caller.rest(0.3 + SLACK) == b""

    async def test_a_client_that_never_reads_is_disconnected(self, quiet_log: pytest.LogCaptureFixture) -> None:
        async with open_app(limits=ApiLimits(stall_secs=0.3)) as app, call(app.url, small=True) as caller:
            make(app.hub.registry, lambda layout, _: layout.put_room(Room(id="large", name="x" * 1000)))
            caller.stop_reading()
            caller.send_at_once(request("GET", "/capabilities", KEY) * 300)
            await shown(app, "sockets", "open", 1)

    @pytest.mark.parametrize(
        ("sent", "answers"),
        [
            (request("POST", "/rooms", KEY, body=b'{"id": "hall", "name": "Hall"}') * 2, ["200 OK", "200 OK"]),
            (request("POST", f"/devices/{LIGHT}/command", KEY, body=TURN_ON), ["200 OK"]),
            (request("POST", "/rooms", KEY, "Content-Length: 10") + b"{", ["400 Bad Request"]),
            (request("POST", "/rooms", KEY, "Transfer-Encoding: chunked") + b"1\r\n{", ["400 Bad Request"]),
            (request("POST", "/rooms", "Content-Length: 10") + b"{", ["401 Unauthorized"]),
            (b"GET /health HTTP/1.1\r\nHost:", []),
            (b"", []),
        ],
        ids=[
            "two requests",
            "a command",
            "half a body",
            "half a chunk",
            "half an unwanted body",
            "half a head",
            "none",
        ],
    )
    async def test_a_client_that_closes_its_side_gets_its_answer(
        self, quiet_log: pytest.LogCaptureFixture, sent: bytes, answers: list[str]
    ) -> None:
        async with open_app() as app, call(app.url) as caller:
            app.light.faults.delay = 0.1
            await caller.send_last(sent)
            assert re.findall("HTTP/1.1 (.*)\r", (await caller.rest()).decode()) == answers

    async def test_a_client_that_closes_its_side_gets_all_answers_beyond_the_read_buffer(
        self, quiet_log: pytest.LogCaptureFixture
    ) -> None:
        async with open_app() as app, call(app.url) as caller:
            app.light.faults.delay = 1.5 * DISCONNECT_CHECK_SECS
            command = request("POST", f"/devices/{LIGHT}/command", KEY, body=TURN_ON)
            await caller.send_last(command + BEYOND_READ_BUFFER)
            answers = re.findall("HTTP/1.1 (.*)\r", (await caller.rest()).decode())
            assert answers == ["200 OK"] * (1 + BEYOND_READ_BUFFER.count(b"GET"))

    @pytest.mark.parametrize("pipelined", [b"", BEYOND_READ_BUFFER], ids=["alone", "pipelined"])
    async def test_a_client_that_closed_its_side_gets_an_error_for_slow_requests(
        self, quiet_log: pytest.LogCaptureFixture, pipelined: bytes
    ) -> None:
        async with open_app(limits=ApiLimits(half_closed_secs=0.1)) as app, call(app.url) as caller:
            app.light.faults.delay = 1.5 * DISCONNECT_CHECK_SECS
            command = request("POST", f"/devices/{LIGHT}/command", KEY, body=TURN_ON)
            await caller.send_last(command + pipelined)
            reply = await caller.reply()
            assert reply.status == 408 and "the work continues" in reply.json["error"]
            assert await caller.rest() == b""

    async def test_an_invalid_upgrade_does_not_stop_the_timeout(self) -> None:
        async with open_app(limits=ApiLimits(idle_secs=0.2, head_secs=0.2)) as app, call(app.url) as caller:
            app.light.faults.delay = 0.2
            reply = await caller.ask(
                request("POST", f"/devices/{LIGHT}/command", KEY, "Upgrade: websocket", body=TURN_ON)
            )
            assert reply.status == 200
            assert await caller.rest(0.2 + SLACK) == b""


async def trickle_into(caller: Caller, drop: bytes = b"x") -> None:
    """Send a few bytes repeatedly until the connection is closed."""
    while True:
        caller.send_at_once(drop)
        await asyncio.sleep(0.02)


async def test_a_command_is_finished_even_if_its_client_disconnects(quiet_log: pytest.LogCaptureFixture) -> None:
    async with open_app() as app:
        app.light.faults.delay = 0.05
        for round_, action in enumerate(["on", "off", "on"]):
            async with call(app.url) as caller:
                body = TURN_ON.replace(b'"on"', f'"{action}"'.encode())
                await caller.send(request("POST", f"/devices/{LIGHT}/command", KEY, body=body))
                await until(lambda: len(app.light.writes) > round_)  # noqa: B023
                caller.close()
            await until(lambda: app.hub.registry.get_device(LIGHT).attributes["power"] == action)  # noqa: B023
        assert (await app.device(LIGHT))["attributes"]["power"] == "on"


@pytest.mark.parametrize("is_reset", [False, True], ids=["closed", "reset"])
async def test_requests_behind_a_running_one_end_with_their_client(
    quiet_log: pytest.LogCaptureFixture, *, is_reset: bool
) -> None:
    async with open_app(limits=ApiLimits(half_closed_secs=0.1)) as app:
        app.light.faults.delay = 1.5 * DISCONNECT_CHECK_SECS
        command = request("POST", f"/devices/{LIGHT}/command", KEY, body=TURN_ON)
        room = request("POST", "/rooms", KEY, body=b'{"id": "hall", "name": "Hall"}')
        async with call(app.url) as caller:
            await caller.send(command + room + BEYOND_READ_BUFFER)
            await until(lambda: app.light.writes)
            if is_reset:
                caller.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await shown(app, "sockets", "open", 1)
        metrics = (await app.get("/metrics")).body.decode()
        assert re.search(r'lares_http_requests_total\{.*/command",status="499"\} 1\n', metrics), "it did not wait"
        assert (await app.get("/rooms")).json == []


async def test_a_client_that_disconnects_anywhere_leaves_nothing(quiet_log: pytest.LogCaptureFixture) -> None:
    asked = request("POST", "/rooms", KEY, body=b'{"id": "hall", "name": "Hall"}')
    upgrade = request("GET", "/events", KEY, *UPGRADE)
    async with open_app() as app:
        for data in (asked, upgrade):
            for at in range(0, len(data) + 1, 7):
                async with call(app.url) as caller:
                    await caller.send(data[:at])
                    await asyncio.sleep(0)
                    caller.close()
        await shown(app, "sockets", "open", 1)
        assert (await app.get("/health")).status == 200


async def test_an_unencodable_event_is_reported_to_every_reader(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with open_app() as app, read_events(app.url) as one, app.stream() as other:
        broken = Room(id="hall", name=cast("str", object()))
        app.hub.bus.publish(RoomAdded(room=broken))
        app.hub.bus.publish(SystemErrorReported(message="go on"))
        for sentence in ("an event could not be encoded (RoomAdded); see the log", "go on"):
            assert await one.event() == await other.next() == {"type": "system.error", "message": sentence}
        assert (await app.get("/health")).status == 200
    [entry] = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert entry.getMessage().startswith("event stream: RoomAdded could not be encoded: ")
    assert entry.exc_info is not None


async def test_environment_variables_of_sanic_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def settings(app: App) -> dict[str, str]:
        sanic_app = build_app(
            app.hub, Keyring(app.hub.store.keys, Clock(), master_key=MASTER), ApiLimits(), 10, **NO_MORE
        )
        found = {key: repr(value) for key, value in sanic_app.config.items()}
        Sanic.unregister_app(sanic_app)
        return found

    async with open_app() as app:
        usual = settings(app)
        for key in usual:
            for prefix in ("SANIC_", "LARES_SANIC_", "LARES_", ""):
                monkeypatch.setenv(f"{prefix}{key}", "1")
        monkeypatch.setenv("SANIC_FALLBACK_ERROR_FORMAT", "html")
        assert settings(app) == usual
        async with open_app() as other:
            assert (await other.post("/rooms", {"id": "hall", "name": "a name of more than one byte"})).status == 200
            found = (await other.get("/nothing")).json
            assert found == {"error": "this path does not exist", "code": "path_not_found"}


TWO_HUBS = """
import asyncio
from tests.fakes.app import open_app

async def main():
    async with open_app() as one, open_app() as other:
        async with one.stream() as frames, other.stream():
            await one.post("/rooms", {"id": "hall", "name": "Hall"})
            assert (await frames.until("room.added"))[-1]["room"]["id"] == "hall"
            assert (await one.get("/rooms/hall")).status == 200
            assert (await other.get("/rooms/hall")).status == 404
    async with open_app() as third:
        assert (await third.get("/rooms")).json == []

asyncio.run(main())
asyncio.run(main())
print("done")
"""


def test_several_hubs_work_in_one_process() -> None:
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", TWO_HUBS], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


async def test_checks_of_keys_do_not_delay_other_requests() -> None:
    async with open_app() as app:
        answered: list[int] = []

        async def knock(number: int) -> None:
            answered.append((await app.get("/devices", token=f"lrs_reader_{number:043}")).status)

        knocking = asyncio.gather(*(knock(number) for number in range(8)))
        async with call(app.url) as caller:
            assert (await caller.ask(request("GET", "/health"))).status == 200
        assert len(answered) < 8, "the checks take a while, one after another"
        await knocking
        assert set(answered) == {401}


async def test_small_answers_do_not_wait_for_each_other() -> None:
    async with open_app() as app:
        keyring = Keyring(app.hub.store.keys, Clock(), master_key=MASTER)
        address = Address(host="127.0.0.1", port=0)
        sanic_app = build_app(app.hub, keyring, ApiLimits(), 10, **NO_MORE)
        async with Server(sanic_app, address, Clock(), work=app.hub) as server:
            async with call(f"http://127.0.0.1:{server.port}") as caller:
                assert (await caller.ask(request("GET", "/health"))).status == 200
                [connection] = server._connections
                assert connection.transport is not None
                accepted = connection.transport.get_extra_info("socket")
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_a_port_can_be_served_again_at_once() -> None:
    async with open_app() as app:
        keyring = Keyring(app.hub.store.keys, Clock(), master_key=MASTER)
        sanic_app = build_app(app.hub, keyring, ApiLimits(), 10, **NO_MORE)
        address = Address(host="127.0.0.1", port=0)
        async with Server(sanic_app, address, Clock(), work=app.hub) as server:
            port = server.port
        async with Server(
            build_app(app.hub, keyring, ApiLimits(), 10, **NO_MORE),
            Address(host="127.0.0.1", port=port),
            Clock(),
            work=app.hub,
        ) as again:
            assert again.port == port


async def test_no_start_reads_the_source_of_the_handlers(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sanic.mixins.routes.getsource", lambda _: pytest.fail("Sanic parses what it need not know"))
    assert build_app(app.hub, Keyring(app.hub.store.keys, Clock(), master_key=MASTER), ApiLimits(), 10, **NO_MORE)
