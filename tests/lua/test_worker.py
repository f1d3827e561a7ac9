"""The worker is killed, crashes or hangs at any moment: every execution gets an answer, and the next one runs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.errors import ExecutionCancelled, ScriptFailed
from appliance.lua.execution import LuaExecution
from appliance.lua.execution_limits import ExecutionLimits
from appliance.lua.worker import MAX_RUNNING
from appliance.lua.worker_pool import WorkerPool
from tests.fakes.patience import until
from tests.lua.bench import TRIVIAL, Notes, file, open_pool, run, scene

PATIENCE = 60.0
LIMITS = ExecutionLimits(max_cpu_secs=20.0, backstop_secs=1.0)


def pid_of(pool: WorkerPool) -> int:
    """The newest worker's process."""
    pid: int = pool.figures()["workers"][-1]["pid"]
    return pid


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
async def test_executions_that_sleep_end_at_once_with_their_worker(
    number: signal.Signals,
) -> None:
    reasons: list[str] = []
    async with open_pool(on_kill=reasons.append) as pool:
        asleep = Notes(lambda *_: asyncio.Event().wait())
        running = [pool.start(scene("ctx:sleep(1)"), asleep, name="scene:x") for _ in range(3)]
        await until(lambda: len(asleep.asked) == 3)
        os.kill(pid_of(pool), number)
        for each in running:
            with pytest.raises(ScriptFailed, match=rf"the Lua worker ended unexpectedly \({number.name}"):
                await each.wait()
        assert (await run(pool, TRIVIAL)).asked
        figures = pool.figures()
    assert len(reasons) == 1 and number.name in reasons[0]
    assert figures["kills"] == 1 and number.name in figures["last_kills"][0]["reason"]


async def test_what_begins_before_the_end_of_a_worker_is_noticed_runs_in_a_fresh_one() -> None:
    async with open_pool() as pool:
        await run(pool, TRIVIAL)
        worker = pid_of(pool)
        os.kill(worker, signal.SIGKILL)
        while _is_alive(worker) or _thread_count(worker) > 1:  # the last thread closes the socket
            pass  # the loop must not notice
        notes = Notes()
        begun = [pool.start(scene(TRIVIAL), notes, name="scene:x") for _ in range(10)]
        await asyncio.gather(*(each.wait() for each in begun), pool.describe(file("return {}")))
        figures = pool.figures()
    assert len(notes.asked) == 10
    assert figures["kills"] == 1 and "ended unexpectedly (SIGKILL, perhaps for want of memory)" in str(figures)


async def test_a_worker_that_ends_young_is_replaced_only_when_something_is_to_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("appliance.lua.worker_pool.MIN_SPARE_AGE_SECS", 3600.0)
    async with open_pool() as pool:
        await run(pool, TRIVIAL)
        os.kill(pid_of(pool), signal.SIGKILL)
        await until(lambda: pool.figures()["kills"] == 1)
        assert pool.figures()["workers"] == []
        await run(pool, TRIVIAL)
        assert len(pool.figures()["workers"]) == 1


async def test_what_waited_for_room_in_a_worker_that_is_lost_runs_in_a_fresh_one() -> None:
    async with open_pool(ExecutionLimits(max_cpu_secs=60.0)) as pool:
        notes = Notes()
        full = [pool.start(scene("print('on') while true do end"), notes, name="x") for _ in range(MAX_RUNNING)]
        waiting = Notes()
        last = pool.start(scene(TRIVIAL), waiting, name="scene:last")
        await until(lambda: notes.printed)
        os.kill(pid_of(pool), signal.SIGKILL)
        await last.wait()
        ends = await asyncio.gather(*(each.wait() for each in full), return_exceptions=True)
    assert waiting.asked
    assert all("the Lua worker ended unexpectedly" in str(each) for each in ends)


async def test_a_worker_that_hangs_is_killed_and_everybody_answered() -> None:
    async with open_pool(ExecutionLimits(max_cpu_secs=60.0)) as pool:
        notes = Notes()
        running = pool.start(scene("print('on') while true do end"), notes, name="scene:x")
        await until(lambda: notes.printed)
        os.kill(pid_of(pool), signal.SIGSTOP)
        with pytest.raises(ScriptFailed, match="the Lua worker gave no sign of life for 4 s, and was killed"):
            await running.wait()
        assert (await run(pool, TRIVIAL)).asked


