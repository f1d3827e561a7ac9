"""Parses large messages in steps. Parsing a list of 2,000 nodes at once would block the event loop for half a
second."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

import orjson

from appliance.adapters.device_json import parse_json
from appliance.clock import Clock
from appliance.errors import Unreadable
from appliance.event_loop import in_steps

MAX_AT_ONCE = 1 << 19
"""Number of characters that are parsed in one step."""

MAX_PARTS = 10_000
"""Maximum number of entries in a list."""

_USUAL_PART = 1 << 14
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")


def parse_small(message: bytes | str, address: str) -> Any:
    """Parse a small message. Return a large message as text. Raise `Unreadable` on failure."""
    if len(message) <= MAX_AT_ONCE:
        return parse_json(message, address)
    return message if isinstance(message, str) else message.decode(errors="replace")


async def parse_large(message: Any, clock: Clock) -> Any:
    """Parse a JSON object in steps. If the value is not text, return it unchanged. Raise `Unreadable` on failure."""
    if not isinstance(message, str):
        return message
    return await in_steps(clock, _parse_object(message))


def _parse_object(text: str) -> Generator[None, None, dict[str, Any]]:
    """Parse a JSON object. Each step parses one field or one list entry."""
    found: dict[str, Any] = {}
    at = _after(text, "{", _skip(text, 0))
    while text[at : at + 1] != "}":
        name, at = _parse_part(text, at)
        at = _after(text, ":", at)
        if text[at : at + 1] == "[":
            entries = found[str(name)] = list[Any]()
            at = _skip(text, at + 1)
            while text[at : at + 1] != "]":
                entry, at = _parse_part(text, at)
                entries.append(entry)
                if len(entries) > MAX_PARTS:
                    raise Unreadable(f"a list has more than {MAX_PARTS} entries")
                at = _next(text, at, "]")
                yield
            at = _skip(text, at + 1)
        else:
            found[str(name)], at = _parse_part(text, at)
        at = _next(text, at, "}")
        yield
    if _skip(text, at + 1) < len(text):
        raise Unreadable("there is more data after the JSON object")
    return found


def _parse_part(text: str, at: int) -> tuple[Any, int]:
    """Return the value at this index, and the index after it."""
    for size in (_USUAL_PART, MAX_AT_ONCE):
        part = text[at : at + size]
        try:
            _, end = _DECODER.raw_decode(part)
        except (ValueError, RecursionError):
            continue
        if end < len(part):
            try:
                return orjson.loads(part[:end]), _skip(text, at + end)
            except orjson.JSONDecodeError:
                break
    raise Unreadable(f"a part is not JSON, or is longer than {MAX_AT_ONCE} characters")


def _next(text: str, at: int, end: str) -> int:
    """Return the index of the next entry or field. At the end of the list or object, return the index of the end."""
    return at if text[at : at + 1] == end else _after(text, ",", at)


def _after(text: str, expected: str, at: int) -> int:
    if text[at : at + 1] != expected:
        raise Unreadable(f"{expected} is missing at character {at}")
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
