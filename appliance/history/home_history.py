"""Combines the parts of a home's history, and divides the memory between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import AsyncExitStack
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Any, TypeVar

from appliance.clock import Clock, to_millis
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

T = TypeVar("T")

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

    `read_commands` and `read_executions` read from memory and card, newest first, in steps, until `take` returns
    False. Entries of the current run precede older entries, even if the clock was wrong.
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

    async def read_commands(
        self, period: Period, device_id: str | None, take: Callable[[dict[str, Any]], bool]
    ) -> None:
        """Pass the period's commands as JSON objects to `take`, to one device or to all devices."""
        card = self.card
        known = self.commands.iterate_commands(period, device_id)
        older = None if card is None else lambda times: card.older_commands(times, period, device_id)
        await self._read(known, lambda each: datetime.fromisoformat(each["recorded_at"]), older, take)

    async def read_executions(
        self, kind: str, id_: str, period: Period, take: Callable[[ExecutionEntry], bool]
    ) -> None:
        """Pass the period's executions to `take`. `kind` is `scene` or `automation`."""
        card = self.card
        known = self._executions[kind].iterate_runs(id_, period)
        older = None if card is None else lambda times: card.older_executions(times, period, kind, id_)
        await self._read(known, lambda each: each.executed_at, older, take)

    async def _read(
        self,
        known: Iterable[T],
        time_of: Callable[[T], datetime],
        read_older: Callable[[list[int]], Awaitable[list[T]]] | None,
        take: Callable[[T], bool],
    ) -> None:
        """Pass the known entries to `take`, and then the older entries. Stop if `take` returns False."""
        times: list[int] = []

        def take_all(entries: Iterable[T]) -> Generator[None, None, bool]:
            for each in entries:
                if not take(each):
                    return False
                times.append(to_millis(time_of(each)))
                yield
            return True

        if await in_steps(self._clock, take_all(known)) and read_older is not None:
            await in_steps(self._clock, take_all(await read_older([*times])))
