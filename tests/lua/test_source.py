"""A file's text, as Lua takes it, and the lines on which its fields are set."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.errors import Invalid
from appliance.lua.source import MAX_FILE_BYTES, Source, load
from appliance.tables.checks import Function
from tests.fakes.rows import each_row
from tests.lua.bench import open_pool

TEXT = """#!/usr/bin/lua
-- id = "comment"
local id = 5
return {
  id = "evening",
  name = "Evening",
  ["end"] = "23:00",
  trigger = {
    type = "device_state", attribute = "power",
    equals = "on",
  },
  conditions = { { type = "time_window", ['end'] = "7:00" } },
  execute = function(ctx) if ctx.name == 5 then end end,
}
"""


def source(text: str) -> Source:
    """The text as a file."""
    return Source(name="config/scenes/x.lua", text=text.encode())


@each_row(
    ("path", "line"),
    [
        (("name",), 6),
        (("end",), 7),
        (("trigger",), 8),
        (("trigger", "type"), 9),
        (("trigger", "attribute"), 9),
        (("trigger", "equals"), 10),
        (("conditions", "end"), 12),
        (("execute",), 13),
        (("nothing",), 0),
        (("trigger", "nothing"), 0),
    ],
)
def test_the_line_of_a_field(path: tuple[str, ...], line: int) -> None:
    assert source(TEXT).line_of(*path) == line


@each_row(
    ("text", "chunk"),
    [
        ("return 1", b"return 1"),
        ("\ufeffreturn 1", b"return 1"),
        ("#!/bin/lua\nreturn 1", b"\nreturn 1"),
        ("\ufeff#!/bin/lua\r\nreturn 1", b"\nreturn 1"),
        ("#!/bin/lua", b""),
        ("", b""),
    ],
)
def test_the_text_as_lua_takes_it(text: str, chunk: bytes) -> None:
    assert source(text).chunk == chunk


async def test_lines_count_from_the_files_first() -> None:
    async with open_pool() as pool:
        description = await pool.describe(source(TEXT))
    assert description["execute"] == Function(13)


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "x.lua"
    file.write_bytes(b"x" * MAX_FILE_BYTES)
    assert load(file, "config/scenes/x.lua") == Source(name="config/scenes/x.lua", text=b"x" * MAX_FILE_BYTES)
    file.write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    with pytest.raises(Invalid, match="larger than 1 MiB"):
        load(file, "config/scenes/x.lua")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "y.lua", "y")
