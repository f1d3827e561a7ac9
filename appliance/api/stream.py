"""The event stream: every event becomes one frame, encoded once, in the queue of each reader."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from websockets.frames import Frame, Opcode

from appliance.api.payloads import frame, lag_frame
from appliance.api.websocket import WebSocket
from appliance.home.bus import Bus
from appliance.home.events import Event, KeyRevoked

MOST_AT_ONCE = 64
"""Frames that one write carries at most, so that what waits for a slow reader waits where it is counted."""

POLICY_VIOLATION = 1008
INTERNAL_ERROR = 1011

log = logging.getLogger("api")


class Reader:
    """A bounded queue of frames before one socket. When it is full the oldest makes room, and is counted."""

    def __init__(self, socket: WebSocket, key_id: str, capacity: int) -> None:
        self.socket = socket
        self.key_id = key_id
        self._frames: deque[bytes] = deque(maxlen=capacity)
        self._missed = 0

    def put(self, data: bytes) -> bool:
        """Add a frame, to be sent with the next flush; tells whether another was lost for it."""
        is_full = len(self._frames) == self._frames.maxlen
        self._missed += is_full
        self._frames.append(data)
        return is_full

    def flush(self) -> None:
        """Send as much as the socket takes; first, what the reader has lost."""
        while self._frames and self.socket.is_writable:
            most = min(MOST_AT_ONCE, len(self._frames))
            batch = [self._frames.popleft() for _ in range(most)]
            if self._missed:
                batch.insert(0, wire(lag_frame(self._missed)))
                self._missed = 0
            self.socket.write(b"".join(batch))


class EventStream:
    """Spreads frames to readers. `dropped` counts those that slow readers lost since the start."""

    def __init__(self, bus: Bus, capacity: int) -> None:
        self._capacity = capacity
        self._readers: set[Reader] = set()
        self._is_flush_due = False
        self.dropped = 0
        bus.listen(self._spread)

    @property
    def readers(self) -> int:
        """How many read at present."""
        return len(self._readers)

    @contextmanager
    def feeding(self, socket: WebSocket, key_id: str) -> Iterator[None]:
        """Send every frame from now on to the socket, until the key is revoked that it was opened with."""
        reader = Reader(socket, key_id, self._capacity)
        socket.on_room = reader.flush
        self._readers.add(reader)
        try:
            yield
        finally:
            self._readers.discard(reader)

    def _spread(self, event: Event) -> None:
        if not self._readers:
            return
        if isinstance(event, KeyRevoked):
            self._dismiss(event.key_id)
        try:
            payload = frame(event)
        except Exception as error:  # a listener must not raise; and no reader may miss an event unknowingly
            self._fail(event, error)
            return
        if payload is not None:
            self._put(wire(payload))

    def _dismiss(self, key_id: str) -> None:
        """Send nothing more to who came with this key."""
        for reader in [each for each in self._readers if each.key_id == key_id]:
            self._readers.discard(reader)
            reader.socket.close(POLICY_VIOLATION, "the key was revoked")

    def _put(self, data: bytes) -> None:
        self.dropped += sum([reader.put(data) for reader in self._readers])
        if not self._is_flush_due:
            self._is_flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Send what one turn of the loop has brought, all of it at once."""
        self._is_flush_due = False
        for reader in tuple(self._readers):
            reader.flush()

    def _fail(self, event: Event, error: Exception) -> None:
        log.error("event stream: %s has no frame: %s: %s", type(event).__name__, type(error).__name__, error)
        log.debug("event stream", exc_info=error)
        for reader in tuple(self._readers):
            reader.socket.close(INTERNAL_ERROR, "an event could not be told")


def wire(payload: bytes) -> bytes:
    """A WebSocket text message as the server sends it: one unmasked frame, the same for every reader (RFC 6455)."""
    return Frame(Opcode.TEXT, payload).serialize(mask=False)
