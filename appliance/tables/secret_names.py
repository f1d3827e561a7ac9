"""Decides from its name whether a setting is secret."""

from __future__ import annotations

_ENDINGS = ("password", "token", "secret", "key")


def is_secret_name(name: str) -> bool:
    """Return whether a setting with this name is secret."""
    return name.endswith(_ENDINGS)


def contains_secret_name(key: str) -> bool:
    """Return whether an error message must not contain the value of this dotted or misspelt key."""
    return any(each in key for each in _ENDINGS)
