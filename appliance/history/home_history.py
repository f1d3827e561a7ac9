"""The history of a home: its parts, and how they share memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta, tzinfo
from functools import partial

from appliance.clock import Clock
from appliance.history.attribute_reader import AttributeReader
from appliance.history.card_history import CardHistory
from appliance.history.card_writer import Written
from appliance.history.device_history import DeviceHistory
from appliance.history.execution_history import CommandAudit, ExecutionHistory
from appliance.history.line_writer import LineWriter, PostLines
from appliance.history.series import HOUR_MS
from appliance.home.bus import Bus
from appliance.settings import HistorySettings
from appliance.store.month_files import MonthFiles
from appliance.tables.addresses import server_of

AUDIT_SHARE = 8
"""The audit of commands may take this part of the history's memory, the values of devices the rest."""


class HomeHistory:
    """What devices showed, who commanded them, and what was executed. Listens to the bus from its making on.

    `devices` and `commands` are in memory; `card` is what outlives a restart, None where `history.keep_days` is 0;
    `writer` sends values to a server, None where there is none. `attributes` reads from memory and card.
    """

    card: CardHistory | None = None
    writer: LineWriter | None = None

    def __init__(self, settings: HistorySettings, bus: Bus, clock: Clock, zone: tzinfo) -> None:
        budget = settings.max_mb << 20
        self.devices = DeviceHistory(bus, clock, budget - budget // AUDIT_SHARE)
        self.commands = CommandAudit(bus, budget // AUDIT_SHARE)
        self.attributes = AttributeReader(self.devices, None, clock, zone)
        self._settings = settings
        self._bus = bus
        self._clock = clock
        self._zone = zone

    def connect(
        self,
        months: MonthFiles,
        write_on: Callable[[Callable[[], Written]], Awaitable[Written]],
        is_trusted: Callable[[], bool],
        lines_to: Callable[[str, str | None], PostLines],
    ) -> HomeHistory:
        """Itself, to be entered, with the files of the card, and what makes of an address and a token a way there."""
        settings = self._settings
        if settings.keep_days:
            offset = self._clock.now().astimezone(self._zone).utcoffset() or timedelta()
            self.card = CardHistory(
                months,
                self._bus,
                self._clock,
                write_on,
                keep_days=settings.keep_days,
                max_day_bytes=settings.card_kb_per_day << 10,
                is_trusted=is_trusted,
                grid_ms=int(offset.total_seconds() * -1000) % HOUR_MS,
            )
            self.attributes = AttributeReader(self.devices, self.card, self._clock, self._zone)
        if settings.influx_url is not None:
            post, where = lines_to(settings.influx_url, settings.influx_token), server_of(settings.influx_url)
            self.writer = LineWriter(post, where, self._bus, self._clock, is_trusted)
        return self

    async def __aenter__(self) -> HomeHistory:
        async with AsyncExitStack() as stack:
            for part in (self.card, self.writer):
                if part is not None:
                    await stack.enter_async_context(part)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def beat(self) -> None:
        """To be called every few minutes: writes to the card what is due. Never raises."""
        if self.card is not None:
            await self.card.beat()

    def new_executions(self, kind: str) -> ExecutionHistory:
        """The executions of scenes or of automations, to be called once for each."""
        note = None if self.card is None else partial(self.card.collector.note_execution, kind)
        return ExecutionHistory(on_add=note)
