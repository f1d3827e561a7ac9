"""Cooldown and dedupe, and what is remembered of automations: over restarts, and when the clock is wrong."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import orjson
import pytest

from appliance.automations.states import (
    MAX_REMEMBERED,
    Memory,
    Policy,
    State,
    States,
    decide,
    failed,
    fingerprint,
    never_began,
    succeeded,
)
from appliance.errors import StoreFailed
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from appliance.store.disk import Disk
from appliance.store.document import Document
from appliance.store.recorder import Recorder
from appliance.store.records import Storage
from tests.automations.homes import NOW
from tests.fakes.automations import Card, automation, bench
from tests.fakes.clock import VirtualClock
from tests.fakes.rows import each_row

COOL = Policy(cooldown_secs=60)
ONCE = Policy(dedupe_window_secs=60)
BOTH = Policy(cooldown_secs=10, dedupe_window_secs=60)
FREE = Policy()

A, B = {"type": "device_state_change", "value": 1}, {"type": "device_state_change", "value": 2}


class Story:
    """One automation's decisions in a row, at seconds after the start."""

    def __init__(self, policy: Policy, memory: Memory | None = None, start: datetime = NOW) -> None:
        self.policy, self.memory, self.start = policy, memory or Memory(), start

    def ask(self, secs: float, event: Mapping[str, Any] = A) -> str:
        """Why the event may not run the automation; empty if it may."""
        decision = decide(self.policy, self.memory, event, self.at(secs))
        self.memory = decision.memory
        return decision.refusal or ""

    def ends_well(self, secs: float) -> None:
        """The run ends."""
        self.memory = succeeded(self.memory, self.at(secs))

    def fails(self) -> None:
        """The run fails."""
        self.memory = failed(self.memory)

    def restart(self) -> None:
        """The hub goes down and comes back with what was stored."""
        self.memory = Memory.from_json(orjson.loads(orjson.dumps(self.memory.to_json())))

    def at(self, secs: float) -> datetime:
        """The instant so many seconds after the start."""
        return self.start + timedelta(seconds=secs)


def test_without_a_policy_everything_may_run() -> None:
    story = Story(FREE)
    assert [story.ask(0), story.ask(0), story.ask(0)] == ["", "", ""]
    story.ends_well(1)
    assert story.memory == Memory()


def test_the_cooldown_is_taken_at_the_decision_so_a_burst_runs_once() -> None:
    story = Story(COOL)
    assert story.ask(0) == ""
    assert story.ask(0) == story.ask(0.001, B) == "cooldown: 60 s after the run that is in progress"


def test_the_cooldown_counts_from_the_end_of_a_good_run() -> None:
    story = Story(COOL)
    assert story.ask(0) == ""
    story.ends_well(100)
    assert story.ask(119) == "cooldown: 41 s more"
    assert story.ask(159.1) == "cooldown: 1 s more"
    assert story.ask(159.999) == "cooldown: 1 s more"
    assert story.ask(160) == ""


def test_what_the_cooldown_suppresses_does_not_prolong_it() -> None:
    story = Story(COOL)
    story.ask(0)
    story.ends_well(0)
    assert [story.ask(secs) != "" for secs in (10, 30, 59, 60)] == [True, True, True, False]


def test_a_run_that_fails_gives_the_cooldown_back() -> None:
    story = Story(COOL)
    assert story.ask(0) == ""
    story.fails()
    assert story.ask(0.1) == ""


def test_a_run_that_fails_does_not_give_back_its_event_but_one_that_never_began_does() -> None:
    story = Story(BOTH)
    assert story.ask(0) == ""
    story.fails()
    assert story.ask(1) == "duplicate: the same event came 1 s ago, 59 s more"
    assert story.ask(1, B) == ""
    story.memory = never_began(story.memory, B)
    assert story.ask(2, B) == ""


def test_the_same_event_runs_once_a_window_and_is_not_prolonged() -> None:
    story = Story(ONCE)
    assert story.ask(0) == ""
    assert story.ask(0, B) == ""
    assert story.ask(30.5) == "duplicate: the same event came 30 s ago, 30 s more"
    assert story.ask(59.9) == "duplicate: the same event came 59 s ago, 1 s more"
    assert story.ask(60) == ""
    assert story.ask(119) != ""


def test_an_event_that_the_cooldown_refused_is_not_remembered() -> None:
    story = Story(BOTH)
    story.ask(0)
    story.ends_well(0)
    assert story.ask(5, B).startswith("cooldown:")
    assert story.ask(10, B) == ""


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
def test_the_whole_event_is_compared_but_when_it_was_due(
    one: dict[str, Any], other: dict[str, Any], is_same: bool
) -> None:
    assert (fingerprint(one) == fingerprint(other)) is is_same


