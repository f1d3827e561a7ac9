"""Request bodies: read within limits, and never left to hold a connection for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from sanic import Request

from appliance.api.limits import Limits
from appliance.errors import Invalid, TooLarge, TooSlow

FORBEARANCE = 4
"""How many times the limit of an oversize body is read and thrown away, so that its sender can hear the answer."""


async def read_json(request: Request, limits: Limits) -> Any:
    """The body as JSON, whatever type it claims to be; raises `TooLarge`, `TooSlow` or `Invalid`."""
    try:
        async with asyncio.timeout(limits.body_secs):
            body = await _read(request, limits.body_bytes)
    except TimeoutError:
        raise TooSlow(f"the body did not arrive within {limits.body_secs:g} s") from None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        reason = "it is empty" if not body else f"{error.msg}, line {error.lineno} column {error.colno}"
        raise Invalid(f"the body is not JSON: {reason}") from None


def guard(request: Request, limits: Limits) -> None:
    """Cut the connection if the request's body is still not read a while after its time is over.

    After its answer Sanic reads the rest of an unread body, and waits for it without end.
    """
    stream = request.stream
    if stream is not None and stream.request_body:
        asyncio.get_running_loop().call_later(limits.body_secs + 1.0, _cut_if_unread, request, stream)


def _cut_if_unread(request: Request, stream: Any) -> None:
    if stream.request is request and stream.request_body and request.transport is not None:
        request.transport.abort()


async def _read(request: Request, limit: int) -> bytes:
    stream: Any = request.stream
    if stream is None or not stream.request_body:
        return b""
    if (stream.request_bytes_left or 0) > limit and stream.expecting_continue:
        raise _too_large(limit)
    body, size = bytearray(), 0
    async for chunk in stream:
        size += len(chunk)
        if size <= limit:
            body += chunk
        elif size > limit * FORBEARANCE:
            stream.keep_alive = False
            break
    if size > limit:
        raise _too_large(limit)
    return bytes(body)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the body is larger than {limit} bytes")
