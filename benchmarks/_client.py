"""A small, fast HTTP and WebSocket client, so that the figures are the server's more than the client's."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Sequence

from benchmarks._processes import KEY

UPGRADE = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
NONCE = "AAAAAAAAAAAAAAAAAAAAAA=="
LIMIT = 1 << 22


def request(method: str, path: str, body: bytes = b"", extra: str = "") -> bytes:
    """The bytes of an authenticated request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n{extra}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body if body else f"{head}\r\n".encode()


async def read_answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Head and body of one answer; anything but success ends the benchmark."""
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 2"):
        raise RuntimeError(head.decode())
    return head, await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))


async def exchange(port: int, message: bytes) -> tuple[bytes, bytes]:
    """Head and body of the answer to one request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=LIMIT)
    try:
        writer.write(message)
        return await read_answer(reader)
    finally:
        writer.close()


async def one(port: int, message: bytes) -> bytes:
    """The body that answers one request."""
    return (await exchange(port, message))[1]


async def until_ready(port: int) -> None:
    """Return once every adapter's first poll has ended."""
    while True:
        try:
            await exchange(port, request("GET", "/ready"))
            return
        except RuntimeError:
            await asyncio.sleep(0.01)


async def hammer(port: int, messages: Sequence[bytes], *, clients: int, seconds: float) -> list[float]:
    """Milliseconds that each request took; so many kept connections send one message after another, for so long.

    All answers must be of one length.
    """
    length = sum(map(len, await exchange(port, messages[0])))
    deadline = time.perf_counter() + seconds
    loop = asyncio.get_running_loop()
    durations: list[float] = []
    made = [
        await loop.create_connection(lambda: _Client(messages, length, deadline, durations), "127.0.0.1", port)
        for _ in range(clients)
    ]
    await asyncio.gather(*(client.ended for _, client in made))
    return durations


class _Client(asyncio.Protocol):
    """Sends the next message as soon as the answer to the last is there, until the deadline."""

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
    """So many event streams of a hub, or bare connections, from entering the context to leaving it.

    `frames` counts the frames that have come to all of them.
    """

    def __init__(self, port: int, count: int, *, is_hub: bool = True) -> None:
        self._port, self._count = port, count
        self._opening = request("GET", "/events", extra=UPGRADE.format(key=NONCE)) if is_hub else b""
        self._goal = 0
        self._there: asyncio.Future[None] | None = None
        self._transports: list[asyncio.Transport] = []
        self.frames = 0

    async def __aenter__(self) -> Readers:
        loop = asyncio.get_running_loop()
        made = [
            await loop.create_connection(lambda: _Reader(self, self._opening), "127.0.0.1", self._port)
            for _ in range(self._count)
        ]
        self._transports = [transport for transport, _ in made]
        await asyncio.gather(*(reader.is_open for _, reader in made))
        return self

    async def __aexit__(self, *_: object) -> None:
        for transport in self._transports:
            transport.abort()

    async def read(self, frames: int) -> None:
        """Wait until each has got so many more frames than all had been waited for before."""
        self._goal += frames * self._count
        if self.frames < self._goal:
            self._there = asyncio.get_running_loop().create_future()
            await self._there

    def take(self, frames: int) -> None:
        """Count frames that came."""
        self.frames += frames
        if self.frames >= self._goal and self._there is not None and not self._there.done():
            self._there.set_result(None)


class _Reader(asyncio.Protocol):
    """Shakes hands, and counts the unmasked frames that come then."""

    def __init__(self, readers: Readers, opening: bytes) -> None:
        self._readers, self._opening = readers, opening
        self._rest = b""
        self.is_open: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._opening)

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        if not self.is_open.done():
            head, end, data = data.partition(b"\r\n\r\n")
            if not end:
                self._rest = head
                return
            if b" 101 " not in head:
                raise RuntimeError(head.decode())
            self.is_open.set_result(None)
        frames, at = 0, 0
        while (following := _end_of_frame(data, at)) <= len(data):
            frames, at = frames + 1, following
        self._rest = data[at:]
        if frames:
            self._readers.take(frames)


def _end_of_frame(data: bytes, at: int) -> int:
    """Where the frame that begins there ends; beyond the data where its head is not whole."""
    if len(data) < at + 4:
        return len(data) + 1
    if data[at + 1] < 126:
        return at + 2 + data[at + 1]
    return at + 4 + int.from_bytes(data[at + 2 : at + 4], "big")


def percentile(figures: Sequence[float], percent: int) -> float:
    """The percentile; the figure itself where there is but one."""
    return statistics.quantiles(figures, n=100)[percent - 1] if len(figures) > 1 else figures[0]
