"""The contract of every adapter kind, for any vendor: one suite, run over each kind with its simulator."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from appliance.adapters.adapter_runner import AdapterRunner
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.dispatch import Dispatcher, Outcome, Status
from appliance.adapters.kind import AdapterKind
from appliance.adapters.simulated_device import Faults
from appliance.clock import Clock
from appliance.health import AdapterStatus, Health
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.model import Device
from appliance.home.registry import Registry
from tests.fakes.context import context_of
from tests.fakes.patience import until


@dataclass(frozen=True, slots=True)
class ExpectedCommand:
    """A command, and the value that confirms it."""

    command: Command
    shown: Any


POWER: Mapping[str, ExpectedCommand] = {
    action: ExpectedCommand(Command(capability="power", action=action), shown)
    for action, shown in (("on", "on"), ("off", "off"), ("toggle", "off"))
}
"""The power commands of most devices."""

GARBAGE = (b"", b"{", b"[]", b"7", b"<html/>", b'{"state":{},"lights":7}', b"\xff" * 999)


class FastClock(Clock):
    """Accelerated real time. Each sleep and each wait take a fraction of the given seconds."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed

    def monotonic(self) -> float:
        return super().monotonic() * self._speed

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / self._speed)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        return await super().wait(event, seconds / self._speed)


class HeldClock(Clock):
    """A simulator's clock that holds each delayed response until the response is `released`."""

    def __init__(self) -> None:
        super().__init__()
        self.released = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await self.released.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One kind, and one of its devices.

    `simulate` and `settings` replace the kind's own simulation. `commands` lists the device's commands: `on`, `off`,
    and `toggle` if it is supported. A read-only device has no commands. `open_kinds` runs kinds in Lua for one
    section.

    A kind that is not `is_polled` keeps a connection. While the connection is lost, commands fail, and garbage is
    reported only to callers. `is_online_later` is set if devices announce their presence in a separate message,
    which can arrive after the adapter's start.

    `fewer` removes a device at the vendor, and `more` adds it again. `change` changes the device's state at the
    vendor, and `changed` is the resulting attribute. If a polled vendor also pushes this change, `is_connected`
    returns whether the adapter is connected. `happen` makes the vendor send the `event`. `lose` disconnects the
    device from its bridge, and `find` reconnects it.
    """

    name: str
    kind: AdapterKind
    device: str
    simulate: Callable[[], Any] | None = None
    settings: Callable[[Any], Any] | None = None
    commands: Mapping[str, ExpectedCommand] = field(default_factory=lambda: POWER)
    is_polled: bool = True
    is_online_later: bool = False
    open_kinds: Callable[[Any], AbstractAsyncContextManager[Any]] = lambda settings: nullcontext()
    garbage: tuple[bytes, ...] = GARBAGE
    speed: float = 20
    fewer: Callable[[Any], object] | None = None
    more: Callable[[Any], object] | None = None
    change: Callable[[Any], object] | None = None
    changed: tuple[str, Any] = ("power", "on")
    is_connected: Callable[[Any], object] | None = None
    happen: Callable[[Any], object] | None = None
    event: str = ""
    lose: Callable[[Any], object] | None = None
    find: Callable[[Any], object] | None = None


class Trial:
    """A running adapter and its simulator."""

    def __init__(self, subject: Subject, vendor: Any) -> None:
        self.subject = subject
        self.vendor = vendor
        self.clock, self.bus = FastClock(subject.speed), Bus()
        self.happened: list[events.Event] = []
        self.bus.listen(self.happened.append)
        self._answers = 0
        self.bus.listen(self._count, events.AdapterAnswered)
        self.registry = Registry(self.bus, self.clock)
        self.health = Health([subject.name], self.bus)
        self.dispatcher: Dispatcher
        self.runner: AdapterRunner

    @property
    def device(self) -> Device:
        return self.registry.get_device(f"{self.subject.name}:{self.subject.device}")

    @property
    def status(self) -> AdapterStatus:
        return self.health.get_adapter(self.subject.name).status

    def states(self) -> set[Any]:
        return {device.attributes["state"] for device in self.registry.list_devices()}

    def shows_change(self) -> bool:
        """Return whether the device reports the result of the subject's `change`."""
        name, value = self.subject.changed
        return bool(self.device.attributes.get(name) == value)

    @property
    def polls_ended(self) -> int:
        return self._answers

    def _count(self, event: events.Event) -> None:
        self._answers += isinstance(event, events.AdapterAnswered) and event.secs is not None

    async def begin(self, faults: Faults) -> None:
        """Begin the faults between two polls. If a call failed during a poll, the values of this poll would be
        unknown."""
        begun = asyncio.Event()

        def begin(event: events.Event) -> None:
            if isinstance(event, events.AdapterAnswered) and event.secs is not None and not begun.is_set():
                self.vendor.faults = faults
                begun.set()

        self.bus.listen(begin, events.AdapterAnswered)
        await begun.wait()

    def errors(self) -> list[events.SystemErrorReported]:
        return [event for event in self.happened if isinstance(event, events.SystemErrorReported)]

    def device_events(self) -> list[tuple[str, str]]:
        """Return device id and name of each device event."""
        return [(each.device_id, each.event) for each in self.happened if isinstance(each, events.DeviceEvent)]

    async def at_vendor(self, act: Callable[[Any], object]) -> None:
        """Make this change at the vendor. Wait if the change takes time."""
        if inspect.isawaitable(done := act(self.vendor)):
            await done

    async def command(self, action: str) -> Outcome:
        """Send the command, and return its outcome."""
        [outcome] = await self.dispatcher.send([self.device], self.subject.commands[action].command, "device")
        return outcome

    def has_result(self, action: str) -> bool:
        """Return whether the device reports the result of the command."""
        expected = self.subject.commands[action]
        return bool(self.device.attributes.get(expected.command.capability) == expected.shown)

    async def succeeds(self, action: str) -> bool:
        """Return whether the command succeeds. A kind with a connection gets time to reconnect."""
        if not self.subject.is_polled:
            async with asyncio.timeout(10):
                while (await self.command(action)).status is not Status.OK:  # noqa: ASYNC110 - no event to await
                    await asyncio.sleep(0.01)
            return True
        return (await self.command(action)).status is Status.OK


