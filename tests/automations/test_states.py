"""Cooldown and deduplication, and the states of automations, across restarts and with a wrong clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import orjson
import pytest

from appliance.automations.automation_states import AutomationState, AutomationStates, Run, StoredWait
from appliance.automations.environment import Environment
from appliance.automations.policy import MAX_REMEMBERED, Policy, PolicyState, after, apply_policy
from appliance.automations.requirement import Requirement
from appliance.automations.schedule.clock_watch import ClockWatch
from appliance.automations.stored_hashes import fingerprint, key_of
from appliance.automations.triggers.device import Devices, DeviceTrigger
from appliance.automations.wait_writes import WaitWrites
from appliance.clock import to_millis
from appliance.errors import StoreFailed
from appliance.history.execution_history import ExecutionStatus
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from appliance.store.clock_trust import ClockTrust
from appliance.store.disk import Disk
from appliance.store.document import Document, open_document
from appliance.store.recorder import COMPLETE_FLUSHES, Recorder
from tests.automations.homes import NOW
from tests.fakes.automations import Card, automation, bench
from tests.fakes.clock import VirtualClock
from tests.fakes.rows import each_row

COOL = Policy(cooldown_secs=60)
ONCE = Policy(dedupe_window_secs=60)
BOTH = Policy(cooldown_secs=10, dedupe_window_secs=60)
FREE = Policy()

A, B = {"type": "device_state_change", "value": 1}, {"type": "device_state_change", "value": 2}


def refusals(policy: Policy, *steps: Any, state: PolicyState | None = None) -> list[str]:
    """For each event, return the reason why the event is refused, or an empty string if the event may run the
    automation.

    A step is one of these: the second of event `A`, a pair of an event and its second, a new policy, a pair of "ok"
    and the second of a successful end, "fails", "never began" (the run for `B`), or "restart".
    """
    found, state = [], state or PolicyState()
    for step in steps:
        match step:
            case "fails":
                state = after(state, ExecutionStatus.ERROR, A, NOW)
            case "never began":
                state = after(state, ExecutionStatus.DROPPED, B, NOW)
            case "restart":
                state = AutomationState.decode(
                    orjson.loads(orjson.dumps(AutomationState(policy_state=state).encode()))
                ).policy_state
            case ("ok", secs):
                state = after(state, ExecutionStatus.OK, A, NOW + timedelta(seconds=secs))
            case Policy():
                policy = step
            case _:
                secs, event = step if isinstance(step, tuple) else (step, A)
                decision = apply_policy(policy, state, event, NOW + timedelta(seconds=secs))
                state = decision.state
                found.append(decision.refusal or "")
    return found


def cooling(secs: int) -> str:
    """Return the reason for refusing an event that comes this many seconds too early."""
    return f"cooldown: {secs} s more"


def duplicate(ago: int, more: int) -> str:
    """Return the reason for refusing a repeated event."""
    return f"duplicate: the same event came {ago} s ago; repetitions are ignored for {more} s more"


IN_PROGRESS = "cooldown: a run is in progress, and then a cooldown of 60 s follows"
YEARS = 56 * 365 * 86_400


@each_row(
    ("policy", "steps", "sentence"),
    [
        (FREE, (0, 0, ("ok", 1), 1), ["", "", ""]),
        # the cooldown starts at the decision, so that a burst runs once
        (COOL, (0, 0, (0.001, B)), ["", IN_PROGRESS, IN_PROGRESS]),
        # the cooldown counts from the end of a successful run, and suppressed events do not prolong it
        (COOL, (0, ("ok", 100), 119, 159.1, 159.999, 160), ["", cooling(41), cooling(1), cooling(1), ""]),
        (COOL, (0, "fails", 0.1), ["", ""]),
        # the event is a duplicate after a failed run, but not after a run that never began
        (BOTH, (0, "fails", 1, (1, B), "never began", (2, B)), ["", duplicate(1, 59), "", ""]),
        # the same event runs once per window, and repeated events do not prolong the window
        (ONCE, (0, (0, B), 30.5, 59.9, 60, 119), ["", "", duplicate(30, 30), duplicate(59, 1), "", duplicate(59, 1)]),
        # an event that the cooldown refused is not remembered
        (BOTH, (0, ("ok", 0), (5, B), (10, B)), ["", cooling(5), ""]),
        # cooldown and deduplication survive a restart, but a run that the restart interrupts does not start a
        # cooldown
        (BOTH, (0, ("ok", 5), "restart", 14, 15, "restart", 60), ["", cooling(1), duplicate(15, 45), ""]),
        (COOL, (0, "restart", 1), ["", ""]),
        # a clock that was wrong by years delays at most one run
        (COOL, (-YEARS, ("ok", -YEARS), 0), ["", ""]),
        (COOL, (YEARS, ("ok", YEARS), 0, 60), ["", cooling(60), ""]),
        (ONCE, (-YEARS, 0), ["", ""]),
        (ONCE, (YEARS, 0, 60), ["", duplicate(0, 60), ""]),
        # setting the clock back restarts the count
        (COOL, (0, ("ok", 0), -3600, -3541, -3540), ["", cooling(60), cooling(1), ""]),
        # if a reload removes or shortens a policy, this takes effect at once
        (COOL, (0, FREE, 1), ["", ""]),
        (COOL, (0, ("ok", 0), Policy(cooldown_secs=5), 4, 5), ["", cooling(1), ""]),
    ],
)
def test_refusals_next_to_running_executions(policy: Policy, steps: tuple[Any, ...], sentence: list[str]) -> None:
    assert refusals(policy, *steps) == sentence


@each_row(
    ("one", "other", "is_same"),
    [
        ({"type": "x", "value": 5}, {"value": 5.0, "type": "x"}, True),
        ({"type": "x", "value": True}, {"type": "x", "value": 1}, False),
        ({"type": "x", "scheduled_at": "a"}, {"type": "x", "scheduled_at": "b"}, True),
        ({"type": "x", "scheduled_at": "a"}, {"type": "x"}, True),
        ({"type": "x", "previous_value": 1}, {"type": "x", "previous_value": 2}, False),
        ({"attributes": {"a": [1, 2.0]}}, {"attributes": {"a": [1.0, 2]}}, True),
        ({"attributes": {"a": [1, 2]}}, {"attributes": {"a": [2, 1]}}, False),
        ({"attributes": {"scheduled_at": 1}}, {"attributes": {"scheduled_at": 2}}, False),
        ({"value": "5"}, {"value": 5}, False),
        ({"value": 2**63}, {"value": float(2**63)}, True),
        ({"value": "\ud800"}, {"value": "\ud801"}, False),
    ],
)
def test_events_are_compared_without_their_time(one: dict[str, Any], other: dict[str, Any], is_same: bool) -> None:
    assert (fingerprint(one) == fingerprint(other)) is is_same


def test_stored_hashes_never_change() -> None:
    """A hub with another hash would not find the data that an earlier version has stored."""
    devices, on = Devices(ids=("b", "a")), Requirement(equals="on")
    trigger = DeviceTrigger(devices=devices, attribute="power", requirement=on, duration_secs=5.0)
    assert key_of(trigger) == "577c3d6f2aa8fdd8"
    event = {"type": "ü", "v": 5.0, "x": [1.0, True, {"a": "\ud800"}]}
    assert fingerprint(event) == "a1ef13a83a198b8d330ee24e"


def test_remembered_events_are_limited_and_expire() -> None:
    decided = {fingerprint({"value": n}): NOW for n in range(MAX_REMEMBERED)}
    policy, event = Policy(dedupe_window_secs=86_400), {"value": MAX_REMEMBERED}
    state = apply_policy(policy, PolicyState(decided=decided), event, NOW).state
    assert len(state.decided) == MAX_REMEMBERED
    assert [sentence != "" for sentence in refusals(policy, (1, {"value": 1}), (1, {"value": 0}), state=state)] == [
        True,
        False,
    ]
    assert len(apply_policy(policy, state, event, NOW + timedelta(days=2)).state.decided) == 1


def states(card: Card) -> AutomationStates:
    return AutomationStates(card)


def test_state_survives_a_restart() -> None:
    card = Card()
    first = states(card)
    state = PolicyState(ended_at=NOW, decided={"x": NOW})
    first.store_policy_state("a", state)
    first.store_fired("a", "daily", NOW)
    first.store_fired("b/ü", "daily", NOW)
    first.store_run("b/ü", Run(executed_at=NOW, status=ExecutionStatus.TIMEOUT, error="x" * 500), is_trusted=True)
    first.store_run("c", Run(executed_at=NOW, status=ExecutionStatus.OK), is_trusted=False)
    second = states(card)
    assert second.of("a") == AutomationState(policy_state=state, fired={"daily": NOW})
    kept = second.of("b/ü")
    assert kept.fired == {"daily": NOW}
    assert kept.run == Run(executed_at=NOW, status=ExecutionStatus.TIMEOUT, error="x" * 199 + "…")
    assert second.of("c") == AutomationState()


def test_an_empty_state_leaves_nothing_on_the_card() -> None:
    card = Card()
    first = states(card)
    first.store_policy_state("a", PolicyState(is_running=True))
    assert card.values == {}
    first.store_policy_state("a", PolicyState(ended_at=NOW))
    first.store_policy_state("a", PolicyState())
    assert card.values == {}


def test_unchanged_state_is_not_written_again() -> None:
    written: list[str] = []

    class NotingCard(Card):
        def put_later(self, key: str, value: Any, *, is_minor: bool = False) -> None:
            written.append(key)

    them = AutomationStates(NotingCard())
    for _ in range(3):
        them.store_policy_state("a", PolicyState(ended_at=NOW))
    assert written == ["automation/a"]


async def test_deleted_automations_are_removed_from_the_card() -> None:
    card = Card()
    async with states(card) as first:
        for id_ in "ab":
            first.store_fired(id_, "daily", NOW)
            await first.switch(id_, is_enabled=False)
        first.remove_others(["a"])
        for _ in range(5):
            await asyncio.sleep(0)
    assert card.values.keys() == {"automation/a", "toggle/a"}


@each_row(
    "value",
    [None, 7, "x", [], {"policy": 3, "fired": "x"}, {"fired": {}}, {"waits": [1]}, {"waits": {"x": 1}}, {"run": 1}]
    + [{"run": {"at": "x", "error": 1}}, {"run": {"at": 1, "status": "x"}}, {"run": {"at": 2**62, "status": "ok"}}]
    + [{"fired": {"daily": at}} for at in ("soon", 1e300, float("nan"), None, True)],
)
def test_invalid_state_is_ignored(value: Any) -> None:
    assert states(Card(values={"automation/a": value})).of("a") == AutomationState()


@each_row(
    "policy",
    [
        *(None, [], "x", {"ended_at": "yesterday"}, {"decided": [1]}, {"ended_at": True}, {"ended_at": 1e300}),
        *({"decided": {"a": None}}, {"decided": {"a": -(2**62)}}),
    ],
)
def test_an_unreadable_state_is_ignored(policy: Any) -> None:
    assert states(Card(values={"automation/a": {"policy": policy}})).of("a") == AutomationState()


@each_row(("value", "is_enabled"), [(False, False), (True, True), (None, True), ("off", True)])
def test_only_false_disables_an_automation(value: Any, is_enabled: bool) -> None:
    assert states(Card(values={"toggle/a": value})).of("a").is_enabled is is_enabled


async def test_a_file_sets_the_first_state_and_a_switch_overrides_it_over_restarts() -> None:
    card = Card()
    for asked, expected, kept in ((None, False, {}), (True, True, {"toggle/a": True}), (False, False, {})):
        async with states(card) as them:
            them.switch_all({"a": False, "b": True})
            if asked is not None:
                await them.switch("a", is_enabled=asked)
            assert (them.of("a").is_enabled, them.of("b").is_enabled) == (expected, True)
        assert card.values == kept
        async with states(card) as again:
            again.switch_all({"a": False, "b": True})
            assert again.of("a").is_enabled is expected
    await again.switch("b", is_enabled=False)
    again.switch_all({"a": False, "b": True})
    assert again.of("b").is_enabled is False and card.values == {"toggle/b": False}


async def test_a_switch_that_cannot_be_stored_changes_nothing(tmp_path: Path) -> None:
    card = Card(is_bad=True)
    async with bench(tmp_path, automation(), card=card) as it:
        with pytest.raises(StoreFailed):
            await it.parts.switch("a", is_enabled=False)
        assert it.parts.view("a").is_enabled is True


async def test_a_begun_switch_is_finished_even_if_its_caller_leaves(tmp_path: Path) -> None:
    card = Card()
    async with bench(tmp_path, automation(), card=card) as it:
        asker = asyncio.create_task(it.parts.switch("a", is_enabled=False))
        await asyncio.sleep(0)
        asker.cancel()
        await it.drain()
        assert asker.cancelled()
        assert card.values["toggle/a"] is False
        assert it.parts.view("a").is_enabled is False


def test_instants_are_stored_to_the_millisecond() -> None:
    at = datetime(2026, 6, 1, 12, 0, 0, 123000, tzinfo=UTC)
    assert AutomationState.decode(AutomationState(fired={"x": at}).encode()) == AutomationState(fired={"x": at})


EVERY_FLUSH = range(1, COMPLETE_FLUSHES + 1)


def new_run(at: datetime) -> Run:
    return Run(executed_at=at, status=ExecutionStatus.OK)


@pytest.mark.parametrize(
    ("store", "flushes"),
    [
        (lambda them, at: them.store_run("a", new_run(at), is_trusted=True), [COMPLETE_FLUSHES]),
        (lambda them, at: them.store_run("a", new_run(at), is_trusted=False), []),
        (lambda them, at: them.store_policy_state("a", PolicyState(ended_at=at)), EVERY_FLUSH),
        (lambda them, at: them.store_fired("a", "schedule", at), EVERY_FLUSH),
        (lambda them, at: them.store_wait("a", "lamp", "wait", StoredWait(began_at=to_millis(at))), EVERY_FLUSH),
    ],
    ids=["run", "run with an untrusted time", "cooldown", "schedule", "wait"],
)
async def test_only_the_latest_run_waits_for_the_complete_flush(
    store: Callable[[AutomationStates, datetime], None], flushes: Collection[int], tmp_path: Path
) -> None:
    clock, bus = VirtualClock(), Bus()
    async with open_document(Disk(tmp_path), clock) as document:
        trust = ClockTrust(clock, NOW)
        async with Recorder(Registry(bus, clock), bus, document, clock, trust, flush_secs=300, sections={}):
            them = AutomationStates(document)
            for number in EVERY_FLUSH:
                store(them, clock.now())
                syncs = document.figures()["syncs"]
                await clock.advance(300, sleepers=1)
                assert document.figures()["syncs"] - syncs == (number in flushes), number


async def test_a_wait_that_waits_for_a_flush_needs_memory_once(tmp_path: Path) -> None:
    async with open_document(Disk(tmp_path), VirtualClock()) as document, AutomationStates(document) as them:
        for key in ("one", "two"):
            them.store_wait("a", "lamp", key, StoredWait(began_at=1))
        (waiting,) = document.list_later().values()
        assert waiting is them.of("a").waits["lamp"] and set(waiting) == {"one", "two"}
        them.store_wait("a", "lamp", "one", None)
        assert set(waiting) == {"one", "two"}, "a flush may encode it later"


STEPS = ("flush", "card", "one", "two")


@pytest.mark.parametrize("steps", [*permutations(STEPS), *permutations(("flush", "card", "one"))], ids=" ".join)
async def test_a_fired_wait_is_removed_before_its_execution_begins(steps: tuple[str, ...], tmp_path: Path) -> None:
    """Each case is an order of a flush, the end of a slow sync, and the firing of one or both waits of an
    automation."""
    clock, bus, disk = VirtualClock(), Bus(), HeldDisk(tmp_path)
    registry, trust = Registry(bus, clock), ClockTrust(clock, NOW)
    async with open_document(disk, clock) as document:
        async with Recorder(registry, bus, document, clock, trust, flush_secs=300, sections={}) as recorder:
            environment = Environment(registry, bus, ClockWatch(clock, trust), document, record=recorder.record)
            async with AutomationStates(document) as them, aclosing(WaitWrites(them, environment)) as waits:
                for key in ("one", "two"):
                    them.store_wait("a", "lamp", key, StoredWait(began_at=1))
                disk.is_free.clear()
                begun = []
                for step in steps:
                    if step == "flush":
                        begun.append(asyncio.create_task(recorder.flush()))
                    elif step == "card":
                        disk.is_free.set()
                    else:
                        begun.append(asyncio.create_task(_fire(waits, document, step)))
                    for _ in range(4):
                        await asyncio.sleep(0)
                disk.is_free.set()
                await asyncio.gather(*begun)
                assert not _on_card(document) & set(steps)


class HeldDisk(Disk):
    """A disk that syncs only while `is_free` is set."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.is_free = threading.Event()
        self.is_free.set()

    def sync(self, descriptor: int) -> None:
        self.is_free.wait()
        super().sync(descriptor)


async def _fire(waits: WaitWrites, document: Document, key: str) -> None:
    gone = waits.remove("a", "lamp", key)
    if gone is not None:
        await gone
    assert key not in _on_card(document)


def _on_card(document: Document) -> set[str]:
    return {key for _, value in document.items("wait/lamp\ta") for key in value}
