"""HTTP to vendors' devices: the session of all, and a client for each address, with limits on time and size."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp
import orjson
from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse
from msgspec import Struct

from appliance.adapters.device_connector import DeviceConnector
from appliance.adapters.http_access import HttpAccess, HttpRefused, named_status, reason_of
from appliance.adapters.http_push import EVENT_STREAM, DecodeMessage, Messages, PromptSocket, ServerEvent, read_events
from appliance.clock import Clock
from appliance.errors import BadAnswer, Unanswered, Unreachable
from appliance.tasks import time_limit

KEEP_SECS = 1.0
"""Seconds that a connection is kept for any request; no known device closes an idle one sooner."""

LASTING_SECS = 60.0
"""Seconds that one is kept for requests that may be repeated: a device may have closed it meanwhile."""

RETRY_AFTER_SECS = 0.25
"""Seconds before a request that was never answered is sent once more."""

MAX_RESPONSE_BYTES = 256 * 1024
"""Bytes of a response that are read; no known device sends more."""


class DeviceSession:
    """The session for every adapter, until it is closed: connections that are kept briefly, and lasting ones.

    Those who ask for an address at most every minute keep one connection to it, as long as the device does.
    """

    def __init__(self) -> None:
        self.brief = _open(DeviceConnector(KEEP_SECS))
        self.lasting = _open(DeviceConnector(LASTING_SECS))

    def for_sockets(self, middlewares: Sequence[ClientMiddlewareType]) -> aiohttp.ClientSession:
        """The brief one with middlewares of its own, which a WebSocket's handshake cannot have for itself."""
        return _open(self.brief.connector, middlewares, is_owner=False)

    async def __aenter__(self) -> DeviceSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self.brief.close()
        await self.lasting.close()


def _open(
    connector: aiohttp.BaseConnector | None,
    middlewares: Sequence[ClientMiddlewareType] = (),
    *,
    is_owner: bool = True,
) -> aiohttp.ClientSession:
    """No cookies, no proxies, no compression."""
    return aiohttp.ClientSession(
        connector=connector,
        connector_owner=is_owner,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        headers={"User-Agent": "Lares", "Accept-Encoding": "identity"},
        json_serialize_bytes=orjson.dumps,
        auto_decompress=False,
        middlewares=(*middlewares, send_once),
        ws_response_class=PromptSocket,
    )


