"""`ctx` in a home: the result, the effect, and the records of each call, and the trace."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import AsyncIterator

import orjson
import pytest
import pytest_asyncio

from appliance.adapters.lua_calls import SCRIPT_LOG_LEVELS
from appliance.api.device_encoder import DeviceEncoder
from appliance.log_buffer import fields_of
from appliance.log_limit import MAX_SAME_KIND, RepetitionLimit
from appliance.lua.running.command_results import MAX_RESULTS
from appliance.lua.running.context import Context
from appliance.lua.running.failed_calls import FailedCalls
from appliance.lua.running.packed_rows import RowMemory
from appliance.lua.running.trace import MAX_LOG_STEPS, MAX_STEP_CHARS, MAX_TRACE_STEPS, Trace
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua_worker.ctx_methods import CTX_METHODS
from tests.fakes.clock import VirtualClock
from tests.fakes.instant import InstantHome, open_home
from tests.lua.bench import calls_of, ended, scene, start

pytestmark = pytest.mark.asyncio(loop_scope="module")

ON = '{capability = "power", action = "on"}'


FAILED = FailedCalls(VirtualClock())


class Stage:
    """A home, and the context of its last execution."""

    def __init__(self, pool: WorkerPool, home: InstantHome, clock: VirtualClock) -> None:
        self.pool = pool
        self.home = home
        self.clock = clock
        self.context: Context

    async def play(self, body: str, source: str = "scene:evening") -> None:
        calls = calls_of(self.home, self.clock)
        kind, _, id_ = source.partition(":")
        self.context = Context(self.clock, kind, id_, calls, FAILED)
        await self.clock.run(ended(start(self.pool, scene(body), self.context, name=source)))


@pytest_asyncio.fixture(loop_scope="module")
async def stage(pool: WorkerPool) -> AsyncIterator[Stage]:
    """Provide three lamps and an empty group. The first two lamps are in the room `hall`, and the last two are in
    the group `all`."""
    clock = VirtualClock()
    async with open_home(clock) as home:
        home.registry.put_room("hall", "Hall")
        home.registry.assign_room("lamp:0", "hall")
        home.registry.assign_room("lamp:1", "hall")
        home.registry.put_group("all", "All", ["lamp:2", "lamp:1"])
        home.registry.put_group("none", "None", [])
        yield Stage(pool, home, clock)


async def test_an_overlong_id_is_recorded_in_part(stage: Stage) -> None:
    await stage.play(f"ctx:command(('x'):rep(200000), {ON})")
    [result] = stage.context.results
    assert result["target"] == "x" * 256
    assert result["message"] == f"device '{'x' * 255}…' not found"


@pytest.mark.parametrize(
    "call",
    [
        f"ctx:command('nobody:home', {ON})",
        f"ctx:command_group('nobody', {ON})",
        "ctx:get_device('nobody:home')",
        "ctx:command('lamp:0', {capability = 'brightness', action = 'set', value = 'x'})",
    ],
)
async def test_failed_calls_keep_no_context_in_memory(stage: Stage, call: str) -> None:
    gc.collect()
    gc.disable()
    try:
        await stage.play(f"for i = 1, 3 do pcall(function() {call} end) end")
        context = weakref.ref(stage.context)
        del stage.context
        await stage.clock.run(asyncio.sleep(0))
        assert context() is None, "a reference cycle would keep the context until a collection"
    finally:
        gc.enable()


async def test_a_device_is_as_in_the_api(stage: Stage) -> None:
    await stage.play("ctx:invoke('lamp:echo', {d = ctx:get_device('lamp:0')})")
    expected = orjson.loads(DeviceEncoder().encode_with_commands(stage.home.registry.get_device("lamp:0")))
    expected["metadata"] = {key: each for key, each in expected["metadata"].items() if each is not None}
    assert stage.home.adapter.echoed == [{"d": expected}]


async def test_a_sleep_takes_its_time_on_the_hubs_clock(stage: Stage) -> None:
    before = stage.clock.monotonic()
    await stage.play("ctx:sleep(0) ctx:sleep(0.5) ctx:sleep(3600)")
    assert stage.clock.monotonic() - before == pytest.approx(3600.5)


async def test_a_log_line_has_level_fields_and_name(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "scripts")
    calls = [f"ctx:log('{level}', 'hello %s', {{count = 5, list = {{1}}}})" for level in SCRIPT_LOG_LEVELS]
    await stage.play(" ".join([*calls, "ctx:log('info', 'list', {1, 2})"]), "automation:dusk")
    *records, last = (each for each in caplog.records if each.name == "scripts")
    assert [each.levelno for each in records] == [*SCRIPT_LOG_LEVELS.values()]
    for record in records:
        assert (record.getMessage(), fields_of(record)) == (
            "hello %s",
            {"count": 5, "list": [1], "automation": "dusk"},
        )
    assert fields_of(last) == {"fields": [1, 2], "automation": "dusk"}


async def test_messages_without_targets_are_logged_and_limited(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "notify")
    send = "assert(ctx:notify('100 % of ' .. i)[1].status == 'unsupported')"
    await stage.play(f"for i = 1, {2 * MAX_SAME_KIND} do {send} end")
    limit = RepetitionLimit()
    written = [each.getMessage() for each in caplog.records if each.name == "notify" and limit.filter(each)]
    assert written == [f"100 % of {number}" for number in range(1, MAX_SAME_KIND + 1)]


@pytest.mark.slow
async def test_the_latest_of_many_results_are_kept(stage: Stage) -> None:
    await stage.play(f"for i = 1, {MAX_RESULTS + 5} do ctx:command('lamp:' .. i + 10, {ON}) end")
    results = stage.context.results
    assert len(results) == MAX_RESULTS
    assert results[-1]["target"] == f"lamp:{MAX_RESULTS + 15}"


async def test_ctx_has_the_methods_of_the_specification_and_the_contract() -> None:
    listed = "command command_group invoke get_device list_devices get_room list_rooms list_room_devices get_group"
    listed += " list_groups list_group_devices log sleep"
    listed += " get set start_timer cancel_timer run_scene command_room wait_for snapshot restore notify"
    assert {*CTX_METHODS, "log"} == set(listed.split())


@pytest.mark.parametrize(
    ("call", "target", "reason"),
    [
        ("ctx:command('desk:gone', {capability = 'power', action = 'on'})", "power on to desk:gone", "not found"),
        ("ctx:command('desk:light:0', {capability = 'powr', action = 'on'})", "command to desk:light:0", "powr"),
        ("ctx:command_group('gone', {capability = 'power', action = 'on'})", "command to gone", "gone"),
        ("ctx:command_room('gone', {capability = 'power', action = 'on'})", "command to gone", "gone"),
        ("ctx:invoke('gone:send', {message = 'x'})", "gone:send", "gone"),
    ],
)
async def test_failures_are_reported_and_counted_while_the_script_continues(
    stage: Stage, caplog: pytest.LogCaptureFixture, call: str, target: str, reason: str
) -> None:
    source = f"scene:{abs(hash(call))}"
    await stage.play(f"for _ = 1, 3 do pcall(function() {call} end) end", source)
    sentence = [each.message for each in caplog.records if each.name == "scripts"]
    assert [message.split(" failed: ")[0] for message in sentence] == [f"{source}: {target}"] * 3
    [row] = [each for each in FAILED.list_newest() if each.source == source]
    assert (row.target, row.count) == (target, 3) and reason in row.reason


async def test_the_names_of_failures_are_limited() -> None:
    failed = FailedCalls(VirtualClock())
    for number in range(250):
        failed.add("scene:a", f"x{number}", "y" * 9_000)
    failed.add("scene:a", "x249", "again")
    assert len(failed.list_newest()) == 100
    assert (failed.list_newest()[0].count, failed.list_newest()[0].reason) == (2, "again")
    assert len(failed.list_newest()[1].reason) == 200


def kept(trace: Trace, step: str) -> list[int]:
    """Return the numbers of the stored steps of this kind."""
    return [each["number"] for each in trace.list_steps() if each["step"] == step]


async def test_the_newest_fifty_log_lines_and_all_other_steps_are_kept() -> None:
    trace = Trace(VirtualClock(), RowMemory())
    for number in range(90):
        trace.add("log", number=number)
        if number % 9 == 0:
            trace.add("command", number=number)
    assert kept(trace, "log") == list(range(90 - MAX_LOG_STEPS, 90))
    assert kept(trace, "command") == list(range(0, 90, 9))


async def test_the_newest_two_hundred_steps_are_kept() -> None:
    trace = Trace(VirtualClock(), RowMemory())
    for number in range(MAX_LOG_STEPS):
        trace.add("log", number=number)
    for number in range(MAX_TRACE_STEPS - 10):
        trace.add("command", number=number)
    assert len(trace.list_steps()) == MAX_TRACE_STEPS
    for number in range(MAX_LOG_STEPS, MAX_LOG_STEPS + 30):
        trace.add("log", number=number)
    assert kept(trace, "log") == list(range(MAX_LOG_STEPS, MAX_LOG_STEPS + 30))
    assert len(kept(trace, "command")) == MAX_TRACE_STEPS - 30


async def test_a_step_has_its_time_and_a_long_text_is_cut() -> None:
    clock = VirtualClock()
    trace = Trace(clock, RowMemory())
    clock.suspend(1.5)
    trace.add("log", message="x" * (MAX_STEP_CHARS + 1), level="info")
    [step] = trace.list_steps()
    assert step == {"at_ms": 1500, "step": "log", "message": "x" * (MAX_STEP_CHARS - 1) + "…", "level": "info"}
    trace.add("command", value={"value": 20, "unit": "x" * (MAX_STEP_CHARS + 1)})
    assert trace.list_steps()[-1]["value"] == {"value": 20, "unit": "x" * (MAX_STEP_CHARS - 1) + "…"}
