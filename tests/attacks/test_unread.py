"""Clients that do not read their answers. The unread bytes are bounded, and clients that progress get everything."""

from __future__ import annotations

import asyncio
import socket
import tracemalloc
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial

import pytest

from appliance.api.app import ROUTES
from appliance.api.http_server.unsent_bytes import GRACE_SECS, MAX_BUILT_AT_ONCE, UnsentBytes
from appliance.api.limits import ApiLimits
from appliance.api.responses import LimitedList, json_response
from appliance.home.events import SystemErrorReported
from appliance.home.layout import Layout
from appliance.home.model import Room
from tests.api.caller import KEY, TEXT, Caller, call, read_events, request
from tests.fakes.app import App, open_app
from tests.fakes.registry import make

MIB = 1 << 20
ROOMS = request("GET", "/rooms", KEY)
FRAME_BYTES = 60_000


def add_rooms(app: App) -> None:
    """Make the answer to `ROOMS` 4 MB long, which is more than the system buffers for a client that does not read."""
    for number in range(1000):
        room = Room(id=f"r{number}", name="\U0001f600" * 1000)
        make(app.hub.registry, partial(put_room, room))


def put_room(room: Room, layout: Layout, _: object) -> Layout:
    return layout.put_room(room)


async def count_open(app: App) -> int:
    return int((await app.get("/diagnostics")).json["sockets"]["open"])


@pytest.mark.slow
async def test_unread_answers_are_bounded_and_other_clients_are_served(quiet_log: pytest.LogCaptureFixture) -> None:
    async with open_app(limits=ApiLimits(unsent_bytes=16 * MIB)) as app, AsyncExitStack() as stack:
        add_rooms(app)
        other = await stack.enter_async_context(call(app.url))
        slow = await stack.enter_async_context(call(app.url, small=True))
        length = len((await other.ask(ROOMS)).body)
        await slow.send(ROOMS)
        taken = 0
        for _ in range(30):
            taken += await take(slow, 64 * 1024)
            unread = await stack.enter_async_context(call(app.url, small=True))
            unread.stop_reading()
            await unread.send(ROOMS)
            assert len((await other.ask(ROOMS)).body) == length
        within = 3 + 16 * MIB // length  # the other clients and the clients within the limit
        while await count_open(app) > within:
            pass
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)  # for a short test
        while taken < length:
            taken += await take(slow, 64 * 1024)


async def test_clients_share_the_memory_of_the_overview(quiet_log: pytest.LogCaptureFixture) -> None:
    async with open_app(limits=ApiLimits(unsent_bytes=16 * MIB)) as app, AsyncExitStack() as stack:
        add_rooms(app)
        callers = [await stack.enter_async_context(call(app.url, small=True)) for _ in range(20)]
        for each in callers:
            each.stop_reading()
        await asyncio.gather(*(each.send(request("GET", "/overview", KEY)) for each in callers))
        await asyncio.sleep(3 * GRACE_SECS)
        assert await count_open(app) >= 20, "20 copies of 4 MB would exceed the limit"
        for each in callers:
            each.resume_reading()
            assert len((await each.reply()).json["rooms"]) == 1000


def test_each_long_list_waits_for_room_before_it_is_built() -> None:
    """`/devices`, `/overview`, and `/diagnostics/state` wait in the work that their clients share."""
    small = {"/adapters", "/auth/keys", "/kinds", "/diagnostics/reload_watch", "/variables"}
    shared = {"/devices", "/overview"}
    lists = {
        row.path: row.is_large
        for row in ROUTES
        if row.method == "GET"
        and isinstance(row.response_schema, Mapping)
        and row.response_schema.get("type") == "array"
    }
    assert {path for path, is_large in lists.items() if not is_large} <= small | shared


@pytest.mark.parametrize("text", ["x" * 3900, "x", "\n" * 1000])
def test_an_encoded_answer_occupies_only_its_size(text: str) -> None:
    """A result of orjson occupies up to eight times its size, and at least 4 KiB."""
    entries, count = LimitedList(lambda entry: entry), 200
    tracemalloc.start()
    try:
        assert all(entries.add({"text": text}) for _ in range(count))
        response = json_response([text] * count)
        occupied = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert occupied < len(entries.to_json()) + len(response.body or b"") + 100 * count


def test_each_large_answer_from_the_history_is_slow() -> None:
    slow = {row.path for row in ROUTES if row.is_slow}
    assert slow == {row.path for row in ROUTES if row.is_large and ("/history" in row.path or "/audit" in row.path)}
    assert len(slow) == 5


async def test_slow_answers_delay_no_others() -> None:
    unsent = UnsentBytes(8)
    async with AsyncExitStack() as stack:
        for _ in range(MAX_BUILT_AT_ONCE):
            await stack.enter_async_context(unsent.room_for_answer(is_slow=True))
        await enter(unsent)
        waiting = asyncio.create_task(enter(unsent, is_slow=True))
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting


async def test_a_large_answer_waits_briefly_for_clients_that_read() -> None:
    unsent, client = UnsentBytes(8), Client(0.0)
    for each in (client, Client(-1.0), Client(-2.0), Client(-3.0)):
        unsent.hold(each, 2)
    async with unsent.room_for_answer():
        pass  # the clients delay the answer, but not longer than `GRACE_SECS`
    waiting = asyncio.create_task(enter(unsent))
    await asyncio.sleep(0)
    assert not waiting.done()
    unsent.release(client)
    await waiting


