"""What is remembered of automations outlives a restart, and what is not of the form is forgotten."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from appliance.automations.policy import Memory
from appliance.automations.states import State, States
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
