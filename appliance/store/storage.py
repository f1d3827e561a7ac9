"""Stored keys and values, as other parts of the hub read and write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import orjson


class DocumentReader(Protocol):
    """Stored keys and values: the document, or a backup of it."""

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        """Return the keys that begin with the prefix, without it, and their values."""


class Storage(DocumentReader, Protocol):
    """The document as other parts use it: its stored values, and two ways to write. None removes a key."""

    def remember(self, key: str, value: dict[str, Any] | None) -> None:
        """Write with the next flush; never wait."""

    async def put_many(self, changes: Mapping[str, Any]) -> None:
        """Return when everything is on the card, or raise `StoreFailed`."""

    def is_being_flushed(self, key: str) -> bool:
        """Return whether a flush in progress writes the key, so that the value is not stored yet."""


def items_of(values: Mapping[str, bytes], prefix: str) -> list[tuple[str, Any]]:
    """Return the keys that begin with the prefix, without it and in order, and their decoded JSON values."""
    found = sorted((key, value) for key, value in values.items() if key.startswith(prefix))
    return [(key.removeprefix(prefix), orjson.loads(value)) for key, value in found]


class DocumentSnapshot:
    """Keys and values as read at one moment, listed by prefix. It discards changes, as in a simulation."""

    def __init__(self, values: Mapping[str, bytes]) -> None:
        self._values = values

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        """Return the keys that begin with the prefix, without it and in order, and their values."""
        return items_of(self._values, prefix)

    def remember(self, key: str, value: dict[str, Any] | None) -> None:
        """Discard the value."""

    async def put_many(self, changes: Mapping[str, Any]) -> None:
        """Discard the changes."""

    def is_being_flushed(self, key: str) -> bool:
        """Return False: nothing is written."""
        return False
