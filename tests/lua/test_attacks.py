"""Whatever a script does, it ends; who runs beside it ends well or is told why not; little memory stays behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from appliance.errors import ScriptFailed
from appliance.lua.limits import Limits
from appliance.lua.process import resident_bytes
from appliance.lua.runner import Runner
from tests.fakes.patience import until
from tests.lua.attacks import ATTACKS
from tests.lua.bench import TRIVIAL, Notes, open_runner, run, scene
from tests.lua.test_hostile import CASES, PATIENCE, answer

LIMITS = Limits(max_cpu_secs=0.3, backstop_secs=1.0)
AT_ONCE = 8
MAX_GROWTH_BYTES = 40 << 20
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


async def attack(attacks: Sequence[tuple[str, str]]) -> list[str]:
    """Run them beside each other and an innocent; what is wrong with how any ended."""
    wrong = []
    async with open_runner(LIMITS) as runner:
        await run(runner, TRIVIAL)
        before = sum(resident_bytes(each["pid"]) for each in runner.figures()["workers"])
        for first in range(0, len(attacks), AT_ONCE):
            batch = attacks[first : first + AT_ONCE]
            asleep = Notes(lambda *_: asyncio.sleep(0.5))
            innocent = asyncio.ensure_future(run(runner, "ctx:sleep(1) print('on')", asleep))
            ends = await asyncio.gather(*(end_of(runner, name, body) for name, body in batch))
            named = zip(batch, ends, strict=True)
            wrong += [f"{name}: {said[:200]}" for (name, _), said in named if said == "ESCAPED" or len(said) > 5_000]
            try:
                assert (await innocent).printed == ["on"]
            except ScriptFailed as failure:
                wrong += [] if KILLED in str(failure) else [f"an innocent: {failure}"]
        await until(lambda: len(runner.figures()["workers"]) == 1)
        workers = runner.figures()["workers"]
        await until(lambda: _resident(runner) <= before + MAX_GROWTH_BYTES)
        used = sum(_cpu_secs(each["pid"]) for each in workers)
        await asyncio.sleep(0.5)
        wrong += ["something burns"] if sum(_cpu_secs(each["pid"]) for each in workers) > used + 0.1 else []
    return wrong


def _resident(runner: Runner) -> int:
    return sum(each["resident_bytes"] for each in runner.figures()["workers"])


def _cpu_secs(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_there_are_many_attacks() -> None:
    assert len({body for _, body in ATTACKS}) == len(ATTACKS) > 160
    assert len(ATTACKS) + len(CASES) > 280


async def test_some_attacks_of_each_kind_end() -> None:
    assert await attack(ATTACKS[3::12]) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
async def test_every_attack_ends(part: int) -> None:
    assert await attack(ATTACKS[part::4]) == []


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
