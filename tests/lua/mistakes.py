"""The ten commonest mistakes, each as a file, and the whole sentence about it.

`TRIGGER` stands where an automation says when: the same file serves as a scene without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LAMP = "elgato_lights:light:0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A file, and the message: `{line}: {sentence}`. `files` lie beside it, by their path under `config/`.

    In `kinds` are the folders where the sentence is this one.
    """

    name: str
    text: str
    line: int
    sentence: str
    files: Mapping[str, str] = field(default_factory=dict)
    kinds: tuple[str, ...] = ("scenes", "automations")


def _body(*lines: str) -> str:
    """A valid definition whose `execute` begins on line 2."""
    inner = "\n".join(f"    {line}" for line in lines)
    return f'return {{ id = "x", name = "X", TRIGGER execute = function(ctx)\n{inner}\n  end,\n}}\n'


def _command(words: str) -> str:
    return _body(f'ctx:command("{LAMP}", {{ {words} }})')


AT_CHECK = (
    Mistake(
        name="a reserved word as key",
        text='local night = {\n  start = "22:00",\n  end = "06:00",\n}\nreturn { night = night }\n',
        line=3,
        sentence='unexpected symbol near \'end\' ("end" is a reserved word: write ["end"] = …)',
    ),
    Mistake(
        name="no return",
        text='local it = {\n  id = "x",\n  name = "X",\n  execute = function(ctx) end,\n}\n',
        line=1,
        sentence='must return a table, not nothing (does the file end with "return { … }"?)',
    ),
    Mistake(
        name="a missing field",
        text='-- A file.\nreturn {\n  id = "x",\n  TRIGGER\n  execute = function(ctx) end,\n}\n',
        line=2,
        sentence="name is missing",
    ),
    Mistake(
        name="a misspelt field of a scene",
        text='return {\n  id = "x", name = "X", execute = print,\n  descripton = "A scene.",\n}\n',
        line=3,
        sentence="descripton is not a field; did you mean description",
        kinds=("scenes",),
    ),
    Mistake(
        name="a misspelt field of an automation",
        text='return {\n  id = "x", name = "X", TRIGGER execute = print,\n  descripton = "It.",\n}\n',
        line=3,
        sentence="descripton is not a field of an automation; did you mean description",
        kinds=("automations",),
    ),
    Mistake(
        name="a window's end",
        text='return {\n  id = "x", name = "X", TRIGGER execute = print,\n  conditions = {\n'
        '    { type = "time_window", start = "22:00", end = "06:00" },\n  },\n}\n',
        line=4,
        sentence='unexpected symbol near \'end\' ("end" is a reserved word: write ["end"] = …)',
        kinds=("automations",),
    ),
    Mistake(
        name="a bound as text",
        text='return {\n  id = "x", name = "X", execute = print,\n  trigger = {\n'
        '    type = "device_state_change", device_id = "a", attribute = "brightness",\n    above = "50",\n  },\n}\n',
        line=5,
        sentence="trigger.above must be a number, not '50' (a number is written without quotes: 50)",
        kinds=("automations",),
    ),
    Mistake(
        name="a trigger without its device",
        text='return {\n  id = "x", name = "X", execute = print,\n  trigger = { type = "device_state_change" },\n}\n',
        line=3,
        sentence="trigger.device_id is missing",
        kinds=("automations",),
    ),
    Mistake(
        name="a misspelt attribute",
        text='return {\n  id = "x", name = "X", execute = print,\n'
        '  trigger = { type = "device_state_change", device_id = "a", attribute = "brightnes" },\n}\n',
        line=3,
        sentence="trigger.attribute 'brightnes' is not a capability or custom.<adapter>.<field>; did you mean "
        "brightness",
        kinds=("automations",),
    ),
    Mistake(
        name="a misspelt mode",
        text='return {\n  id = "x", name = "X", TRIGGER execute = print,\n  mode = "singel",\n}\n',
        line=3,
        sentence="mode must be one of parallel, single, queued, restart, not 'singel'; did you mean single",
    ),
    Mistake(
        name="a number as text",
        text='return {\n  id = "x", name = "X", TRIGGER execute = print,\n  mode = { type = "queued", max = "3" }\n}',
        line=3,
        sentence="mode needs a max that is a whole number from 1 up, not '3' (a number is written without quotes: 3)",
    ),
    Mistake(
        name="an id that another file has",
        text='return {\n  name = "X",\n  id = "x",\n  TRIGGER\n  execute = function(ctx) end,\n}\n',
        files={"KIND/a.lua": 'return { id = "x", name = "A", TRIGGER execute = function(ctx) end }'},
        line=3,
        sentence="the id 'x' is already that of config/KIND/a.lua; give each its own",
    ),
    Mistake(
        name="no comma",
        text='return {\n  id = "x"\n  name = "X",\n}\n',
        line=3,
        sentence="'}' expected (to close '{' at line 1) near 'name' (is there a comma at the end of the line "
        "before?)",
    ),
    Mistake(
        name="ctx outside execute",
        text='ctx:log("info", "x")\nreturn {}\n',
        line=1,
        sentence="attempt to index a nil value (global 'ctx') (ctx is the first parameter of execute: "
        "execute = function(ctx) … end)",
    ),
    Mistake(
        name="a module with a slash",
        text='local lamps = require("lib/lamps")\nreturn {}\n',
        line=1,
        sentence="require 'lib/lamps': a name is words of letters, digits, _ and -, with dots between them "
        '(write require("lib.lamps"), dots for folders and no .lua)',
    ),
    Mistake(
        name="a module with .lua",
        text='local lamps = require("lamps.lua")\nreturn {}\n',
        line=1,
        sentence="module 'lamps.lua' not found: there is no config/scripts/lamps/lua.lua "
        '(write require("lamps"), dots for folders and no .lua)',
    ),
    Mistake(
        name="a module that is not there",
        text='local lamps = require("lib.lamp")\nreturn {}\n',
        files={"scripts/lib/lamps.lua": "return {}", "scripts/other.lua": "return {}"},
        line=1,
        sentence="module 'lib.lamp' not found: there is no config/scripts/lib/lamp.lua; did you mean lib.lamps",
    ),
    Mistake(
        name="a module without return",
        text='local lamps = require("lamps")\nreturn { id = lamps.id }\n',
        files={"scripts/lamps.lua": "local lamps = {}"},
        line=2,
        sentence="attempt to index a boolean value (local 'lamps') (a script without return gives true: does it end "
        'with "return { … }"?)',
    ),
)
"""Those that show without running anything: at `lares check` and at a reload."""

