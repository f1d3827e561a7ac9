"""Splits a JSON object into its members without decoding their values, so that their limits can be checked before."""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BLANK = rb"[ \t\n\r]*+"
_OPENING = re.compile(rb"%b\{" % _BLANK)
_KEY = re.compile(rb"%b(%b)%b:%b" % (_BLANK, _STRING, _BLANK, _BLANK))
_SCALAR = re.compile(rb'%b|[^ \t\n\r,\[\]{}"]+' % _STRING)
_TOKEN = re.compile(rb'%b|[\[\]{}"]' % _STRING)
_SEPARATOR = re.compile(rb"%b([,}])" % _BLANK)
_CLOSING = re.compile(rb"%b\}" % _BLANK)
_REST = re.compile(rb"%b\Z" % _BLANK)


def split_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the key and the encoded value of each member.

    Raise `ValueError` if the data is not an object. The values are not checked.
    """
    at = _match(_OPENING, data, 0).end()
    separator = _CLOSING.match(data, at)
    while separator is None or separator[0].endswith(b","):
        key = _match(_KEY, data, at)
        end = _find_end(data, key.end())
        yield orjson.loads(key[1]), data[key.end() : end]
        separator = _match(_SEPARATOR, data, end)
        at = separator.end()
    _match(_REST, data, separator.end())


def _find_end(data: bytes, at: int) -> int:
    """Return the end of the value at this position."""
    if data[at : at + 1] not in (b"[", b"{"):
        return _match(_SCALAR, data, at).end()
    depth = 0
    for token in _TOKEN.finditer(data, at):
        first = token[0][:1]
        if token[0] == b'"':  # the string has no end; each later search for an end would read all data again
            break
        depth += (first in b"[{") - (first in b"]}")
        if not depth:
            return token.end()
    raise ValueError("incomplete JSON")


def _match(pattern: re.Pattern[bytes], data: bytes, at: int) -> re.Match[bytes]:
    found = pattern.match(data, at)
    if found is None:
        raise ValueError("invalid JSON")
    return found
