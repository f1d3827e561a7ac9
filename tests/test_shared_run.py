"""Work that many clients request at once runs once for all of them."""

from __future__ import annotations

import asyncio

import pytest

from appliance.tasks import SharedRun, Tasks


async def test_callers_during_a_run_share_the_next_run() -> None:
    gates, has_begun = [asyncio.Event(), asyncio.Event()], asyncio.Event()
    begun = list[int]()

    async def work() -> int:
        begun.append(len(begun))
        has_begun.set()
        await gates[begun[-1]].wait()
        return begun[-1]

    shared = SharedRun(work, Tasks(), "work")
    first = [asyncio.create_task(shared.result()) for _ in range(3)]
    await has_begun.wait()
    later = [asyncio.create_task(shared.result()) for _ in range(3)]
    await asyncio.sleep(0)
    first[0].cancel()
    gates[0].set()
    assert await asyncio.gather(*first[1:]) == [0, 0]
    gates[1].set()
    assert await asyncio.gather(*later) == [1, 1, 1]


async def test_a_failure_reaches_all_callers_and_the_next_run_can_succeed() -> None:
    failures = [OSError("no"), None]

    async def work() -> str:
        failure = failures.pop(0)
        if failure is not None:
            raise failure
        return "yes"

    shared = SharedRun(work, Tasks(), "work")
    with pytest.raises(OSError, match="no"):
        await asyncio.gather(shared.result(), shared.result())
    assert await shared.result() == "yes"
