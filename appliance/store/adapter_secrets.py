"""Secrets of adapters, such as tokens from pairing."""

from __future__ import annotations

import orjson

from appliance.store.document import Document
from appliance.store.record_keys import ADAPTER_PREFIX


class AdapterSecrets:
    """One adapter's stored secrets. An adapter cannot access another adapter's secrets."""

    def __init__(self, document: Document, adapter: str) -> None:
        self._document = document
        self._prefix = f"{ADAPTER_PREFIX}{adapter}/"

    def get(self, key: str) -> str | None:
        stored = self._document.get(self._prefix + key)
        value = None if stored is None else orjson.loads(stored)
        return value if isinstance(value, str) else None

    async def put(self, key: str, value: str) -> None:
        """Store the secret. Return after the secret is durable. Raise `StoreFailed` if the secret cannot be
        stored."""
        await self._document.put_many({self._prefix + key: value})
