"""A hint helps or is not there: what gets none, what the place adds, and which of two counts."""

from __future__ import annotations

from appliance.lua.failures import ErrorContext, hint_of
from tests.fakes.rows import each_row

NONE = (
    "boo",
    "somebody needs a value",
    "my unknown capability 'brightness'",
    "attempt to index a nil value (local 'lamp')",
    "attempt to index a nil value (field 'lamp')",
    "attempt to index a boolean value (local 'is_on')",
    "attempt to call a nil value (method 'trim')",
    "attempt to compare nil with number",
    "attempt to compare two table values",
    "unknown capability 'x'; GET /capabilities lists them",
    "brightness has no action 'juggle'; its actions are: set, increase, decrease",
    "value of color_temperature: value must be an integer from 2200 to 7000, not 9000",
    "value of brightness: must be an integer from 0 to 100, not 101",
    "value of brightness: must be an integer from 0 to 100, not 'bright'",
    "module 'lights' not found: there is no config/scripts/lights.lua",
    "unexpected symbol near '='",
    "id is missing",
    "",
)


@each_row("message", NONE)
def test_no_hint_where_none_helps(message: str) -> None:
    assert hint_of(ErrorContext(message=message)) == ""


ABSENT = "device 'desk' was not found, so what ctx gave is nil: test it with `if` first"

PLACED: tuple[tuple[ErrorContext, str], ...] = (
    (ErrorContext(message="attempt to index a nil value (local 'lamp')", absent="device 'desk'"), ABSENT),
    (ErrorContext(message="attempt to index a nil value", absent="device 'desk'"), ABSENT),
    (ErrorContext(message="attempt to index a nil value (global 'lamp')", absent="device 'desk'"), ""),
    (
        ErrorContext(message="attempt to index a nil value (field 'color_temperature')", absent="device 'desk'"),
        "a device has color_temperature among its attributes only if it shows it: test it with `if` first",
    ),
    (ErrorContext(message="attempt to call a nil value (method 'slep')", line="ctx:slep(5)"), "is it ctx:sleep?"),
    (ErrorContext(message="attempt to call a nil value (method 'slep')", line="bed:slep(5)"), ""),
    (ErrorContext(message="action must be a non-empty string", line="{ action = event.value }"), ""),
    (ErrorContext(message="action must be a non-empty string", line='{ action = choose("tv") }'), ""),
    (ErrorContext(message="x expected near 'end'", line="if x == 5 then end"), ""),
    (
        ErrorContext(message="unexpected symbol near '='", previous="  repeat = 5,"),
        '"repeat" is a reserved word: write ["repeat"] = …',
    ),
    (ErrorContext(message="unknown capability 'Power'; GET /capabilities lists them"), "did you mean power"),
    (
        ErrorContext(message="value of color_temperature: value must be an integer from 2200 to 7000, not 250"),
        '250 is a number of mireds: write unit = "mireds"',
    ),
    (
        ErrorContext(message="value of color_temperature: must be an object with value, unit, not 250"),
        'write value = { value = 250, unit = "mireds" }',
    ),
    (
        ErrorContext(message="state.cooldown_secs must be a number, not '-1.5'"),
        "a number is written without quotes: -1.5",
    ),
    (
        ErrorContext(message="require '../config/scripts/a/b.lua': a name is words"),
        'write require("a.b"), dots for folders and no .lua',
    ),
    (ErrorContext(message="require './lights': a name is"), 'write require("lights"), dots for folders and no .lua'),
    (ErrorContext(message="require 'my lights': a name is words"), ""),
)


@each_row(("trouble", "hint"), PLACED)
def test_the_hint_fits_the_place(trouble: ErrorContext, hint: str) -> None:
    assert hint_of(trouble) == (f" ({hint})" if hint else "")
