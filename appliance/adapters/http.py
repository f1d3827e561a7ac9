"""The way to vendors' devices: one HTTP session for all, one request method, limits that a bad device cannot pass."""

from __future__ import annotations

import os
import socket
import ssl
from http import HTTPStatus
from typing import Any

import aiohttp
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse

from appliance.clock import Clock
from appliance.errors import BadAnswer, Unreachable

CONNECT_LIMIT = 2.0
"""Seconds that a device has to accept a connection."""

REPEAT_AFTER = 0.25
"""Seconds before a request that was never answered is sent once more."""

LARGEST_ANSWER = 256 * 1024
"""Bytes of an answer that are read; no device of a home says more about itself."""


def open_session() -> aiohttp.ClientSession:
    """The session for every adapter: no cookies, no proxies, no compression, a fresh connection for each request.

    Small devices close idle connections without a word; a connection that is not kept cannot be stale.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True, limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_LIMIT),
        headers={"User-Agent": "Lares", "Accept-Encoding": "identity"},
        auto_decompress=False,
        middlewares=(_send_once,),
    )


async def _send_once(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Keep aiohttp from repeating a request that was cut off: whether to try again is for `VendorHttp` to say."""
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _CutOff(_reason(error)) from None


class _CutOff(aiohttp.ClientError):
    """The connection failed or ended before an answer came."""


class VendorHttp:
    """Requests to one vendor address. `answers` counts the responses, whatever they said."""

    def __init__(self, session: aiohttp.ClientSession, address: str, clock: Clock) -> None:
        self.address = address
        self.answers = 0
        self._session = session
        self._clock = clock

    async def request(self, method: str, path: str, *, json: Any = None, repeat: bool = True) -> bytes:
        """The body of a 2xx answer.

        Raises `Unreachable` when nothing came back, twice if the request may be repeated, and `BadAnswer` when
        the device refused or what came is not HTTP.
        """
        try:
            return await self._once(method, path, json)
        except Unreachable:
            if not repeat:
                raise
        await self._clock.sleep(REPEAT_AFTER)
        return await self._once(method, path, json)

    async def _once(self, method: str, path: str, json: Any) -> bytes:
        url = self.address + path
        try:
            async with self._session.request(method, url, json=json, allow_redirects=False) as response:
                self.answers += 1
                body = await self._read(response)
        except aiohttp.ClientResponseError:
            self.answers += 1
            raise BadAnswer(f"{self.address} answered with something that is not HTTP") from None
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise Unreachable(f"{self.address} does not answer ({_reason(error)})") from None
        if not 200 <= response.status < 300:
            raise Refused(f"{url} answered {_named(response.status)}", response.status)
        return body

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        try:
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > LARGEST_ANSWER:
                    raise BadAnswer(f"{self.address} answered with more than {LARGEST_ANSWER // 1024} KiB")
        except (aiohttp.ClientError, OSError):
            raise BadAnswer(f"{self.address} broke off its answer") from None
        return bytes(body)


class Refused(BadAnswer):
    """The device answered with an HTTP status that is not success."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def _named(status: int) -> str:
    """The status with its usual name. What the device calls it is not repeated: it may be anything."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _reason(error: BaseException) -> str:
    """Why nothing came, in a few words on one line."""
    if isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection"
    if isinstance(error, UnicodeError):
        return "there can be no such name"
    if isinstance(error, OSError) and error.strerror:
        has_own_numbers = isinstance(error, socket.gaierror | ssl.SSLError)
        return (error.strerror if has_own_numbers or not error.errno else os.strerror(error.errno)).lower()
    return str(error) or type(error).__name__
