"""The event stream: each reader gets each event once, in order. A slow reader learns the number of lost events."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.simulator import TvSimulator
from appliance.api.frames import BY_EVENT, frame_of
from appliance.api.http_server.websocket import WebSocket
from appliance.api.http_server.websocket_protocol import encode_text_message
from appliance.api.limits import ApiLimits
from appliance.api.stream import EventStream
from appliance.errors import Fault
from appliance.event_loop import run
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.events import Event, SystemErrorReported
from appliance.home.model import Device, DeviceKind, Group, Info, Metadata, Room
from tests.api.caller import (
    CLOSE,
    KEY,
    PING,
    PONG,
    TEXT,
    UPGRADE,
    Caller,
    call,
    frame,
    read_events,
    request,
    shown,
)
from tests.fakes.app import App, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.patience import until

MOMENT = datetime(2026, 11, 20, 8, 9, 11, 42_000, tzinfo=UTC)
LAMP = Device(
    id="desk:light:0",
    room_id="hall",
    kind=DeviceKind.LIGHT,
    attributes={"power": "on", "brightness": 40, "color_temperature": {"value": 4000, "unit": "kelvin"}},
    metadata=Metadata(source="desk", vendor_specific={"light_index": 0}),
    updated_at=MOMENT,
    last_seen=MOMENT,
)
HALL = Room(id="hall", name="Hall ☃")
BOTH = Group(id="both", name="Both", members=("desk:light:0", "tv:tv"))

WRONG = Fault("x.lua", 7, "no")
RELOADS = {
    "scenes": "scene.catalog_reload",
    "automations": "automation.catalog_reload",
    "scripts": "scripts.reload",
    "adapters": "adapters.reload",
}
"""For each target of a reload, the prefix of the types of its frames."""

_RELOAD: dict[str, Any] = {"loaded_count": 3, "duration_ms": 4}
_FAULT = {"file": "x.lua", "line": 7, "message": "no"}
_HALL = {"id": "hall", "name": "Hall ☃"}
_BOTH = {"id": "both", "name": "Both", "members": ["desk:light:0", "tv:tv"]}

FRAMES: list[tuple[Event, str, dict[str, Any]]] = [
    (
        events.DeviceStateChanged(device=LAMP, previous=None, changed=frozenset(LAMP.attributes)),
        "device.state_changed",
        {"id": "desk:light:0", "state": dict(LAMP.attributes)},
    ),
    (
        events.DeviceUpdated(device=replace(LAMP, person_name="Lamp ☃", info=Info(model="Key", device_class="x"))),
        "device.updated",
        {"id": "desk:light:0", "name": "Lamp ☃", "info": {"model": "Key", "class": "x"}},
    ),
    (
        events.DeviceEvent(device_id="desk:button", event="double", data={"count": 2}),
        "device.event",
        {"id": "desk:button", "event": "double", "data": {"count": 2}},
    ),
    (events.DeviceRemoved(device_id="desk:light:0"), "device.removed", {"id": "desk:light:0"}),
    *(
        (
            events.DeviceRoomChanged(device_id="a:1", room_id=room),
            "device.room_changed",
            {"id": "a:1", "room_id": room},
        )
        for room in ("hall", None)
    ),
    (events.RoomAdded(room=HALL), "room.added", {"room": _HALL}),
    (events.RoomUpdated(room=HALL), "room.updated", {"room": _HALL}),
    (events.RoomRemoved(room_id="hall"), "room.removed", {"id": "hall"}),
    (events.GroupAdded(group=BOTH), "group.added", {"group": _BOTH}),
    (events.GroupUpdated(group=BOTH), "group.updated", {"group": _BOTH}),
    (events.GroupRemoved(group_id="both"), "group.removed", {"id": "both"}),
    (
        events.GroupMembersChanged(group_id="both", members=("tv:tv", "desk:light:0")),
        "group.members_changed",
        {"id": "both", "members": ["tv:tv", "desk:light:0"]},
    ),
    (events.AdapterStarted(adapter="roku_tv"), "adapter.started", {"adapter": "roku_tv"}),
    *(
        (
            events.VariableChanged(name="mode", value=one, previous=other),
            "variable.changed",
            {"name": "mode", "value": one},
        )
        for one, other in (("away", None), (None, "away"))
    ),
    (SystemErrorReported(message="desk: no answer"), "system.error", {"message": "desk: no answer"}),
    *(
        each
        for target, begins in RELOADS.items()
        for each in (
            (events.CatalogReloadStarted(target=target), f"{begins}_started", {"target": target}),
            (
                events.CatalogReloaded(target=target, faults=(), **_RELOAD),
                f"{begins}ed",
                {"target": target, "loaded_count": 3, "errors": [], "duration_ms": 4},
            ),
            (
                events.CatalogReloadFailed(target=target, faults=(WRONG,), **_RELOAD),
                f"{begins}_failed",
                {"target": target, "loaded_count": 3, "errors": [_FAULT], "duration_ms": 4},
            ),
        )
    ),
]
"""All events that have a frame, with the type and the fields that the contract requires. Events that are not
listed are internal."""

EVENT_FRAMES = [(event, {"type": type_, **fields}) for event, type_, fields in FRAMES]


def quiet_app(**more: Any) -> Any:
    """Run a hub with a stopped clock, so that only the test causes events."""
    clock = VirtualClock()
    light, tv = LightSimulator(clock=clock), TvSimulator(clock=clock)
    return open_app(clock=clock, light=light, tv=tv, **more)


def note(number: int, size: int = 0) -> SystemErrorReported:
    """Return an event that differs from all other events of its class."""
    return SystemErrorReported(message=f"{number}:{'x' * size}")


def number_of(received: dict[str, Any]) -> int:
    return int(received["message"].partition(":")[0])


class TestFrames:
    def test_an_event_has_the_contracts_frame_or_is_internal(self) -> None:
        for event, received in EVENT_FRAMES:
            assert frame_of(event) == json.dumps(received, separators=(",", ":"), ensure_ascii=False).encode()
        assert {kind for kind, frames in BY_EVENT.items() if frames is not None} == {
            type(each) for each, _, _ in FRAMES
        }
        assert frame_of(events.KeyRevoked(key_id="key_nobody_has")) is None

    async def test_exactly_these_frames_arrive_in_order(self) -> None:
        async with quiet_app() as app, read_events(app.url) as stream:
            for event, _ in EVENT_FRAMES:
                app.hub.bus.publish(event)
            app.hub.bus.publish(events.AdapterAnswered(adapter="roku_tv", at=MOMENT))
            for _, received in EVENT_FRAMES:
                assert await stream.event() == received
            assert await stream.is_open(0.05)

    async def test_a_frame_of_any_size_arrives_whole(self) -> None:
        async with quiet_app() as app, read_events(app.url) as stream, app.stream() as client:
            overhead = len(frame_of(SystemErrorReported(message="")) or b"")
            for size in (0, 125, 126, 127, 65_535, 65_536, 200_000):
                app.hub.bus.publish(SystemErrorReported(message="x" * max(0, size - overhead)))
                opcode, payload = await stream.frame()
                assert opcode == TEXT and len(payload) == max(size, overhead)
                assert await client.next() == json.loads(payload)


class TestReading:
    async def test_a_reader_is_subscribed_before_its_handshake_ends(self) -> None:
        async with quiet_app() as app, call(app.url) as caller:
            app.hub.bus.publish(note(0))
            await caller.send(request("GET", "/events", KEY, *UPGRADE))
            number = 0
            while not (await app.get("/diagnostics")).json["events"]["readers"]:
                number += 1
                app.hub.bus.publish(note(number))
            first = number + 1
            for number in range(first, first + 100):
                app.hub.bus.publish(note(number))
            assert (await caller.reply()).status == 101
            got = [number_of(await caller.event())]
            while got[-1] < first + 99:
                got.append(number_of(await caller.event()))
        assert got[0] <= first and got == list(range(got[0], first + 100)), "from then on, without a gap"

    async def test_an_event_is_encoded_once_for_all_readers(self) -> None:
        class Counting:
            """A room that counts how often its name is read."""

            id = "counting"
            reads = 0

            @property
            def name(self) -> str:
                self.reads += 1
                return "Counting"

        async with quiet_app() as app, AsyncExitStack() as stack:
            counting = Counting()
            app.hub.bus.publish(events.RoomAdded(room=cast("Room", counting)))
            assert counting.reads == 0, "nobody reads"
            streams = [await stack.enter_async_context(read_events(app.url)) for _ in range(50)]
            for round_ in range(1, 4):
                app.hub.bus.publish(events.RoomAdded(room=cast("Room", counting)))
                for stream in streams:
                    assert (await stream.event())["room"]["id"] == "counting"
                assert counting.reads == round_

    async def test_readers_come_and_go_and_are_counted(self) -> None:
        async with quiet_app() as app:
            async with read_events(app.url) as one, read_events(app.url):
                await shown(app, "events", "readers", 2)
                await one.send(frame(CLOSE, b"\x03\xe8bye"))
                assert await one.frame() == (CLOSE, b"\x03\xe8bye")
                assert await one.rest() == b""
                await shown(app, "events", "readers", 1)
            await shown(app, "events", "readers", 0)

    async def test_frames_that_arrive_with_the_handshake_are_read(self) -> None:
        async with quiet_app() as app, call(app.url) as caller:
            await caller.send(request("GET", "/events", KEY, *UPGRADE) + frame(PING, b"early") + frame(CLOSE))
            assert (await caller.reply()).status == 101
            assert [await caller.frame(), await caller.frame()] == [(PONG, b"early"), (CLOSE, b"")]


class TestHeartbeat:
    """A page cannot observe pings, so a page may request frames instead."""

    async def test_only_readers_that_ask_get_heartbeats_at_once_and_repeatedly(self) -> None:
        async with quiet_app() as app, app.stream() as other, app.stream(query="?heartbeat_secs=1") as stream:
            assert [await stream.next() for _ in range(2)] == [{"type": "heartbeat"}] * 2
            app.hub.bus.publish(note(1))
            assert (await other.next())["message"] == "1:"
            assert [each["type"] for each in await stream.until("system.error")][-1] == "system.error"

    @pytest.mark.parametrize("asked", ["0", "3601", "1.5", "", "soon", "-1", "9" * 40])
    async def test_an_impossible_interval_is_refused_with_a_sentence(self, asked: str) -> None:
        async with quiet_app() as app, call(app.url) as caller:
            answer = await caller.ask(request("GET", f"/events?heartbeat_secs={asked}", KEY, *UPGRADE))
            assert answer.status == 400
            assert "heartbeat_secs must be a whole number from 1 to 3600" in answer.json["error"]


class TestPings:
    async def test_a_reader_is_pinged_repeatedly(self) -> None:
        async with quiet_app(limits=ApiLimits(ping_secs=0.2)) as app, read_events(app.url) as stream:
            for _ in range(6):
                opcode, payload = await stream.frame()
                assert opcode == PING
                await stream.send(frame(PONG, payload))
            app.hub.bus.publish(note(1))
            while (answer := await stream.frame())[0] == PING:
                await stream.send(frame(PONG, answer[1]))
            assert answer[0] == TEXT

    async def test_a_reader_without_pongs_is_closed_with_1011(self, quiet_log: pytest.LogCaptureFixture) -> None:
        began = time.monotonic()
        async with quiet_app(limits=ApiLimits(ping_secs=0.5)) as app, read_events(app.url) as stream:
            assert (await stream.frame())[0] == PING
            app.hub.bus.publish(note(1))
            assert (await stream.frame())[0] == TEXT, "events do not count as life of the reader"
            opcode, payload = await stream.frame()
            assert (opcode, payload[:2]) == (CLOSE, b"\x03\xf3")
            assert time.monotonic() - began >= 2 * 0.5
            assert await stream.rest() == b""


class TestFallingBehind:
    async def test_lost_frames_of_a_burst_are_counted_exactly(self) -> None:
        async with quiet_app(event_capacity=10) as app, read_events(app.url) as stream:
            for number in range(25):
                app.hub.bus.publish(note(number))
            lost = await account_for(stream, 25)
            assert 0 < lost <= 14, "the first is sent at once, and ten wait"
            app.hub.bus.publish(note(25))
            assert number_of(await stream.event()) == 25, "and it goes on"
            assert (await app.get("/diagnostics")).json["events"]["dropped"] == lost

    async def test_a_paused_reader_gets_the_remaining_frames_and_the_number_of_lost_ones(self) -> None:
        async with quiet_app(event_capacity=50) as app, read_events(app.url, small=True) as stream:
            stream.stop_reading()
            number = 0
            while not (await app.get("/diagnostics")).json["events"]["dropped"] > 500:
                for _ in range(20):
                    app.hub.bus.publish(note(number, 2000))
                    number += 1
            stream.resume_reading()
            expected = 0
            while expected < number:
                received = await stream.event()
                if "dropped" in received:
                    assert received["message"] == f"subscriber lagged: {received['dropped']} events dropped"
                    expected += received["dropped"]
                else:
                    assert number_of(received) == expected
                    expected += 1
            app.hub.bus.publish(note(number))
            assert number_of(await stream.event()) == number

    async def test_a_reader_that_reads_nothing_is_closed(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        async with (
            quiet_app(limits=ApiLimits(stall_secs=0.4)) as app,
            read_events(app.url, small=True) as stream,
        ):
            stream.stop_reading()
            fill(app)
            began = time.monotonic()
            await shown(app, "events", "readers", 0)
            assert time.monotonic() - began >= 0.4
        assert "event stream: closed the connection of 127.0.0.1, which read nothing for 0.4 s" in caplog.messages

    @pytest.mark.slow
    async def test_a_slow_reader_that_progresses_is_kept(self) -> None:
        limits = ApiLimits(stall_secs=1.0, ping_secs=1.0)
        async with quiet_app(limits=limits) as app, read_events(app.url, small=True) as stream:
            stream.stop_reading()
            fill(app)
            ends = time.monotonic() + 2.5
            while time.monotonic() < ends:
                stream.resume_reading()
                assert await stream.read(4096), "it is still open"
                stream.stop_reading()
                await asyncio.sleep(0.01)
            await shown(app, "events", "readers", 1)

    async def test_closing_a_reader_affects_no_other(self) -> None:
        async with quiet_app(limits=ApiLimits(stall_secs=0.3), event_capacity=100) as app:
            async with read_events(app.url) as good, read_events(app.url, small=True) as bad:
                bad.stop_reading()
                for number in range(1000):
                    app.hub.bus.publish(note(number, 1000))
                    assert number_of(await good.event()) == number
                await shown(app, "events", "readers", 1)
                app.hub.bus.publish(note(1000))
                assert number_of(await good.event()) == 1000


def fill(app: App, count: int = 1000, size: int = 2000) -> None:
    """Publish more data than the system can buffer for a reader that does not read."""
    for number in range(count):
        app.hub.bus.publish(note(number, size))


class Counter(asyncio.Protocol):
    """A reader that computes a digest of all bytes after the handshake."""

    def __init__(self) -> None:
        self.count = 0
        self.digest = hashlib.blake2b()
        self.opened = asyncio.get_running_loop().create_future()
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(request("GET", "/events", KEY, *UPGRADE))

    def data_received(self, data: bytes) -> None:
        if not self.opened.done():
            self._head += data
            head, end, data = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            self.opened.set_result(head)
        self.count += len(data)
        self.digest.update(data)


@pytest.mark.slow
async def test_a_blocked_reader_of_two_hundred_loses_only_its_own_frames() -> None:
    total, loop = 4000, asyncio.get_running_loop()
    async with quiet_app() as app, read_events(app.url, small=True) as stuck:
        stuck.stop_reading()
        host, port = "127.0.0.1", int(app.url.rpartition(":")[2])
        readers = [await loop.create_connection(Counter, host, port) for _ in range(199)]
        await asyncio.gather(*(reader.opened for _, reader in readers))
        expected, length = hashlib.blake2b(), 0
        for number in range(total):
            event = note(number, 60)
            data = encode_text_message(frame_of(event) or b"")
            expected.update(data)
            length += len(data)
            app.hub.bus.publish(event)
            if number % 200 == 199:
                await until(lambda: all(reader.count >= length - 50_000 for _, reader in readers), 30)  # noqa: B023
        await until(lambda: all(reader.count >= length for _, reader in readers), 30)
        for transport, reader in readers:
            assert (reader.count, reader.digest.digest()) == (length, expected.digest())
            transport.abort()
        figures = (await app.get("/diagnostics")).json["events"]
        assert figures["dropped"] > 0, "the one that never read"
        stuck.resume_reading()
        assert await account_for(stuck, total) == figures["dropped"]


async def account_for(stream: Caller, total: int) -> int:
    """Read the notes up to this number. Check that each note arrived or was counted as lost, in order. Return the
    number of lost notes."""
    expected = lost = 0
    while expected < total:
        received = await stream.event()
        if "dropped" in received:
            lost += received["dropped"]
            expected += received["dropped"]
        else:
            assert number_of(received) == expected
            expected += 1
    return lost


class Written:
    """A socket that records the number of frames in each write."""

    is_writable = True

    def __init__(self) -> None:
        self.writes: list[int] = []

    def write(self, data: bytes) -> None:
        self.writes.append(data.count(b"system.error"))


def test_the_first_frame_of_a_turn_is_sent_at_once_and_the_others_in_one_write() -> None:
    async def publish_some() -> list[int]:
        bus, socket = Bus(), Written()
        with EventStream(bus, 10).subscribe(cast("WebSocket", socket), "key_reader"):
            for count in (3, 1, 2):
                for number in range(count):
                    bus.publish(note(number))
                assert socket.writes[-1] == 1
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        return socket.writes

    assert run(publish_some()) == [1, 2, 1, 1, 1]


async def test_errors_from_the_start_reach_only_the_first_reader(tmp_path: Path) -> None:
    broken = tmp_path / "config" / "scenes" / "broken.lua"
    broken.parent.mkdir(parents=True)
    broken.write_text("return {")
    async with open_app(root=tmp_path, adapters={}) as app, read_events(app.url) as first:
        assert (await first.event())["message"].startswith("not loaded: config/scenes/broken.lua")
        async with read_events(app.url) as second:
            app.hub.bus.publish(SystemErrorReported(message="now"))
            assert (await first.event())["message"] == (await second.event())["message"] == "now"
