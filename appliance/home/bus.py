"""The bus: the one way news rises. Publishing never waits."""

from __future__ import annotations

from collections.abc import Callable

from appliance.home.events import Event

Listener = Callable[[Event], None]


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
