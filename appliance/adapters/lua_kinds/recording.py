"""The form of a recording: requests, answers, and messages as JSON, without secrets."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import orjson
from msgspec import Struct, to_builtins

from appliance.adapters.device_http.client import HttpResponse
from appliance.adapters.device_http.server_events import ServerEvent
from appliance.adapters.lua_kinds.web_request import WebRequest

UNRECORDED_FIELDS = ("headers", "repeat")
UNRECORDED_HEADERS = frozenset({"set-cookie", "authorization", "www-authenticate"})

EXCHANGE_BYTES = 500
"""Memory overhead per exchange, in addition to its bodies."""

_SENT = ("origin", "query", "json", "form")


class Exchange(Struct, frozen=True, kw_only=True):
    """A request, and its response or error message."""

    request: WebRequest
    response: HttpResponse | None = None
    error: str | None = None

    @property
    def size(self) -> int:
        """Return the approximate size in bytes."""
        response = b"" if self.response is None else self.response.body
        return EXCHANGE_BYTES + len(self.request.body or b"") + len(response)

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


def encode_exchange(exchange: Exchange, redact: Callable[[Any], Any]) -> dict[str, Any]:
    names = [name for name in WebRequest.__struct_fields__ if name not in UNRECORDED_FIELDS]
    request = {name: value for name in names if (value := getattr(exchange.request, name)) not in (None, {})}
    found = {"request": _encode_body(request, redact)}
    if exchange.response is None:
        return {**found, "error": redact(exchange.error)}
    headers = {name: value for name, value in exchange.response.headers.items() if name not in UNRECORDED_HEADERS}
    response = {"status": exchange.response.status, "headers": headers, "body": exchange.response.body}
    if exchange.response.moved_to is not None:
        response["moved_to"] = exchange.response.moved_to
    return {**found, "response": _encode_body(response, redact)}


def decode_exchange(raw: Any) -> Exchange:
    stated, response = raw["request"], raw.get("response")
    known = {name: stated[name] for name in WebRequest.__struct_fields__ if name in stated}
    if "body" in known:
        known["body"] = _bytes_of(known["body"])
    request = WebRequest(**known)
    if response is None:
        return Exchange(request=request, error=str(raw["error"]))
    body, headers = _bytes_of(response["body"]), dict(response["headers"])
    moved_to = response.get("moved_to")
    found = HttpResponse(status=int(response["status"]), headers=headers, body=body, moved_to=moved_to)
    return Exchange(request=request, response=found)


def encode_message(message: Message, redact: Callable[[Any], Any]) -> dict[str, Any]:
    if message.event is not None:
        return {"event": redact(to_builtins(message.event))}
    return {"sent": message.sent, **_encode_body({"body": message.body}, redact)}


def decode_message(raw: Any) -> Message:
    if "event" in raw:
        return Message(event=ServerEvent(**raw["event"]))
    return Message(sent=bool(raw["sent"]), body=_bytes_of(raw["body"]))


def _encode_body(value: dict[str, Any], redact: Callable[[Any], Any]) -> dict[str, Any]:
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
