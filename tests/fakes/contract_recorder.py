"""The contract recorder: compares each HTTP response that the test run received with the OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from appliance.api.app import ROUTES
from appliance.api.openapi import describe
from appliance.api.roles import REACH, Role
from appliance.api.route import Route

SEEN: set[tuple[str, str, int]] = set()
"""Method, path, and status of all responses from routes of the table."""

FILES: set[str] = set()
"""The test files of this run, which show whether the verdict can be complete."""

TESTS = Path(__file__).parent.parent

EVERYWHERE = frozenset({400, 401, 403, 405, 408, 431})
"""Responses that every path can return to malformed requests and missing keys. Routes need not list these
responses."""

UNCHECKED = frozenset({429, 503})
"""Responses that every path with a key can return while too many keys are being checked, or while memory is low."""

PREFLIGHT = ("OPTIONS", 204)
"""A browser's preflight request, which every path answers."""


def _pattern_of(path: str) -> re.Pattern[str]:
    """Return the pattern for the paths of a route. An id whose name ends in `_path` matches several segments."""
    words = re.sub(r"<[a-z_]+_path>", "[^?#]+", re.escape(path))
    return re.compile(re.sub(r"<[a-z_]+>", "[^/]+", words) + r"\Z")


_PATTERNS = sorted(
    ((_pattern_of(route.path), route) for route in ROUTES), key=lambda each: (-each[1].path.count("/"), each[1].path)
)
"""Patterns with their routes, longest paths first: `/files/<file_path>/versions` precedes `/files/<file_path>`."""


_UNRESERVED = re.compile(r"%(2[DE]|3\d|4[1-9A-F]|5[\dAF]|6[1-9A-F]|7[\dAE])", re.IGNORECASE)
"""The percent-encoded characters that RFC 3986 treats like the characters themselves."""


@cache
def _rows_of(path: str) -> list[Route]:
    """Return the routes of a path in the same way as the router: those of a fixed path if there is one, otherwise
    those of the longest matching pattern."""
    path = _UNRESERVED.sub(lambda code: chr(int(code[1], 16)), path)
    found = [route for pattern, route in _PATTERNS if pattern.match(path)]
    of = path if any(route.path == path for route in found) else next((route.path for route in found), "")
    return [route for route in found if route.path == of]


_STATIC_PATHS = re.compile(r"/(dashboard(/.*)?)?\Z")
"""Paths of the page, which are not in the table of routes. `tests/dashboard` checks the responses of these paths."""

_REQUEST = re.compile(rb"([A-Z]+) (/[!-~]*) HTTP/1\.[01]\r\n")

_DOCUMENT = json.loads(json.dumps(describe(ROUTES)))
"""The API's documents, as a client reads them."""


def note(method: str, path: str, status: int) -> None:
    """Record a response. `path` is the path that was sent, including the query."""
    bare = path.partition("?")[0]
    SEEN.update((method, each, status) for each in {route.path for route in _rows_of(bare)})


