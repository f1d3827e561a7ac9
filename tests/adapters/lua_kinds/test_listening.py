"""A kind that listens: its connection, messages in both directions, and floods."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from msgspec.structs import replace

from appliance.adapters.adapter_runner import AdapterRunner
from appliance.adapters.base import HookRequest
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.kinds import LUA_KIND
from appliance.adapters.lua_kinds.definition import ListenDefinition
from appliance.adapters.lua_kinds.push_connection import MAX_PUSHED, MAX_PUSHED_BYTES, PushConnection, Pushed
from appliance.adapters.simulated_device import SimulatedDevice
from appliance.clock import Clock
from appliance.errors import AdapterFailed
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.registry import Registry
from appliance.lua.kind_catalog import build_kind_catalog
from appliance.lua.running.worker_pool import WorkerPool
from tests.adapters.lua_kinds.bench import section
from tests.fakes.context import context_of
from tests.fakes.patience import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

KIND = """return {
  name = "Chatty",
  listen = {
    path = "/ws", reply = "id", max_message_kb = 64,
    hello = function(ctx) return { hello = ctx.settings.username } end,
    receive = function(ctx, message)
      if message == "boom" then local x = nil return x.y end
      if message == "\\xff\\0" then message = "bytes" end
      if type(message) ~= "table" then return { events = { { id = "lamp", event = tostring(message) } } } end
      if message.ask then return { send = "pong " .. message.ask } end
      return { devices = { { id = "lamp", attributes = { brightness = message.level } } } }
    end,
  },
  poll = function(ctx)
    ctx.memory.polls = (ctx.memory.polls or 0) + 1
    return { { id = "lamp", kind = "Light", name = "poll " .. ctx.memory.polls,
      attributes = { power = "on", brightness = 1 },
      commands = { { capability = "brightness", actions = { "set" } } } } }, 3600
  end,
  command = function(ctx, device, command)
    local answer = ctx:ask({ set = command.value }, 2)
    if answer.refused then return nil, answer.refused end
    return { attributes = { brightness = answer.level } }
  end,
  operations = { say = function(ctx, payload) ctx:send(payload.text) end },
}"""


class Chatty(SimulatedDevice):
    """A WebSocket that answers questions. `received` contains the client's messages. `push` sends to every client."""

    content_type = "application/json"

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self.received: list[Any] = []
        self.sockets: list[web.WebSocketResponse] = []
        self.polls = asyncio.Event()

    def _routes(self) -> Iterable[web.RouteDef]:
        return [
            web.get("/ws", self._serve),
            web.get("/events", self._stream),
            web.get("/late", self._answer_late),
        ]

    async def _answer_late(self, request: web.Request) -> web.Response:
        await self.polls.wait()
        return web.Response()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                break
            text = message.data
            self.received.append(message.json() if text.startswith("{") else text)
            if isinstance(self.received[-1], dict) and "set" in self.received[-1]:
                question = self.received[-1]
                refused = {"refused": "too bright"} if question["set"] > 90 else {"level": question["set"]}
                await socket.send_json({"id": question["id"], **refused})
        return socket

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b': hi\n\nevent: level\nid: 4\ndata: {"level":\ndata: 33}\n\n')
        await asyncio.Event().wait()
        return response

    async def push(self, text: str) -> None:
        for socket in self.sockets:
            await socket.send_str(text)


class Listening:
    """A running adapter of the kind, and its vendor."""

    def __init__(self, vendor: Chatty) -> None:
        self.vendor = vendor
        self.bus = Bus()
        self.happened: list[Any] = []
        self.bus.listen(self.happened.append)
        self.registry = Registry(self.bus, Clock())
        self.runner: AdapterRunner

    def shows(self, **attributes: Any) -> bool:
        found = self.registry.find_devices(["it:lamp"])
        return bool(found) and attributes.items() <= dict(found[0].attributes).items()


