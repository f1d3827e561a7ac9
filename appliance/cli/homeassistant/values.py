"""Converts values of YAML files and registries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from unicodedata import combining, normalize

from appliance.cli.homeassistant.yaml_parser import Tagged
from appliance.home.texts import clean_text
from appliance.shortening import shorten

MAX_TITLE_CHARS = 200
MAX_QUOTED_CHARS = 60

_LETTERS = str.maketrans(
    {"ø": "o", "æ": "ae", "œ": "oe", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i", "ħ": "h"}
)
"""Letters that Unicode does not decompose into a letter and an accent."""


def number(word: Any) -> Any:
    """Convert a numeric text to a number. Return other values unchanged."""
    if not isinstance(word, str):
        return word
    try:
        value = float(word)
    except ValueError:
        return word
    return int(value) if value.is_integer() else value


def as_list(value: Any) -> list[Any]:
    """Convert a single or missing value to a list."""
    return [] if value is None else list(value) if isinstance(value, list) else [value]


def as_mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def word_of(state: Any) -> Any:
    """Return the state of an entity. YAML reads the words on and off as booleans."""
    return ("on" if state else "off") if isinstance(state, bool) else state


def readable(value: Any) -> str:
    """Return a list or mapping as JSON, and any other value as text."""
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False, skipkeys=True, default=str)
    return str(value)


def shown(value: Any) -> str:
    """Return a value of the configuration for a message, shortened."""
    return shorten(readable(value), MAX_QUOTED_CHARS)


def as_text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def words(value: Any) -> list[str]:
    """Split a list or a comma-separated text (for example, of entity ids)."""
    found = [each for row in as_list(value) for each in (row.split(",") if isinstance(row, str) else [row])]
    return [str(each).strip() for each in found if str(each).strip()]


def mentions(value: Any, part: str) -> bool:
    """Return whether a key or text in the value contains the part."""
    if isinstance(value, str):
        return part in value
    if isinstance(value, Mapping):
        return any(part in str(key) or mentions(each, part) for key, each in value.items())
    if isinstance(value, Tagged):
        return mentions(value.value, part)
    return isinstance(value, list) and any(mentions(each, part) for each in value)


def is_template(value: Any) -> bool:
    return isinstance(value, str) and contains_template(value)


def contains_template(value: Any) -> bool:
    return mentions(value, "{{") or mentions(value, "{%")


def title_of(*texts: Any) -> str:
    """Return the first text that can become a valid name in Lares, in the form of this name."""
    names = (clean_text(readable(each or ""), MAX_TITLE_CHARS) for each in texts)
    return next(filter(None, names), "")


def object_id(name: str) -> str:
    """Return the object id that Home Assistant creates for a name."""
    letters = normalize("NFKD", name.casefold().translate(_LETTERS))  # Home Assistant writes u for ü, and ss for ß
    plain = (char if char.isalnum() and char.isascii() else " " for char in letters if not combining(char))
    return "_".join("".join(plain).split())
