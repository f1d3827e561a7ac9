"""A client with a plain socket. The client sends the given bytes unchanged, and returns the received bytes."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.fakes import contract_recorder
from tests.fakes.app import MASTER, App

T = TypeVar("T")
KEY = f"Authorization: Bearer {MASTER}"
UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A response with its exact bytes. The names of `headers` are in lower case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        found = [value for each, value in self.headers if each == name]
        assert len(found) < 2, f"{name} came {len(found)} times"
        return found[0] if found else None


class Caller:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def socket(self) -> Any:
        return self._writer.get_extra_info("socket")

    async def send(self, data: bytes) -> None:
        """Send the bytes, and wait until the system has accepted them."""
        self._writer.write(data)
        await self._writer.drain()

    def send_at_once(self, data: bytes) -> None:
        """Send the bytes as soon as the system accepts them."""
        self._writer.write(data)

    async def send_last(self, data: bytes) -> None:
        """Send the bytes, and close the sending side of the connection."""
        await self.send(data)
        self._writer.write_eof()

    async def reply(self, within: float = 20.0, *, to: str = "GET") -> Reply:
        """Return the next response. A response to HEAD has no body."""
        async with asyncio.timeout(within):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("ascii")
            line, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
            pairs = [each.split(": ", 1) for each in lines]
            headers = tuple((name.lower(), value) for name, value in pairs)
            length = 0 if to == "HEAD" else int(dict(headers).get("content-length", 0))
            body = await self._reader.readexactly(length)
        status = int(line.split(" ")[1])
        contract_recorder.judge_alone(status, dict(headers), body)
        return Reply(status=status, headers=headers, body=body)

    async def ask(self, data: bytes, within: float = 20.0) -> Reply:
        """Send a request, and return its response, which must match the OpenAPI document."""
        await self.send(data)
        reply = await self.reply(within, to=data.partition(b" ")[0].decode("ascii", "replace"))
        contract_recorder.judge_raw(data, reply.status, dict(reply.headers), reply.body)
        return reply

    async def rest(self, within: float = 20.0) -> bytes:
        """Return all further bytes, until the server closes or resets the connection."""
        came = bytearray()
        async with asyncio.timeout(within):
            try:
                while piece := await self._reader.read(65536):
                    came += piece
            except ConnectionError:
                pass
        return bytes(came)

    async def is_open(self, during: float = 0.2) -> bool:
        """Return whether the server neither sends anything nor closes the connection for this number of seconds."""
        try:
            await self.rest(during)
        except TimeoutError:
            return True
        return False

    def stop_reading(self) -> None:
        """Stop reading, with a small receive buffer."""
        self._writer.transport.pause_reading()  # type: ignore[attr-defined]

    def resume_reading(self) -> None:
        self._writer.transport.resume_reading()  # type: ignore[attr-defined]

    async def read(self, most: int) -> bytes:
        return await self._reader.read(most)

    async def frame(self, within: float = 20.0) -> tuple[int, bytes]:
        """Return opcode and payload of the server's next WebSocket frame."""
        async with asyncio.timeout(within):
            first, length = await self._reader.readexactly(2)
            assert first & 0x80 and not first & 0x70, "in one piece, without extensions"
            assert not length & 0x80, "unmasked"
            if length == 126:
                [length] = struct.unpack("!H", await self._reader.readexactly(2))
            elif length == 127:
                [length] = struct.unpack("!Q", await self._reader.readexactly(8))
            return first & 0x0F, await self._reader.readexactly(length)

    async def event(self, within: float = 20.0) -> Any:
        """Return the next frame, parsed as JSON."""
        opcode, payload = await self.frame(within)
        assert opcode == TEXT, (opcode, payload)
        return json.loads(payload)

    def close(self) -> None:
        self._writer.transport.abort()


async def turns_while(read: Callable[[], Awaitable[T]], count: int) -> tuple[list[T], int]:
    """Read repeatedly. Return the results, and the number of iterations of the event loop. The hub and the test share
    the loop."""

    async def read_all() -> list[T]:
        return [await read() for _ in range(count)]

    reading, turns = asyncio.ensure_future(read_all()), 0
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    return reading.result(), turns


@asynccontextmanager
async def call(url: str, *, small: bool = False) -> AsyncIterator[Caller]:
    """Connect to the hub at this URL. If `small` is true, the system buffers only a few unread bytes."""
    host, _, port = url.removeprefix("http://").partition(":")
    mine = socket.socket()
    mine.setblocking(False)
    if small:
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    try:
        await asyncio.get_running_loop().sock_connect(mine, (host, int(port)))
    except OSError:
        mine.close()
        raise
    reader, writer = await asyncio.open_connection(sock=mine, limit=4096 if small else 1 << 20)
    try:
        yield Caller(reader, writer)
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def read_events(url: str, *, small: bool = False) -> AsyncIterator[Caller]:
    """Open a connection to the event stream."""
    async with call(url, small=small) as caller:
        reply = await caller.ask(request("GET", "/events", KEY, *UPGRADE))
        assert reply.status == 101, reply
        yield caller


async def shown(app: App, part: str, figure: str, value: int, within: float = 20.0) -> None:
    """Wait until the hub's diagnostics report this value."""
    async with asyncio.timeout(within):
        while (await app.get("/diagnostics")).json[part][figure] != value:  # noqa: ASYNC110 - no event to await
            await asyncio.sleep(0.01)


def request(method: str, path: str, *headers: str, body: bytes | None = None) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: lares", *headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


def frame(opcode: int, payload: bytes = b"", *, is_last: bool = True) -> bytes:
    """Return a client's WebSocket frame, masked with zeroes."""
    first = bytes([(0x80 if is_last else 0) | opcode])
    if len(payload) < 126:
        return first + bytes([0x80 | len(payload)]) + bytes(4) + payload
    if len(payload) < 65536:
        return first + b"\xfe" + struct.pack("!H", len(payload)) + bytes(4) + payload
    return first + b"\xff" + struct.pack("!Q", len(payload)) + bytes(4) + payload
