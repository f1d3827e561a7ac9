"""Explains syntax errors in TOML, and suggests a remedy."""

from __future__ import annotations

import re
from collections.abc import Callable

from appliance.tables.secret_names import contains_secret_name
from appliance.tables.toml_lines import ASSIGNMENT, DOTTED_KEY, scan_lines

_CURLY_QUOTES = "“”„‟‘’‚‛«»″′`"

_NUMBER = r"[+-]?[0-9]+"
_PLAIN = re.compile(r"[^\"'\[{][^#]*")
_BOOLEANS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}
_NOTHING = frozenset({"", "null", "none", "nil", "~"})


def explain(text: str, message: str, number: int) -> str:
    """Describe the error in line `number`, and how to correct it. `message` is the parser's message."""
    lines = text.split("\n")
    line = lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""
    if (quote := next((each for each in line.partition("#")[0] if each in _CURLY_QUOTES), None)) is not None:
        return f'the line contains the quote {quote}; use plain quotes: "…"'
    for begin, hint in _HINTS.items():
        if message.startswith(begin) and (found := hint(lines, number, line)):
            return found
    return message


def _stated_twice(lines: list[str], number: int, line: str) -> str:
    """Describe a duplicate section or key, with the line of its first occurrence."""
    found = [*scan_lines("\n".join(lines[:number]))]
    if not found or found[-1].number != number:
        return ""
    *earlier, last = found
    name, is_header = ".".join(last.key), last.value is None
    same = [each.number for each in earlier if each.path == last.path and (each.value is None) is is_header]
    if is_header and same:
        return f"section [{name}] already exists on line {same[0]}; merge the two"
    if is_header:
        return f"[{name}] already exists above as a key; keep one of the two"
    place = f"on line {same[0]}" if same else "above"
    return f"{name} already exists {place}; remove one of the two"


def _bad_value(lines: list[str], number: int, line: str) -> str:
    stated = ASSIGNMENT.match(line)
    if stated is None:
        return "write a value, or close the list with ]"
    name, value = stated[1], stated[2].partition(" #")[0].strip()
    if value.casefold() in _NOTHING:
        return f"the value of {name} is missing; remove the line, or write {name} = …"
    if (word := _BOOLEANS.get(value.casefold())) is not None:
        return f"write {name} = {word}"
    if re.fullmatch(rf"{_NUMBER}(\.[0-9]+)?", value) or not _PLAIN.fullmatch(value):
        return "a list above is not closed; close it with ]"
    return _needs_quotes(name, value)


def _needs_quotes(name: str, value: str) -> str:
    return f'the text needs quotes: {name} = "{_hidden(name, value)}"'


def _hidden(name: str, value: str) -> str:
    return "…" if contains_secret_name(name) else value


def _unclosed_text(lines: list[str], number: int, line: str) -> str:
    return "the closing quote is missing; use the same quote as at the beginning"


def _no_equals(lines: list[str], number: int, line: str) -> str:
    key, colon, value = line.partition(":")
    if colon and re.fullmatch(rf"\s*{DOTTED_KEY}\s*", key):
        return f"write = instead of the colon: {key.strip()} = {_hidden(key, value.strip()) or '…'}"
    if line.lstrip().startswith("- "):
        return "write a list in brackets: name = [1, 2]"
    return "write a key as name = value; a name has only letters, digits, _ and -"


def _bad_statement(lines: list[str], number: int, line: str) -> str:
    if line.lstrip().startswith(("//", ";", "--", "/*")):
        return "a comment begins with #"
    return "write a key as name = value, or a section as [name]"


def _bad_end(lines: list[str], number: int, line: str) -> str:
    if line.lstrip().startswith("["):
        return "write a section as [name], alone on its line"
    stated = ASSIGNMENT.match(line)
    value = "" if stated is None else stated[2]
    if "=" in value:
        return "write one key per line"
    if re.match(rf"{_NUMBER},[0-9]+\s*(#.*)?\Z", value):
        return f"write a number with a point: {value.partition('#')[0].strip().replace(',', '.')}"
    if re.match(r"0[0-9]", value):
        return "a number cannot begin with 0; remove the 0, or put the value in quotes"
    if re.match(rf"{_NUMBER}[^\s#,]", value) or re.match(rf"{_NUMBER}(\.[0-9]+)?\s+[^\s#]", value):
        return _needs_quotes("name" if stated is None else stated[1], value.partition(" #")[0].strip())
    return "there is text after the value; write one key per line, and # before a comment"


_Hint = Callable[[list[str], int, str], str]

_HINTS: dict[str, _Hint] = {
    "Cannot declare": _stated_twice,
    "Cannot overwrite": _stated_twice,
    "Cannot mutate": _stated_twice,
    "Invalid value": _bad_value,
    "Illegal character '\\n'": _unclosed_text,
    "Expected '\"'": _unclosed_text,
    'Expected "\'"': _unclosed_text,
    "Unterminated string": _unclosed_text,
    "Expected '=' after a key": _no_equals,
    "Invalid initial character for a key": _bad_statement,
    "Invalid statement": _bad_statement,
    "Expected newline or end of document": _bad_end,
    "Expected ']'": lambda *_: "close the section with ]",
    "Unclosed array": lambda *_: "the list is not closed; write ] at its end, and a comma between its values",
    "Unclosed inline table": lambda *_: "the table is not closed; write it on one line, with } at its end",
    "Unescaped '": lambda *_: "write each backslash twice, or put the text in single quotes",
}
"""Hints on how to correct an error, by the beginning of the parser's message."""
