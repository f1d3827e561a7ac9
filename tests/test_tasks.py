"""Background tasks end with their owner, and no failure is lost."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import time
import weakref
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from typing import Any

import pytest

from appliance.adapters.replies import Replies
from appliance.clock import Clock
from appliance.errors import BadAnswer, Invalid
from appliance.event_loop import (
    MAX_EVENTS_PER_TURN,
    MAX_RESUMED_PER_TURN,
    REQUEST_TURNS,
    SHORT_TURN_SECS,
    hurry,
    in_steps,
    loop_lag,
    run,
    wait_for_short_turn,
    wait_in_line,
)
from appliance.tasks import STALL_SECS, Tasks, end_limits_within, end_within, run_together, time_limit
from tests.fakes.clock import SteppingClock, VirtualClock


class Worker:
    """Work that waits forever, and records its end."""

    def __init__(self) -> None:
        self.diary: list[str] = []

    async def toil(self) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            self.diary.append("ended")


async def fail(error: Exception) -> None:
    await asyncio.sleep(0)
    raise error


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    """Return the level, part, and message of each log line from `tasks`."""
    return [(each.levelname, each.name, each.getMessage()) for each in caplog.records if each.name == "tasks"]


async def test_a_started_task_has_its_name_and_returns_its_result() -> None:
    async def answer() -> int:
        return 42

    async with Tasks() as tasks:
        task = tasks.start(answer(), "an answer")
        assert task.get_name() == "an answer"
        assert await task == 42


async def test_leaving_cancels_running_tasks_and_waits_for_their_end() -> None:
    one, other = Worker(), Worker()
    async with Tasks() as tasks:
        running = [tasks.start(one.toil(), "one"), tasks.start(other.toil(), "other")]
        await asyncio.sleep(0)
    assert one.diary == other.diary == ["ended"]
    assert all(task.cancelled() for task in running)


async def test_leaving_by_cancellation_ends_the_tasks_too() -> None:
    worker, inside = Worker(), asyncio.Event()

    async def own() -> None:
        async with Tasks() as tasks:
            tasks.start(worker.toil(), "one")
            inside.set()
            await asyncio.get_running_loop().create_future()

    owner = asyncio.ensure_future(own())
    await inside.wait()
    await asyncio.sleep(0)
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await owner
    assert worker.diary == ["ended"]


async def test_a_task_that_never_ran_is_ended_too() -> None:
    worker = Worker()
    async with Tasks() as tasks:
        task = tasks.start(worker.toil(), "one")
    assert task.cancelled()


async def test_leaving_ends_if_a_task_has_ended_unnoticed() -> None:
    async def end_at_once() -> None:
        pass

    async with Tasks() as tasks:
        task = tasks.start(end_at_once(), "short")
        await asyncio.sleep(0)
        assert task.done()


async def test_tasks_started_by_an_ending_task_end_with_it() -> None:
    worker = Worker()
    late: list[asyncio.Task[None]] = []

    async def start_another(tasks: Tasks) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            late.append(tasks.start(worker.toil(), "another"))
            await asyncio.sleep(0)

    async with Tasks() as tasks:
        tasks.start(start_another(tasks), "one")
        await asyncio.sleep(0)
    assert [task.cancelled() for task in late] == [True]
    assert worker.diary == ["ended"]


async def test_a_failure_is_logged_once_with_its_traceback_at_error_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with Tasks() as tasks:
        await asyncio.wait({tasks.start(fail(ValueError("no good")), "one")})
    traced = [each for each in caplog.records if each.exc_info is not None]
    assert [each.levelname for each in traced] == ["ERROR"]


async def test_one_failure_leaves_the_other_tasks_running(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker()
    async with Tasks() as tasks:
        other = tasks.start(worker.toil(), "other")
        await asyncio.wait({tasks.start(fail(ValueError("no good")), "one")})
        assert not other.done()
    assert worker.diary == ["ended"]


async def test_a_failure_during_the_end_is_logged_and_disturbs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def fail_at_the_end() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            raise OSError("cannot close")

    async with Tasks() as tasks:
        tasks.start(fail_at_the_end(), "closing")
        await asyncio.sleep(0)
    assert logged(caplog) == [("ERROR", "tasks", "closing ended: OSError: cannot close")]


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_success_and_cancellation_are_not_logged(caplog: pytest.LogCaptureFixture, is_cancelled: bool) -> None:
    caplog.set_level(logging.DEBUG, "tasks")
    async with Tasks() as tasks:
        work: Coroutine[Any, Any, object] = Worker().toil() if is_cancelled else asyncio.sleep(0)
        task = tasks.start(work, "one")
        await asyncio.sleep(0)
        if is_cancelled:
            task.cancel()
        await asyncio.wait({task})
    assert logged(caplog) == []
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


async def test_awaited_work_is_finished_without_its_callers(caplog: pytest.LogCaptureFixture) -> None:
    begun, may_end, done = asyncio.Event(), asyncio.Event(), []

    async def work(error: Exception | None) -> str:
        begun.set()
        await may_end.wait()
        done.append(error)
        if error is not None:
            raise error
        return "result"

    async with Tasks() as tasks:
        waiting = asyncio.ensure_future(tasks.finish(work(None), "one"))
        await begun.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        may_end.set()
        assert await tasks.finish(work(None), "two") == "result"
        with pytest.raises(Invalid, match="no"):
            await tasks.finish(work(Invalid("no")), "three")
        assert len(done) == 3 and not caplog.records
        with pytest.raises(ZeroDivisionError):
            await tasks.finish(work(ZeroDivisionError("x")), "four")
    assert [record.getMessage() for record in caplog.records] == ["four ended: ZeroDivisionError: x"]


async def test_an_event_during_a_blocked_loop_is_in_time() -> None:
    loop = asyncio.get_running_loop()

    async def answer() -> str:
        await asyncio.sleep(STALL_SECS / 2)
        for _ in range(9):
            await asyncio.sleep(0)
        return "answered"

    loop.call_later(0.01, time.sleep, 3 * STALL_SECS)
    assert await end_within(answer(), STALL_SECS) == "answered"
    loop.call_later(0.01, time.sleep, 3 * STALL_SECS)
    with pytest.raises(TimeoutError):
        await end_within(asyncio.Event().wait(), STALL_SECS)

    async def be_late() -> None:
        while True:
            await asyncio.sleep(0)
            loop.call_soon(time.sleep, 1.5 * STALL_SECS)

    late, began = asyncio.ensure_future(be_late()), loop.time()
    with pytest.raises(TimeoutError):
        async with time_limit(3 * STALL_SECS):
            await asyncio.Event().wait()
    assert loop.time() - began < 18 * STALL_SECS
    late.cancel()


def test_one_turn_of_the_loop_serves_few_sockets_and_each_is_served() -> None:
    turns: list[list[int]] = [[]]

    def note(number: int) -> None:
        turns[-1].append(number)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        pairs = [socket.socketpair() for _ in range(3 * MAX_EVENTS_PER_TURN)]
        for number, (ours, theirs) in enumerate(pairs):
            theirs.send(b"+")
            loop.add_reader(ours, note, number)
        while sum(map(len, turns)) < len(pairs):
            await asyncio.sleep(0)
            turns.append([])
        for pair in pairs:
            loop.remove_reader(pair[0])
            for each in pair:
                each.close()

    run(serve())
    assert max(map(len, turns)) <= MAX_EVENTS_PER_TURN
    assert {number for turn in turns for number in turn} == {*range(3 * MAX_EVENTS_PER_TURN)}


def test_long_requests_that_arrive_together_are_served_in_separate_turns() -> None:
    turns: list[int] = []

    async def serve() -> None:
        await wait_for_short_turn()
        turns.append(loop_lag().turns)
        time.sleep(2 * SHORT_TURN_SECS)  # noqa: ASYNC251 - that is the long work

    async def serve_all() -> None:
        async with Tasks() as tasks:
            await asyncio.wait([tasks.start(serve(), f"request {number}") for number in range(4)])

    run(serve_all())
    assert len({*turns}) == 4


def test_requests_that_wait_for_a_short_turn_continue_although_each_turn_is_long() -> None:
    waits: list[asyncio.Task[None]] = []

    async def work() -> list[bool]:
        for _ in range(20):
            time.sleep(2 * SHORT_TURN_SECS)  # noqa: ASYNC251 - that is the long work
            await asyncio.sleep(0)
        return [each.done() for each in waits]

    async def serve_all() -> list[bool]:
        async with Tasks() as tasks:
            busy = tasks.start(work(), "work")
            waits.extend(tasks.start(wait_for_short_turn(), f"request {number}") for number in range(3))
            return await busy

    assert run(serve_all()) == [True] * 3


def test_requests_that_wait_in_line_continue_in_their_order_and_a_few_per_turn() -> None:
    served: list[tuple[int, int]] = []

    async def serve(number: int) -> None:
        await wait_in_line()
        served.append((loop_lag().turns, number))

    async def serve_all() -> None:
        async with Tasks() as tasks:
            started = [tasks.start(serve(number), f"request {number}") for number in range(100)]
            asyncio.get_running_loop().call_soon(started[1].cancel)  # the tasks run first, and wait
            await asyncio.wait(started)

    run(serve_all())
    assert served == sorted(served, key=lambda each: each[1]) and len(served) == 99
    assert max(Counter(turn for turn, _ in served).values()) <= MAX_RESUMED_PER_TURN


def test_the_loop_records_each_long_turn() -> None:
    async def stall() -> tuple[float, float, float]:
        await asyncio.sleep(0.06)
        calm = loop_lag().max_secs
        time.sleep(0.1)  # noqa: ASYNC251 - that is the stall
        await asyncio.sleep(0)
        lag = loop_lag()
        assert lag.last_secs == lag.max_secs
        return calm, lag.max_secs, lag.total_secs

    calm, longest, total = run(stall())
    assert calm < 0.1 <= longest and total >= 0.1


def test_a_socket_is_served_while_callbacks_are_always_ready() -> None:
    async def work() -> int:
        loop, turns, has_arrived = asyncio.get_running_loop(), 0, asyncio.Event()
        reading, writing = socket.socketpair()
        with reading, writing:
            loop.add_reader(reading, has_arrived.set)
            writing.send(b".")
            while not has_arrived.is_set():
                await asyncio.sleep(0)
                turns += 1
            loop.remove_reader(reading)
        return turns

    assert run(work()) > 0


@pytest.mark.parametrize("turns", [0, 1])
async def test_a_runner_whose_works_failed_is_not_cancelled(turns: int) -> None:
    ended = []

    async def fail() -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        raise Invalid("no")

    async def hold() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    with pytest.raises(Invalid):
        await run_together(asyncio.sleep(0), hold(), fail())
    current = asyncio.current_task()
    assert current is not None and current.cancelling() == 0
    assert ended == [True]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await asyncio.sleep(1)


async def test_a_failure_is_freed_without_a_garbage_collection() -> None:
    async def fail(answers: list[weakref.ref[Worker]]) -> None:
        answer = Worker()
        answers.append(weakref.ref(answer))
        raise BadAnswer("no")

    replies = Replies(VirtualClock())

    async def send(number: int) -> None:
        try:
            await fail(answers)
        except BadAnswer as error:
            replies.fail(error)

    answers: list[weakref.ref[Worker]] = []
    gc.disable()
    try:
        for work in (
            end_within(fail(answers), 9),
            run_together(fail(answers)),
            replies.request(send, 9),
            Tasks().finish(fail(answers), "work"),
        ):
            with suppress(BadAnswer):
                await work
        await asyncio.sleep(0)
        assert [answer() for answer in answers] == [None] * 4
    finally:
        gc.enable()


async def test_cancelled_work_is_freed_without_a_garbage_collection() -> None:
    """The traceback of the work's exception refers to a timeout, and the timeout refers to the work's task."""

    async def hold(secs: float = 9) -> None:
        own = Worker()
        held.append(weakref.ref(own))
        async with asyncio.timeout(secs):
            await asyncio.Event().wait()

    async def run_in_background() -> None:
        async with Tasks() as tasks:
            tasks.start(hold(), "work")
            await asyncio.Event().wait()

    held: list[weakref.ref[Worker]] = []
    gc.disable()
    try:
        for runs in (
            run_together(hold(), hold()),
            run_in_background(),
            end_within(hold(), 9),
            end_within(hold(0), 9),
        ):
            running = asyncio.ensure_future(runs)
            await asyncio.sleep(0.01)
            running.cancel()
            with suppress(asyncio.CancelledError, TimeoutError):
                await running
            del running, runs
        assert [each() for each in held] == [None] * 5
    finally:
        gc.enable()


async def test_cancelling_the_runner_ends_its_works_first() -> None:
    ended = []

    async def hold() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    running = asyncio.ensure_future(run_together(hold(), hold()))
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == [True, True]


@pytest.mark.parametrize("step_secs", [0.0015, 0.125])
@pytest.mark.parametrize(("others", "turns_per_step"), [(0, 1), (1, REQUEST_TURNS), (3, REQUEST_TURNS)])
def test_long_work_of_a_request_yields_to_waiting_tasks(others: int, turns_per_step: int, step_secs: float) -> None:
    async def wait() -> None:
        for _ in range(1000):
            await asyncio.sleep(0)

    async def work() -> int:
        async with Tasks() as tasks:
            for number in range(others):
                tasks.start(wait(), f"waiting {number}")
            await asyncio.sleep(0)
            before = loop_lag().turns
            await in_steps(SteppingClock(step_secs), range(10))
            return loop_lag().turns - before

    assert run(work()) == 10 * turns_per_step


class JumpingClock(Clock):
    """A clock that can skip time, in which the process did not run."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


