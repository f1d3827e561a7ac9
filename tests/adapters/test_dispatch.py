"""The dispatcher returns the outcome of each device, in order. Commands to different addresses run at the same
time."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import pytest
from msgspec.structs import replace

from appliance.adapters.address_gates import LOCK_TIMEOUT_SECS, AddressGate, AddressGates
from appliance.adapters.base import CommandResult, HookRequest
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.dispatch import (
    MAX_BATCH_DEVICES,
    MAX_STARTED_AT_ONCE,
    MAX_UNDER_WAY,
    Dispatcher,
    Outcome,
    Status,
)
from appliance.errors import AdapterFailed, BadAnswer, Busy, Invalid, LaresError, NotFound, Stopping, Unreachable
from appliance.event_loop import MAX_RESUMED_PER_TURN, SHORT_TURN_SECS, loop_lag, run
from appliance.health import Health
from appliance.home.bus import Bus
from appliance.home.command_specs import CommandSpec
from appliance.home.commands import Command
from appliance.home.events import CommandEnded, CommandStarted, Event
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.home.values import Value
from tests.fakes.adapter import StubAdapter
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of
from tests.fakes.patience import until
from tests.fakes.still import StillRunner

ON = Command(capability="power", action="on")


class Desk:
    """A dispatcher of the adapters `a`, `b`, and `c`. `b` and `c` share an address."""

    def __init__(self, session: DeviceSession, clock: VirtualClock, timeout_secs: float = LOCK_TIMEOUT_SECS) -> None:
        self.bus = bus = Bus()
        self.health = Health("abc", bus)
        self.registry = Registry(bus, clock)
        gates = AddressGates()
        self.adapters: dict[str, StubAdapter] = {}
        runners = []
        for name, address in {"a": "http://one", "b": "http://two", "c": "http://two"}.items():
            context = context_of(name, session, clock, registry=self.registry, bus=bus, gates=gates)
            self.adapters[name] = StubAdapter(context, address=address)
            runners.append(StillRunner(self.adapters[name], context))
            self.registry.apply(self.adapters[name].seen(power="off"))
        self.dispatcher = Dispatcher(runners, bus, clock, timeout_secs)

    def devices(self, names: str) -> list[Device]:
        return [self.registry.get_device(f"{name}:1") for name in names]

    async def begun(self, name: str) -> asyncio.Future[CommandResult]:
        """Return the adapter's first command once it has begun."""
        await self.adapters[name].begun(self.adapters[name].commands)
        return self.adapters[name].commands[0]

    def group(self, name: str, size: int) -> list[Device]:
        """Return this number of copies of the adapter's device, with ids of their own."""
        return [replace(each, id=f"{name}:{number}") for each in self.devices(name) for number in range(size)]

    def done(self, name: str) -> CommandResult:
        return CommandResult(report=self.adapters[name].seen(power="on"))


@pytest.fixture
async def desk(session: DeviceSession, clock: VirtualClock) -> AsyncIterator[Desk]:
    desk = Desk(session, clock)
    async with desk.dispatcher:
        yield desk


def _ok(device_id: str) -> Outcome:
    return Outcome(device_id=device_id)


async def test_devices_at_one_address_are_commanded_one_after_another_in_the_order_given(desk: Desk) -> None:
    sending = asyncio.ensure_future(desk.dispatcher.send(desk.devices("cab"), ON, "device"))
    first, aside = await desk.begun("c"), await desk.begun("a")
    await asyncio.sleep(0)
    assert desk.adapters["b"].commands == []
    first.set_result(desk.done("c"))
    (await desk.begun("b")).set_result(desk.done("b"))
    aside.set_result(desk.done("a"))
    assert await sending == [_ok("c:1"), _ok("a:1"), _ok("b:1")]


