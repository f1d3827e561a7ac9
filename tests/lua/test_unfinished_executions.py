"""After a restart, the history contains an entry for exactly those executions that the kill interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from appliance.clock import to_millis
from appliance.history.execution_history import ExecutionHistory, ExecutionStatus
from appliance.history.period import Period
from appliance.lua.running.unfinished_executions import CUT_OFF, UnfinishedExecutions
from appliance.store.record_keys import RUNNING
from tests.fakes.automations import Card
from tests.fakes.clock import START, VirtualClock


async def test_only_running_executions_are_marked_until_their_end() -> None:
    card, clock = Card(), VirtualClock()
    async with UnfinishedExecutions(card, clock) as it:
        for number in range(3):
            it.begin(str(number), "automation", f"a{number}", START)
        it.end("0")
        await clock.run(clock.sleep(0.6))
        await asyncio.sleep(0)
        assert card.values[RUNNING].keys() == {"1", "2"}
        it.end("1")
        for _ in range(5):
            await asyncio.sleep(0)
        assert card.values[RUNNING].keys() == {"2"}
    assert RUNNING not in card.values


class _SlowCard(Card):
    """A card on which each write takes a turn of the loop. `writes` contains the number of marks of each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[int] = []

    async def put_many(self, changes: Mapping[str, Any]) -> None:
        self.writes.append(len(changes[RUNNING] or ()))
        await asyncio.sleep(0)
        await super().put_many(changes)


async def test_executions_that_end_together_share_a_write() -> None:
    card, clock = _SlowCard(), VirtualClock()
    async with UnfinishedExecutions(card, clock) as it:
        for number in range(300):
            it.begin(str(number), "automation", "a", START)
        await clock.run(clock.sleep(0.6))
        for first in (0, 100, 200):
            for number in range(first, first + 100):
                it.end(str(number))
            await asyncio.sleep(0)
        for _ in range(9):
            await asyncio.sleep(0)
    assert card.writes[0] == 300
    assert card.writes[-1] == 0


async def test_executions_that_a_stop_ends_cause_no_write_of_their_own() -> None:
    card, clock = _SlowCard(), VirtualClock()
    async with UnfinishedExecutions(card, clock) as it:
        for number in range(300):
            it.begin(str(number), "automation", "a", START)
        await clock.run(clock.sleep(0.6))
        for _ in range(3):
            await asyncio.sleep(0)
        it.end_all()
        for number in range(300):
            it.end(str(number))
        for _ in range(9):
            await asyncio.sleep(0)
        assert card.writes == [300] and RUNNING not in card.values
    assert len(card.writes) <= 4
    assert RUNNING not in card.values


async def test_interrupted_executions_are_in_their_history_once() -> None:
    marks = {
        "1": {"kind": "automation", "of": "a", "at": to_millis(START)},
        "2": {"kind": "scene", "of": "s", "at": 0},
    }
    card = Card({RUNNING: marks})
    for entries in (1, 0):
        async with UnfinishedExecutions(card, VirtualClock()) as it:
            history = ExecutionHistory()
            it.report("automation", history)
            found = history.list_runs("a", Period())
            assert [(each.status, each.error, each.executed_at) for each in found] == [
                (ExecutionStatus.CANCELLED, CUT_OFF, START)
            ] * entries


async def test_marks_in_another_form_are_ignored() -> None:
    for value in ({"1": {"kind": 7}}, ["x"], 3):
        async with UnfinishedExecutions(Card({RUNNING: value}), VirtualClock()) as it:
            history = ExecutionHistory()
            it.report("automation", history)
            assert history.list_runs("a", Period()) == []
