"""Runs one adapter: restarts it after a failure, sends it commands, and catches its exceptions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from appliance.adapters.address_gates import AddressGate, Sender
from appliance.adapters.base import (
    COMMAND_TIMEOUT_SECS,
    Adapter,
    AdapterContext,
    AdapterReplaced,
    CommandResult,
    HookRequest,
    Picture,
)
from appliance.errors import AdapterFailed, LaresError, Unreachable, Unsupported
from appliance.home.commands import Command
from appliance.home.values import Value
from appliance.tasks import Tasks, back_off, end, end_within

START_TIMEOUT_SECS = 15.0
"""Time limit for the first call of `publish.started()` or `progressed()`.

If the limit is exceeded, the adapter is reported as started and failing. The adapter is not restarted, because a slow
adapter (for example, for a busy broker) would lose its progress.
"""

EXIT_TIMEOUT_SECS = 1.0
"""Time limit for the `__aexit__` of an adapter."""

HEALTHY_AFTER_SECS = 120.0
"""If an adapter has run for this number of seconds, its count of failures is reset."""

Build = Callable[[AdapterContext], Adapter]

T = TypeVar("T")


class AdapterRunner:
    """Runs one adapter inside its `async with` block. After each failure, `build` makes a new adapter.

    If the event `begin` is given, the first adapter is made when `begin` is set. Until `begin` is set, a command
    waits for up to five seconds. Methods may be called concurrently.
    """

    def __init__(self, build: Build, context: AdapterContext, begin: asyncio.Event | None = None) -> None:
        self.name = context.name
        self.adapter: Adapter | None = None
        self._build = build
        self._context = context
        self._tasks = Tasks()
        # The adapter's task is cancelled only once, because a second cancellation would interrupt the task's cleanup.
        self._work = Tasks()
        self._current: asyncio.Task[None] | None = None
        self._failures = 0
        self._hooks: Collection[str] = ()
        self._is_replaced = False
        self._begin = begin
        self._is_made = asyncio.Event()

    async def __aenter__(self) -> AdapterRunner:
        self._tasks.start(self._keep_running(), f"running of {self.name}")
        self._tasks.start(self._watch_start(), f"start of {self.name}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    @property
    def gate(self) -> AddressGate:
        return self._context.gates.at(self.name) if self.adapter is None else self.adapter.gate

    @property
    def takes_many(self) -> bool:
        """Whether the adapter accepts commands to several devices in one call."""
        return self.adapter is not None and self.adapter.takes_many

    async def command_when_free(
        self, device_ids: Sequence[str], command: Command, sender: Sender | None = None
    ) -> list[LaresError | None]:
        """When the address is free, send the command, publish the readings, and return each device's error.

        If the command failed for all devices, raise a `LaresError` (`Busy`, `Unreachable`, `Unsupported`, or another
        `AdapterFailed`).
        """
        await self._wait_until_made()
        gate = self.gate
        held = await gate.acquire(device_ids, sender)
        try:
            adapter = self._require_adapter()
            return await self._contained(self._command_and_publish(adapter, device_ids, command))
        finally:
            gate.release(held)

    async def invoke(self, operation: str, payload: Mapping[str, Value]) -> Value:
        """Run an operation of the adapter. If the operation fails, raise a `LaresError`, such as `Unsupported` for
        an unknown operation."""
        await self._wait_until_made()
        adapter = self._require_adapter()
        return await self._contained(_invoke(adapter, operation, payload))

    async def picture(self, device_id: str, attribute: str | None) -> Picture | None:
        """Return the newest picture of a device. Return None if there is no picture, or if no adapter is running.
        Raise `LaresError` on failure."""
        if self.adapter is None:
            return None
        return await self._contained(self.adapter.run_limited(self.adapter.picture(device_id, attribute)))

    async def wait_for_hooks(self) -> Collection[str]:
        """Wait up to five seconds until the adapter exists, and return the adapter's hooks. While the adapter
        restarts, return the previous adapter's hooks."""
        await self._wait_until_made()
        return self._hooks if self.adapter is None else self.adapter.hooks

    async def hook(self, request: HookRequest) -> None:
        """Pass a request to the adapter. Raise `LaresError` if the adapter rejects the request."""
        adapter = self._require_adapter()
        try:
            await self._contained(adapter.run_limited(adapter.hook(request)))
        except AdapterFailed as error:
            adapter.on_hook_failed(error)
            raise

    async def _command_and_publish(
        self, adapter: Adapter, device_ids: Sequence[str], command: Command
    ) -> list[LaresError | None]:
        before = adapter.answers
        try:
            results = await adapter.run_limited(adapter.command_many(device_ids, command))
            if len(results) != len(device_ids):
                raise AdapterFailed(
                    f"{adapter.name} returned results for {len(results)} devices instead of {len(device_ids)}"
                )
        except Unreachable as error:
            adapter.on_unreachable(error)
            adapter.gate.fail_waiting(error, None if adapter.shares_outages else device_ids)
            raise
        except AdapterFailed as error:
            if _has_answered(adapter, before):
                self._context.publish.reached()
            self._context.publish.record_error(error)
            raise
        is_answered = _has_answered(adapter, before)
        return [self._publish_result(result, is_answered=is_answered) for result in results]

    async def _contained(self, work: Awaitable[T]) -> T:
        """Await the adapter's work. Raise `AdapterFailed` for any exception except `LaresError`."""
        try:
            return await work
        except LaresError:
            raise
        except BaseException as error:  # An adapter may raise anything, including `SystemExit`.
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            raise self._context.publish.faulted(error) from None

    async def _wait_until_made(self) -> None:
        """Wait until the adapter exists or has failed once. The wait is limited to the time limit of a command."""
        if self._begin is not None and not self._is_made.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(COMMAND_TIMEOUT_SECS):
                    await self._is_made.wait()

    def _require_adapter(self) -> Adapter:
        if self.adapter is None:
            raise AdapterFailed(f"{self.name} is restarting after a fault; this request was not sent")
        return self.adapter

    def _publish_result(self, result: CommandResult, *, is_answered: bool) -> LaresError | None:
        """Publish that the vendor answered, and publish the reading and error of the command. Return the error."""
        publish = self._context.publish
        if result.report is not None:
            publish.report(result.report)
        if result.report is not None or (is_answered and result.error is None):
            publish.answered()
        elif is_answered:
            publish.reached()
        if result.error is not None:
            publish.record_error(result.error)
        return result.error

    async def _keep_running(self) -> None:
        clock = self._context.clock
        if self._begin is not None:
            await self._begin.wait()
        while True:
            began = clock.monotonic()
            current = self._current = self._work.start(self._run_once(), f"adapter {self.name}")
            try:
                await asyncio.wait({current})
            finally:
                await end(current)
                self._current = None  # the task's error forms a cycle with this object, which keeps the adapter
            is_replaced, self._is_replaced = self._is_replaced, False
            if is_replaced:
                self._failures = 0
                continue
            self._failures = 0 if clock.monotonic() - began >= HEALTHY_AFTER_SECS else self._failures + 1
            await clock.sleep(back_off(self._failures))

    async def _run_once(self) -> None:
        """Make the adapter, and run it until it ends. Publish and log exceptions instead of raising them."""
        try:
            adapter = self._build(self._context)
            await adapter.__aenter__()
            try:
                self.adapter = adapter
                self._is_made.set()
                await adapter.run()
            finally:
                self._hooks = adapter.hooks
                if self.adapter is adapter:  # if this adapter ended late, the next one may already be running
                    self.adapter = None
                await self._leave(adapter)
            raise AdapterFailed("it stopped unexpectedly")
        except AdapterReplaced:
            self._is_replaced = True
            return
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            self._context.publish.crashed(error, is_first=self._failures == 0)
        except BaseException as error:  # An adapter may raise anything, including `SystemExit`.
            self._context.publish.crashed(error, is_first=self._failures == 0)
        self._is_made.set()
        self._context.publish.started()

    async def _leave(self, adapter: Adapter) -> None:
        """Exit the adapter within a time limit. If the exit fails, ignore the failure."""
        leaving = self._contained(adapter.__aexit__(None, None, None))
        with suppress(TimeoutError, AdapterFailed):
            await end_within(leaving, EXIT_TIMEOUT_SECS)

    async def _watch_start(self) -> None:
        """Publish a failure if the adapter neither starts nor makes progress within the time limit."""
        if self._begin is not None:
            await self._begin.wait()
        publish, progress = self._context.publish, -1
        while not publish.has_started.is_set() and publish.progress != progress:
            progress = publish.progress
            with suppress(TimeoutError):
                async with asyncio.timeout(START_TIMEOUT_SECS):
                    await publish.has_started.wait()
        if not publish.has_started.is_set():
            message = f"no answer within {START_TIMEOUT_SECS:g} s after the adapter's start"
            publish.failed(AdapterFailed(message))
            publish.started()


async def _invoke(adapter: Adapter, operation: str, payload: Mapping[str, Value]) -> Value:
    operations = adapter.operations
    if operation not in operations:
        raise Unsupported(f"invoke target '{adapter.name}:{operation}' is not supported")
    work = operations[operation](payload)
    return await adapter.run_limited(work, adapter.operation_secs.get(operation))


def _has_answered(adapter: Adapter, before: int | None) -> bool:
    return before is None or adapter.answers != before


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
