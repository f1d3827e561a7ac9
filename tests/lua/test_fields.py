"""Fields: what a definition may hold, and where its faults stand."""

from __future__ import annotations

from typing import Any

import pytest

from appliance.errors import ConfigFailed
from appliance.lua.lua_catalog import read_definition
from appliance.lua.modes import Mode, ModeType
from appliance.lua.source import Source
from appliance.scenes import Scene, scene_parser
from appliance.tables.checks import LUA, Function, number, shown
from appliance.tables.fields import Field, Findings, Path, Table, located
from tests.fakes.rows import each_row

EXECUTE = Function(1)
WHOLE = {"id": "x", "name": "X", "description": "Y", "execute": EXECUTE, "mode": "single"}


def parse(described: dict[str, Any], text: str = "") -> Scene:
    """The scene that this is."""
    stated = {name: value for name, value in described.items() if value is not None}
    return read_definition(stated, Source(name="x.lua", text=text.encode()), scene_parser(8))[0]


def faults(described: dict[str, Any], text: str = "") -> list[str]:
    """What is wrong with it."""
    with pytest.raises(ConfigFailed) as refused:
        parse(described, text)
    return [str(fault) for fault in refused.value.faults]


def test_a_scene_has_an_id_a_name_a_function_and_maybe_more() -> None:
    single = Mode(type=ModeType.SINGLE, max=1)
    assert parse(WHOLE) == Scene(id="x", name="X", description="Y", mode=single)
    bare = parse({"id": " x ", "name": " X ", "execute": EXECUTE})
    assert bare == Scene(id="x", name="X", description="", mode=Mode(type=ModeType.PARALLEL, max=8))


@each_row(
    ("change", "fault"),
    [
        ({"id": None}, "id is missing"),
        ({"id": 7}, "id must be a string, not 7"),
        ({"id": "  "}, "id must have 1 to 256 characters, not 0"),
        ({"id": "i" * 257}, "id must have 1 to 256 characters, not 257"),
        ({"id": "a\nb"}, "id must not contain control characters"),
        ({"id": "\x1fa"}, "id must not contain control characters"),
        ({"a\nb": 1}, "'a\\nb' is not a field; there are id, name, description, execute, mode"),
        ({"id": "a\x85"}, "id must not contain control characters"),
        ({"name": None}, "name is missing"),
        ({"name": "n" * 1001}, "name must have 1 to 1000 characters, not 1001"),
        ({"name": EXECUTE}, "name must be a string, not a function"),
        ({"description": 1.5}, "description must be a string, not 1.5"),
        ({"description": {"de": "Y"}}, "description must be a string, not a table"),
        ({"execute": None}, "execute is missing"),
        ({"execute": "x"}, "execute must be a function, not 'x'"),
        ({"excute": EXECUTE}, "excute is not a field; did you mean execute"),
        ({"trigger": {}}, "trigger is not a field; there are id, name, description, execute, mode"),
        ({"mode": "once"}, "mode must be one of parallel, single, queued, restart, not 'once'"),
    ],
)
def test_every_fault_is_a_sentence(change: dict[str, Any], fault: str) -> None:
    assert faults({**WHOLE, **change}) == [f"x.lua: {fault}"]


def test_all_faults_are_named_at_once_each_with_its_line() -> None:
    text = """-- id = "comment"
local id = "elsewhere"
return {
  id = "",
  ["name"] = 7,
  mode = { type = "single",
    max = 3 },
  colour = "red",
}"""
    described = {"id": "", "name": 7, "mode": {"type": "single", "max": 3}, "colour": "red"}
    found = faults(described, text)
    assert found[1] == "x.lua:3: execute is missing"
    assert [each.split(":")[1] for each in found[2:]] == ["5", "6", "8"]


def test_a_list_is_no_definition_and_an_empty_one_is_an_empty_table() -> None:
    def faults_of(described: Any) -> list[str]:
        with pytest.raises(ConfigFailed) as refused:
            read_definition(described, Source(name="x.lua", text=b"return {}"), scene_parser(8))
        return [str(fault) for fault in refused.value.faults]

    assert faults_of([1]) == ["x.lua:1: must return a table with named fields, not a list"]
    assert faults_of([]) == faults_of({}) == [f"x.lua:1: {name} is missing" for name in ("execute", "id", "name")]


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
    assert faults_of({"cooldown": 5}) == ["x.lua:3: state.cooldown is not a field; did you mean cooldown_secs"]
    assert faults_of(7) == ["x.lua:2: state must be a table, not 7"]


@each_row(
    ("value", "sentence"),
    [(None, "nil"), (False, "false"), ([], "a table"), (EXECUTE, "a function"), ("x" * 99, "'" + "x" * 56 + "…")],
)
def test_values_are_shown_as_lua_writes_them_and_never_long(value: Any, sentence: str) -> None:
    assert shown(value, LUA) == sentence
