"""Modes: how they are written, and what becomes of an execution in each situation."""

from __future__ import annotations

from typing import Any

import pytest

from appliance.errors import Invalid
from appliance.lua.modes import ConcurrencyGate, Decision, Mode, ModeType, mode_check
from appliance.tables.checks import LUA, Function, Mismatch
from tests.fakes.rows import each_row

DEFAULT_MAX = 8
FORMS = {
    "parallel": Mode(type=ModeType.PARALLEL, max=DEFAULT_MAX),
    "single": Mode(type=ModeType.SINGLE, max=1),
    "queued": Mode(type=ModeType.QUEUED, max=DEFAULT_MAX),
    "restart": Mode(type=ModeType.RESTART, max=1),
}
NAMES = "parallel, single, queued, restart"


@each_row("name", FORMS)
def test_a_mode_is_written_as_a_name_or_as_a_table_of_it(name: str) -> None:
    assert mode_check(DEFAULT_MAX)(name) == mode_check(DEFAULT_MAX)({"type": name}) == FORMS[name]


@pytest.mark.parametrize("name", ["parallel", "queued"])
@pytest.mark.parametrize("most", [1, 2, 2.0, 1000])
def test_two_of_them_take_a_max(name: str, most: float) -> None:
    assert mode_check(DEFAULT_MAX)({"type": name, "max": most}) == Mode(type=ModeType(name), max=int(most))


@each_row(
    ("written", "fault"),
    [
        ("Single", f"must be one of {NAMES}, not 'Single'; did you mean single"),
        ("quened", f"must be one of {NAMES}, not 'quened'; did you mean queued"),
        ("", f"must be one of {NAMES}, not ''"),
        (7, 'must be a name like "single", or a table like { type = "queued", max = 3 }, not 7'),
        (True, 'must be a name like "single", or a table like { type = "queued", max = 3 }, not true'),
        (["single"], 'must be a name like "single", or a table like { type = "queued", max = 3 }, not a table'),
        (Function(3), 'must be a name like "single", or a table like { type = "queued", max = 3 }, not a function'),
        ({}, f"needs a type: one of {NAMES}"),
        ({"max": 3}, f"needs a type: one of {NAMES}"),
        ({"type": 3}, f"must be one of {NAMES}, not 3"),
        ({"type": "serial"}, f"must be one of {NAMES}, not 'serial'"),
        ({"type": "single", "max": 1}, "single takes no max; parallel and queued do"),
        ({"type": "restart", "max": 1}, "restart takes no max; parallel and queued do"),
        ({"type": "queued", "maximum": 1}, "has no field maximum; did you mean max"),
        ({"type": "queued", "max": 0}, "needs a max that is a whole number from 1 up, not 0"),
        ({"type": "queued", "max": -1}, "needs a max that is a whole number from 1 up, not -1"),
        ({"type": "queued", "max": 1.5}, "needs a max that is a whole number from 1 up, not 1.5"),
        ({"type": "queued", "max": "3"}, "needs a max that is a whole number from 1 up, not '3'"),
        ({"type": "queued", "max": True}, "needs a max that is a whole number from 1 up, not true"),
        ({"type": "parallel", "max": float("inf")}, "needs a max that is a whole number from 1 up, not inf"),
        ({"type": "parallel", "max": float("nan")}, "needs a max that is a whole number from 1 up, not nan"),
    ],
)
def test_what_is_no_mode_is_a_fault_with_a_sentence(written: Any, fault: str) -> None:
    with pytest.raises(Invalid) as refused:
        mode_check(DEFAULT_MAX)(written)
    message = refused.value.in_words(LUA) if isinstance(refused.value, Mismatch) else str(refused.value)
    assert message == fault


PARALLEL, QUEUED = Mode(type=ModeType.PARALLEL, max=2), Mode(type=ModeType.QUEUED, max=2)
SINGLE, RESTART = FORMS["single"], FORMS["restart"]
RUN, QUEUE, DROP = Decision