def test_both_survive_a_restart() -> None:
    story = Story(BOTH)
    story.ask(0)
    story.ends_well(5)
    story.restart()
    assert story.ask(14) == "cooldown: 1 s more"
    assert story.ask(15) == "duplicate: the same event came 15 s ago, 45 s more"
    story.restart()
    assert story.ask(60) == ""


def test_a_run_that_a_restart_cut_off_gives_the_cooldown_back() -> None:
    story = Story(COOL)
    story.ask(0)
    story.restart()
    assert story.ask(1) == ""


@each_row(
    "raw",
    [
        None,
        [],
        "x",
        {"ended_at": "yesterday", "decided": [1]},
        {"ended_at": True, "decided": {"a": None}},
        {"ended_at": 1e300, "decided": {"a": -(2**62)}},
    ],
)
def test_a_memory_that_cannot_be_read_is_forgotten(raw: Any) -> None:
    assert Memory.from_json(raw) == Memory()


@pytest.mark.parametrize("years", [-56, 56])
@pytest.mark.parametrize("policy", [COOL, ONCE])
def test_a_clock_that_was_wrong_by_years_holds_nothing_up_for_longer_than_once(policy: Policy, years: int) -> None:
    story = Story(policy, start=NOW + timedelta(days=365 * years))
    story.ask(0)
    story.ends_well(0)
    story.start = NOW
    assert "" in (story.ask(0), story.ask(60))


def test_a_step_back_starts_the_count_anew_and_a_small_one_is_no_gap() -> None:
    story = Story(COOL)
    story.ask(0)
    story.ends_well(0)
    assert story.ask(-3600) == "cooldown: 60 s more"
    assert story.ask(-3541) == "cooldown: 1 s more"
    assert story.ask(-3540) == ""


def test_a_policy_that_was_switched_off_or_shortened_by_a_reload_is_so_at_once() -> None:
    story = Story(COOL)
    story.ask(0)
    story.policy = FREE
    assert story.ask(1) == ""
    story = Story(COOL)
    story.ask(0)
    story.ends_well(0)
    story.policy = Policy(cooldown_secs=5)
    assert story.ask(4) == "cooldown: 1 s more"
    assert story.ask(5) == ""


def test_no_more_than_so_many_events_are_remembered_and_none_that_expired() -> None:
    decided = {fingerprint({"value": n}): NOW for n in range(MAX_REMEMBERED)}
    story = Story(Policy(dedupe_window_secs=86400), Memory(decided=decided))
    for n in range(MAX_REMEMBERED, MAX_REMEMBERED + 5):
        assert story.ask(n / 1000, {"value": n}) == ""
    assert len(story.memory.decided) == MAX_REMEMBERED
    assert story.ask(10, {"value": 5}) != ""
    assert story.ask(10, {"value": 4}) == ""
    assert story.ask(86400 * 2, {"value": 1}) == ""
    assert len(story.memory.decided) == 1


def states(card: Card) -> States:
    """The states that the card tells."""
    return States(Storage(stored=card, remember=card.remember, put=card.put))


def test_what_is_kept_is_there_after_a_restart() -> None:
    card = Card()
    first = states(card)
    memory = Memory(ended_at=NOW, decided={"x": NOW})
    first.remember("a", memory)
    first.note_fired("a", "daily", NOW)
    first.note_fired("b/ü", "daily", NOW)
    second = states(card)
    assert second.of("a") == State(memory=memory, fired={"daily": NOW})
    assert second.of("b/ü").fired == {"daily": NOW}
    assert second.of("c") == State()


def test_a_memory_without_anything_leaves_nothing_on_the_card() -> None:
    card = Card()
    first = states(card)
    first.remember("a", Memory(is_running=True))
    assert card.values == {}
    first.remember("a", Memory(ended_at=NOW))
    first.remember("a", Memory())
    assert card.values == {}


def test_what_is_as_it_was_is_not_written_again() -> None:
    written: list[str] = []
    card = Card()
    them = States(Storage(stored=card, remember=lambda key, value: written.append(key), put=card.put))
    for _ in range(3):
        them.remember("a", Memory(ended_at=NOW))
    assert written == ["automation/a"]