async def test_a_worker_that_hangs_while_all_in_it_sleep_is_killed_before_they_wake() -> None:
    async with open_pool(LIMITS) as pool:
        asleep = Notes(lambda *_: asyncio.Event().wait())
        running = pool.start(scene("ctx:sleep(1)"), asleep, name="scene:x")
        await until(lambda: asleep.asked)
        os.kill(pid_of(pool), signal.SIGSTOP)
        with pytest.raises(ScriptFailed, match="the Lua worker gave no sign of life for 4 s, and was killed"):
            async with asyncio.timeout(PATIENCE):
                await running.wait()
        assert (await run(pool, TRIVIAL)).asked


STUCK = "(('a'):rep(300000)):find('.-.-.-.-b')"


HEAD = "return {id = 'test', name = 'Test',\n\nexecute = function(ctx)\n"
SPIN = "local until_ = os.clock() + 0.03 while os.clock() < until_ do end\n"
STUCK_AT = (
    (f"{HEAD}{STUCK}\nend}}", 3),
    (f"{HEAD}local a = 1\nctx:get_device('x')\na = 2\n{STUCK}\nend}}", 5),
    (f"{HEAD}ctx:get_device('x')\n{SPIN}{STUCK}\nend}}", 5),
)
"""Files that are stuck, and the line where each was seen last: its function, a call of ctx, a line that took long."""


async def test_a_stuck_execution_names_the_line_where_it_was_seen_last() -> None:
    async def line_of(text: str) -> int:
        async with open_pool(ExecutionLimits(max_cpu_secs=0.4)) as pool:
            with pytest.raises(ScriptFailed, match="could not be stopped") as failure:
                await pool.start(file(text), Notes(), name="scene:stuck").wait()
            return failure.value.line

    lines = await asyncio.gather(*(line_of(text) for text, _ in STUCK_AT))
    assert lines == [line for _, line in STUCK_AT]


async def test_a_stuck_execution_names_the_limit_that_it_passed() -> None:
    async with open_pool(ExecutionLimits(max_cpu_secs=60.0, backstop_secs=0.3)) as pool:
        with pytest.raises(ScriptFailed, match=r"took more than 0\.3 s in all, .* could not be stopped"):
            await pool.start(scene(STUCK), Notes(), name="scene:stuck").wait()


async def test_a_stuck_execution_that_is_cancelled_ends_as_cancelled() -> None:
    async with open_pool() as pool:
        notes = Notes()
        execution = pool.start(scene("print('on');" + STUCK), notes, name="scene:stuck")
        await until(lambda: notes.printed)
        execution.cancel()
        with pytest.raises(ExecutionCancelled):
            await execution.wait()


async def test_others_in_a_condemned_worker_come_to_their_end_and_new_ones_run_elsewhere() -> None:
    opened = asyncio.Event()
    async with open_pool(ExecutionLimits(max_cpu_secs=0.2)) as pool:
        asleep = Notes(lambda *_: opened.wait())
        innocent = pool.start(scene("ctx:sleep(1) for _ = 1, 3 do ctx:get_device('x') end"), asleep, name="scene:i")
        await until(lambda: asleep.asked)
        with pytest.raises(
            ScriptFailed, match=r"ran for 0\.2 s without a ctx call and could not be stopped"
        ) as failure:
            await pool.start(scene(STUCK), Notes(), name="scene:culprit").wait()
        assert failure.value.status == "timeout"
        old, fresh = pool.figures()["workers"]
        assert (old["condemned_for"], old["executions"], fresh["condemned_for"]) == ("scene:culprit", 1, None)
        await until(lambda: _state_of(old["pid"]) == "T")  # it is stopped while no execution in it has anything to do
        assert (await run(pool, TRIVIAL)).asked
        opened.set()
        await innocent.wait()
        await until(lambda: len(pool.figures()["workers"]) == 1)
        assert pid_of(pool) == fresh["pid"]


