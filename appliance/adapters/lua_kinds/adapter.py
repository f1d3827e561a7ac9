"""The adapter of a kind in Lua. Polls, commands, hooks, and operations call functions of the file."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self, TypeVar

from appliance.adapters.access_settings import MAX_POLL_SECS, MIN_POLL_SECS
from appliance.adapters.base import (
    Adapter,
    AdapterContext,
    AdapterReplaced,
    CommandResult,
    HookRequest,
    Operation,
)
from appliance.adapters.confirmation import ExpectedState, attributes_in, failure
from appliance.adapters.lua_kinds.access import read_access
from appliance.adapters.lua_kinds.device_reader import (
    MAX_DEVICES,
    DeviceReader,
    ReadEvent,
    ReadUpdate,
    device_for_lua,
)
from appliance.adapters.lua_kinds.functions import CallCancelled, KindFunctions, Results
from appliance.adapters.lua_kinds.host import KindHost, LoadedSection, SectionFault
from appliance.adapters.lua_kinds.origins import Origins
from appliance.adapters.lua_kinds.push_connection import PushConnection, PushSource
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.adapters.lua_kinds.web_request import Transport
from appliance.adapters.polling import POLLS_TO_LOSE, PollingAdapter, StateReading
from appliance.errors import AdapterFailed, BadAnswer, Invalid, Unanswered, Unreachable, Unreadable
from appliance.event_loop import in_steps
from appliance.home.command_effects import ended_colors
from appliance.home.command_specs import check_offered
from appliance.home.commands import Command, without_toggle
from appliance.home.json_shapes import STATED_COMMAND
from appliance.home.model import OFFLINE, Device, Report
from appliance.home.values import Value
from appliance.tables.checks import format_value, is_number
from appliance.tasks import run_together

MIN_MESSAGE_SECS, MAX_UNPACED_MESSAGES = 0.01, 10
"""Minimum seconds between two messages to the file while many messages wait, and the number of waiting messages above
which this minimum applies."""

MAX_LOGGED_FAULTS = 100
"""Maximum number of different faults that are logged for messages and hooks."""

MAX_SENTENCE_CHARS = 500
"""Length limit of an error message that the file returns."""

T = TypeVar("T")

log = logging.getLogger("adapters")


class LuaAdapter(PollingAdapter):
    """Runs one section with a kind in Lua. `transport` replaces the requests to the device, and `push` replaces the
    connections."""

    shares_outages = False

    def __init__(
        self,
        context: AdapterContext,
        host: KindHost,
        loaded: LoadedSection,
        transport: Transport | None = None,
        push: PushSource | None = None,
    ) -> None:
        access, values = read_access(loaded.settings, context.root), loaded.settings.values
        origins = Origins(loaded.settings, access.http, context)
        super().__init__(context, origins.main, values["poll_interval_secs"], values["max_silence_secs"])
        self.functions = KindFunctions(context, host, loaded, access, transport or origins, push or origins.main)
        self.connection = self.functions.connection
        self.has_push = self.connection is not None
        self.redact = self.functions.redact
        self._loaded = loaded
        self._definition = loaded.definition
        self.operation_secs = self._definition.operations
        self._interval = self.poll_interval
        self._logged: set[str] = set()
        self._has_polled = not self._definition.has_poll
        self._answer: str | None = ""
        self._push_error: AdapterFailed | None = None
        self._unpublished: list[ReadEvent] = []
        self._reader = DeviceReader(self.publish)

    async def __aenter__(self) -> Self:
        self.publish.on_removed = self._reader.commands.forget
        return self

    async def __aexit__(self, *_: object) -> None:
        self.publish.on_removed = None  # the next adapter of the section uses the same publisher

    async def listen(self) -> None:
        """Receive messages until cancelled, without polling."""
        await run_together(self._keep_receiving(), self._keep_processing())

    async def run(self) -> None:
        """Poll and receive until cancelled. Raise `AdapterReplaced` once the kind changes."""
        await run_together(super().run(), self._keep_processing(), replace_when(self._loaded))

    def timeout_error(self, secs: float, answers_before: int, cause: BaseException | None) -> AdapterFailed:
        """Return the error for a timeout. If the function was waiting for the device, return the error of the base
        class. If the function itself was too slow, the error is not an outage."""
        if not isinstance(cause, CallCancelled):
            place = "publishing"
        elif cause.was_asking:
            return super().timeout_error(secs, answers_before, cause)
        else:
            place = cause.place
        return AdapterFailed(f"{place} took longer than {secs:g} s, excluding the wait for the device")

    async def poll_once(self) -> None:
        """Poll and publish. If the file has no function `poll`, check instead that the connection is open and the
        last message is recent."""
        if self._definition.has_poll:
            await super().poll_once()
            await self.publish_events()
        elif self.connection is not None and not self.connection.is_open:
            self._note_closed()
        elif self.max_silence_secs is not None and self.publish.list_devices() and not self._may_be_silent():
            self._on_miss(Unreachable(f"no message for {self.max_silence_secs} s"), POLLS_TO_LOSE)
        else:
            self.misses = 0
            self.publish.answered()

    def _note_closed(self) -> None:
        """Treat a closed connection like an unanswered poll. Ignore the first check after the adapter's start. If
        the device refused the connection, report an error but no outage."""
        error = self._push_error or Unreachable(f"{self.http.address}: the connection is not open")
        if self._push_error is None and self.misses == 0:
            self.misses = 1
        elif isinstance(error, Unreachable):
            self._on_miss(error, self.misses + 1)
        else:
            self.misses = 0
            self.publish.reached()
            self.publish.record_error(error)

    async def poll(self) -> Report:
        """Call the function `poll`, and return its devices. If the file does not define `poll`, return a report
        that removes no devices."""
        if not self._definition.has_poll:
            return Report(adapter=self.name)
        found = await self.functions.call(["poll"], reruns=True, repeats=True)
        self._has_polled = True
        self.poll_interval = self._secs_to_next_poll(found.second)
        devices = await self.functions.redacted(found.first)
        read = await self._read("poll", found.at, self._reader.read_list(devices, "poll"))
        if devices is None and self.publish.list_devices():
            log.warning("%s: %s: poll returned nil, which removes all devices; return a list", self.name, found.at)
        self._unpublished += read.events
        self._answer = None if devices is None or read.ids else found.ctx.describe_answers()
        observations = tuple(self._reader.observations(read))
        return Report(adapter=self.name, present=frozenset(read.ids), observations=observations)

    def _secs_to_next_poll(self, secs: Any) -> float:
        """Return the pause that `poll` returned. If the pause is missing or invalid, return the section's
        interval."""
        if is_number(secs):
            return min(max(float(secs), MIN_POLL_SECS), MAX_POLL_SECS)
        if secs is not None:
            self._reader.refuse_pause(secs)
        return float(self._interval)

    def describe_answer(self) -> str | None:
        """Return the fields of the last poll's answers. Return None if `poll` returned nil, which means that the kind
        has no devices."""
        return None if self._answer is None else self.redact(self._answer)

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Call the function `command`, and check that the device reports the result."""
        try:
            return await self._command(device_id, command, self.clock.monotonic())
        finally:
            await self.publish_events()

    async def _command(self, device_id: str, command: Command, began: float) -> CommandResult:
        before = await self._find(device_id, is_fresh=command.action == "toggle" or not self._has_polled)
        command = check_offered(device_id, before.commands or (), command)
        if not self._definition.has_command:
            raise BadAnswer(f"the kind {self._loaded.section.kind} does not define the function `command`")
        if not self._reader.commands.handles_toggle(device_id):
            command = without_toggle(command, before.attributes.get(command.capability), device_id)
        expected = ExpectedState(command, before.commands or (), before.attributes)
        device, stated = device_for_lua(before, self.name), STATED_COMMAND(command)
        try:
            found = await self.functions.call(["command"], device, stated, repeats=command.can_repeat)
        except (Unanswered, Unreadable):  # although the answer is missing or unreadable, the command may have worked
            return await self.confirm(device_id, expected, began)
        if isinstance(found.second, str):
            return CommandResult(error=BadAnswer(found.second[:MAX_SENTENCE_CHARS]))
        if found.first is True:
            return CommandResult()
        if found.first is None:
            return await self.confirm(device_id, expected, began)
        return self._result_of(device_id, await self.functions.redacted(found.first), expected)

    async def _find(self, device_id: str, *, is_fresh: bool) -> Device:
        """Return the device. If `is_fresh` is true, poll first. Raise `BadAnswer` if the device no longer
        exists."""
        if is_fresh:
            await in_steps(self.clock, self.publish.report_parts(await self.poll()))
        device = self.publish.find(device_id)
        if device is None:
            raise BadAnswer(f"{device_id} no longer exists")
        return device

    def _result_of(self, device_id: str, raw: Any, expected: ExpectedState) -> CommandResult:
        """Return the result of a command from the device state that the file returned."""
        seen = self._reader.read_one(raw, device_id, "command")
        if seen is None:
            return CommandResult(error=BadAnswer(f"`command` returned {format_value(raw)}, which is not a device"))
        report = Report(adapter=self.name, observations=(seen,))
        attributes = attributes_in(report, device_id)
        error = None if expected.is_shown(attributes) else failure(device_id, expected.command, attributes)
        return CommandResult(report=report, error=error)

    @property
    def hooks(self) -> Collection[str]:
        """The section's hook, if the file has a function `hook`."""
        return (self.name,) if self._definition.has_hook else ()

    async def hook(self, request: HookRequest) -> None:
        """Pass the request to the file, and apply the returned update."""
        given: dict[str, Any] = {"method": request.method, "data": request.data}
        for name, texts in (("query", request.query), ("headers", request.headers)):
            given[name] = {str(key): str(value) for key, value in texts.items()}
        found = await self.functions.call(["hook"], given, body=request.body)
        await self.apply_update("hook", found)

    def on_hook_failed(self, error: AdapterFailed) -> None:
        """Log the error, because a device ignores the answer to its hook."""
        self._log_once(error, _position_in(error))

    @property
    def operations(self) -> Mapping[str, Operation]:
        return {name: partial(self._operate, name) for name in self._definition.operations}

    async def _operate(self, name: str, payload: Mapping[str, Value]) -> Value:
        secs = self.operation_secs[name]
        found = await self.functions.call(["operations", name], dict(payload), secs=secs)
        if isinstance(found.second, str):
            raise BadAnswer(found.second[:MAX_SENTENCE_CHARS])
        return await self.functions.redacted(found.first, self.redact.in_value)

    async def apply_update(self, function: str, found: Results) -> None:
        """Publish an update that `receive` or `hook` returned, and carry out the update's requests. If the update
        contains devices or events, wait for the first poll before publishing."""
        raw = found.first
        has_devices = isinstance(raw, dict) and raw.keys() & {"devices", "events"}
        if has_devices and not self._has_polled:
            await self.publish.has_started.wait()
        if has_devices:
            raw |= {name: await self.functions.redacted(raw[name]) for name in ("devices", "events") if name in raw}
        update = await self._read(function, found.at, self._reader.read_update(raw, function))
        await in_steps(self.clock, self._publish_update(update))
        self.record_contact()
        self.publish.answered()
        if update.send is not None:
            if self.connection is None or not self.connection.can_send:
                raise AdapterFailed(f"{function} returned a message to send, but the kind has no WebSocket")
            await self.connection.send(update.send)
        if update.poll:
            self.poll_now()

    async def _read(self, function: str, at: str, reading: Generator[None, None, T]) -> T:
        try:
            return await in_steps(self.clock, reading)
        except Invalid as fault:
            raise AdapterFailed(self.redact(f"{at}: the result of {function} is invalid: {fault}")) from None

    def _publish_update(self, update: ReadUpdate) -> Iterator[None]:
        """Publish the rows of an update one by one, in their order, so that no intermediate change is lost."""
        if update.complete:
            yield from self.publish.full_list_parts((), update.devices.ids)
        for row in update.devices.rows:
            known = self.publish.find(row.device_id)
            before = {} if known is None else known.attributes
            ended = ended_colors(row.attributes or {}, before)
            if known is None and self.publish.count_devices() >= MAX_DEVICES:
                self._reader.refuse_further()
            elif row.seen is not None:
                kept = {key: each for key, each in before.items() if key not in ended}
                self.publish.device(row.observation(kept, is_pushed=True))
            elif known is not None and row.attributes is not None:
                self.publish.attributes(row.device_id, {**row.attributes, **ended})
            yield
        yield from self._publish_all(update.devices.events)

    def _publish_all(self, events: Iterable[ReadEvent]) -> Iterator[None]:
        for device_id, event, data in events:
            self.publish.event(device_id, event, data)
            yield

    async def publish_events(self) -> None:
        """Publish the events of the last polls, once their devices are published."""
        events, self._unpublished = self._unpublished, []
        await in_steps(self.clock, self._publish_all(events))

    async def _keep_processing(self) -> None:
        """Pass each message of the connection to the file, at a limited rate."""
        while self.connection is not None:
            await self._process_next(self.connection)  # a variable here would keep the last message in memory

    async def _process_next(self, connection: PushConnection) -> None:
        message, began = await connection.next_message(), self.clock.monotonic()
        try:
            found = await self.run_limited(self.functions.call(["listen", "receive"], message))
            await self.apply_update("receive", found)
        except AdapterFailed as error:
            self._log_once(error, _position_in(error))
        pause = began + MIN_MESSAGE_SECS - self.clock.monotonic()
        if pause > 0 and connection.waiting > MAX_UNPACED_MESSAGES:
            await self.clock.sleep(pause)

    def _log_once(self, error: AdapterFailed, place: str) -> None:
        """Publish an error of a message or hook. For each position in the file, log only the first error."""
        self.publish.record_error(error)
        if place not in self._logged and len(self._logged) < MAX_LOGGED_FAULTS:
            self._logged.add(place)
            log.warning("%s: %s", self.name, error)

    def _receive(self, message: Any) -> None:
        """Record only the contact. `_keep_processing` passes the queued message to the file."""
        self.record_contact()

    @asynccontextmanager
    async def open_push(self) -> AsyncIterator[AsyncIterator[Any]]:
        """Open the connection of `listen`."""
        assert self.connection is not None
        try:
            async with self.connection.connect(self.functions.hello, self.functions.find_path) as messages:
                self._push_error = None
                self.poll_now()
                yield messages
        except AdapterFailed as error:
            self._push_error = error
            if not isinstance(error, Unreachable):
                self._log_once(error, "the connection")
            raise

    async def read_attributes(self, device_ids: Iterable[str]) -> StateReading:
        """Read the device states. If the file has no function `poll`, return the pushed states."""
        if self._definition.has_poll:
            return await super().read_attributes(device_ids)
        return StateReading(None, {each: self._pushed_state(each) for each in device_ids}, None)

    def _pushed_state(self, device_id: str) -> Mapping[str, Value]:
        device = self.publish.find(device_id)
        seen = {} if device is None else device.attributes
        # the vendor has answered this command, so the state `offline` is out of date
        return {name: each for name, each in seen.items() if (name, each) != ("state", OFFLINE)}


class WaitingAdapter(Adapter):
    """Waits until a faulty file of a kind is changed."""

    def __init__(self, context: AdapterContext, fault: SectionFault) -> None:
        super().__init__(context)
        self._fault = fault
        self._sentence = str(fault.faults[0])

    async def run(self) -> None:
        """Publish the fault, and wait. Raise `AdapterReplaced` once the file changes."""
        self.publish.failed(AdapterFailed(self._sentence))
        self.publish.started()
        await replace_when(self._fault)

    async def command(self, device_id: str, command: Command) -> CommandResult:
        raise AdapterFailed(self._sentence)


async def replace_when(known: LoadedSection | SectionFault) -> None:
    """Wait until the section's kind changes. Then raise `AdapterReplaced`."""
    await known.changed.wait()
    raise AdapterReplaced


def _position_in(error: AdapterFailed) -> str:
    """Return the file and line of an error, without the message."""
    return str(error).partition(": ")[0]


def build(section: LuaSection, context: AdapterContext) -> Adapter:
    assert context.lua_host is not None
    found = context.lua_host.find(section)
    if isinstance(found, SectionFault):
        return WaitingAdapter(context, found)
    return LuaAdapter(context, context.lua_host, found)
