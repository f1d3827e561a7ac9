"""A failing adapter is restarted and logged once, and never affects other adapters."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any, cast
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from appliance.adapters.adapter_runner import AdapterRunner
from appliance.adapters.address_gates import AddressGates, canonical
from appliance.adapters.base import Adapter, AdapterContext, CommandResult
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.dispatch import Dispatcher, Outcome, Status
from appliance.errors import AdapterFailed, BadAnswer, Unreachable
from appliance.health import AdapterStatus, Health
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.command_specs import CommandSpec
from appliance.home.commands import Command
from appliance.home.model import Device, DeviceKind, Info, Observation, Report
from appliance.home.registry import Registry
from appliance.home.values import Value
from appliance.tasks import MAX_BACK_OFF_SECS
from tests.fakes.adapter import POWER
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of
from tests.fakes.patience import until

ON = Command(capability="power", action="on")
LAMPS = 40


class Scripted(Adapter):
    """In each run, performs the given steps, and then works endlessly.

    `orders` lists the adapter's reactions to successive commands. `farewell` is called when the adapter exits.
    """

    steps: list[Callable[[Scripted], Any]]
    orders: list[Callable[[Scripted], Any]]
    farewell: Callable[[Scripted], Any]
    is_over = asyncio.Event()
    runs = 0

    async def run(self) -> None:
        Scripted.runs += 1
        for step in self.steps:
            await self._do(step)
        self.publish.started()
        await asyncio.Event().wait()

    async def command(self, device_id: str, command: Command) -> CommandResult:
        return cast("CommandResult", await self._do(self.orders.pop(0))) if self.orders else CommandResult()

    async def __aexit__(self, *_: object) -> None:
        await self._do(self.farewell)

    async def _do(self, step: Callable[[Scripted], Any]) -> Any:
        result = step(self)
        return await result if asyncio.iscoroutine(result) else result

    @classmethod
    def play(
        cls,
        steps: list[Callable[[Scripted], Any]],
        orders: list[Callable[[Scripted], Any]] | None = None,
        farewell: Callable[[Scripted], Any] = lambda _: None,
    ) -> None:
        """Define the steps of the next adapter, and return its class."""
        cls.runs, cls.steps, cls.orders, cls.farewell = 0, steps, orders or [], staticmethod(farewell)


class Bridge(Adapter):
    """Forty lamps at one address, which accepts a limited number of commands at the same time. An outage affects all
    lamps."""

    shares_outages = True

    def __init__(self, context: AdapterContext, *, takes: float = 0.0, fails: Exception | None = None) -> None:
        super().__init__(context, "http://bridge")
        self.asked: list[str] = []
        self.under_way = self.most = 0
        self._takes = takes
        self._fails = fails

    async def run(self) -> None:
        ids = [f"{self.name}:{number}" for number in range(LAMPS)]
        await self.publish.full_list(
            Observation(device_id=each, kind=DeviceKind.LIGHT, attributes={"power": "off"}, commands=POWER)
            for each in ids
        )
        self.publish.answered()
        self.publish.started()
        await asyncio.Event().wait()

    async def command(self, device_id: str, command: Command) -> CommandResult:
        self.asked.append(device_id)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(self._takes)
        finally:
            self.under_way -= 1
        if self._fails is not None:
            raise self._fails
        self.publish.attributes(device_id, {"power": "on"})
        return CommandResult()


class Pair(Bridge):
    """A bridge that accepts two commands at the same time."""

    concurrency = 2


class Stage:
    """A home with one registry, and runners for the adapters of the test."""

    def __init__(self, session: DeviceSession, clock: VirtualClock, gates: AddressGates | None = None) -> None:
        self.session, self.clock, self.bus = session, clock, Bus()
        self.happened: list[events.Event] = []
        self.bus.listen(self.happened.append)
        self.registry = Registry(self.bus, clock)
        self.gates = gates or AddressGates()

    def runner(self, name: str, build: Callable[[AdapterContext], Adapter]) -> AdapterRunner:
        context = context_of(name, self.session, self.clock, registry=self.registry, bus=self.bus, gates=self.gates)
        return AdapterRunner(build, context)


def _fail(error: BaseException) -> Callable[[Scripted], Any]:
    def step(_: Scripted) -> None:
        raise error

    return step


@pytest.mark.parametrize(
    ("error", "reason", "has_traceback"),
    [
        (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero", True),
        (AdapterFailed("token_file x: no such file"), "token_file x: no such file", False),
    ],
    ids=["unforeseen", "foreseen"],
)
async def test_a_failed_adapter_is_restarted_with_back_off_and_reported_once(
    session: DeviceSession,
    clock: VirtualClock,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    reason: str,
    *,
    has_traceback: bool,
) -> None:
    stage = Stage(session, clock)
    health = Health(["bad"], stage.bus)
    Scripted.play([_fail(error)])
    async with stage.runner("bad", Scripted):
        await clock.advance(300.0, sleepers=1)
        assert 7 <= Scripted.runs <= 12, "1, 2, 4 … 60 s apart"
        assert health.get_adapter("bad").status is AdapterStatus.DEGRADED
        Scripted.steps = [lambda adapter: adapter.publish.answered()]
        await clock.advance(MAX_BACK_OFF_SECS, sleepers=0)
        await until(lambda: health.get_adapter("bad").status is AdapterStatus.RUNNING)
    [record] = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert bool(record.exc_info) is has_traceback
    assert record.message == f"bad: the adapter failed and restarts ({reason})"
    messages = [event.message for event in stage.happened if isinstance(event, events.SystemErrorReported)]
    assert messages == [record.message]
    assert stage.happened.count(events.AdapterStarted(adapter="bad")) == 1


async def _raise_later(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


async def _hang(_: Scripted) -> None:
    await asyncio.Event().wait()


async def _swallow(_: Scripted) -> None:
    """Ignore cancellation until the test ends."""
    while not Scripted.is_over.is_set():
        with suppress(asyncio.CancelledError):
            await Scripted.is_over.wait()


async def test_an_unexpected_failure_of_a_command_affects_only_it_with_one_traceback(
    session: DeviceSession, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(session, clock)
    health = Health(["bad"], stage.bus)
    lamp = Observation(device_id="bad:1", kind=DeviceKind.LIGHT, attributes={"power": "off"}, commands=POWER)
    fail = _fail(ZeroDivisionError("by zero"))
    Scripted.play([lambda adapter: adapter.publish.device(lamp)], [fail, fail, fail, _fail(SystemExit(3))])
    runner = stage.runner("bad", Scripted)
    async with runner, Dispatcher([runner], stage.bus, clock) as dispatcher:
        await until(runner._context.publish.has_started.is_set)
        messages = []
        for _ in range(5):
            [outcome] = await dispatcher.send([stage.registry.get_device("bad:1")], ON, "device")
            messages.append(outcome.message)
        assert messages == [
            *["the adapter failed (ZeroDivisionError: by zero)"] * 3,
            "the adapter failed (SystemExit: 3)",
            None,
        ]
        assert health.get_adapter("bad").last_error == "a command failed (SystemExit: 3)"
        assert Scripted.runs == 1, "the polling of an adapter may be well though a command is not"
    records = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert [each.message for each in records] == [
        "bad: a command failed (ZeroDivisionError: by zero)",
        "bad: a command failed (SystemExit: 3)",
    ]
    assert all(each.exc_info is not None for each in records)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(object()),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=9) | st.integers(), inner, max_size=2)
    ),
    max_leaves=4,
)
KEYS = st.sampled_from(["power", "brightness", "state", "custom.x.y", "temperature", "colour", "", "\ud800"])
SPECS = st.lists(
    st.builds(CommandSpec, capability=KEYS, actions=st.just(("set",)), min=st.none() | st.floats()), max_size=2
).map(tuple)
SEEN = st.builds(
    Observation,
    device_id=st.sampled_from(["bad:1", "bad:2", "good:0", "", "\ud800"]) | JUNK,
    kind=st.sampled_from([*DeviceKind]) | JUNK,
    attributes=st.dictionaries(KEYS, JUNK, max_size=3) | JUNK,
    vendor_specific=st.dictionaries(st.text(max_size=3), JUNK, max_size=2) | JUNK,
    name=st.text(max_size=3) | JUNK,
    info=st.builds(Info, model=st.text(max_size=3) | JUNK) | JUNK,
    commands=SPECS | JUNK,
)
ERRORS = st.sampled_from(
    [ValueError("x"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), BadAnswer("x"), RecursionError()]
)
STEPS = st.one_of(
    st.builds(lambda seen: lambda adapter: adapter.publish.device(seen), SEEN),
    st.builds(lambda seen: lambda adapter: adapter.publish.full_list(seen), st.lists(SEEN, max_size=2) | JUNK),
    st.builds(lambda some: lambda adapter: adapter.publish.attributes("bad:1", some), st.dictionaries(KEYS, JUNK)),
    st.builds(lambda some: lambda adapter: adapter.publish.attributes("good:0", some), JUNK),
    st.builds(lambda event, data: lambda adapter: adapter.publish.event("bad:1", event, data), JUNK, JUNK),
    st.builds(lambda it: lambda adapter: adapter.publish.availability(it, is_available=False), st.text()),
    st.builds(lambda it: lambda adapter: adapter.publish.report(it), JUNK),
    st.just(lambda adapter: adapter.publish.lost(Unreachable("x"))),
    st.just(lambda adapter: adapter.publish.answered()),
    st.builds(_fail, ERRORS),
    st.builds(lambda error: lambda _: _raise_later(error), ERRORS),
)


def _is_sound(value: Value) -> bool:
    import orjson

    orjson.dumps(value)
    return True


ENDINGS = st.sampled_from([_hang, _swallow]) | st.builds(_fail, ERRORS)
ORDERS = ENDINGS | st.builds(
    lambda result: lambda _: result, JUNK | st.builds(CommandResult, report=JUNK, error=JUNK)
)


async def test_an_exit_that_exceeds_its_time_limit_is_not_logged_as_a_fault(
    session: DeviceSession, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    has_ended = asyncio.Event()

    async def linger(_: Adapter) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            has_ended.set()

    Scripted.play([], farewell=linger)
    with (
        patch("appliance.adapters.adapter_runner.EXIT_TIMEOUT_SECS", 0.01),
        patch("appliance.tasks.CANCEL_GRACE_SECS", 1),
    ):
        async with Stage(session, clock).runner("slow", Scripted):
            await until(lambda: Scripted.runs == 1)
    assert has_ended.is_set()
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


@settings(suppress_health_check=[*HealthCheck])
@given(
    steps=st.lists(STEPS, max_size=8),
    end=st.just(lambda _: None) | ENDINGS,
    orders=st.lists(ORDERS, max_size=2),
    farewell=st.just(lambda _: None) | ENDINGS,
)
@pytest.mark.slow
def test_a_failed_adapter_does_not_affect_others(
    steps: list[Any], end: Any, orders: list[Any], farewell: Any
) -> None:
    Scripted.play([*steps, end], list(orders), farewell)
    logging.disable(logging.CRITICAL)
    try:
        with ExitStack() as stack:
            for name in ("COMMAND_TIMEOUT_SECS", "EXIT_TIMEOUT_SECS", "START_TIMEOUT_SECS"):
                stack.enter_context(patch(f"appliance.adapters.adapter_runner.{name}", 0.01))
            stack.enter_context(patch.object(Scripted, "command_secs", 0.01))
            stack.enter_context(patch("appliance.tasks.CANCEL_GRACE_SECS", 0.01))
            asyncio.run(_play())
    finally:
        logging.disable(logging.NOTSET)


async def _play() -> None:
    Scripted.is_over = asyncio.Event()
    clock = VirtualClock()
    try:
        async with DeviceSession() as session, asyncio.timeout(20):
            await _play_on(Stage(session, clock), clock)
    finally:
        Scripted.is_over.set()


async def _play_on(stage: Stage, clock: VirtualClock) -> None:
    runners = [stage.runner("good", Bridge), stage.runner("bad", Scripted)]
    async with runners[0], runners[1], Dispatcher(runners, stage.bus, clock) as dispatcher:
        await until(lambda: events.AdapterStarted(adapter="bad") in stage.happened and Scripted.runs > 0)
        await until(lambda: len(stage.registry.find_devices(["good:0"])) == 1)
        commanding = asyncio.ensure_future(_command_all(stage, dispatcher, "bad:"))
        assert await _command_all(stage, dispatcher, "good:0") == {Status.OK}
        await commanding
        assert stage.registry.get_device("good:0").attributes == {"power": "on", "state": "online"}
        for device in stage.registry.list_devices():
            assert _is_sound(dict(device.attributes)) and _is_sound(dict(device.metadata.vendor_specific))
            assert device.name and device.id.encode()
        if _has_failed(stage):
            Scripted.steps, runs = [], Scripted.runs
            while Scripted.runs == runs:
                await clock.advance(70.0, sleepers=0)
                await asyncio.sleep(0.001)


async def _command_all(stage: Stage, dispatcher: Dispatcher, prefix: str) -> set[Status]:
    """Switch on the devices whose ids have this prefix, and return the results."""
    devices = [device for device in stage.registry.list_devices() if device.id.startswith(prefix)]
    return {outcome.status for outcome in await dispatcher.send(devices, ON, "group")}


def _has_failed(stage: Stage) -> bool:
    """Return whether the adapter failed while it ran."""
    errors = [each.message for each in stage.happened if isinstance(each, events.SystemErrorReported)]
    return any("started again" in each for each in errors)


async def _send_alone(dispatcher: Dispatcher, devices: Sequence[Device]) -> list[Outcome]:
    """Command each device separately, like many clients at the same time."""
    each = await asyncio.gather(*(dispatcher.send([device], ON, "device") for device in devices))
    return [outcome for outcomes in each for outcome in outcomes]


@pytest.mark.parametrize("kind", [Bridge, Pair])
async def test_forty_lamps_of_one_bridge_are_commanded_in_order(
    session: DeviceSession, clock: VirtualClock, kind: type[Bridge]
) -> None:
    stage = Stage(session, clock, AddressGates(timeout_secs=0.5))
    made: list[Bridge] = []

    def build(context: AdapterContext) -> Adapter:
        made.append(kind(context, takes=0.05))
        return made[-1]

    runner = stage.runner("bridge", build)
    async with runner, Dispatcher([runner], stage.bus, clock) as dispatcher:
        await until(lambda: len(stage.registry.list_devices()) == LAMPS)
        devices = stage.registry.list_devices()
        outcomes = await dispatcher.send(devices, ON, "group")
    assert [(each.device_id, each.status) for each in outcomes] == [(device.id, Status.OK) for device in devices]
    assert made[0].most == kind.concurrency


@pytest.mark.parametrize("is_alone", [False, True], ids=["a group", "forty clients"])
async def test_waiting_commands_to_a_silent_address_fail(
    session: DeviceSession, clock: VirtualClock, is_alone: bool
) -> None:
    stage = Stage(session, clock)
    made: list[Bridge] = []

    def build(context: AdapterContext) -> Adapter:
        made.append(Bridge(context, takes=0.01, fails=Unreachable("the bridge does not answer")))
        return made[-1]

    runner = stage.runner("bridge", build)
    async with runner, Dispatcher([runner], stage.bus, clock) as dispatcher:
        await until(lambda: len(stage.registry.list_devices()) == LAMPS)
        devices = stage.registry.list_devices()
        outcomes = await (_send_alone(dispatcher, devices) if is_alone else dispatcher.send(devices, ON, "group"))
        assert {each.message for each in outcomes} == {"the bridge does not answer"}
        assert {each.error.code for each in outcomes if each.error is not None} == {"device_unreachable"}
        assert len(made[0].asked) == 1
        await dispatcher.send(devices[:1], ON, "device")
        assert len(made[0].asked) == 2, "who comes after is tried again"


async def test_one_device_can_be_unavailable_alone(session: DeviceSession, clock: VirtualClock) -> None:
    stage = Stage(session, clock)
    publish = context_of("b", session, clock, registry=stage.registry, bus=stage.bus).publish
    await publish.full_list(
        Observation(device_id=f"b:{n}", kind=DeviceKind.LIGHT, attributes={"power": "on"}) for n in range(2)
    )
    stage.happened.clear()

    def states() -> list[Any]:
        return [device.attributes["state"] for device in stage.registry.list_devices()]

    publish.availability("b:1", is_available=False)
    publish.availability("b:1", is_available=False)
    assert states() == ["online", "unavailable"] and len(stage.happened) == 1
    publish.lost(Unreachable("x"))
    assert states() == ["offline", "offline"]
    publish.reached()
    assert states() == ["online", "unavailable"], "the bridge is back, the bulb is not"
    publish.attributes("b:1", {"power": "off"})
    assert states() == ["online", "online"]
    publish.report(Report(adapter="b", present=frozenset({"b:0"})))
    assert [device.id for device in stage.registry.list_devices()] == ["b:0"], "only a full list removes"


def test_one_address_has_one_gate_however_it_is_spelled() -> None:
    for spellings in (
        ("http://10.0.0.1", "HTTP://10.0.0.1:80/", "http://10.0.0.1/elgato/"),
        ("http://localhost:9123", "http://127.0.0.1:9123", "http://LOCALHOST.:9123/x"),
        ("http://[::1]:80", "http://[0:0:0:0:0:0:0:1]"),
        ("https://Lamp.Local", "https://lamp.local:443", "https://lamp.local."),
    ):
        assert len({canonical(each) for each in spellings}) == 1, spellings
    assert len({canonical(each) for each in ("http://a", "https://a", "http://a:8080", "http://b", "a")}) == 5
