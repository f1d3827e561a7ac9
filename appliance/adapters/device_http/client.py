"""HTTP to vendors' devices: a client for each address. Sizes are limited."""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import SplitResult, urlsplit

import aiohttp
from aiohttp import ClientResponse
from aiohttp.http import HttpProcessingError
from msgspec import Struct

from appliance.adapters.device_http.access import HttpAccess
from appliance.adapters.device_http.connector import FramingTooLarge
from appliance.adapters.device_http.errors import HttpRefused, named_status, reason_of
from appliance.adapters.device_http.plain_requests import PlainRequests
from appliance.adapters.device_http.server_events import EVENT_STREAM, ServerEvent, read_events
from appliance.adapters.device_http.session import HEADERS, DeviceSession, send_once
from appliance.adapters.device_http.web_socket import DecodeMessage, Messages
from appliance.adapters.device_json import parse_json
from appliance.clock import Clock
from appliance.errors import AdapterFailed, BadAnswer, Unanswered, Unreachable, Unreadable
from appliance.tables.addresses import DEFAULT_PORTS, bracketed, is_numeric
from appliance.tasks import time_limit

RETRY_AFTER_SECS = 0.25
"""Pause before an unanswered request is repeated."""

BUSY, BUSY_PAUSE_SECS, MAX_BUSY_PAUSE_SECS = frozenset({429, 503}), 0.5, 2.0
"""The statuses of a busy device, the pause before the request is repeated once, and the longest pause that a device
can request."""

MAX_RESPONSE_BYTES = 64 * 1024
"""Size limit of a response. All known devices send less. A response of this size is parsed in a few milliseconds."""

_ORIGIN = re.compile(r"https?://[\w.:\[\]-]{1,260}(?=[/?#]|$)", re.ASCII)

_FAILURES = (aiohttp.ClientError, HttpProcessingError, OSError, UnicodeError)
"""The errors of an exchange with aiohttp."""

_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""Arguments for zlib, by Content-Encoding."""


class HttpResponse(Struct, frozen=True, kw_only=True):
    """A response of any status. `moved_to` is the other origin to which the response redirects, or None."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    moved_to: str | None = None


def origin_of(parts: SplitResult) -> tuple[str, str | None, int | None]:
    """Return the scheme, host, and port, or the default port of the scheme. Raise `ValueError` for an invalid
    port."""
    usual = DEFAULT_PORTS.get(parts.scheme)
    return parts.scheme, parts.hostname, usual if parts.port is None else parts.port


def _new_origin(address: str, status: int, headers: Mapping[str, str]) -> str | None:
    """Return the origin to which a response from `address` redirects. Return None if it is the origin of `address`.

    The path and query are omitted, because the device may repeat a secret of the request in them.
    """
    found = _ORIGIN.match(headers.get("Location", "")) if 300 <= status < 400 else None
    if found is None:
        return None
    try:
        is_own = origin_of(urlsplit(found[0])) == origin_of(urlsplit(address))
    except ValueError:
        return None
    return None if is_own else found[0]


