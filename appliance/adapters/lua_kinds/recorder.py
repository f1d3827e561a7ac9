"""Records the requests, answers, and pushed messages of one section, without its secrets. Replays a recording
without the device."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from appliance.adapters.device_http import HttpResponse
from appliance.adapters.lua_kinds.connection import PushSource
from appliance.adapters.lua_kinds.origins import Origins
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.adapters.lua_kinds.web_request import Transport, WebRequest
from appliance.adapters.server_events import ServerEvent
from appliance.adapters.web_socket import DecodeMessage
from appliance.errors import AdapterFailed, BadAnswer, Invalid, Unreachable
from appliance.tables.fields import Field, Fields

UNRECORDED_FIELDS = ("headers", "repeat")
UNRECORDED_HEADERS = frozenset({"set-cookie", "authorization", "www-authenticate"})

NO_RECORDING = "the file is not a recording of lares try-adapter"

MAX_MESSAGES, MAX_MESSAGE_BYTES = 200, 16 << 20
"""Maximum number of recorded messages, and maximum total size of these messages in bytes."""

_SENT = ("origin", "query", "json", "form")


class Exchange(Struct, frozen=True, kw_only=True):
    """A request, and its response or error message."""

    request: WebRequest
    response: HttpResponse | None = None
    error: str | None = None

    def lines(self) -> list[str]:
        """Format the exchange as lines for people."""
        asked, came = self.request, self.response
        size = "" if came is None else f"{came.status}, {len(came.body)} bytes"
        lines = [f"request: {asked.method} {asked.path} → {self.error or size}"]
        lines += [f"    {name}: {orjson.dumps(value).decode()}" for name in _SENT if (value := getattr(asked, name))]
        bodies = {"body": asked.body, "response": None if came is None else came.body}
        return lines + [
            f"    {name}: {' '.join(body.decode(errors='replace').split())}" for name, body in bodies.items() if body
        ]


class Message(Struct, frozen=True, kw_only=True):
    """One message of a connection: a sent or received body, or a server-sent event."""

    sent: bool = False
    body: bytes = b""
    event: ServerEvent | None = None

    def line(self) -> str:
        """Format the message as one line for people."""
        shown = self.body if self.event is None else orjson.dumps(to_builtins(self.event))
        words = " ".join(shown.decode(errors="replace").split())
        return f"{'sent' if self.sent else 'received'} over the connection: {words}"


class Recorder:
    """Forwards requests and connections to a `Transport` and a `PushSource`, and records them."""

    def __init__(self, transport: Transport, source: PushSource) -> None:
        self._transport = transport
        self._source = source
        self.address = source.address
        self._exchanges: list[Exchange] = []
        self.messages_kept: list[Message] = []
        self._bytes_left = MAX_MESSAGE_BYTES

    async def exchange(self, request: WebRequest) -> HttpResponse:
        try:
            response = await self._transport.exchange(request)
        except AdapterFailed as error:
            self._exchanges.append(Exchange(request=request, error=str(error)))
            raise
        self._exchanges.append(Exchange(request=request, response=response))
        return response

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
    def for_trial(cls, origins: Origins, recorded: Any, redact: Callable[[Any], Any]) -> Recorder:
        """Return a recorder for the device or, if `recorded` is given, for this recording instead. Raise `Invalid` if
        `recorded` is not a recording."""
        if recorded is None:
            return cls(origins, origins.main)
        replay = Replay(recorded, redact)
        return cls(replay, replay)

    def recording(self, section: LuaSection, fields: Fields, redact: Callable[[Any], Any]) -> dict[str, Any]:
        """Return all records as JSON, without secrets. `fields` contains the kind's settings."""
        settings = {name: value for name, value in section.raw.items() if name not in ("type", "enabled")}
        stated = {name: _without_secret(value, redact(value), fields[name]) for name, value in settings.items()}
        exchanges = [_recorded_exchange(each, redact) for each in self._exchanges]
        messages = [_recorded_message(each, redact) for each in self.messages_kept]
        found = {"kind": section.kind, "settings": stated, "exchanges": exchanges}
        return {**found, "messages": messages} if messages else found


class _RecordedSocket(AsyncIterator[Any]):
    def __init__(self, socket: Any, recorder: Recorder, parse: DecodeMessage) -> None:
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
            self._exchanges = [_read_exchange(each) for each in recorded["exchanges"]]
            self._messages = [_read_message(each) for each in recorded.get("messages", [])]
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


def _encoded(message: Any) -> bytes:
    """Encode a message as bytes. A table becomes JSON."""
    if isinstance(message, bytes):
        return message
    return message.encode() if isinstance(message, str) else orjson.dumps(message)


def _recorded_exchange(exchange: Exchange, redact: Callable[[Any], Any]) -> dict[str, Any]:
    names = [name for name in WebRequest.__struct_fields__ if name not in UNRECORDED_FIELDS]
    request = {name: value for name in names if (value := getattr(exchange.request, name)) not in (None, {})}
    found = {"request": _recorded(request, redact)}
    if exchange.response is None:
        return {**found, "error": redact(exchange.error)}
    headers = {name: value for name, value in exchange.response.headers.items() if name not in UNRECORDED_HEADERS}
    response = {"status": exchange.response.status, "headers": headers, "body": exchange.response.body}
    return {**found, "response": _recorded(response, redact)}


def _read_exchange(raw: Any) -> Exchange:
    stated, response = raw["request"], raw.get("response")
    known = {name: stated[name] for name in WebRequest.__struct_fields__ if name in stated}
    if "body" in known:
        known["body"] = _bytes_of(known["body"])
    request = WebRequest(**known)
    if response is None:
        return Exchange(request=request, error=str(raw["error"]))
    body, headers = _bytes_of(response["body"]), dict(response["headers"])
    found = HttpResponse(status=int(response["status"]), headers=headers, body=body)
    return Exchange(request=request, response=found)


def _recorded_message(message: Message, redact: Callable[[Any], Any]) -> dict[str, Any]:
    if message.event is not None:
        return {"event": redact(to_builtins(message.event))}
    return {"sent": message.sent, **_recorded({"body": message.body}, redact)}


def _read_message(raw: Any) -> Message:
    if "event" in raw:
        return Message(event=ServerEvent(**raw["event"]))
    return Message(sent=bool(raw["sent"]), body=_bytes_of(raw["body"]))


def _without_secret(value: Any, redacted: Any, field: Field[Any]) -> Any:
    """Return a value that contains no secret and that the setting accepts. A number is replaced with a power of
    ten."""
    for each in [redacted] if redacted == value else [redacted, *(10**digits for digits in range(15, -1, -1))]:
        with suppress(Invalid):
            field.check(each)
            return each
    return field.default


def _recorded(value: dict[str, Any], redact: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a request or a response as JSON. The body is text, or `{base64}` if it is not UTF-8."""
    if "body" not in value:
        return dict(redact(value))
    text = redact(value["body"].decode(errors="surrogateescape"))
    body = text.encode(errors="surrogateescape")
    shown = text if text.isascii() or _is_text(body) else {"base64": base64.b64encode(body).decode()}
    return {**redact({name: each for name, each in value.items() if name != "body"}), "body": shown}


def _is_text(body: bytes) -> bool:
    try:
        return body.decode() is not None
    except UnicodeError:
        return False


def _bytes_of(recorded: Any) -> bytes:
    return recorded.encode() if isinstance(recorded, str) else base64.b64decode(recorded["base64"])


def _is_like(one: WebRequest, other: WebRequest) -> bool:
    return (one.method, one.path, one.origin) == (other.method, other.path, other.origin)
