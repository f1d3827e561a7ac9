"""Polling: an adapter that reads one HTTP address every few seconds, and decides when its devices are offline."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Awaitable
from typing import Any, Self, TypeVar

from appliance.adapters.base import COMMAND_TIMEOUT_SECS, Adapter, AdapterContext
from appliance.adapters.device_http import HttpClient
from appliance.errors import AdapterFailed, BadAnswer, Unreachable
from appliance.home.model import Report
from appliance.tasks import end_within

POLLS_TO_LOSE = 2
"""Polls in a row without an answer that make an adapter's devices offline; so does one command."""

MAX_BACK_OFF_SECS = 60.0
"""Seconds between polls during an outage at most, unless the interval itself is longer."""

JITTER = 0.25
"""The random part of a back-off, so that devices that were lost together are not polled together."""

T = TypeVar("T")


class PollingAdapter(Adapter):
    """Polls one address every `poll_interval` seconds, with back-off while it does not answer.

    `misses` counts polls without an answer; a command without one counts as enough of them.
    """

    def __init__(self, context: AdapterContext, http: HttpClient, poll_interval: float) -> None:
        super().__init__(context, http.address)
        self.http = http
        self.poll_interval = poll_interval
        self.misses = 0

    @classmethod
    def of(cls, settings: Any, context: AdapterContext) -> Self:
        """The adapter of a section whose settings have `base_url` and `poll_interval_secs`."""
        http = HttpClient(context.open_session(), settings.base_url, context.clock)
        return cls(context, http, settings.poll_interval_secs)

    @abstractmethod
    async def poll(self) -> Report:
        """Read the state of every device behind this adapter; raises `AdapterFailed`."""

    async def run(self) -> None:
        """Poll until cancelled; at once when an outage ends."""
        began = self.clock.monotonic()
        await self.poll_once()
        self.publish.started()
        recovered = self.publish.recovered
        while True:
            recovered.clear()
            pause = began + delay_after(self.misses, self.poll_interval) - self.clock.monotonic()
            await self.clock.wait(recovered, max(pause, 0.0))
            began = self.clock.monotonic()
            await self.poll_once()

    async def poll_once(self) -> None:
        """Poll and publish the result, unless a command ran meanwhile: the reading may be older than its change."""
        began = self.clock.monotonic()
        ended_before, answers_before = self.gate.commands_ended, self.http.answers
        try:
            outcome: Report | AdapterFailed = await self.within_limit(self.poll())
        except AdapterFailed as error:
            outcome = error
        if self.gate.is_stale(ended_before):
            return
        if isinstance(outcome, Report):
            self.misses = 0
            self.publish.report(outcome)
            self.publish.answered(self.clock.monotonic() - began)
        elif isinstance(outcome, Unreachable):
            self._on_miss(outcome, self.misses + 1)
        else:
            if self.http.answers != answers_before:
                self.misses = 0
                self.publish.reached()
            self.publish.failed(outcome)

    async def within_limit(self, work: Awaitable[T]) -> T:
        """The result of the work, within five seconds. Raises `Unreachable` only if nothing at all was answered."""
        address, answers_before = self.http.address, self.http.answers
        try:
            result = await end_within(work, COMMAND_TIMEOUT_SECS)
        except TimeoutError:
            if self.http.answers == answers_before:
                raise Unreachable(f"{address} does not answer (nothing for {COMMAND_TIMEOUT_SECS:g} s)") from None
            raise BadAnswer(f"{address} took longer than {COMMAND_TIMEOUT_SECS:g} s") from None
        except Unreachable as error:
            if self.http.answers == answers_before:
                raise
            raise BadAnswer(str(error)) from None
        self.misses = 0
        return result

    def on_unreachable(self, error: Unreachable) -> None:
        """One command without an answer is an outage."""
        self._on_miss(error, max(self.misses, POLLS_TO_LOSE))

    def _on_miss(self, error: Unreachable, misses: int) -> None:
        self.misses = misses
        if misses >= POLLS_TO_LOSE:
            self.publish.lost(error)
        else:
            self.publish.record_error(error)


def delay_after(misses: int, interval: float) -> float:
    """Seconds from one poll to the next: the interval, from two misses on doubled with each, with jitter."""
    if misses < POLLS_TO_LOSE:
        return interval
    delay = min(interval * 2.0 ** min(misses - 1, 16), MAX_BACK_OFF_SECS)
    return max(interval, delay * (1 - JITTER * random.random()))
