"""The event stream. Each event is encoded once as a frame, which is queued for each reader."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from appliance.api.frames import BY_EVENT, dropped_frame, fault_frame, frame_of, heartbeat_frame
from appliance.api.http_server.websocket import WebSocket
from appliance.api.http_server.websocket_protocol import encode_text_message
from appliance.event_loop import loop_lag
from appliance.home.bus import Bus, Rank
from appliance.home.events import Event, KeyRevoked

MAX_PROMPT_READERS = 8
"""Maximum number of readers to which a frame is sent before other listeners get the frame's event. Each reader takes
about 30 µs."""

MAX_FRAMES_PER_WRITE = 64
"""Maximum number of frames per write, so that frames for a slow reader wait in the bounded queue."""

MAX_WRITE_BYTES = 64 << 10
"""Maximum size of a write of several frames."""

MAX_QUEUED_BYTES = 1 << 20
"""Maximum size of the frames in a queue. A larger frame is queued alone."""

POLICY_VIOLATION = 1008

log = logging.getLogger("api")


class Reader:
    """A bounded queue of frames for one socket. When the queue is full, its oldest frames are dropped and counted."""

    def __init__(self, socket: WebSocket, key_id: str, capacity: int) -> None:
        self.key_id = key_id
        self._frames: deque[bytes] = deque()
        self._capacity = capacity
        self._queued_bytes = 0
        self._dropped = 0
        self.socket = socket
        socket.on_writable = self.flush

    def send(self, data: bytes) -> int:
        """Write a frame at once if no frame waits and the socket is writable. Otherwise, queue the frame. Return the
        number of dropped frames."""
        if self._frames or not self.socket.is_writable:
            return self.put(data)
        self.socket.write(data)
        return 0

    def put(self, data: bytes) -> int:
        """Queue a frame for the next flush. Return the number of dropped frames."""
        size = len(data)
        if self._queued_bytes + size > MAX_QUEUED_BYTES:
            self.flush()
        dropped = 0
        while self._frames and (len(self._frames) >= self._capacity or self._queued_bytes + size > MAX_QUEUED_BYTES):
            self._take()
            dropped += 1
        self._dropped += dropped
        self._frames.append(data)
        self._queued_bytes += size
        return dropped

    def _take(self) -> bytes:
        data = self._frames.popleft()
        self._queued_bytes -= len(data)
        return data

    @property
    def waiting(self) -> int:
        """Return the number of frames that are waiting for the socket."""
        return len(self._frames)

    def beat(self) -> None:
        """Send a heartbeat if no frame waits."""
        if not self._frames and self.socket.is_writable:
            self.socket.write(encode_text_message(heartbeat_frame()))

    def flush(self) -> None:
        """Write queued frames while the socket is writable. If frames were dropped, first write the number of
        dropped frames."""
        while self._frames and self.socket.is_writable:
            if len(self._frames) == 1 and not self._dropped:
                self.socket.write(self._take())
                return
            batch = [self._take()]
            size = len(batch[0])
            while self._frames and len(batch) < MAX_FRAMES_PER_WRITE:
                size += len(self._frames[0])
                if size > MAX_WRITE_BYTES:
                    break
                batch.append(self._take())
            if self._dropped:
                batch.insert(0, encode_text_message(dropped_frame(self._dropped)))
                self._dropped = 0
            self.socket.write(b"".join(batch))


class EventStream:
    """Sends the frame of every event to all readers. While there are no readers, the stream does not listen
    to the bus.

    `frames` is the number of frames since the hub's start; `dropped` is the number of frames that slow readers
    lost. The first reader also receives `start_errors`, because no client could connect before these errors
    happened.
    """

    def __init__(self, bus: Bus, capacity: int, start_errors: Iterable[Event] = ()) -> None:
        self._capacity = capacity
        self._readers: set[Reader] = set()
        self._unread = [encode_text_message(frame) for each in start_errors if (frame := frame_of(each)) is not None]
        self._is_flush_due = False
        self._flushed_in = -1
        self.dropped = 0
        self.frames = 0
        self._kinds: tuple[type[Event], ...] = (
            KeyRevoked,
            *(kind for kind, frame in BY_EVENT.items() if frame is not None),
        )
        self._bus = bus
        self._stop_listening: Callable[[], None] = lambda: None

    @property
    def reader_count(self) -> int:
        """Return the number of open streams."""
        return len(self._readers)

    @property
    def longest_queue(self) -> int:
        """Return the number of frames that wait for the slowest reader."""
        return max((reader.waiting for reader in self._readers), default=0)

    @contextmanager
    def subscribe(self, socket: WebSocket, key_id: str) -> Iterator[Reader]:
        """Send every frame to the socket while the context is open. If the key is revoked, close the socket."""
        reader = Reader(socket, key_id, self._capacity)
        if not self._readers:
            self._loop_lag = loop_lag()
            self._stop_listening = self._bus.listen(self._broadcast, *self._kinds, rank=Rank.CLIENT)
        self._readers.add(reader)
        unread, self._unread = self._unread, []
        for data in unread:
            self._put(data)
        try:
            yield reader
        finally:
            self._remove(reader)

    def _remove(self, reader: Reader) -> None:
        if reader in self._readers:
            self._readers.remove(reader)
            if not self._readers:
                self._stop_listening()

    def _broadcast(self, event: Event) -> None:
        if isinstance(event, KeyRevoked):
            self._disconnect(event.key_id)
        try:
            payload = frame_of(event)
        except Exception as error:  # a listener must not raise, and no client may miss an event without notice
            log.error("event stream: %s could not be encoded: %s", type(event).__name__, error, exc_info=error)
            payload = fault_frame(event)
        if payload is not None:
            self._put(encode_text_message(payload))

    def _disconnect(self, key_id: str) -> None:
        """Close the sockets that were opened with this key."""
        for reader in [each for each in self._readers if each.key_id == key_id]:
            self._remove(reader)
            reader.socket.close(POLICY_VIOLATION, "the key was revoked")

    def _put(self, data: bytes) -> None:
        """Send the first frame of a loop iteration at once. Send all further frames of the iteration in one write."""
        self.frames += 1
        turn = self._loop_lag.turns
        if not self._is_flush_due and turn != self._flushed_in and len(self._readers) <= MAX_PROMPT_READERS:
            self._flushed_in = turn
            for reader in tuple(self._readers):
                self.dropped += reader.send(data)
            return
        for reader in self._readers:
            self.dropped += reader.put(data)
        if not self._is_flush_due:
            self._is_flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        for reader in tuple(self._readers):
            reader.flush()
