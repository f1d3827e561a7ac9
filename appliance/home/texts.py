"""Checks of ids and names, the same in requests and in files."""

from __future__ import annotations

import re

from appliance.errors import Invalid
from appliance.tables.checks import string
from appliance.tables.json_schema import TEXT, Check

MAX_ID_CHARS = 256
MAX_NAME_CHARS = 1000

_BLANKS = "\t\n\v\f\r " + "".join(each for each in map(chr, range(0xA0, 0x3001)) if each.isspace())
"""White space that may stand around a text. Python also counts some control characters as such."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def refuse_control(text: str) -> str:
    """The text; raises `Invalid` where it has control characters or lone surrogates."""
    if _CONTROL.search(text) is not None:
        raise Invalid("must not contain control characters")
    return text


def strip_text(text: str, max_chars: int) -> str:
    """The text without the white space around it, if that leaves 1 to so many characters; else `Invalid`."""
    stripped = refuse_control(text.strip(_BLANKS))
    if not 1 <= len(stripped) <= max_chars:
        raise Invalid(f"must have 1 to {max_chars} characters, not {len(stripped)}")
    return stripped


def text(max_chars: int) -> Check:
    """A check: a string that `strip_text` takes."""
    said = "White space around it is cut; control characters are refused."
    schema = {**TEXT, "minLength": 1, "maxLength": max_chars, "description": said}
    return Check(schema=schema, run=lambda value: strip_text(string(value), max_chars))


identifier = text(MAX_ID_CHARS)
name = text(MAX_NAME_CHARS)