SITUATIONS: list[tuple[Mode, int, int, Decision, int]] = [
    (PARALLEL, 0, 0, RUN, 0),
    (PARALLEL, 1, 0, RUN, 0),
    (PARALLEL, 2, 0, DROP, 0),
    (PARALLEL, 5, 0, DROP, 0),
    (PARALLEL, 1, 2, RUN, 0),
    (SINGLE, 0, 0, RUN, 0),
    (SINGLE, 1, 0, DROP, 0),
    (SINGLE, 3, 0, DROP, 0),
    (SINGLE, 1, 2, DROP, 0),
    (QUEUED, 0, 0, RUN, 0),
    (QUEUED, 1, 0, QUEUE, 0),
    (QUEUED, 1, 1, QUEUE, 0),
    (QUEUED, 1, 2, DROP, 0),
    (QUEUED, 3, 0, QUEUE, 0),
    (QUEUED, 1, 5, DROP, 0),
    (RESTART, 0, 0, RUN, 0),
    (RESTART, 1, 0, RUN, 1),
    (RESTART, 3, 0, RUN, 3),
    (RESTART, 1, 2, RUN, 3),
]


def gate_with(running: int, waiting: int) -> ConcurrencyGate[str]:
    """ConcurrencyGate in which so many of the id `x` run and wait."""
    gate = ConcurrencyGate[str]()
    for number in range(running):
        assert gate.admit("x", f"r{number}", Mode(type=ModeType.PARALLEL, max=running)) == (RUN, ())
    for number in range(waiting):
        assert gate.admit("x", f"w{number}", Mode(type=ModeType.QUEUED, max=waiting)) == (QUEUE, ())
    return gate


@each_row(("mode", "running", "waiting", "decision", "replaced"), SITUATIONS)
def test_the_mode_of_the_one_that_comes_decides(
    mode: Mode, running: int, waiting: int, decision: Decision, replaced: int
) -> None:
    gate = gate_with(running, waiting)
    found, ended = gate.admit("x", "new", mode)
    assert (found, len(ended)) == (decision, replaced)
    assert gate.waiting == (0 if replaced else waiting) + (decision is QUEUE)
    assert len(gate.empty()) == running + waiting - replaced + (decision is not DROP)


def test_each_id_is_decided_by_itself() -> None:
    gate = gate_with(3, 0)
    assert gate.admit("y", "other", SINGLE) == (RUN, ())


def test_those_that_wait_run_one_by_one_in_their_order_when_nothing_runs_any_more() -> None:
    gate = gate_with(2, 3)
    assert gate.leave("x", "r1") is None
    assert gate.leave("x", "r0") == "w0"
    assert gate.leave("x", "w0") == "w1"
    assert gate.admit("x", "new", Mode(type=ModeType.QUEUED, max=2)) == (QUEUE, ())
    assert [gate.leave("x", run) for run in ("w1", "w2", "new")] == ["w2", "new", None]
    assert gate.empty() == []


def test_one_that_was_replaced_leaves_without_letting_anybody_in() -> None:
    gate = gate_with(1, 0)
    assert gate.admit("x", "new", RESTART) == (RUN, ("r0",))
    assert gate.admit("x", "waits", QUEUED) == (QUEUE, ())
    assert gate.leave("x", "r0") is None
    assert gate.leave("x", "new") == "waits"


def test_one_that_is_withdrawn_neither_waits_nor_runs() -> None:
    gate = gate_with(1, 2)
    assert [gate.withdraw("x", run) for run in ("w0", "w0", "r0", "other")] == [True, False, False, False]
    assert not gate.withdraw("y", "w1")
    assert gate.leave("x", "r0") == "w1"


def test_an_emptied_gate_returns_all_that_ran_or_waited_and_starts_from_zero() -> None:
    gate = gate_with(2, 1)
    assert gate.empty() == ["r0", "r1", "w0"]
    assert gate.leave("x", "r0") is None
    assert gate.admit("x", "new", SINGLE) == (RUN, ())


@each_row(
    ("mode", "running", "waiting", "why"),
    [
        (PARALLEL, 2, 0, "parallel lets 2 run at once, and 2 do"),
        (SINGLE, 3, 0, "single lets 1 run at once, and 3 do"),
        (QUEUED, 1, 2, "queued lets 2 wait, and 2 do"),
    ],
)
def test_a_refusal_gives_the_numbers_compared(mode: Mode, running: int, waiting: int, why: str) -> None:
    assert gate_with(running, waiting).refusal("x", mode) == why
