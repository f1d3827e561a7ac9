"""The subscriptions of one connection: to the discovery topics, and to those that devices name."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from appliance.adapters.mqtt.broker import BrokerConnection
from appliance.adapters.mqtt.entity_catalog import DeviceCatalog


class Subscriptions:
    """Keeps one connection subscribed to `discovery` and to the catalog's topics, each once."""

    def __init__(self, discovery: Sequence[str], catalog: DeviceCatalog) -> None:
        self._discovery = discovery
        self._catalog = catalog
        self._subscribed: frozenset[str] = frozenset()
        self._has_new = asyncio.Event()
        self._has_new.set()
        self._is_current = asyncio.Event()
        self._is_flood_over = False

    @property
    def is_current(self) -> bool:
        """Whether the broker has acknowledged all that was asked for."""
        return self._is_current.is_set()

    async def renew(self) -> None:
        """Subscribe to what the catalog names now; returns when that stands, so that no state is missed.

        While the retained configurations come it returns at once: the acknowledgement stands behind all of them.
        """
        self._is_current.clear()
        self._has_new.set()
        if self._is_flood_over:
            await self._is_current.wait()

    async def keep(self, connection: BrokerConnection) -> None:
        """Subscribe and unsubscribe as asked, until the connection is lost, which raises `Unreachable`."""
        await connection.subscribe(self._discovery)
        self._is_flood_over = True
        while True:
            if not self._has_new.is_set():
                self._is_current.set()
            await self._has_new.wait()
            self._has_new.clear()
            filters = self._catalog.filters
            gone, new = self._subscribed - filters, filters - self._subscribed
            self._subscribed = filters
            if gone:
                await connection.unsubscribe(sorted(gone))
            if new:
                await connection.subscribe(sorted(new))
