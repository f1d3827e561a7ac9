"""Checks for external values. A check returns the value in the expected type, or raises `Invalid`. Callers put the
name of the value before the error message: `port must be a string, not 7`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from appliance.errors import Invalid
from appliance.shortening import shorten
from appliance.tables.json_schema import NUMBER, TEXT, Check, array_of, between
from appliance.tables.json_schema import one_of as words_of

MAX_NEAREST_CHARS = 100
"""Maximum length of a word in the search for similar words. The time of a comparison grows with the square of the
length."""

MAX_COMPARED = 50
"""Maximum number of words that a search for similar words compares letter by letter."""

MAX_SHOWN_CHARS = 60
"""Maximum number of characters of a value in a message."""


class Words(Struct, frozen=True):
    """The names of value types in a language such as JSON or Lua."""

    table: str
    array: str
    nothing: str


JSON = Words("an object", "an array", "null")
LUA = Words("a table", "a list", "nil")
TOML = Words("a section", "an array", "nothing")


class Mismatch(Invalid):
    """Raised if a value has the wrong type. `str()` uses the type names of JSON; `in_words` uses the type names of
    another language."""

    def __init__(self, expected: str, value: Any, hint: str = "") -> None:
        self._expected, self._value, self._hint = expected, value, hint
        super().__init__(self.in_words(JSON))

    @property
    def without_value(self) -> str:
        return f"must be {self._expected}"

    def in_words(self, words: Words) -> str:
        """Return the message with the type names of a language, such as `must be a string, not a table`."""
        return f"must be {self._expected}, not {format_value(self._value, words)}{self._hint}"


SHOWN_DIGITS = 12
"""Significant digits of a displayed number. Any further digits come from the binary representation."""


def rounded(value: Any) -> Any:
    """Round all numbers in a JSON value for display: 0.30000000000000004 becomes 0.3."""
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{SHOWN_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


def format_value(value: Any, words: Words = JSON) -> str:
    """Format the value for a message, on one line with at most `MAX_SHOWN_CHARS` characters. Hide the user, password,
    and query of a URL."""
    if value is None:
        return words.nothing
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, Mapping):
        return words.table
    if isinstance(value, list | tuple):
        return words.array
    text = repr(_hide_secrets_of_url(value)) if isinstance(value, str) else str(rounded(value))
    return shorten(text, MAX_SHOWN_CHARS)


def _hide_secrets_of_url(text: str) -> str:
    scheme, separator, rest = text.partition("://")
    if not separator:
        return text
    user, at, address = rest.rpartition("@")
    address, mark, query = address.partition("?")
    return f"{scheme}{separator}{'…' if user else ''}{at}{address}{mark}{'…' if query else ''}"


_HEX_DIGITS = re.compile(r"[0-9a-fA-F]{6,}")


def nearest(word: str, words: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the most similar word, or None if no word is similar enough. `likeness` is the lowest accepted
    similarity; 1 means equal.

    Words with different sequences of hexadecimal digits are never similar, because devices whose ids differ in a
    digit are unrelated.
    """
    if len(word) > MAX_NEAREST_CHARS:
        return None
    from difflib import SequenceMatcher  # import at the first use, because only faults need this module

    letters, given = Counter(word), _digits_in(word)
    compared, found = SequenceMatcher(b=word), (likeness, "")
    # a search compares thousands of words, so first compare their lengths
    alike = (each for each in words if 2 * min(len(word), len(each)) / (len(word) + len(each) or 1) >= likeness)
    limited = ((_greatest_likeness(letters, len(word), each), each) for each in alike)
    likely = sorted((each for each in limited if each[0] >= likeness), reverse=True)
    for greatest, each in islice((each for each in likely if _digits_in(each[1]) <= given), MAX_COMPARED):
        if greatest < found[0]:
            break
        compared.set_seq1(each)
        found = max(found, (compared.ratio(), each))
    return found[1] or None


def suggest(near: str | None, otherwise: str = "") -> str:
    """Return the end of an error message: a question about the nearest known word. If there is no such word, return
    `otherwise`, if given."""
    hint = f"did you mean {near}?" if near else otherwise
    return f"; {hint}" if hint else ""


