"""Patterns: what passes is quick enough, what is refused could not be, and gsub by callback is gsub."""

from __future__ import annotations

import random

import pytest

from appliance.lua.limits import Limits
from tests.lua.bench import open_runner, run

RANDOM = r"""
math.randomseed(%d)
local pieces = {'a', '.', '%%w', '[ab]', '[^a]', '%%s', 'b', ' ', '%%d', '%%b()', '%%f[b]', 'x', '[%%w_]', CAPTURES}
local suffixes = {'', '*', '+', '-', '?', '', ''}
local texts = {'a', 'ab', 'a b', 'aab ', '(a', '   ', 'aaaa aaaa bbbb ', 'x.1_'}
local function a_pattern(most)
  local pattern = math.random(5) == 1 and '^' or ''
  for _ = 1, math.random(most) do
    local piece = pieces[math.random(#pieces)]
    local takes_suffix = #piece == 1 or piece:sub(1, 1) == '[' or piece:find('^%%%%[wsd]$')
    pattern = pattern .. piece .. (takes_suffix and suffixes[math.random(#suffixes)] or '')
  end
  return pattern .. (math.random(3) == 1 and '$' or '')
end
local function a_text(most)
  local unit = texts[math.random(#texts)]
  return unit:rep(math.random(0, most) // #unit) .. (math.random(2) == 1 and 'c' or '')
end
"""

SAME = RANDOM.replace("CAPTURES", "'b'") + (
    """
for _ = 1, %d do
  local text, pattern, most = a_text(12), a_pattern(5), math.random(4) == 1 and math.random(0, 3) or nil
  local wanted, count = text:gsub(pattern, '<%%0>', most)
  local got, times = text:gsub(pattern, function(match) return '<' .. match .. '>' end, most)
  if got ~= wanted or times ~= count then print(text, pattern, most, wanted, got) end
end
"""
)

QUICK_ENOUGH = RANDOM.replace("CAPTURES", "'(a*)', '(%%w+)', '()', '%%1'") + (
    """
for _ = 1, %d do
  local text, pattern = a_text(%d), a_pattern(6)
  for name, rest in pairs({find = 1, match = 1, gsub = ''}) do
    local ok, fault = pcall(string[name], text, pattern, rest)
    local is_known = ok or fault:find('too long') or fault:find('invalid') or fault:find('too complex')
    if not is_known then print(fault) end
  end
  ctx:get_device('x')
end
"""
)


async def test_gsub_by_callback_does_what_gsub_does() -> None:
    async with open_runner() as runner:
        assert (await run(runner, SAME % (random.randrange(10**6), 3_000))).printed == []


@pytest.mark.parametrize("size", [100, 3_000])
async def test_what_passes_ends_well_within_the_limit(size: int) -> None:
    async with open_runner(Limits(max_cpu_secs=20.0)) as runner:
        assert (await run(runner, QUICK_ENOUGH % (random.randrange(10**6), 150, size))).printed == []
        assert runner.abandoned == 0


@pytest.mark.slow
@pytest.mark.parametrize("size", [300, 3_000, 30_000, 300_000])
async def test_of_very_many_all_that_pass_end_well_within_the_limit(size: int) -> None:
    async with open_runner(Limits(max_cpu_secs=20.0)) as runner:
        assert (await run(runner, QUICK_ENOUGH % (random.randrange(10**6), 1_500, size))).printed == []
        assert runner.abandoned == 0


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("('key = value, '):rep(5000)", "(%w+)%s*=%s*(%w+)"),
        ("('a line of text\\n'):rep(5000)", "([^\\n]*)\\n"),
        ("(' '):rep(3000)", "^%s*(.-)%s*$"),
        ("('<b>bold</b> '):rep(1000)", "<b>(.-)</b>"),
        ("('word '):rep(20000)", "%s+$"),
        ("('{\"a\":1},'):rep(5000)", '"(%w+)"%s*:%s*(-?%d+)'),
        ("('(a(b)c) '):rep(1000)", "%b()"),
        ("('2026-11-20T08:09:11Z '):rep(3000)", "(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)"),
        ("('x'):rep(4000)", "^(.*)x(.*)$"),
        ("('a.b.c.'):rep(5000)", "[^.]+%.[^.]+%.[^.]+"),
    ],
)
async def test_patterns_that_people_write_pass_on_long_texts(text: str, pattern: str) -> None:
    async with open_runner() as runner:
        notes = await run(runner, f"local _, n = ({text}):gsub('{pattern}', '') print(n > 0)")
    assert notes.printed == ["true"]
