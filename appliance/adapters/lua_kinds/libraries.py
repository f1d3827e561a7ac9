"""The Lua tables `json`, `xml`, and `crypto` of kinds.

`crypto` passes bytes as text, one character for each byte.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from typing import Any
from xml.etree.ElementTree import Element

import msgspec

from appliance.adapters.device_xml import parse_xml
from appliance.errors import Invalid
from appliance.tables.checks import integer, one_of

MAX_JSON_MARKS = 500_000
"""Maximum number of commas, brackets, braces, and backslashes in JSON. Parsing more of these would block the event
loop for too long."""

_SLICE_BYTES = 1 << 18

MAX_ELEMENTS, MAX_DEPTH = 10_000, 14
"""Maximum number of elements in one text, and their maximum depth. Each XML element needs two levels of JSON."""

ALGORITHMS = ("md5", "sha1", "sha256")
MAX_ROUNDS, MAX_LENGTH = 500_000, 1024
"""For pbkdf2: maximum number of rounds in all blocks together, and maximum size of the result in bytes."""


def compact_json(body: bytes | str) -> bytes:
    """Remove white space from JSON. Raise `Invalid` if the text is not JSON, too deep, or too large.

    The worker decodes the JSON, because decoding in the hub would block the event loop ten times as long.
    """
    text, marks = body if isinstance(body, bytes) else body.encode(errors="replace"), 0
    for start in range(0, len(text), _SLICE_BYTES):
        marks += sum(text.count(each, start, start + _SLICE_BYTES) for each in (b",", b"[", b"{", b"\\"))
        if marks > MAX_JSON_MARKS:
            raise Invalid(f"has more than {MAX_JSON_MARKS} values and escape sequences in total")
    try:
        if text is body:
            text.decode()
        return msgspec.json.format(text, indent=-1)
    except (UnicodeError, msgspec.DecodeError):
        raise Invalid("is not JSON") from None
    except RecursionError:
        raise Invalid("is nested too deeply") from None


def decode_xml(text: bytes) -> dict[str, Any]:
    """Parse XML. Return the root element as `{value: {name, attributes, text, children}}`, or `{fault}`.

    Names have no namespaces. Entities are rejected. The function blocks for a time that is proportional to the length
    of the text.
    """
    try:
        root = parse_xml(text)
    except Invalid:
        return {"fault": "is not XML"}
    if sum(1 for _ in root.iter()) > MAX_ELEMENTS or _depth(root) > MAX_DEPTH:
        return {"fault": f"has more than {MAX_ELEMENTS} elements, or more than {MAX_DEPTH} levels of nesting"}
    return {"value": _table_of(root)}


def _depth(element: Element) -> int:
    depth, level = 0, [element]
    while level:
        depth, level = depth + 1, [child for each in level for child in each]
    return depth


def _table_of(element: Element) -> dict[str, Any]:
    return {
        "name": _local(element.tag),
        "attributes": {_local(name): value for name, value in element.attrib.items()},
        "text": "".join(element.itertext() if len(element) == 0 else [element.text or ""]).strip(),
        "children": [_table_of(child) for child in element],
    }


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def compute(name: str, given: Mapping[str, Any]) -> str:
    """Return the result of `crypto.<name>`. Digests are hexadecimal. Raise `Invalid` on failure. The computation
    of pbkdf2 can take a second."""
    try:
        return _FUNCTIONS[name](given)
    except Invalid as fault:
        raise Invalid(f"crypto.{name}: {fault}") from None


def _bytes(given: Mapping[str, Any], key: str) -> bytes:
    return str(given.get(key, "")).encode("latin-1")


def _algorithm(given: Mapping[str, Any]) -> str:
    try:
        return one_of(*ALGORITHMS)(given.get("algorithm"))
    except Invalid as fault:
        raise Invalid(f"the algorithm {fault}") from None


def _number(given: Mapping[str, Any], key: str, most: int, default: int) -> int:
    value = given.get(key)
    try:
        return default if value is None else integer(value, 1, most)
    except Invalid as fault:
        raise Invalid(f"{key} {fault}") from None


def _digest(algorithm: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda given: hashlib.new(algorithm, _bytes(given, "text"), usedforsecurity=False).hexdigest()


def _pbkdf2(given: Mapping[str, Any]) -> str:
    rounds, length = _number(given, "rounds", MAX_ROUNDS, 1), given.get("length")
    size = None if length is None else _number(given, "length", MAX_LENGTH, 32)
    algorithm = _algorithm(given)
    blocks = -(-(size or 1) // hashlib.new(algorithm, usedforsecurity=False).digest_size)
    if rounds * blocks > MAX_ROUNDS:
        raise Invalid(f"rounds must be at most {MAX_ROUNDS // blocks} for a result of {size} bytes, not {rounds}")
    return hashlib.pbkdf2_hmac(algorithm, _bytes(given, "key"), _bytes(given, "text"), rounds, size).hex()


def _unhex(given: Mapping[str, Any]) -> str:
    try:
        return binascii.unhexlify(_bytes(given, "text")).decode("latin-1")
    except binascii.Error:
        raise Invalid("the text is not hexadecimal") from None


def _unbase64(given: Mapping[str, Any]) -> str:
    try:
        return base64.b64decode(_bytes(given, "text"), validate=True).decode("latin-1")
    except binascii.Error:
        raise Invalid("the text is not base64") from None


_FUNCTIONS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    **{name: _digest(name) for name in ALGORITHMS},
    "hmac": lambda given: hmac.new(_bytes(given, "key"), _bytes(given, "text"), _algorithm(given)).hexdigest(),
    "pbkdf2": _pbkdf2,
    "random": lambda given: secrets.token_hex(_number(given, "length", MAX_LENGTH, 16)),
    "hex.encode": lambda given: _bytes(given, "text").hex(),
    "hex.decode": _unhex,
    "base64.encode": lambda given: base64.b64encode(_bytes(given, "text")).decode(),
    "base64.decode": _unbase64,
}
