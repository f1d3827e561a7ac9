"""Requests that are written directly to a connection of aiohttp.

The requests use the connector, the protocol, and the parser of aiohttp's session. aiohttp's objects for a request and
its response are not used, because they take half of the time of an exchange.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp
import orjson
from aiohttp import ClientRequest

CLOSING = "Connection: close\r\n"

URL = type(ClientRequest.url)  # yarl is a dependency of aiohttp

_NO_LIMITS = aiohttp.ClientTimeout(total=None)


ReadBody = Callable[[aiohttp.StreamReader, Mapping[str, str]], Awaitable[bytes]]
"""Reads the body of a response with these headers."""


class PlainRequests:
    """Requests to one address, all with the same headers."""

    def __init__(
        self, address: str, headers: Mapping[str, str], tls: ssl.SSLContext | aiohttp.Fingerprint | bool
    ) -> None:
        """Raise `ClientError` for an invalid address."""
        self.address = address
        # this request is never sent; aiohttp uses it to find the connection
        self._target = ClientRequest(
            "GET", _parse_url(address), headers=headers, ssl=tls, loop=asyncio.get_running_loop()
        )
        lines = [f"{name}: {value}" for name, value in self._target.headers.items()]
        if not all(map(str.isprintable, lines)):
            raise ValueError("a header contains a control character")
        self._head = "".join(f"{each}\r\n" for each in lines)

    async def exchange(
        self, session: aiohttp.ClientSession, method: str, path: str, json: Any, read: ReadBody
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request, and return the status, the headers, and the body of the response. The connection can be
        used again if `read` has read the body to its end."""
        connector = session.connector
        assert connector is not None
        request = self._encode(method, path, json, closes=connector.force_close)
        connection = await connector.connect(self._target, [], _NO_LIMITS)
        try:
            protocol = connection.protocol
            transport = None if protocol is None else protocol.transport
            assert protocol is not None and transport is not None
            protocol.set_response_params(skip_payload=method == "HEAD", read_until_eof=True, auto_decompress=False)
            transport.write(request)
            message, body = await protocol.read()
            while 100 <= message.code < 200 and message.code != 101:
                message, body = await protocol.read()
            content = await read(body, message.headers)
        except BaseException:
            connection.close()
            raise
        connection.release()
        return message.code, message.headers, content

    def _encode(self, method: str, path: str, json: Any, *, closes: bool) -> bytes:
        head = f"{method} {_parse_url(self.address + path).raw_path_qs} HTTP/1.1\r\n{self._head}"
        content = b"" if json is None else orjson.dumps(json)
        if json is not None or method not in ClientRequest.GET_METHODS:
            kind = "octet-stream" if json is None else "json"
            head += f"Content-Length: {len(content)}\r\nContent-Type: application/{kind}\r\n"
        return f"{head}{CLOSING if closes else ''}\r\n".encode() + content


def _parse_url(text: str) -> Any:
    try:
        return URL(text)
    except ValueError:
        raise aiohttp.InvalidURL(text) from None
