"""Reads request bodies within limits of size, time, and memory."""

from __future__ import annotations

import asyncio
from typing import Any

from sanic import Request

from appliance.api.http_server.http1 import StrictHttp1, http1_of
from appliance.api.limits import ApiLimits
from appliance.api.validation import parse_json
from appliance.byte_budget import ByteBudget
from appliance.errors import MalformedRequest, Overloaded, TooLarge, TooSlow, UnknownContentCoding


class Bodies:
    """Reads request bodies within the limits. All incomplete bodies share a budget."""

    def __init__(self, limits: ApiLimits) -> None:
        self._limits = limits
        self._budget = ByteBudget(limits.bodies_bytes)

    async def read_json(self, request: Request, max_bytes: int, instead: bytes) -> Any:
        """Parse the body as JSON, regardless of the Content-Type.

        If there is no body, parse `instead`. Raise the errors of `read`, or `MalformedRequest`.
        """
        body = await self.read(request, max_bytes) or instead
        if not body and "content-length" not in request.headers:
            raise MalformedRequest("the request has no body; send JSON, with its length in the header Content-Length")
        return parse_json(body)

    async def read(self, request: Request, max_bytes: int) -> bytes:
        """Return the body, or empty bytes if there is none.

        Raise `TooLarge` if the body is larger than `max_bytes` or `limits.body_bytes`. Also raise
        `UnknownContentCoding`, `Overloaded`, or (after `limits.body_secs`) `TooSlow`.
        """
        http1, limits = http1_of(request), self._limits
        if not http1.request_body:
            return b""
        coding = request.headers.get("content-encoding", "identity").strip().lower()
        if coding != "identity":
            raise UnknownContentCoding(
                f"the body is compressed (Content-Encoding: {coding[:40]}); send it uncompressed"
            )
        limit = min(max_bytes, limits.body_bytes)
        if (arrived := http1.take_arrived_body(limit)) is not None:
            return arrived
        try:
            async with asyncio.timeout(limits.body_secs):
                body = await self._read(http1, limit)
        except TimeoutError:
            http1.abandon_body()
            raise TooSlow(f"the body did not arrive within {limits.body_secs:g} s") from None
        except Overloaded:
            http1.abandon_body()
            raise
        if body is None:
            http1.refuse_body(limit)
            whose = "this path" if limit == max_bytes else "api.max_body_bytes in the configuration"
            raise TooLarge(f"the body is larger than {limit} bytes, the limit of {whose}")
        return body

    async def _read(self, http1: StrictHttp1, limit: int) -> bytes | None:
        """Return the body, or None if it is too large."""
        body = bytearray()
        if http1.request_bytes_left > limit:
            return None
        try:
            async for piece in http1:
                body += piece
                self._budget.held += len(piece)
                if self._budget.is_exceeded:
                    raise Overloaded("other requests use all of the memory for request bodies; try again in a second")
                if len(body) > limit:
                    return None
            return bytes(body)
        finally:
            self._budget.held -= len(body)
