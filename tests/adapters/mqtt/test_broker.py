"""The connection to a broker. The hub reports other clients that use the hub's client id, and servers that do not use
MQTT."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.mqtt import broker as hub
from appliance.adapters.mqtt.broker_reconnection import BrokerReconnection
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.messages import Outgoing, Received
from appliance.clock import Clock
from appliance.tasks import JITTER, back_off
from tests.adapters.mqtt.broker import PASSWORD, USER, Broker, OwnBroker, both_brokers, running
from tests.fakes.patience import until


class Impatient(Clock):
    """The machine's clock. A pause ends once `may_go_on` is set. `pauses` lists the lengths of all pauses."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await self.may_go_on.wait()


@asynccontextmanager
async def losing(ours: hub.Broker, clock: Clock) -> AsyncIterator[tuple[asyncio.Event, asyncio.Queue[str]]]:
    """Keep a connection inside the `async with` block. Yield an event for each connection, and a queue with the
    reason of each loss."""
    connected, losses = asyncio.Event(), asyncio.Queue[str]()

    async def session(_: hub.BrokerConnection) -> None:
        connected.set()
        await asyncio.Event().wait()

    reconnection = BrokerReconnection(ours, clock, session, lambda error: losses.put_nowait(str(error)))
    keeping = asyncio.create_task(reconnection.run())
    try:
        yield connected, losses
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


def ours_at(
    port: int, receive: Callable[[Received], None] = lambda _: None, status: str | None = None, **limits: Any
) -> hub.Broker:
    """Return the hub's connection to the broker at a port."""
    settings = Mqtt(host="127.0.0.1", port=port, username=USER, password=PASSWORD)
    return hub.Broker(settings, "lares-7", status, receive, **limits)


@both_brokers
async def test_a_repeated_takeover_of_the_session_is_reported_with_the_client_id(broker: Broker) -> None:
    reported = []
    async with losing(ours_at(broker.port), Impatient()) as (connected, losses):
        for _ in range(3):
            await connected.wait()
            connected.clear()
            async with broker.client("lares-7"):
                reported.append(await losses.get())
    assert reported[0].startswith(f"127.0.0.1:{broker.port} has closed the connection")
    assert "ended the session of client id lares-7 repeatedly" in reported[1] and reported[1] == reported[2]


@both_brokers
async def test_a_broker_that_restarts_within_seconds_is_not_a_takeover(broker: Broker) -> None:
    clock = Impatient()
    async with losing(ours_at(broker.port), clock) as (connected, losses):
        for _ in range(3):
            await connected.wait()
            connected.clear()
            clock.may_go_on.clear()
            broker.stop()
            assert "takes over" not in await losses.get()
            await broker.start()
            clock.may_go_on.set()
    assert len(clock.pauses) == 3 and max(clock.pauses) <= back_off(1) / (1 - JITTER)


def test_the_fake_broker_ends_its_connections_before_the_event_loop_closes(tmp_path: Path) -> None:
    errors: list[Any] = []

    async def connect() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        broker = OwnBroker(tmp_path)
        async with running(broker):
            _, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            await until(lambda: broker._connections)
        writer.close()
        await writer.wait_closed()

    asyncio.run(connect())
    assert errors == []


async def test_an_unreachable_broker_is_reported_in_words() -> None:
    async with losing(ours_at(1, print), Impatient()) as (_, losses):
        assert await losses.get() == "127.0.0.1:1 does not answer (connection refused)"


SMALL, LARGE = b"\x30\x04\x00\x01tx", b"\x30\x80\x80\xc0\x01\x00\x01t" + b"y" * (3 * 1024 * 1024 - 3)
"""Two received messages: one of a single byte, and one of three MiB."""


NO_MQTT = "does not speak MQTT; set host and port to a broker's address"


