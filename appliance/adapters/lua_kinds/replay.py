"""Replays a recording without the device."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from appliance.adapters.device_http.client import HttpResponse
from appliance.adapters.device_http.server_events import ServerEvent
from appliance.adapters.device_http.web_socket import DecodeMessage
from appliance.adapters.lua_kinds.recording import Message, decode_exchange, decode_message
from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.errors import BadAnswer, Invalid, Unreachable

NO_RECORDING = "the file is not a recording of lares try-adapter"


class Replay:
    """Replays a recording in place of a device. Raises `Invalid` if the data is not a recording.

    A request gets the first unused answer to a similar request, or the last answer if all are used. Each received
    message of a connection is recorded with the number of messages that the file had sent before. The message is
    replayed once the file has sent the same number of messages. `redact` replaces secrets as in the recording.
    """

    address = "the recording"

    def __init__(self, recorded: Any, redact: Callable[[Any], Any]) -> None:
        self._redact = redact
        try:
            self._exchanges = [decode_exchange(each) for each in recorded["exchanges"]]
            self._messages = [decode_message(each) for each in recorded.get("messages", [])]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Invalid(NO_RECORDING) from error
        self._used: set[int] = set()

    async def exchange(self, request: WebRequest) -> HttpResponse:
        """Return the recorded response. Raise `BadAnswer` if no recorded request is similar."""
        request = replace(request, path=self._redact(request.path), query=self._redact(request.query))
        alike = [number for number, each in enumerate(self._exchanges) if _is_like(each.request, request)]
        exact = [number for number in alike if self._exchanges[number].request.query == request.query]
        found = exact or alike
        if not found:
            raise BadAnswer(f"the recording has no answer to {request.method} {request.path}")
        number = next((each for each in found if each not in self._used), found[-1])
        self._used.add(number)
        exchange = self._exchanges[number]
        if exchange.response is None:
            raise Unreachable(exchange.error or "there was no answer")
        return exchange.response

    @asynccontextmanager
    async def messages(self, path: str, *, parse: DecodeMessage, **limits: Any) -> AsyncIterator[_ReplayedSocket]:
        yield _ReplayedSocket(self._messages, parse)

    @asynccontextmanager
    async def events(self, path: str, **limits: Any) -> AsyncIterator[AsyncIterator[ServerEvent]]:
        yield _ReplayedSocket([each for each in self._messages if each.event is not None], lambda body, _: body)


class _ReplayedSocket(AsyncIterator[Any]):
    def __init__(self, messages: Sequence[Message], parse: DecodeMessage) -> None:
        self._messages = list(messages)
        self._parse = parse
        self._sent = asyncio.Semaphore(0)

    async def __anext__(self) -> Any:
        while self._messages:
            message = self._messages.pop(0)
            if not message.sent:
                return message.event or self._parse(message.body, Replay.address)
            await self._sent.acquire()
        return await asyncio.Event().wait()

    async def send(self, message: Any) -> None:
        self._sent.release()


def _is_like(one: WebRequest, other: WebRequest) -> bool:
    return (one.method, one.path, one.origin) == (other.method, other.path, other.origin)
