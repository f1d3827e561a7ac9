"""A strict server for line protocol. If any line is invalid, the server refuses the whole body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

TOKEN = "a-token-of-this-test"

Point = tuple[str, tuple[tuple[str, str], ...], int]
"""Measurement, tags, and time in nanoseconds."""

_KEY = r"(?:[^ \t\n,=\\]|\\[, =]|\\(?=[^, =\t\n]))+"
"""For servers of line protocol, only blanks, tabs, and line breaks are white space. A no-break space is not white
space."""

_VALUE = r'-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|"(?:[^"\\\n]|\\["\\])*"'
_FIELD = rf"{_KEY}=(?:{_VALUE})"
_LINE = re.compile(rf"({_KEY})((?:,{_KEY}={_KEY})*) ({_FIELD}(?:,{_FIELD})*) (-?\d+)")


def parse_lines(body: bytes) -> dict[Point, Mapping[str, Any]]:
    """Return the fields of each point. Raise `ValueError` for an invalid line."""
    points: dict[Point, Mapping[str, Any]] = {}
    text = body.decode()
    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    for line in text[:-1].split("\n"):
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"no line protocol: {line!r}")
        tags = tuple((_plain(name), _plain(value)) for name, value in re.findall(rf",({_KEY})=({_KEY})", match[2]))
        if [name for name, _ in tags] != sorted({name for name, _ in tags}):
            raise ValueError(f"tags twice or out of order: {line!r}")
        pairs = re.findall(rf"({_KEY})=({_VALUE})", match[3])
        fields = {_plain(name): _field(value) for name, value in pairs}
        if not 19 <= len(match[4].lstrip("-")) <= 20:
            raise ValueError(f"the time is not in nanoseconds: {line!r}")
        points[_plain(match[1]), tags, int(match[4])] = fields
    return points


def _plain(text: str) -> str:
    return re.sub(r"\\([, =])", r"\1", text)


def _field(text: str) -> Any:
    return re.sub(r"\\([\"\\])", r"\1", text[1:-1]) if text.startswith('"') else float(text)


class LineServer:
    """The received points by time. While `away` is set, requests fail with this status."""

    def __init__(self, token: str | None = TOKEN, max_bytes: int = 1 << 20) -> None:
        self.points: dict[Point, Mapping[str, Any]] = {}
        self.away: int | None = None
        self.requests = 0
        self._token = token
        self._max_bytes = max_bytes

    def write(self, body: bytes, authorization: str | None) -> tuple[int, str]:
        """Return status and text of the response."""
        self.requests += 1
        if self.away is not None:
            return self.away, "away"
        if self._token is not None and authorization != f"Token {self._token}":
            return 401, f"unauthorized: {authorization}"
        if len(body) > self._max_bytes:
            return 413, "too large"
        try:
            self.points |= parse_lines(body)
        except ValueError as error:
            return 400, str(error)
        return 204, ""

    async def serve(self) -> TestServer:
        """Run the server on loopback, at `/api/v2/write?bucket=lares`. The test must close the server."""

        async def handle(request: web.Request) -> web.Response:
            assert request.query_string == "bucket=lares"
            status, text = self.write(await request.read(), request.headers.get("Authorization"))
            return web.Response(status=status, text=text)

        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/api/v2/write", handle)
        server = TestServer(app, host="127.0.0.1")
        await server.start_server()
        return server
