"""`ctx` in a home: what each call gives, does and records."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import pytest_asyncio

from appliance.api.device_encoder import DeviceEncoder
from appliance.errors import ScriptFailed
from appliance.log_buffer import fields_of
from appliance.lua.context import MAX_RESULTS, OPERATIONS, SCRIPT_LOG_LEVELS, Context, FailedCalls
from appliance.lua.worker_pool import WorkerPool
from tests.fakes.clock import VirtualClock
from tests.fakes.instant import InstantHome, open_home
from tests.lua.bench import FILE, scene

pytestmark = pytest.mark.asyncio(loop_scope="module")

ON = '{capability = "power", action = "on"}'


FAILED = FailedCalls(VirtualClock())


class RecordingContext(Context):
    """A context that keeps what is printed."""

    def __init__(self, home: InstantHome, clock: VirtualClock, source: str) -> None:
        super().__init__(home.registry, home.dispatcher, clock, source, failed_calls=FAILED)
        self.printed: list[str] = []

    def log(self, level: str, message: str, fields: Any) -> None:
        """Keep the line, too."""
        self.printed.append(message)
        super().log(level, message, fields)


class Stage:
    """A home, and the context of the last execution in it."""

    def __init__(self, pool: WorkerPool, home: InstantHome, clock: VirtualClock) -> None:
        self.pool = pool
        self.home = home
        self.clock = clock
        self.context = RecordingContext(home, clock, "scene:evening")

    async def play(self, body: str, source: str = "scene:evening") -> list[str]:
        """Run the body; what it printed."""
        self.context = RecordingContext(self.home, self.clock, source)
        await self.clock.run(self.pool.start(scene(body), self.context, name=source).wait())
        return self.context.printed


@pytest_asyncio.fixture(loop_scope="module")
async def stage(pool: WorkerPool) -> AsyncIterator[Stage]:
    """Three lamps, the first two in the room `hall`, the last two in the group `all`, and an empty group."""
    clock = VirtualClock()
    async with open_home(clock) as home:
        home.registry.put_room("hall", "Hall")
        home.registry.assign_room("lamp:0", "hall")
        home.registry.assign_room("lamp:1", "hall")
        home.registry.put_group("all", "All", ["lamp:2", "lamp:1"])
        home.registry.put_group("none", "None", [])
        yield Stage(pool, home, clock)


async def test_a_command_is_sent_and_its_result_given_and_recorded(stage: Stage) -> None:
    printed = await stage.play(f"local r = ctx:command('lamp:0', {ON}) print(r.status, r.message)")
    assert printed == ["ok\tnil"]
    assert stage.home.adapter.obeyed == [("lamp:0", "power on")]
    assert stage.context.results == [{"target": "lamp:0", "status": "ok", "message": None}]


@pytest.mark.parametrize(
    ("device", "command", "status", "message"),
    [
        ("lamp:9", ON, "error", "device 'lamp:9' not found"),
        ("lamp:0", '{capability = "brightness", action = "set", value = 13}', "error", "thirteen brings bad luck"),
        ("lamp:0", '{capability = "volume", action = "increase", value = 1}', "unsupported", "does not offer"),
    ],
)
async def test_a_command_that_is_not_done_does_not_raise(
    stage: Stage, device: str, command: str, status: str, message: str
) -> None:
    [printed] = await stage.play(f"local r = ctx:command('{device}', {command}) print(r.status, r.message)")
    assert printed.startswith(f"{status}\t")
    assert message in printed
    [result] = stage.context.results
    assert (result["target"], result["status"]) == (device, status)
    assert message in result["message"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("{}", "capability must be a non-empty string"),
        ('{capability = "powr", action = "on"}', "unknown capability"),
        ('{capability = "power", action = "dance"}', "power has no action"),
        ('{capability = "brightness", action = "set"}', "brightness set needs a value"),
        ('{capability = "brightness", action = "set", value = "50"}', "value of brightness"),
        ('{capability = "brightness", action = "set", value = 101}', "value of brightness"),
        ('{capability = "power", action = "on", value = 1}', "power on takes no value"),
    ],
)
@pytest.mark.parametrize("call", ["ctx:command('lamp:9', %s)", "ctx:command_group('all', %s)"])
async def test_a_command_that_is_malformed_raises_where_it_stands(
    stage: Stage, call: str, command: str, message: str
) -> None:
    with pytest.raises(ScriptFailed) as failure:
        await stage.play("\n" + call % command)
    assert str(failure.value).startswith(f"{FILE}:3: {message}")
    assert stage.context.results == []
    assert stage.home.adapter.obeyed == []


async def test_of_an_id_that_is_too_long_for_any_the_beginning_is_noted(stage: Stage) -> None:
    await stage.play(f"ctx:command(('x'):rep(200000), {ON})")
    [result] = stage.context.results
    assert result["target"] == "x" * 256
    assert result["message"] == f"device '{'x' * 255}…' not found"


async def test_half_of_a_hundred_is_a_percentage(stage: Stage) -> None:
    printed = await stage.play(
        "print(ctx:command('lamp:0', {capability = 'brightness', action = 'set', value = 100 / 2}).status)"
    )
    assert printed == ["ok"]


async def test_a_group_is_commanded_in_membership_order(stage: Stage) -> None:
    printed = await stage.play(
        f"for i, r in ipairs(ctx:command_group('all', {ON})) do print(i, r.target, r.status) end"
    )
    assert printed == ["1\tlamp:2\tok", "2\tlamp:1\tok"]
    assert [result["target"] for result in stage.context.results] == ["lamp:2", "lamp:1"]


async def test_an_empty_group_is_a_silent_no_op(stage: Stage) -> None:
    assert await stage.play(f"print(#ctx:command_group('none', {ON}))") == ["0"]
    assert stage.context.results == []


async def test_an_unknown_group_raises(stage: Stage) -> None:
    with pytest.raises(ScriptFailed, match=rf"{FILE}:2: group 'nobody' not found"):
        await stage.play(f"ctx:command_group('nobody', {ON})")


async def test_invoke_gives_what_the_adapter_gives(stage: Stage) -> None:
    assert await stage.play("print(ctx:invoke('lamp:echo', {a = {1, 2}}).a[2])") == ["2"]
    assert await stage.play("print(next(ctx:invoke('lamp:echo')))") == ["nil"]


@pytest.mark.parametrize("target", ["lamp:dance", "tv:echo", "", ":"])
async def test_an_unknown_target_raises(stage: Stage, target: str) -> None:
    with pytest.raises(ScriptFailed, match=f"invoke target '{target}' is not supported"):
        await stage.play(f"ctx:invoke('{target}', {{}})")


async def test_the_payload_of_invoke_has_named_fields(stage: Stage) -> None:
    with pytest.raises(ScriptFailed, match="payload must be a table with named fields"):
        await stage.play("ctx:invoke('lamp:echo', {1, 2})")


async def test_a_device_is_what_the_api_shows(stage: Stage) -> None:
    await stage.play("ctx:invoke('lamp:echo', {d = ctx:get_device('lamp:0')})")
    expected = orjson.loads(DeviceEncoder().encode_with_commands(stage.home.registry.get_device("lamp:0")))
    expected["metadata"] = {key: each for key, each in expected["metadata"].items() if each is not None}
    assert stage.home.adapter.echoed == [{"d": expected}]


LOOKUPS: tuple[tuple[str, str], ...] = (
    ("ctx:get_device('lamp:0').room_id", "hall"),
    ("ctx:get_device('lamp:2').room_id", "nil"),
    ("ctx:get_device('lamp:0').attributes.color_temperature.value", "4000"),
    ("ctx:get_device('lamp:0').metadata.vendor_specific.name", "lamp:0"),
    ("ctx:get_device('lamp:0').updated_at", "2026-01-01T12:00:00.000Z"),
    ("ctx:get_device('nobody')", "nil"),
    ("#ctx:list_devices()", "3"),
    ("ctx:list_devices()[2].id", "lamp:1"),
    ("ctx:get_room('hall').name", "Hall"),
    ("ctx:get_room('nowhere')", "nil"),
    ("#ctx:list_rooms()", "1"),
    ("ctx:list_room_devices('hall')[2].id", "lamp:1"),
    ("ctx:get_group('all').members[1]", "lamp:2"),
    ("#ctx:get_group('none').members", "0"),
    ("ctx:get_group('nobody')", "nil"),
    ("#ctx:list_groups()", "2"),
    ("ctx:list_groups()[1].id", "all"),
    ("ctx:list_group_devices('all')[1].id", "lamp:2"),
    ("#ctx:list_group_devices('none')", "0"),
)


@pytest.mark.parametrize(("asked", "answer"), LOOKUPS)
async def test_look_ups(stage: Stage, asked: str, answer: str) -> None:
    assert await stage.play(f"print({asked})") == [answer]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("ctx:list_room_devices('nowhere')", "room 'nowhere' not found"),
        ("ctx:list_group_devices('nobody')", "group 'nobody' not found"),
    ],
)
async def test_the_devices_of_what_does_not_exist_raise(stage: Stage, call: str, message: str) -> None:
    with pytest.raises(ScriptFailed, match=message):
        await stage.play(call)


async def test_changing_a_device_table_changes_nothing_in_the_home(stage: Stage) -> None:
    await stage.play("local d = ctx:get_device('lamp:0') d.attributes.power = 'on' d.id = 'x'")
    assert stage.home.registry.get_device("lamp:0").attributes["power"] == "off"


@pytest.mark.parametrize("seconds", ["0", "0.5", "1", "3600", "3600.0"])
async def test_a_sleep_takes_its_time_on_the_hubs_clock(stage: Stage, seconds: str) -> None:
    before = stage.clock.monotonic()
    await stage.play(f"ctx:sleep({seconds})")
    assert stage.clock.monotonic() - before == pytest.approx(float(seconds))


@pytest.mark.parametrize("seconds", ["-1", "-0.001", "3600.001", "3601", "1e300", "math.mininteger"])
async def test_a_sleep_beyond_its_range_raises(stage: Stage, seconds: str) -> None:
    with pytest.raises(ScriptFailed, match=rf"{FILE}:3: ctx:sleep takes 0 to 3600 seconds, not "):
        await stage.play(f"\nctx:sleep({seconds})")


@pytest.mark.parametrize("level", SCRIPT_LOG_LEVELS)
async def test_a_log_line_has_its_level_its_fields_and_the_scene(
    stage: Stage, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "scripts")
    await stage.play(f"ctx:log('{level}', 'hello %s', {{count = 5, name = 'x', list = {{1}}}})")
    [record] = [each for each in caplog.records if each.name == "scripts"]
    assert (record.levelno, record.getMessage()) == (SCRIPT_LOG_LEVELS[level], "hello %s")
    assert fields_of(record) == {"count": 5, "name": "x", "list": [1], "scene": "evening"}


async def test_print_goes_to_the_log_with_the_automations_name(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "scripts")
    await stage.play("print('a', 1, nil) ctx:log('info', 'list', {1, 2})", "automation:dusk")
    first, second = (each for each in caplog.records if each.name == "scripts")
    assert (first.getMessage(), fields_of(first)) == ("a\t1\tnil", {"automation": "dusk"})
    assert fields_of(second) == {"fields": [1, 2], "automation": "dusk"}


async def test_of_very_many_results_the_latest_are_kept(stage: Stage) -> None:
    await stage.play(f"for i = 1, {MAX_RESULTS + 5} do ctx:command('lamp:' .. i + 10, {ON}) end")
    results = stage.context.results
    assert len(results) == MAX_RESULTS
    assert results[-1]["target"] == f"lamp:{MAX_RESULTS + 15}"


async def test_ctx_offers_what_the_specification_and_the_contract_list() -> None:
    listed = "command command_group invoke get_device list_devices get_room list_rooms list_room_devices get_group"
    listed += " list_groups list_group_devices log sleep"
    listed += " get set start_timer cancel_timer run_scene command_room wait_for snapshot restore notify"
    assert {*OPERATIONS, "log"} == set(listed.split())


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
async def test_what_fails_is_told_and_counted_though_the_script_goes_on(
    stage: Stage, caplog: pytest.LogCaptureFixture, call: str, target: str, reason: str
) -> None:
    source = f"scene:{abs(hash(call))}"
    await stage.play(f"for _ = 1, 3 do pcall(function() {call} end) end", source)
    assert [each.message.split(" failed: ")[0] for each in caplog.records] == [f"{source}: {target}"] * 3
    [row] = [each for each in FAILED.list_newest() if each.source == source]
    assert (row.target, row.count) == (target, 3) and reason in row.reason


async def test_of_failures_so_many_names_are_kept() -> None:
    failed = FailedCalls(VirtualClock())
    for number in range(250):
        failed.add("scene:a", f"x{number}", "y" * 9_000)
    failed.add("scene:a", "x249", "again")
    assert len(failed.list_newest()) == 100
    assert (failed.list_newest()[0].count, failed.list_newest()[0].reason) == (2, "again")
    assert len(failed.list_newest()[1].reason) == 200