class HttpClient:
    """Sends requests to one vendor address. Requests may run concurrently. `answers` counts responses of any status.

    The caller limits the time. If `sends_address` is true, the `Host` header contains the device's numeric address
    even if the URL contains a name.
    """

    def __init__(
        self,
        session: DeviceSession,
        address: str,
        clock: Clock,
        access: HttpAccess | None = None,
        max_bytes: int = MAX_RESPONSE_BYTES,
        *,
        sends_address: bool = False,
    ) -> None:
        self.address = address
        self._max_bytes = max_bytes
        self.answers = 0
        self._session = session
        self._clock = clock
        access = access or HttpAccess()
        self._headers = access.all_headers()
        self._middlewares = access.middlewares()
        self._tls = access.tls()
        self._plain: PlainRequests | None = None
        self._sends_address = sends_address and not is_numeric(urlsplit(address).hostname or "")

    async def request(self, method: str, path: str, *, json: Any = None, repeat: bool = True) -> bytes:
        """Return the body of a 2xx response.

        Raise `Unreachable` if the device does not answer, and `BadAnswer` if the device refuses or its answer is not
        HTTP. If `repeat` is true, `Unreachable` is raised only after a second attempt.
        """
        response = await self.exchange(method, path, repeat=repeat, json=json)
        if not 200 <= response.status < 300:
            raise self._refused(path, response.status, response.moved_to)
        return response.body

    async def request_json(self, method: str, path: str, **sent: Any) -> Any:
        """Return the parsed JSON of a 2xx response. Raise `Unreadable` for invalid JSON, and the exceptions of
        `request`."""
        return parse_json(await self.request(method, path, **sent), self.address)

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        repeat: bool = False,
        repeat_busy: bool | None = None,
        **sent: Any,
    ) -> HttpResponse:
        """Return the response, of any status. `sent` holds the arguments `params` and `data` for aiohttp.

        If `repeat` is true, an unanswered request is sent once more, over a new connection. With `repeat_busy` (by
        default equal to `repeat`), a request that a busy device rejects is also sent once more. Raise `Unreachable`
        if there is no answer, and `BadAnswer` if the answer is not HTTP.
        """
        session, pause, can_repeat = self._session.lasting if repeat else self._session.fresh, RETRY_AFTER_SECS, True
        while True:
            try:
                found = await self._exchange_once(session, method, path, headers, json, **sent)
                is_busy = found.status in BUSY and (repeat if repeat_busy is None else repeat_busy)
                if not (is_busy and can_repeat):
                    return found
                pause = _busy_pause(found)
            except Unreachable:
                if not (repeat and can_repeat):
                    raise
            await self._clock.sleep(pause)
            session, can_repeat = self._session.fresh, False

    async def _exchange_once(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        headers: Mapping[str, str] | None,
        json: Any,
        **sent: Any,
    ) -> HttpResponse:
        try:
            if headers or sent or self._middlewares:
                async with self._open(session, method, path, headers, json=json, **sent) as response:
                    body = await self._read(response.content, response.headers)
                return self._response(response.status, response.headers, body)
            # aiohttp's own objects for a request and its response take half of the time of an exchange
            address = await self._numeric_address() if self._sends_address else self.address
            if self._plain is None or self._plain.address != address:
                self._plain = PlainRequests(address, {**HEADERS, **self._headers}, self._tls)
            found = await self._plain.exchange(session, method, path, json, self._read)
            return self._response(*found)
        except _FAILURES as error:
            raise self._convert(error, path) from None

    def _response(self, status: int, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        moved_to = _new_origin(self.address, status, headers)
        return HttpResponse(status=status, headers=headers, body=body, moved_to=moved_to)

    def timeout_error(self, secs: float, answers_before: int) -> Unreachable | Unanswered:
        """Return the error of requests that took longer than `secs`. As in `convert_if_answered`, a response since
        `answers` was `answers_before` means that the address is reachable."""
        if self.answers != answers_before:
            return Unanswered(f"{self.address} took longer than {secs:g} s")
        return Unreachable(f"{self.address} does not answer (no data for {secs:g} s)")

    def convert_if_answered(self, error: Unreachable, answers_before: int) -> Unreachable | Unanswered:
        """Return an `Unanswered` if a response has arrived since `answers` was `answers_before`, because the address
        is reachable then. Otherwise, return the error."""
        return error if self.answers == answers_before else Unanswered(str(error))

    def _convert(self, error: Exception, path: str) -> AdapterFailed:
        """Return a `BadAnswer` if the device answered, otherwise an `Unreachable`."""
        failure: AdapterFailed
        if isinstance(error, aiohttp.WSServerHandshakeError):
            failure = self._refused(path, error.status)
        elif isinstance(error, aiohttp.ClientResponseError | HttpProcessingError):
            failure = Unreadable(f"{self.address} answered with something that is not HTTP")
        elif type(error) is aiohttp.ClientError:  # Digest authentication raises this error for a malformed answer
            failure = BadAnswer(f"{self.address} uses an unsupported authentication scheme")
        else:
            return Unreachable(f"{self.address} does not answer ({reason_of(error)})")
        self.answers += 1
        return failure

    def _refused(self, path: str, status: int, origin: str | None = None) -> HttpRefused:
        hint = f"; correct its address: it is now {origin}" if origin else ""
        return HttpRefused(f"{self.address}{path} answered {named_status(status)}{hint}", status)

    @asynccontextmanager
    async def _open(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        headers: Mapping[str, str] | None,
        **sent: Any,
    ) -> AsyncIterator[ClientResponse]:
        async with session.request(
            method,
            (await self._numeric_address() if self._sends_address else self.address) + path,
            headers={**self._headers, **(headers or {})},
            middlewares=(*self._middlewares, send_once),
            ssl=self._tls,
            allow_redirects=False,
            **sent,
        ) as response:
            yield response

    @asynccontextmanager
    async def events(
        self, path: str, *, silence_secs: float, last_id: str = "", max_bytes: int = MAX_RESPONSE_BYTES
    ) -> AsyncIterator[AsyncIterator[ServerEvent]]:
        """Open a stream of server-sent events. The iterator ends when the stream ends, or when no data arrives for
        `silence_secs`.

        If `last_id` is given, the stream starts after the event with that id. Raise `Unreachable` if the stream
        cannot be opened, and `BadAnswer` if the device refuses, sends another content type, or sends an event of more
        than `max_bytes`.
        """
        headers = {"Accept": EVENT_STREAM, **({"Last-Event-ID": last_id} if last_id else {})}
        timeout = aiohttp.ClientTimeout(total=None, sock_read=silence_secs)
        try:
            async with self._open(self._session.fresh, "GET", path, headers, timeout=timeout) as response:
                self.answers += 1
                if response.status != 200:
                    raise self._refused(path, response.status)
                if response.content_type != EVENT_STREAM:
                    raise BadAnswer(f"{self.address}{path} did not answer with an event stream")
                if response.connection is None:  # the whole response arrived with its head
                    yield read_events(response, self._clock, max_bytes)
                    return
                protocol: Any = response.connection.protocol
                protocol.begin_messages()
                yield read_events(response, self._clock, max_bytes, protocol.note_event)
        except _FAILURES as error:
            raise self._convert(error, path) from None

    async def _numeric_address(self) -> str:
        """Return the base URL with a numeric address instead of the host name."""
        parts = urlsplit(self.address)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        host = await self._session.resolve(parts.hostname or "", port)
        return f"{parts.scheme}://{bracketed(host)}:{port}"

    @asynccontextmanager
    async def messages(
        self,
        path: str,
        *,
        silence_secs: float,
        max_bytes: int = MAX_RESPONSE_BYTES,
        parse: DecodeMessage | None = None,
    ) -> AsyncIterator[Messages]:
        """Open a WebSocket. The result iterates over messages, and can also send messages.

        `parse` gets each message and the address. By default, messages are parsed as JSON. After `silence_secs`
        without a message, a ping is sent. If no pong arrives, the socket is closed. Raise `Unreachable` if the
        socket cannot be opened within `silence_secs`, and `BadAnswer` if the device refuses, or sends a malformed or
        too long message.
        """
        try:
            async with self._session.for_sockets(self._middlewares) as session:
                async with time_limit(silence_secs):
                    opened = await session.ws_connect(
                        self.address + path,
                        headers=self._headers,
                        ssl=self._tls,
                        heartbeat=silence_secs,
                        autoping=False,
                        max_msg_size=max_bytes,
                        decode_text=False,  # `Messages` decodes small texts
                    )
                async with opened:
                    self.answers += 1
                    yield Messages(self.address, opened, self._clock, parse or parse_json, self._count_answer)
        except _FAILURES as error:
            raise self._convert(error, path) from None

    def _count_answer(self) -> None:
        self.answers += 1

    async def _read(self, content: aiohttp.StreamReader, headers: Mapping[str, str]) -> bytes:
        self.answers += 1
        body = bytearray()
        try:
            while not content.at_eof():
                body += await content.readany()
                self._check_size(len(body))
        except (aiohttp.ClientError, OSError):
            raise Unanswered(f"{self.address} closed the connection during its answer") from None
        except FramingTooLarge:
            raise Unreadable(f"{self.address} answered with too many bytes between the parts of the body") from None
        except HttpProcessingError:
            raise Unreadable(f"{self.address} answered with a malformed body") from None
        coding = headers.get("Content-Encoding")
        return bytes(body) if coding is None else self._decompress(bytes(body), coding)

    def _decompress(self, body: bytes, coding: str) -> bytes:
        """Decompress a body that the device compressed although compression was not requested. Return other bodies
        unchanged."""
        bits = _WINDOW_BITS.get(coding.strip().lower())
        if bits is None or not body:
            return body
        decoder = zlib.decompressobj(bits)
        try:
            found = decoder.decompress(body, self._max_bytes + 1)
        except zlib.error:
            return body
        self._check_size(len(found))
        if not decoder.eof:
            raise Unreadable(f"{self.address} answered with a {coding} body that is incomplete")
        return found

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise Unreadable(f"{self.address} answered with more than {self._max_bytes // 1024} KiB")


def _busy_pause(response: HttpResponse) -> float:
    """Return the number of seconds to wait before the request is repeated: the device's `Retry-After`, within the
    limits."""
    stated = response.headers.get("Retry-After", "")
    return min(max(float(stated) if stated.isdecimal() else 0.0, BUSY_PAUSE_SECS), MAX_BUSY_PAUSE_SECS)
