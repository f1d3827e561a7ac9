"""The dashboard's files. These files are public, because a browser must load the page before it can send a key.
Files are sent compressed if the client accepts compression."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

from sanic import HTTPResponse, Request

from appliance.api.responses import Response
from appliance.api.route import Call, Handler, Route

FOLDER = Path(__file__).parent.parent / "dashboard"
DASHBOARD_PATH = "/dashboard/"
PAGE = "index.html"

TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}
"""The served file types with their media types. Licence files are not served."""

UNHASHED = frozenset({PAGE, "worker.js", "manifest.webmanifest"})
"""Files that need fixed URLs, because browsers request these files by name. Browsers revalidate these files each
time."""

FOREVER = "public, max-age=31536000, immutable"
ALWAYS_ASK = "no-cache"

_VERSION = b"{{version}}"
_FILES = b'"{{files}}"'
_WORDS = re.compile(r"/words_([a-z]+)\.js\Z")
_PLAIN_HOST = re.compile(r"[A-Za-z0-9.:\[\]_-]+")


@dataclass(frozen=True)
class StaticFile:
    """One file as it is served. `path` is the path in the file's URL. `inserted` maps placeholders to their text."""

    path: str
    type: str
    source: Path
    caching: str
    inserted: Mapping[bytes, bytes]

    @property
    def body(self) -> bytes:
        """Return the bytes. They are read each time, because all files together would use 1 MB of memory, and most
        clients accept compression."""
        body = self.source.read_bytes()
        for placeholder, text in self.inserted.items():
            body = body.replace(placeholder, text)
        return body

    @cached_property
    def etag(self) -> str:
        """Return the content's weak ETag. The ETag is the same for every encoding."""
        return f'W/"{hashlib.sha256(self.body).hexdigest()[:20]}"'

    @cached_property
    def compressed(self) -> bytes | None:
        """Return the body compressed with gzip, or None if the compressed body is not smaller."""
        body = self.body
        packed = gzip.compress(body, mtime=0)
        return packed if len(packed) < len(body) else None


@cache
def load_files() -> Mapping[str, StaticFile]:
    """Return every served file by its URL path.

    Most URLs contain a digest of all files, so that a browser can cache the files forever and never mixes two
    versions. The digest replaces `{{version}}` in the page, the service worker, and the manifest.
    """
    sources = {
        path.relative_to(FOLDER).as_posix(): path
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in TYPES and path.is_file()
    }
    version = _digest(sources)
    hashed = [name for name in sources if name not in UNHASHED]
    inserted = {
        _VERSION: version.encode(),
        _FILES: ",".join(f'"{version}/{name}"' for name in hashed).encode(),
    }
    files = [
        StaticFile(f"{DASHBOARD_PATH}{version}/{name}", _type(name), sources[name], FOREVER, {}) for name in hashed
    ]
    for name in UNHASHED & sources.keys():
        address = DASHBOARD_PATH if name == PAGE else DASHBOARD_PATH + name
        files.append(StaticFile(address, _type(name), sources[name], ALWAYS_ASK, inserted))
    return {file.path: file for file in files}


def security_headers(host: str) -> dict[str, str]:
    """Return headers that allow the page to load files only from this hub, and to connect only to this hub. The
    headers contain the WebSocket URL with the request's host name, because some browsers do not treat this URL as
    same-origin."""
    sockets = f" ws://{host} wss://{host}" if _PLAIN_HOST.fullmatch(host) else ""
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' blob:",
        "connect-src": f"'self'{sockets}",
        "manifest-src": "'self'",
        "worker-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "lares",
    }
    return {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }


def _type(name: str) -> str:
    return TYPES[PurePosixPath(name).suffix]


def _digest(sources: Mapping[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, source in sources.items():
        body = source.read_bytes()
        digest.update(f"{name} {len(body)}\n".encode() + body)
    return digest.hexdigest()[:16]


class DashboardApi:
    """Handlers of `/` and the paths under `/dashboard/`. The responses contain no data of the home."""

    def __init__(self) -> None:
        self._files = load_files()
        named = ((_WORDS.search(path), path) for path in self._files)
        self._words = {found[1]: path for found, path in named if found is not None}

    async def redirect(self, call: Call) -> HTTPResponse:
        """Redirect `/` to the dashboard, with the query."""
        query = call.request.query_string
        location = f"{DASHBOARD_PATH}?{query}" if query else DASHBOARD_PATH
        return Response(b"", 302, {"location": location, "cache-control": "no-store"})

    async def show(self, call: Call) -> HTTPResponse:
        """Return one file, or 304 if the browser already has it."""
        file = self._files[call.route.path]
        headers = {"etag": file.etag, "cache-control": file.caching, "vary": "Accept-Encoding"}
        if file.path == DASHBOARD_PATH and (words := self._find_words(call.request)) is not None:
            headers["link"] = f"<{words}>; rel=modulepreload"
        headers |= security_headers(call.request.headers.get("host", ""))
        if _has(call.request, file):
            return Response(b"", 304, headers)
        packed = file.compressed if _takes_gzip(call.request) else None
        if packed is not None:
            headers["content-encoding"] = "gzip"
        return Response(file.body if packed is None else packed, 200, {"content-type": file.type, **headers})

    def _find_words(self, request: Request) -> str | None:
        """Return the URL path of the page's texts in the first language that the browser prefers and the page
        supports."""
        for each in request.headers.get("accept-language", "").lower().split(","):
            language = each.partition(";")[0].strip().partition("-")[0]
            if (found := self._words.get(language)) is not None:
                return found
        return None

    def list_routes(self) -> tuple[Route, ...]:
        """Return the routes of `/` and of each file."""
        files = [_row(path, DashboardApi.show, (200, 304)) for path in self._files]
        return (_row("/", DashboardApi.redirect, (302,)), *files)


def _row(path: str, handler: Handler, statuses: tuple[int, ...]) -> Route:
    return Route(method="GET", path=path, role=None, handler=handler, statuses=statuses, resource=DashboardApi)


def _has(request: Request, file: StaticFile) -> bool:
    stated = request.headers.get("if-none-match", "")
    return any(each.strip().removeprefix("W/") == file.etag.removeprefix("W/") for each in stated.split(","))


def _takes_gzip(request: Request) -> bool:
    """Return whether the request accepts gzip. A weight of 0 excludes gzip."""
    for each in request.headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = each.partition(";")
        if name.strip() in ("gzip", "x-gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
