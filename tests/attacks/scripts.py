"""Hostile and broken scripts, each with the pattern of its error if the pattern is known. The hub stops each script
in time, and no script leaves a trace.

Endless scripts of `scripts.lua` run only in a whole hub.
"""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

CPU = (
    r"used [\d.]+ s of processor time without waiting and (?:was|could not be) stopped"
    r"|ran for [\d.]+ s without waiting|the Lua worker did not respond"
)
"""Possible errors of an endless script: the hook stops it, its thread is halted, or its worker ends."""

MEMORY = r"needed more than [\d.]+ MB of memory and was stopped"
BACKSTOP = r"took more than [\d.]+ s in total"
OVERFLOW = r"stack overflow|C stack overflow|too many nested|memory"

_PATTERNS = {"CPU": CPU, "MEMORY": MEMORY, "BACKSTOP": BACKSTOP, "OVERFLOW": OVERFLOW}
_SPIN = "while true do end"
_STUCK = "(('a'):rep(200000)):find(('.-'):rep(20) .. 'b')"


def _read() -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    """Return each body by an id such as `strings_3`. Also return name and error pattern of each script with a
    known error."""
    bodies: dict[str, str] = {}
    known = []
    kind, numbers = "", count(1)
    for line in Path(__file__).with_suffix(".lua").read_text().splitlines():
        if line.startswith("-- "):  # a comment of the file
            continue
        if line.startswith("---- "):
            kind, numbers = line[5:], count(1)
            continue
        body, _, end = line.partition(" --> ")
        bodies[f"{kind}_{next(numbers)}"] = body
        if end:
            name, pattern = end.split(" => ")
            known.append((name, body, re.sub(r"[A-Z]{3,}", lambda found: _PATTERNS[found[0]], pattern)))
    return bodies, known


BODIES, HOSTILE = _read()

HOSTILE_FILES: tuple[tuple[str, str, str], ...] = (
    ("loop at the top", "while true do end", CPU),
    ("memory at the top", "local t = {} while true do t[#t + 1] = {} end", MEMORY),
    (
        "loop in the table's metatable",
        "return setmetatable({}, {__index = function() while true do end end})",
        CPU + "|execute must be a function",
    ),
    ("bytecode", "\x1bLua", "attempt to load a binary chunk"),
    ("not text", "\x00\x01", "unexpected symbol"),
    ("nothing", "", "must return a table"),
    ("deep nesting", "return " + "{" * 300 + "}" * 300, "overflow|levels"),
)
"""Whole files that cause an error as soon as their definition is read. Each row contains the name, the text, and the
pattern of the error."""

HELPERS = {
    "quiet": "",
    "loud": "for i = 1, 1000 do print(i, ('x'):rep(900)) end",
    "failing": "error(('x'):rep(5000))",
    "stuck": _STUCK,
    "spinning": _SPIN,
    "circle_a": "ctx:run_scene('circle_b')",
    "circle_b": "ctx:run_scene('circle_a')",
}
"""Scenes that other scripts run. Each row contains an id and a body."""

SCRIPTS = {
    "heavy": "--" + "x" * 1_000_000 + "\nerror('heavy')",
    "heavy_fault": "x = = " + "y" * 1_000_000,
    "spinning": _SPIN,
    "stuck": _STUCK,
    "circle": "return require('circle')",
    "greedy": "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
    "asks": "return function(ctx) while true do ctx:get_device('x') end end",
    "false": "return false",
    "meta": "return setmetatable({}, {__index = function() while true do end end})",
}
"""Modules. Each row contains a name and a text."""