def _greatest_likeness(letters: Mapping[str, int], length: int, other: str) -> float:
    """Return an upper limit of the similarity of two words, given the letters and length of the first word."""
    both = length + len(other)
    # `map` needs 15 % less time than a generator; a file can have 50 unknown names in a home with thousands of names
    return 2 * sum(map(min, letters.values(), map(other.count, letters))) / (both or 1)


def _digits_in(word: str) -> set[str]:
    """Return the sequences of hexadecimal digits in the word, as in serial numbers and addresses."""
    return {run for run in _HEX_DIGITS.findall(word) if not run.isalpha()}


def string(value: Any) -> str:
    if not isinstance(value, str):
        raise Mismatch("a string", value)
    return value


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Mismatch("true or false", value)
    return value


def is_number(value: Any) -> bool:
    """Return whether the value is a finite float or an integer of at most 64 bits. Booleans are not numbers."""
    if isinstance(value, int):
        return not isinstance(value, bool) and -(1 << 63) <= value < 1 << 64
    return isinstance(value, float) and math.isfinite(value)


def number(value: Any) -> int | float:
    if not is_number(value):
        raise Mismatch("a number", value)
    return value  # type: ignore[no-any-return]


def integer(value: Any, low: int | None = None, high: int | None = None) -> int:
    """Check an integer from `low` to `high`. `50.0` becomes `50`."""
    if type(value) is int and low is not None and high is not None and low <= value <= high:
        return value
    is_whole = is_number(value) and (isinstance(value, int) or (value.is_integer() and is_number(int(value))))
    if not is_whole or (low is not None and value < low) or (high is not None and value > high):
        raise Mismatch("an integer" if low is None else f"an integer from {low} to {high}", value)
    return int(value)


def whole(low: int, high: int) -> Callable[[Any], int]:
    """Return a check for a whole number from `low` to `high`, written without a decimal point."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Mismatch(f"a whole number from {low} to {high}", value)
        return value

    return Check(schema=between(low, high), run=check)


def number_within(low: float, high: float) -> Callable[[Any], float]:

    def check(value: Any) -> float:
        if not is_number(value) or not low <= value <= high:
            raise Mismatch(f"a number from {low} to {high}", value)
        return float(value)

    return Check(schema=between(low, high, NUMBER), run=check)


def matching(pattern: str, expected: str) -> Callable[[Any], str]:
    """Return a check for a string that completely matches the regular expression."""

    def check(value: Any) -> str:
        if re.fullmatch(pattern, string(value)) is None:
            raise Mismatch(expected, value)
        return string(value)

    return Check(schema={**TEXT, "description": expected}, run=check)


def listed(each: Callable[[Any], Any], most: int | None = None) -> Callable[[Any], tuple[Any, ...]]:
    """Return a check for an array of at most `most` items that all pass the given check."""

    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Mismatch("an array", value)
        if most is not None and len(value) > most:
            raise Invalid(f"must have at most {most} items, not {len(value)}")
        return tuple(each(item) for item in value)

    return Check(schema=array_of(getattr(each, "schema", TEXT)), run=check)


def one_of(*words: str, meant: Mapping[str, str] = MappingProxyType({})) -> Callable[[Any], str]:
    """Return a check that accepts only these strings. For any other string, the error suggests its entry in `meant`,
    or the most similar string."""

    def check(value: Any) -> str:
        if isinstance(value, str) and value in words:
            return value
        near = (meant.get(value) or nearest(value, words)) if isinstance(value, str) else None
        raise Mismatch(f"one of {', '.join(words)}", value, suggest(near))

    return Check(schema=words_of(*words), run=check)


class Function(Struct, frozen=True):
    """A Lua function in a file's description. `line` is the function's first line."""

    line: int

    def __str__(self) -> str:
        return "a function"


def function(value: Any) -> Function:
    if not isinstance(value, Function):
        raise Mismatch("a function", value)
    return value
