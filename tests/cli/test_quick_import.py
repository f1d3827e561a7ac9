"""What makes commands start soon: classes made while importing is quick, and what is not imported at all."""

from __future__ import annotations

import dataclasses
import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from appliance.cli.quick_import import quick_import

OPTIONS: list[dict[str, bool]] = [
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True},
    {"slots": True},
    {"order": True},
    {"unsafe_hash": True},
    {"eq": False},
]
ATTEMPTS: list[Callable[[Any, Any], Any]] = [
    lambda one, other: repr(one),
    lambda one, other: one == other,
    lambda one, other: one == 1,
    lambda one, other: hash(one),
    lambda one, other: hash(one) == hash(other),
    lambda one, other: one < other,
    lambda one, other: setattr(one, "a", 2),
    lambda one, other: setattr(one, "other", 2),
    lambda one, other: delattr(one, "a"),
    lambda one, other: dataclasses.replace(one),
]


def make(options: dict[str, bool], fields: str) -> type[Any]:
    """A class of that many fields; `b` counts neither for comparing nor in text."""
    annotations: dict[str, Any] = dict.fromkeys(fields, int)
    space: dict[str, Any] = {"__annotations__": annotations, "__qualname__": "Made", "__doc__": "Made."}
    if "b" in fields:
        space["b"] = dataclasses.field(compare=False, repr=False)
    return dataclasses.dataclass(**options)(type("Made", (), space))


def outcome(attempt: Callable[[Any, Any], Any], cls: type[Any], fields: str, other: int) -> object:
    """What comes of it: text or a truth, or the kind and text of the error."""
    try:
        found = attempt(cls(**dict.fromkeys(fields, 1)), cls(**dict.fromkeys(fields, other)))
    except Exception as error:
        return type(error), str(error).replace("<locals>.", "")
    return found if isinstance(found, str | bool | int) else repr(found)


@pytest.mark.parametrize("fields", ["", "a", "ab", "ac", "abc"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_class_does_the_same_whenever_it_was_made(options: dict[str, bool], fields: str) -> None:
    plain = make(options, fields)
    with quick_import():
        quick = make(options, fields)
    for attempt in ATTEMPTS:
        for other in (1, 2):
            expected = outcome(attempt, plain, fields, other)
            if options.get("eq") is False and isinstance(expected, int | str):
                continue  # by identity, so every object has its own
            assert outcome(attempt, quick, fields, other) == expected


def test_afterwards_all_is_as_it_was() -> None:
    before = dict(vars(dataclasses))
    with quick_import():
        assert not gc.isenabled()
    assert gc.isenabled() and dict(vars(dataclasses)) == before
    with pytest.raises(ZeroDivisionError), quick_import():
        raise ZeroDivisionError
    assert gc.isenabled() and dict(vars(dataclasses)) == before


def test_commands_that_serve_nothing_load_no_web_server() -> None:
    names = ("backup", "check", "doctor", "init", "log", "simulate", "status", "why")
    modules = ", ".join(f"appliance.cli.{name}" for name in names)
    code = f"import sys, {modules}; print(sorted({{'aiohttp', 'argon2', 'sanic'}} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == "[]\n"
