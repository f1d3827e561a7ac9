"""Hostile vendors: a server that can send any bytes, and an address that does not accept connections."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType

Speech = Callable[[asyncio.StreamWriter], Awaitable[None]]
"""Sends bytes on a connection after a request."""


class RawVendor:
    """Answers each request with `speech`, and closes the connection. `heads` contains the received heads. Bodies are
    not read."""

    def __init__(self, speech: Speech | bytes) -> None:
        self.speech = saying(speech) if isinstance(speech, bytes) else speech
        self.heads: list[bytes] = []
        self.url = ""
        self._talks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> RawVendor:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.url = _url(self._server.sockets[0])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        try:
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            await self.speech(writer)
            writer.write_eof()
            await reader.read()  # otherwise the connection could end before the bytes arrive
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._talks.discard(task)


def saying(*pieces: bytes) -> Speech:
    """Return a speech that sends these pieces, each in a separate packet."""

    async def speech(writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.001)

    return speech


def endlessly(head: bytes, again: bytes, *, pause: float = 0.0) -> Speech:
    """Return a speech that sends the head, followed by the same piece again and again. The pauses last this number
    of seconds."""

    async def speech(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(pause)

    return speech


def resetting_after(*pieces: bytes) -> Speech:
    async def speech(writer: asyncio.StreamWriter) -> None:
        await saying(*pieces, b"")(writer)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        raise ConnectionResetError

    return speech


@contextmanager
def blackhole() -> Iterator[str]:
    """Provide the URL of an address that neither accepts nor refuses connections, because the queue of its socket
    is full."""
    with socket.socket() as listener, ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            queued = stack.enter_context(socket.socket())
            queued.setblocking(False)
            queued.connect_ex(listener.getsockname())
        yield _url(listener)


def _url(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"
