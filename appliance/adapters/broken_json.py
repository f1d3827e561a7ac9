"""Repairs the JSON of devices. This module does not import an HTTP library."""

from __future__ import annotations

import re

MAX_REPAIRED_BYTES = 1 << 20
"""Size limit of JSON that is repaired."""

_CONTROL = re.compile(r"[\0-\x1f]")
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE_SURROGATE = re.compile(rf"{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW}")

_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')

# Whole texts are matched, so that only numbers outside of texts are replaced. The end of a text may be missing.
_NOT_A_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*+"?|[-+]?\b(?:nan|inf(?:inity)?)\b', re.IGNORECASE | re.DOTALL)

_BOM, _JSON_PADDING = b"\xef\xbb\xbf", b"\0\r\n\t "


def strip_json(body: bytes) -> bytes:
    """Remove the byte order mark and the zero bytes that some devices put around JSON."""
    return body.removeprefix(_BOM).rstrip(_JSON_PADDING)


def repair_json(body: bytes) -> bytes:
    """Replace broken UTF-8, lone surrogates, control characters, unknown escapes, and NaN, which JSON forbids."""
    text = body.decode(errors="replace") if len(body) <= MAX_REPAIRED_BYTES else ""
    text = _LONE_SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))
    text = _ESCAPE.sub(lambda found: found[0] if found[1] else r"\\", text)
    return _NOT_A_NUMBER.sub(lambda found: found[0] if found[0][0] == '"' else "null", text).encode()
