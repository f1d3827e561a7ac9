"""The threads: as many as there is work, up to the cap; few when idle; a lost one is replaced."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from appliance.clock import Clock
from appliance.lua.limits import Limits, Reason, Watch
from appliance.lua.pool import KEPT, NICE, Pool, stand_back
from appliance.lua.scripts import Scripts
from appliance.lua.state import State, Step, Stopped
from appliance.lua.stepper import Stepper
from tests.fakes.patience import until
from tests.lua.bench import file


async def test_a_job_gives_what_its_function_gives_or_raises() -> None:
    pool = Pool()
    assert await pool.submit(lambda: 5).future == 5
    with pytest.raises(ZeroDivisionError):
        await pool.submit(lambda: 1 // 0).future
    pool.close()
    await until(lambda: pool.threads == 0)


async def test_jobs_run_beside_each_other_up_to_the_cap_and_the_rest_wait_their_turn() -> None:
    pool, gate = Pool(cap=3), threading.Event()
    jobs = [pool.submit(gate.wait) for _ in range(10)]
    assert pool.threads == 3
    gate.set()
    assert await asyncio.gather(*[each.future for each in jobs]) == [True] * 10
    assert pool.threads == 3
    pool.close()


async def test_idle_threads_end_but_a_few_even_while_there_is_a_little_to_do() -> None:
    pool, gate = Pool(cap=16, idle_secs=0.1), threading.Event()
    jobs = [pool.submit(gate.wait) for _ in range(16)]
    assert pool.threads == 16
    gate.set()
    await asyncio.gather(*[each.future for each in jobs])
    async with asyncio.timeout(10):
        while pool.threads > KEPT:
            await pool.submit(lambda: None).future
            await asyncio.sleep(0.005)
    assert await pool.submit(lambda: 5).future == 5
    pool.close()


async def test_a_thread_that_stood_back_ends_with_its_job_and_another_takes_what_waits() -> None:
    pool, gate = Pool(cap=1), threading.Event()

    def long() -> int:
        stand_back()
        gate.wait()
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    slow, waiting = pool.submit(long), pool.submit(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
    gate.set()
    assert await slow.future - await waiting.future == NICE
    pool.abandon(pool.submit(long))
    assert await pool.submit(lambda: 5).future == 5
    last = pool.submit(long)
    await last.future
    await until(lambda: pool.threads == 0)
    pool.close()


async def test_a_lost_thread_is_counted_and_replaced() -> None:
    pool, gate = Pool(cap=1), threading.Event()
    lost, waiting = pool.submit(gate.wait), pool.submit(lambda: 4)
    assert pool.abandon(lost)
    assert await waiting.future == 4
    assert (pool.abandoned, pool.threads) == (1, 1)
    assert await pool.submit(lambda: 5).future == 5
    gate.set()
    await lost.future
    assert pool.threads == 1
    pool.close()


async def test_a_job_that_is_over_is_not_given_up() -> None:
    pool = Pool()
    job = pool.submit(lambda: 5)
    assert await job.future == 5
    await until(lambda: job.is_over)
    assert not pool.abandon(job)
    assert (pool.abandoned, pool.threads) == (0, 1)
    pool.close()


async def test_lua_that_is_lost_in_c_is_given_up() -> None:
    pool, gate = Pool(), threading.Event()
    limits = Limits(max_cpu_secs=0.05)
    watch = Watch(limits, Clock())
    stepper = Stepper(pool, State(file(""), limits.max_memory, watch, Scripts(None, "")), watch, limits)

    def stuck() -> Step:
        gate.wait()
        return Stopped(Reason.CPU, "")

    assert await stepper.step(stuck) == Stopped(Reason.STUCK, "")
    stepper.leave()
    assert pool.abandoned == 1
    gate.set()
    pool.close()


async def test_waiting_in_the_queue_is_not_being_lost() -> None:
    pool, gate = Pool(cap=1), threading.Event()
    limits = Limits(max_cpu_secs=0.05)
    watch = Watch(limits, Clock())
    stepper = Stepper(pool, State(file(""), limits.max_memory, watch, Scripts(None, "")), watch, limits)
    blocking = pool.submit(gate.wait)
    stepping = asyncio.ensure_future(stepper.step(lambda: Stopped(Reason.CANCELLED, "here")))
    await asyncio.wait([stepping], timeout=2.5)
    assert not stepping.done()
    gate.set()
    assert await stepping == Stopped(Reason.CANCELLED, "here")
    assert pool.abandoned == 0
    stepper.leave()
    await blocking.future
    pool.close()
