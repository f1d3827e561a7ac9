"""The MQTT library's client, with a socket that is emptied at once. The client's waits can be cancelled, and do not
time out while many messages arrive."""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Self, TypeVar

import aiomqtt
from aiomqtt.exceptions import MqttConnectError

from appliance.adapters.mqtt.messages import Received
from appliance.event_loop import REQUEST_TURNS
from appliance.tasks import Tasks

_PUBLISH, _PUBLISH_BITS, _RETAINED_BIT = 0x30, 0xF6, 0x01
"""First byte of a QoS 0 message, the mask that clears the bits "duplicate" and "retained", and the bit "retained"."""

_MAX_SIZE_BYTES = 4
"""Maximum size of a packet's length field."""

READ_STEP_SECS = 0.001
"""Maximum seconds of reading and processing packets before other tasks run."""

PING_CHECK_SHARE = 0.2
"""The share of the keep-alive time after which the library checks whether a ping is due. A broker waits for one and
a half keep-alive times."""

CLOSED_EARLY = "closed before it was accepted"
"""The error message of a connection that the server closed without an answer."""

_NO_MQTT = "Protocol error"

_CONNACK = 0x20
"""First byte of a broker's first packet."""

MAX_FLOOD_SECS = 600.0
"""Time limit for the acknowledgement of a request while messages arrive."""

MAX_BUFFERED_BYTES = 16 * 1024 * 1024
"""Maximum number of bytes that are read ahead. Beyond this number, the broker has to wait."""

MAX_MQTT_PACKET_BYTES = 2 * 1024 * 1024
"""Size limit of a packet. The largest picture fits, even in base64. A larger packet is skipped."""

CHUNK_BYTES = 256 * 1024

MAX_FILL_CHUNKS = 2
"""Maximum number of reads before other tasks run."""

T = TypeVar("T")

_PING_ANSWER = {"command": 0xD0, "remaining_length": 0, "to_process": 0}
"""State of the library's parser after a skipped packet."""

log = logging.getLogger("adapters")


