"""The history of a home: its parts, and how they share memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta, tzinfo
from functools import partial

from appliance.clock import Clock
from appliance.history.attribute_reader import AttributeReader
from appliance.history.card_history import CardHistory
from appliance.history.card_writer import Months, Written
from appliance.history.command_history import CommandAudit
from appliance.history.device_history import DeviceHistory
from appliance.history.execution_history import ExecutionHistory
from appliance.history.series import HOUR_MS
from appliance.home.bus import Bus
from appliance.settings import HistorySettings

AUDIT_SHARE = 8
"""The audit of commands may take this part of the history's memory, the values of devices the rest."""


class HomeHistory:
    """What devices showed, who commanded them, and what was executed. Listens to the bus from its making on.

    `devices` and `commands` are in memory, `card` is what outlives a restart: None until it is opened, and where
    `history.keep_days` is 0. `attributes` reads from all.
    """

    card: CardHistory | None = None

    def __init__(self, settings: HistorySettings, bus: Bus, clock: Clock, zone: tzinfo) -> None:
        budget = settings.max_mb << 20
        self.devices = DeviceHistory(bus, clock, budget - budget // AUDIT_SHARE)
        self.commands = CommandAudit(bus, budget // AUDIT_SHARE)
        self.attributes = AttributeReader(self.devices, None, clock, zone)
        self._settings = settings
        self._bus = bus
        self._clock = clock
        self._zone = zone

    def build_card(
        self,
        months: Months,
        write_on: Callable[[Callable[[], Written]], Awaitable[Written]],
        is_trusted: Callable[[], bool],
    ) -> CardHistory | None:
        """The history on the card, to be entered; None where nothing is to be kept there."""
        if self._settings.keep_days == 0:
            return None
        offset = self._clock.now().astimezone(self._zone).utcoffset() or timedelta()
        self.card = CardHistory(
            months,
            self._bus,
            self._clock,
            write_on,
            keep_days=self._settings.keep_days,
            max_day_bytes=self._settings.card_kb_per_day << 10,
            is_trusted=is_trusted,
            grid_ms=int(offset.total_seconds() * -1000) % HOUR_MS,
        )
        self.attributes = AttributeReader(self.devices, self.card, self._clock, self._zone)
        return self.card

    def new_executions(self, kind: str) -> ExecutionHistory:
        """The executions of scenes or of automations, to be called once for each."""
        note = None if self.card is None else partial(self.card.collector.note_execution, kind)
        return ExecutionHistory(on_add=note)
