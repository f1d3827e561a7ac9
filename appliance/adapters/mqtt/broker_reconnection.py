"""Keeps the connection to a broker, and notices if another client takes over the session."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from appliance.adapters.mqtt.broker import Broker, BrokerConnection, BrokerRefused, NoBroker
from appliance.adapters.reconnection import keep_open
from appliance.clock import Clock
from appliance.errors import AdapterFailed, Unreachable
from appliance.tasks import MAX_BACK_OFF_SECS, back_off, run_together

TAKEN_WITHIN_SECS = 60.0
"""If another client takes over the session twice within these seconds, the pauses between connections grow."""

MAX_TAKEN_SECS = 10.0
"""If a connection is lost within these seconds, another client may have taken over the session. MQTT 3.1.1 reports no
reason."""


class BrokerReconnection:
    """Runs a session on each connection, and reconnects after a pause.

    A successful connection resets the pauses. If another client repeatedly takes over the session, the pauses grow,
    so that two hubs do not keep disconnecting each other.
    """

    def __init__(
        self,
        broker: Broker,
        clock: Clock,
        session: Callable[[BrokerConnection], Coroutine[Any, Any, None]],
        on_lost: Callable[[Unreachable], None],
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._session = session
        self._on_lost = on_lost
        self._taken_at: float | None = None
        self._pause = 0.0
        self._is_stable = False

    async def run(self) -> None:
        """Connect and reconnect until cancelled."""
        await keep_open(self._clock, self._connect, self._on_end, is_stable=lambda: self._is_stable)

    async def _connect(self) -> None:
        began, self._is_stable = None, False
        try:
            async with self._broker.connect() as connection:
                began = self._clock.monotonic()
                self._is_stable = not self._was_taken_recently()
                await run_together(connection.until_lost(), self._session(connection))
        except Unreachable as error:
            if began is None:
                self._taken_at = None  # a broker that did not answer has not accepted another client either
            elif await self._may_be_taken(error, began):
                is_again, self._taken_at = self._was_taken_recently(), self._clock.monotonic()
                if is_again:
                    raise Unreachable(self._broker.conflict()) from None
            raise

    async def _may_be_taken(self, error: Unreachable, began: float) -> bool:
        """Return whether another client may have ended the connection that began at this time."""
        is_short = self._clock.monotonic() - began <= MAX_TAKEN_SECS
        return is_short and not isinstance(error, NoBroker) and not await self._broker.has_ended()

    def _was_taken_recently(self) -> bool:
        secs = TAKEN_WITHIN_SECS + self._pause
        return self._taken_at is not None and self._clock.monotonic() - self._taken_at <= secs

    def _on_end(self, error: AdapterFailed | None, failures: int) -> float:
        self._pause = MAX_BACK_OFF_SECS if isinstance(error, BrokerRefused) else back_off(failures)
        if isinstance(error, Unreachable):
            self._on_lost(error)
        return self._pause
