"""The Lua table `crypto` of kinds. Bytes are passed as text, one character for each byte."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from appliance.errors import Invalid
from appliance.tables.checks import integer, one_of

ALGORITHMS = ("md5", "sha1", "sha256")
MAX_ROUNDS, MAX_LENGTH = 500_000, 1024
"""For pbkdf2: maximum number of rounds in all blocks together, and maximum size of the result in bytes."""


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
