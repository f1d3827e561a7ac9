"""Sends values in batches to a server that accepts line protocol. Values wait in memory while the server is
unreachable.

InfluxDB, VictoriaMetrics, QuestDB, and GreptimeDB accept this protocol, with one line per value:
`temperature,device=hall:climate,room=hall,unit=celsius value=21.5 1795164536595000000`. The line contains the
attribute, its device and room, the number, and the time in nanoseconds since 1970. A word becomes `text="on"`. For
words with two states, a number is added (`value=1`), because some servers store only numbers. Each part of a colour
is a separate field.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from math import isfinite
from typing import Any

from msgspec import Struct

from appliance.clock import EPOCH, Clock, timestamp
from appliance.errors import LaresError
from appliance.home.bus import Bus, Rank
from appliance.home.events import DeviceStateChanged, Event
from appliance.tasks import Tasks, end_within

MAX_FIELD_CHARS = 1024
"""Maximum number of characters of a string value."""

SWITCHES = {
    **dict.fromkeys(("on", "open", "detected", "occupied", "unlocked", "online", "playing"), 1),
    **dict.fromkeys(("off", "closed", "clear", "unoccupied", "locked", "offline", "unavailable", "stopped"), 0),
}
"""The numbers for words of attributes with two states."""

_CONTROL = re.compile(r"[\0-\x1f\x7f]")


def encode_line(device_id: str, room_id: str | None, attribute: str, value: Any, at_micros: int) -> bytes | None:
    """Return the line for the value, with newline. Return None if line protocol cannot represent the value."""
    fields = ",".join(_fields(value))
    if not fields:
        return None
    unit = value.get("unit") if isinstance(value, Mapping) else None
    tags = {"device": device_id, "room": room_id, "unit": unit}
    named = "".join(f",{name}={_escape(each)}" for name, each in tags.items() if isinstance(each, str) and each)
    return f"{_escape(attribute)}{named} {fields} {at_micros}000\n".encode(errors="replace")


def _fields(value: Any) -> Iterator[str]:
    if isinstance(value, bool) or _is_number(value):
        yield f"value={_number(value)}"
    elif isinstance(value, str):
        if value in SWITCHES:
            yield f"value={SWITCHES[value]}"
        yield f"text={_quote(value)}"
    elif isinstance(value, Mapping) and _is_number(value.get("value")):
        yield f"value={_number(value['value'])}"
    elif isinstance(value, Mapping):
        yield from (f"{_escape(name)}={_number(each)}" for name, each in value.items() if name and _is_number(each))
    elif value is not None and not isinstance(value, float):
        yield f"text={_quote(json.dumps(value, default=str))}"


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value)


def _number(value: float) -> str:
    """Format the number without the integer suffix `i`, because a field with floats accepts no integers."""
    return repr(int(value) if isinstance(value, bool) else value)


def _quote(text: str) -> str:
    cut = _CONTROL.sub(" ", text[:MAX_FIELD_CHARS])
    return '"' + cut.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escape(text: str) -> str:
    """Escape a name or a tag's value. The result never ends with a backslash, which would escape the next
    character."""
    plain = _CONTROL.sub(" ", text)
    plain = f"{plain[:-1]}_" if plain.endswith("\\") else plain
    return re.sub(r"([, =])", r"\\\1", plain)


SEND_AFTER_SECS = 10.0
"""Maximum seconds between a value and the request that sends it with all other waiting values."""

REQUEST_TIMEOUT_SECS = 30.0

MAX_BACK_OFF_SECS = 60.0

MAX_REQUEST_BYTES = 512 * 1024
"""Maximum size of the lines in a request. A larger batch is sent alone."""

BATCH_BYTES = 32 * 1024
"""Size of the lines that are compressed together. Compressing a larger batch would block the event loop."""

MAX_QUEUE_BYTES = 8 << 20
"""Maximum memory of waiting compressed lines: half a day of 200 devices that report every ten seconds."""

BYTES_PER_BATCH = 112
"""Memory of a batch apart from its compressed lines."""

LAST_SEND_SECS = 1.0
"""Timeout in seconds of the last request before a stop."""

MAX_REASON_CHARS = 200

log = logging.getLogger("history")


PostLines = Callable[[bytes], Awaitable[tuple[int, str]]]
"""Sends lines once, and returns the status and text of the response. Raises `LaresError` if there is no response."""


class _Batch(Struct, frozen=True):
    packed: bytes
    size: int
    lines: int

    @property
    def memory(self) -> int:
        return len(self.packed) + BYTES_PER_BATCH


class LineQueue:
    """A queue of compressed lines in at most `max_bytes` of memory. If the queue is full, the oldest lines are
    dropped. `dropped` is the number of dropped lines; `lines` is the number of waiting lines."""

    def __init__(self, max_bytes: int = MAX_QUEUE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._batches: deque[_Batch] = deque()
        self._fresh: list[bytes] = []
        self._fresh_bytes = 0
        self.bytes = self.lines = self.dropped = 0

    def add(self, line: bytes) -> None:
        self._fresh.append(line)
        self._fresh_bytes += len(line)
        self.lines += 1
        if self._fresh_bytes >= BATCH_BYTES:
            self._pack()

    def take(self, max_bytes: int) -> list[_Batch]:
        """Remove and return the oldest batches of at most `max_bytes` in total. Return at least one batch, if any."""
        self._pack()
        taken: list[_Batch] = []
        while self._batches and (not taken or sum(each.size for each in taken) + self._batches[0].size <= max_bytes):
            taken.append(self._batches.popleft())
        self._count(taken, -1)
        return taken

    def put_back(self, taken: list[_Batch]) -> None:
        """Restore these batches at the front of the queue."""
        self._batches.extendleft(reversed(taken))
        self._count(taken, 1)
        self._bound()

    def _pack(self) -> None:
        if self._fresh:
            batch = _Batch(zlib.compress(b"".join(self._fresh), 1), self._fresh_bytes, len(self._fresh))
            self._fresh, self._fresh_bytes = [], 0
            self._batches.append(batch)
            self.bytes += batch.memory
            self._bound()

    def _count(self, batches: list[_Batch], sign: int) -> None:
        self.bytes += sign * sum(each.memory for each in batches)
        self.lines += sign * sum(each.lines for each in batches)

    def _bound(self) -> None:
        while self.bytes > self._max_bytes:
            oldest = self._batches.popleft()
            self._count([oldest], -1)
            self.dropped += oldest.lines


class LineWriter:
    """Sends the changed values of all devices while the context is open. `where` is the server's name in messages.

    Lines that the server rejects (400, 422) are dropped. After any other failure, the writer retries after pauses of
    up to a minute. While the clock is not trusted, no values are sent.
    """

    def __init__(self, post: PostLines, where: str, bus: Bus, clock: Clock, is_trusted: Callable[[], bool]) -> None:
        self._post = post
        self._where = where
        self._bus = bus
        self._clock = clock
        self._is_trusted = is_trusted
        self._queue = LineQueue()
        self._has_lines = asyncio.Event()
        self._tasks = Tasks()
        self._failures = self._failures_in_row = self._sent = self._refused = self._requests = 0
        self._max_request_bytes = MAX_REQUEST_BYTES
        self._failure: str | None = None
        self._refusal: str | None = None
        self._last_success: str | None = None

    async def __aenter__(self) -> LineWriter:
        self._stop_listening = self._bus.listen(self._on_event, DeviceStateChanged, rank=Rank.RECORD)
        self._tasks.start(self._send_for_ever(), "history export")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop_listening()
        await self._tasks.__aexit__()
        if self._failure is None:
            try:
                await end_within(self._send_all(), LAST_SEND_SECS)
            except TimeoutError:
                log.warning("%s did not answer in time; the latest values were not sent", self._where)

    def figures(self) -> dict[str, Any]:
        """Return the data for `GET /diagnostics`."""
        return {
            "server": self._where,
            "sent": self._sent,
            "requests": self._requests,
            "waiting": self._queue.lines,
            "waiting_bytes": self._queue.bytes,
            "dropped": self._queue.dropped,
            "refused": self._refused,
            "refusal": self._refusal,
            "failure": self._failure,
            "failures": self._failures,
            "last_success": self._last_success,
        }

    def _on_event(self, event: Event) -> None:
        assert isinstance(event, DeviceStateChanged)
        if not self._is_trusted():
            return
        device = event.device
        at = (device.updated_at - EPOCH).total_seconds() * 1_000_000
        for name, value in (device.attributes if "state" in event.changed else event.new_values).items():
            line = encode_line(device.id, device.room_id, name, value, round(at))
            if line is not None:
                self._queue.add(line)
        if self._queue.lines:
            self._has_lines.set()

    async def _send_for_ever(self) -> None:
        while True:
            await self._has_lines.wait()
            back_off = min(SEND_AFTER_SECS * 2.0 ** min(self._failures_in_row, 16), MAX_BACK_OFF_SECS)
            await self._clock.sleep(back_off)
            self._has_lines.clear()
            await self._send_all()
            if self._queue.lines:
                self._has_lines.set()

    async def _send_all(self) -> None:
        """Send waiting lines until the queue is empty, or a request fails."""
        while self._queue.lines:
            batches = self._queue.take(self._max_request_bytes)
            try:
                is_done = await self._send(batches)
            except BaseException:
                self._queue.put_back(batches)
                raise
            if not is_done:
                self._queue.put_back(batches)
                if self._failure is not None:
                    return

    async def _send(self, batches: list[_Batch]) -> bool:
        """Send the batches. Return whether the server has accepted or rejected the batches. If not, the batches
        must be sent again."""
        self._requests += 1
        count = sum(each.lines for each in batches)
        try:
            body = b"".join(zlib.decompress(each.packed) for each in batches)
            status, text = await end_within(self._post(body), REQUEST_TIMEOUT_SECS)
        except TimeoutError:
            return self._note_failure(f"no answer within {REQUEST_TIMEOUT_SECS:.0f} s")
        except LaresError as error:
            return self._note_failure(str(error))
        if 200 <= status < 300:
            self._note_success(count)
            return True
        if status == 413 and len(batches) > 1:
            self._max_request_bytes = max(BATCH_BYTES, sum(each.size for each in batches) // 2)
            return False
        answer = f"{status} {text}".strip()[:MAX_REASON_CHARS]
        if status in (400, 413, 422):
            self._note_refusal(count, answer)
            return True
        return self._note_failure(f"it answers {answer}")

    def _note_success(self, count: int) -> None:
        if self._failure is not None:
            log.info("%s accepts values again", self._where)
        self._failure, self._failures_in_row = None, 0
        self._sent += count
        self._last_success = timestamp(self._clock.now())

    def _note_refusal(self, count: int, answer: str) -> None:
        if self._refusal is None:
            log.warning("%s rejects values: %s; the hub drops them", self._where, answer)
        self._failure, self._failures_in_row = None, 0
        self._refusal = answer
        self._refused += count

    def _note_failure(self, reason: str) -> bool:
        if self._failure is None:
            log.warning(
                "%s does not accept values: %s; the hub keeps them and sends them later",
                self._where,
                reason,
            )
        self._failure = reason
        self._failures += 1
        self._failures_in_row += 1
        return False
