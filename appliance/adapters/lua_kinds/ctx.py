"""The methods of `ctx` in kinds: HTTP, messages, kept texts, JSON, XML, digests, and log lines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import orjson

from appliance.adapters.device_http.client import HttpResponse
from appliance.adapters.device_xml import parse_at_once_or_apart
from appliance.adapters.lua_calls import write_script_line
from appliance.adapters.lua_kinds.crypto import compute
from appliance.adapters.lua_kinds.json_and_xml import compact_json, decode_xml
from appliance.adapters.lua_kinds.kept_texts import KeptTexts
from appliance.adapters.lua_kinds.push_connection import DEFAULT_REPLY_SECS, MAX_REPLY_SECS, PushConnection
from appliance.adapters.lua_kinds.web_request import (
    DEFAULT_TIMEOUT_SECS,
    Transport,
    for_lua,
    read_request,
)
from appliance.adapters.redaction import Redaction
from appliance.computing import compute_alone
from appliance.errors import AdapterFailed, Invalid, Unanswered, Unreachable, Unreadable
from appliance.shortening import join_first
from appliance.tables.checks import number_within

MAX_DESCRIBED, MAX_DESCRIBED_BYTES = 4, 1 << 18
"""Maximum number of answers in a report, and the maximum size of an answer whose fields are listed."""

MAX_FIELDS, MAX_FIELD_CHARS = 40, 40

log = logging.getLogger("adapters")


ASKING = frozenset({"http", "send", "ask"})
"""Methods of `ctx` that wait for the device or service."""


class KindCtx:
    """The `LuaCalls` of one running function. `request_secs` is the default and maximum time limit of the function's
    requests.

    `failure` is the error of the last request if its answer was missing or unreadable. `was_asking` is true if the
    call was cancelled during a request. `repeats` is passed to `WebRequest.repeat`.
    """

    counted_secs = 0.0

    def __init__(
        self,
        section: str,
        transport: Transport,
        kept: KeptTexts,
        redact: Redaction,
        connection: PushConnection | None = None,
        request_secs: float = DEFAULT_TIMEOUT_SECS,
        *,
        repeats: bool | None = None,
    ) -> None:
        self._repeats = repeats
        self._answers: list[tuple[str, HttpResponse]] = []
        self._request_secs = request_secs
        self._connection = connection
        self.failure: AdapterFailed | None = None
        self.was_asking = False
        self._section = section
        self._transport = transport
        self._kept = kept
        self._redact = redact

    async def call(self, operation: str, arguments: Sequence[Any]) -> Any:
        """Run `ctx:<operation>(…)`. Raise `LaresError` on failure."""
        first, second, *_ = arguments
        self.was_asking = False
        if operation not in _METHODS:
            raise Invalid(f"ctx:{operation} is not available in the Lua file of an adapter kind")
        try:
            return await _METHODS[operation](self, first, second)
        except (Unreachable, Unanswered, Unreadable) as error:
            self.failure = type(error)(str(error))  # the traceback of `error` refers to this object and the answer
            raise
        except asyncio.CancelledError:
            self.was_asking = operation in ASKING
            raise

    def log(self, level: str, message: str, fields: Any) -> None:
        """Write a log line of the file, without secrets."""
        redact = self._redact
        write_script_line(log, level, redact(message), redact.in_value(fields), adapter=self._section)

    async def http(self, request: Any, _: Any) -> Any:
        """Send the request, and return the response as `{status, headers, body, json?}`."""
        asked = read_request(request, self._request_secs, repeat=self._repeats)
        response = await self._transport.exchange(asked)
        if len(self._answers) < MAX_DESCRIBED:
            self._answers.append((asked.path, response))
        return for_lua(response)

    def describe_answers(self) -> str:
        """Return the fields of each answer, or an empty string if there was no request."""
        return "; ".join(f"{path}: {_fields_of(response)}" for path, response in self._answers)

    async def send(self, message: Any, _: Any) -> None:
        await self._over_connection("send").send(message)

    async def ask(self, message: Any, timeout_secs: Any) -> Any:
        """Send a message over the connection, and return its reply."""
        connection = self._over_connection("ask")
        try:
            secs = DEFAULT_REPLY_SECS if timeout_secs is None else number_within(0.05, MAX_REPLY_SECS)(timeout_secs)
        except Invalid as fault:
            raise Invalid(f"ctx:ask: timeout_secs {fault}") from None
        return await connection.ask(message, secs)

    def _over_connection(self, method: str) -> PushConnection:
        if self._connection is None:
            raise Invalid(f"ctx:{method} is available only in kinds with the field `listen`")
        return self._connection

    async def keep(self, key: Any, text: Any) -> None:
        """Store a text durably."""
        await self._kept.put(key, text)
        await self._redact.prepare()

    async def kept(self, key: Any, _: Any) -> str | None:
        return self._kept.get(key)

    async def parse_json(self, text: Any, _: Any) -> Any:
        """Parse JSON. Return `{value}`, or `{fault}` for invalid JSON."""
        try:
            return {"value": orjson.Fragment(compact_json(text))}
        except Invalid as fault:
            return {"fault": str(fault)}

    async def parse_xml(self, text: Any, _: Any) -> Any:
        """Parse XML. Return the root element as `{value}`, or `{fault}` for invalid XML."""
        return await parse_at_once_or_apart(decode_xml, text.encode("latin-1"))

    async def crypto(self, name: Any, given: Any) -> str:
        """Run a function of the Lua table `crypto`."""
        if name == "pbkdf2":
            return await compute_alone("kinds-slow", compute, name, given)
        return compute(name, given)


def _fields_of(response: HttpResponse) -> str:
    if not response.body:
        return "nothing"
    try:
        value = orjson.loads(response.body) if len(response.body) <= MAX_DESCRIBED_BYTES else None
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, dict):
        names = [str(name)[:MAX_FIELD_CHARS] for name in value]
        return join_first(names, MAX_FIELDS) if names else "no fields"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return f"{len(response.body)} bytes that are not a JSON object"


_METHODS: Mapping[str, Callable[[KindCtx, Any, Any], Awaitable[Any]]] = {
    "http": KindCtx.http,
    "send": KindCtx.send,
    "ask": KindCtx.ask,
    "keep": KindCtx.keep,
    "kept": KindCtx.kept,
    "json": KindCtx.parse_json,
    "xml": KindCtx.parse_xml,
    "crypto": KindCtx.crypto,
}
