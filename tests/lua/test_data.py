"""Values that are passed between the hub and Lua do not change, or are refused with an error message."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from appliance.errors import ScriptFailed
from appliance.lua.running.worker_pool import WorkerPool
from tests.lua.bench import Notes, run

pytestmark = pytest.mark.asyncio(loop_scope="module")

ECHO = "ctx:invoke('take', ctx:invoke('give'))"

integers = st.integers(-(1 << 63), (1 << 63) - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.booleans() | integers | floats | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=25,
)


def _give(value: Any, _: str, arguments: Any) -> Any:
    return value if arguments[0] == "give" else None


async def echo(pool: WorkerPool, *values: Any) -> list[Any]:
    """Return the values that Lua returns for each value."""
    back = []
    for value in values:
        notes = Notes(partial(_give, value))
        await run(pool, ECHO, notes)
        back.append(notes.asked[-1][1][1])
    return back


def is_same(one: Any, other: Any) -> bool:
    """Return whether the values are equal. Numbers, lists, and objects must also have the same types."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    return bool(one == other)


@given(st.lists(values, min_size=1, max_size=30))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.slow
async def test_values_are_returned_unchanged(pool: WorkerPool, many: list[Any]) -> None:
    given = [{"value": value} for value in many]
    assert not [pair for pair in zip(await echo(pool, *given), given, strict=True) if not is_same(*pair)]


@pytest.mark.parametrize(
    ("given", "back"),
    [
        ({"a": None, "b": 1}, {"b": 1}),
        ({"a": []}, {"a": []}),
        ({"a": {}}, {"a": {}}),
        ({"a": [[], {}]}, {"a": [[], {}]}),
        ({"": {"": ""}}, {"": {"": ""}}),
        ({"a": 2**63 - 1, "b": -(2**63)}, {"a": 2**63 - 1, "b": -(2**63)}),
        ({"a": 2**64 - 1}, {"a": float(2**64 - 1)}),
        ({"a": 5, "b": 5.0, "c": 1e300, "d": -0.0}, {"a": 5, "b": 5.0, "c": 1e300, "d": -0.0}),
        ({"a": '\x00\x1f\x7f"\\/\u2028é€😀'}, {"a": '\x00\x1f\x7f"\\/\u2028é€😀'}),
        ({"a": "\\u0041 \\\\n"}, {"a": "\\u0041 \\\\n"}),
        ({"a": True, "b": False}, {"a": True, "b": False}),
        ({"\0function": 1}, {"\0function": 1}),
    ],
)
async def test_special_values(pool: WorkerPool, given: Any, back: Any) -> None:
    [returned] = await echo(pool, given)
    assert is_same(returned, back)
    assert all(repr(returned[key]) == repr(back[key]) for key in back)


async def test_null_is_absent(pool: WorkerPool) -> None:
    notes = await run(
        pool,
        "local d = ctx:invoke('x') print(d.a, (next(d)), #d.list, d.list[1], ctx:get_device('y'))",
        Notes(lambda operation, _: {"a": None, "list": ["x"]} if operation == "invoke" else None),
    )
    assert notes.printed == ["nil\tlist\t1\tx\tnil"]


@pytest.mark.parametrize(
    ("made", "arrived"),
    [
        ("{}", {}),
        ("{list = {}}", {"list": {}}),
        ("{list = {1, 'a', true}}", {"list": [1, "a", True]}),
        ("{a = nil}", {}),
        ("{n = 100 / 2}", {"n": 50.0}),
        ("{n = 100 // 2}", {"n": 50}),
        ("{n = 0.1}", {"n": 0.1}),
        ("setmetatable({a = 1}, {__index = {b = 2}})", {"a": 1}),
        ("(function() local one = {1} return {a = one, b = one} end)()", {"a": [1], "b": [1]}),
        ("(function() local t = {} local at = t for _ = 1, 30 do at.x = {} at = at.x end return {t = t} end)()", ...),
    ],
)
async def test_tables_made_in_lua(pool: WorkerPool, made: str, arrived: Any) -> None:
    notes = await run(pool, f"ctx:invoke('take', {made})")
    assert arrived is ... or is_same(notes.asked[0][1][1], arrived)


async def test_an_emptied_array_is_still_an_array(pool: WorkerPool) -> None:
    body = "local t = ctx:invoke('give') table.remove(t.a) ctx:invoke('take', t) t.a.name = 1 ctx:invoke('take', t)"
    notes = await run(pool, body, Notes(lambda *_: {"a": [1]}))
    assert [each[1][1] for each in notes.asked[1:]] == [{"a": []}, {"a": {"name": 1}}]


@pytest.mark.parametrize(
    ("made", "error"),
    [
        ("{f = print}", r"argument #2\.f holds a function"),
        ("{a = {b = {c = coroutine.running()}}}", r"argument #2\.a\.b\.c holds a thread"),
        ("{1, 2, nil, 4}", "gaps"),
        ("{list = {1, x = 2}}", r"argument #2\.list mixes"),
        ("{[1] = 1, [3] = 3}", "gaps"),
        ("{[2] = 2}", r"key that is not text \(a number\)"),
        ("{[true] = 1}", r"key that is not text \(a boolean\)"),
        ("{x = 0 / 0}", r"argument #2\.x holds a number that is not finite"),
        ("{x = math.huge}", "not finite"),
        ("{x = {1, 2, -math.huge}}", r"argument #2\.x\[3\] holds a number"),
        ("{x = '\\xff'}", r"argument #2\.x holds text that is not valid UTF-8"),
        ("{x = '\\u{D800}'}", "UTF-8"),
        ("{['\\xff'] = 1}", "UTF-8"),
        ("(function() local t = {} t.t = t return t end)()", "32 levels deep, or contains itself"),
        ("(function() local t = {} for _ = 1, 32 do t = {t} end return {x = t} end)()", "32 levels deep"),
        ("{x = ('x'):rep(1100000)}", r"argument #2\.x is larger than 256 KiB"),
    ],
)
async def test_values_without_json_are_refused_at_the_line(pool: WorkerPool, made: str, error: str) -> None:
    notes = Notes()
    with pytest.raises(ScriptFailed, match=error) as failure:
        await run(pool, f"\nctx:invoke('take', {made})", notes)
    assert failure.value.line == 3
    assert notes.asked == []


async def test_an_answer_that_is_not_json_is_an_error_of_the_call(pool: WorkerPool) -> None:
    with pytest.raises(ScriptFailed, match="ctx:invoke failed inside the hub"):
        await run(pool, "ctx:invoke('x')", Notes(lambda *_: object()))


async def test_the_event_is_a_table_of_its_own(pool: WorkerPool) -> None:
    event = {"type": "manual", "value": 5, "attributes": {"a": [1]}}
    notes = await run(pool, "print(event.type, event.value, #event.attributes.a) event.attributes.a = 1", event=event)
    assert notes.printed == ["manual\t5\t1"]
    assert event["attributes"] == {"a": [1]}
    assert (await run(pool, "print(event)")).printed == ["nil"]