def test_time_in_which_the_process_did_not_run_does_not_extend_the_pauses() -> None:
    clock = JumpingClock()

    def steps() -> Iterator[None]:
        for _ in range(10):
            clock.ahead += 0.05
            yield

    async def wait() -> None:
        for _ in range(10_000):
            await asyncio.sleep(0)

    async def work() -> int:
        async with Tasks() as tasks:
            tasks.start(wait(), "another task")
            await asyncio.sleep(0)
            before = loop_lag().turns
            await in_steps(clock, steps())
            return loop_lag().turns - before

    assert run(work()) == 10 * REQUEST_TURNS


def test_long_work_of_a_stopping_hub_yields_rarely() -> None:
    async def work() -> int:
        hurry()
        await asyncio.sleep(0)
        before = loop_lag().turns
        await in_steps(SteppingClock(), range(140))
        return loop_lag().turns - before

    assert run(work()) == 10


def test_a_stop_ends_all_time_limits_at_one_deadline() -> None:
    async def hold() -> None:
        while not is_over.is_set():
            with suppress(asyncio.CancelledError):
                await is_over.wait()

    async def work() -> None:
        before = asyncio.ensure_future(end_within(hold(), 3600))
        await asyncio.sleep(0)
        end_limits_within(0.01)
        for limited in (before, end_within(hold(), 3600), end_within(asyncio.Event().wait(), 3600)):
            with pytest.raises(TimeoutError):
                await limited
        with pytest.raises(TimeoutError):
            async with time_limit(3600):
                await asyncio.Event().wait()
        is_over.set()
        await asyncio.sleep(0.01)

    is_over = asyncio.Event()
    asyncio.run(asyncio.wait_for(work(), 60))
