"""The most common mistakes. Each mistake is a file with the complete error message. `TRIGGER` in a file is replaced
with a trigger. If `TRIGGER` is replaced with nothing, the file is a scene."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

LAMP = "elgato_lights:light:0"


class Mistake(NamedTuple):
    """A file, and the message `{line}: {sentence}`. `files` maps the paths of other files under `config/` to their
    texts. `kinds` lists the folders in which the file causes this message."""

    text: str
    line: int
    sentence: str
    files: Mapping[str, str] = {}
    kinds: tuple[str, ...] = ("scenes", "automations")


def _body(line: int, code: str, sentence: str, files: Mapping[str, str] = {}) -> Mistake:
    """Return a valid definition whose `execute` begins on line 2."""
    inner = "\n".join(f"    {each}" for each in code.split("\n"))
    text = f'return {{ id = "x", name = "X", TRIGGER execute = function(ctx)\n{inner}\n  end,\n}}\n'
    return Mistake(text, line, sentence, files)


def _command(words: str, sentence: str) -> Mistake:
    return _body(2, f'ctx:command("{LAMP}", {{ {words} }})', sentence)


AT_CHECK = (
    Mistake(
        'local functoin turn(ctx)\n  return ctx\nend\nreturn { id = "x" }\n',
        3,
        '<eof> expected near \'end\' ("functoin" on line 1: did you mean "function"?)',
    ),
    Mistake(
        'local x = {\n  a\u00a0= 1,\n}\nreturn { id = "x" }\n',
        2,
        "'}' expected (to close '{' at line 1) near '<\\194>' (line 2, column 4: U+00A0 NO-BREAK SPACE; "
        "replace it with a plain character or a space)",
    ),
    Mistake(
        'local x = 1\nif x then x = 2 elsif x then x = 3 end\nreturn { id = "x" }\n',
        2,
        'syntax error near \'x\' ("elsif" on line 2: did you mean "elseif"?)',
    ),
    Mistake(
        'local night = {\n  start = "22:00",\n  end = "06:00",\n}\nreturn { night = night }\n',
        3,
        'unexpected symbol near \'end\' ("end" is a reserved word: write ["end"] = …)',
    ),
    Mistake(
        'return {\n  id = "x",\n  TRIGGER execute = function(ctx)\n    if ctx then\n      ctx:sleep(1)\n  end,\n}\n',
        6,
        "unexpected symbol near ',' (an end is missing: each function, if, for, and while needs its own end)",
    ),
    Mistake(
        'return {\n  id = "x",\n  TRIGGER execute = function(ctx)\n    if ctx then\n    else if event then\n'
        "    end end\n  end,\n  name = ,\n}\n",
        8,
        "unexpected symbol near ','",
    ),
    Mistake(
        'local it = {\n  id = "x",\n  name = "X",\n  execute = function(ctx) end,\n}\n',
        1,
        'must return a table, not nothing (does the file end with "return { … }"?)',
    ),
    Mistake(
        '-- A file.\nreturn {\n  id = "x",\n  TRIGGER\n  execute = function(ctx) end,\n}\n', 2, "name is missing"
    ),
    Mistake(
        'local function twice(func)\n  func()\n  func()\nend\nlocal x = = 1\nreturn { id = "x" }\n',
        5,
        "unexpected symbol near '='",
    ),
    Mistake('retrun { id = "x" }\n', 1, "attempt to call a nil value (global 'retrun') (did you mean \"return\"?)"),
    Mistake("func twice()\nend\n", 1, 'syntax error near \'twice\' ("func" on line 1: did you mean "function"?)'),
    Mistake(
        'return {\n  id = "x", name = "X", execute = print,\n  descripton = "A scene.",\n}\n',
        3,
        "descripton is not a field; did you mean description?",
        kinds=("scenes",),
    ),
    Mistake(
        'return {\n  id = "x", name = "X", TRIGGER execute = print,\n  descripton = "It.",\n}\n',
        3,
        "descripton is not a field of an automation; did you mean description?",
        kinds=("automations",),
    ),
    Mistake(
        'return {\n  id = "x", name = "X", TRIGGER execute = print,\n  conditions = {\n    { type = '
        '"time_window", start = "22:00", end = "06:00" },\n  },\n}\n',
        4,
        'unexpected symbol near \'end\' ("end" is a reserved word: write ["end"] = …)',
        kinds=("automations",),
    ),
    Mistake(
        'return {\n  id = "x", name = "X", execute = print,\n  trigger = {\n    type = "device_state_change", '
        'device_id = "a", attribute = "brightness",\n    above = "50",\n  },\n}\n',
        5,
        "trigger.above must be a number, not '50' (write the number without quotes: 50)",
        kinds=("automations",),
    ),
    Mistake(
        'return {\n  id = "x", name = "X", execute = print,\n  trigger = { type = "device_state_change" },\n}\n',
        3,
        "trigger.device_id is missing",
        kinds=("automations",),
    ),
    Mistake(
        'return {\n  id = "x", name = "X", execute = print,\n  trigger = { type = "device_state_change", '
        'device_id = "a", attribute = "brightnes" },\n}\n',
        3,
        "trigger.attribute 'brightnes' is neither a capability nor custom.<adapter>.<field>; "
        "did you mean brightness?",
        kinds=("automations",),
    ),
    Mistake(
        'return {\n  id = "x", name = "X", TRIGGER execute = print,\n  mode = "singel",\n}\n',
        3,
        "mode must be one of parallel, single, queued, restart, not 'singel'; did you mean single?",
    ),
    Mistake(
        'return {\n  id = "x", name = "X", TRIGGER execute = print,\n  mode = { type = "queued", max = "3" }\n}',
        3,
        "mode needs a max that is a whole number of at least 1, not '3' (write the number without quotes: 3)",
    ),
    Mistake(
        'return {\n  name = "X",\n  id = "x",\n  TRIGGER\n  execute = function(ctx) end,\n}\n',
        3,
        "config/KIND/a.lua already has the id 'x' and takes precedence; give this file another id",
        {"KIND/a.lua": 'return { id = "x", name = "A", TRIGGER execute = function(ctx) end }'},
    ),
    Mistake(
        "return " + "(function() return " * 199 + "1" + " end)()" * 199,
        1,
        "C stack overflow (the code is nested too deeply: move parts of it to local functions or variables)",
    ),
    Mistake(
        'return {\n  id = "x"\n  name = "X",\n}\n',
        3,
        "'}' expected (to close '{' at line 1) near 'name' (is there a comma at the end of the line before?)",
    ),
    Mistake(
        'ctx:log("info", "x")\nreturn {}\n',
        1,
        "attempt to index a nil value (global 'ctx') (ctx is the first parameter of `execute` and of "
        "each function of a kind, as in execute = function(ctx) … end)",
    ),
    Mistake(
        'local lamps = require("lib/lamps")\nreturn {}\n',
        1,
        "require 'lib/lamps': a module name consists of words separated by dots; a word has letters, digits, _ and - "
        '(write require("lib.lamps"): use dots for folders, and omit .lua)',
    ),
    Mistake(
        'local lamps = require("lamps.lua")\nreturn {}\n',
        1,
        "module 'lamps.lua' not found: there is no config/scripts/lamps/lua.lua (write require(\"lamps\"): use "
        "dots for folders, and omit .lua)",
    ),
    Mistake(
        'local lamps = require("lib.lamp")\nreturn {}\n',
        1,
        "module 'lib.lamp' not found: there is no config/scripts/lib/lamp.lua; did you mean lib.lamps?",
        {"scripts/lib/lamps.lua": "return {}", "scripts/other.lua": "return {}"},
    ),
    Mistake(
        'local lamps = require("lamps")\nreturn { id = lamps.id }\n',
        2,
        "attempt to index a boolean value (local 'lamps') (a script without return gives true; end the script with "
        '"return { … }")',
        {"scripts/lamps.lua": "local lamps = {}"},
    ),
)
"""Mistakes that `lares check` and a reload find."""

AT_RUN = (
    _body(
        2,
        'ctx.command("elgato_lights:light:0", { capability = "power", action = "on" })',
        "call it with a colon: ctx:command(...), not ctx.command(...)",
    ),
    _body(
        3,
        'local degrees = { value = 21.5, unit = "°C" }\nif degrees > 25 then ctx:log("info", "warm") end',
        "attempt to compare number with table (a value with a unit is { value = 21.5, unit = … }: take its .value)",
    ),
    _body(
        2,
        'print("it is " .. { value = 21.5 })',
        "attempt to concatenate a table value (a value with a unit is { value = 21.5, unit = … }: take its .value)",
    ),
    _body(
        3,
        'local count = ctx:get("count")\nctx:set("count", count + 1)',
        "attempt to perform arithmetic on a nil value (local 'count') "
        '(a variable that is not set is nil; to get 0 instead, use ctx:get("name", 0))',
    ),
    _body(
        2,
        "for device in ctx:list_devices() do print(device) end",
        "attempt to call a table value (for iterator 'for iterator') "
        "(loop over a list like this: for _, each in ipairs(list) do … end)",
    ),
    _body(2, "sleep(5)", "attempt to call a nil value (global 'sleep') (did you mean ctx:sleep(…)?)"),
    _body(
        2,
        "print(event.value)",
        "attempt to index a nil value (global 'event') "
        "(event is the second parameter of an automation's `execute`, as in execute = function(ctx, event) … end)",
    ),
    _body(
        2,
        f'ctx:command(ctx:get_device("{LAMP}"), {{ capability = "power", action = "on" }})',
        "bad argument #1 to ctx:command (string expected, got table) (pass its id: device.id)",
    ),
    _body(
        2,
        f'ctx:command("{LAMP}", "power", "on")',
        "bad argument #2 to ctx:command (table expected, got string) "
        '(a command is a table: { capability = "power", action = "on" })',
    ),
    _body(
        2,
        f'ctx:wait_for("{LAMP}", {{ attribute = "power", equals = "on", timeout = 5 }})',
        "ctx:wait_for: timeout_secs is missing; timeout is not a field of ctx:wait_for; did you mean timeout_secs?",
    ),
    _body(
        2, 'ctx:get_devise("x")', "attempt to call a nil value (method 'get_devise') (did you mean ctx:get_device?)"
    ),
    _body(
        2,
        'ctx:http { path = "/" }',
        "attempt to call a nil value (method 'http') (ctx:http is available only in the Lua file of an "
        "adapter kind, not in scenes and automations)",
    ),
    _command(
        'capability = "brightnes", action = "set", value = 5',
        "unknown capability 'brightnes'; GET /capabilities lists them (did you mean brightness?)",
    ),
    _command(
        'capability = "brightness", action = "sett", value = 5',
        "brightness has no action 'sett'; its actions are: set, increase, decrease (did you mean action = \"set\"?)",
    ),
    _command(
        'capability = "power", action = "set", value = "on"',
        "power has no action 'set'; its actions are: on, off, toggle (did you mean action = \"on\"?)",
    ),
    _command(
        'capability = "color_temperature", action = "set", value = { value = 30, unit = "celsius" }',
        "value of color_temperature: unit must be kelvin or mireds, not 'celsius' (warm light is { value = 2900, "
        'unit = "kelvin" })',
    ),
    _command(
        'capability = "color_temperature", action = "set", value = { value = 300, unit = "mired" }',
        "value of color_temperature: unit must be kelvin or mireds, not 'mired' (write unit = \"mireds\")",
    ),
    _command(
        'capability = "color_temperature", action = "set", value = { value = 3000, unit = "K" }',
        "value of color_temperature: unit must be kelvin or mireds, not 'K' (write unit = \"kelvin\")",
    ),
    _command(
        'capability = "color_temperature", action = "set", value = { value = 3000, unit = "mireds" }',
        "value of color_temperature: value must be an integer from 153 to 556, not 3000 (3000 is a number of "
        'kelvin; write unit = "kelvin")',
    ),
    _command(
        'capability = "color_temperature", action = "set", value = 2900',
        "value of color_temperature: must be an object with value, unit, not 2900 (write value = { value = 2900, "
        'unit = "kelvin" })',
    ),
    _command('capability = "power"', 'action must be a non-empty string (add action = "…")'),
    _command(
        'capability = "power", action = on',
        'action must be a non-empty string (write text in quotes: action = "on")',
    ),
    _command("capability = true, action = true", "capability must be a non-empty string"),
    _command('capability = 5, action = "on"', "capability must be a non-empty string"),
    _command('capability = "power", action = true', 'action must be a non-empty string (write action = "on")'),
    _body(
        2,
        f'local faction = ctx:command("{LAMP}", {{ capability = "power" }})',
        'action must be a non-empty string (add action = "…")',
    ),
    _command(
        'capability = "brightness", action = "set"',
        "brightness: the action 'set' needs a value (add value = … to the command)",
    ),
    _command(
        'capability = "brightness", action = "set", value = "50"',
        "value of brightness: must be an integer from 0 to 100, not '50' (write the number without quotes: 50)",
    ),
    _body(
        2,
        'ctx:sleep("5")',
        "bad argument #1 to ctx:sleep (number expected, got string) (a number in quotes is text; remove the quotes"
        ", or use tonumber(…))",
    ),
    _body(
        3,
        'local lamp = ctx:get_device("elgato_lights:light:0")\nif lamp.attributes.brightness > "50" then end',
        "attempt to compare string with number (a number in quotes is text; remove the quotes, or use tonumber(…))",
    ),
    _body(
        3,
        'local lamp = ctx:get_device("desk:light:0")\nctx:log("info", lamp.attributes.power)',
        "attempt to index a nil value (local 'lamp') (device 'desk:light:0' was not found, so ctx returned "
        "nil; test the value with `if` first)",
    ),
    _body(
        3,
        'local lamp = ctx:get_device("elgato_lights:light:0")\nlocal seen = lamp.attributes.brightnes + 1',
        "attempt to perform arithmetic on a nil value (field 'brightnes') (did you mean brightness?)",
    ),
    _body(
        3,
        'local lamp = ctx:get_device("elgato_lights:light:0")\nlocal seen = lamp.attributes.illuminance + 1',
        "attempt to perform arithmetic on a nil value (field 'illuminance') "
        "(this device may have no illuminance; test the value with `if` first)",
    ),
    _body(
        3,
        'local is = ctx:get_device("elgato_lights:light:0").attributes\nif is.illuminance < 5 then end',
        "attempt to compare nil with number (illuminance may be nil; test the value with `if` first)",
    ),
    _body(
        2,
        'require("scripts.lamps")',
        "module 'scripts.lamps' not found: there is no config/scripts/scripts/lamps.lua (write "
        'require("lamps"): use dots for folders, and omit .lua)',
        {"scripts/lamps.lua": "return {}"},
    ),
)
"""Mistakes that are found only when the file runs, because they are inside `execute`."""