AT_RUN = (
    Mistake(
        name="a dot for a colon",
        text=_body(f'ctx.command("{LAMP}", {{ capability = "power", action = "on" }})'),
        line=2,
        sentence="call it with a colon: ctx:command(...), not ctx.command(...)",
    ),
    Mistake(
        name="an unknown method",
        text=_body('ctx:get_devise("x")'),
        line=2,
        sentence="attempt to call a nil value (method 'get_devise') (is it ctx:get_device?)",
    ),
    Mistake(
        name="an unknown capability",
        text=_command('capability = "brightnes", action = "set", value = 5'),
        line=2,
        sentence="unknown capability 'brightnes'; GET /capabilities lists them (did you mean brightness)",
    ),
    Mistake(
        name="an unknown action",
        text=_command('capability = "brightness", action = "sett", value = 5'),
        line=2,
        sentence="brightness has no action 'sett'; its actions are: set, increase, decrease (did you mean "
        'action = "set")',
    ),
    Mistake(
        name="set for on",
        text=_command('capability = "power", action = "set", value = "on"'),
        line=2,
        sentence="power has no action 'set'; its actions are: on, off, toggle (did you mean action = \"on\")",
    ),
    Mistake(
        name="celsius",
        text=_command('capability = "color_temperature", action = "set", value = { value = 30, unit = "celsius" }'),
        line=2,
        sentence="value of color_temperature: unit must be kelvin or mireds, not 'celsius' (warm light is "
        '{ value = 2900, unit = "kelvin" })',
    ),
    Mistake(
        name="mired",
        text=_command('capability = "color_temperature", action = "set", value = { value = 300, unit = "mired" }'),
        line=2,
        sentence="value of color_temperature: unit must be kelvin or mireds, not 'mired' (write unit = \"mireds\")",
    ),
    Mistake(
        name="K",
        text=_command('capability = "color_temperature", action = "set", value = { value = 3000, unit = "K" }'),
        line=2,
        sentence="value of color_temperature: unit must be kelvin or mireds, not 'K' (write unit = \"kelvin\")",
    ),
    Mistake(
        name="kelvin called mireds",
        text=_command('capability = "color_temperature", action = "set", value = { value = 3000, unit = "mireds" }'),
        line=2,
        sentence="value of color_temperature: value must be an integer from 153 to 556, not 3000 (3000 is a number "
        'of kelvin: write unit = "kelvin")',
    ),
    Mistake(
        name="no unit",
        text=_command('capability = "color_temperature", action = "set", value = 2900'),
        line=2,
        sentence="value of color_temperature: must be an object with value, unit, not 2900 (write value = "
        '{ value = 2900, unit = "kelvin" })',
    ),
    Mistake(
        name="a missing action",
        text=_command('capability = "power"'),
        line=2,
        sentence='action must be a non-empty string (add action = "…")',
    ),
    Mistake(
        name="text without quotes",
        text=_command('capability = "power", action = on'),
        line=2,
        sentence='action must be a non-empty string (text stands in quotes: action = "on")',
    ),
    Mistake(
        name="a missing value",
        text=_command('capability = "brightness", action = "set"'),
        line=2,
        sentence="brightness set needs a value (add value = … to the command)",
    ),
    Mistake(
        name="a number as text in a command",
        text=_command('capability = "brightness", action = "set", value = "50"'),
        line=2,
        sentence="value of brightness: must be an integer from 0 to 100, not '50' (a number is written without "
        "quotes: 50)",
    ),
    Mistake(
        name="a number as text in a call",
        text=_body('ctx:sleep("5")'),
        line=2,
        sentence="bad argument #1 to ctx:sleep (number expected, got string) (a number in quotes is text: take the "
        "quotes away, or use tonumber(…))",
    ),
    Mistake(
        name="a number compared with text",
        text=_body(f'local lamp = ctx:get_device("{LAMP}")', 'if lamp.attributes.brightness > "50" then end'),
        line=3,
        sentence="attempt to compare string with number (a number in quotes is text: take the quotes away, or use "
        "tonumber(…))",
    ),
    Mistake(
        name="a device that is not there",
        text=_body('local lamp = ctx:get_device("desk:light:0")', 'ctx:log("info", lamp.attributes.power)'),
        line=3,
        sentence="attempt to index a nil value (local 'lamp') (device 'desk:light:0' was not found, so what ctx gave "
        "is nil: test it with `if` first)",
    ),
    Mistake(
        name="an attribute that is not there",
        text=_body(f'local lamp = ctx:get_device("{LAMP}")', "local seen = lamp.attributes.illuminance + 1"),
        line=3,
        sentence="attempt to perform arithmetic on a nil value (field 'illuminance') (a device has illuminance among "
        "its attributes only if it shows it: test it with `if` first)",
    ),
    Mistake(
        name="an attribute that is not there, compared",
        text=_body(f'local is = ctx:get_device("{LAMP}").attributes', "if is.illuminance < 5 then end"),
        line=3,
        sentence="attempt to compare nil with number (illuminance may be nil: test it with `if` first)",
    ),
    Mistake(
        name="a module that is not there, required late",
        text=_body('require("scripts.lamps")'),
        files={"scripts/lamps.lua": "return {}"},
        line=2,
        sentence="module 'scripts.lamps' not found: there is no config/scripts/scripts/lamps.lua "
        '(write require("lamps"), dots for folders and no .lua)',
    ),
)
"""Those that only a run can show, because they are inside `execute`."""