async def test_what_is_gone_is_forgotten_on_the_card_too() -> None:
    card = Card()
    async with states(card) as first:
        for id_ in "ab":
            first.note_fired(id_, "daily", NOW)
            await first.switch(id_, is_enabled=False)
        first.forget_others(["a"])
        for _ in range(5):
            await asyncio.sleep(0)
    assert card.values.keys() == {"automation/a", "toggle/a"}


@each_row(
    "value",
    [None, 7, "x", [], {"policy": 3, "fired": "x"}, {"fired": {}}, {"waits": [1]}, {"waits": {"x": 1}}]
    + [{"fired": {"daily": at}} for at in ("soon", 1e300, float("nan"), None, True)],
)
def test_what_is_not_of_the_form_is_forgotten(value: Any) -> None:
    assert states(Card(values={"automation/a": value})).of("a") == State()


@each_row(("value", "is_enabled"), [(False, False), (True, True), (None, True), ("off", True)])
def test_only_false_switches_off(value: Any, is_enabled: bool) -> None:
    assert states(Card(values={"toggle/a": value})).of("a").is_enabled is is_enabled


async def test_a_file_says_what_is_off_at_first_and_a_switch_counts_for_more_over_restarts_too() -> None:
    card = Card()
    for asked, expected, kept in ((None, False, {}), (True, True, {"toggle/a": True}), (False, False, {})):
        async with states(card) as them:
            them.begin_with({"a": False, "b": True})
            if asked is not None:
                await them.switch("a", is_enabled=asked)
            assert (them.of("a").is_enabled, them.of("b").is_enabled) == (expected, True)
        assert card.values == kept
        async with states(card) as again:
            again.begin_with({"a": False, "b": True})
            assert again.of("a").is_enabled is expected
    await again.switch("b", is_enabled=False)
    again.begin_with({"a": False, "b": True})
    assert again.of("b").is_enabled is False and card.values == {"toggle/b": False}


async def test_a_switch_that_the_card_does_not_take_changes_nothing(tmp_path: Path) -> None:
    card = Card(is_bad=True)
    async with bench(tmp_path, automation(), card=card) as it:
        with pytest.raises(StoreFailed):
            await it.parts.switch("a", is_enabled=False)
        assert it.parts.view("a").is_enabled is True


async def test_a_switch_that_was_begun_is_finished_though_whoever_asked_goes_away(tmp_path: Path) -> None:
    card = Card()
    async with bench(tmp_path, automation(), card=card) as it:
        asker = asyncio.create_task(it.parts.switch("a", is_enabled=False))
        await asyncio.sleep(0)
        asker.cancel()
        await it.drain()
        assert asker.cancelled()
        assert card.values["toggle/a"] is False
        assert it.parts.view("a").is_enabled is False


def test_instants_are_kept_to_the_millisecond() -> None:
    at = datetime(2026, 6, 1, 12, 0, 0, 123000, tzinfo=UTC)
    assert State.from_json(State(fired={"x": at}).to_json()) == State(fired={"x": at})


STEPS = ("flush", "card", "one", "two")


@pytest.mark.parametrize("steps", [*permutations(STEPS), *permutations(("flush", "card", "one"))], ids=" ".join)
async def test_a_wait_that_fires_is_off_the_card_before_its_execution_begins_wherever_a_flush_stands(
    steps: tuple[str, ...], tmp_path: Path
) -> None:
    """Two waits of one automation; a flush begins, the card takes what it was given, one wait fires, or both do."""
    clock, bus, disk = VirtualClock(), Bus(), HeldDisk(tmp_path)
    async with Document(disk, clock) as document:
        async with Recorder(Registry(bus, clock), bus, document, clock, flush_secs=300) as recorder:
            put, flushes = recorder.put, recorder.is_being_flushed
            kept = Storage(stored=document, remember=recorder.remember, put=put, is_being_flushed=flushes)
            async with States(kept) as them:
                for key in ("one", "two"):
                    them.note_wait("a", key, {"began_at": 1})
                disk.is_free.clear()
                begun = []
                for step in steps:
                    if step == "flush":
                        begun.append(asyncio.create_task(recorder.flush()))
                    elif step == "card":
                        disk.is_free.set()
                    else:
                        begun.append(asyncio.create_task(_fire(them, document, step)))
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
        """Sync, once that is allowed."""
        self.is_free.wait()
        super().sync(descriptor)


async def _fire(them: States, document: Document, key: str) -> None:
    gone = them.end_wait("a", key)
    if gone is not None:
        await gone.wait()
    assert key not in _on_card(document)


def _on_card(document: Document) -> set[str]:
    return {key for _, value in document.items("automation/a") for key in value.get("waits", {})}
