"""Random scripts over everything that a script can reach: each ends, and the next one runs.

`LUA_FUZZ_SECS` says for how long (default 60), `LUA_FUZZ_SEED` with which seed; what is found becomes a row of
`attacks.py`.
"""

from __future__ import annotations

import asyncio
import os
import random
import time

import pytest

from tests.lua.bench import TRIVIAL, open_pool, run
from tests.lua.test_attacks import LIMITS, end_of

AT_ONCE = 8
TABLES = ("string", "table", "math", "utf8", "coroutine", "os", "debug", "_G", "ctx", "getmetatable('')")
VALUES = (
    *("nil", "true", "0", "-1", "1e308", "0/0", "math.maxinteger", "math.mininteger", "3.5", "''", "'x'", "'%1'"),
    "'(.-)*'",
    *(
        "('x'):rep(1000000)",
        "('%d'):rep(10000)",
        "{}",
        "{1, 2, 3}",
        "print",
        "error",
        "pcall",
        "coroutine.wrap(spin)",
        "spin",
    ),
    *("co", "liar", "closing", "deep", "big", "_G", "ctx", "string", "getmetatable('')", "select('#')"),
    "function(...) return ... end",
)
SETUP = """
local function spin() while true do end end
local co = coroutine.create(function(...) while true do coroutine.yield(...) end end)
local liar = setmetatable({}, {__len = function() return 1 << 40 end, __index = function(_, k) return k end,
  __newindex = function() end, __call = spin, __tostring = spin, __lt = function() return true end,
  __concat = function(a) return a end, __eq = spin, __close = spin, __pairs = function() return spin end})
local closing = setmetatable({}, {__close = function() error('closing') end, __name = 'x'})
local deep = {} for _ = 1, 100 do deep = {deep} end
local big = {} for i = 1, 100000 do big[i] = i end
local function any(library, n)
  local names = {}
  for name, value in next, library do if type(value) == 'function' then names[#names + 1] = tostring(name) end end
  table.sort(names)
  return library[names[n % #names + 1]]
end
"""


def call_of(dice: random.Random) -> str:
    """A call of any function that there is with any values."""
    values = ", ".join(dice.choice(VALUES) for _ in range(dice.randrange(5)))
    return f"any({dice.choice(TABLES)}, {dice.randrange(40)})({values})"


def statement_of(dice: random.Random, depth: int = 0) -> str:
    """A statement, maybe with others in it."""
    inner = statement_of(dice, depth + 1) if depth < 4 else call_of(dice)
    frames = (
        f"pcall(function() {inner} end)",
        f"xpcall(function() {inner} end, function(e) {inner} end)",
        f"coroutine.wrap(function() {inner} end)()",
        f"for i = 1, 100 do {inner} end",
        f"while true do pcall(function() {inner} end) end",
        f"local x <close> = {dice.choice(('liar', 'closing', 'nil'))} {inner}",
        f"local s = {dice.choice(VALUES)} s = s .. s {inner}",
        f"string.gsub('abc', '.', function() {inner} end)",
        f"table.sort({{3, 1, 2}}, function(a, b) {inner} return a < b end)",
        f"load('return ' .. {dice.choice(VALUES)})",
        f"setmetatable(getmetatable(''), {{__newindex = spin, __index = function() {inner} end}})",
        f"{dice.choice(('string', 'table', '_G', 'ctx', 'coroutine'))}.sub = nil {inner}",
        call_of(dice),
        f"pcall(function() local _ = {call_of(dice)} end)",
    )
    return f"do {dice.choice(frames)} end"


@pytest.mark.slow
async def test_random_scripts_end() -> None:
    seed = int(os.environ.get("LUA_FUZZ_SEED", "1"))
    until = time.monotonic() + float(os.environ.get("LUA_FUZZ_SECS", "60"))
    dice, tried = random.Random(seed), 0
    async with open_pool(LIMITS) as pool:
        while time.monotonic() < until:
            bodies = [SETUP + " ".join(statement_of(dice) for _ in range(3)) for _ in range(AT_ONCE)]
            ends = await asyncio.gather(*(end_of(pool, "scene:random", body) for body in bodies))
            escaped = [
                body for body, said in zip(bodies, ends, strict=True) if said == "ESCAPED" or len(said) > 5_000
            ]
            assert not escaped, f"after {tried} scripts: {escaped[0]}"
            assert len((await run(pool, TRIVIAL)).asked) == 1
            tried += AT_ONCE
    print(f"{tried} random scripts, {pool.figures()['kills']} workers lost")