@pytest.mark.parametrize(
    ("sent", "payloads", "reported"),
    [
        (b"\xff" * 99, [], [NO_MQTT] * 3),
        (LARGE + SMALL + b"\xff" * 99, [b"x"], [NO_MQTT] * 3),
        (b"", [], ["no longer answers"]),
    ],
)
async def test_a_server_that_is_not_a_broker_is_reported_and_a_packet_that_is_too_large_is_skipped(
    sent: bytes,
    payloads: list[bytes],
    reported: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    received: list[Received] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1_000)
        writer.write(b"\x20\x02\x00\x00" + sent)
        with suppress(OSError):
            await reader.read()
        writer.close()

    clock = Impatient()
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with losing(ours_at(port, received.append, keepalive_secs=1), clock) as (_, losses):
            found = [await losses.get() for _ in reported[1:]]
            clock.may_go_on.clear()
            found.append(await losses.get())
    assert found == [f"127.0.0.1:{port} {each}" for each in reported]
    assert [each.payload for each in received[:1]] == payloads
    gc.collect()
    assert "never retrieved" not in caplog.text


@pytest.mark.parametrize(
    ("is_reset", "hint"),
    [
        (True, "; if this port expects TLS, set tls = true"),
        (False, "; port must be the broker's MQTT port, not one for websockets or HTTP"),
    ],
)
async def test_a_port_of_another_server_is_reported(is_reset: bool, hint: str) -> None:
    connections: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        try:
            await reader.read(1_000)
            if is_reset:
                sock = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                with suppress(OSError):
                    await reader.read()
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with losing(ours_at(port, timeout_secs=0.5), Impatient()) as (_, losses):
            assert (await losses.get()).endswith(hint)
    for each in connections:
        with suppress(OSError):
            await each.wait_closed()


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        (
            b"",
            "closes the connection at once; port must be the broker's MQTT port; if it expects TLS, set tls = true",
        ),
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", NO_MQTT),
    ],
)
async def test_an_answer_other_than_an_acceptance_is_reported_before_the_time_limit(
    answer: bytes, reported: str
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read(1_000)
            writer.write(answer)
            if answer:
                await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with losing(ours_at(port, timeout_secs=3600), Impatient()) as (_, losses):
            assert await losses.get() == f"127.0.0.1:{port} {reported}"


@both_brokers
async def test_an_acknowledged_message_leaves_no_garbage(broker: Broker) -> None:
    async def publish(connection: hub.BrokerConnection) -> list[weakref.ref[object]]:
        tasks = [asyncio.create_task(connection.publish(Outgoing("x", f"{number}", qos=1))) for number in range(3)]
        await asyncio.wait(tasks)
        return [weakref.ref(each) for each in tasks]

    async with ours_at(broker.port).connect() as connection:
        gc.collect()
        gc.disable()
        try:
            assert [each() for each in await publish(connection)] == [None] * 3
        finally:
            gc.enable()


async def test_a_broker_that_no_longer_reads_does_not_hold_a_stop() -> None:
    ended = asyncio.Event()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        writer.write(b"\x20\2\0\0")
        with suppress(OSError):
            while not writer.is_closing():
                writer.write(b"\x30\4\0\1ab")
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.transport.abort()
        await asyncio.sleep(0)
        ended.set()

    async with await asyncio.start_server(flood, "127.0.0.1", 0, limit=16) as server:
        async with ours_at(server.sockets[0].getsockname()[1]).connect() as connection:
            sending = [
                asyncio.create_task(connection.publish(Outgoing("x", "x" * 1_000_000, qos=1))) for _ in range(30)
            ]
            await asyncio.sleep(0)
        for each in sending:
            each.cancel()
        await asyncio.wait(sending)
        await ended.wait()


async def test_the_status_offline_is_sent_although_no_earlier_message_is_acknowledged() -> None:
    received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        writer.write(b"\x20\2\0\0")
        received.set_result(await reader.read(-1))
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        async with ours_at(server.sockets[0].getsockname()[1], status="status").connect() as connection:
            results = [connection.publish(Outgoing("result", "x", qos=1)) for _ in range(hub.MAX_UNACKNOWLEDGED)]
            sending = [asyncio.create_task(each) for each in (connection.publish_online(), *results)]
            await asyncio.sleep(0)
        for each in sending:
            each.cancel()
        await asyncio.wait(sending)
        assert (await received).endswith(b"\x31\x0f\0\6statusoffline\xe0\0")
