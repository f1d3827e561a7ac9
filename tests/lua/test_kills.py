"""Signals kill the worker at random moments while it runs automations. Each caller gets an answer, and each
trigger has a result. Modes and cooldowns behave as after a failure."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from appliance.errors import ScriptFailed
from appliance.lua.running.worker_pool import WorkerPool
from tests.fakes.automations import Bench, Play, Stage, automation, bench
from tests.fakes.patience import until
from tests.lua.bench import Notes, file, open_pool, scene

BODIES = (
    "for _ = 1, 20 do ctx:command('a', {}) end",
    "ctx:sleep(1) ctx:sleep(1)",
    "local t = {} for i = 1, 20000 do t[i] = {} end",
    "coroutine.wrap(function() ctx:sleep(1) end)()",
    "for _ = 1, 3 do pcall(require, 'x') end",
    "print('x')",
    "for _ = 1, 60 do ctx:get_device('x') end",
)
DEADLY = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)
ANSWER_SECS = 60.0
SENTENCE = "the Lua worker"

MODES: Mapping[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "cool": ({"state": {"cooldown_secs": 60}}, ("", "skipped", "skipped")),
    "parallel": ({"mode": {"type": "parallel", "max": 2}}, ("", "", "dropped")),
    "queued": ({"mode": {"type": "queued", "max": 2}}, ("", "", "")),
    "restart": ({"mode": "restart"}, ("", "", "")),
    "single": ({"mode": "single"}, ("", "dropped", "dropped")),
}
"""The files of automations. For each file, the results of three simultaneous triggers, unless the results are
random."""


class LuaStage(Stage):
    """For each execution of an automation, runs one of `bodies` at random."""

    def __init__(self, pool: WorkerPool, dice: random.Random) -> None:
        super().__init__()
        self.bodies: tuple[str, ...] = BODIES
        self._pool = pool
        self._dice = dice

    def begin(self, source: Any, context: Any, event: Mapping[str, Any], *, name: str, **given: Any) -> Play:
        notes = Notes(lambda *_: asyncio.sleep(self._dice.random() / 100))
        body = scene(self._dice.choice(self.bodies))
        return cast("Play", self._pool.begin(body, notes, event, name=name, **given))


def pids(pool: WorkerPool) -> list[int]:
    """Return the process ids of the workers. If a worker has not started, its id is 0."""
    return [each["pid"] for each in pool.figures()["workers"]]


def running(it: Bench) -> int:
    """Return the number of running and waiting executions."""
    figures = it.parts.figures()
    count: int = figures["running"] + figures["waiting"]
    return count


def trigger(it: Bench) -> None:
    """Fire all automations."""
    it.show(power="off")
    it.show(power="on")


async def hit(it: Bench, pool: WorkerPool, dice: random.Random, signals: tuple[signal.Signals, ...]) -> None:
    """Fire all automations three times, and send a signal to the worker at a random moment. Check that all runs
    end correctly, and that all automations run afterwards."""
    before = {id_: len(it.outcomes(id_)) for id_ in MODES}
    cast("LuaStage", it.stage).bodies = BODIES
    asked = asyncio.ensure_future(describe(pool))
    for _ in range(3):
        trigger(it)
    await asyncio.sleep(dice.random() ** 3 * 0.05)
    worker, number = pids(pool)[-1], dice.choice(signals)
    if worker:
        os.kill(worker, number)
    await asked
    await until(lambda: not running(it), within=ANSWER_SECS)
    ended = {id_: it.outcomes(id_)[before[id_] :] for id_ in MODES}
    for id_, (_, expected) in MODES.items():
        statuses = sorted(status for status, _ in ended[id_])
        certain = [status for status in expected if status]
        assert len(statuses) == 3 and all(statuses.count(each) >= certain.count(each) for each in certain), ended
        errors = [error or "" for status, error in ended[id_] if status in ("error", "timeout")]
        assert all(SENTENCE in error for error in errors), errors
    if worker and number in DEADLY:
        await until(lambda: worker not in pids(pool))
    while not await describe(pool):  # the hub notices a halted worker only at its next use
        pass
    await all_run(it, has_cooled=any(status == "ok" for status, _ in ended["cool"]))


async def describe(pool: WorkerPool) -> bool:
    async with asyncio.timeout(ANSWER_SECS):
        try:
            return await pool.describe(file("return {id = 'x'}")) == {"id": "x"}
        except ScriptFailed as failure:
            assert SENTENCE in str(failure), failure
            return False


async def all_run(it: Bench, *, has_cooled: bool) -> None:
    """Check that each automation runs at its next trigger, unless a successful run started its cooldown."""
    cast("LuaStage", it.stage).bodies = ("ctx:command('a', {})",)
    trigger(it)
    await until(lambda: not running(it), within=ANSWER_SECS)
    last = {id_: it.outcomes(id_)[-1] for id_ in MODES}
    assert last.pop("cool")[0] == ("skipped" if has_cooled else "ok"), last
    assert {status for status, _ in last.values()} == {"ok"}, last
    await it.pass_by(61)


async def home(folder: Path, count: int, seed: int, signals: tuple[signal.Signals, ...]) -> int:
    """Run a home, and send this number of signals to its worker. Return the number of lost executions."""
    dice = random.Random(seed)
    async with open_pool() as pool:
        automations = (automation(id_=id_, **more) for id_, (more, _) in MODES.items())
        async with bench(folder, *automations, stage=LuaStage(pool, dice)) as it:
            for _ in range(count):
                await hit(it, pool, dice, signals)
        await until(lambda: len(pool.figures()["workers"]) == 1)
        assert pool.figures()["workers"][0]["executions"] == 0
        kills: int = pool.figures()["kills"]
        return kills


@pytest.mark.slow
@pytest.mark.parametrize("homes", [3, pytest.param(10, marks=pytest.mark.release)])
async def test_no_execution_is_lost_when_signals_hit_the_worker(homes: int, tmp_path: Path) -> None:
    signals = (*DEADLY * 6, signal.SIGSTOP)
    async with asyncio.TaskGroup() as group:  # if a home fails, the group stops the other homes in order
        running_homes = [
            group.create_task(home(tmp_path / str(each), 25, 100 + each, signals)) for each in range(homes)
        ]
    assert sum(each.result() for each in running_homes) > 12 * homes
