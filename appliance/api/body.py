"""Request bodies: read within limits of size and time."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from sanic import Request

from appliance.api.api_limits import ApiLimits
from appliance.errors import MalformedRequest, TooLarge, TooSlow


async def read_json(request: Request, limits: ApiLimits, *, instead: bytes = b"") -> Any:
    """The body as JSON, regardless of its Content-Type; raises `TooLarge`, `TooSlow` or `MalformedRequest`.

    `instead` is parsed where there is no body.
    """
    body = await read_bytes(request, limits) or instead
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        reason = "it is empty" if not body else f"{error.msg}, line {error.lineno} column {error.colno}"
        raise MalformedRequest(f"the body is not JSON: {reason}") from None


async def read_bytes(request: Request, limits: ApiLimits, max_bytes: int | None = None) -> bytes:
    """The body, empty where there is none; raises `TooLarge`, or `TooSlow` after `limits.body_secs`.

    `max_bytes` is the most that it may have; None is `limits.body_bytes`.
    """
    exchange: Any = request.stream
    if not exchange.request_body:
        return b""
    max_bytes = limits.body_bytes if max_bytes is None else max_bytes
    if (arrived := exchange.take_arrived_body(max_bytes)) is not None:
        return arrived  # type: ignore[no-any-return]
    try:
        async with asyncio.timeout(limits.body_secs):
            return await _read(exchange, max_bytes)
    except TimeoutError:
        exchange.abandon_body()
        raise TooSlow(f"the body did not arrive within {limits.body_secs:g} s") from None


async def _read(exchange: Any, limit: int) -> bytes:
    body = bytearray()
    if exchange.request_bytes_left <= limit:
        async for piece in exchange:
            body += piece
            if len(body) > limit:
                break
        else:
            return bytes(body)
    raise TooLarge(f"the body is larger than {limit} bytes")
