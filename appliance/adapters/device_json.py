"""Parses and repairs the JSON of devices. The module does not import an HTTP library."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson

from appliance.errors import Invalid, Unreadable

MAX_REPAIRED_BYTES = 1 << 16
"""Maximum size of JSON that is repaired on the event loop. A repair of this size takes about 10 ms."""

_CONTROL = re.compile(r"[\0-\x1f]")
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE_SURROGATE = re.compile(rf"{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW}")

_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')

# this pattern matches complete JSON strings, so that only numbers outside of strings are replaced; a string may lack
# its closing quote
_NOT_A_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*+"?|[-+]?\b(?:nan|inf(?:inity)?)\b', re.IGNORECASE | re.DOTALL)

_BOM, _JSON_PADDING = b"\xef\xbb\xbf", b"\0\r\n\t "


def parse_json(body: bytes | str, address: str) -> Any:
    """Parse a device's JSON. Raise `Unreadable` on failure."""
    try:
        return load_json(body)
    except ValueError:
        raise Unreadable(f"{address} answered with something that is not JSON") from None


def load_json(body: bytes | str, parse: Callable[[bytes], Any] = orjson.loads) -> Any:
    """Parse a device's JSON. If `parse` rejects the JSON, repair it and parse it again, up to `MAX_REPAIRED_BYTES`.

    A byte order mark, and zero bytes before or after the JSON, are ignored. Raise the exception of `parse`, which is
    a `ValueError` or `Invalid`.
    """
    raw = body.encode(errors="replace") if isinstance(body, str) else body
    data = raw.removeprefix(_BOM).rstrip(_JSON_PADDING)
    try:
        return parse(data)
    except (ValueError, Invalid):
        if len(data) > MAX_REPAIRED_BYTES:
            raise
    return parse(_repair(data))


def _repair(body: bytes) -> bytes:
    """Replace everything that JSON forbids: broken UTF-8, lone surrogates, control characters, unknown escapes, and
    NaN."""
    text = _LONE_SURROGATE.sub("\ufffd", _CONTROL.sub(" ", body.decode(errors="replace")))
    text = _ESCAPE.sub(lambda found: found[0] if found[1] else r"\\", text)
    return _NOT_A_NUMBER.sub(lambda found: found[0] if found[0][0] == '"' else "null", text).encode()