def test_calls_that_end_together_are_audited_in_separate_turns() -> None:
    turns: list[int] = []

    def audit(event: Event) -> None:
        if isinstance(event, CommandEnded):
            turns.append(loop_lag().turns)
            time.sleep(2 * SHORT_TURN_SECS)

    async def command_all() -> None:
        async with DeviceSession() as session:
            desk = Desk(session, VirtualClock())
            async with desk.dispatcher:
                sending = [
                    asyncio.ensure_future(desk.dispatcher.send(desk.devices(each), ON, "device")) for each in "ab"
                ]
                begun = [await desk.begun(each) for each in "ab"]
                desk.bus.listen(audit)
                for each in begun:
                    each.set_exception(Unreachable("it does not answer"))
                await asyncio.wait(sending)

    run(command_all())
    assert len({*turns}) == 2


async def test_commands_to_silent_groups_are_limited_and_all_run_in_order(desk: Desk) -> None:
    """Each waiting command needs kilobytes, and the end of thousands of commands in one turn stalls the loop."""
    limit = 200
    desk.dispatcher._free = asyncio.Semaphore(limit)
    adapter, started = desk.adapters["a"], list[str]()
    answers, most = asyncio.Event(), 0

    async def command_many(device_ids: Sequence[str], _: Command) -> list[CommandResult]:
        nonlocal most
        started.extend(device_ids)
        most = max(most, len(asyncio.all_tasks()))
        await answers.wait()
        return [CommandResult() for _ in device_ids]

    adapter.command_many = command_many  # type: ignore[method-assign,assignment]
    adapter.gate = AddressGate("a", 10 * limit)
    before = len(asyncio.all_tasks())
    devices = desk.group("a", limit + 1)
    groups = [devices[: limit // 2], devices[limit // 2 :]]
    sending = [asyncio.ensure_future(desk.dispatcher.send(each, ON, "group")) for each in groups]
    await until(lambda: len(started) == limit)
    alone = asyncio.ensure_future(desk.dispatcher.send(desk.group("a", limit + 2)[-1:], ON, "device"))
    await until(lambda: len(started) == limit + 1)
    assert not any(each.done() for each in sending)
    answers.set()
    assert [each for task in sending for each in await task] == [_ok(device.id) for device in devices]
    started.remove((await alone)[0].device_id)
    assert started == [device.id for device in devices]
    assert most - before <= 2 * (limit + 1 + len(sending) + 1), "each call has at most two tasks"


async def test_senders_that_wait_too_long_for_earlier_commands_get_busy(
    session: DeviceSession, clock: VirtualClock
) -> None:
    desk = Desk(session, clock, timeout_secs=0.05)
    ended = list[CommandEnded]()
    async with desk.dispatcher:
        first = asyncio.ensure_future(desk.dispatcher.send(desk.group("a", MAX_UNDER_WAY + 1), ON, "group"))
        await desk.begun("a")
        desk.bus.listen(lambda event: ended.append(event) if isinstance(event, CommandEnded) else None)
        refused = await desk.dispatcher.send(desk.devices("bc"), ON, "room")
        desk.dispatcher.refuse_new()
        desk.dispatcher.abort_all()
        given_up = await first
    message = "too many earlier commands are under way; this command was not sent"
    assert [(each.device_id, each.message) for each in refused] == [("b:1", message), ("c:1", message)]
    assert all(isinstance(each.error, Busy) for each in refused)
    assert [(each.device_id, each.source) for each in ended[:2]] == [("b:1", "room"), ("c:1", "room")]
    assert desk.adapters["b"].asked == desk.adapters["c"].asked == []
    assert len(given_up) == MAX_UNDER_WAY + 1 and all(isinstance(each.error, Stopping) for each in given_up)


def test_senders_are_refused_one_after_another() -> None:
    """The outcomes of hundreds of large groups together would need much memory."""
    refused, count = list[str](), 2 * MAX_RESUMED_PER_TURN

    def audit(event: Event) -> None:
        if isinstance(event, CommandEnded) and event.source.startswith("group"):
            refused.append(event.source)
            time.sleep(2 * SHORT_TURN_SECS)

    async def command_all() -> None:
        async with DeviceSession() as session:
            desk = Desk(session, VirtualClock(), timeout_secs=0.05)
            async with desk.dispatcher:
                first = asyncio.ensure_future(desk.dispatcher.send(desk.group("a", MAX_UNDER_WAY + 1), ON, "first"))
                await desk.begun("a")
                desk.bus.listen(audit)
                await asyncio.gather(
                    *(desk.dispatcher.send(desk.group("b", 2), ON, f"group {number}") for number in range(count))
                )
                desk.dispatcher.refuse_new()
                desk.dispatcher.abort_all()
                await first

    run(command_all())
    assert refused == [f"group {number}" for number in range(count) for _ in range(2)]


def test_commands_of_several_senders_begin_in_separate_turns() -> None:
    turns = Counter[int]()

    async def command_all() -> None:
        async with DeviceSession() as session:
            desk = Desk(session, VirtualClock())
            desk.adapters["a"].gate = AddressGate("a", 1_000)
            desk.bus.listen(lambda event: turns.update([loop_lag().turns] * isinstance(event, CommandStarted)))
            async with desk.dispatcher:
                sizes = [5 * MAX_STARTED_AT_ONCE] * 8
                sending = [
                    asyncio.ensure_future(desk.dispatcher.send(desk.group("a", size), ON, "group")) for size in sizes
                ]
                await until(lambda: turns.total() == sum(sizes))
                desk.dispatcher.abort_all()
                await asyncio.wait(sending)

    run(command_all())
    assert max(turns.values()) <= MAX_STARTED_AT_ONCE


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (Unreachable("it does not answer"), "it does not answer"),
        (BadAnswer("it refuses"), "it refuses"),
        (CommandResult(report=None, error=BadAnswer("it did not do it")), "it did not do it"),
        (KeyError("oops"), "the adapter failed (KeyError: 'oops')"),
    ],
)
async def test_a_failed_device_has_a_message_and_the_others_are_commanded(
    desk: Desk, caplog: pytest.LogCaptureFixture, outcome: CommandResult | Exception, message: str
) -> None:
    caplog.set_level(logging.INFO, "adapters")
    sending = asyncio.ensure_future(desk.dispatcher.send(desk.devices("ab"), ON, "device"))
    failing = await desk.begun("a")
    if isinstance(outcome, Exception):
        failing.set_exception(outcome)
    else:
        failing.set_result(outcome)
    (await desk.begun("b")).set_result(desk.done("b"))
    failed, went_well = await sending
    assert (failed.status, failed.message, went_well) == (Status.ERROR, message, _ok("b:1"))
    assert isinstance(failed.error, type(outcome) if isinstance(outcome, LaresError) else LaresError | None)
    assert desk.health.get_adapter("a").last_error == message.replace("the adapter", "a command")
    logged = [record.message for record in caplog.records if record.message.startswith("a:1: ")]
    assert logged == ([] if isinstance(outcome, Unreachable) else [f"a:1: power on failed: {message}"])


