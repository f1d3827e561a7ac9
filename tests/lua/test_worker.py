"""The worker is killed, crashes, or hangs at any moment. Every execution gets an answer, and the next execution
runs."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from appliance.errors import Busy, ExecutionCancelled, ScriptFailed
from appliance.lua.running.lua_run import MAX_REPEATS, Priority
from appliance.lua.running.run_limits import RunLimits
from appliance.lua.running.stuck_files import MAX_STUCK
from appliance.lua.running.worker import (
    CHECK_INTERVAL_SECS,
    MAX_BEGUN,
    MAX_FRAMES_AT_ONCE,
    MAX_IDLE_GROWTH_BYTES,
    MAX_RUNNING,
    MAX_UNBEGUN,
    RESERVED_FOR_ALARMS,
)
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua.text.source import Source
from tests.fakes.patience import until
from tests.lua.bench import TRIVIAL, Notes, Started, ended, file, open_pool, run, scene, start

pytestmark = pytest.mark.slow

PATIENCE = 60.0


def pid_of(pool: WorkerPool) -> int:
    """Return the process id of the newest worker."""
    pid: int = pool.figures()["workers"][-1]["pid"]
    return pid


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
async def test_executions_that_sleep_end_at_once_with_their_worker(number: signal.Signals) -> None:
    reasons: list[str] = []
    async with open_pool(on_kill=reasons.append) as pool:
        asleep = Notes(lambda *_: asyncio.Event().wait())
        running = [start(pool, scene("ctx:sleep(1)"), asleep, name="scene:x") for _ in range(3)]
        await until(lambda: len(asleep.asked) == 3)
        os.kill(pid_of(pool), number)
        for each in running:
            with pytest.raises(ScriptFailed, match=rf"the Lua worker ended unexpectedly \({number.name}"):
                await ended(each)
        assert (await run(pool, TRIVIAL)).asked
        figures = pool.figures()
    assert len(reasons) == 1 and number.name in reasons[0]
    assert reasons[0].endswith("; the executions in it failed: scene:x; start them again if necessary")
    assert figures["kills"] == 1 and number.name in figures["last_kills"][0]["reason"]


@pytest.mark.usefixtures("whole_workers")
async def test_an_execution_begun_before_a_lost_worker_is_noticed_runs_in_a_new_one() -> None:
    async with open_pool() as pool:
        await run(pool, TRIVIAL)
        worker = pid_of(pool)
        os.kill(worker, signal.SIGKILL)
        while _is_alive(worker) or _thread_count(worker) > 1:  # the last thread closes the socket
            pass  # the event loop must not notice the end
        notes = Notes()
        begun = [start(pool, scene(TRIVIAL), notes, name="scene:x") for _ in range(10)]
        await asyncio.gather(*(ended(each) for each in begun), pool.describe(file("return {}")))
        figures = pool.figures()
    assert len(notes.asked) == 10
    assert figures["kills"] == 1 and "ended unexpectedly (SIGKILL, perhaps for lack of memory)" in str(figures)


@pytest.mark.parametrize("priority", [Priority.ALARM, Priority.NESTED_ALARM])
async def test_an_alarm_that_called_nothing_before_its_worker_was_lost_begins_again(priority: Priority) -> None:
    reasons: list[str] = []
    asleep, normal, alarm = Notes(lambda *_: asyncio.Event().wait()), Notes(), Notes()
    async with open_pool(on_kill=reasons.append) as pool:
        called = start(pool, scene("ctx:sleep(1)"), asleep, name="automation:z", priority=priority)
        await until(lambda: asleep.asked)
        os.kill(pid_of(pool), signal.SIGSTOP)
        others = [start(pool, scene(TRIVIAL), normal, name=f"automation:{name}") for name in "abcdef"]
        source = scene("print(event.device_id) " + TRIVIAL)
        begun = start(pool, source, alarm, {"device_id": "d"}, name="automation:y", priority=priority)
        await until(lambda: begun.lua.is_begun and all(each.lua.is_begun for each in others))
        os.kill(pid_of(pool), signal.SIGKILL)
        await ended(begun)
        for each in (called, *others):
            with pytest.raises(ScriptFailed, match="SIGKILL"):
                await ended(each)
    assert alarm.printed == ["d"] and len(alarm.asked) == 1
    assert len(asleep.asked) == 1 and not normal.asked
    assert "failed: automation:z, automation:a, " in reasons[0] and "automation:y" not in reasons[0]


async def test_alarms_are_the_first_that_begin_again() -> None:
    async with open_pool(RunLimits(max_memory_mb=2)) as pool:
        await run(pool, TRIVIAL)
        os.kill(pid_of(pool), signal.SIGSTOP)
        full = [start(pool, scene(TRIVIAL), Notes(), name="scene:x") for _ in range(MAX_RUNNING)]
        waiting = [start(pool, scene(TRIVIAL), Notes(), name="scene:x", priority=each) for each in Priority]
        os.kill(pid_of(pool), signal.SIGKILL)
        for each in waiting:
            await ended(each)
        assert all([await each.end() for each in full])
    first = sorted(waiting, key=lambda each: each.lua.number)[:2]
    assert [each.lua.is_alarm for each in first] == [True, True]


async def test_an_alarm_that_ends_each_worker_begins_again_only_a_few_times() -> None:
    reasons: list[str] = []
    async with open_pool(on_kill=reasons.append) as pool:
        notes = Notes()
        source = scene("print(event) while true do end")
        deadly = start(pool, source, notes, name="automation:a", priority=Priority.ALARM)
        for _ in range(MAX_REPEATS + 1):
            await until(lambda: len(notes.lines) > len(reasons))
            os.kill(pid_of(pool), signal.SIGKILL)
            await until(lambda: len(notes.lines) == len(reasons))
        with pytest.raises(ScriptFailed, match="SIGKILL"):
            await ended(deadly)
    assert ["automation:a; start" in each for each in reasons] == [False] * MAX_REPEATS + [True]


async def test_runs_that_wait_for_a_new_worker_end_with_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("appliance.event_loop.STEP_SECS", 0.0)  # pause after each run of the lost worker
    is_lost = asyncio.Event()
    async with open_pool(on_kill=lambda _: is_lost.set()) as pool:
        queued = [start(pool, scene("ctx:sleep(1)"), Notes(), name="scene:x") for _ in range(4)]
        await until(lambda: pid_of(pool) > 0)
        os.kill(pid_of(pool), signal.SIGKILL)
        await is_lost.wait()
    async with asyncio.timeout(PATIENCE):
        assert None not in [await each.end() for each in queued]


@pytest.mark.parametrize("end", ["", 'error("over")'])
async def test_many_log_lines_are_taken_in_several_turns_of_the_loop(end: str) -> None:
    notes, most, is_over = Notes(), 0, asyncio.Event()

    async def count() -> None:
        nonlocal most
        while not is_over.is_set():
            before = len(notes.lines)
            await asyncio.sleep(0)
            most = max(most, len(notes.lines) - before)

    async with open_pool() as pool:
        counting = asyncio.create_task(count())
        execution = start(
            pool, scene(f'for i = 1, 500 do ctx:log("info", tostring(i)) end {end}'), notes, name="scene:x"
        )
        with pytest.raises(ScriptFailed, match="over") if end else nullcontext():
            await ended(execution)
        is_over.set()
        await counting
    assert notes.printed == [str(each) for each in range(1, 501)]
    assert 0 < most <= MAX_FRAMES_AT_ONCE


async def test_an_early_end_of_a_worker_starts_no_other_until_needed() -> None:
    async with open_pool() as pool:
        await run(pool, TRIVIAL)
        os.kill(pid_of(pool), signal.SIGKILL)
        await until(lambda: pool.figures()["kills"] == 1)
        assert pool.figures()["workers"] == []
        await run(pool, TRIVIAL)
        assert len(pool.figures()["workers"]) == 1


async def test_an_execution_that_waited_for_a_lost_worker_runs_in_a_new_one() -> None:
    async with open_pool(RunLimits(max_memory_mb=2, max_cpu_secs=60.0)) as pool:
        notes = Notes()
        full = [start(pool, scene("print('on') while true do end"), notes, name="x") for _ in range(MAX_RUNNING)]
        waiting = Notes()
        last = start(pool, scene(TRIVIAL), waiting, name="scene:last")
        await until(lambda: notes.printed)
        os.kill(pid_of(pool), signal.SIGKILL)
        await ended(last)
        ends = await asyncio.gather(*(ended(each) for each in full), return_exceptions=True)
    assert waiting.asked
    assert all("the Lua worker ended unexpectedly" in str(each) for each in ends)


async def test_many_executions_begin_one_after_another_and_those_that_sleep_do_not_count() -> None:
    gate = asyncio.Event()
    notes = Notes(lambda *_: gate.wait())
    async with open_pool() as pool:
        every = [start(pool, scene(body), notes, name="x") for body in ("ctx:sleep(1)", TRIVIAL) for _ in range(300)]
        await until(lambda: len(notes.asked) == 300 + MAX_BEGUN)
        await pool.compile(file("return {}"))  # reading a file does not wait for an execution
        assert len(notes.asked) == 300 + MAX_BEGUN
        gate.set()
        await asyncio.gather(*map(ended, every))
    assert len(notes.asked) == 600


async def test_alarms_have_reserved_places_and_further_alarms_begin_before_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = asyncio.Semaphore(0)
    others, alarms, nested = Notes(lambda *_: gate.acquire()), Notes(lambda *_: gate.acquire()), Notes()
    async with open_pool() as pool:
        every = [start(pool, scene(TRIVIAL), others, name="scene:x") for _ in range(MAX_BEGUN + 10)]
        await until(lambda: len(others.asked) == MAX_BEGUN)
        more = range(RESERVED_FOR_ALARMS + MAX_UNBEGUN)
        every += [start(pool, scene(TRIVIAL), alarms, name="scene:y", priority=Priority.ALARM) for _ in more]
        await until(lambda: len(alarms.asked) == RESERVED_FOR_ALARMS)
        assert pool.unended == len(every) and not pool.has_room(is_alarm=True) and pool.has_room(is_alarm=False)
        await ended(start(pool, scene(TRIVIAL), nested, name="scene:z", priority=Priority.NESTED))
        assert nested.asked and len(alarms.asked) == RESERVED_FOR_ALARMS
        for _ in range(MAX_UNBEGUN):
            gate.release()
        await until(lambda: len(alarms.asked) == len(more))
        assert len(others.asked) == MAX_BEGUN
        for _ in every:
            gate.release()
        await asyncio.gather(*map(ended, every))
    warning = "256 executions have not ended, such as scene:x; until some end, others wait, and alarms begin first"
    assert [each for each in caplog.messages if "have not ended" in each] == [warning]


async def test_executions_that_clients_start_at_once_leave_memory_for_others() -> None:
    gate, reasons = asyncio.Event(), list[str]()
    notes, others = Notes(lambda *_: gate.wait()), Notes()
    large = scene('local t = {} for i = 1, 40 do t[i] = string.rep("x", 130000) .. i end ctx:sleep(1)')
    async with open_pool(on_kill=reasons.append) as pool:
        every = [start(pool, large, notes, name="scene:x", priority=Priority.CLIENT) for _ in range(100)]
        assert pool.unended == len(every)
        await ended(start(pool, scene(TRIVIAL), others, name="scene:y", priority=Priority.ALARM))
        await ended(start(pool, scene(TRIVIAL), others, name="scene:z"))
        await until(lambda: pool.running == len(notes.asked) < len(every))
        gate.set()
        ends = [await each.end() for each in every]
    assert len(others.asked) == 2 and reasons == []
    refused = [each for each in ends if each is not None]
    assert 0 < len(refused) < len(ends) and {type(each) for each in refused} == {Busy}


async def test_scenes_that_executions_run_do_not_begin_without_memory_except_for_alarms() -> None:
    reasons, limits = list[str](), RunLimits(worker_bytes=0)
    asleep, nested = Notes(lambda *_: asyncio.Event().wait()), Notes()
    large = scene('local t = {} for i = 1, 30 do t[i] = string.rep("x", 130000) .. i end ctx:sleep(1)')
    async with open_pool(limits, on_kill=reasons.append) as pool:
        await run(pool, TRIVIAL)
        every = list[Started]()
        while pool.figures()["workers"][0]["resident_bytes"] + limits.max_memory <= limits.max_worker_bytes:
            every.append(start(pool, large, asleep, name="scene:x", priority=Priority.ALARM))
            await until(lambda: len(asleep.asked) == len(every))
        end: object = None
        while end is None:  # until the worker has checked its memory
            await asyncio.sleep(0.05)
            end = await start(pool, scene(TRIVIAL), nested, name="scene:y", priority=Priority.NESTED).end()
        assert isinstance(end, Busy)
        await ended(start(pool, scene(TRIVIAL), nested, name="scene:z", priority=Priority.NESTED_ALARM))
    assert reasons == []


async def test_endless_executions_delay_neither_other_files_nor_other_clients() -> None:
    notes, others = Notes(), Notes()
    endless = scene("print('on') while true do end")
    async with open_pool() as pool:

        def begin(source: Source, calls: Notes, name: str, client: str) -> Started:
            return start(pool, source, calls, name=name, priority=Priority.CLIENT, client=client)

        every = [begin(endless, notes, "scene:x", "a") for _ in range(20)]
        await until(lambda: len(notes.printed) > 0)
        await ended(begin(scene(TRIVIAL), others, "scene:y", "a"))
        every += [begin(endless, notes, f"scene:{number}", "a") for number in range(20)]
        await until(lambda: len(notes.printed) > 8)
        await ended(begin(scene(TRIVIAL), others, "scene:z", "b"))
        assert len(others.asked) == 2 and len(notes.printed) < len(every)
        for each in every:
            each.lua.cancel()
        await asyncio.gather(*(each.end() for each in every))


@pytest.mark.slow
async def test_sleeping_executions_that_grow_end_one_by_one_and_alarms_continue() -> None:
    gates, reasons = [asyncio.Event(), asyncio.Event()], list[str]()
    notes, alarms = Notes(lambda *_: gates[len(notes.asked) > 26].wait()), Notes()
    fill = "for i = %d, %d do t[i] = string.rep(string.char(64 + i), 1000000) end"
    growing = scene(f"local t = {{}} {fill % (1, 7)} ctx:sleep(1) {fill % (8, 14)} ctx:sleep(1)")
    async with open_pool(RunLimits(max_memory_mb=16), on_kill=reasons.append) as pool:
        every = [start(pool, growing, notes, name="scene:x") for _ in range(26)]
        await until(lambda: len(notes.asked) == len(every))
        await until(lambda: 2 * pool.figures()["workers"][0]["resident_bytes"] > 320 << 20)
        await asyncio.sleep(2 * CHECK_INTERVAL_SECS)
        gates[0].set()
        await ended(start(pool, scene(TRIVIAL), alarms, name="scene:y", priority=Priority.ALARM))
        await asyncio.sleep(4 * CHECK_INTERVAL_SECS)
        gates[1].set()
        ends = [await each.end() for each in every]
    assert alarms.asked and reasons == []
    assert any(each is None for each in ends), "the ends of some executions give the others memory"
    assert all("use the memory for Lua" in str(each) for each in ends if each is not None)


async def test_executions_that_begin_at_once_wait_for_memory_and_alarms_do_not() -> None:
    reasons, gate = list[str](), asyncio.Event()
    notes, alarms = Notes(lambda *_: gate.wait()), Notes()
    large = scene("local t = {} for i = 1, 12000 do t[i] = string.rep('x', 1000) .. i end ctx:sleep(1)")
    async with open_pool(on_kill=reasons.append) as pool:
        every = [start(pool, large, notes, name="scene:x") for _ in range(60)]
        await ended(start(pool, scene(TRIVIAL), alarms, name="scene:y", priority=Priority.ALARM))
        await until(lambda: pool.figures()["workers"][0]["resident_bytes"] > 180 << 20)
        await ended(start(pool, scene(TRIVIAL), alarms, name="scene:y", priority=Priority.ALARM))
        assert len(notes.asked) < len(every)
        gate.set()
        ends = [await each.end() for each in every]
    assert len(alarms.asked) == 2 and reasons == []
    assert len(notes.asked) == len(every), "each execution begins"
    assert all("use the memory for Lua" in str(each) for each in ends if each is not None)


@pytest.mark.slow
async def test_executions_whose_memory_grows_slowly_leave_memory_for_alarms() -> None:
    """At each check of the memory, the executions that have begun use far less than their limits."""
    reasons, gate = list[str](), asyncio.Event()
    notes = Notes(lambda *_: gate.wait())
    fill = "for i = 1, 12500 do for j = 1, 1500 do end t[i] = string.rep('x', 1000) .. i end"
    async with open_pool(on_kill=reasons.append) as pool:
        alarm = start(pool, scene("ctx:sleep(1)"), notes, name="scene:y", priority=Priority.ALARM)
        await until(lambda: len(notes.asked) == 1)
        every = [start(pool, scene(f"local t = {{}} {fill} ctx:sleep(1)"), notes, name="scene:x") for _ in range(40)]
        await until(lambda: 2 * pool.figures()["workers"][0]["resident_bytes"] > 320 << 20, within=60)
        await asyncio.sleep(2 * CHECK_INTERVAL_SECS)
        gate.set()
        assert await alarm.end() is None
        assert [await each.end() for each in every] == [None] * len(every)
    assert reasons == []


async def test_a_replaced_execution_that_waits_for_a_call_keeps_its_place() -> None:
    gate = asyncio.Event()
    notes = Notes(lambda *_: gate.wait())
    async with open_pool() as pool:
        every = [start(pool, scene(TRIVIAL), notes, name="x") for _ in range(MAX_BEGUN + 10)]
        await until(lambda: len(notes.asked) == MAX_BEGUN)
        for each in every[:MAX_BEGUN]:
            each.stop_after_call()
        await pool.compile(file("return {}"))  # the worker has stopped the Lua of the replaced executions
        assert len(notes.asked) == MAX_BEGUN
        gate.set()
        await asyncio.gather(*map(ended, every[MAX_BEGUN:]))
    assert len(notes.asked) == MAX_BEGUN + 10


@pytest.mark.parametrize("body", ["print('on') while true do end", "print('on') ctx:sleep(1)"])
async def test_a_hanging_worker_is_killed_and_its_sleeping_executions_are_answered(body: str) -> None:
    async with open_pool(RunLimits(max_cpu_secs=60.0)) as pool:
        notes = Notes(lambda *_: asyncio.Event().wait())
        running = start(pool, scene(body), notes, name="scene:x")
        await until(lambda: notes.printed)
        os.kill(pid_of(pool), signal.SIGSTOP)
        with pytest.raises(ScriptFailed, match="the Lua worker did not respond for 4 s, and was killed"):
            async with asyncio.timeout(PATIENCE):
                await ended(running)
        assert (await run(pool, TRIVIAL)).asked


async def test_a_halted_worker_blocks_no_file() -> None:
    endless = scene("print('on') while true do end")
    async with open_pool(RunLimits(max_cpu_secs=60.0)) as pool:
        for _ in range(MAX_STUCK + 1):
            notes = Notes()
            running = start(pool, endless, notes, name="scene:x")
            await until(lambda notes=notes: notes.printed)  # type: ignore[misc]
            os.kill(pid_of(pool), signal.SIGSTOP)
            running.stop_after_call()
            with pytest.raises(ExecutionCancelled):
                await ended(running)


@pytest.mark.usefixtures("whole_workers")
async def test_a_slowly_starting_worker_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "python"
    slow.write_text(f'#!/bin/sh\nsleep 10\nexec {sys.executable} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    async with open_pool() as pool:
        assert (await run(pool, TRIVIAL)).asked
        assert pool.figures()["kills"] == 0


STUCK = "(('a'):rep(300000)):find('.-.-.-.-b')"


HEAD = "return {id = 'test', name = 'Test',\n\nexecute = function(ctx)\n"
SPIN = "local until_ = os.clock() + 0.03 while os.clock() < until_ do end\n"
STUCK_AT = (
    (f"{HEAD}{STUCK}\nend}}", 3),
    (f"{HEAD}local a = 1\nctx:get_device('x')\na = 2\n{STUCK}\nend}}", 5),
    (f"{HEAD}ctx:get_device('x')\n{SPIN}{STUCK}\nend}}", 5),
    (f"\n{STUCK}\n{HEAD}end}}", 1),
    (f"\n{SPIN}{STUCK}\n{HEAD}end}}", 2),
)
"""Files that get stuck. For each file, its last known line: a line in a function, a call of ctx, a slow line, or the
beginning of the file."""


async def test_a_stuck_execution_names_its_last_known_line() -> None:
    async def line_of(text: str) -> int:
        async with open_pool(RunLimits(max_cpu_secs=0.4)) as pool:
            with pytest.raises(ScriptFailed, match="could not be stopped at or after this line ") as failure:
                await ended(start(pool, file(text), Notes(), name="scene:stuck"))
            return failure.value.line

    lines = await asyncio.gather(*(line_of(text) for text, _ in STUCK_AT))
    assert lines == [line for _, line in STUCK_AT]


async def test_lua_that_gets_no_processor_time_is_not_stopped() -> None:
    async with open_pool(RunLimits(max_cpu_secs=1.0)) as pool:
        notes = Notes()
        running = start(pool, scene(f"print('on') {SPIN.replace('0.03', '0.1')} {TRIVIAL}"), notes, name="scene:x")
        await until(lambda: notes.printed)
        os.kill(pid_of(pool), signal.SIGSTOP)
        await asyncio.sleep(2.5)  # longer than the limit and its grace
        os.kill(pid_of(pool), signal.SIGCONT)
        await ended(running)
    assert notes.asked


async def test_a_stuck_execution_names_the_limit_that_it_passed() -> None:
    async with open_pool(RunLimits(max_cpu_secs=60.0, backstop_secs=0.3)) as pool:
        with pytest.raises(ScriptFailed, match=r"took more than 0\.3 s in total .* could not be stopped at"):
            await ended(start(pool, scene(STUCK), Notes(), name="scene:stuck"))


async def test_other_executions_run_during_a_long_call_of_the_first_instruction() -> None:
    """No hook runs before or during this call."""
    async with open_pool() as pool:
        await run(pool, TRIVIAL)
        await asyncio.sleep(0.1)  # the worker has no other work
        stuck = asyncio.ensure_future(start(pool, file(STUCK), Notes(), name="scene:stuck").end())
        await asyncio.sleep(0.1)  # the worker reads the next frame separately
        for _ in range(3):
            await run(pool, TRIVIAL)
        await run(pool, "coroutine.wrap(function() ctx:get_device('x') end)()")
        assert not stuck.done()
    await stuck


async def test_a_stuck_execution_that_is_cancelled_ends_as_cancelled() -> None:
    async with open_pool() as pool:
        notes = Notes()
        execution = start(pool, scene("print('on');" + STUCK), notes, name="scene:stuck")
        await until(lambda: notes.printed)
        execution.stop_after_call()
        with pytest.raises(ExecutionCancelled):
            await ended(execution)


async def test_stuck_executions_end_no_others_and_an_idle_worker_with_stuck_threads_is_replaced() -> None:
    reasons: list[str] = []
    async with open_pool(RunLimits(max_cpu_secs=0.2), on_kill=reasons.append) as pool:
        is_over = asyncio.Event()
        asleep = Notes(lambda *_: is_over.wait())
        innocent = start(pool, scene("ctx:sleep(1) print('woke')"), asleep, name="scene:i")
        await until(lambda: asleep.asked)
        worker = pid_of(pool)
        culprits = [start(pool, scene(STUCK), Notes(), name="scene:culprit") for _ in range(3)]
        with pytest.raises(
            ScriptFailed,
            match=r"(used 0\.2 s of processor time|ran for 2 s) without waiting.* and could not be stopped",
        ) as failure:
            await ended(culprits[0])
        assert failure.value.status == "timeout"
        await until(lambda: pool.figures()["running"] == 1)
        await until(lambda: _count_computing_threads(worker) == 0)
        assert (await run(pool, TRIVIAL)).asked
        is_over.set()
        await ended(innocent)
        assert asleep.printed == ["woke"]
        await until(lambda: not _is_alive(worker))
        assert (await run(pool, TRIVIAL)).asked
    assert reasons == []


@pytest.mark.slow
async def test_stuck_executions_refuse_no_clients_and_a_lack_of_memory_names_them() -> None:
    reasons: list[str] = []
    limits = RunLimits(max_cpu_secs=0.2, max_memory_mb=16)

    numbers = itertools.count()

    async def block(pool: WorkerPool) -> None:
        """Run stuck executions. On a busy machine, some are stopped before they occupy their memory."""
        sources = [scene(f"local s = ('a'):rep(7 << 20) s:find('.-.-.-.-b') -- {next(numbers)}") for _ in range(8)]
        for each in [start(pool, source, Notes(), name="scene:culprit") for source in sources]:
            await each.end()

    async with open_pool(limits, on_kill=reasons.append) as pool:
        asleep, others = Notes(lambda *_: asyncio.Event().wait()), Notes()
        innocent = start(pool, scene("ctx:sleep(1)"), asleep, name="scene:i")
        await until(lambda: asleep.asked)
        while pool.figures()["workers"][0]["resident_bytes"] <= limits.max_worker_bytes // 2:
            await block(pool)
        assert not pool.is_half_used
        await ended(start(pool, scene(TRIVIAL), others, name="scene:y", priority=Priority.CLIENT))
        while not reasons:
            await block(pool)
        with pytest.raises(ScriptFailed):
            await ended(innocent)
    assert others.asked
    assert "executions that could not be stopped still hold memory, so correct them: scene:culprit" in reasons[0]
    assert "the executions in it failed: " in reasons[0] and "scene:i" in reasons[0]


async def test_code_that_polls_is_not_halted_although_it_stopped_late() -> None:
    """A thread that is halted while it waits for the lock of the interpreter would block all other threads."""
    reasons: list[str] = []
    async with open_pool(RunLimits(max_cpu_secs=0.2), on_kill=reasons.append) as pool:
        is_over = asyncio.Event()
        asleep, spinning = Notes(lambda *_: is_over.wait()), Notes()
        innocent = start(pool, scene("ctx:sleep(1) print('woke')"), asleep, name="scene:i")
        await until(lambda: asleep.asked)
        worker = pid_of(pool)
        late = [
            start(pool, scene("print('on') while true do tostring(1) end"), spinning, name=f"scene:{number}")
            for number in range(24)
        ]
        await until(lambda: len(spinning.printed) == len(late))
        os.kill(worker, signal.SIGSTOP)
        for each in late:
            with pytest.raises(ScriptFailed, match="stopped"):
                await ended(each)
        os.kill(worker, signal.SIGCONT)
        assert (await run(pool, TRIVIAL)).asked
        await until(lambda: _thread_count(worker) < len(late))
        is_over.set()
        await ended(innocent)
        assert asleep.printed == ["woke"]
    assert reasons == []


async def test_an_execution_caused_by_a_lost_worker_runs_in_a_new_one() -> None:
    notes = Notes(lambda *_: asyncio.Event().wait())
    started: list[Started] = []

    def begin(_: str) -> None:
        started.append(start(pool, scene("ctx:sleep(1)"), notes, name="automation:on_error"))

    async with open_pool(on_kill=begin) as pool:
        await run(pool, TRIVIAL)
        os.kill(pid_of(pool), signal.SIGKILL)
        await until(lambda: len(notes.asked) == 1)
        assert len(started) == 1 and pool.figures()["running"] == 1


async def test_a_file_that_got_stuck_twice_is_paused_until_it_changes() -> None:
    async with open_pool(RunLimits(max_cpu_secs=0.1)) as pool:
        for _ in range(MAX_STUCK):
            with pytest.raises(ScriptFailed, match="could not be stopped"):
                await run(pool, STUCK)
        with pytest.raises(ScriptFailed, match="because 2 of its runs could not be stopped; to run it earlier"):
            await run(pool, STUCK)
        assert (await run(pool, TRIVIAL)).asked and pool.figures()["kills"] == 0
        with pytest.raises(ScriptFailed, match="could not be stopped"):
            await run(pool, f"{STUCK} -- changed")


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1])
async def test_files_in_loading_are_loaded_again_after_a_kill_of_their_worker(delay: float) -> None:
    async with open_pool() as pool:
        texts = [file(f"local t = {{}} for i = 1, 20000 do t[i] = i end return {{id = 'n{i}'}}") for i in range(30)]
        reading = [asyncio.ensure_future(pool.describe(each)) for each in texts]
        await until(lambda: any(each["pid"] for each in pool.figures()["workers"]))
        await asyncio.sleep(delay)
        os.kill(pid_of(pool), signal.SIGKILL)
        described = await asyncio.gather(*reading)
    assert [each["id"] for each in described] == [f"n{i}" for i in range(30)]


def _state_of(task: str | int) -> str:
    return Path(f"/proc/{task}/stat").read_text().rsplit(") ", 1)[1][0]


def _count_computing_threads(pid: int) -> int:
    return sum(_state_of(f"{pid}/task/{each.name}") == "R" for each in Path(f"/proc/{pid}/task").iterdir())


@pytest.mark.parametrize(
    ("module", "unused"),
    [("appliance.hub, appliance.cli.check", "lupa"), ("appliance.adapters.mqtt.adapter", "aiohttp")],
)
async def test_the_hub_loads_only_the_libraries_that_it_uses(module: str, unused: str) -> None:
    code = f"import sys, {module}; print(any({unused!r} in name for name in sys.modules))"
    ended = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stdout == "False\n", ended.stderr


HUB = """
import asyncio, sys
from tests.lua.bench import Notes, ended, open_pool, scene, start

