"""Error codes: one for each kind of failure, stable, so that a program can distinguish an outage from a typo."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, get_args

from appliance import errors
from appliance.api.codes import CODES
from appliance.api.responses import _SANIC_CODES
from tests.fakes.app import LARGE, LIGHT, MASTER, READER, App

CONTRACT = {
    "authentication_required",
    "insufficient_permissions",
    "path_not_found",
    "method_not_allowed",
    "rate_limited",
    "body_too_large",
    "invalid_request",
    "invalid_value",
    "unsupported",
    "device_unreachable",
    "device_refused",
    "busy",
    "script_failed",
    "dropped_by_mode",
    "store_unavailable",
    "internal",
    *(f"{each}_not_found" for each in ("device", "room", "group", "scene", "automation", "key", "adapter")),
}

ELSEWHERE = {"path_not_found", "method_not_allowed", "head_too_large", "expectation_failed", "internal"}
"""Codes of refusals before a route is called, and of bugs."""


def kinds(kind: type[errors.LaresError] = errors.LaresError) -> list[type[errors.LaresError]]:
    """Return all classes of the tree that are Lares' own, below this one."""
    below = [each for each in kind.__subclasses__() if each.__module__.startswith("appliance.")]
    return [*below, *(deeper for each in below for deeper in kinds(each))]


def code_of(kind: type[errors.LaresError]) -> str | None:
    """Return the code that every error of the class has; None for `NotFound`, whose resource decides."""
    return None if issubclass(kind, errors.NotFound) else kind.code


def test_every_code_is_in_the_table_and_every_code_of_the_table_exists() -> None:
    unanswered = (errors.ConfigFailed, errors.StartFailed)
    of_classes = {code_of(kind) for kind in kinds() if not issubclass(kind, unanswered)} - {None}
    of_resources = {errors.NotFound(each, "x").code for each in get_args(errors.Resource)}
    assert of_classes | of_resources | ELSEWHERE | {*_SANIC_CODES.values()} == set(CODES)
    assert set(CODES) >= CONTRACT
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", each) for each in CODES)
    assert all(code.meaning.endswith(".") for code in CODES.values())


def test_a_class_of_errors_has_a_code_of_its_own_unless_one_remedy_serves_both() -> None:
    unanswered = (
        errors.NotFound,
        errors.TooManyChecks,
        errors.Unanswered,
        errors.Unreadable,
        errors.ConfigFailed,
        errors.StartFailed,
    )
    shared = (*unanswered, errors.UnfitValue, errors.FileExists)  # the same remedy as for the parent
    own = [kind for kind in kinds() if kind.__module__ == errors.__name__ and not issubclass(kind, shared)]
    codes = Counter(kind.code for kind in own)
    assert max(codes.values()) == 1, codes
    assert errors.TooManyChecks.code == errors.RateLimited.code
    assert errors.Unanswered.code == errors.Unreachable.code


ASKED: list[tuple[str, str, Any, str | None, int, str]] = [
    ("GET", "/rooms", None, None, 401, "authentication_required"),
    ("GET", "/rooms", None, "wrong", 401, "authentication_required"),
    ("GET", "/nothing", None, None, 401, "authentication_required"),
    ("POST", "/rooms", {"id": "x", "name": "X"}, READER.text, 403, "insufficient_permissions"),
    ("GET", "/nothing", None, "master", 404, "path_not_found"),
    ("GET", "/rooms/", None, "master", 404, "path_not_found"),
    ("PUT", "/rooms", {}, "master", 405, "method_not_allowed"),
    ("POST", "/rooms", LARGE, "master", 413, "body_too_large"),
    ("POST", "/rooms", b"{", "master", 400, "invalid_request"),
    ("POST", "/rooms", b"", "master", 400, "invalid_request"),
    ("POST", "/rooms", [], "master", 400, "invalid_request"),
    ("POST", "/rooms", {"id": "x"}, "master", 400, "invalid_request"),
    ("POST", "/rooms", {"id": "x", "name": ""}, "master", 400, "invalid_value"),
    ("POST", "/rooms", {"id": "x", "name": 5}, "master", 400, "invalid_value"),
    ("POST", "/groups", {"id": "x", "name": "X", "members": ["nobody"]}, "master", 400, "invalid_value"),
    ("POST", f"/devices/{LIGHT}/room", {"room_id": "nowhere"}, "master", 400, "invalid_value"),
    ("POST", "/auth/keys", {"label": "x", "role": "king"}, "master", 400, "invalid_value"),
    ("POST", f"/devices/{LIGHT}/command", {"action": "on"}, "master", 400, "invalid_request"),
    ("POST", f"/devices/{LIGHT}/command", {"capability": "x", "action": "on"}, "master", 400, "invalid_value"),
    ("POST", f"/devices/{LIGHT}/command", {"capability": "brightness", "action": "increase", "value": 1},
     "master", 501, "unsupported"),
    ("GET", "/scenes/x/history?limit=0", None, "master", 404, "scene_not_found"),
    ("GET", "/devices/x", None, "master", 404, "device_not_found"),
    ("GET", f"/devices/{LIGHT}/picture", None, "master", 404, "picture_not_found"),
    ("GET", f"/devices/{LIGHT}/picture?attribute=", None, "master", 400, "invalid_value"),
    ("GET", "/rooms/x", None, "master", 404, "room_not_found"),
    ("GET", "/groups/x", None, "master", 404, "group_not_found"),
    ("GET", "/automations/x", None, "master", 404, "automation_not_found"),
    ("GET", "/adapters/x", None, "master", 404, "adapter_not_found"),
    ("DELETE", "/auth/keys/x", None, "master", 404, "key_not_found"),
    ("GET", "/events", None, "master", 426, "upgrade_required"),
]  # fmt: skip
"""Requests with their keys and their results."""


async def test_each_way_to_fail_has_its_code(app: App) -> None:
    wrong = []
    for method, path, body, token, status, code in ASKED:
        sent = {"data": body} if isinstance(body, bytes) else {"json": body}
        answer = await app.ask(method, path, **sent, token=MASTER if token == "master" else token)
        if (answer.status, answer.json.get("code")) != (status, code):
            wrong.append((method, path, body, answer.status, answer.json))
    assert not wrong
