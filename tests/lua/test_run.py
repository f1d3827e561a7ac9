"""Executions are cancelled from outside, with and without waiting callers. The tests also check the memory at the
end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from appliance.errors import ExecutionCancelled, ScriptFailed
from appliance.lua.running.run_limits import RunLimits
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua_worker.worker_main import MAX_IDLE_THREADS
from tests.fakes.clock import VirtualClock
from tests.fakes.patience import until
from tests.lua.bench import Notes, Started, ended, open_pool, run, scene, start

pytestmark = pytest.mark.asyncio(loop_scope="module")

SLEEPER = "ctx:sleep(1) ctx:command('a', {})"


class Gate(Notes):
    """Calls that wait until the test releases them."""

    def __init__(self) -> None:
        super().__init__(lambda *_: self.opened.wait())
        self.opened = asyncio.Event()

    async def reached(self, count: int = 1) -> None:
        """Wait until this number of calls have arrived."""
        await until(lambda: len(self.asked) >= count)


@pytest.mark.parametrize("body", [SLEEPER, "pcall(ctx.sleep, ctx, 1) ctx:command('a', {})"])
async def test_a_stop_in_a_sleep_takes_effect_when_the_sleep_has_returned(pool: WorkerPool, body: str) -> None:
    gate = Gate()
    execution = start(pool, scene(body), gate, name="x")
    await gate.reached()
    execution.stop_after_call()
    waiting = asyncio.ensure_future(ended(execution))
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done
    gate.opened.set()
    with pytest.raises(ExecutionCancelled, match=r"config/scenes/test\.lua was cancelled"):
        await waiting
    assert [operation for operation, _ in gate.asked] == ["sleep"]


class NoThreads(ThreadPoolExecutor):
    """Threads that accept no work."""

    def submit(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a thread was used")


async def test_cancelled_executions_end_without_a_thread(pool: WorkerPool) -> None:
    gate = Gate()
    executions = [start(pool, scene(SLEEPER), gate, name=str(number)) for number in range(3)]
    await gate.reached(3)
    loop = asyncio.get_running_loop()
    loop.set_default_executor(NoThreads())
    try:
        for each in executions:
            each.lua.cancel()
        failures = [await each.end() for each in executions]
    finally:
        loop.set_default_executor(ThreadPoolExecutor())
    assert [type(each) for each in failures] == [ExecutionCancelled] * 3


async def test_a_stop_in_a_call_that_never_returns_takes_effect_at_the_backstop() -> None:
    gate = Gate()
    async with open_pool(RunLimits(backstop_secs=0.5)) as pool:
        execution = start(pool, scene("ctx:get_device('a')"), gate, name="x")
        await gate.reached()
        execution.stop_after_call()
        with pytest.raises(ExecutionCancelled):
            await ended(execution)
        assert pool.figures()["kills"] == 0


async def test_a_stop_in_a_command_lets_it_finish_and_sends_no_more(pool: WorkerPool) -> None:
    gate, finished = Gate(), []

    async def answer() -> str:
        await gate.opened.wait()
        finished.append("first")
        return "ok"

    notes = Notes(lambda *_: answer())
    execution = start(pool, scene("while true do pcall(ctx.command, ctx, 'a', {}) end"), notes, name="x")
    await until(lambda: notes.asked)
    execution.stop_after_call()
    gate.opened.set()
    with pytest.raises(ExecutionCancelled):
        await ended(execution)
    assert finished == ["first"]
    assert len(notes.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "coroutine.wrap(function() while true do end end)()",
        "while true do local _ = ('x'):rep(1000000) end",
        "table.sort({3, 2, 1}, function() while true do end end)",
        "xpcall(function() while true do end end, function() while true do end end)",
    ],
)
async def test_a_stop_ends_running_lua(pool: WorkerPool, body: str) -> None:
    notes = Notes()
    execution = start(pool, scene("print('on')\n" + body), notes, name="x")
    await until(lambda: notes.printed)
    execution.stop_after_call()
    with pytest.raises(ExecutionCancelled):
        await ended(execution)
    assert pool.running == 0


async def test_a_stop_before_the_first_step_calls_nothing(pool: WorkerPool) -> None:
    notes = Notes()
    execution = start(pool, scene("ctx:command('a', {})"), notes, name="x")
    execution.stop_after_call()
    with pytest.raises(ExecutionCancelled):
        await ended(execution)
    assert notes.asked == []


async def test_a_stop_after_the_end_changes_nothing(pool: WorkerPool) -> None:
    execution = start(pool, scene(""), Notes(), name="x")
    await ended(execution)
    execution.stop_after_call()
    await ended(execution)


async def test_an_execution_continues_without_a_waiter(pool: WorkerPool) -> None:
    gate = Gate()
    execution = start(pool, scene("ctx:get_device('a') print('done')"), gate, name="x")
    waiting = asyncio.ensure_future(ended(execution))
    await gate.reached()
    waiting.cancel()
    await asyncio.wait([waiting])
    gate.opened.set()
    await ended(execution)
    assert gate.printed == ["done"]


async def test_many_callers_can_wait_for_one_run_and_get_its_result(pool: WorkerPool) -> None:
    execution = start(pool, scene("error('no')"), Notes(), name="x")
    ends = await asyncio.gather(*[ended(execution) for _ in range(3)], return_exceptions=True)
    assert [type(each) for each in ends] == [ScriptFailed] * 3


async def test_leaving_the_runner_ends_sleeping_waiting_and_spinning_executions() -> None:
    gate = Gate()
    async with open_pool() as pool:
        runs = [start(pool, scene(SLEEPER), gate, name=f"sleeper {each}") for each in range(20)]
        runs += [start(pool, scene("while true do end"), Notes(), name=f"spinner {each}") for each in range(4)]
        await gate.reached(20)
        assert pool.running == 24
    ends = await asyncio.gather(*[ended(each) for each in runs], return_exceptions=True)
    assert [type(each) for each in ends] == [ExecutionCancelled] * 24
    assert pool.running == 0
    assert pool.figures()["workers"] == []


async def test_the_time_in_a_sleep_does_not_count() -> None:
    async def nap() -> None:
        await asyncio.sleep(0.6)

    notes = Notes(lambda operation, _: nap() if operation == "sleep" else None)
    async with open_pool(RunLimits(backstop_secs=0.5)) as pool:
        await run(pool, "ctx:sleep(1) ctx:get_device('x') ctx:sleep(1)", notes)
    assert len(notes.asked) == 3


@pytest.mark.parametrize(
    "call",
    ["ctx:log('info', 'x')", "print('x')", "pcall(require, 'x')", "ctx:get_device('x')", "ctx:get('x')"],
)
async def test_reading_and_logging_do_not_restart_the_running_time(call: str) -> None:
    async with open_pool(RunLimits(max_cpu_secs=0.2)) as pool:
        with pytest.raises(ScriptFailed, match=r"used 0\.2 s of processor time without waiting and was stopped"):
            await run(pool, f"while true do pcall(function() {SPIN} {call} end) end")


SPIN = "local until_ = os.clock() + 0.06 while os.clock() < until_ do end "


async def test_a_limit_of_real_time_does_not_claim_processor_time() -> None:
    async with open_pool(RunLimits(max_cpu_secs=0.05)) as pool:
        sentence = r"ran for 0\.5 s without waiting, because the machine is busy or the script mostly reads and was "
        with pytest.raises(ScriptFailed, match=rf"{sentence}stopped \(10 times scripts\.max_cpu_secs\)"):
            await run(pool, "while true do ctx:get_device('x') end", Notes(lambda *_: asyncio.sleep(0.1)))


@pytest.mark.slow
async def test_each_call_that_waits_begins_the_running_time_again() -> None:
    async with open_pool(RunLimits(max_cpu_secs=1.0)) as pool:
        notes = await run(pool, f"for _ = 1, 60 do {SPIN.replace('0.06', '0.02')} ctx:command('x', {{}}) end")
    assert len(notes.asked) == 60


@pytest.mark.slow
async def test_the_total_processor_time_is_limited_over_waits(caplog: pytest.LogCaptureFixture) -> None:
    async with open_pool(RunLimits(max_cpu_total_secs=0.3)) as pool:
        with pytest.raises(
            ScriptFailed, match=r"used 0\.3 s of processor time in total and was stopped \(scripts\.max_cpu_total"
        ):
            await run(pool, f"while true do pcall(function() {SPIN} ctx:sleep(0) end) end")
        notes = await run(pool, f"for _ = 1, 3 do {SPIN} ctx:sleep(0) end")
    assert len(notes.asked) == 3


@pytest.mark.slow
async def test_an_execution_that_has_computed_for_long_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with open_pool(RunLimits(unremarked_cpu_secs=0.1)) as pool:
        await run(pool, f"for _ = 1, 5 do {SPIN} ctx:get_device('x') end")
    assert [each.getMessage() for each in caplog.records] == [
        "scene:test has used 0.1 s of processor time; its current line is config/scenes/test.lua:2"
    ]


@pytest.mark.slow
async def test_an_execution_that_has_only_read_for_long_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with open_pool(RunLimits(max_cpu_secs=0.5, unremarked_cpu_secs=0.2)) as pool:
        with pytest.raises(ScriptFailed):
            await run(pool, "while true do ctx:get_device('x') end")
    assert len([each for each in caplog.records if "has used 0.2 s of processor time" in each.getMessage()]) == 1


async def test_an_execution_logs_a_thousand_lines_at_most(pool: WorkerPool) -> None:
    notes = await run(pool, "for i = 1, 2000 do print(i) end")
    lines = [message for _, message, _ in notes.lines]
    sentence = "950 log lines are omitted: an execution logs at most 1000 lines and 1 MiB"
    assert lines == [*map(str, range(1, 1001)), sentence, *map(str, range(1951, 2001))]


async def test_a_long_line_is_cut(pool: WorkerPool) -> None:
    notes = await run(pool, "print(('x'):rep(100000))")
    assert len(notes.printed[0]) < 10_000


@pytest.mark.slow
async def test_hundreds_that_sleep_use_no_thread() -> None:
    gate = Gate()
    async with open_pool() as pool:
        runs = [start(pool, scene(SLEEPER), gate, name=f"{each}") for each in range(300)]
        await gate.reached(300)
        assert pool.running == 300
        [worker] = pool.figures()["workers"]
        # two more threads: one reads for the execution, and one is ending
        await until(lambda: len(list(Path(f"/proc/{worker['pid']}/task").iterdir())) <= MAX_IDLE_THREADS + 2)
        assert (await run(pool, "print('awake')")).printed == ["awake"]
        gate.opened.set()
        await asyncio.gather(*[ended(each) for each in runs])
        assert pool.running == 0


@pytest.mark.slow
async def test_stops_race_with_ends() -> None:
    """Cancel runs at random moments. Each run must end in one of two ways, and must leave nothing behind.

    On a busy machine, Lua may need more than the one second in which it must stop. The hub then ends the run.
    """
    random_ = random.Random(400)

    async def one(execution: Started) -> None:
        for _ in range(random_.randrange(12)):
            await asyncio.sleep(0)
        if random_.random() < 0.3:
            await asyncio.sleep(random_.random() / 500)
        execution.stop_after_call()
        try:
            await ended(execution)
        except ExecutionCancelled:
            return
        except ScriptFailed as error:
            assert "could not be stopped" in str(error)

    body = "for _ = 1, 3 do ctx:get_device('x') ctx:command('a', {}) end"
    async with open_pool() as pool:
        for turn in range(8):
            files = [scene(f"{body} -- {turn}.{each}") for each in range(50)]
            runs = [start(pool, each, Notes(lambda *_: asyncio.sleep(0)), name="x") for each in files]
            await asyncio.gather(*map(one, runs))
        assert pool.running == 0
        await until(lambda: not any(each["executions"] for each in pool.figures()["workers"]))
        assert len((await run(pool, body)).asked) == 6


@pytest.mark.slow
async def test_runners_can_be_left_at_any_moment() -> None:
    for turn in range(40):
        async with open_pool() as pool:
            runs = [start(pool, scene("ctx:get_device('x')"), Notes(), name="x") for _ in range(3)]
            for _ in range(turn % 8):
                await asyncio.sleep(0)
        ends = await asyncio.gather(*[ended(each) for each in runs], return_exceptions=True)
        assert all(each is None or isinstance(each, ExecutionCancelled) for each in ends)


@pytest.mark.slow
@pytest.mark.parametrize("body", ["ctx:get_device('x')", "error('no')", "while true do ctx:get_device('x') end"])
async def test_an_execution_leaves_no_reference_cycles(pool: WorkerPool, body: str) -> None:
    await run(pool, "")
    gc.collect()
    gc.disable()
    try:
        watched = []
        for _ in range(20):
            notes = Notes(lambda *_: asyncio.sleep(0))
            watched.append(weakref.ref(notes))
            execution = start(pool, scene(body), notes, name="x")
            await until(lambda notes=notes: notes.asked or "error" in body)  # type: ignore[misc]
            execution.stop_after_call()
            with contextlib.suppress(ScriptFailed, ExecutionCancelled):
                await ended(execution)
            del execution, notes
        await until(lambda: not any(each() for each in watched))
    finally:
        gc.enable()


EXIT = """
import asyncio
from tests.lua.bench import Notes, ended, open_pool, scene, start

async def main():
    async with open_pool() as pool:
        for body in ("while true do end", "while true do pcall(function() while true do end end) end"):
            start(pool, scene(body), Notes(), name="spinner")
        await asyncio.sleep(0.2)

asyncio.run(main())
print("left")
"""


@pytest.mark.slow
async def test_a_process_ends_while_threads_work() -> None:
    ended = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", EXIT], capture_output=True, text=True, timeout=30, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "left\n", "")


async def test_limits_count_the_machines_seconds_whatever_the_hubs_clock_shows() -> None:
    async with open_pool(RunLimits(max_cpu_secs=0.1), clock=VirtualClock()) as pool:
        with pytest.raises(ScriptFailed, match="without waiting"):
            await run(pool, "while true do end")