async def send_once(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Neither repeat a request that was cut off (`HttpClient` may) nor redirect the handshake of a WebSocket."""
    try:
        response = await handler(request)
        if response.status // 100 == 3 and "Upgrade" in request.headers:
            response.close()
            raise aiohttp.WSServerHandshakeError(response.request_info, (), status=response.status)
        return response
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _CutOff(reason_of(error)) from None


class _CutOff(aiohttp.ClientError):
    """The connection failed or ended before a response came."""


class HttpResponse(Struct, frozen=True, kw_only=True):
    """One response of any status; names of `headers` are not case-sensitive."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """Requests to one vendor address; they may be sent concurrently. `answers` counts the responses of any status.

    Responses beyond `max_bytes` are refused; the time is limited by the command or poll. An address that left a
    request unanswered which came soon after another gets a new connection per request from then on: it may close them
    early. One that answers a repeated request only over a new connection gets that after each second of silence.
    """

    def __init__(
        self,
        session: DeviceSession,
        address: str,
        clock: Clock,
        access: HttpAccess | None = None,
        max_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        self.address = address
        self._max_bytes = max_bytes
        self.answers = 0
        self._answered_at = -math.inf
        self._keeps = self._lasts = True
        self._session = session
        self._clock = clock
        access = access or HttpAccess()
        self._headers = access.all_headers()
        self._middlewares = access.middlewares()
        self._tls = access.tls()

    async def request(self, method: str, path: str, *, json: Any = None, repeat: bool = True) -> bytes:
        """The body of a 2xx answer.

        Raises `Unreachable` when nothing came back, twice if the request may be repeated, and `BadAnswer` when
        the device refused or what came is not HTTP.
        """
        response = await self.exchange(method, path, repeat=repeat, json=json)
        if not 200 <= response.status < 300:
            raise self._refused(path, response.status)
        return response.body

    async def request_json(self, method: str, path: str, **sent: Any) -> Any:
        """As `request`, with the body as JSON; `BadAnswer` where it is none."""
        return parse_json(await self.request(method, path, **sent), self.address)

    async def exchange(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, repeat: bool = False, **sent: Any
    ) -> HttpResponse:
        """The response, of any status, to a request that is sent once more if nothing came back and it may `repeat`.

        `sent` are aiohttp's `params`, `json` and `data`. One that may be repeated goes over a lasting connection,
        where the address keeps those. Raises `Unreachable`, and `BadAnswer` for what is not HTTP.
        """
        session = self._session.lasting if repeat and self._lasts else self._session.brief
        try:
            return await self._exchange_once(session, method, path, headers, **sent)
        except Unreachable:
            if not repeat:
                raise
            await self._clock.sleep(RETRY_AFTER_SECS)
            response = await self._exchange_once(self._session.brief, method, path, headers, **sent)
            self._lasts = False
            return response

    async def _exchange_once(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        headers: Mapping[str, str] | None,
        **sent: Any,
    ) -> HttpResponse:
        answers_before = self.answers
        try:
            with self._failing(path):
                async with self._open(session, method, path, headers, **sent) as response:
                    body = await self._read(response)
                    return HttpResponse(status=response.status, headers=response.headers, body=body)
        finally:
            self._learn_whether_it_keeps(is_answered=self.answers != answers_before)

    @contextmanager
    def _failing(self, path: str) -> Iterator[None]:
        """Raise what aiohttp raises as `Unreachable`, or as `BadAnswer` where something was answered."""
        try:
            yield
        except aiohttp.WSServerHandshakeError as error:
            self.answers += 1
            raise self._refused(path, error.status) from None
        except aiohttp.ClientResponseError:
            self.answers += 1
            raise BadAnswer(f"{self.address} answered with something that is not HTTP") from None
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            if type(error) is aiohttp.ClientError:  # of Digest, about an answer
                self.answers += 1
                raise BadAnswer(f"{self.address} asks for a login in a way that is not known here") from None
            raise Unreachable(f"{self.address} does not answer ({reason_of(error)})") from None

    def _refused(self, path: str, status: int) -> HttpRefused:
        return HttpRefused(f"{self.address}{path} answered {named_status(status)}", status)

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
            self.address + path,
            headers={**self._headers, **(headers or {}), **({} if self._keeps else {"Connection": "close"})},
            middlewares=(*self._middlewares, send_once),
            ssl=self._tls,
            allow_redirects=False,
            **sent,
        ) as response:
            self.answers += 1
            yield response

    @asynccontextmanager
    async def events(
        self, path: str, *, silence_secs: float, last_id: str = "", max_bytes: int = MAX_RESPONSE_BYTES
    ) -> AsyncIterator[AsyncIterator[ServerEvent]]:
        """Server-sent events, as an iterator of those that come until the stream ends, or is silent for so long.

        `last_id` asks for what came after that one. Raises `Unreachable` where the stream cannot be opened, and
        `BadAnswer` for a refusal, for what is no such stream, or an event of more than `max_bytes`.
        """
        headers = {"Accept": EVENT_STREAM, **({"Last-Event-ID": last_id} if last_id else {})}
        timeout = aiohttp.ClientTimeout(total=None, sock_read=silence_secs)
        with self._failing(path):
            async with self._open(self._session.brief, "GET", path, headers, timeout=timeout) as response:
                if response.status != 200:
                    raise self._refused(path, response.status)
                if response.content_type != EVENT_STREAM:
                    raise BadAnswer(f"{self.address}{path} answered with something that is no event stream")
                yield read_events(response, self._clock, max_bytes)

    def _learn_whether_it_keeps(self, *, is_answered: bool) -> None:
        now = self._clock.monotonic()
        if is_answered:
            self._answered_at = now
        elif now - self._answered_at <= KEEP_SECS:
            self._keeps = False

    @asynccontextmanager
    async def messages(
        self,
        path: str,
        *,
        silence_secs: float,
        max_bytes: int = MAX_RESPONSE_BYTES,
        parse: DecodeMessage | None = None,
    ) -> AsyncIterator[Messages]:
        """A WebSocket, as an iterator of the messages that come over it until it ends, and a way to send some.

        Each message is what `parse` makes of it and the address: its JSON, where there is none. After `silence_secs`
        without a message a ping is sent, and the socket is closed if no pong comes. Raises `Unreachable` where it
        cannot be opened within that time, `BadAnswer` for a refusal, a message that is not JSON, or one of more than
        `max_bytes`.
        """
        with self._failing(path):
            async with self._session.for_sockets(self._middlewares) as session:
                async with time_limit(silence_secs):
                    opened = await session.ws_connect(
                        self.address + path,
                        headers=self._headers,
                        ssl=self._tls,
                        heartbeat=silence_secs,
                        autoping=False,
                        max_msg_size=max_bytes,
                    )
                async with opened:
                    self.answers += 1
                    yield Messages(self.address, opened, self._clock, parse or parse_json, self._count_answer)

    def _count_answer(self) -> None:
        self.answers += 1

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        try:
            while chunk := await response.content.readany():
                body += chunk
                if len(body) > self._max_bytes:
                    raise BadAnswer(f"{self.address} answered with more than {self._max_bytes // 1024} KiB")
        except (aiohttp.ClientError, OSError):
            raise Unanswered(f"{self.address} broke off its answer") from None
        return bytes(body)


def parse_json(body: bytes | str, address: str) -> Any:
    """The body parsed as JSON; `BadAnswer` where it is none."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise BadAnswer(f"{address} answered with something that is not JSON") from None
