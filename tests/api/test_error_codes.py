"""Error codes: each kind of failure has a stable code, so that programs can distinguish an outage from a typo."""

from __future__ import annotations

import re
from collections import Counter
from typing import get_args

from appliance import errors
from appliance.api.error_codes import CODES, SANIC_CODES

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
"""Codes of internal errors, and of requests that are rejected before a route is called."""


def kinds(kind: type[errors.LaresError] = errors.LaresError) -> list[type[errors.LaresError]]:
    """Return all subclasses that Lares defines."""
    below = [each for each in kind.__subclasses__() if each.__module__.startswith("appliance.")]
    return [*below, *(deeper for each in below for deeper in kinds(each))]


def code_of(kind: type[errors.LaresError]) -> str | None:
    """Return the code of the class's errors. Return None for `NotFound`, whose code depends on the resource."""
    return None if issubclass(kind, errors.NotFound) else kind.code


def test_codes_and_their_table_agree() -> None:
    unanswered = (errors.ConfigFailed, errors.StartFailed)
    of_classes = {code_of(kind) for kind in kinds() if not issubclass(kind, unanswered)} - {None}
    of_resources = {errors.NotFound(each, "x").code for each in get_args(errors.Resource)}
    assert of_classes | of_resources | ELSEWHERE | {*SANIC_CODES.values()} == set(CODES)
    assert set(CODES) >= CONTRACT
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", each) for each in CODES)
    assert all(code.meaning.endswith(".") for code in CODES.values())


def test_each_error_class_has_its_own_code_unless_the_remedy_is_the_same() -> None:
    unanswered = (
        errors.NotFound,
        errors.TooManyChecks,
        errors.TooManyConnections,
        errors.Unanswered,
        errors.Unreadable,
        errors.ConfigFailed,
        errors.StartFailed,
    )
    shared = (*unanswered, errors.UnfitValue, errors.FileExists)  # the advice is the same as for the parent class
    own = [kind for kind in kinds() if kind.__module__ == errors.__name__ and not issubclass(kind, shared)]
    codes = Counter(kind.code for kind in own)
    assert max(codes.values()) == 1, codes
    assert errors.TooManyChecks.code == errors.TooManyConnections.code == errors.RateLimited.code
    assert errors.Unanswered.code == errors.Unreachable.code
