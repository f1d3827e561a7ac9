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
        self._listeners: list[Listener] = []
        self._reported: set[tuple[str, type[Exception]]] = set()

    def publish(self, event: Event) -> None:
        """Hand the event to every listener, now. A listener must not wait; one that raises is logged, once for each
        kind of error, and keeps the event from nobody else."""
        self.published += 1
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception as error:
                self._report(listener, event, error)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call the listener with every event from now on, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _report(self, listener: Listener, event: Event, error: Exception) -> None:
        name = getattr(listener, "__qualname__", repr(listener))
        level = logging.DEBUG if (name, type(error)) in self._reported else logging.ERROR
        self._reported.add((name, type(error)))
        log.log(level, "%s failed on %s: %s", name, type(event).__name__, error, exc_info=error)
