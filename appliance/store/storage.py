"""Interfaces of the document for other parts of the hub."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import orjson


class DocumentReader(Protocol):
    """The stored keys and values of the document or of a backup."""

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        """Return the values of the keys with the prefix. The returned keys lack the prefix."""


class Storage(DocumentReader, Protocol):
    """The document for other parts of the hub. The value None removes a key."""

    def remember(self, key: str, value: dict[str, Any] | None, *, is_minor: bool = False) -> None:
        """Write the value with the next flush, and return immediately. A minor value is written about once per
        hour."""

    async def put_many(self, changes: Mapping[str, Any]) -> None:
        """Write the values. Return when the values are on the card, or raise `StoreFailed`."""

    def is_being_flushed(self, key: str) -> bool:
        """Return whether a running flush writes the key, so that the key's value is not stored yet."""


def items_of(values: Mapping[str, bytes], prefix: str) -> list[tuple[str, Any]]:
    """Return the decoded values of the keys with the prefix, sorted by key. The returned keys lack the prefix."""
    found = sorted((key, value) for key, value in values.items() if key.startswith(prefix))
    return [(key.removeprefix(prefix), orjson.loads(value)) for key, value in found]


class DocumentSnapshot:
    """A copy of the keys and values, for simulations. Changes are discarded."""

    def __init__(self, values: Mapping[str, bytes]) -> None:
        self._values = values

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        return items_of(self._values, prefix)

    def remember(self, key: str, value: dict[str, Any] | None, *, is_minor: bool = False) -> None:
        """Discard the value."""

    async def put_many(self, changes: Mapping[str, Any]) -> None:
        """Discard the changes."""

    def is_being_flushed(self, key: str) -> bool:
        """Return False, because nothing is written."""
        return False
