"""Combines the parts of a home's history, and divides the memory between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta, tzinfo
from functools import partial
from typing import Any

from appliance.clock import Clock
from appliance.event_loop import in_steps
from appliance.history.attribute_reader import AttributeReader
from appliance.history.card_history import CardHistory
from appliance.history.command_audit import CommandAudit
from appliance.history.day_budget import Written
from appliance.history.device_history import DeviceHistory
from appliance.history.execution_history import ExecutionEntry, ExecutionHistory
from appliance.history.influx_export import LineWriter, PostLines
from appliance.history.period import Period
from appliance.history.series import HOUR_MS
from appliance.home.bus import Bus
from appliance.home.events import DeviceRemoved, Event
from appliance.settings import HistorySettings
from appliance.store.month_files import MonthFiles
from appliance.tables.addresses import server_of

AUDIT_SHARE = 8
"""Past commands get an eighth of the memory. The other seven eighths are for device values."""


class HomeHistory:
    """The history of values, commands, and executions. Listens to the bus as soon as it is created.

    - `devices`, `commands`: history in memory.
    - `card`: history that survives restarts; None if `history.keep_days` is 0.
    - `influx`: sends values to a server; None if no server is configured.
    - `attributes`: reads attributes from memory and card.
    - `write_on`: runs work on the store's thread.
    - `lines_to`: returns a function that sends lines to a URL with a token.

    `list_commands` and `list_executions` read from memory and card, newest first. Entries of the current run precede
    older entries, even if the clock was wrong.
    """

    def __init__(
        self,
        settings: HistorySettings,
        bus: Bus,
        clock: Clock,
        zone: tzinfo,
        *,
        months: MonthFiles,
        write_on: Callable[[Callable[[], Written]], Awaitable[Written]],
        is_trusted: Callable[[], bool],
        lines_to: Callable[[str, str | None], PostLines],
    ) -> None:
        budget = settings.max_mb << 20
        self.devices = DeviceHistory(bus, clock, budget - budget // AUDIT_SHARE)
        self.commands = CommandAudit(bus, budget // AUDIT_SHARE)
        self._executions: dict[str, ExecutionHistory] = {}
        self.card: CardHistory | None = None
        self.influx: LineWriter | None = None
        offset = clock.now().astimezone(zone).utcoffset() or timedelta()
        grid_ms = int(offset.total_seconds() * -1000) % HOUR_MS
        if settings.keep_days:
            self.card = CardHistory(settings, months, bus, clock, write_on, is_trusted, grid_ms)
        if settings.influx_url is not None:
            post, where = lines_to(settings.influx_url, settings.influx_token), server_of(settings.influx_url)
            self.influx = LineWriter(post, where, bus, clock, is_trusted)
        self.attributes = AttributeReader(self.devices, self.card, clock, zone, grid_ms)
        self._clock = clock
        self._removed: set[str] = set()
        bus.listen(self._note_removed, DeviceRemoved)

    async def __aenter__(self) -> HomeHistory:
        async with AsyncExitStack() as stack:
            for part in (self.card, self.influx):
                if part is not None:
                    await stack.enter_async_context(part)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def pack(self) -> bool:
        """Pack the history of removed devices. Return whether devices were removed."""
        has_removed = bool(self._removed)
        await in_steps(self._clock, self._packing())
        return has_removed

    def _packing(self) -> Iterator[None]:
        removed, self._removed = self._removed, set()
        for device_id in removed:
            self.devices.pack(device_id)
            if self.card is not None:
                self.card.collector.pack(device_id)
            yield

    def _note_removed(self, event: Event) -> None:
        assert isinstance(event, DeviceRemoved)
        self._removed.add(event.device_id)

    async def beat(self) -> None:
        """Write to the card if a write is due. Call this method every few minutes. Never raise."""
        if self.card is not None:
            await self.card.beat()

    def new_executions(self, kind: str) -> ExecutionHistory:
        """Create the execution history for `scene` or `automation`. Call this method once per kind."""
        note = None if self.card is None else partial(self.card.collector.note_execution, kind)
        self._executions[kind] = ExecutionHistory(on_add=note)
        return self._executions[kind]

    async def list_commands(self, period: Period, device_id: str | None = None) -> list[dict[str, Any]]:
        """Return the period's commands as JSON objects, to one device or to all devices."""
        known = self.commands.list_commands(period, device_id)
        return known if self.card is None else known + await self.card.older_commands(known, period, device_id)

    async def list_executions(self, kind: str, id_: str, period: Period) -> list[ExecutionEntry]:
        """Return the period's executions. `kind` is `scene` or `automation`."""
        known = self._executions[kind].list_runs(id_, period)
        return known if self.card is None else known + await self.card.older_executions(known, period, kind, id_)