@pytest.mark.parametrize("shares_outages", [True, False])
async def test_a_silent_device_fails_no_command_to_another(desk: Desk, shares_outages: bool) -> None:
    """Commands to other devices succeed, from any sender. Commands to the silent device fail at once."""
    adapter = desk.adapters["b"]
    adapter.shares_outages = shares_outages
    adapter.on_unreachable = lambda error: None  # type: ignore[method-assign]
    dead = desk.devices("b")[0]
    others = [replace(dead, id=f"b:{number}") for number in (2, 3)]
    room = asyncio.ensure_future(desk.dispatcher.send([dead, others[0]], ON, "room"))
    failing = await desk.begun("b")
    again = asyncio.ensure_future(desk.dispatcher.send([dead], ON, "device"))
    other = asyncio.ensure_future(desk.dispatcher.send([others[1]], ON, "device"))
    await asyncio.sleep(0.01)
    failing.set_exception(Unreachable("it does not answer"))
    if not shares_outages:
        for number in (1, 2):
            await adapter.begun(adapter.commands, number + 1)
            adapter.commands[number].set_result(CommandResult())
    outcomes = [*await room, *await again, *await other]
    assert [each.status for each in outcomes] == [
        Status.ERROR,
        Status.ERROR if shares_outages else Status.OK,
        Status.ERROR,
        Status.ERROR if shares_outages else Status.OK,
    ]
    sent = {device_id for device_id, _ in adapter.asked}
    assert sent == ({"b:1"} if shares_outages else {"b:1", "b:2", "b:3"})
    assert outcomes[2].message == "it does not answer"


