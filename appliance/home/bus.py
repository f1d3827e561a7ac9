"""The bus: the one way news rises. Publishing never waits; a slow reader loses the oldest and is told how much."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from appliance.home.events import Event

T = TypeVar("T")
Listener = Callable[[Event], None]


class Mailbox(Generic[T]):
    """A bounded queue for one reader. When it is full the oldest item makes room, and is counted."""

    def __init__(self, capacity: int) -> None:
        self._items: deque[T] = deque()
        self._capacity = capacity
        self._missed = 0
        self._filled = asyncio.Event()

    def put(self, item: T) -> None:
        """Add an item; never waits."""
        if len(self._items) >= self._capacity:
            self._items.popleft()
            self._missed += 1
        self._items.append(item)
        self._filled.set()

    async def take(self, most: int) -> tuple[int, list[T]]:
        """Wait until there is something: how many items were lost before it, and the next ones, `most` at most."""
        await self._filled.wait()
        items = [self._items.popleft() for _ in range(min(most, len(self._items)))]
        missed, self._missed = self._missed, 0
        if not self._items:
            self._filled.clear()
        return missed, items


class Bus:
    """Carries every event to whoever listens, in the order of publishing. `published` counts them."""

    def __init__(self) -> None:
        self.published = 0
        self._listeners: list[Listener] = []

    def publish(self, event: Event) -> None:
        """Hand the event to every listener, now. A listener must neither wait nor raise."""
        self.published += 1
        for listener in tuple(self._listeners):
            listener(event)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call the listener with every event from now on, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
