"""Sends the commands of the API, rooms, groups, and scripts to the devices' adapters."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from appliance.adapters.adapter_runner import AdapterRunner
from appliance.adapters.address_gates import LOCK_TIMEOUT_SECS, Sender
from appliance.adapters.base import HookRequest, Picture
from appliance.clock import Clock
from appliance.errors import (
    AdapterFailed,
    Busy,
    Invalid,
    LaresError,
    NoPicture,
    Stopping,
    StoreFailed,
    Unreachable,
    Unsupported,
)
from appliance.event_loop import in_steps, next_turn, wait_for_short_turn
from appliance.home.bus import Bus
from appliance.home.command_specs import accepts, check_offered, needs_unit
from appliance.home.commands import Command
from appliance.home.events import CommandEnded, CommandStarted
from appliance.home.model import Device
from appliance.home.values import Value
from appliance.tasks import Tasks, wait_for_end

MAX_STARTED_AT_ONCE = 16
"""After the commands of this number of devices have begun, the next commands to rooms and groups begin in another
turn of the loop."""

MAX_UNDER_WAY = 2_000
"""Maximum number of calls of adapters under way for all rooms and groups. Each call occupies kilobytes until its
devices have answered. Further calls begin when earlier ones end."""

MAX_BATCH_DEVICES = 64
"""Maximum number of devices in one call of an adapter. The results of a call are published in one turn of the
loop."""

log = logging.getLogger("adapters")


class Status(StrEnum):
    """The result of a command to one device."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    ERROR = "error"


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of a command to one device, with the error if the command failed."""

    device_id: str
    error: LaresError | None = None

    def __post_init__(self) -> None:
        if self.error is not None:
            # the frame that creates the outcome often refers to it, so the traceback would create a reference cycle
            self.error.__traceback__ = None

    @property
    def status(self) -> Status:
        """The value is `unsupported` if the device does not offer the command."""
        if self.error is None:
            return Status.OK
        return Status.UNSUPPORTED if isinstance(self.error, Unsupported) else Status.ERROR

    @property
    def message(self) -> str | None:
        return None if self.error is None else str(self.error)


_Sending = asyncio.Task[dict[str, Outcome]]


class _Batch(NamedTuple):
    """The devices of one call, with the command that all of them accept, or with the reason why the command is
    refused."""

    devices: list[Device]
    command: Command | LaresError

    def accepts(self, command: Command | LaresError) -> bool:
        return self.command == command and len(self.devices) < MAX_BATCH_DEVICES


class Dispatcher:
    """Sends commands. Methods may be called concurrently.

    A running command is finished even if its sender is cancelled. When the context is left, all commands end.
    """

    def __init__(
        self, runners: Sequence[AdapterRunner], bus: Bus, clock: Clock, timeout_secs: float = LOCK_TIMEOUT_SECS
    ) -> None:
        self._runners: dict[str, AdapterRunner] = {runner.name: runner for runner in runners}
        self._bus = bus
        self._clock = clock
        self._tasks = Tasks()
        self._is_stopping = False
        self._timeout_secs = timeout_secs
        self._starting = asyncio.Lock()
        self._refusing = asyncio.Lock()
        self._free = asyncio.Semaphore(MAX_UNDER_WAY)

    async def __aenter__(self) -> Dispatcher:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    def add(self, runner: AdapterRunner) -> None:
        """From now on, send all commands for the section to this runner."""
        self._runners[runner.name] = runner

    def remove(self, name: str) -> None:
        """From now on, refuse all commands to the section."""
        self._runners.pop(name, None)

    async def send(self, devices: Sequence[Device], command: Command, source: str) -> list[Outcome]:
        """Send the command to the devices, in parallel if their addresses differ. Return the outcomes in the order of
        `devices`.

        `source` is for the audit log: `device`, `room`, `group`, `scene:<id>`, `automation:<id>`. Raise `Invalid` if
        the command has a number without a unit although every device requires a unit. No other exception is raised.
        """
        if self._is_stopping:
            return [_unknown_outcome(device) for device in devices]
        if command.has_bare_value and not any(accepts(each.commands or (), command) for each in devices):
            raise needs_unit(command)
        if len(devices) == 1:
            batch = _Batch([devices[0]], _check(devices[0], command, self._runners))
            tasks = {devices[0].id: self._start(batch, command, source)}
        else:
            try:
                tasks = await self._start_all(devices, command, source)
            except Busy as error:
                return await self._refuse_all(devices, command, source, error)
        for task in tasks.values():
            await wait_for_end(task)
        return [
            _unknown_outcome(device) if task is None or task.cancelled() else task.result()[device.id]
            for device in devices
            for task in [tasks.get(device.id)]
        ]

    async def _start_all(self, devices: Sequence[Device], command: Command, source: str) -> dict[str, _Sending]:
        """Start the calls for the devices in order, and return the task of each device.

        If the hub stops, start no further calls. Senders start their calls one after another. Raise `Busy` if earlier
        senders need too long.
        """
        try:
            async with asyncio.timeout(self._timeout_secs):
                await self._starting.acquire()
        except TimeoutError:
            raise Busy("too many earlier commands are under way; this command was not sent") from None
        tasks: dict[str, _Sending] = {}
        sender, started = Sender(), 0
        try:
            for batch in await in_steps(self._clock, self._collect(devices, command)):
                if started >= MAX_STARTED_AT_ONCE:
                    await next_turn()
                    started = 0
                started += len(batch.devices)
                await self._free.acquire()
                if self._is_stopping:
                    self._free.release()
                    break
                task = self._start(batch, command, source, sender)
                task.add_done_callback(lambda _: self._free.release())
                tasks |= dict.fromkeys((device.id for device in batch.devices), task)
        finally:
            self._starting.release()
        return tasks

    def _start(self, batch: _Batch, command: Command, source: str, sender: Sender | None = None) -> _Sending:
        sending = self._send_and_audit(batch, command, source, sender)
        return self._tasks.start(sending, f"command to {', '.join(device.id for device in batch.devices)}")

    async def _refuse_all(
        self, devices: Sequence[Device], command: Command, source: str, because: Busy
    ) -> list[Outcome]:
        outcomes = list[Outcome]()
        async with self._refusing:  # hundreds of senders together would need much memory for their outcomes
            for device in devices:
                await wait_for_short_turn()
                outcomes.append(_outcome(device, command, because))
                self.publish_outcome(outcomes[-1], device.room_id, command, source)
        return outcomes

    def _collect(self, devices: Sequence[Device], command: Command) -> Generator[None, None, list[_Batch]]:
        """Group the devices by call, one device per step. A group has several devices only if their adapter
        accepts several devices in one call."""
        batches, together = list[_Batch](), dict[str, _Batch]()
        for device in devices:
            section, checked = device.metadata.source, _check(device, command, self._runners)
            takes_many = section in self._runners and self._runners[section].takes_many
            if takes_many and section in together and together[section].accepts(checked):
                together[section].devices.append(device)
            else:
                batches.append(_Batch([device], checked))
                together[section] = batches[-1]
            yield
        return batches

    def refuse_new(self) -> None:
        """From now on, refuse all commands because the hub is stopping."""
        self._is_stopping = True

    def abort_all(self) -> None:
        """Cancel the running commands, and report their results as unknown."""
        self._tasks.cancel()

    async def invoke(self, target: str, payload: Mapping[str, Value]) -> Value:
        """Run an operation. `target` is `<adapter>:<operation>`. Raise `LaresError`, such as `Unsupported` for an
        unknown target."""
        name, _, operation = target.partition(":")
        runner = self._runners.get(name)
        if runner is None or not operation:
            raise Unsupported(f"invoke target '{target}' is not supported")
        return await runner.invoke(operation, payload)

    async def picture(self, device: Device, attribute: str | None = None) -> Picture:
        """Return the newest still picture of a device, or of one of its attributes.

        Raise `NoPicture` if there is no picture, and another `LaresError` for any other failure.
        """
        runner = self._runners.get(device.metadata.source)
        found = None if runner is None else await runner.picture(device.id, attribute)
        if found is None:
            raise NoPicture(device.id, attribute)
        return found

    async def has_hook(self, hook: str) -> bool:
        """Return whether an adapter handles the hook. At the start, wait until the adapters exist."""
        return bool(await self._listeners_to(hook))

    async def hook(self, request: HookRequest) -> bool:
        """Pass the request to each adapter that handles the hook, in order. Return whether at least one adapter
        handles the hook.

        Raise the `LaresError` of the first adapter that refuses the request.
        """
        runners = await self._listeners_to(request.hook)
        for runner in runners:
            await runner.hook(request)
        return bool(runners)

    async def _listeners_to(self, hook: str) -> list[AdapterRunner]:
        runners = [*self._runners.values()]
        found = await asyncio.gather(*(runner.wait_for_hooks() for runner in runners))
        return [runner for runner, hooks in zip(runners, found, strict=True) if hook in hooks]

    def operations_of(self, adapter: str) -> tuple[str, ...]:
        """Return the names of an adapter's operations, sorted. Until the adapter starts, return an empty tuple."""
        runner = self._runners.get(adapter)
        return () if runner is None or runner.adapter is None else tuple(sorted(runner.adapter.operations))

    def refuse(self, device_id: str, command: Command, source: str, because: LaresError) -> Outcome:
        """Return the outcome of a command to an unknown device, and publish it for the audit log."""
        log.info("%s: %s failed: %s", device_id, command, because)
        outcome = Outcome(device_id=device_id, error=because)
        self.publish_outcome(outcome, None, command, source)
        return outcome

    async def _send_and_audit(
        self, batch: _Batch, command: Command, source: str, sender: Sender | None
    ) -> dict[str, Outcome]:
        """Send the command to the devices of the batch. Publish each outcome for the audit log."""
        devices, checked = batch
        if isinstance(checked, Command):
            command = checked
        outcomes: dict[str, Outcome] = {}
        for device in devices:
            self._bus.publish(CommandStarted(source=source, device_id=device.id, command=command))
        try:
            errors = await self._send_batch(batch, sender)
            outcomes = {device.id: _outcome(device, command, errors[device.id]) for device in devices}
            await wait_for_short_turn()  # many calls may end in one turn
        finally:
            for device in devices:
                outcome = outcomes.get(device.id) or _unknown_outcome(device)
                self.publish_outcome(outcome, device.room_id, command, source)
        return outcomes

    async def _send_batch(self, batch: _Batch, sender: Sender | None) -> Mapping[str, Exception | None]:
        """Return the error of each device. If an adapter has a fault, only its own devices get errors."""
        ids = [device.id for device in batch.devices]
        if not isinstance(batch.command, Command):
            # raising the error would create a reference cycle between the error and its traceback
            return dict.fromkeys(ids, batch.command)
        try:
            runner = self._runners[batch.devices[0].metadata.source]
            return dict(zip(ids, await runner.command_when_free(ids, batch.command, sender), strict=True))
        except Exception as error:
            return dict.fromkeys(ids, error)

    def publish_outcome(self, outcome: Outcome, room_id: str | None, command: Command, source: str) -> None:
        self._bus.publish(
            CommandEnded(
                at=self._clock.now(),
                source=source,
                room_id=room_id,
                device_id=outcome.device_id,
                command=command,
                status=outcome.status,
                message=outcome.message,
            )
        )


