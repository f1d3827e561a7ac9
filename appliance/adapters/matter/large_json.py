"""Parses large messages in steps. Parsing a list of 2,000 nodes at once would block the event loop for half a
second."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator
from typing import Any

import orjson

from appliance.adapters.device_json import parse_json
from appliance.clock import Clock
from appliance.errors import Unreadable
from appliance.event_loop import in_steps

MAX_AT_ONCE = 1 << 19
"""Number of characters that are parsed in one step."""

MAX_PARTS = 10_000
"""Maximum number of entries in a list or object."""

MAX_DEPTH = 8
"""Maximum number of nested lists and objects that are parsed in steps."""

_USUAL_PART = 1 << 14
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")


def parse_small(message: bytes | str, address: str) -> Any:
    """Parse a small message. Return a large message as text. Raise `Unreadable` on failure."""
    if len(message) <= MAX_AT_ONCE:
        return parse_json(message, address)
    return message if isinstance(message, str) else message.decode(errors="replace")


async def parse_large(message: Any, clock: Clock, on_dropped: Callable[[], None]) -> Any:
    """Parse a JSON object in steps. If the value is not text, return it unchanged. Raise `Unreadable` on failure.

    A text of more than `MAX_AT_ONCE` characters becomes None, and the entries of a list or object after the first
    `MAX_PARTS` are missing. `on_dropped` is called for each of them.
    """
    if not isinstance(message, str):
        return message
    return await in_steps(clock, _parse_object(message, on_dropped))


def _parse_object(text: str, on_dropped: Callable[[], None]) -> Generator[None, None, Any]:
    """Parse a JSON object."""
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        raise Unreadable(f"{{ is missing at character {at}")
    found, at = yield from _parse_parts(text, at, 1, on_dropped)
    if at < len(text):
        raise Unreadable("there is more data after the JSON object")
    return found


def _parse_parts(
    text: str, at: int, depth: int, on_dropped: Callable[[], None]
) -> Generator[None, None, tuple[Any, int]]:
    """Parse a list or object. Each step parses one entry. Return the value, and the index after it."""
    is_list = text[at] == "["
    end = "]" if is_list else "}"
    found: dict[Any, Any] = {}
    number, at = 0, _skip(text, at + 1)
    while text[at : at + 1] != end:
        name: Any = number
        if not is_list:
            name, at = _parse_part(text, at)
            if not isinstance(name, str):
                raise Unreadable("the name of a field is not a text")
            at = _after(text, ":", at)
        value, at = yield from _parse_value(text, at, depth, on_dropped)
        if number < MAX_PARTS:
            found[name] = value
        else:
            on_dropped()
        number += 1
        at = _next(text, at, end)
        yield
    return [*found.values()] if is_list else found, _skip(text, at + 1)


def _parse_value(
    text: str, at: int, depth: int, on_dropped: Callable[[], None]
) -> Generator[None, None, tuple[Any, int]]:
    """Parse a value at once, or in steps if it is large."""
    first = text[at : at + 1]
    if depth > 1 or first != "[":  # the list of all nodes is large
        try:
            return _parse_part(text, at)
        except Unreadable:
            if depth >= MAX_DEPTH or first not in ("{", "[", '"'):
                raise
    yield
    if first != '"':
        return (yield from _parse_parts(text, at, depth + 1, on_dropped))
    end = yield from _find_end(text, at)
    if end - at <= MAX_AT_ONCE:
        raise Unreadable("a text is not JSON")
    on_dropped()
    return None, _skip(text, end)


def _find_end(text: str, at: int) -> Generator[None, None, int]:
    """Return the index after the text that begins at this index."""
    quote = text.find('"', at := at + 1)
    while quote >= 0:
        if (escape := text.find("\\", at, quote)) < 0:
            return quote + 1
        at = escape + 2
        if quote < at:
            quote = text.find('"', at)
        yield
    raise Unreadable("a text has no end")


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