class BufferedSocket:
    """Wraps a connected, non-blocking socket. `fill` reads ahead. All other attributes come from the socket."""

    def __init__(self, sock: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._sock, self._loop = sock, loop
        self._data = bytearray()
        self._later: deque[bytes] = deque()  # the data after `_data`; one large buffer would be copied when it grows
        self._later_size = 0
        self._to_skip = 0
        self._has_ended = False
        self._is_drained = False
        self._until = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def fill(self) -> None:
        """Read the available data, with at most `MAX_FILL_CHUNKS` reads. Raise OSError if the connection broke."""
        self._is_drained = False
        try:
            for _ in range(MAX_FILL_CHUNKS):
                if self._size >= MAX_BUFFERED_BYTES or self._has_ended:
                    return
                chunk = self._sock.recv(CHUNK_BYTES)
                if self._later or len(self._data) >= CHUNK_BYTES:
                    self._later.append(chunk)
                    self._later_size += len(chunk)
                else:
                    self._data += chunk
                if self._to_skip:
                    self.skip(0)
                self._has_ended = not chunk
                if len(chunk) < CHUNK_BYTES and not isinstance(self._sock, ssl.SSLSocket):
                    self._is_drained = bool(chunk)  # the socket becomes readable again when data arrives
                    return
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            self._is_drained = True

    def close(self) -> None:
        """Close the socket and discard the unread data. The error of a lost connection may keep this object alive."""
        self._sock.close()
        self._data = bytearray()
        self._later.clear()
        self._later_size = 0

    @property
    def _size(self) -> int:
        return len(self._data) + self._later_size

    def _append_later(self) -> None:
        chunk = self._later.popleft()
        self._later_size -= len(chunk)
        self._data += chunk

    def _remove(self, size: int) -> None:
        """Remove this number of bytes from `_data`, which is empty only if all data was read."""
        del self._data[:size]
        if not self._data and self._later:
            self._append_later()

    @property
    def first_byte(self) -> int | None:
        """The first unread byte, or None if no data was read ahead."""
        return self._data[0] if self._data else None

    def skip(self, size: int) -> None:
        """Skip this number of unread bytes."""
        self._to_skip += size
        while skipped := min(self._to_skip, len(self._data)):
            self._remove(skipped)
            self._to_skip -= skipped

    def pending(self) -> int:
        """Return the number of bytes that were read ahead. With TLS, data can be pending while the socket is not
        readable."""
        if not self._data and not self._is_drained:
            self.fill()
        return self._size

    def allow(self, secs: float) -> None:
        """Return data for this number of seconds. Then report that no data is available."""
        self._until = self._loop.time() + secs

    @property
    def is_over(self) -> bool:
        """Whether the time set by `allow` has expired."""
        return self._loop.time() >= self._until

    def recv(self, size: int) -> bytes:
        """Return at most this number of bytes, or no bytes at the end of the connection.

        Raise BlockingIOError if no data is available, or if the packet must be skipped.
        """
        if not self._data:
            self.fill()
        if size > MAX_MQTT_PACKET_BYTES or self.is_over or not (self._data or self._has_ended):
            raise BlockingIOError
        chunk = bytes(self._data[:size])
        self._remove(size)
        return chunk

    def take_messages(self) -> Iterator[Received]:
        """Yield the QoS 0 messages before any other packet, until the time set by `allow` expires."""
        at = 0
        while not self.is_over:
            found = parse_message(self._data, at)
            if found is None and self._later and len(self._data) - at <= MAX_MQTT_PACKET_BYTES:
                del self._data[:at]
                at = 0
                self._append_later()  # the packet may be incomplete
            elif found is None or found[1] - at > MAX_MQTT_PACKET_BYTES:
                break
            else:
                at = found[1]
                yield found[0]
        self._remove(at)


class _PassingQueue(asyncio.Queue[aiomqtt.Message]):
    """Replaces the library's queue. The queue is always empty, because it passes each message to `receive`, and
    counts the messages."""

    def __init__(self, receive: Callable[[Received], None]) -> None:
        super().__init__()
        self.received = 0
        self._receive = receive

    def pass_on(self, message: Received) -> None:
        self.received += 1
        self._receive(message)

    def put_nowait(self, item: aiomqtt.Message) -> None:
        """Pass on a message that the library has read."""
        payload = item.payload if isinstance(item.payload, bytes | bytearray) else b""
        self.pass_on(Received(item.topic.value, bytes(payload), bool(item.retain)))


class _PacketReader:
    """Reads one connection in steps, so that requests can run between two steps.

    The reader empties the socket whenever it is readable, because a broker drops messages for a slow reader. The
    function `fail` is called with the error that ends the connection. Complete QoS 0 messages go to `receive`. The
    library, which is ten times slower, reads all other packets.
    """

    def __init__(self, client: Any, sock: BufferedSocket, loop: asyncio.AbstractEventLoop,
                 receive: Callable[[Received], None], fail: Callable[[Exception], None]) -> None:  # fmt: skip
        self._client, self._sock, self._loop = client, sock, loop
        self._receive, self._fail = receive, fail
        self._has_begun = False
        self._turns_left = 0

    def read(self) -> None:
        """Read the available data. Then process the packets, unless a later call is already scheduled."""
        try:
            self._sock.fill()
            if not self._has_begun and (first := self._sock.first_byte) is not None:
                if first != _CONNACK:
                    raise aiomqtt.MqttError(_NO_MQTT)
                self._has_begun = True
            if self._turns_left == 0:
                self._take()
        except Exception as error:
            self._fail(error)

    def _take(self) -> None:
        sock, client = self._sock, self._client
        sock.allow(READ_STEP_SECS)
        self._take_packets()
        while client.socket() is sock and sock.pending() and not sock.is_over:
            self._take_packets()
        if client.socket() is sock and sock.pending():
            self._turns_left = REQUEST_TURNS
            self._loop.call_soon(self._wait)

    def _take_packets(self) -> None:
        packet = self._client._in_packet  # noqa: SLF001
        if packet["command"] == 0:
            has_messages = False
            for message in self._sock.take_messages():
                has_messages = True
                self._receive(message)
            if has_messages:
                return
        self._client.loop_read()
        packet = self._client._in_packet  # noqa: SLF001
        if (size := packet["to_process"]) > MAX_MQTT_PACKET_BYTES:
            log.warning(
                "a message of %d MiB was ignored: it is larger than %d MiB", size >> 20, MAX_MQTT_PACKET_BYTES >> 20
            )
            self._sock.skip(size)
            packet.update(_PING_ANSWER)

    def _wait(self) -> None:
        self._turns_left -= 1
        self._loop.call_soon(self._wait) if self._turns_left else self.read()


class _ArrivalTimer:
    """Restarts a timeout as long as messages arrive, up to `MAX_FLOOD_SECS`.

    A nested function that schedules itself would refer to itself, so the task of each wait would stay in memory
    until the next full garbage collection.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, timeout: asyncio.Timeout, limit: float, queue: _PassingQueue
    ) -> None:
        self._loop, self._timeout, self._limit, self._queue = loop, timeout, limit, queue
        self._end = loop.time() + MAX_FLOOD_SECS
        self._schedule()

    def cancel(self) -> None:
        self._timer.cancel()

    def _schedule(self) -> None:
        self._timer = self._loop.call_later(self._limit / 4, self._check, self._queue.received)

    def _check(self, before: int) -> None:
        if self._queue.received != before and self._loop.time() < self._end and not self._timeout.expired():
            self._timeout.reschedule(self._loop.time() + self._limit)
        self._schedule()


class Client(aiomqtt.Client):
    """The library's client with other waits. A wait can be cancelled at any time, and does not time out while many
    messages arrive. The library uses `asyncio.wait_for`. In Python 3.11, that function loses a cancellation that
    comes together with the result, so that the cancelled task never ends. In addition, an acknowledgement arrives
    only after all messages that the broker had to send earlier. Therefore the timeout restarts as long as messages
    arrive, up to `MAX_FLOOD_SECS`.
    """

    def __init__(self, host: str, port: int, receive: Callable[[Received], None], **settings: Any) -> None:
        super().__init__(host, port, **settings)
        self._passing = _PassingQueue(receive)
        self._queue = self._passing
        self._tasks = Tasks()

    async def __aenter__(self) -> Self:
        """Connect. Raise `MqttError` with the cause, even if the connection breaks immediately after the answer."""
        self._is_abandoned = False
        end = self._disconnected
        for each in (self._connected, end):  # otherwise, asyncio logs that the exception was never retrieved
            each.add_done_callback(lambda it: it.cancelled() or it.exception())
        try:
            await super().__aenter__()
        except BaseException as error:
            self._is_abandoned = True
            self._client._sock_close()  # noqa: SLF001 - the library leaves the socket open
            if isinstance(error, MqttConnectError) or not isinstance(error, aiomqtt.MqttError):
                raise
            raise aiomqtt.MqttError(str(end.exception() or error if end.done() else error)) from None
        if end.done() and (cause := end.exception()) is not None:
            await self.__aexit__(None, None, None)
            raise aiomqtt.MqttError(str(cause))
        return self

    async def close(self, limit_secs: float) -> None:
        """Disconnect. If the broker does not read the end of the session within the limit, close the socket. The
        library would wait as long as messages arrive."""
        try:
            async with asyncio.timeout(limit_secs):
                await self.__aexit__(None, None, None)
        except (aiomqtt.MqttError, TimeoutError) as error:
            self._logger.debug("disconnect: %s", error)
        finally:
            self._client._sock_close()  # noqa: SLF001
            del self._client, self._misc_task  # both refer to this object

    async def _misc_loop(self) -> None:
        """Send pings until the connection ends. The library's own method would wake up every second."""
        secs = self._client.keepalive * PING_CHECK_SHARE
        while self._client.loop_misc() == 0 and not self._disconnected.done():
            await asyncio.wait({self._disconnected}, timeout=secs)

    async def _wait_for(self, fut: Awaitable[T], timeout: float | None) -> T:
        limit = self.timeout if timeout is None else timeout
        if limit == math.inf:
            return await fut
        try:
            async with asyncio.timeout(limit) as scope:
                timer = _ArrivalTimer(self._loop, scope, limit, self._passing)
                try:
                    return await fut
                finally:
                    timer.cancel()
        except TimeoutError:
            raise aiomqtt.MqttError("Operation timed out") from None

    def _on_socket_open(self, client: Any, userdata: Any, sock: Any) -> None:
        """Read the socket through a buffer, in steps. This method runs on the thread that connects, possibly after
        the wait was cancelled.

        Do not call the library's method. It adds its own reader first, and that reader would block the event loop if
        the server sends something before the request to connect.
        """
        if self._is_abandoned:
            sock.close()
            return
        buffered = client._sock = BufferedSocket(sock, self._loop)  # noqa: SLF001
        reader = _PacketReader(client, buffered, self._loop, self._passing.pass_on, self._fail)
        self._loop.call_soon_threadsafe(self._start_reading, sock, reader)

    def _start_reading(self, sock: Any, reader: _PacketReader) -> None:
        self._watch(self._loop.add_reader, sock, reader.read)
        self._misc_task = self._tasks.start(self._misc_loop(), "pings of a broker")

    def _on_socket_register_write(self, client: Any, userdata: Any, sock: Any) -> None:
        """Write when the socket becomes writable. This method may run on the thread that connects."""
        self._loop.call_soon_threadsafe(self._watch, self._loop.add_writer, sock, self._write)

    @staticmethod
    def _watch(add: Callable[[int, Callable[[], None]], None], sock: Any, callback: Callable[[], None]) -> None:
        """Add a callback for the socket, unless the socket is closed. Another socket may then have its number."""
        if (number := sock.fileno()) >= 0:
            add(number, callback)

    def _write(self) -> None:
        try:
            self._client.loop_write()
        except Exception as error:
            self._fail(error)

    def _on_disconnect(self, *arguments: Any, **named: Any) -> None:
        """End the wait for the broker's answer too. The library would wait until the timeout."""
        self._fail_to_connect(CLOSED_EARLY)
        super()._on_disconnect(*arguments, **named)

    def _fail(self, error: Exception) -> None:
        """End the connection with this error, unless it has ended."""
        self._fail_to_connect(str(error))
        if not self._disconnected.done():
            self._disconnected.set_exception(error)

    def _fail_to_connect(self, reason: str) -> None:
        """End the wait for the broker's answer. The library replaces `_connected` when a connection has ended."""
        if not (self._connected.done() or self._disconnected.done() or self._is_abandoned):
            self._connected.set_exception(aiomqtt.MqttError(reason))


def parse_message(data: bytearray, start: int = 0) -> tuple[Received, int] | None:
    """Return the QoS 0 message that begins at index `start` of the data, and the index after the message.

    Return None for any other packet, an incomplete packet, or an invalid topic.
    """
    if start >= len(data) or data[start] & _PUBLISH_BITS != _PUBLISH:
        return None
    size, at, has_more = 0, start + 1, True
    while has_more:
        if at - start > _MAX_SIZE_BYTES or at == len(data):
            return None
        size |= (data[at] & 0x7F) << 7 * (at - start - 1)
        has_more = data[at] > 0x7F
        at += 1
    end = at + size
    topic_end = at + 2 + int.from_bytes(data[at : at + 2], "big")
    if not topic_end <= end <= len(data):
        return None
    try:
        topic = data[at + 2 : topic_end].decode()
    except UnicodeDecodeError:
        return None
    if not topic or "+" in topic or "#" in topic:
        return None
    return Received(topic, bytes(data[topic_end:end]), bool(data[start] & _RETAINED_BIT)), end