def _check(device: Device, command: Command, runners: Mapping[str, AdapterRunner]) -> Command | LaresError:
    """Return the command in a form that the device accepts, or the reason why it is refused."""
    if device.metadata.source not in runners:
        return Unsupported(f"device '{device.id}' does not offer {command}")
    try:
        if device.commands is not None:
            return check_offered(device.id, device.commands, command)
        if command.has_bare_value:
            return needs_unit(command)
    except LaresError as error:
        return error
    return command


def _outcome(device: Device, command: Command, error: Exception | None) -> Outcome:
    """Convert an error to an outcome, and log it. Outages are not logged here, because the publisher logs each outage
    once."""
    if error is None or isinstance(error, Unsupported | Unreachable):
        return Outcome(device_id=device.id, error=error)
    if isinstance(error, AdapterFailed | Invalid | StoreFailed):
        log.info("%s: %s failed: %s", device.id, command, error)
        return Outcome(device_id=device.id, error=error)
    reason = f"{type(error).__name__}: {error}"
    log.error("%s: %s failed: %s", device.id, command, reason, exc_info=error)
    return Outcome(device_id=device.id, error=AdapterFailed(f"the adapter failed ({reason})"))


def _unknown_outcome(device: Device) -> Outcome:
    return Outcome(device_id=device.id, error=Stopping("the hub is stopping; the result of the command is unknown"))
