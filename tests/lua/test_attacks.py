"""Whatever a script does, it ends; who runs beside it ends well or is told why not. That nothing of it stays is
shown with a whole hub (`tests/journeys/test_attacks.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

import pytest

from appliance.errors import ScriptFailed
from appliance.lua.execution_limits import ExecutionLimits
from appliance.lua.worker_pool import WorkerPool
from tests.lua.attacks import ATTACKS
from tests.lua.bench import TRIVIAL, Notes, open_pool, run, scene
from tests.lua.test_hostile import PATIENCE, answer

LIMITS = ExecutionLimits(max_cpu_secs=0.3, backstop_secs=1.0)
AT_ONCE = 8
KILLED = "the Lua worker was killed, because"


async def end_of(pool: WorkerPool, name: str, body: str) -> str:
    """How the attack ended: a sentence, or nothing."""
    try:
        async with asyncio.timeout(PATIENCE):
            await pool.start(scene(body), Notes(answer), name=name).wait()
    except ScriptFailed as failure:
        return str(failure)
    except TimeoutError:
        return "ESCAPED"
    return ""


async def attack(name: str, body: str) -> list[str]:
    """Run it beside an innocent: what is wrong with how either ended."""
    wrong = []
    async with open_pool(LIMITS) as pool:
        await run(pool, TRIVIAL)
        asleep = Notes(lambda *_: asyncio.sleep(0.5))
        innocent = asyncio.ensure_future(run(pool, "ctx:sleep(1) print('on')", asleep))
        said = await end_of(pool, name, body)
        if said == "ESCAPED" or len(said) > 5_000:
            wrong.append(f"{name}: {said[:200]}")
        try:
            assert (await innocent).printed == ["on"]
        except ScriptFailed as failure:
            wrong += [] if KILLED in str(failure) else [f"{name}, an innocent: {failure}"]
        assert (await run(pool, TRIVIAL)).asked
    return wrong


async def attack_all(attacks: Iterable[tuple[str, str]]) -> list[str]:
    """Run them, each in a pool of its own, some at once; what is wrong with any."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(name: str, body: str) -> list[str]:
        async with gate:
            return await attack(name, body)

    found = await asyncio.gather(*(one(name, body) for name, body in attacks))
    return [fault for faults in found for fault in faults]


def test_there_are_many_attacks() -> None:
    assert len({body for _, body in ATTACKS}) == len(ATTACKS) > 160


@pytest.mark.slow
async def test_some_attacks_of_each_kind_end() -> None:
    assert await attack_all(ATTACKS[3::12]) == []


@pytest.mark.slow
async def test_the_loop_goes_on_while_attacks_run() -> None:
    async with open_pool(LIMITS) as pool:
        running = asyncio.gather(*(end_of(pool, name, body) for name, body in ATTACKS[::12]))
        late = []
        while not running.done():
            due = time.perf_counter() + 0.01
            await asyncio.sleep(0.01)
            late.append(time.perf_counter() - due)
        assert "ESCAPED" not in await running
    assert max(late) < 5.0
