"""An adapter whose kind is written in Lua: polls, commands and operations are calls of the file's functions.

Each call runs in a Lua state of its own; what lasts is `ctx.memory`, which is kept here. So the end of a worker takes
nothing of an adapter along.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from appliance.adapters.access_settings import url_path
from appliance.adapters.base import (
    COMMAND_TIMEOUT_SECS,
    Adapter,
    AdapterContext,
    CommandResult,
    HookRequest,
    Operation,
)
from appliance.adapters.done import ExpectedState
from appliance.adapters.lua_kinds.calls import FunctionCalls, KeptTexts
from appliance.adapters.lua_kinds.computing import compute_apart
from appliance.adapters.lua_kinds.connection import PushConnection
from appliance.adapters.lua_kinds.host import KindHost, LoadedSection, SectionFault
from appliance.adapters.lua_kinds.reader import (
    DeviceReader,
    HappenedEvent,
    ToldDevices,
    ToldUpdate,
    device_for_lua,
)
from appliance.adapters.lua_kinds.redaction import Redaction, count_characters
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.adapters.lua_kinds.waiting import WaitingAdapter, replace_when
from appliance.adapters.lua_kinds.web_request import Origins, Transport
from appliance.adapters.polling import POLLS_TO_LOSE, PollingAdapter
from appliance.errors import AdapterFailed, BadAnswer, Invalid, ScriptFailed, Unanswered, Unreachable, Unreadable
from appliance.home.commands import Command, check_offered
from appliance.home.json_shapes import STATED_COMMAND
from appliance.home.model import Device, Report
from appliance.home.registry import OFFLINE
from appliance.home.values import Value
from appliance.tables.checks import is_number, shown
from appliance.tasks import in_steps, run_together

MIN_MESSAGE_SECS, CALM_MESSAGES = 0.01, 10
"""Seconds between two messages that are handed to a file while more than so many wait."""

MAX_SAID = 100
"""Different faults of messages and hooks that are logged."""

MAX_REDACTED_AT_ONCE = 1 << 14
"""Characters that are redacted on the loop; more are redacted on a thread."""

TOGGLED = {"on": "off", "off": "on"}

UNREPEATED = frozenset({"toggle", "press", "next", "previous", "increase", "decrease"})
"""Actions whose requests are never repeated: each one has an effect."""

MAX_POLL_SECS = 86_400
MAX_SENTENCE_CHARS = 500
"""Characters of a refusal in a file's own words."""

T = TypeVar("T")

log = logging.getLogger("adapters")