@asynccontextmanager
async def listening(pool: WorkerPool, tmp_path: Path, text: str = KIND, **raw: Any) -> AsyncIterator[Listening]:
    (tmp_path / "config" / "adapters").mkdir(parents=True, exist_ok=True)
    (tmp_path / "config" / "adapters" / "mine.lua").write_text(text)
    async with Chatty() as vendor, DeviceSession() as session:
        it = Listening(vendor)
        stated = section("mine", {"base_url": vendor.url, "username": "hub", **raw})
        catalog = build_kind_catalog(tmp_path / "config" / "default.toml", [stated], pool.describe, Bus(), pool)
        await catalog.load()
        context = context_of("it", session, Clock(), registry=it.registry, bus=it.bus, kinds=catalog)
        it.runner = AdapterRunner(lambda given: LUA_KIND.build(stated, given), context)
        async with it.runner:
            yield it


async def test_a_kind_receives_and_answers(
    pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(pool, tmp_path) as it:
        await until(lambda: it.vendor.received == [{"hello": "hub"}])
        await until(
            lambda: it.registry.find_devices(["it:lamp"]) and it.registry.get_device("it:lamp").name == "poll 2"
        )
        await it.vendor.push('{"level": 40}')
        await until(lambda: it.shows(brightness=40, power="on"))
        await it.vendor.push('{"ask": 7}')
        await until(lambda: it.vendor.received[-1] == "pong 7")
        await it.vendor.push('{"level": 42, "power": NaN}')
        await until(lambda: it.shows(brightness=42))
        await it.vendor.push("ring")
        await until(lambda: any(getattr(each, "event", "") == "ring" for each in it.happened))
        await it.vendor.sockets[0].send_bytes(b"\xff\0")
        await until(lambda: any(getattr(each, "event", "") == "bytes" for each in it.happened))
        for _ in range(3):
            await it.vendor.push("boom")
        await it.vendor.push('{"level": 41}')
        await until(lambda: it.shows(brightness=41))
        output = [each.getMessage() for each in caplog.records if "attempt to index" in each.getMessage()]
        assert output == ["it: config/adapters/mine.lua:7: attempt to index a nil value (local 'x')"]

        dim = Command(capability="brightness", action="set", value=50)
        assert await it.runner.command_when_free(["it:lamp"], dim) == [None]
        assert it.shows(brightness=50)
        [error] = await it.runner.command_when_free(["it:lamp"], replace(dim, value=95))
        assert str(error) == "too bright" and it.shows(brightness=50)
        await it.runner.invoke("say", {"text": "good night"})
        await until(lambda: it.vendor.received[-1] == "good night")


async def test_a_connection_that_breaks_is_opened_again_and_polled_for(pool: WorkerPool, tmp_path: Path) -> None:
    async with listening(pool, tmp_path) as it:
        await until(lambda: len(it.vendor.received) == 1)
        await it.vendor.sockets[0].close()
        await until(lambda: len(it.vendor.sockets) == 2)
        await until(lambda: len(it.vendor.received) == 2)


async def test_an_outage_is_noticed_long_before_the_next_poll(pool: WorkerPool, tmp_path: Path) -> None:
    """The hub polls at once after a broken or refused connection, although the kind polls only once per hour."""
    text = KIND.replace("ctx.memory.polls =", 'ctx:http { path = "/late" } ctx.memory.polls =')
    async with listening(pool, tmp_path, text) as it:
        it.vendor.polls.set()
        await until(lambda: it.vendor.sockets and it.shows(state="online"))
        await it.vendor.unplug()
        await until(lambda: it.shows(state="offline"))
        await it.vendor.plug_in()
        await until(lambda: it.shows(state="online"))


async def test_a_flood_is_one_log_line(pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with listening(pool, tmp_path) as it:
        await until(lambda: it.vendor.sockets)
        flood = asyncio.ensure_future(_flood(it.vendor))
        await until(lambda: it.shows(brightness=77))
        flood.cancel()
        assert it.runner.adapter is not None and it.runner.adapter.connection.waiting <= MAX_PUSHED  # type: ignore[attr-defined]
    assert [each for each in caplog.records if each.levelname in ("WARNING", "ERROR")] == []


async def test_values_pushed_before_the_first_poll_wait_for_their_device(pool: WorkerPool, tmp_path: Path) -> None:
    async with listening(
        pool, tmp_path, KIND.replace("ctx.memory.polls =", 'ctx:http { path = "/late" } ctx.memory.polls =')
    ) as it:
        await until(lambda: it.vendor.sockets)
        await it.vendor.push('{"ask": 7}')
        await until(
            lambda: it.vendor.received[-1:] == ["pong 7"]
        )  # a poll may wait for the vendor's answer to this command
        await it.vendor.push('{"level": 42}')
        await asyncio.sleep(0.2)
        it.vendor.polls.set()
        await until(lambda: it.shows(brightness=42))
        assert not [each for each in it.happened if isinstance(each, events.ObservationDropped)]


async def test_the_reply_to_a_question_about_a_large_message_arrives(pool: WorkerPool, tmp_path: Path) -> None:
    asking = "if message.pad then message.level = ctx:ask({ set = 77 }, 2).level - 1 end return { devices"
    kind = KIND.replace("return { devices", asking).replace("max_message_kb = 64", "max_message_kb = 4096")
    async with listening(pool, tmp_path, kind) as it:
        await until(lambda: it.shows(brightness=1) and it.vendor.sockets)
        await it.vendor.push(f'{{"pad": "{"x" * MAX_PUSHED_BYTES}"}}')
        await until(lambda: it.shows(brightness=76))


async def test_a_failing_hook_is_reported(pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hook = 'hook = function(ctx, request) if request.data then return { send = "x" } end error("no bell") end'
    async with listening(pool, tmp_path, f'return {{ name = "Bell", {hook} }}') as it:
        await until(lambda: it.runner.adapter is not None)
        asked: tuple[Any, ...] = (None, None, {})
        for data in asked:
            with pytest.raises(AdapterFailed):
                await it.runner.hook(HookRequest(hook="it", method="POST", data=data))
    sentences = [
        "config/adapters/mine.lua:1: no bell",
        "hook returned a message to send, but the kind has no WebSocket",
    ]
    errors = [each.message for each in it.happened if isinstance(each, events.AdapterErrored)]
    assert errors == [sentences[0], *sentences]
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        f"it: {sentence}" for sentence in sentences
    ]


@pytest.mark.slow
async def test_a_function_without_requests_that_times_out_is_not_an_outage(pool: WorkerPool, tmp_path: Path) -> None:
    poll = "\npoll = function(ctx) while true do\ncrypto.pbkdf2('sha256', 'a', 'b', 200000) end end"
    async with listening(pool, tmp_path, f'return {{ name = "Busy", {poll} }}') as it:
        await until(lambda: any(isinstance(each, events.AdapterErrored) for each in it.happened))
    [error] = [each.message for each in it.happened if isinstance(each, events.AdapterErrored)]
    assert error == "config/adapters/mine.lua:3: poll took longer than 5 s, excluding the wait for the device"


async def test_large_messages_wait_within_a_budget_of_bytes() -> None:
    listen = ListenDefinition(path="/", kind="websocket", has_hello=False, max_message_kb=1024)
    connection = PushConnection(None, listen, Clock(), asyncio.Lock())  # type: ignore[arg-type]

    async def messages() -> AsyncIterator[Pushed]:
        for number in range(4):
            yield Pushed(600 << 10 if number < 3 else 4 << 20, number)

    async def read() -> None:
        async for _ in connection._read(messages()):
            pass

    reading = asyncio.ensure_future(read())
    for number in range(4):
        for _ in range(10):
            await asyncio.sleep(0)
        assert connection.waiting == 1
        assert await connection.next_message() == number
    await asyncio.sleep(0)
    assert not reading.done(), "the large message is being processed"
    following = asyncio.ensure_future(connection.next_message())
    await reading
    following.cancel()


async def test_large_messages_of_all_connections_are_processed_one_at_a_time() -> None:
    listen = ListenDefinition(path="/", kind="websocket", has_hello=False, max_message_kb=4096)
    lock = asyncio.Lock()
    every = [PushConnection(None, listen, Clock(), lock) for _ in range(3)]  # type: ignore[arg-type]

    async def messages(size: int) -> AsyncIterator[Pushed]:
        yield Pushed(size, None)

    async def read(connection: PushConnection, size: int) -> None:
        async for _ in connection._read(messages(size)):
            pass

    reading = [
        asyncio.ensure_future(read(each, size)) for each, size in zip(every, (4 << 20, 4 << 20, 1), strict=True)
    ]
    for _ in range(10):
        await asyncio.sleep(0)
    assert [each.waiting for each in every] == [1, 0, 1], "small messages do not wait"
    for each in every:
        await each.next_message()
        following = asyncio.ensure_future(each.next_message())
        await asyncio.sleep(0)
        following.cancel()
    await asyncio.gather(*reading)


async def test_a_processed_message_does_not_stay_in_memory() -> None:
    listen = ListenDefinition(path="/", kind="websocket", has_hello=False, max_message_kb=1024)
    connection = PushConnection(None, listen, Clock(), asyncio.Lock())  # type: ignore[arg-type]

    async def messages() -> AsyncIterator[Pushed]:
        yield Pushed(1, _Value())
        await asyncio.Event().wait()

    async def read() -> None:
        async for _ in connection._read(messages()):
            pass

    reading = asyncio.ensure_future(read())
    kept = weakref.ref(await connection.next_message())
    await asyncio.sleep(0)
    assert kept() is None
    reading.cancel()


class _Value:
    """A value of a message."""


async def _flood(vendor: Chatty) -> None:
    while True:
        await vendor.push('{"level": 77}')
        await asyncio.sleep(0)  # unlike a vendor, the simulator shares the event loop of the test


async def test_server_sent_events_have_names(
    pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = """return { name = "Told", listen = { path = "/events", kind = "sse", receive = function(ctx, message)
      return { send = "thanks", devices = { { id = "lamp", kind = "Light", name = message.event .. message.id,
        attributes = { brightness = message.data.level } } } } end } }"""
    async with listening(pool, tmp_path, text) as it:
        await until(lambda: it.shows(brightness=33))
        assert it.registry.get_device("it:lamp").name == "level4"
        await until(lambda: caplog.records)
    output = "it: receive returned a message to send, but the kind has no WebSocket"
    assert [each.getMessage() for each in caplog.records] == [output]


async def test_a_refused_connection_or_a_failed_hello_is_reported_and_not_an_outage(
    pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    faults = {
        '{ path = "/none", receive = print }': "/none answered 404 Not Found",
        '{ path = "/ws", receive = print, hello = function() error("no greeting", 0) end }': "no greeting",
    }
    for number, (listen, sentence) in enumerate(faults.items()):
        caplog.clear()
        text = f'return {{ name = "Refused", listen = {listen} }}'
        async with listening(pool, tmp_path / str(number), text, poll_interval_secs=1) as it:
            errors: list[str] = []
            it.bus.listen(lambda event, errors=errors: errors.append(event.message), events.AdapterErrored)  # type: ignore[misc]
            await until(lambda errors=errors: len(errors) >= 3)  # type: ignore[misc]
            assert not [each for each in errors if sentence not in each], errors
        output = [each.getMessage() for each in caplog.records if each.levelname in ("WARNING", "ERROR")]
        assert len(output) == 1 and sentence in output[0]
