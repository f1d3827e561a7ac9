"""HTTP/1 on one connection. Requests are parsed strictly, and within time limits."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from http import HTTPStatus
from typing import Any, cast

from sanic import Request
from sanic.exceptions import BadRequest, ExpectationFailed, RequestCancelled, RequestTimeout, SanicException
from sanic.helpers import has_message_body
from sanic.http import Http, Stage
from sanic.response import HTTPResponse

from appliance.api.http_server.framing import (
    Head,
    HeadFields,
    check_beginning,
    check_trailer,
    parse_chunk,
    parse_head,
)
from appliance.api.limits import MAX_FILE_BODY_BYTES, ApiLimits
from appliance.event_loop import wait_in_line

MAX_DISCARDED_BODIES = 4
"""If the response is sent before the whole request body has arrived, the rest of the body is read and discarded, so
that the client can receive the response. The rest may be at most this multiple of the size limit."""

MAX_CHUNK_LINE_BYTES = 64

CHUNKS_PER_TURN = 32
"""Number of chunks that are read before other tasks continue. A body can have thousands of one-byte chunks."""

_CRLF = b"\r\n"
_END_OF_HEAD = b"\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class StrictHttp1(Http):
    """Sanic's HTTP/1 with strict parsing.

    Requests that violate RFC 9112 are rejected, because a proxy could parse them differently. The head of a request
    must arrive within `head_secs`. After a response, the remaining body is discarded for at most `body_secs`.
    `protocol` is the connection. `identified` caches the principal for the gate for as long as the client repeats the
    same headers. Without this cache, 16 clients get 15 % fewer responses per second.
    """

    __slots__ = (
        "_chunks",
        "_discard_until",
        "_discarded",
        "_fields",
        "_limits",
        "_max_discarded",
        "identified",
    )

    recv_buffer: bytearray
    protocol: Any
    request_body: Any  # Sanic's declarations of these attributes do not match the values that Sanic assigns
    response: Any
    response_func: Any
    request_bytes_left: int

    def __init__(self, protocol: Any) -> None:
        super().__init__(protocol)
        self._limits: ApiLimits = protocol.limits
        self._fields: HeadFields | None = None
        self.identified: Any = None

    async def http1(self) -> None:
        """Serve requests until the connection ends. When the connection has ended, break the reference cycles of
        the last request."""
        try:
            await super().http1()
        finally:
            last: Request | None = self.request
            if last is not None:
                last.stream = None
            for name in ("request", "response", "response_func", "exception"):
                setattr(self, name, None)

    async def error_response(self, exception: Exception) -> None:
        """Send the error. If the client is gone, end the connection."""
        if isinstance(exception, RequestCancelled):
            # Sanic's frame keeps the exception, so its traceback, or raising it again, would create a reference cycle
            exception.__traceback__ = None
            raise RequestCancelled from None
        await super().error_response(exception)

    async def http1_request_header(self) -> None:
        """Parse the head of the next request. Raise errors with status 400, 408, 417, 431, or 501."""
        end = self._end_of_head()
        if end < 0:
            end = await self._receive_head()
        if end < 0:
            sentence = f"the request line and headers are larger than {self._limits.head_bytes} bytes"
            raise SanicException(sentence, status_code=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        head = parse_head(bytes(self.recv_buffer[:end]), self._fields)
        if head.fields is not self._fields:
            self._fields, self.identified = head.fields, None
        self.keep_alive = head.fields.is_persistent
        self.head_only = head.method == "HEAD"
        request = self._make_request(head)
        self._expect_body(head.fields, request)
        # If the body is chunked, keep one CRLF of the head, because the parser expects a CRLF before each chunk.
        del self.recv_buffer[: end + (2 if self.request_body == "chunked" else 4)]
        self.request, request.stream = request, self

    async def send_response(self, response: HTTPResponse) -> None:
        """Send the response. Discard the remaining body, because Sanic would log it as an error after a 2xx
        response."""
        self.respond(response)
        await self.http1_response_header(b"", end_stream=True)
        if self.request_body:
            self.response.stream = self.response = None

    async def http1_response_header(self, data: bytes, end_stream: bool) -> None:
        """Send the head and the body of the response. `data` is always empty, because responses are not streamed."""
        response, self.response_func = self.response, None
        if self.expecting_continue and response.status >= HTTPStatus.BAD_REQUEST:
            self.abandon_body()
        head = encode_head(response, is_persistent=self.keep_alive)
        if self.expecting_continue:
            self.expecting_continue = False
            head = _CONTINUE + head
        self.stage = Stage.RESPONSE
        if self.head_only:
            await self._send(head)
        else:
            await self._send(head + start_of(response), response.body)
        self.stage = Stage.IDLE
        if self.recv_buffer and self.keep_alive:
            # thousands of requests of many clients may already have arrived
            await wait_in_line()

    async def read(self) -> bytes | None:
        """Return the next piece of the body, or None at its end."""
        if self.stage is Stage.HANDLER:
            return await self._read()
        return await self._discard_rest()

    def take_arrived_body(self, limit: int) -> bytes | None:
        """Return the body if it has arrived completely and is within the limit, otherwise None."""
        length = self.request_bytes_left
        is_plain = self.request_body is True and not self.expecting_continue
        if not is_plain or not 0 < length <= min(limit, len(self.recv_buffer)):
            return None
        body = bytes(self.recv_buffer[:length])
        del self.recv_buffer[:length]
        self.request_bytes_left, self.request_body = 0, None
        return body

    def abandon_body(self) -> None:
        """Read no more of the body, and close the connection after the response."""
        self.request_body = None
        self.expecting_continue = False  # without "100 Continue", the client does not send the body
        self.keep_alive = False

    def refuse_body(self, limit: int) -> None:
        """Limit the discarded rest of a body that is larger than the limit. If the rest is too long, abandon it."""
        self._max_discarded = limit * MAX_DISCARDED_BODIES
        if self.request_bytes_left > self._max_discarded:
            self.abandon_body()

    def abandon_missing_body(self) -> None:
        """Discard the body, or abandon it if it has not arrived completely."""
        if self.request_body and self.take_arrived_body(len(self.recv_buffer)) is None:
            self.abandon_body()

    def _make_request(self, head: Head) -> Request:
        return Request(
            url_bytes=head.target,
            headers=head.fields.headers,
            head=head.raw,
            version=head.fields.version,
            method=head.method,
            transport=self.protocol.transport,
            app=self.protocol.app,
        )

    def _expect_body(self, fields: HeadFields, request: Request) -> None:
        self._chunks = self._discarded = 0
        self._max_discarded = min(self._limits.body_bytes, MAX_FILE_BODY_BYTES) * MAX_DISCARDED_BODIES
        self._discard_until: float | None = None
        self.request_bytes_left = fields.length or 0
        if not fields.has_body:
            return
        expect = request.headers.getone("expect", None)
        if expect is not None and expect.lower() != "100-continue":
            raise ExpectationFailed("the only supported expectation is 100-continue")
        self.expecting_continue = expect is not None and fields.version == "1.1"
        self.request_body = "chunked" if fields.length is None else True

    def _end_of_head(self) -> int:
        """Return the end of the head in the received bytes, or -1.

        One empty line before a request is skipped.
        """
        if self.recv_buffer.startswith(_CRLF) and len(self.recv_buffer) >= 4 and self.recv_buffer[2:4] != _CRLF:
            del self.recv_buffer[:2]
        return self.recv_buffer.find(_END_OF_HEAD, 0, self._limits.head_bytes + len(_END_OF_HEAD) - 1)

    async def _receive_head(self) -> int:
        checked = 0
        try:
            async with asyncio.timeout(self._limits.head_secs):
                while self._end_of_head() < 0 and len(self.recv_buffer) < self._limits.head_bytes:
                    check_beginning(self.recv_buffer, checked)
                    checked = len(self.recv_buffer)
                    await self._receive_more()
        except asyncio.CancelledError:
            self.create_empty_request()  # Sanic logs the request
            if isinstance(self.exception, RequestTimeout):  # under load, the timer of Sanic itself may end first
                self.exception = self._head_timeout()
            raise
        except TimeoutError:
            raise self._head_timeout() from None
        return self._end_of_head()

    def _head_timeout(self) -> RequestTimeout:
        return RequestTimeout(f"the request line and headers did not arrive within {self._limits.head_secs:g} s")

    async def _read(self) -> bytes | None:
        """Return the next piece of the body, or None at its end. Raise `BadRequest` for malformed chunks. This error
        ends the connection."""
        if self.expecting_continue:
            self.expecting_continue = False
            await self._send(_CONTINUE)
        try:
            if self.request_body == "chunked" and not self.request_bytes_left:
                self.request_bytes_left = await self._begin_chunk()
        except BadRequest:
            self.abandon_body()
            raise
        if not self.request_bytes_left:
            self.request_body = None
            return None
        if not self.recv_buffer:
            await self._receive_more()
        piece = bytes(self.recv_buffer[: self.request_bytes_left])
        del self.recv_buffer[: len(piece)]
        self.request_bytes_left -= len(piece)
        return piece

    async def _begin_chunk(self) -> int:
        """Return the size of the next chunk. For the last chunk, read its trailers and return 0."""
        self._chunks += 1
        if self._chunks % CHUNKS_PER_TURN == 0:
            await wait_in_line()
        if await self._take_line(0):
            raise BadRequest("a chunk is longer than its stated size")
        size = parse_chunk(await self._take_line(MAX_CHUNK_LINE_BYTES))
        left = self._limits.head_bytes
        while size == 0 and (trailer := await self._take_line(left)):
            check_trailer(trailer)
            left -= len(trailer)
        return size

    async def _take_line(self, max_bytes: int) -> bytes:
        """Return the next line without its CRLF. Raise `BadRequest` if the line is too long."""
        while (end := self.recv_buffer.find(_CRLF, 0, max_bytes + 2)) < 0:
            if len(self.recv_buffer) >= max_bytes + 2:
                raise BadRequest("the chunks of the body are malformed")
            await self._receive_more()
        line = bytes(self.recv_buffer[:end])
        del self.recv_buffer[: end + 2]
        return line

    async def _discard_rest(self) -> bytes | None:
        """Return the next piece of the body after the response. If the remaining body is too long or too late, raise
        `BadRequest`. This error ends the connection."""
        if self._discard_until is None:
            self._discard_until = asyncio.get_running_loop().time() + self._limits.body_secs
        try:
            async with asyncio.timeout_at(self._discard_until):
                piece = await self._read()
        except TimeoutError:
            raise BadRequest("the rest of the body did not arrive in time") from None
        self._discarded += len(piece or b"")
        if self._discarded > self._max_discarded:
            raise BadRequest("the rest of the body is too long")
        return piece


def http1_of(request: Request) -> StrictHttp1:
    return cast("StrictHttp1", request.stream)


def encode_head(response: HTTPResponse, *, is_persistent: bool) -> bytes:
    begin = _encode_headers(response.status, tuple(response.headers.items()), is_persistent)
    if not has_message_body(response.status):
        return begin + b"\r\n"
    return b"%bcontent-length: %d\r\n\r\n" % (begin, len(start_of(response)) + len(response.body or b""))


def start_of(response: HTTPResponse) -> bytes:
    """Return the beginning of the body that clients do not share."""
    start: bytes = getattr(response, "start", b"")  # a response of Sanic itself has none
    return start


@lru_cache(maxsize=64)
def _encode_headers(status: int, headers: tuple[tuple[str, str], ...], is_persistent: bool) -> bytes:
    """Return the encoded headers, except Content-Length: most responses differ only in that header."""
    connection = "keep-alive" if is_persistent else "close"
    fields = [f"{name}: {value}\r\n" for name, value in (*headers, ("connection", connection))]
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{''.join(fields)}".encode("ascii")
