"""Interfaces of the document for other parts of the hub."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import orjson

from appliance.store.file_format import EncodedChanges

Prepare = Callable[[EncodedChanges], EncodedChanges]
"""Returns the changes to store. The argument contains the earlier changes in the same batch. All changes of a batch
get the same mapping; a retry gets a new mapping. If the function raises an exception, the change is rejected."""


class DocumentReader(Protocol):
    """The stored keys and values of the document or of a backup."""

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        """Return the key and value of each key with the prefix. The returned keys lack the prefix."""


class Storage(DocumentReader, Protocol):
    """The document for other parts of the hub. The value None removes a key."""

    def get(self, key: str) -> bytes | None:
        """Return the key's value as JSON, or None. Until the value changes, each call returns the same object."""

    def put_later(self, key: str, value: dict[str, Any] | None, *, is_minor: bool = False) -> None:
        """Write the value with the next flush. Return at once. The caller must not change the value afterwards. A
        minor value is written about once per hour."""

    async def put_many(self, changes: Mapping[str, Any]) -> None:
        """Store the values. Return after the values are durable, or raise `StoreFailed`."""

    async def change(
        self, prepare: Prepare, commit: Callable[[], None] | None = None, *, replaces: Iterable[str] = ()
    ) -> None:
        """Store the changes that `prepare` returns, then call `commit`. Once they are stored, values of the keys
        `replaces` that waited for a flush are discarded. Raise `StoreFailed` on failure."""

    def is_being_flushed(self, key: str) -> bool:
        """Return whether a running flush writes the key. If so, the key's stored value is outdated."""


def items_of(values: Mapping[str, bytes], prefix: str) -> list[tuple[str, Any]]:
    """Return the decoded value of each key with the prefix, sorted by key. The returned keys lack the prefix."""
    found = sorted((key, value) for key, value in values.items() if key.startswith(prefix))
    return [(key.removeprefix(prefix), orjson.loads(value)) for key, value in found]


class DocumentSnapshot:
    """A copy of the stored keys and values, for example of a stopped hub. Changes are discarded."""

    def __init__(self, values: Mapping[str, bytes]) -> None:
        self.values = values

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        return items_of(self.values, prefix)

    def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    def put_later(self, key: str, value: dict[str, Any] | None, *, is_minor: bool = False) -> None:
        """Discard the value."""

    async def put_many(self, changes: Mapping[str, Any]) -> None:
        """Discard the changes."""

    async def change(
        self, prepare: Prepare, commit: Callable[[], None] | None = None, *, replaces: Iterable[str] = ()
    ) -> None:
        """Discard the changes, and call `commit`."""
        prepare({})
        if commit is not None:
            commit()

    def is_being_flushed(self, key: str) -> bool:
        return False
