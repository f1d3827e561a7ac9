"""The router: what is fixed comes first, ids are decoded once, and what matches nothing says what would."""

from __future__ import annotations

from typing import Any

import pytest
from sanic.exceptions import MethodNotAllowed, NotFound

from appliance.api.gate import Router
from tests.fakes.rows import each_row


def _router() -> Router:
    router = Router()
    for method, path in (
        ("GET", "/"),
        ("GET", "/rooms"),
        ("POST", "/rooms"),
        ("POST", "/rooms/reload"),
        ("GET", "/rooms/<room_id>"),
        ("DELETE", "/rooms/<room_id>"),
        ("GET", "/rooms/<room_id>/lamps/<lamp>"),
    ):
        handle: Any = f"{method} {path}"
        router.add(path, [method], handle)
    return router


@each_row(
    ("method", "path", "handle", "ids"),
    [
        ("GET", "/", "GET /", {}),
        ("POST", "/rooms", "POST /rooms", {}),
        ("GET", "/rooms/a%2Fb%2541", "GET /rooms/<room_id>", {"room_id": "a/b%41"}),
        ("DELETE", "/rooms/a:b", "DELETE /rooms/<room_id>", {"room_id": "a:b"}),
        ("GET", "/rooms/<room_id>", "GET /rooms/<room_id>", {"room_id": "<room_id>"}),
        ("GET", "/rooms/a/lamps/b", "GET /rooms/<room_id>/lamps/<lamp>", {"room_id": "a", "lamp": "b"}),
    ],
)
def test_a_path_has_its_handler_and_its_ids(method: str, path: str, handle: str, ids: dict[str, str]) -> None:
    found: tuple[Any, dict[str, str]] = _router().find(method, path)
    assert found == (handle, ids)


@each_row("path", ["*", "", "//", "/rooms/", "/rooms//lamps/b", "/rooms/a/lamps/", "/%72ooms", "/x"])
def test_another_path_has_none(path: str) -> None:
    with pytest.raises(NotFound):
        _router().find("GET", path)


@each_row(
    ("method", "path", "allowed"),
    [
        ("PUT", "/rooms", ["GET", "POST"]),
        ("PUT", "/rooms/a", ["DELETE", "GET"]),
        ("GET", "/rooms/reload", ["POST"]),
    ],
)
def test_another_method_is_told_which_there_are(method: str, path: str, allowed: list[str]) -> None:
    with pytest.raises(MethodNotAllowed) as refused:
        _router().find(method, path)
    assert refused.value.headers["Allow"] == ", ".join(allowed)
