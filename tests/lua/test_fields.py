"""Definitions: the valid fields, the lines of errors in fields, and the decisions of modes."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from appliance.errors import ConfigFailed, Fault, Invalid
from appliance.lua.files.catalog import MAX_FAULTS, MAX_FILE_FAULTS, list_first, read_definition
from appliance.lua.running.modes import BOUNDED, Decision, Mode, ModeType, apply_mode, mode_check, refusal
from appliance.lua.text.source import MAX_ITEMS_PER_TEXT, MAX_TEXTS_KNOWN, Source, by_text
from appliance.scenes import Scene, scene_parser
from appliance.tables.checks import LUA, Function, Mismatch, format_value, number
from appliance.tables.fields import Field, Findings, Path, Table, located
from tests.fakes.rows import each_row

EXECUTE = Function(1)
WHOLE = {"id": "x", "name": "X", "description": "Y", "execute": EXECUTE, "mode": "single"}


def parse(described: dict[str, Any], text: str = "") -> Scene:
    """Return the scene that this table defines."""
    stated = {name: value for name, value in described.items() if value is not None}
    return read_definition(stated, Source(name="x.lua", text=text.encode()), scene_parser(8))[0]


def faults(described: dict[str, Any], text: str = "") -> list[str]:
    with pytest.raises(ConfigFailed) as refused:
        parse(described, text)
    return [str(fault) for fault in refused.value.faults]


def test_a_scene_has_an_id_a_name_and_a_function() -> None:
    single = Mode(type=ModeType.SINGLE, max=1)
    assert parse(WHOLE) == Scene(id="x", name="X", description="Y", mode=single)
    bare = parse({"id": " x ", "name": " X ", "execute": EXECUTE})
    assert bare == Scene(id="x", name="X", description="", mode=Mode(type=ModeType.PARALLEL, max=8))


@each_row(
    ("change", "fault"),
    [
        ({"id": None}, "id is missing"),
        ({"id": "i" * 257}, "id must have 1 to 256 characters, not 257"),
        ({"a\nb": 1}, "'a\\nb' is not a field; use one of id, name, description, execute, mode"),
        ({"id": "a\x85"}, "id must not contain control characters"),
        ({"name": None}, "name is missing"),
        ({"name": "n" * 1001}, "name must have 1 to 1000 characters, not 1001"),
        ({"name": EXECUTE}, "name must be a string, not a function"),
        ({"description": 1.5}, "description must be a string, not 1.5"),
        ({"execute": None}, "execute is missing"),
        ({"execute": "x"}, "execute must be a function, not 'x'"),
        ({"trigger": {}}, "trigger is not a field; use one of id, name, description, execute, mode"),
        ({"mode": "once"}, "mode must be one of parallel, single, queued, restart, not 'once'"),
    ],
)
def test_every_error_is_a_sentence(change: dict[str, Any], fault: str) -> None:
    assert faults({**WHOLE, **change}) == [f"x.lua: {fault}"]


def test_a_list_is_not_a_definition_and_an_empty_one_is_an_empty_table() -> None:
    def faults_of(described: Any) -> list[str]:
        with pytest.raises(ConfigFailed) as refused:
            read_definition(described, Source(name="x.lua", text=b"return {}"), scene_parser(8))
        return [str(fault) for fault in refused.value.faults]

    assert faults_of([1]) == ["x.lua:1: must return a table with named fields, not a list"]
    assert faults_of([]) == faults_of({}) == [f"x.lua:1: {name} is missing" for name in ("execute", "id", "name")]


def test_only_the_first_faults_of_a_file_are_listed() -> None:
    def parse_faulty(table: Table) -> None:
        for each in range(30_000):
            table.fault(f"f{each}", "is wrong")

    with pytest.raises(ConfigFailed) as refused:
        read_definition({}, Source(name="x.lua", text=b"return {}"), parse_faulty)
    found = refused.value.lines
    assert len(found) == MAX_FILE_FAULTS + 1
    assert found[-1] == f"x.lua: has {30_000 - MAX_FILE_FAULTS} further faults; correct the listed ones first"


def test_only_the_first_faults_of_a_reload_are_listed() -> None:
    """The list is logged, sent to all pages, and kept."""
    many = [Fault(f"{number:05}.lua", 1, "is wrong") for number in range(5_000)]
    assert list_first(many[:MAX_FAULTS]) == (*many[:MAX_FAULTS],)
    *first, last = list_first(many)
    assert first == many[:MAX_FAULTS]
    assert str(last) == "00200.lua: 4800 further faults begin in this file; correct the listed ones first"


def test_tables_in_a_table_are_read_by_their_own_fields() -> None:
    def faults_of(state: Any) -> list[str]:
        findings = Findings(LUA)
        inner = Table({"state": state}, findings).table("state")
        if inner is not None:
            assert inner.read({"cooldown_secs": Field(number, required=False)})["cooldown_secs"] in (None, 5)
            inner.refuse_others("a field")
        lines: dict[Path, int] = {("state",): 2, ("state", "cooldown"): 3}
        return [str(fault) for fault in located(findings.faults, "x.lua", lambda path: lines.get(path, 0))]

    assert faults_of([]) == faults_of({}) == faults_of({"cooldown_secs": 5}) == []
    assert faults_of({"cooldown": 5}) == ["x.lua:3: state.cooldown is not a field; did you mean cooldown_secs?"]
    assert faults_of(7) == ["x.lua:2: state must be a table, not 7"]


@each_row(
    ("value", "sentence"),
    [(None, "nil"), (False, "false"), ([], "a list"), (EXECUTE, "a function"), ("x" * 99, "'" + "x" * 58 + "…")],
)
def test_values_are_shown_shortly_in_lua_syntax(value: Any, sentence: str) -> None:
    assert format_value(value, LUA) == sentence


DEFAULT_MAX = 8
FORMS = {
    "parallel": Mode(type=ModeType.PARALLEL, max=DEFAULT_MAX),
    "single": Mode(type=ModeType.SINGLE, max=1),
    "queued": Mode(type=ModeType.QUEUED, max=DEFAULT_MAX),
    "restart": Mode(type=ModeType.RESTART, max=1),
}
NAMES = "parallel, single, queued, restart"


@each_row("name", FORMS)
def test_a_mode_is_a_name_or_a_table(name: str) -> None:
    check, mode = mode_check(DEFAULT_MAX), FORMS[name]
    assert check(name) == check({"type": name}) == mode
    if name in BOUNDED:
        assert check({"type": name, "max": 2.0}) == Mode(type=mode.type, max=2)


@each_row(
    ("written", "fault"),
    [
        ("Single", f"must be one of {NAMES}, not 'Single'; did you mean single?"),
        ("quened", f"must be one of {NAMES}, not 'quened'; did you mean queued?"),
        ("", f"must be one of {NAMES}, not ''"),
        (7, 'must be a name like "single", or a table like { type = "queued", max = 3 }, not 7'),
        (True, 'must be a name like "single", or a table like { type = "queued", max = 3 }, not true'),
        (["single"], 'must be a name like "single", or a table like { type = "queued", max = 3 }, not a list'),
        (Function(3), 'must be a name like "single", or a table like { type = "queued", max = 3 }, not a function'),
        ({}, f"needs a type: one of {NAMES}"),
        ({"max": 3}, f"needs a type: one of {NAMES}"),
        ({"type": 3}, f"must be one of {NAMES}, not 3"),
        ({"type": "serial"}, f"must be one of {NAMES}, not 'serial'"),
        ({"type": "single", "max": 1}, "single takes no max; only parallel and queued take one"),
        ({"type": "restart", "max": 1}, "restart takes no max; only parallel and queued take one"),
        ({"type": "queued", "maximum": 1}, "has no field maximum; did you mean max?"),
        ({"type": "queued", "max": 0}, "needs a max that is a whole number of at least 1, not 0"),
        ({"type": "queued", "max": -1}, "needs a max that is a whole number of at least 1, not -1"),
        ({"type": "queued", "max": 1.5}, "needs a max that is a whole number of at least 1, not 1.5"),
        ({"type": "queued", "max": "3"}, "needs a max that is a whole number of at least 1, not '3'"),
        ({"type": "queued", "max": True}, "needs a max that is a whole number of at least 1, not true"),
        ({"type": "parallel", "max": float("inf")}, "needs a max that is a whole number of at least 1, not inf"),
        ({"type": "parallel", "max": float("nan")}, "needs a max that is a whole number of at least 1, not nan"),
    ],
)
def test_an_invalid_mode_is_an_error(written: Any, fault: str) -> None:
    with pytest.raises(Invalid) as refused:
        mode_check(DEFAULT_MAX)(written)
    message = refused.value.in_words(LUA) if isinstance(refused.value, Mismatch) else str(refused.value)
    assert message == fault


PARALLEL, QUEUED = Mode(type=ModeType.PARALLEL, max=2), Mode(type=ModeType.QUEUED, max=2)
SINGLE, RESTART = FORMS["single"], FORMS["restart"]
RUN, REPLACE, QUEUE, DROP = Decision


@each_row(
    ("mode", "running", "waiting", "decision", "why"),
    [
        (PARALLEL, 0, 0, RUN, None),
        (PARALLEL, 1, 0, RUN, None),
        (PARALLEL, 2, 0, DROP, "the limit of mode parallel is 2; already running: 2"),
        (PARALLEL, 5, 0, DROP, "the limit of mode parallel is 2; already running: 5"),
        (PARALLEL, 1, 2, RUN, None),
        (SINGLE, 0, 0, RUN, None),
        (SINGLE, 1, 0, DROP, "the limit of mode single is 1; already running: 1"),
        (SINGLE, 3, 0, DROP, "the limit of mode single is 1; already running: 3"),
        (SINGLE, 1, 2, DROP, "the limit of mode single is 1; already running: 1"),
        (QUEUED, 0, 0, RUN, None),
        (QUEUED, 1, 0, QUEUE, None),
        (QUEUED, 1, 1, QUEUE, None),
        (QUEUED, 1, 2, DROP, "the limit of mode queued is 2; already waiting: 2"),
        (QUEUED, 3, 0, QUEUE, None),
        (QUEUED, 1, 5, DROP, "the limit of mode queued is 2; already waiting: 5"),
        (QUEUED, 0, 1, QUEUE, None),
        (RESTART, 0, 0, REPLACE, None),
        (RESTART, 3, 2, REPLACE, None),
    ],
)
def test_the_mode_of_the_new_execution_decides_and_a_refusal_has_the_numbers(
    mode: Mode, running: int, waiting: int, decision: Decision, why: str | None
) -> None:
    assert apply_mode(mode, running, waiting) is decision
    assert why is None or refusal(mode, running, waiting) == why


def test_many_threads_may_read_more_texts_than_are_cached() -> None:
    """Large homes are checked in several threads at once, while the cache is cleared."""

    class Names(tuple[bytes]):
        __slots__ = ()

        def __len__(self) -> int:  # in Python, so that other threads can run during the call
            return 1

    sources = [Source(name="a.lua", text=f"return {number}".encode()) for number in range(2 * MAX_TEXTS_KNOWN)]
    read = by_text(lambda source: Names([source.text]))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            found = [*threads.map(read, sources * 4)]
    finally:
        sys.setswitchinterval(before)
    assert found == [(source.text,) for source in sources * 4]


def test_results_with_many_items_are_not_cached() -> None:
    read_texts: list[bytes] = []

    def list_items(source: Source) -> list[int]:
        read_texts.append(source.text)
        return [0] * int(source.text)

    read = by_text(list_items)
    sizes = (MAX_ITEMS_PER_TEXT, MAX_ITEMS_PER_TEXT + 1)
    for size in sizes * 2:
        read(Source(name="a.lua", text=str(size).encode()))
    assert [int(text) for text in read_texts] == [*sizes, sizes[1]]
