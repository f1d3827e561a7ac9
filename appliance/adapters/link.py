"""The link to one adapter's devices: the one place that decides who is offline, and says so once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import TypeVar

from appliance.adapters.base import TIME_LIMIT, Adapter, Answer
from appliance.clock import Clock
from appliance.errors import AdapterFailed, BadAnswer, LaresError, Unreachable
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.model import Report
from appliance.home.registry import OFFLINE, ONLINE, Registry
from appliance.home.values import Value

POLLS_TO_LOSE = 2
"""Polls in a row without an answer that make an adapter's devices offline; one command does it alone."""

TURN_LIMIT = TIME_LIMIT + 1.0
"""Seconds that a command may wait for those before it at the same address."""

T = TypeVar("T")

log = logging.getLogger("adapters")


class Link:
    """Polls and commands one adapter, and keeps count of what was answered.

    `turn` is held by the command that is under way at the vendor's address. `recovered` is set when an outage
    ends, so that polling need not wait out its back-off. `misses` counts polls without an answer; a command
    without one counts as enough of them.
    """

    def __init__(self, adapter: Adapter, turn: asyncio.Lock, registry: Registry, bus: Bus, clock: Clock) -> None:
        self.adapter = adapter
        self.recovered = asyncio.Event()
        self.misses = 0
        self._turn = turn
        self._registry = registry
        self._bus = bus
        self._clock = clock
        self._commands_under_way = 0
        self._commands_ended = 0
        self._is_lost = False
        self._is_faulty = False

    async def poll(self) -> None:
        """Poll once and take in what came. What was asked before a command ended is dropped, answer or none."""
        ended_before, answers_before = self._commands_ended, self.adapter.http.answers
        try:
            outcome: Report | AdapterFailed = await self._within_limit(self.adapter.poll())
        except AdapterFailed as error:
            outcome = error
        except Exception as error:  # a fault of an adapter must not end its polling
            log.debug("%s: poll", self.adapter.name, exc_info=error)
            outcome = BadAnswer(f"the poll failed ({type(error).__name__}: {error})")
        if self._commands_under_way or self._commands_ended != ended_before:
            return
        if isinstance(outcome, Report):
            self._answered(outcome)
        elif isinstance(outcome, Unreachable):
            self._missed(outcome, self.misses + 1)
        else:
            if self.adapter.http.answers != answers_before:
                self._heard()
            self._faltered(outcome)

    async def command(self, device_id: str, command: Command) -> None:
        """Send the command in its turn and take in what was read; raises `AdapterFailed` if it was not done."""
        await self._wait_for_turn()
        self._commands_under_way += 1
        try:
            self._conclude(await self._within_limit(self.adapter.command(device_id, command)))
        except Unreachable as error:
            self._missed(error, max(self.misses, POLLS_TO_LOSE))
            raise
        except AdapterFailed as error:
            self._heard()
            self._tell_health(error)
            raise
        finally:
            self._turn.release()
            self._commands_under_way -= 1
            self._commands_ended += 1

    async def invoke(self, operation: str, payload: Mapping[str, Value]) -> Value:
        """What an operation of the adapter's own returns; it has the time that a command has."""
        return await self._within_limit(self.adapter.operations[operation](payload))

    async def _wait_for_turn(self) -> None:
        """Take the turn. Who waits too long is not sent at all: nobody wants a lamp to obey out of the blue."""
        try:
            async with asyncio.timeout(TURN_LIMIT):
                await self._turn.acquire()
        except TimeoutError:
            address = self.adapter.http.address
            raise AdapterFailed(f"{address} is busy with earlier commands; this one was not sent") from None

    def _conclude(self, answer: Answer) -> None:
        if answer.report is None:
            self._heard()
        else:
            self._answered(answer.report)
        if answer.complaint is not None:
            raise BadAnswer(answer.complaint)

    async def _within_limit(self, work: Awaitable[T]) -> T:
        """The work's result. `Unreachable` comes out only if there was no answer at all while it was done."""
        address, answers_before = self.adapter.http.address, self.adapter.http.answers
        try:
            async with asyncio.timeout(TIME_LIMIT):
                return await work
        except TimeoutError:
            if self.adapter.http.answers == answers_before:
                raise Unreachable(f"{address} does not answer (nothing for {TIME_LIMIT:g} s)") from None
            raise BadAnswer(f"{address} took longer than {TIME_LIMIT:g} s") from None
        except Unreachable as error:
            if self.adapter.http.answers == answers_before:
                raise
            raise BadAnswer(str(error)) from None

    def _answered(self, report: Report) -> None:
        self._registry.apply(report)
        self._heard()
        self._is_faulty = False
        self._bus.publish(events.AdapterAnswered(adapter=self.adapter.name, at=self._clock.now()))

    def _heard(self) -> None:
        """The vendor answered, whatever it said: an outage, if there was one, is over."""
        self.misses = 0
        if self._is_lost:
            self._is_lost = False
            log.info("%s: answers again", self.adapter.name)
            self._registry.mark(self.adapter.name, ONLINE)
            self.recovered.set()

    def _missed(self, error: LaresError, misses: int) -> None:
        self.misses = misses
        self._tell_health(error)
        if misses >= POLLS_TO_LOSE and not self._is_lost:
            self._is_lost = True
            self._registry.mark(self.adapter.name, OFFLINE)
            self._complain(error)

    def _faltered(self, error: LaresError) -> None:
        self._tell_health(error)
        if not self._is_faulty:
            self._is_faulty = True
            self._complain(error)

    def _tell_health(self, error: LaresError) -> None:
        name, now = self.adapter.name, self._clock.now()
        self._bus.publish(events.AdapterFaltered(adapter=name, message=str(error), at=now))

    def _complain(self, error: LaresError) -> None:
        message = f"{self.adapter.name}: {error}"
        log.warning("%s", message)
        self._bus.publish(events.SystemError(message=message))
