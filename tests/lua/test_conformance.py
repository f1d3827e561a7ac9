"""What a script sees of the library gives what the plain interpreter gives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.resources import files

import pytest

from tests.fakes.programs import need
from tests.lua.bench import Notes, open_pool, run
from tests.lua.expressions import EXPRESSIONS

FROM_LUPA = "import sys; from lupa.lua54 import LuaRuntime; LuaRuntime().execute(sys.stdin.buffer.read())"
"""Runs the Lua of the hub's library as it is, in a process of its own: nothing is taken from it, nothing wrapped."""

PROGRAM = """
local function described(ok, ...)
  local parts = {ok and 'is' or 'fails'}
  for index = 1, select('#', ...) do
    local value = select(index, ...)
    local kind = type(value)
    parts[#parts + 1] = kind == 'string' and string.format('%q', value)
      or (kind == 'number' or kind == 'boolean' or kind == 'nil') and tostring(value) or kind
  end
  return (table.concat(parts, ' '):gsub('[^ -~]', function(byte) return '\\\\' .. string.byte(byte) end))
end
for number, text in ipairs(EXPRESSIONS) do
  local f, fault = load('return ' .. text, '=e')
  if f then print(number .. ' ' .. described(pcall(f))) else print(number .. ' ' .. described(false, fault)) end
end
"""


def program(expressions: tuple[str, ...]) -> str:
    """Prints a line for each expression: what it is, or how it fails."""
    table = ",\n".join(f"[=====[{each}]=====]" for each in expressions)
    return f"local EXPRESSIONS = {{{table}}}\n{PROGRAM}"


def plainly(interpreter: Sequence[str]) -> list[str]:
    """What an interpreter that is not ours prints."""
    zone = files("tzdata").joinpath("zoneinfo", "Europe", "Berlin")
    ended = subprocess.run(
        interpreter,
        input=program(EXPRESSIONS),
        env={**os.environ, "TZ": f":{zone}", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ended.stdout.splitlines()


async def ours() -> list[str]:
    """What a scene prints."""
    printed: list[str] = []
    async with open_pool() as pool:
        for first in range(0, len(EXPRESSIONS), 500):
            notes: Notes = await run(pool, program(EXPRESSIONS[first : first + 500]))
            printed += [f"{first + int(line.split()[0])} {line.split(' ', 1)[1]}" for line in notes.printed]
    return printed


def bare(line: str) -> str:
    """The line without the place, which an error of a function that we wrap lacks."""
    return line.replace("e:1: ", "").replace("got nil", "got no value")


def test_there_are_hundreds_of_expressions() -> None:
    assert len(set(EXPRESSIONS)) > 700


@pytest.mark.parametrize("plain", ["lupa", "lua5.4"])
async def test_the_library_gives_what_the_plain_interpreter_gives(plain: str) -> None:
    interpreter = [sys.executable, "-c", FROM_LUPA] if plain == "lupa" else [need(plain), "-"]
    expected, got = list(map(bare, plainly(interpreter))), list(map(bare, await ours()))
    assert len(got) == len(expected) == len(EXPRESSIONS)
    differences = [
        f"{EXPRESSIONS[n]}: {a!r}, not {b!r}" for n, (a, b) in enumerate(zip(got, expected, strict=True)) if a != b
    ]
    assert differences == [], "\n".join(differences)
