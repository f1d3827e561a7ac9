"""Parses message texts: known values first, then an empty text, then texts for an unknown value."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from appliance.errors import Invalid
from appliance.home.values import Value
from appliance.tables.checks import is_number

Update = Mapping[str, Value]
"""New values by attribute. None means that the value is unknown."""

UNKNOWN = ("none", "unknown", "unavailable", "nan", "inf", "-inf", "infinity", "-infinity")
"""Texts for an unknown value, in lower case. Comparisons ignore case."""

MAX_LISTED_WORDS = 8
"""Maximum number of words that an error message lists."""


class UnknownValue(Invalid):
    """A message contained an unknown text for an attribute. `update` holds the values that the message changes.
    Without `update`, the attribute becomes unknown."""

    def __init__(self, text: str, expected: str, attribute: str, update: Update | None = None) -> None:
        end = "; the value is unknown now" if update is None else ""
        super().__init__(f"{text[:40]!r} is not {expected}{end}")
        self.text = text[:40]
        self.attribute = attribute
        self.update: Update = {attribute: None} if update is None else update


def is_unknown(text: str) -> bool:
    return text.lower() in UNKNOWN


def one_of(words: Iterable[str]) -> str:
    """Return the expected words for `UnknownValue`."""
    listed = [repr(each[:40]) for each in words if not is_unknown(each)]
    more = ["…"] if len(listed) > MAX_LISTED_WORDS else []
    return f"one of {', '.join(listed[:MAX_LISTED_WORDS] + more)}"


def read_word(
    text: str, words: Mapping[str, Value], key: str, *, ignored: Container[str] = (), keeps: bool = True
) -> Update:
    """Return the value of a word. An empty text and the ignored words change nothing.

    Raise `UnknownValue` for other texts. The attribute then keeps its value if `keeps` is true, and otherwise becomes
    unknown.
    """
    if text in words:
        return {key: words[text]}
    if text == "" or text in ignored:
        return {}
    if is_unknown(text):
        return {key: None}
    raise UnknownValue(text, one_of(words), key, {} if keeps else None)


def read_number(
    text: str, key: str, convert: Callable[[float], Value] | None = None, *, keeps: bool = False
) -> Update:
    """Return the number, converted by `convert`. An empty text changes nothing.

    Raise `UnknownValue` for other texts. The attribute then becomes unknown. With `keeps`, the attribute keeps its
    value, even if the text means an unknown value.
    """
    if is_unknown(text):
        return {} if keeps else {key: None}
    if text == "":
        return {}
    value = parse_number(text, key, keeps=keeps)
    return {key: value if convert is None else convert(value)}


def number_parser(
    key: str, convert: Callable[[float], Value] | None = None, *, keeps: bool = False
) -> Callable[[object, str], Update]:
    return lambda _, text: read_number(text, key, convert, keeps=keeps)


def parse_number(text: str, attribute: str = "", *, keeps: bool = False) -> int | float:
    """Parse a number. Return an integer if the text is an integer.

    Raise `UnknownValue` for other texts. `attribute` then becomes unknown, or keeps its value with `keeps`.
    """
    try:
        value = math.nan if "_" in text else float(text)  # Python accepts 1_000
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) > 1e18:
        raise UnknownValue(text, "a number", attribute, {} if keeps else None)
    return int(text) if text.strip().lstrip("+-").isdigit() else value


def stated_number(value: Any) -> int | float | None:
    """Return a JSON number, or the number in a text, because some devices send numbers as text. Return None for other
    values."""
    if not isinstance(value, str):
        return value if is_number(value) else None
    try:
        return parse_number(value)
    except Invalid:
        return None
