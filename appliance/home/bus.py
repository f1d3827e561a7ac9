"""The event bus. Publishing an event calls the listeners directly."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import IntEnum

from appliance.home.events import Event

EventListener = Callable[[Event], None]

log = logging.getLogger("hub")


class Rank(IntEnum):
    """The order of listeners. Clients are called first; listeners that only record events are called last."""

    CLIENT = 0
    USUAL = 1
    RECORD = 2


class Bus:
    """Calls listeners with every event in the order of publishing. `published` is the number of events so far. Use a
    bus in one event loop only."""

    def __init__(self) -> None:
        self.published = 0
        self._listeners: list[tuple[Rank, EventListener, tuple[type[Event], ...]]] = []
        self._by_kind: dict[type[Event], tuple[EventListener, ...]] = {}
        self._reported: set[tuple[str, type[Exception]]] = set()

    def publish(self, event: Event) -> None:
        """Call every listener with the event before returning. A listener must not block.

        If a listener raises an exception, log an error once per listener and exception type, and call the other
        listeners.
        """
        self.published += 1
        kind = type(event)
        listeners = self._by_kind.get(kind)
        if listeners is None:
            found = (listener for _, listener, kinds in self._listeners if not kinds or issubclass(kind, kinds))
            listeners = self._by_kind[kind] = tuple(found)
        for listener in listeners:
            try:
                listener(event)
            except Exception as error:
                self._report(listener, event, error)

    def listen(self, listener: EventListener, *kinds: type[Event], rank: Rank = Rank.USUAL) -> Callable[[], None]:
        """Register a listener. The bus calls the listener with every event until the returned function is called.

        If `kinds` are given, the listener gets only events of these classes. Listeners of the same rank are called in
        the order of their registration.
        """
        entry = (rank, listener, kinds)
        self._listeners.append(entry)
        self._listeners.sort(key=lambda each: each[0])
        self._by_kind.clear()

        def unsubscribe() -> None:
            self._listeners.remove(entry)
            self._by_kind.clear()

        return unsubscribe

    def _report(self, listener: EventListener, event: Event, error: Exception) -> None:
        name = getattr(listener, "__qualname__", repr(listener))
        level = logging.DEBUG if (name, type(error)) in self._reported else logging.ERROR
        self._reported.add((name, type(error)))
        log.log(level, "%s failed on %s: %s", name, type(event).__name__, error, exc_info=error)
