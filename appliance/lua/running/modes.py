"""Execution modes decide whether an execution runs, waits, or is dropped while other executions with the same id
run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from appliance.errors import Invalid
from appliance.tables.checks import Mismatch, format_value, nearest, one_of, suggest


class ModeType(StrEnum):
    """How a new execution is handled while other executions with the same id run or wait."""

    PARALLEL = "parallel"
    SINGLE = "single"
    QUEUED = "queued"
    RESTART = "restart"


BOUNDED = (ModeType.PARALLEL, ModeType.QUEUED)
"""The types with a `max`."""


class Mode(Struct, frozen=True, kw_only=True):
    """An execution mode. `max` is the maximum number of running executions (parallel) or waiting executions (queued).
    For other types, `max` is 1."""

    type: ModeType
    max: int


def mode_check(default_max: int) -> Callable[[Any], Mode]:
    """Return a check for the field `mode`: a mode's name, or a table with `type` and `max`. `max` defaults to
    `default_max`."""

    def check(value: Any) -> Mode:
        if isinstance(value, str):
            return _mode(value, None, default_max)
        if not isinstance(value, Mapping):
            raise Mismatch('a name like "single", or a table like { type = "queued", max = 3 }', value)
        for name in value:
            if name not in ("type", "max"):
                raise Invalid(f"has no field {name}{suggest(nearest(name, ['type', 'max'], 0.0))}")
        if "type" not in value:
            raise Invalid(f"needs a type: one of {', '.join(ModeType)}")
        return _mode(value["type"], value.get("max"), default_max)

    return check


def _mode(name: Any, most: Any, default_max: int) -> Mode:
    kind = ModeType(one_of(*ModeType)(name))
    if kind not in BOUNDED:
        if most is not None:
            raise Invalid(f"{kind} takes no max; only {' and '.join(BOUNDED)} take one")
        return Mode(type=kind, max=1)
    return Mode(type=kind, max=default_max if most is None else _max(most))


def _max(value: Any) -> int:
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    if not is_whole or not 1 <= value < 1 << 53:
        raise Invalid(f"needs a max that is a whole number of at least 1, not {format_value(value)}")
    return int(value)


class Decision(StrEnum):
    """A mode's decision about a new execution."""

    RUN = "run"
    REPLACE = "replace"
    QUEUE = "queue"
    DROP = "drop"


def apply_mode(mode: Mode, running: int, waiting: int) -> Decision:
    """Decide whether a new execution runs, given the numbers of running and waiting executions with the same id."""
    match mode.type:
        case ModeType.RESTART:
            return Decision.REPLACE
        case ModeType.QUEUED if running or waiting:
            return Decision.QUEUE if waiting < mode.max else Decision.DROP
    return Decision.RUN if running < mode.max else Decision.DROP


def refusal(mode: Mode, running: int, waiting: int) -> str:
    """Return the reason for dropping a new execution."""
    if mode.type is ModeType.QUEUED:
        return f"the limit of mode queued is {mode.max}; already waiting: {waiting}"
    return f"the limit of mode {mode.type} is {mode.max}; already running: {running}"
