"""The exchange of requests and answers on one connection: cut strictly out of the bytes, and within time."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from sanic.exceptions import BadRequest, RequestTimeout
from sanic.http import Http, Stage

from appliance.api.limits import Limits

FORBEARANCE = 4
"""How many times the limit of a body is read and thrown away after an answer, so that its sender can hear it."""

_END_OF_HEAD = b"\r\n\r\n"
_NAME = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_TARGET = rb"(?:/[!-~]*|\*|https?://[!-.0->@-~]+/[!-~]*)"
_HEAD = re.compile(rb"%b %b HTTP/1\.[01](?:\r\n%b:[^\x00-\x08\x0a-\x1f\x7f]*)*" % (_NAME, _TARGET, _NAME))
_HOST = re.compile(r"[-A-Za-z0-9._~%!$&'()*+,;=:\[\]]*")
_SIZES = {10: re.compile(r"[0-9]{1,18}"), 16: re.compile(r"[0-9A-Fa-f]{1,15}")}


class Exchange(Http):
    """Sanic's exchange, without its trust in whoever sends.

    What RFC 9112 calls malformed is refused, because two programs could read it in two ways. The head of a request
    has `head_secs` in all. The rest of a body that nobody wanted is read for `body_secs`, after its answer.
    """

    __slots__ = ("HEADER_MAX_SIZE", "_discard_until", "_discarded", "_limits")

    recv_buffer: bytearray
    request_body: Any
    response: Any

    def __init__(self, protocol: Any) -> None:
        super().__init__(protocol)  # type: ignore[no-untyped-call]
        self._limits: Limits = protocol.limits
        self.HEADER_MAX_SIZE = self._limits.head_bytes

    def init_for_request(self) -> None:
        """Forget the request before."""
        super().init_for_request()  # type: ignore[no-untyped-call]
        self._discarded = 0
        self._discard_until: float | None = None

    async def http1_request_header(self) -> None:
        """Take the head of the next request; raises what Sanic answers with 400, 408, 413 or 417."""
        end = self._end_of_head()
        if end < 0:
            end = await self._receive_head()
        if end >= 0 and _HEAD.fullmatch(self.recv_buffer, 0, end) is None:
            raise BadRequest("the head of the request is malformed")
        await super().http1_request_header()  # type: ignore[no-untyped-call]
        self.upgrade_websocket = False
        self._check_host()

    def conclude(self) -> None:
        """The answer was given. What is left of a body is thrown away, of which Sanic would complain after a 2xx."""
        if self.request_body and self.response is not None:
            self.response.stream = self.response = None

    def create_empty_request(self) -> None:
        """Make the stand-in for a request whose head could not be read; its target may be what was wrong."""
        self.url = None
        super().create_empty_request()

    async def read(self) -> bytes | None:
        """The next piece of the body, or None at its end."""
        if self.stage is Stage.HANDLER:
            return await self._read_strictly()
        return await self._read_in_vain()

    def give_up_body(self) -> None:
        """Close the connection after the answer, and read no more."""
        self.request_body = None
        self.keep_alive = False

    def _check_host(self) -> None:
        """Refuse what RFC 9112 says must be: HTTP/1.1 without its one `Host`, or with one that is none."""
        hosts = self.request.headers.getall("host", [])
        is_missing = not hosts and self.request.version == "1.1"
        if is_missing or len(hosts) > 1 or not all(_HOST.fullmatch(host.strip(" \t")) for host in hosts):
            raise BadRequest("the request must name its Host, once")

    def _end_of_head(self) -> int:
        """Where it ends in what has been received, or -1."""
        return self.recv_buffer.find(_END_OF_HEAD, 0, self.HEADER_MAX_SIZE + len(_END_OF_HEAD) - 1)

    async def _receive_head(self) -> int:
        try:
            async with asyncio.timeout(self._limits.head_secs):
                while self._end_of_head() < 0 and len(self.recv_buffer) < self.HEADER_MAX_SIZE:
                    await self._receive_more()
        except asyncio.CancelledError:
            self.create_empty_request()  # Sanic speaks of it in its log
            raise
        except TimeoutError:
            raise RequestTimeout(f"the head did not arrive within {self._limits.head_secs:g} s") from None
        return self._end_of_head()

    async def _read_strictly(self) -> bytes | None:
        """As Sanic reads, but not over whatever stands between two chunks."""
        if self.request_body == "chunked" and not self.request_bytes_left:
            while len(self.recv_buffer) < 2:
                await self._receive_more()
            if not self.recv_buffer.startswith(b"\r\n"):
                self.keep_alive = False
                raise BadRequest("Bad chunked encoding")
        return await super().read()

    async def _read_in_vain(self) -> bytes | None:
        """Read what is left after the answer; `BadRequest`, which ends the connection, when it is too much."""
        if self._discard_until is None:
            self._discard_until = asyncio.get_running_loop().time() + self._limits.body_secs
        try:
            async with asyncio.timeout_at(self._discard_until):
                piece = await self._read_strictly()
        except TimeoutError:
            raise BadRequest("the rest of the body did not arrive in time") from None
        self._discarded += len(piece or b"")
        if self._discarded > self._limits.body_bytes * FORBEARANCE:
            raise BadRequest("the rest of the body is too long")
        return piece

    @staticmethod
    def _safe_int(value: str, base: int = 10) -> int:
        if _SIZES[base].fullmatch(value.strip(" \t")) is None:
            raise ValueError(value)
        return int(value, base)
