"""Parses the fields of recipes, and checks the values of the fields. Users fill in the fields on a form.

A comment before a `local` declares its field: `--- @field sensor device motion|occupancy: the motion sensor`.
A comment such as `--- @rule off_below < on_above: the reason` rejects values that contradict each other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

from msgspec import Struct

from appliance.adapters.lua_kinds.settings import duration
from appliance.errors import Invalid
from appliance.home.texts import identifier
from appliance.home.texts import text as text_check
from appliance.lua.text.tokens import LuaToken
from appliance.tables.checks import format_value, is_number, nearest, suggest

MAX_TEXT_CHARS = 1000
MAX_LISTED_VALUES = 100

MAX_RECIPE_FIELDS = 100
"""Maximum number of fields of a recipe, because the search for each field's value reads the whole file."""

_FIELD = re.compile(r"---\s?@field\s+(\w+)\s+(\w+)(?:\s+([^:]+?))?\s*:\s*(\S.*?)\s*\Z")
_RULE = re.compile(r"---\s?@rule\s+(\w+)\s+(<|~=)\s+(\w+)\s*:\s*(\S.*?)\s*\Z")
_LOCAL = re.compile(r"local\s+(\w+)\s*=")
_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)(?:\s+\S+)?\Z")
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")

OF_HOME = ("device", "room", "group")
"""Types of fields that refer to devices, rooms, or groups. The default of a field with such a type is only an
example, so the form must ask for a value."""

ORDERED = ("number", "duration", "time")
"""Types of fields that a rule can compare with `<`."""


class RecipeField(Struct, frozen=True, kw_only=True):
    """A field of a recipe. `of` is the rest of the declaration: the attributes of a device, the range of a number,
    or the words of a choice."""

    name: str
    type: str
    of: str | None
    label: str
    default: Any
    start: int
    end: int

    @property
    def is_needed(self) -> bool:
        """Return whether a form must fill in the field."""
        return self.type in OF_HOME and self.default != []


class RecipeRule(Struct, frozen=True, kw_only=True):
    """A comparison of two fields that must hold: `<` or `~=`. `reason` is a sentence for people."""

    left: str
    operator: str
    right: str
    reason: str

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise `Invalid` if the values of the two fields contradict the rule."""
        left, right = values[self.left], values[self.right]
        if not (left < right if self.operator == "<" else left != right):
            relation = "be less than" if self.operator == "<" else "differ from"
            raise Invalid(f"values.{self.left} must {relation} values.{self.right}: {self.reason}")


class FieldFault(Invalid):
    """A recipe's field is invalid. `line` is the field's line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def line_starts(text: str) -> list[int]:
    """Return the offset of each line in the text."""
    return [*accumulate((len(line) + 1 for line in text.split("\n")), initial=0)]


def read_fields(text: str, tokens: Sequence[LuaToken]) -> list[RecipeField]:
    lines, starts = text.split("\n"), line_starts(text)
    fields: list[RecipeField] = []
    for number, comment in _find_comments("field", lines, tokens):
        if len(fields) == MAX_RECIPE_FIELDS:
            raise FieldFault(number, f"a recipe can have at most {MAX_RECIPE_FIELDS} fields; remove some")
        found = _FIELD.match(comment)
        if found is None:
            raise FieldFault(number, "write the field as `--- @field name type [of]: label`")
        name, kind, of, label = found.groups()
        at = next((each for each in range(number, len(lines)) if not lines[each].lstrip().startswith("--")), None)
        local = None if at is None else _LOCAL.match(lines[at].strip())
        if at is None or local is None or local[1] != name:
            raise FieldFault(number, f"`local {name} = …` must follow this line")
        if kind not in _CHECKS:
            near = nearest(kind, _CHECKS)
            hint = suggest(near, f"use one of {', '.join(_CHECKS)}")
            raise FieldFault(number, f"{kind} is not a type of field{hint}")
        default, start, end = _read_literal(tokens, at + 1, starts)
        field = RecipeField(
            name=name, type=kind, of=of and of.strip(), label=label, default=default, start=start, end=end
        )
        try:
            _CHECKS[kind](field, default)
        except Invalid as fault:
            raise FieldFault(at + 1, f"{name} {fault}") from None
        fields.append(field)
    return fields


def read_rules(text: str, tokens: Sequence[LuaToken], fields: Sequence[RecipeField]) -> list[RecipeRule]:
    """Return the recipe's rules. Raise `FieldFault` for a malformed rule, and if the samples contradict a rule."""
    known = {field.name: field for field in fields}
    rules: list[RecipeRule] = []
    for number, comment in _find_comments("rule", text.split("\n"), tokens):
        found = _RULE.match(comment)
        if found is None:
            raise FieldFault(number, "write the rule as `--- @rule field < field: reason`, or with ~=")
        left, operator, right, reason = found.groups()
        for name in (left, right):
            if name not in known:
                raise FieldFault(number, f"{name} is not a field{suggest(nearest(name, known))}")
        if known[left].type != known[right].type:
            raise FieldFault(number, f"{left} and {right} have different types")
        if operator == "<" and known[left].type not in ORDERED:
            raise FieldFault(number, f"`<` compares only fields of the types {', '.join(ORDERED)}")
        rules.append(RecipeRule(left=left, operator=operator, right=right, reason=reason))
        try:
            rules[-1].check(
                {name: _CHECKS[known[name].type](known[name], known[name].default) for name in (left, right)}
            )
        except Invalid as fault:
            raise FieldFault(number, str(fault)) from None
    return rules