@asynccontextmanager
async def trial(subject: Subject) -> AsyncIterator[Trial]:
    """Run an adapter of the kind. Yield after the adapter's first poll."""
    simulate = subject.simulate or subject.kind.simulate
    settings_for = subject.settings or subject.kind.simulated
    assert settings_for is not None
    async with AsyncExitStack() as stack, simulate() as vendor, DeviceSession() as session:
        it = Trial(subject, vendor)
        settings = settings_for(vendor)
        kinds = await stack.enter_async_context(subject.open_kinds(settings))
        context = context_of(subject.name, session, it.clock, registry=it.registry, bus=it.bus, kinds=kinds)
        it.runner = AdapterRunner(partial(subject.kind.build, settings), context)
        it.dispatcher = Dispatcher([it.runner], it.bus, it.clock)
        async with it.runner, it.dispatcher:
            await until(lambda: it.status is AdapterStatus.RUNNING and context.publish.has_started.is_set())
            if subject.is_online_later:
                await until(lambda: it.states() == {"online"})
            yield it


class ReadingContract:
    """The suite for read-only devices. A test class inherits the suite, and sets `subject`."""

    subject: Subject

    async def test_it_reports_its_devices_and_their_commands(self) -> None:
        async with trial(self.subject) as it:
            assert it.happened.count(events.AdapterStarted(adapter=self.subject.name)) == 1
            kinds = self.subject.kind.device_kinds
            for device in it.registry.list_devices():
                assert device.id.startswith(f"{self.subject.name}:") and device.name != device.id
                assert device.kind in kinds and device.attributes["state"] == "online"
                assert device.commands is not None
            assert bool(it.device.commands) == isinstance(self, AdapterContract)
            assert not [each for each in it.happened if isinstance(each, events.ObservationDropped)]

    async def test_an_unoffered_command_is_unsupported_and_not_sent(self) -> None:
        async with trial(self.subject) as it:
            unlock = Command(capability="lock", action="unlock")
            [outcome] = await it.dispatcher.send([it.device], unlock, "device")
            assert outcome.status is Status.UNSUPPORTED

    async def test_each_outage_is_reported_once_and_ends_with_the_first_answer(self) -> None:
        async with trial(self.subject) as it:
            before, reported = it.device.attributes, it.errors()
            for _ in range(2):
                await it.vendor.unplug()
                await until(lambda: it.states() == {"offline"})
                assert len(it.errors()) > len(reported), "a device that is cut off during a poll may report that too"
                reported = it.errors()
                if it.device.commands:
                    refused = await it.command("on")
                    assert refused.error is not None and refused.error.code == "device_unreachable"
                assert it.device.attributes == {**before, "state": "offline"}
                await it.vendor.plug_in()
                await until(lambda: it.states() == {"online"})
                assert it.errors() == reported and reported[-1].message.startswith(f"{self.subject.name}: ")
            if it.device.commands:
                assert await it.succeeds("on")

    async def test_garbage_is_not_an_outage_and_sets_no_value(self) -> None:
        for body in self.subject.garbage:
            async with trial(self.subject) as it:
                before = it.device
                it.vendor.faults.body = body
                if self.subject.is_polled:
                    await until(lambda it=it: it.status is AdapterStatus.DEGRADED)  # type: ignore[misc]
                if before.commands:
                    refused = await it.command("on")
                    assert refused.error is not None and refused.error.code == "device_refused", body
                shown = it.device.attributes.items()
                assert (
                    shown == before.attributes.items()
                    if self.subject.is_polled
                    else shown <= before.attributes.items()
                )
                it.vendor.faults.body = None
                if before.commands:
                    assert await it.succeeds("on")
                await until(lambda it=it: it.status is AdapterStatus.RUNNING)  # type: ignore[misc]

    @pytest.mark.slow
    @pytest.mark.parametrize("fault", [{"silent": True}, {"status": 500}, {"torn": 99}, {"drop": 99}], ids=str)
    async def test_after_any_fault_the_device_is_as_before(self, fault: Any) -> None:
        if not self.subject.is_polled:
            return
        async with trial(self.subject) as it:
            before = it.device.attributes
            await it.begin(Faults(**fault))
            await until(lambda: it.status is not AdapterStatus.RUNNING, 30)
            assert {**it.device.attributes, "state": "online"} == before
            it.vendor.faults = Faults()
            await until(lambda: it.status is AdapterStatus.RUNNING and it.states() == {"online"}, 30)
            assert it.device.attributes == before
            if it.device.commands:
                assert await it.succeeds("on")

    async def test_a_failed_adapter_is_replaced_and_its_devices_kept(self) -> None:
        async with trial(self.subject) as it:
            before, adapter = it.registry.list_devices(), it.runner.adapter
            assert it.runner._current is not None
            it.runner._current.cancel()
            await until(lambda: it.runner.adapter not in (adapter, None))
            assert [device.id for device in it.registry.list_devices()] == [device.id for device in before]
            if it.device.commands:
                assert await it.succeeds("on")

    async def test_a_device_that_the_vendor_no_longer_lists_is_removed_and_can_return(self) -> None:
        if self.subject.fewer is None or self.subject.more is None:
            return
        async with trial(self.subject) as it:
            ids = [device.id for device in it.registry.list_devices()]
            self.subject.fewer(it.vendor)
            await until(lambda: len(it.registry.list_devices()) < len(ids))
            self.subject.more(it.vendor)
            await until(lambda: [device.id for device in it.registry.list_devices()] == ids)

    async def test_a_change_at_the_vendor_is_shown(self) -> None:
        if self.subject.change is None:
            return
        async with trial(self.subject) as it:
            assert not it.shows_change()
            await it.at_vendor(self.subject.change)
            await until(it.shows_change)

    async def test_a_pushed_value_is_shown_at_once_and_an_older_answer_does_not_undo_it(self) -> None:
        change, is_connected = self.subject.change, self.subject.is_connected
        if change is None or is_connected is None:
            return
        async with trial(self.subject) as it:
            await until(lambda: is_connected(it.vendor))
            it.vendor._clock, it.vendor.faults.delay = HeldClock(), 1.0
            asked = len(it.vendor.requests)
            await until(lambda: len(it.vendor.requests) > asked)
            ended = it.polls_ended
            await it.at_vendor(change)
            await until(it.shows_change)
            assert it.polls_ended == ended, "it was pushed, and not read"
            it.happened.clear()
            it.vendor._clock.released.set()
            await until(lambda: it.polls_ended > ended + 1)
            changes = [each for each in it.happened if isinstance(each, events.DeviceStateChanged)]
            assert it.shows_change() and not changes

    async def test_each_occurrence_is_an_event(self) -> None:
        if self.subject.happen is None:
            return
        async with trial(self.subject) as it:
            for count in (1, 2):
                await it.at_vendor(self.subject.happen)
                await until(lambda count=count: len(it.device_events()) == count)  # type: ignore[misc]
            assert it.device_events() == [(it.device.id, self.subject.event)] * 2

    async def test_a_device_lost_by_its_bridge_is_unavailable_until_it_returns(self) -> None:
        if self.subject.lose is None or self.subject.find is None:
            return
        async with trial(self.subject) as it:
            others = [each.id for each in it.registry.list_devices() if each.id != it.device.id]
            await it.at_vendor(self.subject.lose)
            await until(lambda: it.device.attributes["state"] == "unavailable")
            assert {each.attributes["state"] for each in it.registry.find_devices(others)} <= {"online"}
            await it.at_vendor(self.subject.find)
            await until(lambda: it.device.attributes["state"] == "online")
            assert not [each for each in it.happened if isinstance(each, events.SystemErrorReported)]