async def test_what_begins_because_a_worker_is_condemned_runs_in_a_fresh_one() -> None:
    notes = Notes(lambda *_: asyncio.Event().wait())
    started: list[LuaExecution] = []

    def start(_: str) -> None:
        started.append(pool.start(scene("ctx:sleep(1)"), notes, name="automation:on_error"))

    async with open_pool(ExecutionLimits(max_cpu_secs=0.1), on_kill=start) as pool:
        with pytest.raises(ScriptFailed):
            await run(pool, STUCK)
        await until(lambda: len(notes.asked) == 1)
        [worker] = [each for each in pool.figures()["workers"] if each["executions"]]
        assert worker["condemned_for"] is None and len(started) == 1


async def test_of_two_condemned_workers_the_older_is_killed_and_its_others_learn_why() -> None:
    async with open_pool(ExecutionLimits(max_cpu_secs=0.2)) as pool:
        asleep = Notes(lambda *_: asyncio.Event().wait())
        innocent = pool.start(scene("ctx:sleep(1)"), asleep, name="scene:i")
        await until(lambda: asleep.asked)
        for name in ("scene:one", "scene:two"):
            second = pool.start(scene("ctx:sleep(1)"), asleep, name="scene:i")
            await until(lambda: len(asleep.asked) > 1)
            with pytest.raises(ScriptFailed):
                await pool.start(scene(STUCK), Notes(), name=name).wait()
        with pytest.raises(
            ScriptFailed, match="was killed, because scene:one, which ran in it too, could not be stopped"
        ):
            await innocent.wait()
        second.abort()
        assert len([each for each in pool.figures()["workers"] if each["condemned_for"]]) <= 1


def _state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]


async def test_the_worker_owns_nothing_but_its_socket() -> None:
    async with open_pool() as pool:
        await run(pool, TRIVIAL)
        process = Path(f"/proc/{pid_of(pool)}")
        assert [each.name for each in (process / "fd").iterdir()] == ["0"]
        assert (process / "environ").read_bytes() == b""
        assert str((process / "cwd").readlink()) == "/"
        status = (process / "status").read_text()
        limits = {line[:26].strip(): line[26:].split()[0] for line in (process / "limits").read_text().splitlines()}
        nice = int((process / "stat").read_text().rsplit(") ", 1)[1].split()[16])
    assert "NoNewPrivs:\t1" in status
    assert [limits[each] for each in ("Max open files", "Max file size", "Max core file size")] == ["0", "0", "0"]
    assert int(limits["Max address space"]) < 4 << 30
    assert nice >= min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10) or nice == 10


async def test_no_lua_is_loaded_in_the_hub() -> None:
    code = "import sys, appliance.hub, appliance.cli.check; print(any('lupa' in name for name in sys.modules))"
    ended = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stdout == "False\n", ended.stderr


HUB = """
import asyncio, sys
from tests.lua.bench import Notes, open_pool, scene

async def main():
    async with open_pool() as pool:
        pool.start(scene("while true do end"), Notes(), name="x")
        while not pool.figures()["workers"][0]["pid"]:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        print(pool.figures()["workers"][0]["pid"], flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_the_worker_ends_when_the_hub_does(number: signal.Signals) -> None:
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


async def test_a_worker_that_cannot_be_started_is_an_error_of_each_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    async with open_pool() as pool:
        for _ in range(2):
            with pytest.raises(ScriptFailed, match=r"the Lua worker cannot be started: .*No such file"):
                await run(pool, TRIVIAL)
        with pytest.raises(ScriptFailed, match="the Lua worker cannot be started"):
            await pool.describe(file("return {}"))


async def test_a_worker_that_was_large_is_replaced_when_it_has_nothing_to_do() -> None:
    async with open_pool(ExecutionLimits(max_memory_mb=200.0)) as pool:
        await run(pool, TRIVIAL)
        first = pid_of(pool)
        body = "local t = {} for i = 1, 300000 do t[i] = {i} end ctx:get_device('x')"
        await asyncio.gather(*(run(pool, body) for _ in range(4)))
        await until(lambda: pid_of(pool) != first or pool.figures()["workers"][-1]["resident_bytes"] < 40 << 20)
        assert (await run(pool, TRIVIAL)).asked
