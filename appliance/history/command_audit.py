"""Past commands with their sources and results, in memory within a size limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from appliance.clock import timestamp
from appliance.history.bounded_log import BoundedLog
from appliance.history.period import Period
from appliance.home.bus import Bus, Rank
from appliance.home.events import CommandEnded, Event
from appliance.home.json_shapes import STATED_COMMAND


class CommandAudit:
    """Collects commands with their sources and results from the bus, in at most `max_bytes`."""

    def __init__(self, bus: Bus, max_bytes: int) -> None:
        self._log = BoundedLog(max_bytes)
        self.figures = self._log.figures
        bus.listen(self._on_event, CommandEnded, rank=Rank.RECORD)

    def iterate_commands(self, period: Period, device_id: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the period's commands as JSON objects, newest first, to one device or to all devices."""
        return map(orjson.loads, self._log.iterate_entries(period, device_id))

    def _on_event(self, event: Event) -> None:
        assert isinstance(event, CommandEnded)
        entry = {
            "recorded_at": timestamp(event.at),
            "source": event.source,
            "room_id": event.room_id,
            "device_id": event.device_id,
            "command": STATED_COMMAND(event.command),
            "status": event.status,
            "message": event.message,
        }
        self._log.add(event.device_id, event.at, orjson.dumps(entry))
