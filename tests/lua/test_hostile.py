"""A hostile script ends with a clear error, within its limits; the hub and the next script do not notice."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from appliance.errors import ScriptFailed
from appliance.lua.process import ExecutionLimits
from appliance.lua.worker_pool import WorkerPool
from tests.lua.attacks import BACKSTOP, CPU, HOSTILE, HOSTILE_FILES
from tests.lua.bench import FILE, ROOMY, TRIVIAL, Notes, file, open_pool, run, scene

QUICK = ExecutionLimits(max_cpu_secs=0.2, backstop_secs=30.0)
PATIENCE = 30.0
"""Real seconds after which a script that still runs has escaped its limits, however busy the machine is."""


def answer(operation: str, arguments: Any) -> Any:
    """What hostile scripts are given: nothing, much, or never."""
    if arguments and arguments[0] == "hang":
        return asyncio.Event().wait()
    if arguments and arguments[0] in ("much", "some"):
        return ["x" * 1000] * {"much": 30_000, "some": 500}[arguments[0]]
    return asyncio.sleep(0)


def limits_for(expected: str, limits: ExecutionLimits) -> ExecutionLimits:
    """Scripts that only the backstop ends need a short one; those that end by themselves have time for it."""
    if expected == BACKSTOP:
        return ExecutionLimits(backstop_secs=0.3)
    return limits if CPU in expected else ROOMY


def cases() -> Iterator[tuple[str, str, str]]:
    """Every hostile script as a file."""
    for name, body, expected in HOSTILE:
        yield name, scene(body).text.decode(), expected
    yield from HOSTILE_FILES


CASES = tuple(cases())
AT_ONCE = 12
"""Hostile scripts that run beside each other."""


def test_every_hostile_script_has_a_name_of_its_own() -> None:
    assert len({name for name, _, _ in CASES}) == len(CASES) > 100


async def end_of(pool: WorkerPool, text: str, expected: str, *, described: bool = False) -> str | None:
    """What is wrong with how the file ended; None if nothing is."""
    try:
        async with asyncio.timeout(PATIENCE):
            if described:
                await pool.describe(file(text))
            else:
                await pool.start(file(text), Notes(answer), name="scene:hostile").wait()
    except ScriptFailed as failure:
        reported = str(failure)
        if re.search(expected, reported) and reported.startswith(f"{FILE}:") and len(reported) < 5_000:
            return None
        return reported[:300]
    return "it ended well"


async def end_all(
    cases: Iterable[tuple[str, str, str]], limits: ExecutionLimits, *, described: bool = False
) -> list[str]:
    """Run them beside each other, those with the same limits in one pool; what is wrong with any of them."""
    by_limits: defaultdict[ExecutionLimits, list[tuple[str, str, str]]] = defaultdict(list)
    for case in cases:
        by_limits[limits_for(case[2], limits)].append(case)
    wrong = []
    for each, group in by_limits.items():
        async with open_pool(each) as pool:
            ends = await asyncio.gather(*(end_of(pool, text, said, described=described) for _, text, said in group))
            assert len((await run(pool, TRIVIAL)).asked) == 1
        wrong += [
            f"{name}: {reported}" for (name, _, _), reported in zip(group, ends, strict=True) if reported is not None
        ]
    return wrong


async def test_some_hostile_scripts_end_with_clear_errors() -> None:
    assert await end_all(CASES[::40], QUICK) == []


@pytest.mark.slow
async def test_all_hostile_scripts_end_with_clear_errors() -> None:
    wrong = []
    for first in range(0, len(CASES), AT_ONCE):
        wrong += await end_all(CASES[first : first + AT_ONCE], QUICK)
    assert wrong == []


async def test_describing_a_hostile_file_ends_with_a_clear_error() -> None:
    assert await end_all([each for each in HOSTILE_FILES if "metatable" not in each[0]], QUICK, described=True) == []


@pytest.mark.slow
async def test_a_trivial_script_ends_while_forty_spin() -> None:
    async with open_pool(ExecutionLimits(max_cpu_secs=30.0)) as pool:
        spinning = [pool.start(scene("while true do end"), Notes(), name=f"spinner {each}") for each in range(40)]
        async with asyncio.timeout(PATIENCE):
            notes = await run(pool, TRIVIAL)
        assert len(notes.asked) == 1
        assert pool.running >= 40
        assert all(not each.is_cancelled for each in spinning)