async def main():
    async with open_pool() as pool:
        start(pool, scene("while true do end"), Notes(), name="x")
        while not any(each["pid"] for each in pool.figures()["workers"]):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        print(pool.figures()["workers"][0]["pid"], flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_the_worker_ends_with_the_hub(number: signal.Signals) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HUB, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    worker = int(await process.stdout.readline())
    process.send_signal(number)
    await process.wait()
    await until(lambda: not _is_alive(worker))


def _is_alive(pid: int) -> bool:
    try:
        return _state_of(pid) != "Z"
    except OSError:
        return False


def _thread_count(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


@pytest.mark.usefixtures("whole_workers")
async def test_a_worker_that_cannot_be_started_is_an_error_of_each_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    async with open_pool() as pool:
        for _ in range(2):
            with pytest.raises(ScriptFailed, match=r"the Lua worker cannot be started: .*No such file"):
                await run(pool, TRIVIAL)
        with pytest.raises(ScriptFailed, match="the Lua worker cannot be started"):
            await pool.describe(file("return {}"))


async def test_the_memory_of_a_few_runs_returns_to_the_machine() -> None:
    body = "local t = {} for i = 1, 7000 do t[i] = {i} end ctx:get_device('x') return t"
    first, second = asyncio.Event(), asyncio.Event()
    async with open_pool() as pool:

        def resident() -> int:
            [worker] = pool.figures()["workers"]
            return int(worker["resident_bytes"])

        await run(pool, TRIVIAL)
        base, notes = resident(), [Notes(lambda *_: first.wait()) for _ in range(6)]
        held = start(pool, scene("ctx:get_device('x')"), Notes(lambda *_: second.wait()), name="scene:held")
        runs = [asyncio.ensure_future(run(pool, body, each)) for each in notes]
        await until(lambda: all(each.asked for each in notes))
        assert resident() > base + (4 << 20)
        first.set()
        await asyncio.gather(*runs)
        await until(lambda: resident() < base + (5 << 19))
        second.set()
        await ended(held)


async def test_a_large_worker_is_replaced_when_idle() -> None:
    async with open_pool(RunLimits(max_memory_mb=200.0)) as pool:
        await run(pool, TRIVIAL)
        [fresh] = pool.figures()["workers"]
        body = "local t = {} for i = 1, 300000 do t[i] = {i} end ctx:get_device('x')"
        await asyncio.gather(*(run(pool, body) for _ in range(4)))

        def is_small() -> bool:
            """Return whether the worker has released its memory or ended. The next worker does not exist yet."""
            most = fresh["resident_bytes"] + MAX_IDLE_GROWTH_BYTES
            workers = pool.figures()["workers"]
            return all(each["pid"] != fresh["pid"] or each["resident_bytes"] <= most for each in workers)

        await until(is_small)
        assert (await run(pool, TRIVIAL)).asked
