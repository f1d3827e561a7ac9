"""The parser of MQTT packets with messages."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from appliance.adapters.mqtt.aiomqtt_client import (
    CHUNK_BYTES,
    MAX_BUFFERED_BYTES,
    BufferedSocket,
    Client,
    parse_message,
)
from appliance.adapters.mqtt.messages import Received
from tests.fakes.mqtt_broker import PUBLISH, packet, text
from tests.fakes.rows import each_row

MESSAGE = b"\x30\x07\x00\x03a/bon"


@each_row(
    "data, topic, payload, is_retained, length",
    [
        (MESSAGE, "a/b", b"on", False, 9),
        (b"\x31" + MESSAGE[1:], "a/b", b"on", True, 9),
        (b"\x38" + MESSAGE[1:], "a/b", b"on", False, 9),
        (b"\x30\x05\x00\x03a/b", "a/b", b"", False, 7),
        (MESSAGE + b"\xd0\x00", "a/b", b"on", False, 9),
        (b"\x30\x04\x00\x02\xc3\xa4", "ä", b"", False, 6),
        (b"\x30\xcb\x01\x00\x01t" + b"x" * 200, "t", b"x" * 200, False, 206),
        (b"\x30\x87\x80\x00\x00\x03a/bon", "a/b", b"on", False, 11),
    ],
)
def test_a_whole_message_is_parsed(data: bytes, topic: str, payload: bytes, is_retained: bool, length: int) -> None:
    assert parse_message(bytearray(data)) == (Received(topic, payload, is_retained), length)


@each_row(
    "data",
    [
        *(MESSAGE[:length] for length in range(len(MESSAGE))),
        b"\xd0\x00",
        b"\x32\x07\x00\x01a\x00\x01on",
        b"\x34\x07\x00\x01a\x00\x01on",
        b"\x30\x00\x00\x03a/bon",
        b"\x30\x04\x00\x03a/bon",
        b"\x30\x04\x00\x00on",
        b"\x30\x05\x00\x03a/+",
        b"\x30\x03\x00\x01#",
        b"\x30\x03\x00\x01\xff",
        b"\x30\x87\x80\x80\x80\x00\x00\x03a/bon",
        b"\x30\xff\xff\xff\xff\x7f" + b"x" * 100,
    ],
)
def test_the_library_reads_everything_else(data: bytes) -> None:
    assert parse_message(bytearray(data)) is None


async def test_only_messages_of_the_present_batch_are_taken() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        buffered = BufferedSocket(ours, asyncio.get_running_loop())
        theirs.sendall(MESSAGE * 2 + MESSAGE[:4])
        buffered.fill()
        assert [*buffered.take_messages()] == [], "no time was allowed"
        buffered.allow(60)
        assert [[*buffered.take_messages()] for _ in range(2)] == [2 * [Received("a/b", b"on", False)], []]
        theirs.sendall(MESSAGE[4:])
        buffered.fill()
        assert [*buffered.take_messages()] == [Received("a/b", b"on", False)]


async def test_packets_across_the_borders_of_chunks_are_complete() -> None:
    ours, theirs = socket.socketpair()
    for each in (ours, theirs):
        each.setblocking(False)
    sent = [Received("a/b", b"%d" % number * 5_000, False) for number in range(200)]
    unread = b"".join(packet(PUBLISH, text(each.topic), each.payload) for each in sent) + b"\xd0\x00" + MESSAGE
    size = len(unread)
    with ours, theirs:
        buffered = BufferedSocket(ours, asyncio.get_running_loop())
        while buffered.pending() < size:
            if unread:
                with contextlib.suppress(BlockingIOError):
                    unread = unread[theirs.send(unread) :]
            buffered.fill()
        assert buffered.pending() == size > 4 * CHUNK_BYTES
        buffered.allow(60)
        buffered.skip(len(packet(PUBLISH, text("a/b"), sent[0].payload)))
        assert [*buffered.take_messages()] == sent[1:]
        assert [*buffered.take_messages()] == [], "the library reads the other packet"
        assert buffered.recv(2) == b"\xd0\x00"
        assert [*buffered.take_messages()] == [Received("a/b", b"on", False)] and buffered.pending() == 0


async def test_slow_processing_of_messages_ends_a_step_of_reading() -> None:
    now, received = [0.0], list[Received]()

    class Loop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return now[0]

    here, there = socket.socketpair()
    with here, there, contextlib.closing(Loop()) as loop:
        there.sendall(5 * MESSAGE)
        buffered = BufferedSocket(here, loop)
        buffered.fill()
        buffered.allow(0.001)
        for each in buffered.take_messages():
            received.append(each)
            now[0] += 0.0006
        assert (len(received), buffered.pending()) == (2, 3 * len(MESSAGE))


async def test_a_socket_that_is_closed_while_a_packet_waits_causes_no_error_in_a_callback() -> None:
    loop, failures = asyncio.get_running_loop(), list[object]()
    loop.set_exception_handler(lambda _, context: failures.append(context))

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x20\x02\x00\x00")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        client = Client("127.0.0.1", server.sockets[0].getsockname()[1], lambda _: None, timeout=0.1)
        await client.__aenter__()
        client._client.publish("topic")
        client._client._sock_close()
        await asyncio.sleep(0)
        await client.close(1)
    assert failures == []


async def test_a_full_buffer_makes_the_broker_wait_and_closing_frees_it() -> None:
    ours, theirs = socket.socketpair()
    for each in (ours, theirs):
        each.setblocking(False)
    with ours, theirs:
        buffered = BufferedSocket(ours, asyncio.get_running_loop())
        with contextlib.suppress(BlockingIOError):
            while theirs.send(MESSAGE * 10_000):
                buffered.fill()
        assert MAX_BUFFERED_BYTES <= buffered.pending() <= MAX_BUFFERED_BYTES + CHUNK_BYTES
        assert ours.recv(1), "the rest waits in the socket"
        buffered.close()
        assert ours.fileno() == -1
        assert buffered._size == 0, "the error of a lost connection may keep the buffer alive"
