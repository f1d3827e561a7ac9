"""Bodies of requests, read within the limits of size, time, and memory."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from sanic import Request

from appliance.api.limits import ApiLimits, BodyBudget
from appliance.api.validation import not_json, parse_json
from appliance.errors import MalformedRequest, Overloaded, TooLarge, TooSlow, UnknownContentCoding


async def read_json(request: Request, limits: ApiLimits, *, max_bytes: int, instead: bytes = b"") -> Any:
    """Return the body as JSON, whatever its Content-Type; if there is no body, parse `instead`.

    Raises the errors of `read_bytes`, or `MalformedRequest`.
    """
    body = await read_bytes(request, limits, max_bytes) or instead
    if not body and "content-length" not in request.headers:
        raise MalformedRequest("the request has no body: send JSON, and its length in the header Content-Length")
    try:
        return parse_json(body)
    except orjson.JSONDecodeError as error:
        raise not_json(body, error) from None


async def read_bytes(request: Request, limits: ApiLimits, max_bytes: int) -> bytes:
    """Return the body, at most `max_bytes` and `limits.body_bytes` of it; empty if there is no body.

    Raises `TooLarge`, `UnknownContentCoding`, `Overloaded`, or `TooSlow` after `limits.body_secs`.
    """
    exchange: Any = request.stream
    if not exchange.request_body:
        return b""
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding != "identity":
        raise UnknownContentCoding(f"the body is compressed (Content-Encoding: {coding[:40]}); send it uncompressed")
    max_bytes = min(max_bytes, limits.body_bytes)
    if (arrived := exchange.take_arrived_body(max_bytes)) is not None:
        return arrived  # type: ignore[no-any-return]
    try:
        async with asyncio.timeout(limits.body_secs):
            return await _read(exchange, max_bytes, request.app.ctx.bodies)
    except TimeoutError:
        exchange.abandon_body()
        raise TooSlow(f"the body did not arrive within {limits.body_secs:g} s") from None
    except Overloaded:
        exchange.abandon_body()
        raise


async def _read(exchange: Any, limit: int, budget: BodyBudget) -> bytes:
    body = bytearray()
    if exchange.request_bytes_left <= limit:
        try:
            async for piece in exchange:
                body += piece
                budget.take(len(piece))
                if len(body) > limit:
                    break
            else:
                return bytes(body)
        finally:
            budget.give_back(len(body))
    raise TooLarge(f"the body is larger than {limit} bytes")
