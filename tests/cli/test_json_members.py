"""The members of a JSON object are found without decoding their values."""

from __future__ import annotations

import orjson
import pytest

from appliance.cli.json_members import split_members


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        " { } \n",
        '{"a": 1}',
        '{"a":-1.5e3,"b":true,"c":null,"d":"x"}',
        '{"a": {"b": [1, {"c": "]}"}], "d": {}}, "e": []}',
        '{"\\u0061\\"\\\\": "\\"}\\\\", "": [["\\\\"], "{"]}',
        '{ "é" : "ü" ,\n\t"b": [ ] }\r\n',
    ],
)
def test_the_members_equal_the_decoded_object(text: str) -> None:
    data = text.encode()
    for each in (data, orjson.dumps(orjson.loads(data), option=orjson.OPT_INDENT_2)):
        assert {key: orjson.loads(value) for key, value in split_members(each)} == orjson.loads(data)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "[]",
            "1",
            "{",
            '{"a"',
            '{"a":',
            '{"a": }',
            '{"a": 1',
            '{"a": 1,}',
            '{"a": 1} x',
            '{"a": 1}}',
            "{a: 1}",
        ),
        '{"a": ["' + '\\"' * 5_000_000,  # a search with quadratic time would take days
        *('{"a": [}', '{"a": "x}', '{"a": 1 "b": 2}', "{,}", '{"a": 1,, "b": 2}', '{"\\ud800": 1}', '{"a": {"b": 1}'),
    ],
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        list(split_members(text.encode()))


@pytest.mark.parametrize(
    "text", ['{"a": "' + "\\n" * 2_000_000 + '"}', '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"]
)
def test_long_texts_and_deep_values_are_split(text: str) -> None:
    [(key, value)] = split_members(text.encode())
    assert (key, len(value)) == ("a", len(text) - 7)
