"""Records the requests, answers, and pushed messages of one section, without its secrets."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson

from appliance.adapters.device_http.client import HttpResponse
from appliance.adapters.device_http.server_events import ServerEvent
from appliance.adapters.device_http.web_socket import DecodeMessage
from appliance.adapters.lua_kinds.origins import Origins
from appliance.adapters.lua_kinds.push_connection import PushSource
from appliance.adapters.lua_kinds.recording import Exchange, Message, encode_exchange, encode_message
from appliance.adapters.lua_kinds.replay import Replay
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.adapters.lua_kinds.web_request import Transport, WebRequest
from appliance.errors import AdapterFailed, Invalid
from appliance.tables.fields import Field, Fields

MAX_MESSAGES, MAX_MESSAGE_BYTES = 200, 16 << 20
"""Maximum number of recorded messages, and maximum total size of these messages in bytes."""


class SectionRecorder:
    """Forwards requests and connections to a `Transport` and a `PushSource`, and records them.

    If the exchanges or the messages have more than `max_bytes`, the rest is not recorded.
    """

    def __init__(self, transport: Transport, source: PushSource, max_bytes: int = sys.maxsize) -> None:
        self._transport = transport
        self._source = source
        self.address = source.address
        self._exchanges: list[Exchange] = []
        self._exchange_bytes_left = max_bytes
        self.messages_kept: list[Message] = []
        self._bytes_left = min(MAX_MESSAGE_BYTES, max_bytes)

    @property
    def is_complete(self) -> bool:
        """Whether all exchanges are recorded."""
        return self._exchange_bytes_left >= 0

    async def exchange(self, request: WebRequest) -> HttpResponse:
        try:
            response = await self._transport.exchange(request)
        except AdapterFailed as error:
            self._add(Exchange(request=request, error=str(error)))
            raise
        self._add(Exchange(request=request, response=response))
        return response

    def _add(self, exchange: Exchange) -> None:
        self._exchange_bytes_left -= exchange.size
        if self.is_complete:
            self._exchanges.append(exchange)

    @asynccontextmanager
    async def messages(self, path: str, *, parse: DecodeMessage, **limits: Any) -> AsyncIterator[_RecordedSocket]:
        async with self._source.messages(path, parse=lambda body, _: body, **limits) as socket:
            yield _RecordedSocket(socket, self, parse)

    @asynccontextmanager
    async def events(self, path: str, **limits: Any) -> AsyncIterator[AsyncIterator[ServerEvent]]:
        async def recorded() -> AsyncIterator[ServerEvent]:
            async for each in events:
                self.keep(Message(event=each))
                yield each

        async with self._source.events(path, **limits) as events:
            yield recorded()

    def keep(self, message: Message) -> None:
        """Record the message if the limits allow it."""
        self._bytes_left -= len(message.body if message.event is None else message.event.data)
        if len(self.messages_kept) < MAX_MESSAGES and self._bytes_left >= 0:
            self.messages_kept.append(message)

    def lines(self) -> list[str]:
        """Format all records as lines for people. The lines contain secrets."""
        exchanges = [line for each in self._exchanges for line in each.lines()]
        return exchanges + [each.line() for each in self.messages_kept]

    @classmethod
    def for_trial(
        cls, origins: Origins, recorded: Any, redact: Callable[[Any], Any], max_bytes: int = sys.maxsize
    ) -> SectionRecorder:
        """Return a recorder for the device or, if `recorded` is given, for this recording instead. Raise `Invalid` if
        `recorded` is not a recording."""
        if recorded is None:
            return cls(origins, origins.main, max_bytes)
        replay = Replay(recorded, redact)
        return cls(replay, replay, max_bytes)

    def recording(self, section: LuaSection, fields: Fields, redact: Callable[[Any], Any]) -> dict[str, Any]:
        """Return all records as JSON, without secrets. `fields` contains the kind's settings."""
        settings = {name: value for name, value in section.raw.items() if name not in ("type", "enabled")}
        stated = {name: _without_secret(value, redact(value), fields[name]) for name, value in settings.items()}
        exchanges = [encode_exchange(each, redact) for each in self._exchanges]
        messages = [encode_message(each, redact) for each in self.messages_kept]
        found = {"kind": section.kind, "settings": stated, "exchanges": exchanges}
        return {**found, "messages": messages} if messages else found


class _RecordedSocket(AsyncIterator[Any]):
    def __init__(self, socket: Any, recorder: SectionRecorder, parse: DecodeMessage) -> None:
        self._socket = socket
        self._recorder = recorder
        self._parse = parse

    async def __anext__(self) -> Any:
        body = await anext(self._socket)
        self._recorder.keep(Message(body=_encoded(body)))
        return self._parse(body, self._recorder.address)

    async def send(self, message: Any) -> None:
        self._recorder.keep(Message(sent=True, body=_encoded(message)))
        await self._socket.send(message)


def _encoded(message: Any) -> bytes:
    """Encode a message as bytes. A table becomes JSON."""
    if isinstance(message, bytes):
        return message
    return message.encode() if isinstance(message, str) else orjson.dumps(message)


def _without_secret(value: Any, redacted: Any, field: Field[Any]) -> Any:
    """Return a value that contains no secret and that the setting accepts. A number is replaced with a power of
    ten."""
    for each in [redacted] if redacted == value else [redacted, *(10**digits for digits in range(15, -1, -1))]:
        with suppress(Invalid):
            field.check(each)
            return each
    return field.default
