"""Small, fast HTTP and WebSocket clients, so that the results depend on the server and not on the client."""

from __future__ import annotations

import asyncio
import itertools
import socket
import statistics
import time
from collections.abc import Sequence

KEY = "benchmark-master-key"
UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
FRAME = b'{"type":'
"""The first bytes of each event frame's text, which occur nowhere else in the stream."""

PING, PONG = b"\x89\x05lares", b"\x8a\x85\0\0\0\0lares"
"""The hub's ping, and the client's pong. If the hub gets no pong, it closes the stream."""

PATIENCE_SECS = 60.0


def request(method: str, path: str, body: bytes = b"", extra: str = "") -> bytes:
    """Return the bytes of an authenticated request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n{extra}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body if body else f"{head}\r\n".encode()


class Client:
    """A persistent connection for one request at a time."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)

    def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Send a request, and return the body of the response."""
        self.send(request(method, path, body))
        return self.receive().partition(b"\r\n\r\n")[2]

    def send(self, message: bytes) -> None:
        self._socket.sendall(message)

    def receive(self) -> bytes:
        """Return the complete response. Any status except success ends the benchmark."""
        data, size = b"", 1
        while len(data) < size:
            if not (piece := self._socket.recv(1 << 18)):
                raise RuntimeError("the server closed the connection")
            data += piece
            head, end, _ = data.partition(b"\r\n\r\n")
            _, _, length = head.lower().partition(b"content-length: ")
            size = len(head + end) + int((length.split() or [b"0"])[0]) if end else len(data) + 1
        if not data.startswith(b"HTTP/1.1 2"):
            raise RuntimeError(data.decode())
        return data

    def close(self) -> None:
        self._socket.close()


def ask(port: int, method: str, path: str, body: bytes = b"") -> bytes:
    """Send a request on a new connection, and return the response's body. Retry until the hub accepts a
    connection."""
    deadline = time.perf_counter() + PATIENCE_SECS
    while True:
        try:
            client = Client(port)
            break
        except ConnectionRefusedError:
            if time.perf_counter() > deadline:
                raise
            time.sleep(0.002)
    try:
        return client.ask(method, path, body)
    finally:
        client.close()


def wait_until_ready(port: int) -> None:
    """Wait until the first poll of each adapter has ended."""
    while True:
        try:
            ask(port, "GET", "/ready")
            return
        except RuntimeError:
            time.sleep(0.01)


async def hammer(port: int, messages: Sequence[bytes], *, clients: int, seconds: float) -> list[float]:
    """Send the messages one after another over `clients` connections for `seconds`.

    Return the duration of each request in milliseconds. All responses must have the same length.
    """
    client = Client(port)
    client.send(messages[0])
    length = len(client.receive())
    client.close()
    deadline, durations = time.perf_counter() + seconds, list[float]()
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: _Hammering(messages, length, deadline, durations), "127.0.0.1", port)
        for _ in range(clients)
    ]
    await asyncio.gather(*(client.ended for _, client in made))
    return durations


class _Hammering(asyncio.Protocol):
    """Until the deadline, sends the next message as soon as the response to the previous message has arrived."""

    def __init__(self, messages: Sequence[bytes], length: int, deadline: float, durations: list[float]) -> None:
        self._messages, self._length = itertools.cycle(messages), length
        self._deadline, self._durations = deadline, durations
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask(time.perf_counter())

    def _ask(self, now: float) -> None:
        self._missing, self._began = self._length, now
        self._transport.write(next(self._messages))

    def data_received(self, data: bytes) -> None:
        self._missing -= len(data)
        if self._missing > 0:
            return
        now = time.perf_counter()
        self._durations.append(1000 * (now - self._began))
        if now < self._deadline:
            self._ask(now)
        else:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


class Readers:
    """Clients that read the event stream of a hub or of a bare server inside the `async with` block.

    `frames` counts the frames that all readers have received.
    """

    def __init__(self, port: int, count: int) -> None:
        self._port, self._count = port, count
        self._goal = 0
        self._there: asyncio.Future[None] | None = None
        self._transports: list[asyncio.Transport] = []
        self.frames = 0

    async def __aenter__(self) -> Readers:
        loop = asyncio.get_running_loop()
        made = [
            await loop.create_connection(lambda: _Reader(self), "127.0.0.1", self._port) for _ in range(self._count)
        ]
        self._transports = [transport for transport, _ in made]
        await asyncio.gather(*(reader.is_open for _, reader in made))
        return self

    async def __aexit__(self, *_: object) -> None:
        for transport in self._transports:
            transport.abort()

    async def read(self, frames: int) -> None:
        """Wait until each reader has received `frames` more frames since the previous call."""
        self._goal += frames * self._count
        if self.frames < self._goal:
            self._there = asyncio.get_running_loop().create_future()
            await self._there

    def take(self, frames: int) -> None:
        self.frames += frames
        if self.frames >= self._goal and self._there is not None and not self._there.done():
            self._there.set_result(None)


class _Reader(asyncio.Protocol):
    """Sends the handshake, and counts the frames that follow."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._rest = b""
        self.is_open: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(request("GET", "/events", extra=UPGRADE))

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        self._rest = data[1 - len(FRAME) :]
        if not self.is_open.done():
            if not data.startswith(b"HTTP/1.1 101 "):
                raise RuntimeError(data.decode())
            self.is_open.set_result(None)
        if PING in data:
            self._transport.write(PONG)
        if frames := data.count(FRAME):
            self._readers.take(frames)


def percentile(figures: Sequence[float], percent: int) -> float:
    """Return the percentile. If there is only one figure, return this figure."""
    return statistics.quantiles(figures, n=100)[percent - 1] if len(figures) > 1 else figures[0]
