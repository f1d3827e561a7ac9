"""Recognizes secret settings by their names."""

from __future__ import annotations

_ENDINGS = ("password", "token", "secret", "key")

_OTHERS = frozenset({"influx_url", "url", "topic", "user", "body", "headers"})


def is_secret_name(name: str) -> bool:
    return name.endswith(_ENDINGS)


def contains_secret_name(key: str) -> bool:
    """Return whether the value of this dotted or misspelt key must not appear in an error message."""
    return any(each in key for each in _ENDINGS) or key.strip().rpartition(".")[2] in _OTHERS
