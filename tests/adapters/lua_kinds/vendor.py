"""A vendor's device that answers from a table, over HTTP with configurable faults, or without a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import web

from appliance.adapters.device_http.client import HttpResponse
from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.adapters.simulated_device import SimulatedDevice
from tests.fakes.event_stream import hold_events

CAPTURES = Path(__file__).parents[2] / "fixtures" / "lua_kinds"

Answer = Any
"""An answer: JSON, `(status, body)`, an exception to raise, or a function of the request."""


def capture(name: str) -> Any:
    return json.loads((CAPTURES / name).read_text())


class Vendor(SimulatedDevice):
    """Answers each path from the table `answers`, which can change at any time. Any other path returns 404.

    `odd` has answers to single requests. These answers take precedence over the table. The keys of `odd` are paths,
    or a path and a SOAP action (`/control#GetVolume`). The device listens inside the `async with` block, with its
    `faults`. The device is also a `Transport`, for tests without a network. `asked` lists the requests, with the body
    as bytes and, if it is JSON, as `json`.
    """

    content_type = "application/json"
    pushes = ""
    """Path of server-sent events. Empty if the device pushes no events."""

    def __init__(
        self, answers: Mapping[str, Answer] | Callable[[WebRequest], Answer] | None = None, **base: Any
    ) -> None:
        super().__init__(**base)
        self.answers = answers if callable(answers) else dict(answers or {})
        self.asked: list[WebRequest] = []
        self.odd: dict[str, Answer] = {}
        self.streams: set[web.StreamResponse] = set()

    def answer(self, asked: WebRequest) -> Answer:
        if callable(self.answers):
            return self.answers(asked)
        found = self.answers.get(asked.path, (404, ""))
        return found(asked) if callable(found) else found

    async def exchange(self, request: WebRequest) -> HttpResponse:
        status, body = self._answered(request)
        return HttpResponse(status=status, headers={}, body=body)

    async def push(self, data: Any) -> None:
        for stream in tuple(self.streams):
            await stream.write(f"id: 1\ndata: {json.dumps(data)}\n\n".encode())

    def _answered(self, asked: WebRequest) -> tuple[int, bytes]:
        self.asked.append(asked)
        self._apply_due_writes()
        action = header(asked, "SOAPACTION").strip('"').rpartition("#")[2]
        found = self.odd.get(f"{asked.path}#{action}", self.odd.get(asked.path))
        if found is None:
            found = self.answer(asked)
        elif callable(found):
            found = found(asked)
        if isinstance(found, Exception):
            raise found
        status, body = found if isinstance(found, tuple) else (200, json.dumps(found))
        return status, body if isinstance(body, bytes) else body.encode()

    def _routes(self) -> Iterable[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self._serve)]

    def _note(self, request: web.Request, body: bytes) -> None:
        """Do not record requests, because `asked` contains them."""

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if self.pushes and request.path == self.pushes:
            return await self._push(request)
        status, body = self._answered(await _read(request))
        kind = "text/xml" if body.startswith(b"<") else self.content_type
        return web.Response(status=status, body=body, content_type=kind)

    async def _push(self, request: web.Request) -> web.StreamResponse:
        return await hold_events(request, self.streams, b": hi\n\n")


async def _read(request: web.Request) -> WebRequest:
    """Convert a received request to the form in which a kind in Lua sends requests. Header names are in lower
    case."""
    body, found = await request.read(), None
    with suppress(ValueError):
        found = json.loads(body)
    return WebRequest(
        method=request.method,
        path=request.path,
        query=dict(request.query),
        headers={name.lower(): value for name, value in request.headers.items()},
        json=found,
        body=body,
    )


def header(asked: WebRequest, name: str) -> str:
    """Return a header of a request, or an empty string."""
    return next((value for key, value in asked.headers.items() if key.lower() == name.lower()), "")
