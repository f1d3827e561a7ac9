"""A small, fast HTTP and WebSocket client, so that the figures are the server's more than the client's."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence

from benchmarks._processes import KEY

UPGRADE = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
BATCH = 8
NONCE = "AAAAAAAAAAAAAAAAAAAAAA=="


def request(method: str, path: str, body: bytes = b"", extra: str = "") -> bytes:
    """The bytes of an authenticated request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n{extra}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body if body else f"{head}\r\n".encode()


async def one(port: int, message: bytes) -> bytes:
    """The body that answers one request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    try:
        writer.write(message)
        return await read_answer(reader)
    finally:
        writer.close()


async def until_ready(port: int) -> None:
    """Return once every adapter's first poll has ended."""
    while True:
        try:
            await one(port, request("GET", "/ready"))
            return
        except RuntimeError:
            await asyncio.sleep(0.01)


async def read_answer(reader: asyncio.StreamReader) -> bytes:
    """The body of one answer; anything but success ends the benchmark."""
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 2"):
        raise RuntimeError(head.decode())
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return await reader.readexactly(length)


async def hammer(port: int, message: bytes, *, clients: int, seconds: float) -> tuple[float, float]:
    """Answers a second over so many kept connections, and the 99th percentile of a batch's duration in ms.

    Each client sends its requests in batches and takes the answers, which are all of one length, as they come: so the
    client needs little of the processor time that the two share.
    """
    durations: list[float] = []
    deadline = time.perf_counter() + seconds
    length = await _answer_length(port, message)

    async def ask() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        while (began := time.perf_counter()) < deadline:
            writer.write(message * BATCH)
            await reader.readexactly(length * BATCH)
            durations.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(ask() for _ in range(clients)))
    return BATCH * len(durations) / seconds, 1000 * percentile(durations, 99)


async def _answer_length(port: int, message: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    writer.write(message)
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return len(head) + int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])


async def subscribe(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """An event stream of which the handshake is done."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    writer.write(request("GET", "/events", extra=UPGRADE.format(key=NONCE)))
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 101 " not in head:
        raise RuntimeError(head.decode())
    return reader, writer


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The payload of one unmasked frame."""
    _first, length = await reader.readexactly(2)
    if length == 126:
        length = int.from_bytes(await reader.readexactly(2), "big")
    return await reader.readexactly(length)


def percentile(figures: Sequence[float], percent: int) -> float:
    """The percentile; the figure itself where there is but one."""
    return statistics.quantiles(figures, n=100)[percent - 1] if len(figures) > 1 else figures[0]