async def test_an_invalid_value_is_refused_even_if_the_address_is_busy(desk: Desk) -> None:
    busy = asyncio.ensure_future(desk.dispatcher.send(desk.devices("a"), ON, "device"))
    await desk.begun("a")
    narrow = (CommandSpec(capability="brightness", actions=("set",), min=10, max=90),)
    [device] = desk.devices("a")
    brighter = Command(capability="brightness", action="set", value=5)
    [refused] = await desk.dispatcher.send([replace(device, commands=narrow)], brighter, "device")
    assert (refused.status, refused.message) == (
        Status.ERROR,
        "brightness must be from 10 to 90 for this device, not 5",
    )
    (await desk.begun("a")).set_result(desk.done("a"))
    assert await busy == [_ok("a:1")]
    assert desk.adapters["a"].asked == [("a:1", ON)]


async def test_a_device_without_an_adapter_is_unsupported(desk: Desk) -> None:
    adapter = StubAdapter(context_of("z", desk.adapters["a"].http._session, VirtualClock()))
    desk.registry.apply(adapter.seen(power="off"))
    [outcome] = await desk.dispatcher.send([desk.registry.get_device("z:1")], ON, "device")
    assert outcome.status is Status.UNSUPPORTED


async def test_a_command_in_progress_is_finished_even_if_its_sender_leaves(desk: Desk) -> None:
    sending = asyncio.ensure_future(desk.dispatcher.send(desk.devices("bc"), ON, "device"))
    under_way = await desk.begun("b")
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    under_way.set_result(desk.done("b"))
    (await desk.begun("c")).set_result(desk.done("c"))
    await until(lambda: desk.registry.get_device("c:1").attributes["power"] == "on")
    assert desk.registry.get_device("b:1").attributes["power"] == "on"


async def test_senders_of_abandoned_commands_get_an_error(desk: Desk) -> None:
    sending = asyncio.ensure_future(desk.dispatcher.send(desk.devices("ab"), ON, "device"))
    done, given_up = await desk.begun("a"), await desk.begun("b")
    done.set_result(desk.done("a"))
    await until(lambda: desk.registry.get_device("a:1").attributes["power"] == "on")
    desk.dispatcher.abort_all()
    message = "the hub is stopping; the result of the command is unknown"
    first, second = await sending
    assert first == _ok("a:1")
    assert (second.device_id, second.status, second.message) == ("b:1", Status.ERROR, message)
    assert given_up.cancelled()


async def test_a_call_has_a_limited_number_of_devices(desk: Desk) -> None:
    adapter, sizes = desk.adapters["a"], list[int]()

    async def command_many(device_ids: Sequence[str], _: Command) -> list[CommandResult]:
        sizes.append(len(device_ids))
        return [CommandResult() for _ in device_ids]

    adapter.takes_many = True
    adapter.command_many = command_many  # type: ignore[method-assign,assignment]
    outcomes = await desk.dispatcher.send(desk.devices("a") * (2 * MAX_BATCH_DEVICES + 1), ON, "device")
    assert sizes == [MAX_BATCH_DEVICES, MAX_BATCH_DEVICES, 1] and {each.status for each in outcomes} == {Status.OK}