def judge(method: str, path: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Fail unless the document describes this response to this request: status, headers, type, and body."""
    if (method, status) == PREFLIGHT:
        return
    bare = re.split("[?#]", path, maxsplit=1)[0]
    rows = _rows_of(bare)
    method_of_route = "GET" if method == "HEAD" else method
    named = [row for row in rows if row.method == method_of_route]
    what = f"{method} {path}: {status} {body[:300]!r}"
    if _STATIC_PATHS.match(bare):
        return
    if named:
        described = _operation(named[0])["responses"].get(str(status))
        assert described is not None, f"the document knows no such answer: {what}"
    else:
        assert status in ({405} if rows else {404}) | {400, 401, 403, 408, 413, 417, 431}, (
            f"nobody would expect this: {what}"
        )
        described = _refer(status)
    _check(described, headers, None if method == "HEAD" else body, what)


def judge_raw(asked: bytes, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Check the response to a request that begins with these bytes. If there are no bytes, check only the
    response."""
    if (line := _REQUEST.match(asked)) is not None:
        judge(line[1].decode(), line[2].decode(), status, headers, body)
    else:
        judge_alone(status, headers, body)


def judge_alone(status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Check a response to an unknown request. All errors have the same format."""
    if status in _ERRORS:
        _check(_refer(status), headers, body or None, f"{status} {body[:300]!r}")


_ERRORS = {int(status) for status in _DOCUMENT["components"]["responses"]}


def _operation(route: Route) -> Any:
    return _DOCUMENT["paths"][route.path.replace("<", "{").replace(">", "}")][route.method.lower()]


def _refer(status: int) -> dict[str, Any]:
    return {"$ref": f"#/components/responses/{status}"}


def _check(described: dict[str, Any], headers: Mapping[str, str], body: bytes | None, what: str) -> None:
    if "$ref" in described:
        described = _DOCUMENT["components"]["responses"][described["$ref"].rsplit("/", 1)[1]]
    given = {name.lower(): value for name, value in headers.items()}
    missing = {name for name in described.get("headers", {}) if not given.get(name.lower())}
    assert not missing, f"without {missing}: {what}"
    content = described.get("content")
    assert _is_type(given.get("content-type"), None if content is None else next(iter(content))), f"{given}: {what}"
    if content is None:
        assert not body, f"the document knows of no body: {what}"
    elif body is not None:
        [(media_type, described)] = content.items()
        if media_type == "image/*":
            return
        value = json.loads(body) if media_type == "application/json" else body.decode()
        faults = list(_validator(json.dumps(described["schema"])).iter_errors(value))
        assert not faults, f"{what} differs from the document: {'; '.join(map(str, faults))}"


def _is_type(given: str | None, named: str | None) -> bool:
    """Return whether a media type matches the documented one. Every type of picture matches `image/*`."""
    return given == named or (named == "image/*" and (given or "").startswith("image/"))


@cache
def _validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    whole = {**json.loads(schema), "components": _DOCUMENT["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


def verdict() -> str | None:
    """Return the fault of a complete run: a documented response that no test received, or an undocumented one.

    Return None if there is no fault, or if some HTTP tests did not run.
    """
    everything = {str(file) for folder in ("journeys", "api") for file in (TESTS / folder).glob("test_*.py")}
    if not everything <= FILES:
        return None
    if missing := sorted(expected() - SEEN):
        return f"{len(missing)} answers that the route table names were never received: {missing}"
    if strange := sorted(unnamed()):
        return f"{len(strange)} answers were received that no row of the route table names: {strange}"
    return None


def hand_on() -> dict[str, Any]:
    """Return the records of this process, for `take` in another process."""
    return {"seen": [list(each) for each in sorted(SEEN)], "files": sorted(FILES)}


def take(handed: dict[str, Any] | None) -> None:
    """Add the records of another process."""
    if handed is not None:
        SEEN.update((method, path, status) for method, path, status in handed["seen"])
        FILES.update(handed["files"])


def expected() -> set[tuple[str, str, int]]:
    """Return the required responses of each route, including the responses that all routes of its kind have."""
    declared = {(route.method, route.path, status) for route in ROUTES for status in answers_of(route)}
    return declared | {("PATCH", route.path, 405) for route in ROUTES}


def unnamed() -> set[tuple[str, str, int]]:
    """Return recorded responses that no route lists. HEAD is treated like GET."""
    named = {
        (route.method, route.path): answers_of(route) | (UNCHECKED if route.role is not None else set())
        for route in ROUTES
    }
    return {
        (method, path, status)
        for method, path, status in SEEN
        if (method, status) != PREFLIGHT
        and status not in EVERYWHERE | named.get(("GET" if method == "HEAD" else method, path), set())
    }


def answers_of(route: Route) -> set[int]:
    """Return the responses of the route, including those that follow from its role. 403 is included only if there
    is a lower role."""
    if route.role is None:
        return {*route.statuses}
    is_beyond_some = any(route.role not in REACH[role] for role in Role)
    return {*route.statuses, 401, *([403] if is_beyond_some else [])}