async def test_silent_clients_make_room_for_a_large_answer_but_others_do_not(
    quiet_log: pytest.LogCaptureFixture,
) -> None:
    unsent = UnsentBytes(8)
    silent, reading = [Client(late) for late in (3.0, 5.0, 4.0)], [Client(-1.0) for _ in range(2)]
    for each in (*silent, *reading):
        unsent.hold(each, 2 if each in reading else 1)
    async with unsent.room_for_answer():
        assert [each.is_open for each in silent] == [True, False, True], "one place is enough"
    for _ in range(2):
        unsent.hold(Client(-1.0), 2)
    async with unsent.room_for_answer():
        assert not any(each.is_open for each in silent) and all(each.is_open for each in reading)


async def enter(unsent: UnsentBytes, *, is_slow: bool = False) -> None:
    async with unsent.room_for_answer(is_slow=is_slow):
        pass


def test_a_body_that_clients_share_counts_once() -> None:
    unsent, body = UnsentBytes(100), bytes(20)
    clients = [Client(0.0) for _ in range(10)]
    for client in clients:
        unsent.hold(client, 1, body)
        unsent.hold(client, 2, body)
    assert unsent.held == 40
    for client in clients[1:]:
        unsent.release(client)
    assert unsent.held == 22
    unsent.release(clients[0])
    assert unsent.held == 0


def test_the_copies_of_parts_of_a_large_shared_body_count() -> None:
    unsent, body = UnsentBytes(100), bytes(80)
    clients = [Client(0.0) for _ in range(10)]
    for client in clients:
        unsent.hold(client, 2, body)
    assert unsent.held == 25 + 10 * 2


async def take(caller: Caller, count: int) -> int:
    taken = 0
    while taken < count and (piece := await caller.read(count - taken)):
        taken += len(piece)
    assert taken, "the connection is still open"
    return taken


async def test_a_client_that_reads_too_slowly_is_disconnected(quiet_log: pytest.LogCaptureFixture) -> None:
    async with open_app(limits=ApiLimits(stall_secs=0.3)) as app, call(app.url, small=True) as caller:
        add_rooms(app)
        await caller.send(ROOMS)
        caller.stop_reading()
        while await count_open(app) > 1:
            caller.resume_reading()
            await caller.read(100)
            caller.stop_reading()


async def test_a_half_closed_client_that_reads_slowly_gets_its_whole_answer() -> None:
    async with open_app(limits=ApiLimits(half_closed_secs=0.05)) as app, call(app.url, small=True) as caller:
        add_rooms(app)
        await caller.send_last(ROOMS)
        caller.stop_reading()
        await asyncio.sleep(0.3)
        caller.resume_reading()
        assert len((await caller.reply()).json) == 1000
        assert await caller.rest() == b""


async def test_unread_frames_are_bounded(quiet_log: pytest.LogCaptureFixture) -> None:
    async with open_app(limits=ApiLimits(unsent_bytes=64 * 1024)) as app, AsyncExitStack() as stack:
        other = await stack.enter_async_context(read_events(app.url))
        for _ in range(20):
            unread = await stack.enter_async_context(read_events(app.url, small=True))
            unread.stop_reading()
        for _ in range(100):
            app.hub.bus.publish(SystemErrorReported(message="x" * FRAME_BYTES))
            assert (await other.frame())[0] == TEXT
        while (events := (await app.get("/diagnostics")).json["events"])["readers"] == 21:
            pass
        assert events["lag"] <= MIB // FRAME_BYTES
        assert events["readers"] > 1, "some clients are within the limit"


async def test_clients_that_read_keep_their_stream_when_one_frame_fills_the_memory() -> None:
    frame = "x" * 300_000  # more than the system buffers
    async with open_app(limits=ApiLimits(unsent_bytes=7 * MIB // 2)) as app, AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(read_events(app.url)) for _ in range(20)]
        for _ in range(3):
            app.hub.bus.publish(SystemErrorReported(message=frame))
            assert {kind for kind, _ in await asyncio.gather(*(each.frame() for each in readers))} == {TEXT}


class Client:
    """A client with a fixed delay."""

    def __init__(self, late: float) -> None:
        self.peer = f"late by {late:g} s"
        self.late = late
        self.is_open = True

    def late_secs(self) -> float:
        return self.late

    def abort(self) -> None:
        self.is_open = False


async def test_the_slowest_clients_are_disconnected(quiet_log: pytest.LogCaptureFixture) -> None:
    unsent = UnsentBytes(8)
    clients = [Client(late) for late in (-5.0, 3.0, 1.0, 2.0, 9.0, 0.0)]
    for client in clients:
        unsent.hold(client, 100)
    assert unsent.held == 12, "a client counts for a quarter"
    while unsent.held > 8:  # noqa: ASYNC110 - a timer has no event to await
        await asyncio.sleep(GRACE_SECS)
    assert [client.is_open for client in clients] == [True, False, True, True, False, True]
    for client in clients:
        unsent.release(client)
    assert unsent.held == 0


async def test_at_twice_the_limit_the_slowest_clients_are_disconnected_at_once(
    quiet_log: pytest.LogCaptureFixture,
) -> None:
    unsent = UnsentBytes(8)
    clients = [Client(late) for late in (3.0, 9.0, *[1.0] * 6, 2.0, 10.0)]
    for client in clients:
        unsent.hold(client, 2)
        assert unsent.held <= 16
    assert [client.late for client in clients if not client.is_open] == [3.0, 9.0], "the newest client stays"
