"""Fields: what a definition may hold, and where its faults stand."""

from __future__ import annotations

from typing import Any

import pytest

from appliance.errors import ConfigFailed
from appliance.lua.fields import Reader, shown
from appliance.lua.modes import Mode, ModeType
from appliance.lua.runner import Function
from appliance.lua.source import Source
from appliance.scenes import Scene, scene_parser
from appliance.sections import Key, number

EXECUTE = Function(1)
WHOLE = {"id": "x", "name": "X", "description": "Y", "execute": EXECUTE, "mode": "single"}


def parse(described: dict[str, Any], text: str = "") -> Scene:
    """The scene that this is."""
    return scene_parser(8)(Reader(Source(name="x.lua", text=text.encode()), described))


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


@pytest.mark.parametrize(
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
    told = faults(described, text)
    assert told[1] == "x.lua:3: execute is missing"
    assert [each.split(":")[1] for each in told[2:]] == ["5", "6", "8"]


def test_tables_in_a_table_are_read_by_their_own_keys() -> None:
    reader = Reader(Source(name="x.lua", text=b"return {\n  state = {\n    cooldown = 5 } }"), {})
    keys = {"cooldown_secs": Key(number(0, 10), optional=True)}
    assert reader.table(("state",), [], keys) == reader.table(("state",), {}, keys) == {"cooldown_secs": None}
    assert reader.table(("state",), {"cooldown_secs": 5}, keys) == {"cooldown_secs": 5}
    reader.finish()
    reader.table(("state",), {"cooldown": 5}, keys)
    reader.table(("state",), 7, keys)
    assert [str(fault) for fault in reader.faults] == [
        "x.lua:3: state.cooldown is not a field; did you mean cooldown_secs",
        "x.lua:2: state must be a table with names like cooldown_secs, not 7",
    ]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [(None, "nil"), (False, "false"), ([], "a table"), (EXECUTE, "a function"), ("x" * 99, "'" + "x" * 56 + "…")],
)
def test_values_are_shown_as_lua_writes_them_and_never_long(value: Any, sentence: str) -> None:
    assert shown(value) == sentence
