"""WebSockets to devices: messages in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import aiohttp
import orjson

from appliance.adapters.device_http.errors import reason_of
from appliance.clock import Clock
from appliance.errors import BadAnswer, Unreachable

CLOSE_TIMEOUT_SECS = 1.0
"""Time limit for sending the Close frame. If sending takes longer, the connection is closed without the frame."""

MESSAGES_AT_ONCE = 8
"""Number of messages of one connection that are processed before other tasks can run. The state of a WLED strip takes
a third of a millisecond to process."""

LARGE_MESSAGE = 1 << 20
"""If a message is larger than this, in bytes, other tasks can run before the message is parsed. Such a text is parsed
as bytes, without a copy as text."""

DecodeMessage = Callable[[bytes | str, str], Any]
"""Decodes the body of a frame. The address is used in the message of a `BadAnswer`."""

_TEXT, _BINARY = aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY
_PING, _ERROR = aiohttp.WSMsgType.PING, aiohttp.WSMsgType.ERROR
_ENDS = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED)


class Messages(AsyncIterator[Any]):
    """Receives and sends the messages of one WebSocket. `on_message` is called for each message. Only one task may
    read. Any task may send."""

    def __init__(
        self,
        address: str,
        opened: aiohttp.ClientWebSocketResponse[Literal[False]],
        clock: Clock,
        parse: DecodeMessage,
        on_message: Callable[[], None],
    ) -> None:
        self._address = address
        self._socket = opened
        self._clock = clock
        self._parse = parse
        self._on_message = on_message
        self._count = 0

    async def __anext__(self) -> Any:
        """Return the next message of text or bytes. Raise `BadAnswer` for a malformed or too large message.

        Even if many frames are waiting, other tasks can run.
        """
        while True:
            self._count += 1
            if self._count % MESSAGES_AT_ONCE == 0:
                await self._clock.sleep(0)
            frame = await self._socket.__anext__()
            if frame.type is _TEXT or frame.type is _BINARY:
                break
            if frame.type is _PING:
                await self._answer_ping(frame.data)
            elif frame.type is _ERROR:
                raise BadAnswer(f"{self._address} sent a malformed or too large WebSocket message")
        self._on_message()
        if len(frame.data) > LARGE_MESSAGE:
            await self._clock.sleep(0)
        elif frame.type is _TEXT:
            return self._parse(self._decode(frame.data), self._address)
        return self._parse(frame.data, self._address)

    def _decode(self, text: bytes) -> str:
        try:
            return text.decode()
        except UnicodeDecodeError:
            raise BadAnswer(f"{self._address} sent a malformed or too large WebSocket message") from None

    async def _answer_ping(self, data: bytes) -> None:
        try:
            await self._socket.pong(data)
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{self._address} has closed the connection ({reason_of(error)})") from None

    async def send(self, message: Any) -> None:
        """Send text unchanged, and any other value as JSON. Raise `Unreachable` if the socket is closed.

        The call blocks while the other side does not read, so the caller must limit the time.
        """
        try:
            await self._socket.send_str(message if isinstance(message, str) else orjson.dumps(message).decode())
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{self._address} has closed the connection ({reason_of(error)})") from None


class PromptSocket(aiohttp.ClientWebSocketResponse[Literal[True]]):
    """Sends a Close frame and closes immediately, because the other side's Close frame may never come."""

    def _on_data_received(self) -> None:
        """Postpone the next ping directly, because the base class would schedule a callback before each message."""
        if self._heartbeat is None or self._heartbeat_cb is None:  # a pong is awaited
            super()._on_data_received()
        else:
            self._heartbeat_when = self._loop.time() + self._heartbeat

    async def __anext__(self) -> Any:
        """Return the next message. It counts as unread until the next call."""
        protocol: Any = self._reader._protocol  # noqa: SLF001
        protocol.note_read(0)
        message = await self.receive()
        if message.type in _ENDS:
            raise StopAsyncIteration
        if message.type is _TEXT or message.type is _BINARY:
            protocol.note_read(len(message.data))
        return message

    async def close(self, *, code: int = aiohttp.WSCloseCode.OK, message: bytes = b"") -> bool:
        """Send the Close frame, for at most `CLOSE_TIMEOUT_SECS`, and close. Return False if sending failed or the
        connection was broken."""
        # with a close code, aiohttp does not wait for the other side's Close frame
        self._close_code = self._close_code or code
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_SECS):
                return await super().close(code=code, message=message)
        except TimeoutError:
            return False
