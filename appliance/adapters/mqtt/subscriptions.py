"""The subscriptions at a broker: the discovery topics, and the topics of the devices."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from appliance.adapters.mqtt.broker import BrokerConnection
from appliance.adapters.mqtt.router import Router


class Subscriptions:
    """Subscribes to `discovery` and to the filters of a router. Each topic is subscribed only once per connection."""

    def __init__(self, discovery: Sequence[str], router: Router) -> None:
        self._discovery = discovery
        self._router = router
        self._subscribed: frozenset[str] = frozenset()
        self._has_new = asyncio.Event()
        self._has_new.set()
        self._is_current = asyncio.Event()
        self._is_flood_over = False

    def clear(self) -> None:
        """Forget the subscriptions of the previous connection."""
        self._subscribed = frozenset()
        self._has_new.set()
        self._is_current.clear()
        self._is_flood_over = False

    @property
    def is_current(self) -> bool:
        return self._is_current.is_set()

    async def renew(self) -> None:
        """Subscribe to the current filters. Return once the broker has acknowledged the subscriptions, so that no
        state is missed.

        While the retained configurations arrive, return immediately, because the broker sends the acknowledgement
        only after all retained messages.
        """
        self._is_current.clear()
        self._has_new.set()
        if self._is_flood_over:
            await self._is_current.wait()

    async def keep(self, connection: BrokerConnection) -> None:
        """Apply all changes of the filters until the connection is lost. Raise `Unreachable`."""
        await connection.subscribe(self._discovery)
        self._is_flood_over = True
        while True:
            if not self._has_new.is_set():
                self._is_current.set()
            await self._has_new.wait()
            self._has_new.clear()
            await self._apply(connection)

    async def _apply(self, connection: BrokerConnection) -> None:
        """Subscribe to new filters, and unsubscribe from removed ones. `keep` must not refer to these filters while
        it waits, because thousands of small texts would keep as many pages in use."""
        filters = self._router.filters
        gone, new = self._subscribed - filters, filters - self._subscribed
        self._subscribed = filters
        if gone:
            await connection.unsubscribe(sorted(gone))
        if new:
            await connection.subscribe(sorted(new))