FILES: tuple[tuple[str, str], ...] = (
    ("spin", _SPIN),
    ("stuck", _STUCK),
    ("greedy", SCRIPTS["greedy"]),
    ("asks", "ctx = ctx or require('asks') ctx({get_device = function() end})"),
    ("requires", "require('spinning')"),
    ("requires_stuck", "require('stuck')"),
    ("deep", "local t = {} for _ = 1, 40 do t = {t} end return t"),
    ("circle", "local t = {id = 'x', name = 'y', execute = print} t.t = t return t"),
    ("wide", "local t = {id = 'x', name = 'y', execute = print} for i = 1, 9000 do t['f' .. i] = i end return t"),
    ("near", "local t = {} for i = 1, 9000 do t['executed' .. i] = i end return t"),
    ("big", "return {id = ('x'):rep(250000), name = ('y'):rep(250000), execute = print}"),
    ("binary", "\x1bLua"),
    ("nothing", ""),
    ("number", "return 5"),
    ("meta", "return setmetatable({}, {__index = function() while true do end end})"),
    ("wrong", "return {id = {}, name = function() end, execute = 'x', mode = {type = {}, max = {}}}"),
    ("mode", "return {id = 'x', name = 'x', execute = print, mode = {type = 'parallel', max = 1 << 62, more = 1}}"),
    ("float", "return {id = 'x', name = 'x', execute = print, mode = {type = 'queued', max = 1e308}}"),
    ("printing", "while true do print(('x'):rep(8000)) end"),
    ("failing", "error(setmetatable({}, {__tostring = function() while true do end end}))"),
    ("quotes", "return {id = '\\0\\n\\27', name = '\\255', execute = print}"),
    ("environment", "_G.execute = 1 setmetatable(_G, {__newindex = error}) x = 1"),
    ("strings", "local s = 'x' for _ = 1, 30 do s = s .. s end"),
    ("compile", "return " + "(" * 100_000),
    ("compile_or", "return " + "a or " * 200_000 + "a"),
    ("lines", "\n" * 1_000_000 + "x = = 1"),
    ("coroutine", "return coroutine.wrap(function() while true do coroutine.yield() end end)()"),
)
"""Files of a scene or an automation that must not be loaded. Each row contains a name and a text."""

TRIGGER = "trigger = {type = 'interval', every_secs = 3600}"

AUTOMATIONS: tuple[tuple[str, str], ...] = (
    *(
        (name, f"{TRIGGER}, conditions = {conditions}")
        for name, conditions in (
            (
                "any_wide",
                "(function() local t = {} for i = 1, 3000 do t[i] = {type = 'variable', name = 'a' .. i,"
                " equals = i} end return {{type = 'any', conditions = t}} end)()",
            ),
            (
                "deep",
                "(function() local t = {type = 'weekday', days = {'mon'}} for _ = 1, 7 do t = {type = 'none',"
                " conditions = {t, t}} end return {t} end)()",
            ),
            ("number", "{{type = 'variable', name = 'a', above = 1e308, below = -1e308}}"),
            (
                "room",
                "{{type = 'room_state', room_id = ('x'):rep(256), min_devices = 1 << 62, max_devices = 1 << 62}}",
            ),
            ("equals", "{{type = 'variable', name = 'a', equals = ('x'):rep(200000)}}"),
            (
                "for_secs",
                "{{type = 'device_state', device_id = 'a', attribute = 'power', equals = 'on', for_secs = 1e308}}",
            ),
        )
    ),
    ("cooldown", f"{TRIGGER}, state = {{cooldown_secs = 1e308, dedupe_window_secs = 1e308}}"),
    (
        "cooldown_whole",
        f"{TRIGGER}, state = {{cooldown_secs = math.maxinteger, dedupe_window_secs = math.maxinteger}}",
    ),
    ("every_far", "trigger = {type = 'interval', every_secs = 1e308}"),
    ("every_whole", "trigger = {type = 'interval', every_secs = math.maxinteger}"),
    ("every_short", "trigger = {type = 'interval', every_secs = 1e-300}"),
    ("every_short_too", "trigger = {type = 'interval', every_secs = 1e-9}, state = {resumable_schedule = true}"),
    (
        "debounce",
        "trigger = {type = 'device_state_change', device_id = 'elgato_lights:light:0', attribute = 'power',"
        " debounce_secs = 1e308}",
    ),
    ("offset", "trigger = {type = 'sunset', offset_mins = math.maxinteger}"),
    ("cron_years", "trigger = {type = 'cron', expression = '0 0 0 29 2 SUN 2999'}"),
    ("cron_never", "trigger = {type = 'cron', expression = '0 0 0 31 2 *'}"),
    ("cron_list", "trigger = {type = 'cron', expression = ('1,'):rep(100000) .. '1 * * * * *'}"),
    ("cron_step", "trigger = {type = 'cron', expression = '0-59/99999999999999999999 * * * * *'}"),
    ("cron_zero", "trigger = {type = 'cron', expression = '*/0 * * * * *'}"),
    ("date_far", "trigger = {type = 'date', on = '9999-12-31', time = '23:59'}"),
    (
        "many",
        "triggers = (function() local t = {} for i = 1, 3000 do t[i] = {type = 'interval', every_secs = 3600 + i}"
        " end return t end)()",
    ),
)
"""Automations with an empty `execute`. Each row contains a name and fields. Each automation is loaded, or refused
with an error message."""
