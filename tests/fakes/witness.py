"""The witness: which (method, path, status) the test run has really received over HTTP."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from appliance.api.app import ROUTES
from appliance.api.auth import REACH, Role
from appliance.api.route import Route

SEEN: set[tuple[str, str, int]] = set()
"""Everything that was received from the routes of the table."""

WHOLE = pytest.StashKey[set[Path]]()
"""The files whose tests this run holds, so that the verdict knows whether it saw them all."""

EVERYWHERE = frozenset({400, 401, 403, 405, 408, 413})
"""What a malformed request, or one without the right key, meets on every path; no row need name it."""

BUSY = 429
"""What a key meets on every path that asks for one, while too many of its kind wait to be checked."""

_PATTERNS = [(re.compile(re.sub(r"<[a-z_]+>", "[^/]+", route.path) + r"\Z"), route) for route in ROUTES]


def note(method: str, path: str, status: int) -> None:
    """Note an answer; `path` is as it was sent, query and all."""
    bare = path.partition("?")[0]
    for pattern, route in _PATTERNS:
        if pattern.match(bare):
            SEEN.add((method, route.path, status))


def expected() -> set[tuple[str, str, int]]:
    """What must be seen: each route's own answers, and those that every route of its sort gives."""
    wanted = {(route.method, route.path, status) for route in ROUTES for status in answers_of(route)}
    return wanted | {("PATCH", route.path, 405) for route in ROUTES}


def unnamed() -> set[tuple[str, str, int]]:
    """What was seen although no row names it; HEAD is served as GET."""
    named = {
        (route.method, route.path): answers_of(route) | ({BUSY} if route.role is not None else set())
        for route in ROUTES
    }
    return {
        (method, path, status)
        for method, path, status in SEEN
        if status not in EVERYWHERE | named.get(("GET" if method == "HEAD" else method, path), set())
    }


def answers_of(route: Route) -> set[int]:
    """The route's own answers, and those that its role brings; 403 only where there is a role too low for it."""
    if route.role is None:
        return {*route.answers}
    is_beyond_some = any(route.role not in REACH[role] for role in Role)
    return {*route.answers, 401, *([403] if is_beyond_some else [])}
