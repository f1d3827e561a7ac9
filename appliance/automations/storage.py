"""Storage: how automations keep what outlives a restart, as one value to hand on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class StoredItems(Protocol):
    """What was kept: the document, or a copy of it."""

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        """The keys that begin with the prefix, without it, and their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What was `stored`, and two ways to write: `remember` writes now and then and never waits; `put` returns when
    all is on the card, or raises `StoreFailed`. None removes a key.
    """

    stored: StoredItems
    remember: Callable[[str, dict[str, Any] | None], None]
    put: Callable[[Mapping[str, Any]], Awaitable[None]]
