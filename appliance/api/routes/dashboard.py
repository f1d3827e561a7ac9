"""The dashboard's own files: public, because a browser must load a page before it can show a key."""

from __future__ import annotations

from sanic import HTTPResponse, Request
from sanic.exceptions import NotFound

from appliance.api.responses import Response
from appliance.api.route import Call, Handler, Route
from appliance.api.static_files import DASHBOARD_PATH, StaticFile, load_files, security_headers


class DashboardApi:
    """Handlers of `/` and the paths under `/dashboard/`; none of it holds data of the home."""

    def __init__(self) -> None:
        self._files = load_files()

    async def redirect(self, call: Call) -> HTTPResponse:
        """Redirect `/` to the dashboard, with the query."""
        if call.request.raw_url == b"*":
            raise NotFound
        query = call.request.query_string
        location = f"{DASHBOARD_PATH}?{query}" if query else DASHBOARD_PATH
        return Response(b"", 302, {"location": location, "cache-control": "no-store"})

    async def show(self, call: Call) -> HTTPResponse:
        """One file; 304 where the browser has it already."""
        file = self._files[call.request.path]
        headers = {"etag": file.etag, "cache-control": file.caching, "vary": "Accept-Encoding"}
        headers |= security_headers(call.request.headers.get("host", ""))
        if _has(call.request, file):
            return Response(b"", 304, headers)
        body, packed = file.body, file.compressed if _takes_gzip(call.request) else None
        if packed is not None:
            body = packed
            headers["content-encoding"] = "gzip"
        return Response(body, 200, {"content-type": file.type, **headers})

    def list_routes(self) -> tuple[Route, ...]:
        """A row for `/` and for each file, so that every other path is as unknown as it was."""
        files = [_row(path, DashboardApi.show, (200, 304)) for path in self._files]
        return (_row("/", DashboardApi.redirect, (302,)), *files)


def _row(path: str, handler: Handler, statuses: tuple[int, ...]) -> Route:
    return Route("GET", path, None, handler, statuses, resource=DashboardApi)


def _has(request: Request, file: StaticFile) -> bool:
    stated = request.headers.get("if-none-match", "")
    return any(each.strip().removeprefix("W/") == file.etag.removeprefix("W/") for each in stated.split(","))


def _takes_gzip(request: Request) -> bool:
    """Whether gzip is among the encodings that the request accepts, and not with the weight 0."""
    for each in request.headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = each.partition(";")
        if name.strip() in ("gzip", "x-gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
