"""The rules for ids and names. The same rules apply to requests, files, and devices."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from appliance.errors import Invalid
from appliance.tables.checks import string
from appliance.tables.json_schema import TEXT, Check

MAX_ID_CHARS = 256
MAX_NAME_CHARS = 1000

DEVICE_HOOK_PREFIX = "device:"
"""The prefix of a device hook's id. The device's id follows."""

_BLANKS = "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""White space to trim from texts: Unicode's property White_Space without control characters."""

_JOINERS = "\u200c\u200d"
"""Invisible characters that names may contain, because some scripts and emoji need them."""

_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Invisible characters that Unicode classifies as letters or signs."""

_SPACES = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]")

_PATHS = frozenset({".", ".."})
"""Ids that cannot be used in URLs, because HTTP clients resolve them as relative paths."""


def refuse_control(text: str) -> str:
    """Return the text. Raise `Invalid` if the text contains control, invisible, or direction characters."""
    return text if text.isascii() and text.isprintable() else _refuse(text, is_id=False)


def strip_text(text: str, max_chars: int, *, is_id: bool = False) -> str:
    """Return the trimmed text. Raise `Invalid` if the text is empty, is longer than `max_chars`, or contains
    forbidden characters.

    An id must not contain invisible, unassigned, or private characters, and must not be `.` or `..`.
    """
    stripped = text.strip(_BLANKS)
    if not 1 <= len(stripped) <= max_chars:
        raise Invalid(f"must have 1 to {max_chars} characters, not {len(stripped)}")
    if is_id and stripped in _PATHS:
        raise Invalid(f"must not be {stripped!r}, which cannot be part of a URL")
    return stripped if stripped.isascii() and stripped.isprintable() else _refuse(stripped, is_id=is_id)


def strip_id(text: str) -> str:
    return strip_text(text, MAX_ID_CHARS, is_id=True)


@lru_cache(maxsize=256)
def _refuse(text: str, *, is_id: bool) -> str:
    """Return the text. Raise `Invalid` if the text contains forbidden characters, or no visible characters."""
    kinds = {each: unicodedata.category(each) for each in text}
    for each, kind in kinds.items():
        if kind in ("Cc", "Cs"):
            raise Invalid("must not contain control characters")
        is_joiner = each in _JOINERS and not is_id
        is_noncharacter = ord(each) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(each) <= 0xFDEF
        if (kind in ("Cf", "Zl", "Zp") and not is_joiner) or is_noncharacter:
            raise Invalid(f"must not contain the invisible character U+{ord(each):04X}")
        if is_id and kind in ("Cn", "Co"):
            raise Invalid(f"must not contain U+{ord(each):04X}, an unassigned character")
    if text and all(kind[0] in "MZ" or kind == "Cf" or each in _FILLERS for each, kind in kinds.items()):
        raise Invalid("must contain a visible character")
    return text


def clean_text(text: str, max_chars: int) -> str | None:
    """Return a device's text without invisible and control characters, shortened to `max_chars`. Return None if the
    result is empty.

    White space in the text, including line breaks, becomes a single space.
    """
    kept = text if text.isascii() and text.isprintable() else _drop_hidden(text)
    shortened = " ".join(kept.split())[:max_chars].rstrip()
    try:
        cleaned = strip_text(shortened, max_chars)
    except Invalid:
        return None
    return text if cleaned == text else cleaned  # the text is usually unchanged, so reuse the object


@lru_cache(maxsize=256)
def _drop_hidden(text: str) -> str:
    return "".join(filter(_is_kept, _SPACES.sub(" ", text)))


def _is_kept(char: str) -> bool:
    """Return whether a name may contain the character."""
    try:
        return bool(_refuse(f"a{char}", is_id=False))
    except Invalid:
        return False


def text(max_chars: int, *, is_id: bool = False) -> Check:
    """Return a check for strings that `strip_text` accepts."""
    said = "White space around the text is removed. Control and invisible characters are rejected."
    schema = {**TEXT, "minLength": 1, "maxLength": max_chars, "description": said}
    return Check(schema=schema, run=lambda value: strip_text(string(value), max_chars, is_id=is_id))


_ALIAS = re.compile(r"[a-z][a-z0-9_]{0,63}")


def _check_alias(value: object) -> str:
    stripped = string(value).strip(_BLANKS)
    if _ALIAS.fullmatch(stripped) is None:
        raise Invalid("must begin with a letter a-z and contain only a-z, 0-9 and _, at most 64 characters")
    return stripped


alias = Check(schema={**TEXT, "pattern": f"^{_ALIAS.pattern}$"}, run=_check_alias)
"""The check of an alias, the short id that people choose for a device."""

identifier = text(MAX_ID_CHARS, is_id=True)
hook_id = text(len(DEVICE_HOOK_PREFIX) + MAX_ID_CHARS, is_id=True)
name = text(MAX_NAME_CHARS)
