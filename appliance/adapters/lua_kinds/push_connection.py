"""The connection of a kind in Lua: a WebSocket or server-sent events from the section's base URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple, Protocol

import msgspec
import orjson

from appliance.adapters.device_http.server_events import ServerEvent
from appliance.adapters.device_http.web_socket import DecodeMessage, Messages
from appliance.adapters.device_json import load_json
from appliance.adapters.lua_kinds.definition import ListenDefinition
from appliance.adapters.lua_kinds.json_and_xml import compact_json
from appliance.adapters.replies import Replies
from appliance.clock import Clock
from appliance.errors import BadAnswer, Invalid, Unanswered, Unreachable

SOCKET_PING_SECS = 20.0
"""If no message arrives for this number of seconds, a ping is sent over a WebSocket."""

EVENTS_SILENCE_SECS = 600.0
"""If no event arrives for this number of seconds, the stream is opened again."""

MAX_PUSHED, MAX_PUSHED_BYTES = 100, 1 << 20
"""Limits for the messages that are waiting for the file: their number, and their total size in bytes. At these
limits, reading pauses."""

MAX_TEXT = 1 << 20
"""Size limit, in bytes or characters, of a message that is not JSON."""

SOCKET_SEND_SECS, DEFAULT_REPLY_SECS, MAX_REPLY_SECS = 5.0, 5.0, 300.0
MAX_ASKED = 100
"""Maximum number of concurrent `ctx:ask` calls."""

_CONTAINERS = ("{", "[", b"{", b"[")


class Pushed(NamedTuple):
    """A message for the file, its size in bytes or characters, and its text if the message is JSON."""

    size: int
    value: Any
    json: bytes = b""


class PushSource(Protocol):
    """Opens connections to one address, like `HttpClient`."""

    address: str

    def messages(self, path: str, *, silence_secs: float, max_bytes: int, parse: DecodeMessage) -> PushContext: ...

    def events(self, path: str, *, silence_secs: float, max_bytes: int) -> PushContext: ...


PushContext = AbstractAsyncContextManager[Any]
"""Iterates over messages. The context of a WebSocket can also `send`."""


class PushConnection:
    """The connection of one section. The adapter opens the connection repeatedly, and passes each `next_message` to
    the file. Of the messages above `MAX_PUSHED_BYTES` of all connections, only one is processed at a time, which
    `large_messages` ensures, because a message in process needs several times its size."""

    def __init__(
        self, http: PushSource, listen: ListenDefinition, clock: Clock, large_messages: asyncio.Lock
    ) -> None:
        self._large_messages = large_messages
        self._waiting: asyncio.Queue[Pushed] = asyncio.Queue(MAX_PUSHED)
        self._waiting_bytes = 0
        self._has_room = asyncio.Event()
        self._are_processed = asyncio.Event()
        self._http = http
        self._listen = listen
        self.is_unused = False
        self._socket: Messages | None = None
        self.is_open = False
        self._replies = Replies(clock)
        number = ("number", int, msgspec.field(name=listen.reply or "id"))
        self._reply: Any = msgspec.json.Decoder(msgspec.defstruct("Reply", [number]))

    @property
    def can_send(self) -> bool:
        return self._listen.kind != "sse"

    @property
    def waiting(self) -> int:
        """The number of messages that are waiting for the file."""
        return self._waiting.qsize()

    async def next_message(self) -> Any:
        """Return the next message. Each call shows that the previous message has been processed."""
        if self._waiting.empty():
            self._are_processed.set()
        pushed = await self._waiting.get()
        self._waiting_bytes -= pushed.size
        self._has_room.set()
        return pushed.value

    @asynccontextmanager
    async def connect(
        self, hello: Callable[[], Awaitable[Any]], find_path: Callable[[], Awaitable[str | None]]
    ) -> AsyncIterator[AsyncIterator[Any]]:
        """Open the connection. Match each message to its request, or queue it for the file. The iterator then yields
        None, because the caller would keep the last message in memory.

        `hello` returns the first message, or None to send nothing. `find_path` returns the path if the file has a
        function for the path. If this function returns nil, no connection is opened.
        """
        size = self._listen.max_message_kb << 10
        path = await find_path() if self._listen.path is None else self._listen.path
        if path is None:
            self.is_unused = True
            await asyncio.Event().wait()
        assert path is not None
        if self._listen.kind == "sse":
            async with self._http.events(path, silence_secs=EVENTS_SILENCE_SECS, max_bytes=size) as events:
                async with self._opened(None, hello):
                    yield self._read(_parse_events(events, self._http.address))
            return
        async with self._http.messages(path, silence_secs=SOCKET_PING_SECS, max_bytes=size, parse=_parse) as socket:
            async with self._opened(socket, hello):
                yield self._read(socket)

    @asynccontextmanager
    async def _opened(self, socket: Messages | None, hello: Callable[[], Awaitable[Any]]) -> AsyncIterator[None]:
        self._socket, self.is_open = socket, True
        try:
            first = await hello() if self._listen.has_hello else None
            if first is not None:
                await self.send(first)
            yield
        finally:
            self._socket, self.is_open = None, False
            self._replies.fail(Unanswered(f"{self._http.address} closed the connection"))

    async def send(self, message: Any) -> None:
        """Send text, or any other value as JSON. Raise `Unreachable` if the connection is closed."""
        if not self.can_send:
            raise Invalid("ctx:send: server-sent events are receive-only")
        if self._socket is None:
            raise Unreachable(f"{self._http.address}: the connection is not open")
        try:
            async with asyncio.timeout(SOCKET_SEND_SECS):
                await self._socket.send(message)
        except TimeoutError:
            raise Unanswered(f"{self._http.address} did not read the message in time") from None

    async def ask(self, message: Any, timeout_secs: float) -> Any:
        """Send the message with a new id, and return the reply with this id."""
        field = self._listen.reply
        if field is None:
            raise Invalid("ctx:ask: set `reply` in `listen` to the field that holds a message's id")
        if not isinstance(message, dict):
            raise Invalid("ctx:ask: the message must be a table with named fields")
        if len(self._replies) >= MAX_ASKED:
            raise Invalid(f"ctx:ask: {MAX_ASKED} messages are already waiting for replies")
        self._are_processed.set()  # the reply arrives after a large message, whose processing may need it
        try:
            return await self._replies.request(lambda number: self.send({**message, field: number}), timeout_secs)
        except TimeoutError:
            raise Unanswered(f"{self._http.address} did not reply within {timeout_secs:g} s") from None

    async def _read(self, messages: AsyncIterator[Pushed]) -> AsyncIterator[None]:
        """Pass each reply to its request. Queue all other messages for the file."""
        async for message in messages:
            if not self._is_reply(message):
                while self._waiting_bytes > 0 and self._waiting_bytes + message.size > MAX_PUSHED_BYTES:
                    self._has_room.clear()
                    await self._has_room.wait()
                if message.size > MAX_PUSHED_BYTES and not len(self._replies):
                    async with self._large_messages:
                        await self._put(message)
                        await self._are_processed.wait()
                else:
                    await self._put(message)
            del message  # it would stay in memory until the next message
            yield None

    async def _put(self, message: Pushed) -> None:
        self._waiting_bytes += message.size
        self._are_processed.clear()
        await self._waiting.put(message)

    def _is_reply(self, message: Pushed) -> bool:
        if not len(self._replies):
            return False
        try:
            number = self._reply.decode(message.json).number
        except msgspec.DecodeError:
            return False
        return self._replies.take(number, message.value)


async def _parse_events(events: AsyncIterator[ServerEvent], address: str) -> AsyncIterator[Pushed]:
    async for event in events:
        yield _parse_event(event, address)
        del event  # it would stay in memory until the next event


def _parse_event(event: ServerEvent, address: str) -> Pushed:
    data = _parse(event.data, address)
    return Pushed(data.size, {"event": event.event, "data": data.value, "id": event.id}, data.json)


def _parse(body: bytes | str, address: str) -> Pushed:
    """Parse a message as JSON. If the message is not JSON, return it as text or bytes. In objects and lists, parts
    that JSON forbids are replaced. Raise `BadAnswer` if the message exceeds the size limit."""
    try:
        text = load_json(body, compact_json) if body[:1] in _CONTAINERS else compact_json(body)
        return Pushed(len(body), orjson.Fragment(text), text)
    except Invalid as fault:
        if len(body) > MAX_TEXT:
            raise BadAnswer(f"{address} sent a large message that {fault}") from None
        return Pushed(len(body), body)