class AdapterContract(ReadingContract):
    async def test_a_command_returns_after_its_result_is_reported(self) -> None:
        async with trial(self.subject) as it:
            for action in ("on", "off", "on"):
                assert (await it.command(action)).status is Status.OK
                assert it.has_result(action)
            if "toggle" in self.subject.commands:
                assert (await it.command("toggle")).status is Status.OK
                assert it.has_result("toggle")

    async def test_an_answer_to_a_request_before_a_command_does_not_undo_it(self) -> None:
        if not self.subject.is_polled:
            return
        async with trial(self.subject) as it:
            await it.command("off")
            it.vendor._clock, it.vendor.faults.delay = HeldClock(), 1.0
            asked = len(it.vendor.requests)
            await until(lambda: len(it.vendor.requests) > asked)
            it.vendor.faults.delay = 0.0
            assert (await it.command("on")).status is Status.OK
            it.happened.clear()
            it.vendor._clock.released.set()
            ended = it.polls_ended
            await until(lambda: it.polls_ended > ended)
            changes = [each for each in it.happened if isinstance(each, events.DeviceStateChanged)]
            assert it.has_result("on") and not changes

    async def test_a_command_that_succeeds_ends_an_outage(self) -> None:
        async with trial(self.subject) as it:
            await it.vendor.unplug()
            await until(lambda: it.states() == {"offline"})
            await it.vendor.plug_in()
            assert await it.succeeds("on")
            assert it.states() == {"online"}

    async def test_a_command_without_effect_is_not_a_success(self) -> None:
        async with trial(self.subject) as it:
            await it.command("off")
            it.vendor.faults.stubborn = True
            await it.command("on")
            assert it.has_result("off"), "the state comes from the device"

    async def test_commands_that_are_cancelled_leave_nothing_behind(self) -> None:
        async with trial(self.subject) as it:
            it.vendor.faults.silent = True
            asking = [asyncio.ensure_future(it.command("on")) for _ in range(3)]
            await until(lambda: it.runner.gate.commands_under_way > 0)
            it.dispatcher.abort_all()
            assert {outcome.status for outcome in await asyncio.gather(*asking)} == {Status.ERROR}
            it.vendor.faults.silent = False
            assert (await it.command("off")).status is Status.OK
