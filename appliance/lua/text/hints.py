"""Hints about frequent mistakes, for Lua errors. `_HINTS` contains all hints. A message that already explains what
to do needs no hint."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from itertools import islice

from msgspec import Struct

from appliance.home.capabilities import CAPABILITIES
from appliance.home.values import KELVIN_RANGE, MIRED_RANGE
from appliance.lua.text.tokens import KEYWORDS, NO_TOKEN, tokens_of, windows_of
from appliance.lua_worker.ctx_methods import CTX_METHODS, KIND_METHODS, SCRIPT_METHODS
from appliance.tables.checks import nearest

MAX_SEARCHED_TOKENS = 20_000
"""Maximum number of tokens in the search for a misspelt keyword."""

MAX_SEARCHED_CHARS = 400
"""Maximum length of an error message in the search for hints. A longer message ends with a quotation of the user's
text."""


class ErrorContext(Struct, frozen=True, kw_only=True):
    """An error message, the faulty line, the line before that line, the undefined name (if any), and the file's
    text."""

    message: str
    line: str = ""
    previous: str = ""
    absent: str = ""
    has_scripts: bool = False
    text: bytes = b""
    is_kind: bool = False


def hint_of(context: ErrorContext) -> str:
    """Return the first matching hint in brackets, with a leading space, or an empty string if no hint matches."""
    message = context.message[:MAX_SEARCHED_CHARS]
    for pattern, advice in _HINTS:
        found = re.search(pattern, message)
        hint = advice if isinstance(advice, str) or found is None else advice(found, context)
        if found is not None and hint is not None:
            return f" ({hint})"
    return ""


def _reserved(_: re.Match[str], context: ErrorContext) -> str | None:
    word = re.search(_RESERVED, context.line) or re.search(_RESERVED, context.previous)
    return None if word is None else f'"{word[1]}" is a reserved word: write ["{word[1]}"] = …'


def _misspelt(_: re.Match[str], context: ErrorContext) -> str | None:
    """Return a hint about the first misspelt keyword. Lua treats a misspelt keyword as a name, and reports an error
    on a later line."""
    for token, behind in islice(windows_of(context.text, 2), MAX_SEARCHED_TOKENS):
        # `func` may also be a variable, for example in `func()`
        is_good = token.word == "func" and (behind.kind, behind.line) != ("name", token.line)
        if token.kind == "name" and not is_good and token.word not in KEYWORDS and token.word in _MISSPELT:
            return f'"{token.word}" on line {token.line}: did you mean "{_MISSPELT[token.word]}"?'
    return None


def _unclosed(_: re.Match[str], context: ErrorContext) -> str | None:
    """Return a hint if the file has too few `end`s. Lua reports the error only after the last `end`, for example at
    the comma after a function."""
    opened, else_if_line, before = 0, 0, NO_TOKEN
    for number, token in enumerate(tokens_of(context.text)):
        if number == MAX_SEARCHED_TOKENS:
            return None  # the rest of the file may contain the `end`s
        if token.kind == "name":
            if token.word == "if" and before.word == "else" and before.line == token.line:
                else_if_line = else_if_line or token.line
            opened += (token.word in _OPENING) - (token.word == "end")
        before = token
    if opened <= 0:
        return None
    if else_if_line:
        return f"line {else_if_line}: write elseif instead of else if, or add an end for this if"
    return "an end is missing: each function, if, for, and while needs its own end"


def _keyword(found: re.Match[str], _: ErrorContext) -> str | None:
    return f'did you mean "{_MISSPELT[found[1]]}"?' if found[1] in _MISSPELT else None


def _global(found: re.Match[str], context: ErrorContext) -> str | None:
    own = KIND_METHODS if context.is_kind else SCRIPT_METHODS
    return f"did you mean ctx:{found[1]}(…)?" if found[1] in own else None


def _id(found: re.Match[str], _: ErrorContext) -> str | None:
    named = CTX_METHODS[found[1]].names if found[1] in CTX_METHODS else None
    return f"pass its id: {named}.id" if named in ("device", "room", "group") else None


def _unset(_: re.Match[str], context: ErrorContext) -> str | None:
    is_variable = "ctx:get(" in context.line + context.previous
    return 'a variable that is not set is nil; to get 0 instead, use ctx:get("name", 0)' if is_variable else None


def _method(found: re.Match[str], context: ErrorContext) -> str | None:
    name, own, others = found[1], SCRIPT_METHODS, KIND_METHODS
    owners = "the Lua file of an adapter kind, not in scenes and automations"
    if context.is_kind:
        own, others, owners = others, own, "scenes and automations, not in the Lua file of an adapter kind"
    if f"ctx:{name}" not in context.line:
        return None
    if name in others:
        return f"ctx:{name} is available only in {owners}"
    near = nearest(name, own, 0.5)
    return None if near is None else f"did you mean ctx:{near}?"


def _attribute(found: re.Match[str], context: ErrorContext) -> str | None:
    if found[1] not in CAPABILITIES:
        near = nearest(found[1], CAPABILITIES) if f"attributes.{found[1]}" in context.line else None
        return None if near is None else f"did you mean {near}?"
    return f"this device may have no {found[1]}; test the value with `if` first"


def _compared(_: re.Match[str], context: ErrorContext) -> str | None:
    names = [word for word in re.findall(r"\w+", context.line) if word in CAPABILITIES]
    return f"{names[0]} may be nil; test the value with `if` first" if names else None


def _absent(_: re.Match[str], context: ErrorContext) -> str | None:
    absent = context.absent
    return f"{absent} was not found, so ctx returned nil; test the value with `if` first" if absent else None


def _capability(found: re.Match[str], _: ErrorContext) -> str | None:
    near = nearest(found[1].lower(), CAPABILITIES)
    return None if near is None else f"did you mean {near}?"


def _action(found: re.Match[str], _: ErrorContext) -> str | None:
    actions = found["actions"].split(", ")
    near = nearest(found["action"].lower(), actions)
    if near is None and found["action"] == "set":
        near = actions[0]
    return None if near is None else f'did you mean action = "{near}"?'


def _unit(found: re.Match[str], _: ErrorContext) -> str:
    near = "kelvin" if found[1] in ("K", "k") else nearest(found[1].lower(), ("kelvin", "mireds"))
    return f'write unit = "{near}"' if near else 'warm light is { value = 2900, unit = "kelvin" }'


def _other_unit(found: re.Match[str], _: ErrorContext) -> str | None:
    low, value = int(found["low"]), int(found["value"])
    other, unit = (KELVIN_RANGE, "kelvin") if low == MIRED_RANGE[0] else (MIRED_RANGE, "mireds")
    return f'{value} is a number of {unit}; write unit = "{unit}"' if other[0] <= value <= other[1] else None


def _no_unit(found: re.Match[str], _: ErrorContext) -> str:
    unit = "mireds" if MIRED_RANGE[0] <= float(found[1]) <= MIRED_RANGE[1] else "kelvin"
    return f'write value = {{ value = {found[1]}, unit = "{unit}" }}'


def _no_word(found: re.Match[str], context: ErrorContext) -> str | None:
    table = context.line.partition("{")[2]
    stated = re.search(rf"\b{found[1]}\s*=\s*(\w+)(\s*[.:\[(])?", table)
    if stated is None:
        names = re.findall(r"(\w+)\s*=(?!=)", table)
        if found[1] in names:  # for example, in a metatable
            return None
        near = nearest(found[1], names, 0.75)
        return f"write {found[1]} instead of {near}" if near else f'add {found[1]} = "…"'
    if found[1] == "action" and stated[1] in _SWITCHED:
        return f'write action = "{_SWITCHED[stated[1]]}"'
    is_name = stated[1].isidentifier() and stated[1] not in KEYWORDS
    return f'write text in quotes: {found[1]} = "{stated[1]}"' if is_name and not stated[2] else None


def _module_name(found: re.Match[str], _: ErrorContext) -> str | None:
    words = re.sub(r"^(\.{0,2}/)*((config[/.])?scripts[/.])?|\.lua$", "", found[1]).strip("./\\")
    name = re.sub(r"[/\\]+", ".", words)
    return f'write require("{name}"): use dots for folders, and omit .lua' if re.fullmatch(r"[\w.-]+", name) else None


_SWITCHED = {"true": "on", "false": "off"}

_MISSPELT = {
    **{
        f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}": word
        for word in KEYWORDS
        for at in range(len(word) - 1)
        if len(word) > 2
    },
    **{word[:at] + word[at + 1 :]: word for word in KEYWORDS if len(word) >= 6 for at in range(len(word))},
    "elif": "elseif",
    "func": "function",
}
"""The correct keyword for each wrong word, such as a misspelt keyword or a keyword of another language."""

_OPENING = frozenset({"function", "if", "do"})
"""The keywords that begin a block with its own `end`."""

_RESERVED = rf"(?:^|[{{,;\s])({'|'.join(sorted(KEYWORDS))})\s*=(?!=)"
_NO_RETURN = 'a script without return gives true; end the script with "return { … }"'
_IN_QUOTES = "a number in quotes is text; remove the quotes, or use tonumber(…)"


def _foreign_character(_: re.Match[str], context: ErrorContext) -> str | None:
    """Return a hint about the first invalid character outside of texts and comments."""
    for token in tokens_of(context.text):
        if token.kind == "symbol" and (token.word > "~" or token.word < " "):
            name = unicodedata.name(token.word, "a control character")
            position = f"line {token.line}, column {token.column + 1}"
            return f"{position}: U+{ord(token.word):04X} {name}; replace it with a plain character or a space"
    return None


def _changed_in_place(_: re.Match[str], context: ErrorContext) -> str | None:
    found = re.search(r"(\w+)\s*([-+*/])(?:=|\2)", context.line)
    return found and f"write {found[1]} = {found[1]} {found[2]} …"


def _without_return(_: re.Match[str], context: ErrorContext) -> str | None:
    return 'begin the file with "return {"' if context.text.lstrip().startswith(b"{") else None


_HINTS: tuple[tuple[str, str | Callable[[re.Match[str], ErrorContext], str | None]], ...] = (
    (r" near '<\\\d+>'", _foreign_character),
    (r" near |<eof>", _reserved),
    (r" near |<eof>", _misspelt),
    (r" near '!'", "write ~= instead of !=, and `not x` instead of !x"),
    (r"'then' expected near '='", "write == to compare"),
    (r"unexpected symbol near '[&|]'", "write and, or"),
    (r"unexpected symbol near '(?:#|/|//)'", "a comment begins with --"),
    (r"(?:syntax error|unexpected symbol) near '[-+*/]'", _changed_in_place),
    (r"<name> expected near '[\"'\d]", "write a field with =, not with a colon: name = value"),
    (r"unexpected symbol near '{'", _without_return),
    (r"'}' expected .* near '\w+'", "is there a comma at the end of the line before?"),
    (r"unexpected symbol near '[,}]'", _unclosed),
    (
        r"\Aunfinished string near '([\"'])",
        lambda found, _: f"the text needs a {found[1]} at its end, on the same line",
    ),
    (r"\AC stack overflow\Z", "the code is nested too deeply: move parts of it to local functions or variables"),
    (r"\Amust return a table, not nothing", 'does the file end with "return { … }"?'),
    (r"\Aattempt to (?:index|call) a boolean value", lambda _, context: _NO_RETURN if context.has_scripts else None),
    (
        r"\Aattempt to index a nil value \(\w+ 'ctx'\)",
        "ctx is the first parameter of `execute` and of each function of a kind, as in execute = function(ctx) … end",
    ),
    (
        r"\Aattempt to index a nil value \(\w+ 'event'\)",
        "event is the second parameter of an automation's `execute`, as in execute = function(ctx, event) … end",
    ),
    (r"\Aattempt to call a nil value \(global '(\w+)'\)", _keyword),
    (r"\Aattempt to call a nil value \(global '(\w+)'\)", _global),
    (
        r"\Aattempt to call a table value \(for iterator",
        "loop over a list like this: for _, each in ipairs(list) do … end",
    ),
    (
        r"\Aattempt to (?:compare (?:number with table|table with n)|(?:perform arithmetic on|concatenate) a table)",
        "a value with a unit is { value = 21.5, unit = … }: take its .value",
    ),
    (r"\Aattempt to perform arithmetic on a nil value(?! \(field)", _unset),
    (r"\Aattempt to call a nil value \(method '(\w+)'\)", _method),
    (r"\Aattempt to .* a nil value \(field '(\w+)'\)", _attribute),
    (r"\Aattempt to compare (?:nil with|\w+ with nil)", _compared),
    (r"\Aattempt to index a nil value(?! \(global)", _absent),
    (r"\Aunknown capability '(.*)'", _capability),
    (r"\A\w+ has no action '(?P<action>.*)'; its actions are: (?P<actions>.*)", _action),
    (r"unit must be kelvin or mireds, not '(.*)'", _unit),
    (r"color_temperature: value must be an integer from (?P<low>\d+) to \d+, not (?P<value>\d+)\Z", _other_unit),
    (r"color_temperature: must be an object with value, unit, not (\d+(?:\.\d+)?)\Z", _no_unit),
    (r"\A(capability|action) must be a non-empty string", _no_word),
    (r"\A\w+: the action '(?:set|increase|decrease)' needs a value\Z", "add value = … to the command"),
    (
        r"(?:number|integer|seconds|minutes)\b.*, not '(-?\d+(?:\.\d+)?)'",
        lambda found, _: f"write the number without quotes: {found[1]}",
    ),
    (r"\Abad argument .*\(number expected, got string\)\Z", _IN_QUOTES),
    (r"\Abad argument #1 to ctx:(\w+) \(string expected, got table\)\Z", _id),
    (
        r"\Abad argument #2 to ctx:command\w* \(table expected",
        'a command is a table: { capability = "power", action = "on" }',
    ),
    (r"\Aattempt to compare (?:number with string|string with number)", _IN_QUOTES),
    (r"\Arequire '(.*)': a module name consists", _module_name),
    (r"\Amodule '(.*\.lua|(?:config\.)?scripts\..*)' not found", _module_name),
)
"""Patterns of error messages with their hints. The first pattern with a hint wins."""
