"""Secrets: the few short texts of each adapter that must outlive a restart."""

from __future__ import annotations

import orjson

from appliance.store.document import Document

ADAPTER = "adapter/"
"""Keys in the document: `adapter/<section>/<key>` is a text."""


class AdapterSecrets:
    """The texts of one adapter. It sees no other's."""

    def __init__(self, document: Document, adapter: str) -> None:
        self._document = document
        self._prefix = f"{ADAPTER}{adapter}/"

    def get(self, key: str) -> str | None:
        """What is kept under the key, None if nothing is."""
        stored = self._document.get(self._prefix + key)
        value = None if stored is None else orjson.loads(stored)
        return value if isinstance(value, str) else None

    async def put(self, key: str, value: str) -> None:
        """Keep the text; it is on the card when this returns. Raises `StoreFailed`."""
        await self._document.put_many({self._prefix + key: value})
