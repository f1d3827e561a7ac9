"""The base class of adapters that poll one HTTP address, and the rules for offline devices."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Self, TypeVar

from appliance.adapters.base import Adapter, AdapterContext, CommandResult
from appliance.adapters.confirmation import (
    CONFIRM_SECS,
    ExpectedState,
    attributes_in,
    failure,
    read_until,
    secs_to_confirm,
)
from appliance.adapters.device_http.client import HttpClient
from appliance.adapters.reconnection import keep_open
from appliance.errors import AdapterFailed, BadAnswer, Unreachable
from appliance.event_loop import in_steps
from appliance.home.model import Report
from appliance.home.values import Value
from appliance.tasks import back_off, end_within, run_together

POLLS_TO_LOSE = 2
"""Number of consecutive unanswered polls after which the devices are offline. A single unanswered command has the
same effect."""

SECOND_POLL_SECS = 2.0
"""Maximum pause in seconds between an unanswered poll and the next poll."""

POLLED_ONLY_AFTER = 5
"""If this number of consecutive push connections fail, and the address answers polls, a log line is written."""

MAX_PARTS = 64
"""Maximum number of lights or segments at one address. All known devices have fewer."""

CONFIRM_PAUSES_SECS = (0.1, 0.2, 0.4, 0.6, 0.8)
"""Pauses in seconds between two readings that confirm a command. The last pause is repeated."""

T = TypeVar("T")

log = logging.getLogger("adapters")


class StateReading(NamedTuple):
    """One reading: its report, the attributes by device, and the error if the answer was invalid."""

    report: Report | None
    attributes: Mapping[str, Mapping[str, Value]]
    error: AdapterFailed | None


class PollingAdapter(Adapter):
    """Polls one address every `poll_interval` seconds, with back-off while the address does not answer.

    `misses` counts unanswered polls. An unanswered command sets `misses` to `POLLS_TO_LOSE`. `max_silence_secs` is
    for devices that sleep: a shorter silence is not an outage, even across restarts. If `has_push` is true,
    `open_push` opens a connection for pushed messages.
    """

    shares_outages = True
    has_push = False

    def __init__(
        self, context: AdapterContext, http: HttpClient, poll_interval: float, max_silence_secs: float | None = None
    ) -> None:
        super().__init__(context, http.address)
        self.http = http
        self.poll_interval = poll_interval
        self.max_silence_secs = max_silence_secs
        self.misses = 0
        self._is_poll_due = False
        self._wake = asyncio.Event()
        self.publish.on_recovered = self._wake.set
        self._contact_at: float | None = None
        self._is_empty = False
        self._has_too_many = False

    @classmethod
    def of(cls, settings: Any, context: AdapterContext) -> Self:
        http = HttpClient(context.open_session(), settings.base_url, context.clock)
        return cls(context, http, settings.poll_interval_secs, settings.max_silence_secs)

    @property
    def answers(self) -> int:
        return self.http.answers

    @abstractmethod
    async def poll(self) -> Report:
        """Read the state of all devices of this adapter. Raise `AdapterFailed` on failure."""

    async def poll_state(self) -> Report:
        """Read the state to confirm a command. Override this method if a smaller request than `poll` is
        sufficient."""
        return await self.poll()

    async def confirm(self, device_id: str, expected: ExpectedState, began: float) -> CommandResult:
        """Read until the device reports the result of a command that started at `began`. Raise `Unreachable` if
        the address does not answer."""
        [result] = (await self.confirm_all({device_id: expected}, began)).values()
        return result

    async def confirm_all(
        self, expected: Mapping[str, ExpectedState], began: float, within: float = CONFIRM_SECS
    ) -> dict[str, CommandResult]:
        """Read until each device reports its result. Return the results by device. Raise `Unreachable` on failure.

        A result has an error if the device has not reported the result after `within` seconds, or by
        `CONFIRM_MARGIN_SECS` before the command's time limit.
        """

        def is_done(seen: StateReading, device_id: str) -> bool:
            return seen.error is None and expected[device_id].is_shown(seen.attributes[device_id])

        seen, _ = await read_until(
            self.clock,
            lambda: self.read_attributes(expected),
            lambda seen: all(is_done(seen, each) for each in expected),
            within=secs_to_confirm(within, began + self.command_secs - self.clock.monotonic()),
            pauses=CONFIRM_PAUSES_SECS,
        )
        errors = {
            each: None if is_done(seen, each) else seen.error or failure(each, goal.command, seen.attributes[each])
            for each, goal in expected.items()
        }
        return {each: CommandResult(report=seen.report, error=error) for each, error in errors.items()}

    async def read_attributes(self, device_ids: Iterable[str]) -> StateReading:
        try:
            report = await self.poll_state()
        except Unreachable:
            raise
        except AdapterFailed as error:
            return StateReading(None, {}, error if isinstance(error, BadAnswer) else BadAnswer(str(error)))
        return StateReading(report, {each: attributes_in(report, each) for each in device_ids}, None)

    def open_push(self) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        """Open a push connection, which iterates over messages."""
        raise NotImplementedError

    def receive(self, message: Any) -> None:
        """Publish the content of a pushed message. Raise `AdapterFailed` for an unusable message. The message is then
        ignored. Any message ends an outage."""

    def describe_answer(self) -> str | None:
        """Describe the last good answer, for the log line about an answer without devices. Return an empty string if
        the content is unknown, and None if such an answer is normal."""
        return ""

    def first_parts(self, listed: list[Any]) -> list[Any]:
        """Return the first `MAX_PARTS` lights or segments of an answer. Log once if the answer contains more."""
        if len(listed) > MAX_PARTS and not self._has_too_many:
            log.warning(
                "%s: the device reports %d parts; only the first %d are used", self.name, len(listed), MAX_PARTS
            )
            self._has_too_many = True
        return listed[:MAX_PARTS]

    def record_contact(self) -> None:
        """Record that the address has responded at the present time. Answers and pushed messages are recorded
        automatically."""
        self.misses = 0
        self._contact_at = self.clock.monotonic()

    def poll_now(self) -> None:
        """Poll at once. If a poll is already running, poll again when it has ended."""
        self._is_poll_due = True
        self._wake.set()

    async def run(self) -> None:
        """Poll until cancelled. Poll at once when an outage ends or the push connection breaks."""
        if self._may_be_silent():
            await in_steps(
                self.clock, self.publish.availability_parts(self.publish.list_devices(), is_available=True)
            )
        await run_together(self._keep_polling(), self._keep_receiving())

    async def _keep_polling(self) -> None:
        began = self.clock.monotonic()
        await self.poll_once()
        self.publish.started()
        while True:
            if not self._is_poll_due:
                self._wake.clear()
                pause = began + delay_after(self.misses, self.poll_interval) - self.clock.monotonic()
                await self.clock.wait(self._wake, max(pause, 0.0))
            self._is_poll_due = False
            began = self.clock.monotonic()
            await self.poll_once()

    async def _keep_receiving(self) -> None:
        """Receive pushed messages. Polling continues if the connection cannot be opened."""
        if self.has_push:
            await keep_open(self.clock, self._receive_until_lost, self._on_push_ended, first_secs=2.0)

    async def _receive_until_lost(self) -> None:
        is_open = False
        try:
            async with self.open_push() as messages:
                is_open = True
                async for message in messages:
                    self._receive(message)
        finally:
            if is_open:
                self.poll_now()

    def _on_push_ended(self, error: AdapterFailed | None, failures: int) -> None:
        if error is None:
            return
        log.debug("%s: no push: %s", self.name, error)
        if isinstance(error, Unreachable) and self.misses < POLLS_TO_LOSE:
            self.poll_now()
            if failures == POLLED_ONLY_AFTER and self.misses == 0:
                log.warning("%s: push is unavailable, so devices are only polled: %s", self.name, error)

    def _receive(self, message: Any) -> None:
        try:
            self.receive(message)
        except AdapterFailed as error:
            log.debug("%s: unusable pushed message: %s", self.name, error)
            self.publish.reached()
        else:
            self.publish.answered()
        self.record_contact()

    async def poll_once(self) -> None:
        """Poll and publish the result. If a command ran during the poll, discard the result, because the reading may
        be older than the command's effect.

        Messages that were pushed during the poll are newer than the poll's result, and take precedence.
        """
        began = self.clock.monotonic()
        ended_before, answers_before = self.gate.commands_ended, self.answers
        with self.publish.reading() as reading:
            try:
                outcome: Report | AdapterFailed = await self.run_limited(self.poll())
            except AdapterFailed as error:
                outcome = error.with_traceback(None)  # the frames of the traceback keep the answer in memory
            if self.gate.is_stale(ended_before):
                return
            if isinstance(outcome, Report):
                await in_steps(self.clock, self.publish.report_parts(outcome, reading))
        if isinstance(outcome, Report):
            self._report_empty(outcome)
            self.publish.answered(self.clock.monotonic() - began)
        elif isinstance(outcome, Unreachable):
            self._on_miss(outcome, self.misses + 1)
        else:
            if self.answers != answers_before:
                self.misses = 0
                self.publish.reached()
            self.publish.failed(outcome)

    def _report_empty(self, report: Report) -> None:
        """Log once that a good answer contains no device."""
        contained = self.describe_answer() if report.present == frozenset() else None
        if contained is not None and not self._is_empty:
            log.warning("%s: the answer contains no device%s", self.name, contained and f"; it contains {contained}")
        self._is_empty = contained is not None

    async def run_limited(self, work: Awaitable[T], secs: float | None = None) -> T:
        """Await a call, and record the contact with the address. Raise `Unreachable` only if the address has not
        answered at all."""
        secs = self.command_secs if secs is None else secs
        answers_before = self.answers
        try:
            result = await end_within(work, secs)
        except TimeoutError as timeout:
            raise self.timeout_error(secs, answers_before, timeout.__cause__) from None
        except Unreachable as error:
            raise self.http.convert_if_answered(error, answers_before) from None
        self.record_contact()
        return result

    def timeout_error(self, secs: float, answers_before: int, cause: BaseException | None) -> AdapterFailed:
        """Return the error of a call that took longer than `secs`. `cause` is the exception of the cancelled call."""
        return self.http.timeout_error(secs, answers_before)

    def on_unreachable(self, error: Unreachable) -> None:
        """Treat one unanswered command as an outage."""
        self._on_miss(error, max(self.misses, POLLS_TO_LOSE))

    def _on_miss(self, error: Unreachable, misses: int) -> None:
        self.misses = misses
        if misses < POLLS_TO_LOSE or self._may_be_silent():
            self.publish.record_error(error)
        else:
            self.publish.lost(error)

    def _may_be_silent(self) -> bool:
        """Return whether the address has last responded less than `max_silence_secs` ago. Right after a restart,
        use the devices' stored times."""
        if self.max_silence_secs is None:
            return False
        if self._contact_at is not None:
            return self.clock.monotonic() - self._contact_at < self.max_silence_secs
        seen = [device.last_seen for device in self.publish.list_devices().values()]
        return bool(seen) and (self.clock.now() - max(seen)).total_seconds() < self.max_silence_secs


def delay_after(misses: int, interval: float) -> float:
    """Return the seconds between the starts of two polls: `interval`, or longer while the device is unreachable.

    After an unanswered poll, the next poll comes soon, because the next poll decides whether the device is offline.
    """
    if misses < POLLS_TO_LOSE:
        return min(interval, SECOND_POLL_SECS) if misses else interval
    return max(interval, back_off(misses, interval))
