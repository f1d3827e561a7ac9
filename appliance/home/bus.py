"""The bus: the one way news rises. Publishing never waits."""

from __future__ import annotations

import logging
from collections.abc import Callable

from appliance.home.events import Event

Listener = Callable[[Event], None]

log = logging.getLogger("hub")


class Bus:
    """Carries every event to whoever listens, in the order of publishing. `published` counts them."""

    def __init__(self) -> None:
        self.published = 0
        self._listeners: list[tuple[Listener, tuple[type[Event], ...]]] = []
        self._by_kind: dict[type[Event], tuple[Listener, ...]] = {}
        self._reported: set[tuple[str, type[Exception]]] = set()

    def publish(self, event: Event) -> None:
        """Hand the event to every listener, now. A listener must not wait; one that raises is logged, once for each
        kind of error, and keeps the event from nobody else."""
        self.published += 1
        kind = type(event)
        listeners = self._by_kind.get(kind)
        if listeners is None:
            found = (listener for listener, kinds in self._listeners if not kinds or issubclass(kind, kinds))
            listeners = self._by_kind[kind] = tuple(found)
        for listener in listeners:
            try:
                listener(event)
            except Exception as error:
                self._report(listener, event, error)

    def listen(self, listener: Listener, *kinds: type[Event]) -> Callable[[], None]:
        """Call the listener with every event from now on, until the returned function is called.

        Where kinds are named, with events of these kinds only; others then cost nothing.
        """
        entry = (listener, kinds)
        self._listeners.append(entry)
        self._by_kind.clear()

        def forget() -> None:
            self._listeners.remove(entry)
            self._by_kind.clear()

        return forget

    def _report(self, listener: Listener, event: Event, error: Exception) -> None:
        name = getattr(listener, "__qualname__", repr(listener))
        level = logging.DEBUG if (name, type(error)) in self._reported else logging.ERROR
        self._reported.add((name, type(error)))
        log.log(level, "%s failed on %s: %s", name, type(event).__name__, error, exc_info=error)
