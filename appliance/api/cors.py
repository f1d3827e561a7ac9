"""CORS: which web pages of other origins a browser lets read the answers.

A WebSocket is not subject to it: there, as everywhere, the key decides, which no page has that was not given it.
"""

from __future__ import annotations

from collections.abc import Iterable

from sanic import HTTPResponse, Request

from appliance.api.responses import no_content

HEADERS = "authorization, content-type"
"""What a page may send beside what every page may."""

READABLE = "Retry-After"
"""What a page may read of an answer's headers beside what every page may."""

REMEMBERED_SECS = 600


class Cors:
    """Tells browsers of the origins that are allowed, each by its exact name; with None, of nothing at all."""

    def __init__(self, origins: frozenset[str] | None, methods: Iterable[str]) -> None:
        self._origins = origins
        self._methods = ", ".join(sorted(set(methods)))

    def preflight(self, request: Request) -> HTTPResponse | None:
        """The answer to a browser that asks what an allowed origin may send; None for every other request.

        It is the same for every path, also for one that does not exist.
        """
        if request.method != "OPTIONS" or "access-control-request-method" not in request.headers:
            return None
        if self._origin_of(request) is None:
            return None
        answer = no_content()
        answer.headers["access-control-allow-methods"] = self._methods
        answer.headers["access-control-allow-headers"] = HEADERS
        answer.headers["access-control-max-age"] = str(REMEMBERED_SECS)
        return answer

    def add_headers(self, request: Request, answer: HTTPResponse) -> HTTPResponse:
        """The answer, with what tells the browser whether the page may read it."""
        if self._origins is not None:
            varies = answer.headers.get("vary")
            answer.headers["vary"] = "Origin" if varies is None else f"{varies}, Origin"
            if (origin := self._origin_of(request)) is not None:
                answer.headers["access-control-allow-origin"] = origin
                answer.headers["access-control-expose-headers"] = READABLE
        return answer

    def _origin_of(self, request: Request) -> str | None:
        """The origin that the request states, if it is an allowed one."""
        if self._origins is None:
            return None
        stated = request.headers.getall("origin", [])
        return stated[0] if len(stated) == 1 and stated[0] in self._origins else None
