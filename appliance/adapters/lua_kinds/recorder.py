"""Recordings of what a kind in Lua asked and was answered; they replay without the device, and hold no secret."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from appliance.adapters.device_http import HttpResponse
from appliance.adapters.http_push import DecodeMessage, ServerEvent
from appliance.adapters.lua_kinds.connection import PushSource
from appliance.adapters.lua_kinds.web_request import Transport, WebRequest
from appliance.errors import AdapterFailed, BadAnswer, Invalid, Unreachable
from appliance.tables.fields import Field, Fields

UNRECORDED_FIELDS = ("headers", "once")
UNRECORDED_HEADERS = frozenset({"set-cookie", "authorization", "www-authenticate"})
"""Headers that no recording holds."""

NO_RECORDING = "what is replayed is no recording of lares try-adapter"

MAX_KEPT_MESSAGES, MAX_KEPT_MESSAGE_BYTES = 200, 16 << 20
"""Messages over a connection that are kept, and their bytes."""

_SENT = ("origin", "query", "json", "form")


class WebExchange(Struct, frozen=True, kw_only=True):
    """One request, and its response or the sentence about why there was none."""

    request: WebRequest
    response: HttpResponse | None = None
    error: str | None = None

    def told(self) -> list[str]:
        """What was asked and what came, in lines for people."""
        asked, came = self.request, self.response
        size = "" if came is None else f"{came.status}, {len(came.body)} bytes"
        lines = [f"asked: {asked.method} {asked.path} → {self.error or size}"]
        lines += [f"    {name}: {orjson.dumps(value).decode()}" for name in _SENT if (value := getattr(asked, name))]
        bodies = {"body": asked.body, "came": None if came is None else came.body}
        return lines + [
            f"    {name}: {' '.join(body.decode(errors='replace').split())}" for name, body in bodies.items() if body
        ]


class PushedMessage(Struct, frozen=True, kw_only=True):
    """What went over a connection: a body that was `sent`, one that came, or an event that came."""

    sent: bool = False
    body: bytes = b""
    event: ServerEvent | None = None

    def told(self) -> str:
        """The line for people."""
        shown = self.body if self.event is None else orjson.dumps(to_builtins(self.event))
        words = " ".join(shown.decode(errors="replace").split())
        return f"{'sent' if self.sent else 'came'} over the connection: {words}"


class RecordingPush:
    """Keeps what goes over the connections of another `PushSource`, as far as there is room, in `kept`."""

    def __init__(self, inner: PushSource) -> None:
        self._inner = inner
        self.address = inner.address
        self.kept: list[PushedMessage] = []
        self._left = MAX_KEPT_MESSAGE_BYTES

    def keep(self, message: PushedMessage) -> None:
        """Keep one, if there is room."""
        self._left -= len(message.body if message.event is None else message.event.data)
        if len(self.kept) < MAX_KEPT_MESSAGES and self._left >= 0:
            self.kept.append(message)

    @asynccontextmanager
    async def messages(self, path: str, *, parse: DecodeMessage, **limits: Any) -> AsyncIterator[_RecordedSocket]:
        """As the other one's."""
        async with self._inner.messages(path, parse=lambda body, _: body, **limits) as socket:
            yield _RecordedSocket(socket, self, parse)

    @asynccontextmanager
    async def events(self, path: str, **limits: Any) -> AsyncIterator[AsyncIterator[ServerEvent]]:
        """As the other one's."""

        async def noted() -> AsyncIterator[ServerEvent]:
            async for each in events:
                self.keep(PushedMessage(event=each))
                yield each

        async with self._inner.events(path, **limits) as events:
            yield noted()


class _RecordedSocket(AsyncIterator[Any]):
    def __init__(self, inner: Any, recording: RecordingPush, parse: DecodeMessage) -> None:
        self._inner = inner
        self._recording = recording
        self._parse = parse

    async def __anext__(self) -> Any:
        body = await anext(self._inner)
        self._recording.keep(PushedMessage(body=_encoded(body)))
        return self._parse(body, self._recording.address)

    async def send(self, message: Any) -> None:
        self._recording.keep(PushedMessage(sent=True, body=_encoded(message)))
        await self._inner.send(message)


class ReplayPush:
    """Brings what came in a recording, each after as many messages were sent as there; then nothing.

    Raises `Invalid` for what is no recording.
    """

    address = "the recording"

    def __init__(self, recorded: Any) -> None:
        try:
            self._rows = [_message(each) for each in recorded.get("messages", [])]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Invalid(NO_RECORDING) from error

    @asynccontextmanager
    async def messages(self, path: str, *, parse: DecodeMessage, **limits: Any) -> AsyncIterator[_ReplayedSocket]:
        """The WebSocket of the recording."""
        yield _ReplayedSocket(self._rows, parse)

    @asynccontextmanager
    async def events(self, path: str, **limits: Any) -> AsyncIterator[AsyncIterator[ServerEvent]]:
        """The events of the recording."""
        yield _ReplayedSocket([each for each in self._rows if each.event is not None], lambda body, _: body)


