"""Modes: how they are written, and what becomes of an execution in each situation."""

from __future__ import annotations

from typing import Any

import pytest

from appliance.errors import Invalid
from appliance.lua.modes import Decision, Mode, ModeType, decide, mode_check, refusal
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


@each_row(
    ("mode", "running", "waiting", "decision", "why"),
    [
        (PARALLEL, 0, 0, RUN, None),
        (PARALLEL, 1, 0, RUN, None),
        (PARALLEL, 2, 0, DROP, "parallel lets 2 run at once, and 2 do"),
        (PARALLEL, 5, 0, DROP, "parallel lets 2 run at once, and 5 do"),
        (PARALLEL, 1, 2, RUN, None),
        (SINGLE, 0, 0, RUN, None),
        (SINGLE, 1, 0, DROP, "single lets 1 run at once, and 1 do"),
        (SINGLE, 3, 0, DROP, "single lets 1 run at once, and 3 do"),
        (SINGLE, 1, 2, DROP, "single lets 1 run at once, and 1 do"),
        (QUEUED, 0, 0, RUN, None),
        (QUEUED, 1, 0, QUEUE, None),
        (QUEUED, 1, 1, QUEUE, None),
        (QUEUED, 1, 2, DROP, "queued lets 2 wait, and 2 do"),
        (QUEUED, 3, 0, QUEUE, None),
        (QUEUED, 1, 5, DROP, "queued lets 2 wait, and 5 do"),
        (QUEUED, 0, 1, QUEUE, None),
        (RESTART, 0, 0, RUN, None),
        (RESTART, 3, 2, RUN, None),
    ],
)
def test_the_mode_of_the_one_that_comes_decides_and_a_refusal_gives_the_numbers_compared(
    mode: Mode, running: int, waiting: int, decision: Decision, why: str | None
) -> None:
    assert decide(mode, running, waiting) is decision
    assert why is None or refusal(mode, running, waiting) == why
