"""CORS: which web pages of other origins may read responses in a browser."""

from __future__ import annotations

from collections.abc import Iterable

from sanic import HTTPResponse, Request

from appliance.api.responses import no_content

ALLOWED_HEADERS = "authorization, content-type"
"""Request headers that a page may send in addition to the CORS-safelisted ones."""


EXPOSED_HEADERS = "Retry-After"
"""Response headers that a page may read in addition to the CORS-safelisted ones."""


PREFLIGHT_MAX_AGE_SECS = 600


class Cors:
    """Adds CORS headers for these origins, compared exactly. If `origins` is None, CORS is off."""

    def __init__(self, origins: frozenset[str] | None, methods: Iterable[str]) -> None:
        self._origins = origins
        self._methods = ", ".join(sorted(set(methods)))

    def preflight(self, request: Request) -> HTTPResponse | None:
        """Return the response to a preflight of an allowed origin; None for every other request.

        The response is the same for every path, even an unknown one.
        """
        if request.method != "OPTIONS" or "access-control-request-method" not in request.headers:
            return None
        if self._origin_of(request) is None:
            return None
        response = no_content()
        response.headers["access-control-allow-methods"] = self._methods
        response.headers["access-control-allow-headers"] = ALLOWED_HEADERS
        response.headers["access-control-max-age"] = str(PREFLIGHT_MAX_AGE_SECS)
        return response

    def add_headers(self, request: Request, response: HTTPResponse) -> HTTPResponse:
        """Return the response, with the CORS headers that its origin needs."""
        if self._origins is not None:
            varies = response.headers.get("vary")
            response.headers["vary"] = "Origin" if varies is None else f"{varies}, Origin"
            if (origin := self._origin_of(request)) is not None:
                response.headers["access-control-allow-origin"] = origin
                response.headers["access-control-expose-headers"] = EXPOSED_HEADERS
        return response

    def _origin_of(self, request: Request) -> str | None:
        """Return the origin of the request, if it is an allowed one."""
        if self._origins is None:
            return None
        stated = request.headers.getall("origin", [])
        return stated[0] if len(stated) == 1 and stated[0] in self._origins else None