class _ReplayedSocket(AsyncIterator[Any]):
    def __init__(self, rows: Sequence[PushedMessage], parse: DecodeMessage) -> None:
        self._rows = list(rows)
        self._parse = parse
        self._sent = asyncio.Semaphore(0)

    async def __anext__(self) -> Any:
        while self._rows:
            row = self._rows.pop(0)
            if not row.sent:
                return row.event or self._parse(row.body, ReplayPush.address)
            await self._sent.acquire()
        return await asyncio.Event().wait()

    async def send(self, message: Any) -> None:
        self._sent.release()


def _encoded(message: Any) -> bytes:
    """A message as bytes; a table as its JSON."""
    if isinstance(message, bytes):
        return message
    return message.encode() if isinstance(message, str) else orjson.dumps(message)


class RecordingTransport:
    """Keeps what goes over another transport, in `exchanges`."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.exchanges: list[WebExchange] = []

    async def exchange(self, request: WebRequest) -> HttpResponse:
        """As the other one's."""
        try:
            response = await self._inner.exchange(request)
        except AdapterFailed as error:
            self.exchanges.append(WebExchange(request=request, error=str(error)))
            raise
        self.exchanges.append(WebExchange(request=request, response=response))
        return response


class ReplayTransport:
    """Answers from a recording: each request with the first recorded one like it that was not used, else the last.

    `redact` takes out what stands in a recording for secrets. Raises `Invalid` for what is no recording.
    """

    def __init__(self, recorded: Any, redact: Callable[[Any], Any]) -> None:
        self._redact = redact
        try:
            self._rows = [_row(each) for each in recorded["exchanges"]]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Invalid(NO_RECORDING) from error
        self._used: set[int] = set()

    async def exchange(self, request: WebRequest) -> HttpResponse:
        """The recorded response; raises `BadAnswer` where none is like it."""
        request = replace(request, path=self._redact(request.path), query=self._redact(request.query))
        alike = [number for number, row in enumerate(self._rows) if _is_like(row.request, request)]
        exact = [number for number in alike if self._rows[number].request.query == request.query]
        found = exact or alike
        if not found:
            raise BadAnswer(f"the recording has no answer to {request.method} {request.path}")
        number = next((each for each in found if each not in self._used), found[-1])
        self._used.add(number)
        row = self._rows[number]
        if row.response is None:
            raise Unreachable(row.error or "there was no answer")
        return row.response


def recording_of(
    kind: str,
    settings: Mapping[str, Any],
    fields: Fields,
    exchanges: Sequence[WebExchange],
    messages: Sequence[PushedMessage],
    redact: Callable[[Any], Any],
) -> dict[str, Any]:
    """What went over as JSON, with every secret taken out by `redact`; `fields` are those of the kind's settings."""
    rows = []
    for each in exchanges:
        request = {name: getattr(each.request, name) for name in each.request.__struct_fields__}
        row: dict[str, Any] = {"request": {name: value for name, value in request.items() if value not in (None, {})}}
        for name in UNRECORDED_FIELDS:
            row["request"].pop(name, None)
        if each.response is None:
            row["error"] = each.error
        else:
            headers = {name: value for name, value in each.response.headers.items() if name not in UNRECORDED_HEADERS}
            row["response"] = {"status": each.response.status, "headers": headers, "body": each.response.body}
        rows.append({name: _recorded(value, redact) for name, value in row.items()})
    stated = {name: _without_secret(value, redact(value), fields[name]) for name, value in settings.items()}
    pushed = [_recorded_message(each, redact) for each in messages]
    return {"kind": kind, "settings": stated, "exchanges": rows, **({"messages": pushed} if pushed else {})}


def _recorded_message(message: PushedMessage, redact: Callable[[Any], Any]) -> dict[str, Any]:
    if message.event is not None:
        return {"event": redact(to_builtins(message.event))}
    return {"sent": message.sent, **_recorded({"body": message.body}, redact)}


def _message(raw: Any) -> PushedMessage:
    if "event" in raw:
        return PushedMessage(event=ServerEvent(**raw["event"]))
    return PushedMessage(sent=bool(raw["sent"]), body=_bytes_of(raw["body"]))


def _without_secret(value: Any, redacted: Any, field: Field[Any]) -> Any:
    """The value without secrets, such that the kind takes it: for a number the largest power of ten."""
    for each in [redacted] if redacted == value else [redacted, *(10**digits for digits in range(15, -1, -1))]:
        with suppress(Invalid):
            field.check(each)
            return each
    return field.default


def _row(raw: Any) -> WebExchange:
    stated, response = raw["request"], raw.get("response")
    known = {name: stated[name] for name in WebRequest.__struct_fields__ if name in stated}
    if "body" in known:
        known["body"] = _bytes_of(known["body"])
    if response is None:
        return WebExchange(request=WebRequest(**known), error=str(raw["error"]))
    body, headers = _bytes_of(response["body"]), dict(response["headers"])
    found = HttpResponse(status=int(response["status"]), headers=headers, body=body)
    return WebExchange(request=WebRequest(**known), response=found)


def _recorded(value: Any, redact: Callable[[Any], Any]) -> Any:
    """JSON of one side of an exchange, whose `body` is a text, or `{base64}` where its bytes are none."""
    if not isinstance(value, dict) or "body" not in value:
        return redact(value)
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
