"""The event stream: every event becomes one frame, encoded once, in the mailbox of each reader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from websockets.frames import Frame, Opcode

from appliance.api.payloads import frame, lag_frame
from appliance.home.bus import Bus, Mailbox
from appliance.home.events import Event


class EventStream:
    """Spreads frames to readers. `dropped` counts those that slow readers lost since the start."""

    def __init__(self, bus: Bus, capacity: int) -> None:
        self._capacity = capacity
        self._readers: set[Mailbox[bytes]] = set()
        self.dropped = 0
        bus.listen(self._spread)

    @property
    def readers(self) -> int:
        """How many read at present."""
        return len(self._readers)

    @contextmanager
    def reader(self) -> Iterator[Mailbox[bytes]]:
        """A mailbox that gets the bytes of every frame from now on, ready for the wire."""
        mailbox: Mailbox[bytes] = Mailbox(self._capacity)
        self._readers.add(mailbox)
        try:
            yield mailbox
        finally:
            self._readers.discard(mailbox)

    def lagged(self, missed: int) -> bytes:
        """The bytes that tell a reader what it lost; counted."""
        self.dropped += missed
        return wire(lag_frame(missed))

    def _spread(self, event: Event) -> None:
        if not self._readers:
            return
        payload = frame(event)
        if payload is not None:
            data = wire(payload)
            for mailbox in self._readers:
                mailbox.put(data)


def wire(payload: bytes) -> bytes:
    """A WebSocket text message as the server sends it: one unmasked frame, the same for every reader (RFC 6455)."""
    return Frame(Opcode.TEXT, payload).serialize(mask=False)