class LuaAdapter(PollingAdapter):
    """One section whose kind is sound. `transport` takes the place of its vendor, where it is given."""

    shares_outages = False

    def __init__(
        self, context: AdapterContext, host: KindHost, loaded: LoadedSection, transport: Transport | None = None
    ) -> None:
        origins = Origins(loaded.settings, context)
        super().__init__(context, origins.main, loaded.settings.values["poll_interval_secs"])
        self.kept = KeptTexts(context.secrets)
        self.redact = Redaction(origins.secrets, self.kept)
        self._host = host
        self._loaded = loaded
        self._transport: Transport = transport or origins
        self.operation_secs = loaded.definition.operations
        self._settings = origins.settings_for_lua()
        self._interval = self.poll_interval
        self._memory: dict[str, Value] = {}
        self._said: set[str] = set()
        self._has_polled = False
        self._last_poll: FunctionCalls | None = None
        self._lists_devices = True
        self._idle = ""
        self._push_error: AdapterFailed | None = None
        self._untold: list[HappenedEvent] = []
        listen = loaded.definition.listen
        self.connection = (
            None
            if listen is None
            else PushConnection(origins.main, listen, self._hello, self.poll_now, self._find_path)
        )
        self._reader = DeviceReader(self.publish)
        self.max_silence_secs = loaded.settings.values["max_silence_secs"]

    async def listen(self) -> None:
        """Take what is pushed until cancelled, as `run` does, which polls besides."""
        await run_together(self._keep_receiving(), self._keep_hearing())

    async def run(self) -> None:
        """Poll until cancelled, or until the kind is another; raises `AdapterReplaced` then."""
        await run_together(super().run(), self._keep_hearing(), replace_when(self._loaded))

    async def within_limit(self, work: Awaitable[T]) -> T:
        """As ever, but a function that asks nothing when its time is over says nothing of the device."""
        self._idle = ""
        try:
            return await super().within_limit(work)
        except (Unreachable, Unanswered):
            if not self._idle:
                raise
            sentence = f"{self._idle} took longer than {COMMAND_TIMEOUT_SECS:g} s without waiting for the device"
            raise AdapterFailed(sentence) from None

    async def poll_once(self) -> None:
        """Poll and publish; where the file has no function `poll`, see whether it is still heard of."""
        if self._loaded.definition.has_poll:
            await super().poll_once()
            await self.tell_events()
        elif self.connection is not None and not self.connection.is_open:
            error = self._push_error or Unreachable(f"{self.http.address}: the connection is not open")
            if self._push_error is None and self.misses == 0:  # it is about to be opened
                self.misses = 1
            elif isinstance(error, Unreachable):
                self._on_miss(error, self.misses + 1)
            else:  # it was answered, and that is no outage
                self.misses = 0
                self.publish.reached()
                self.publish.record_error(error)
        elif self.max_silence_secs is not None and self.publish.devices() and not self._may_be_silent():
            self._on_miss(Unreachable(f"nothing was heard for {self.max_silence_secs} s"), POLLS_TO_LOSE)
        else:
            self.misses = 0
            self.publish.answered()

    async def poll(self) -> Report:
        """The devices that the file's `poll` returns; where it has none, nothing is removed."""
        if not self._loaded.definition.has_poll:
            return Report(adapter=self.name)
        calls = self._new_calls()
        found = await self._call(["poll"], repeat=True, calls=calls)
        self._has_polled = True
        self.poll_interval = self._next_poll(found["second"])
        told = ToldDevices()
        devices = await self._redacted(found["first"])
        await self._read("poll", self._reader.read_all(devices, "poll", told))
        self._untold += told.events
        self._last_poll, self._lists_devices = calls, devices is not None
        observations = tuple(self._reader.observations(told))
        return Report(adapter=self.name, present=frozenset(told.ids), observations=observations)

    def describe_answer(self) -> str:
        """Return which fields the answers to the last poll contained."""
        return "" if self._last_poll is None else self.redact(self._last_poll.describe_answers())

    def _report_empty(self, *, is_empty: bool) -> None:
        """Report an empty list; a file without devices returns nothing instead."""
        super()._report_empty(is_empty=is_empty and self._lists_devices)

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Call the file's `command`, after its `poll` was once, and see that what was asked shows."""
        try:
            return await self._command(device_id, command, self.clock.monotonic())
        finally:
            await self.tell_events()

    async def _command(self, device_id: str, command: Command, began: float) -> CommandResult:
        before = await self._shown(device_id, is_fresh=command.action == "toggle" or not self._has_polled)
        command = check_offered(device_id, before.commands or (), command)
        if not self._loaded.definition.has_command:
            raise BadAnswer(f"the kind {self._loaded.section.kind} has no function command")
        command = self._without_toggle(before, command)
        expected = ExpectedState(command, before.commands or (), before.attributes)
        calls = self._new_calls(repeats=command.action not in UNREPEATED)
        try:
            device = device_for_lua(before, self.name)
            found = await self._call(["command"], device, STATED_COMMAND(command), calls=calls)
        except (Unanswered, Unreadable):  # the answer cannot be read: the command may have worked
            return await self.confirm(device_id, expected, began)
        if isinstance(found["second"], str):
            return CommandResult(error=BadAnswer(found["second"][:MAX_SENTENCE_CHARS]))
        if found["first"] is True:
            return CommandResult()
        if found["first"] is None:
            return await self.confirm(device_id, expected, began)
        return self._answered(device_id, await self._redacted(found["first"]), expected)

    def _without_toggle(self, device: Device, command: Command) -> Command:
        """Replace `toggle` by `on` or `off`, unless the file lists `toggle` as an action of the device."""
        if command.action != "toggle" or self._reader.handles_toggle(device.id):
            return command
        if (action := TOGGLED.get(str(device.attributes.get(command.capability)))) is None:
            raise BadAnswer(f"{device.id} does not show whether it is on; send on or off instead of toggle")
        return replace(command, action=action)

    @property
    def hooks(self) -> Collection[str]:
        """The section's own hook, where its file has a function for that."""
        return (self.name,) if self._loaded.definition.has_hook else ()

    async def hook(self, request: HookRequest) -> None:
        """Hand the request to the file, and publish what it makes of it."""
        told: dict[str, Any] = {"method": request.method, "data": request.data}
        for name, texts in (("query", request.query), ("headers", request.headers)):
            told[name] = {str(key): str(value) for key, value in texts.items()}
        await self._update("hook", (await self._call(["hook"], told, body=request.body))["first"])

    def on_hook_failed(self, error: AdapterFailed) -> None:
        """What calls a hook is a device, which reads no answer: it is logged, as with messages."""
        self._say_once(error, str(error).partition(": ")[0])

    @property
    def operations(self) -> Mapping[str, Operation]:
        """The functions of the file's `operations`."""
        return {name: partial(self._operate, name) for name in self._loaded.definition.operations}

    async def _operate(self, name: str, payload: Mapping[str, Value]) -> Value:
        calls = self._new_calls(self.operation_secs[name])
        found = await self._call(["operations", name], dict(payload), calls=calls)
        if isinstance(found["second"], str):
            raise BadAnswer(found["second"][:MAX_SENTENCE_CHARS])
        return await self._redacted(found["first"], self.redact.in_value)

    async def _call(
        self,
        path: list[str],
        first: Any = None,
        second: Any = None,
        *,
        body: bytes | None = None,
        repeat: bool = False,
        calls: FunctionCalls | None = None,
    ) -> Any:
        """Return the results of a function. Raises `Unreachable` if it failed because nothing answered.

        A `first` argument may be bytes, and may have a `body` of bytes.
        """
        calls = calls or self._new_calls()
        await self.redact.prepare()
        if isinstance(first, bytes):
            first, body = None, first
        before, arguments = self._memory, {"first": first, "second": second}
        given = {"settings": self._settings, "memory": before, "repeat": repeat, **arguments}
        if body is not None:
            given["bytes"] = body.decode("latin-1")
        try:
            found = await self._host.call(self._loaded.section, calls, path, given)
        except asyncio.CancelledError:
            self._idle = "" if calls.is_asking else f"{self._loaded.section.kind}.lua: {'.'.join(path)}"
            raise
        except ScriptFailed as failed:
            if calls.failure is not None and str(calls.failure) in failed.message:
                raise type(calls.failure)(self.redact(str(calls.failure))) from None
            raise AdapterFailed(self.redact(str(failed))) from None
        self._remember(before, found["memory"] or {})
        if path in (["listen", "hello"], ["listen", "path"]):  # the vendor gets these, with secrets
            return found
        return {name: self.redact(each) if isinstance(each, str) else each for name, each in found.items()}

    def _new_calls(self, secs: float = COMMAND_TIMEOUT_SECS, *, repeats: bool = True) -> FunctionCalls:
        return FunctionCalls(
            self.name, self._transport, self.kept, self.redact, self.connection, secs, repeats=repeats
        )

    async def _update(self, function: str, raw: Any) -> None:
        """Publish what a function said of devices, once a first poll has described them, and do what it asks for."""
        tells = isinstance(raw, dict) and raw.keys() & {"devices", "events"}
        if tells and self._loaded.definition.has_poll and not self._has_polled:
            await self.publish.has_started.wait()
        if isinstance(raw, dict):
            raw |= {name: await self._redacted(raw[name]) for name in ("devices", "events") if name in raw}
        update = ToldUpdate()
        await self._read(function, self._reader.read_update(raw, function, update))
        await in_steps(self.clock, self._publish_update(update))
        self.note_heard()
        self.publish.answered()
        if update.send is not None:
            if self.connection is None or not self.connection.can_send:
                raise AdapterFailed(f"{function} returned something to send, and the kind listens to no WebSocket")
            await self.connection.send(update.send)
        if update.poll:
            self.poll_now()

    async def _keep_hearing(self) -> None:
        """Hand each message of the connection to the file's `receive`, at most so many in a second."""
        while self.connection is not None:
            message, began = await self.connection.next_message(), self.clock.monotonic()
            try:
                found = await self.within(COMMAND_TIMEOUT_SECS, self._call(["listen", "receive"], message))
                await self._update("receive", found["first"])
            except AdapterFailed as error:
                self._say_once(error, str(error).partition(": ")[0])
            pause = began + MIN_MESSAGE_SECS - self.clock.monotonic()
            if pause > 0 and self.connection.waiting > CALM_MESSAGES:
                await self.clock.sleep(pause)

    def _say_once(self, error: AdapterFailed, place: str) -> None:
        """Log what was wrong with a message or hook, once for each place in the file: the rest may be any words."""
        self.publish.record_error(error)
        if place not in self._said and len(self._said) < MAX_SAID:
            self._said.add(place)
            log.warning("%s: %s", self.name, error)

    def open_push(self) -> AbstractAsyncContextManager[AsyncIterator[Any]] | None:
        """The connection of the file's `listen`, where it has one."""
        return None if self.connection is None else self._open_push(self.connection)

    @asynccontextmanager
    async def _open_push(self, connection: PushConnection) -> AsyncIterator[AsyncIterator[Any]]:
        """The connection; what was wrong with what came over it is logged once."""
        try:
            async with connection.open() as messages:
                self._push_error = None
                yield messages
        except AdapterFailed as error:
            self._push_error = error
            if not isinstance(error, Unreachable):
                self._say_once(error, "the connection")
            raise

    async def _find_path(self) -> str | None:
        """Return the path to listen on, from the function of the file; None if this section does not listen."""
        found = (await self._call(["listen", "path"]))["first"]
        try:
            return None if found is None else url_path(found)
        except Invalid as fault:
            raise AdapterFailed(f"listen.path returned {shown(found)}, which {fault}") from None

    async def _hello(self) -> Any:
        return (await self._call(["listen", "hello"]))["first"]

    def _remember(self, before: Mapping[str, Value], after: Mapping[str, Value]) -> None:
        """Take over what a function made different of its memory; others may have run meanwhile."""
        changed = {key: value for key, value in after.items() if key not in before or before[key] != value}
        gone = before.keys() - after.keys()
        self._memory = {key: value for key, value in {**self._memory, **changed}.items() if key not in gone}

    def _next_poll(self, secs: Any) -> float:
        if is_number(secs):
            return min(max(float(secs), 1.0), MAX_POLL_SECS)
        if secs is not None:
            raise BadAnswer(f"the second thing that poll returned must be seconds, not {shown(secs)}")
        return float(self._interval)

    async def _redacted(self, value: Any, redact: Callable[[Any], Any] | None = None) -> Any:
        """Return what a device is to show without secrets, or as `redact` does it; off the loop if it is long."""
        redact = redact or self.redact.in_device
        if count_characters(value, MAX_REDACTED_AT_ONCE) <= MAX_REDACTED_AT_ONCE:
            return redact(value)
        return await compute_apart(redact, value)

    async def _read(self, function: str, reading: Iterable[None]) -> None:
        try:
            await in_steps(self.clock, reading)
        except Invalid as fault:
            raise AdapterFailed(self.redact(f"what {function} returned cannot be used: {fault}")) from None

    def _publish_update(self, update: ToldUpdate) -> Iterator[None]:
        """Publish the rows of an update one by one in their order, so that no change hides an earlier one."""
        told = update.devices
        for row in told.rows:
            known = self.publish.find(row.device_id)
            if row.seen is not None:
                self.publish.device(row.observation({} if known is None else known.attributes, is_pushed=True))
            elif known is not None and row.attributes is not None:
                self.publish.attributes(row.device_id, row.attributes)
            yield
        if update.complete:
            self.publish.full_list((), told.ids)
        yield from self._publish_events(told.events)

    def _publish_events(self, happened: Iterable[HappenedEvent]) -> Iterator[None]:
        for device_id, event, data in happened:
            self.publish.event(device_id, event, data)
            yield

    async def tell_events(self) -> None:
        """Publish the events of polls, after the devices show the result of the poll."""
        untold, self._untold = self._untold, []
        await in_steps(self.clock, self._publish_events(untold))

    async def _shown(self, device_id: str, *, is_fresh: bool) -> Device:
        """The device as it shows now, after a poll where it is to be fresh."""
        if is_fresh and self._loaded.definition.has_poll:
            await in_steps(self.clock, self.publish.report_parts(await self.poll()))
        device = self.publish.find(device_id)
        if device is None:
            raise BadAnswer(f"{device_id} is not there any more")
        return device

    def _answered(self, device_id: str, raw: Any, expected: ExpectedState) -> CommandResult:
        """The result where the file said what the device shows now."""
        seen = self._reader.read_one(raw, device_id, "command")
        if seen is None:
            return CommandResult(error=BadAnswer(f"command returned {shown(raw)}, which is not a device"))
        error = None if expected.is_shown(seen.attributes) else expected.failure(device_id, seen.attributes)
        return CommandResult(report=Report(adapter=self.name, observations=(seen,)), error=error)

    async def look(self, device_id: str) -> tuple[Report | None, Mapping[str, Value], AdapterFailed | None]:
        """Like the base; without a function `poll`, return the pushed state."""
        if self._loaded.definition.has_poll:
            return await super().look(device_id)
        device = self.publish.find(device_id)
        seen = {} if device is None else device.attributes
        # `offline` describes the time before this command, which the vendor has answered.
        return None, {name: each for name, each in seen.items() if (name, each) != ("state", OFFLINE)}, None


def build(section: LuaSection, context: AdapterContext) -> Adapter:
    """The adapter of a section."""
    assert context.kinds is not None
    found = context.kinds.find(section)
    if isinstance(found, SectionFault):
        return WaitingAdapter(context, found)
    return LuaAdapter(context, context.kinds, found)
