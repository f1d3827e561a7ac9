"""Whatever a script does, it ends; who runs beside it ends well or is told why not; little memory stays behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from appliance.errors import ScriptFailed
from appliance.lua.execution_limits import ExecutionLimits
from appliance.lua.runner import Runner
from tests.lua.attacks import ATTACKS
from tests.lua.bench import TRIVIAL, Notes, open_runner, run, scene
from tests.lua.hostile import HOSTILE
from tests.lua.test_hostile import PATIENCE, answer

LIMITS = ExecutionLimits(max_cpu_secs=0.3, backstop_secs=1.0)
AT_ONCE = 8
MAX_GROWTH_BYTES = 40 << 20
MAX_CPU_SECS = 0.1
KILLED = "the Lua worker was killed, because"


async def end_of(runner: Runner, name: str, body: str) -> str:
    """How the attack ended: a sentence, or nothing."""
    try:
        async with asyncio.timeout(PATIENCE):
            await runner.start(scene(body), Notes(answer), name=name).wait()
    except ScriptFailed as failure:
        return str(failure)
    except TimeoutError:
        return "ESCAPED"
    return ""


async def attack(name: str, body: str, *, rests: bool) -> list[str]:
    """Run it beside an innocent: what is wrong with how either ended, or, if it `rests`, with what is left of it."""
    wrong = []
    async with open_runner(LIMITS) as runner:
        await run(runner, TRIVIAL)
        before = _resident(runner)
        asleep = Notes(lambda *_: asyncio.sleep(0.5))
        innocent = asyncio.ensure_future(run(runner, "ctx:sleep(1) print('on')", asleep))
        said = await end_of(runner, name, body)
        if said == "ESCAPED" or len(said) > 5_000:
            wrong.append(f"{name}: {said[:200]}")
        try:
            assert (await innocent).printed == ["on"]
        except ScriptFailed as failure:
            wrong += [] if KILLED in str(failure) else [f"{name}, an innocent: {failure}"]
        if rests:
            await asyncio.sleep(1)
            used = _cpu_secs(runner)
            await asyncio.sleep(1)
            if (burnt := _cpu_secs(runner) - used) > MAX_CPU_SECS:
                wrong.append(f"{name}: its worker used {burnt:.2f} s of the processor in a second afterwards")
            if (grown := _resident(runner) - before) > MAX_GROWTH_BYTES:
                wrong.append(f"{name}: its worker kept {grown >> 20} MB")
        assert (await run(runner, TRIVIAL)).asked
    return wrong


async def attack_all(attacks: Iterable[tuple[str, str]], *, rests: bool = False) -> list[str]:
    """Run them, each in a runner of its own, some at once; what is wrong with any."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(name: str, body: str) -> list[str]:
        async with gate:
            return await attack(name, body, rests=rests)

    found = await asyncio.gather(*(one(name, body) for name, body in attacks))
    return [fault for faults in found for fault in faults]


def _resident(runner: Runner) -> int:
    return sum(each["resident_bytes"] for each in runner.figures()["workers"])


def _cpu_secs(runner: Runner) -> float:
    """What the workers have used, those that have ended aside."""
    used = 0
    for each in runner.figures()["workers"]:
        fields = Path(f"/proc/{each['pid']}/stat").read_text().rsplit(") ", 1)[1].split()
        used += int(fields[11]) + int(fields[12])
    return used / 100


def test_there_are_many_attacks() -> None:
    assert len({body for _, body in ATTACKS}) == len(ATTACKS) > 160


async def test_some_attacks_of_each_kind_end() -> None:
    assert await attack_all(ATTACKS[3::12]) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
async def test_every_attack_ends_and_a_second_later_nothing_of_it_is_left(part: int) -> None:
    rows = (*ATTACKS, *((name, body) for name, body, _ in HOSTILE))
    assert len(rows) > 270
    assert await attack_all(rows[part::4], rests=True) == []


async def test_the_loop_goes_on_while_attacks_run() -> None:
    async with open_runner(LIMITS) as runner:
        running = asyncio.gather(*(end_of(runner, name, body) for name, body in ATTACKS[::12]))
        late = []
        while not running.done():
            due = time.perf_counter() + 0.01
            await asyncio.sleep(0.01)
            late.append(time.perf_counter() - due)
        assert "ESCAPED" not in await running
    assert max(late) < 5.0
