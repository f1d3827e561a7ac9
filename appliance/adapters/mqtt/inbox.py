"""The bounded queues of received messages, one per device, so that a noisy device delays only itself."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator

from msgspec import Struct

from appliance.adapters.mqtt.messages import Received

MAX_MESSAGES = 60_000

MAX_WAITING_BYTES = 64 * 1024 * 1024

TURN_BYTES = 2_000
"""Size of the messages that one device may take in its turn. A device with small, cheap messages can take several of
them, and so does not wait one turn for each message."""

CROWDED = 25
"""Number of waiting messages of a device above which each of its topics keeps only its newest state."""

MANY_MESSAGES, CROWDED_IF_MANY = 5_000, 3
"""If this many messages of all devices wait, the second number replaces `CROWDED`. Otherwise, a flood for 2,000
devices would fill 50 MB, and the hub would still process old states a minute after the broker is lost."""

DISCARD_AT_ONCE = 100


class _Waiting(Struct, gc=False):
    """A place in a queue. A newer message of the same topic can replace the message."""

    message: Received
    number: int
    device: str


class Inbox:
    """Waiting messages, in one queue per device. `dropped` counts the messages that were replaced by newer ones.

    - `device_of`: returns the device that a topic belongs to, or another name for a queue.
    - `has_events`: returns whether events arrive at a topic. Newer messages do not replace events.
    """

    def __init__(
        self, device_of: Callable[[str], str] = str, has_events: Callable[[str], bool] = lambda _: False
    ) -> None:
        self.dropped = 0
        self._device_of = device_of
        self._has_events = has_events
        self._queues: OrderedDict[str, deque[_Waiting]] = OrderedDict()  # by device; the first device is next
        self._by_length: dict[int, dict[str, None]] = {}  # devices by the number of their messages
        self._longest = 0
        self._latest: dict[str, _Waiting] = {}  # the newest message of each topic
        self._count = 0
        self._bytes = 0
        self._number = 0
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return self._count

    def put(self, message: Received) -> None:
        """Add a message. If too many messages wait, it takes the place of an older message of its topic. Beyond the
        limits, remove the oldest message of the device with the most messages."""
        latest = self._latest.get(message.topic)
        device = self._device_of(message.topic) if latest is None else latest.device
        if (queue := self._queues.get(device)) is None:
            queue = self._queues[device] = deque()
        crowded = CROWDED if self._count < MANY_MESSAGES else CROWDED_IF_MANY
        if latest is not None and len(queue) >= crowded and not self._has_events(message.topic):
            self._bytes -= latest.message.size
            self.dropped += 1
            latest.message = message
        else:
            self._number += 1
            self._latest[message.topic] = waiting = _Waiting(message, self._number, device)
            self._count += 1
            queue.append(waiting)
            self._note_length(device, len(queue) - 1, len(queue))
        self._bytes += message.size
        while self._count > MAX_MESSAGES or self._bytes > MAX_WAITING_BYTES:
            self._pop(next(iter(self._by_length[self._longest])))
            self.dropped += 1
        self._arrived.set()

    def take(self, limit: int) -> list[Received]:
        """Remove and return at most `limit` messages, sorted by their arrival. The devices take turns."""
        taken: list[_Waiting] = []
        while self._queues and len(taken) < limit:
            device, room = next(iter(self._queues)), TURN_BYTES
            while room > 0 and device in self._queues and len(taken) < limit:
                taken.append(self._pop(device))
                room -= taken[-1].message.size
            if device in self._queues:
                self._queues.move_to_end(device)
        return [each.message for each in sorted(taken, key=lambda each: each.number)]

    def discard_all(self) -> Iterator[None]:
        """Discard all messages in steps, because freeing thousands of messages takes long."""
        while self._count:
            self.take(DISCARD_AT_ONCE)
            yield

    async def wait(self) -> None:
        """Wait until a message arrives."""
        await self._arrived.wait()

    def _pop(self, device: str) -> _Waiting:
        """Remove the oldest message of the device."""
        queue = self._queues[device]
        self._note_length(device, len(queue), len(queue) - 1)
        waiting = queue.popleft()
        if not queue:
            del self._queues[device]
        self._count -= 1
        self._bytes -= waiting.message.size
        if self._latest[waiting.message.topic] is waiting:
            del self._latest[waiting.message.topic]
        if not self._queues:
            # emptied dictionaries would keep the memory of their former entries
            self._queues, self._by_length, self._latest = OrderedDict(), {}, {}
            self._arrived.clear()
        return waiting

    def _note_length(self, device: str, before: int, after: int) -> None:
        """Note that one message was added or removed, so that finding the longest of 2,000 queues takes no search."""
        if before:
            del self._by_length[before][device]
            if not self._by_length[before]:
                del self._by_length[before]
        if after:
            self._by_length.setdefault(after, {})[device] = None
        if after > self._longest or self._longest not in self._by_length:
            self._longest = after
