"""Execution modes: how many executions of one scene or automation run at once, wait, or are dropped."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from appliance.errors import Invalid
from appliance.tables.checks import Mismatch, nearest, one_of, shown

R = TypeVar("R")


class ModeType(StrEnum):
    """What happens to an execution that is submitted while others of its id run or wait."""

    PARALLEL = "parallel"
    SINGLE = "single"
    QUEUED = "queued"
    RESTART = "restart"


BOUNDED = (ModeType.PARALLEL, ModeType.QUEUED)
"""The types that take a `max`."""


class Mode(Struct, frozen=True, kw_only=True):
    """A mode; `max` is how many run at once (parallel) or wait for the one that runs (queued), else 1."""

    type: ModeType
    max: int


def mode_check(default_max: int) -> Callable[[Any], Mode]:
    """A check: a mode's name, or its table with a `type`; `default_max` is used where no `max` is stated."""

    def check(value: Any) -> Mode:
        if isinstance(value, str):
            return _mode(value, None, default_max)
        if not isinstance(value, Mapping):
            raise Mismatch('a name like "single", or a table like { type = "queued", max = 3 }', value)
        for name in value:
            if name not in ("type", "max"):
                raise Invalid(f"has no field {name}; did you mean {nearest(name, ['type', 'max'], 0.0)}")
        if "type" not in value:
            raise Invalid(f"needs a type: one of {', '.join(ModeType)}")
        return _mode(value["type"], value.get("max"), default_max)

    return check


def _mode(name: Any, most: Any, default_max: int) -> Mode:
    kind = ModeType(one_of(*ModeType)(name))
    if kind not in BOUNDED:
        if most is not None:
            raise Invalid(f"{kind} takes no max; {' and '.join(BOUNDED)} do")
        return Mode(type=kind, max=1)
    return Mode(type=kind, max=default_max if most is None else _max(most))


def _max(value: Any) -> int:
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    if not is_whole or not 1 <= value < 1 << 53:
        raise Invalid(f"needs a max that is a whole number from 1 up, not {shown(value)}")
    return int(value)


class Decision(StrEnum):
    """What happens to an execution that is submitted."""

    RUN = "run"
    QUEUE = "queue"
    DROP = "drop"


class _Slots(Struct, Generic[R]):
    """The executions of one id: those that run and count, and those that wait."""

    running: list[R] = field(default_factory=list)
    waiting: deque[R] = field(default_factory=deque)

    def clear(self) -> tuple[R, ...]:
        every = (*self.running, *self.waiting)
        self.running.clear()
        self.waiting.clear()
        return every


_DECIDE: Mapping[ModeType, Callable[[_Slots[Any], int], Decision]] = {
    ModeType.PARALLEL: lambda slots, most: Decision.RUN if len(slots.running) < most else Decision.DROP,
    ModeType.SINGLE: lambda slots, most: Decision.DROP if slots.running else Decision.RUN,
    ModeType.QUEUED: lambda slots, most: (
        Decision.RUN if not slots.running else Decision.QUEUE if len(slots.waiting) < most else Decision.DROP
    ),
    ModeType.RESTART: lambda slots, most: Decision.RUN,
}


class ConcurrencyGate(Generic[R]):
    """Decides which executions run, by id. All that run or wait count, whatever mode they were admitted with."""

    def __init__(self) -> None:
        self._slots: dict[str, _Slots[R]] = {}

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum(len(slots.waiting) for slots in self._slots.values())

    def list_waiting(self) -> list[R]:
        """All that wait."""
        return [execution for slots in self._slots.values() for execution in slots.waiting]

    def admit(self, id_: str, execution: R, mode: Mode) -> tuple[Decision, tuple[R, ...]]:
        """The decision on one that is submitted, and which others must end; it counts from now on, unless dropped."""
        slots = self._slots.setdefault(id_, _Slots())
        decision = _DECIDE[mode.type](slots, mode.max)
        replaced = slots.clear() if mode.type is ModeType.RESTART else ()
        if decision is Decision.RUN:
            slots.running.append(execution)
        elif decision is Decision.QUEUE:
            slots.waiting.append(execution)
        return decision, replaced

    def refusal(self, id_: str, mode: Mode) -> str:
        """Why one that is submitted now is dropped."""
        slots = self._slots.get(id_, _Slots())
        if mode.type is ModeType.QUEUED:
            return f"queued lets {mode.max} wait, and {len(slots.waiting)} do"
        return f"{mode.type} lets {mode.max} run at once, and {len(slots.running)} do"

    def leave(self, id_: str, execution: R) -> R | None:
        """Note that one has ended; the one that waited longest, which counts as running, where it can start now."""
        slots = self._slots.get(id_)
        if slots is None or execution not in slots.running:
            return None
        slots.running.remove(execution)
        if slots.running:
            return None
        if not slots.waiting:
            del self._slots[id_]
            return None
        slots.running.append(slots.waiting.popleft())
        return slots.running[0]

    def withdraw(self, id_: str, execution: R) -> bool:
        """Remove one that waits; whether it did."""
        with suppress(KeyError, ValueError):
            self._slots[id_].waiting.remove(execution)
            return True
        return False

    def take_waiting(self, id_: str) -> list[R]:
        """Remove those of the id that wait, and return them."""
        slots = self._slots.get(id_, _Slots())
        waiting = list(slots.waiting)
        slots.waiting.clear()
        return waiting

    def empty(self) -> list[R]:
        """Remove all that run or wait, and return them."""
        every = [execution for slots in self._slots.values() for execution in slots.clear()]
        self._slots.clear()
        return every
