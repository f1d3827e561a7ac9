"""JSON is checked and shortened within bounds of memory."""

from __future__ import annotations

import pytest

from appliance.adapters.lua_kinds.json_and_xml import compact_json
from appliance.errors import Invalid
from tests.fakes.memory import peak_bytes
from tests.fakes.rows import each_row


@each_row("text", ["\U0001f600" + "x" * (1 << 22), "x" * (1 << 22)])
def test_the_check_of_json_needs_no_copy_of_the_text(text: str) -> None:
    body = f'"{text}"'.encode()
    assert peak_bytes(lambda: compact_json(body)) < 2.5 * len(body)


@each_row(
    "body", [b'"\xff"', b'"' + b"x" * (1 << 18) + b'\xff"', b'"\xf0\x9f"', b'"' + b"\xc3\xa9" * (1 << 18) + b'\xc3"']
)
def test_json_that_is_not_utf_8_is_rejected(body: bytes) -> None:
    with pytest.raises(Invalid, match="is not JSON"):
        compact_json(body)


def test_characters_at_the_border_of_a_checked_part_are_accepted() -> None:
    for padding in ("", "x"):
        body = f'"{padding}{"é" * (1 << 18)}"'.encode()
        assert compact_json(body) == body