def _find_comments(word: str, lines: Sequence[str], tokens: Sequence[LuaToken]) -> Iterator[tuple[int, str]]:
    """Yield the numbers and texts of the comment lines that begin with `--- @word`."""
    code_lines = {token.line for token in tokens}  # a comment line contains no token
    for number, line in enumerate(lines, 1):
        if re.match(rf"\s*---\s?@{word}\b", line) is not None and number not in code_lines:
            yield number, line.strip()


def _read_literal(tokens: Sequence[LuaToken], line: int, starts: Sequence[int]) -> tuple[Any, int, int]:
    """Return the literal after `local name =` on this line, and the literal's position in the text."""
    found = [n for n, token in enumerate(tokens) if token.line == line and token.word == "="]
    index = found[0] + 1 if found else len(tokens)

    def place(token: LuaToken) -> int:
        return starts[token.line - 1] + token.column

    if index >= len(tokens):
        raise FieldFault(line, "has no value")
    first = tokens[index]
    if first.word == "-":
        last = tokens[min(index + 1, len(tokens) - 1)]
        return -_number(last, line), place(first), place(last) + len(last.word)
    if first.word != "{":
        return _plain(first, line), place(first), place(first) + len(first.word)
    items, index = [], index + 1
    while index < len(tokens) and tokens[index].word != "}":
        if tokens[index].word != ",":
            items.append(_plain(tokens[index], line))
        index += 1
    if index == len(tokens):
        raise FieldFault(line, "the list of the field is not closed; end it with }")
    return items, place(first), place(tokens[index]) + 1


def _plain(token: LuaToken, line: int) -> Any:
    if token.kind == "text" and token.word[0] in "\"'" and "\\" not in token.word:
        return token.word[1:-1]
    return _number(token, line)


def _number(token: LuaToken, line: int) -> int | float:
    """Return a decimal number. Raise `FieldFault` for any other token, such as a hexadecimal number."""
    for convert in (int, float):
        with suppress(ValueError):
            if token.kind == "number":
                return convert(token.word)
    raise FieldFault(line, "must be a text, a decimal number, or a list of texts")


def value_of(field: RecipeField, values: Mapping[str, Any]) -> Any:
    value = values.get(field.name)
    if value is None and field.is_needed:
        raise Invalid(f"values.{field.name} is missing ({field.label})")
    try:
        return _CHECKS[field.type](field, field.default if value is None else value)
    except Invalid as fault:
        raise Invalid(f"values.{field.name} {fault}") from None


def _check_ids(field: RecipeField, value: Any) -> Any:
    if isinstance(field.default, list):
        values = [value] if isinstance(value, str) else value
        if field.default and values == []:
            raise Invalid(f"must be a list with at least one id of a {field.type} ({field.label})")
        if not isinstance(values, list) or len(values) > MAX_LISTED_VALUES:
            raise Invalid(f"must be a list of ids of {field.type}s, not {format_value(value)}")
        return [identifier(each) for each in values]
    return identifier(value)


def _check_number(field: RecipeField, value: Any) -> Any:
    bounds = _RANGE.match(field.of or "")
    if bounds is None:
        raise Invalid("needs a range, `number 1..100 %`")
    low, high = float(bounds[1]), float(bounds[2])
    if not is_number(value) or not math.isfinite(value) or not low <= value <= high:
        raise Invalid(f"must be a number from {bounds[1]} to {bounds[2]}, not {format_value(value)}")
    return int(value) if float(value).is_integer() else value


def _check_duration(_: RecipeField, value: Any) -> Any:
    seconds = duration(value)
    return int(seconds) if seconds.is_integer() else seconds


def _check_time(_: RecipeField, value: Any) -> str:
    if not isinstance(value, str) or _TIME.fullmatch(value) is None:
        raise Invalid(f'must be a time like "07:30", not {format_value(value)}')
    return value


def _check_text(_: RecipeField, value: Any) -> str:
    return str(text_check(MAX_TEXT_CHARS)(value))


def _check_choice(field: RecipeField, value: Any) -> str:
    words = [each.strip() for each in (field.of or "").split("|")]
    if value not in words:
        raise Invalid(f"must be {' or '.join(words)}, not {format_value(value)}")
    return str(value)


_CHECKS: Mapping[str, Callable[[RecipeField, Any], Any]] = {
    **dict.fromkeys(OF_HOME, _check_ids),
    "number": _check_number,
    "duration": _check_duration,
    "time": _check_time,
    "text": _check_text,
    "choice": _check_choice,
}
