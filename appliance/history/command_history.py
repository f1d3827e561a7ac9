"""Command audit: who commanded which device, and what came of it, within a budget of bytes."""

from __future__ import annotations

import json
from collections import deque
from heapq import nlargest
from sys import getsizeof
from typing import Any

from msgspec import Struct

from appliance.clock import timestamp, to_millis
from appliance.history.period import Period
from appliance.home.bus import Bus
from appliance.home.events import CommandEnded, Event
from appliance.home.json_shapes import STATED_COMMAND

COMMAND_ENTRY_BYTES = 240
"""What an entry costs beside its text."""


class _CommandEntry(Struct, frozen=True, order=True):
    at: int
    number: int
    text: str


class CommandAudit:
    """Listens to the bus and keeps the commands that were sent, never in more than `max_bytes`.

    Where there is no room, the device with the most entries loses its oldest.
    """

    def __init__(self, bus: Bus, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: dict[str, deque[_CommandEntry]] = {}
        self._bytes = 0
        self._count = 0
        bus.listen(self._on_event, CommandEnded)

    def list_commands(self, period: Period, device_id: str | None = None) -> list[dict[str, Any]]:
        """The commands in the period, to every device or to one, newest first, as JSON objects."""
        first, last = period.bounds_ms()
        kept = self._entries.values() if device_id is None else [self._entries.get(device_id, deque())]
        found = (entry for entries in kept for entry in entries if first <= entry.at <= last)
        return [json.loads(entry.text) for entry in nlargest(period.max_entries, found)]

    def figures(self) -> dict[str, int]:
        """What is kept at present, and how many commands there were since the start."""
        entries = sum(map(len, self._entries.values()))
        return {"bytes": self._bytes, "max_bytes": self._max_bytes, "entries": entries, "recorded": self._count}

    def _on_event(self, event: Event) -> None:
        assert isinstance(event, CommandEnded)
        self._count += 1
        entry = _CommandEntry(to_millis(event.at), self._count, _encode(event))
        self._entries.setdefault(event.device_id, deque()).append(entry)
        self._bytes += _size(entry)
        while self._bytes > self._max_bytes:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        device_id, entries = max(self._entries.items(), key=lambda item: len(item[1]))
        self._bytes -= _size(entries.popleft())
        if not entries:
            del self._entries[device_id]


def _encode(event: CommandEnded) -> str:
    """The entry as JSON."""
    entry = {
        "recorded_at": timestamp(event.at),
        "source": event.source,
        "room_id": event.room_id,
        "device_id": event.device_id,
        "command": STATED_COMMAND(event.command),
        "status": event.status,
        "message": event.message,
    }
    return json.dumps(entry)


def _size(entry: _CommandEntry) -> int:
    return getsizeof(entry.text) + COMMAND_ENTRY_BYTES
