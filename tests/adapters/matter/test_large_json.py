"""Large messages of a server are parsed in limited steps. The result is the same as if they were parsed at once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from appliance.adapters.matter.large_json import MAX_AT_ONCE, MAX_PARTS, parse_large, parse_small
from appliance.errors import Unreadable
from tests.fakes.clock import VirtualClock
from tests.fakes.rows import each_row

TEXT = 'x"\\{}[]:, ä' * 10


def parse(text: str) -> Any:
    """Parse a text in steps."""
    return asyncio.run(parse_large(text, VirtualClock(), refuse))


def refuse() -> None:
    raise Unreadable("a part is too large")


@each_row(
    "value",
    [
        {},
        {"message_id": "listen", "result": []},
        {"message_id": "listen", "result": [{"node_id": each, "attributes": {"0/40/1": TEXT}} for each in range(5)]},
        {"event": "node_added", "data": {"node_id": 1, "attributes": {"1/6/0": [1, [2.5, None], {"a": True}]}}},
        {"result": [{"attributes": {f"{each}/40/1": TEXT for each in range(6_000)}}, 1]},
        {"result": {"deep": [[{"a": [TEXT] * 6_000}]]}, "more": [[TEXT] * 6_000]},
        {"result": [1, "two", None, [], {}, -3.5e2], TEXT: TEXT, "": 12},
        {"result": [{"value": "x" * (1 << 15)}, {"value": "y" * (1 << 17)}], "more": "z" * (1 << 15)},
    ],
)
def test_parsing_in_steps_gives_the_same_value(value: dict[str, Any]) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=1), json.dumps(value, ensure_ascii=False) + " \n"):
        assert parse(text) == json.loads(text)


@each_row(
    "text",
    [
        "",
        "{",
        "[]",
        "[{}]",
        '{"a"}',
        '{"a": 1,}extra',
        '{"a": 1} {}',
        '{"a": 1 "b": 2}',
        '{"a": [1 2]}',
        '{"a": [1, 2}',
        '{"a": NaN}',
        '{"a": "\\ud800"}',
        '{"a": ' + "[" * 100_000,
        '{"a": "' + "x" * MAX_AT_ONCE,
        '{"a": "' + "x" * MAX_AT_ONCE + "\\",
        '{"a": {"b": "' + "x" * MAX_AT_ONCE + '", 1: 2}}',
        '{"a": {"b": [' + "[1, " * MAX_AT_ONCE,
        '{"a": [' + "[" * 100_000,
        '{"a": "' + "x" * MAX_AT_ONCE + '"}',
        '{"a": [' + "1, " * MAX_PARTS + "1]}",
    ],
)
def test_invalid_or_too_large_json_is_unreadable(text: str) -> None:
    try:
        value = parse(text)
    except Unreadable:
        return
    raise AssertionError(f"{text[:20]} became {value!r:.40}")


def test_only_large_messages_are_parsed_later() -> None:
    small, large = '{"a": 1}', json.dumps({"a": "x" * MAX_AT_ONCE})
    assert parse_small(small, "server") == {"a": 1}
    assert parse_small(large, "server") == large
    assert parse_small(large.encode(), "server") == large
    assert asyncio.run(parse_large({"a": 1}, VirtualClock(), refuse)) == {"a": 1}


@each_row("text", ["x" * MAX_AT_ONCE, '\\"' * MAX_AT_ONCE, '"\\' * MAX_AT_ONCE, "ä" * MAX_AT_ONCE])
def test_only_texts_and_entries_beyond_the_limits_are_dropped(text: str) -> None:
    def message(large: Any, count: int) -> Any:
        node = {"node_id": 2, "attributes": {"1/6/0": True, "1/6/9": large, "1/8/0": 1}}
        return {"data": large, "result": [{"node_id": 1}, node, {"node_id": 3, "list": [0] * count}]}

    dropped: list[None] = []
    given = json.dumps(message(text, MAX_PARTS + 3), ensure_ascii=False, indent=1)
    found = asyncio.run(parse_large(given, VirtualClock(), lambda: dropped.append(None)))
    assert (found, len(dropped)) == (message(None, MAX_PARTS + 3), 2)


def test_entries_beyond_the_limit_are_dropped() -> None:
    dropped: list[None] = []
    given = json.dumps({"result": [{"node_id": 1, "list": ["x" * 60] * (MAX_PARTS + 3)}]})
    found = asyncio.run(parse_large(given, VirtualClock(), lambda: dropped.append(None)))
    assert (len(found["result"][0]["list"]), len(dropped)) == (MAX_PARTS, 3)