async def test_a_stopping_hub_sends_no_new_command(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    desk.dispatcher.refuse_new()
    [outcome] = await desk.dispatcher.send(desk.devices("a"), ON, "device")
    assert isinstance(outcome.error, Stopping) and desk.registry.get_device("a:1").attributes["power"] == "off"
    assert caplog.records == []


async def test_leaving_logs_nothing_even_if_a_sender_left_before(
    session: DeviceSession, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(session, clock)
    async with desk.dispatcher:
        sending = asyncio.ensure_future(desk.dispatcher.send(desk.devices("ab"), ON, "device"))
        await desk.begun("b")
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    del sending, desk
    gc.collect()
    assert caplog.records == []


async def test_a_call_of_a_hook_reaches_its_listeners_and_their_errors_are_reported(desk: Desk) -> None:
    asked: list[HookRequest] = []

    class Listening(StubAdapter):
        """Handles the hook of its name, refuses queries, and fails if a request has a body."""

        @property
        def hooks(self) -> set[str]:
            return {self.name}

        async def hook(self, request: HookRequest) -> None:
            asked.append(request)
            if request.query:
                raise Invalid("no query")
            if request.body:
                raise ValueError("it has a fault")

    desk.adapters["a"].__class__ = Listening
    assert await desk.dispatcher.has_hook("a") and not await desk.dispatcher.has_hook("b")
    assert await desk.dispatcher.hook(HookRequest(hook="a", method="POST"))
    assert not await desk.dispatcher.hook(HookRequest(hook="b", method="POST"))
    assert [each.hook for each in asked] == ["a"]
    with pytest.raises(Invalid, match=r"^no query$"):
        await desk.dispatcher.hook(HookRequest(hook="a", method="GET", query={"a": "b"}))
    with pytest.raises(AdapterFailed, match="it has a fault"):
        await desk.dispatcher.hook(HookRequest(hook="a", method="POST", body=b"x"))
    with pytest.raises(NotFound, match=r"^hook 'b' not found$"):
        await desk.adapters["b"].hook(HookRequest(hook="b", method="GET"))


@pytest.mark.parametrize("payload", [{}, {"device_id": "a:1"}, {"deep": {"er": [1, None, "x"]}}])
async def test_an_operation_gets_the_payload_and_returns_its_result(desk: Desk, payload: dict[str, Value]) -> None:
    assert await desk.dispatcher.invoke("a:echo", payload) == payload


async def test_a_failed_operation_reports_the_reason(desk: Desk) -> None:
    with pytest.raises(Unreachable, match="nobody is there"):
        await desk.dispatcher.invoke("a:fail", {})


async def test_simultaneous_commands_to_one_device_wait_for_each_other() -> None:
    gate, began = AddressGate("broker", 10), list[str]()

    async def command(name: str, *device_ids: str) -> None:
        held = await gate.acquire(device_ids)
        began.append(name)
        await release[name].wait()
        gate.release(held)

    release = {name: asyncio.Event() for name in ("a1", "a2", "b1", "ab", "none")}
    tasks = [
        asyncio.ensure_future(command(name, *name.removesuffix("1").removesuffix("2").replace("none", "")))
        for name in release
    ]
    await asyncio.sleep(0)
    assert began == ["a1", "b1", "none"] and gate.commands_under_way == 3
    gate.fail_waiting(Unreachable("it does not answer"), ["b"])
    for name, expected in (("a1", 4), ("a2", 4), ("b1", 4)):
        release[name].set()
        await until(lambda expected=expected: len(began) == expected)  # type: ignore[misc]
    release["none"].set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(each) for each in outcomes if each is not None] == ["it does not answer"]
    assert began == ["a1", "b1", "none", "a2"] and not gate._devices, "no lock stays"


async def test_a_command_that_arrives_at_a_release_waits_at_most_for_the_timeout() -> None:
    """The lock is free then, but an earlier command that waits for it gets it first."""
    gate, release = AddressGate("broker", 10, timeout_secs=0.2), asyncio.Event()

    async def wait_and_hold() -> None:
        held = await gate.acquire(["a"])
        await release.wait()
        gate.release(held)

    first = await gate.acquire(["a"])
    earlier = asyncio.ensure_future(wait_and_hold())
    await asyncio.sleep(0)
    gate.release(first)
    asyncio.get_running_loop().call_later(5, release.set)
    with pytest.raises(Busy):
        await gate.acquire(["a"])
    release.set()
    await earlier


def test_gates_of_unused_addresses_are_freed() -> None:
    """Otherwise, each section that was ever started would leave a gate."""
    gates = AddressGates()
    used, unused = gates.at("http://10.0.0.1"), weakref.ref(gates.at("http://10.0.0.2"))
    gc.collect()
    assert unused() is None
    assert gates.at("http://10.0.0.1/x") is used
