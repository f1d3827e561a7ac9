"""CORS: allows web pages of configured origins to read responses in a browser."""

from __future__ import annotations

from collections.abc import Iterable

from sanic import HTTPResponse, Request

from appliance.api.responses import no_content

ALLOWED_HEADERS = "authorization, content-type"
"""Request headers that a page may send in addition to the CORS-safelisted headers."""


EXPOSED_HEADERS = "Retry-After"
"""Response headers that a page may read in addition to the CORS-safelisted headers."""


PREFLIGHT_MAX_AGE_SECS = 600


class Cors:
    """Adds CORS headers for these origins, which are compared exactly. If `origins` is None, CORS is off."""

    def __init__(self, origins: frozenset[str] | None, methods: Iterable[str]) -> None:
        self._origins = origins
        self._methods = ", ".join(sorted(set(methods)))

    def preflight(self, request: Request) -> HTTPResponse | None:
        """Return the response to a preflight request from an allowed origin, or None for other requests.

        The response is the same for every path, including unknown paths.
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
        """Return the response with the CORS headers for the request's origin."""
        if self._origins is not None:
            varies = response.headers.get("vary")
            response.headers["vary"] = "Origin" if varies is None else f"{varies}, Origin"
            if (origin := self._origin_of(request)) is not None:
                response.headers["access-control-allow-origin"] = origin
                response.headers["access-control-expose-headers"] = EXPOSED_HEADERS
        return response

    def _origin_of(self, request: Request) -> str | None:
        """Return the request's origin, or None if it is not allowed."""
        if self._origins is None:
            return None
        stated = request.headers.getall("origin", [])
        return stated[0] if len(stated) == 1 and stated[0] in self._origins else None
