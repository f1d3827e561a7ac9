"""A hostile script ends with a clear error, within its limits; the hub and the next script do not notice."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from appliance.errors import ScriptFailed
from appliance.lua.limits import Limits
from appliance.lua.runner import Runner
from tests.lua.bench import FILE, ROOMY, TRIVIAL, Notes, file, open_runner, run, scene
from tests.lua.hostile import BACKSTOP, CPU, FILES, HOSTILE

QUICK = Limits(max_cpu_secs=0.2, backstop_secs=30.0)
DEFAULT = Limits()
PATIENCE = 30.0
"""Real seconds after which a script that still runs has escaped its limits, however busy the machine is."""


def answer(operation: str, arguments: Any) -> Any:
    """What hostile scripts are given: nothing, much, or never."""
    if arguments and arguments[0] == "hang":
        return asyncio.Event().wait()
    if arguments and arguments[0] in ("much", "some"):
        return ["x" * 1000] * {"much": 30_000, "some": 500}[arguments[0]]
    return asyncio.sleep(0)


@asynccontextmanager
async def ticking() -> AsyncIterator[list[float]]:
    """How late a timer of a millisecond was, again and again."""
    loop, late = asyncio.get_running_loop(), [0.0]

    async def tick() -> None:
        while True:
            due = loop.time() + 0.001
            await asyncio.sleep(0.001)
            late.append(loop.time() - due)

    task = asyncio.ensure_future(tick())
    try:
        yield late
    finally:
        task.cancel()


async def ends(runner: Runner, name: str, text: str, expected: str) -> None:
    """Run it, see how it ends, and that the loop went on meanwhile and another script can run."""
    async with ticking() as late:
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(ScriptFailed) as failure:
                await runner.start(file(text), Notes(answer), name=name).wait()
    assert re.search(expected, str(failure.value)), str(failure.value)[:500]
    assert str(failure.value).startswith(f"{FILE}:")
    assert len(str(failure.value)) < 5_000
    assert max(late) < 2.0
    assert runner.abandoned == 0


def limits_for(expected: str, limits: Limits) -> Limits:
    """Scripts that only the backstop ends need a short one; those that end by themselves have time for it."""
    if expected == BACKSTOP:
        return Limits(backstop_secs=0.3)
    return limits if CPU in expected else ROOMY


def cases() -> Iterator[tuple[str, str, str]]:
    """Every hostile script as a file."""
    for name, body, expected in HOSTILE:
        yield name, scene(body).text.decode(), expected
    yield from FILES


CASES = tuple(cases())
NAMES = [name for name, _, _ in CASES]
BATCHES = 12
"""How many share the hostile scripts where each has the limits that a hub gives it, and takes its time."""


def test_every_hostile_script_has_a_name_of_its_own() -> None:
    assert len(set(NAMES)) == len(NAMES) > 100


@pytest.mark.parametrize(("name", "text", "expected"), CASES, ids=NAMES)
async def test_a_hostile_script_ends_with_a_clear_error(name: str, text: str, expected: str) -> None:
    async with open_runner(limits_for(expected, QUICK)) as runner:
        await ends(runner, name, text, expected)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
async def test_hostile_scripts_end_within_the_default_limits(batch: int) -> None:
    async def end(name: str, text: str, expected: str) -> None:
        async with open_runner(limits_for(expected, DEFAULT)) as runner:
            await ends(runner, name, text, expected)
            assert len((await run(runner, TRIVIAL)).asked) == 1

    await asyncio.gather(*(end(*case) for case in CASES[batch::BATCHES]))


@pytest.mark.parametrize(("text", "expected"), [each[1:] for each in FILES if "metatable" not in each[0]])
async def test_describing_a_hostile_file_ends_with_a_clear_error(text: str, expected: str) -> None:
    async with open_runner(limits_for(expected, QUICK)) as runner:
        with pytest.raises(ScriptFailed, match=expected):
            await runner.describe(file(text))


async def test_a_trivial_script_ends_while_forty_spin() -> None:
    async with open_runner(Limits(max_cpu_secs=30.0)) as runner:
        spinning = [runner.start(scene("while true do end"), Notes(), name=f"spinner {each}") for each in range(40)]
        async with asyncio.timeout(PATIENCE):
            notes = await run(runner, TRIVIAL)
        assert len(notes.asked) == 1
        assert runner.running >= 40
        assert all(not each.is_cancelled for each in spinning)
