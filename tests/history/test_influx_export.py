"""The export to a server that accepts line protocol: all lines are valid, and no line is lost while the server is
unreachable."""

from __future__ import annotations

import asyncio
import logging
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance.adapters.influx_post import LinePost
from appliance.adapters.late_session import LateSession
from appliance.clock import Clock
from appliance.errors import Unreachable
from appliance.history.influx_export import LineQueue, LineWriter, PostLines, encode_line
from appliance.home.bus import Bus
from appliance.home.events import DeviceStateChanged
from appliance.home.model import Device, changed_attributes
from tests.fakes.clock import VirtualClock
from tests.fakes.line_server import TOKEN, LineServer, parse_lines
from tests.fakes.rows import each_row
from tests.history.test_device_history import JSON, _a_device

NOON = datetime(2026, 12, 7, 12, tzinfo=UTC)


@each_row(
    ("value", "fields"),
    [
        (21.5, "value=21.5"),
        (5, "value=5"),
        (True, "value=1"),
        ({"value": 3, "unit": "W"}, "value=3"),
        ("on", 'value=1,text="on"'),
        ("closed", 'value=0,text="closed"'),
        ('a "b" \\ \n', 'text="a \\"b\\" \\\\  "'),
        ({"r": 255, "g": 0, "b": 1.5}, "r=255,g=0,b=1.5"),
        ([1, "x"], 'text="[1, \\"x\\"]"'),
    ],
)
def test_a_value_is_a_line(value: Any, fields: str) -> None:
    unit = ",unit=W" if isinstance(value, dict) and "unit" in value else ""
    line = encode_line("a:b c", "the=room", "power", value, 1_765_108_800_000_000)
    assert line == f"power,device=a:b\\ c,room=the\\=room{unit} {fields} 1765108800000000000\n".encode()


@each_row("value", [None, {}, {"a": "b"}, float("nan"), float("inf")])
def test_an_empty_value_is_not_a_line(value: Any) -> None:
    assert encode_line("lamp", None, "power", value, 1) is None


NAMES = st.text(min_size=1, max_size=20).filter(lambda text: text.strip() == text)


@given(device=NAMES, room=st.none() | NAMES, attribute=NAMES, value=JSON)
def test_the_strict_server_accepts_any_value(device: str, room: str | None, attribute: str, value: Any) -> None:
    line = encode_line(device, room, attribute, value, 1_765_108_800_000_000)
    if line is not None:
        assert len(parse_lines(line)) == 1


class Home:
    """A device, a writer, and a server. The test controls the time."""

    def __init__(self, server: LineServer, post: PostLines | None = None, clock: Clock | None = None) -> None:
        self.server = server
        self.clock = clock or VirtualClock(NOON)
        self.bus = Bus()
        self.is_gone = False
        self.is_trusted = True
        self.shown: dict[int, float] = {}
        self._device = replace(_a_device(), id="lamp")
        self.writer = LineWriter(post or self._post, "http://server", self.bus, self.clock, lambda: self.is_trusted)

    def show(self, number: float) -> None:
        now = self.clock.now()
        device: Device = replace(self._device, attributes={"state": "online", "power": number}, updated_at=now)
        before = self._device if self._device.attributes else None
        self.bus.publish(
            DeviceStateChanged(device=device, previous=before, changed=changed_attributes(before, device))
        )
        self._device = device
        self.shown[round(now.timestamp() * 1000)] = number

    async def pass_time(self, seconds: float) -> None:
        assert isinstance(self.clock, VirtualClock)
        await _settle()
        await self.clock.advance(seconds, sleepers=0)
        await _settle()

    def received(self) -> dict[int, float]:
        """Return the numbers that the server received, by time in milliseconds."""
        found = self.server.points.items()
        return {at // 1_000_000: fields["value"] for (name, _, at), fields in found if name == "power"}

    async def _post(self, body: bytes) -> tuple[int, str]:
        if self.is_gone:
            raise Unreachable("http://server does not answer (refused)")
        return self.server.write(body, f"Token {TOKEN}")


async def _settle() -> None:
    for _ in range(12):
        await asyncio.sleep(0)


@pytest.mark.slow
async def test_an_hour_without_the_server_loses_no_value(caplog: pytest.LogCaptureFixture) -> None:
    home = Home(LineServer())
    async with home.writer:
        for second in range(3 * 3600 // 5):
            home.is_gone = 3600 <= 5 * second < 5400
            home.server.away = 503 if 5400 <= 5 * second < 7200 else None
            home.show(second)
            await home.pass_time(5)
    assert home.received() == home.shown and len(home.shown) == 2160
    figures = home.writer.figures()
    assert (figures["dropped"], figures["refused"], figures["waiting"]) == (0, 0, 0)
    assert figures["sent"] == 2160 and 60 <= figures["failures"] <= 120, "a minute between attempts at most"
    messages = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert messages == [
        "http://server does not accept values: http://server does not answer (refused); "
        "the hub keeps them and sends them later"
    ]


async def test_the_last_values_are_sent_at_the_stop() -> None:
    home = Home(LineServer())
    async with home.writer:
        home.show(1)
    assert home.received() == home.shown


async def test_a_refusal_drops_only_the_refused_lines(caplog: pytest.LogCaptureFixture) -> None:
    home = Home(LineServer(max_bytes=40_000))
    assert isinstance(home.clock, VirtualClock)
    async with home.writer:
        home.server.away = 400
        home.show(1)
        await home.pass_time(11)
        home.server.away = None
        home.shown.clear()
        for number in range(4000):  # far more than the server accepts in one request
            home.show(number)
            home.clock.suspend(0.001)
        await home.pass_time(11)
        await home.pass_time(100)
    figures = home.writer.figures()
    assert figures["refused"] == 1 and figures["refusal"] == "400 away" and figures["failure"] is None
    assert home.received() == home.shown
    assert [record.message for record in caplog.records] == [
        "http://server rejects values: 400 away; the hub drops them"
    ]


async def test_a_clock_that_is_not_trusted_sends_nothing() -> None:
    home = Home(LineServer())
    home.is_trusted = False
    async with home.writer:
        home.show(1)
    assert home.received() == {} and home.server.requests == 0


def test_the_queue_is_bounded_and_drops_the_oldest() -> None:
    queue = LineQueue(max_bytes=20_000)
    lines = [f"power,device=lamp value={number} {number}000\n".encode() for number in range(20_000)]
    for line in lines:
        queue.add(line)
    waiting, dropped = queue.lines, queue.dropped
    assert queue.bytes <= 20_000 and dropped > 0 and waiting + dropped == len(lines)
    first = queue.take(1000)
    queue.put_back(first)
    assert (queue.lines, queue.dropped) == (waiting, dropped) and queue.take(1000) == first
    taken = [*first]
    while batch := queue.take(64_000):
        taken += batch
    assert sum(each.lines for each in taken) == waiting and queue.lines == queue.bytes == 0


def test_the_queue_counts_the_memory_of_small_batches() -> None:
    queue = LineQueue(max_bytes=20_000)
    for number in range(1000):
        queue.add(f"a value={number}\n".encode())
        queue.put_back(queue.take(1))
    memory = sum(sys.getsizeof(each) + sys.getsizeof(each.packed) for each in queue._batches)
    assert memory <= queue.bytes <= 20_000 and queue.dropped > 0


async def test_over_http_with_its_token(caplog: pytest.LogCaptureFixture) -> None:
    lines = LineServer()
    server = await lines.serve()
    clock = Clock()
    url = str(server.make_url("/api/v2/write?bucket=lares"))
    async with LateSession() as session:
        for token, status in ((TOKEN, 204), (f"Token {TOKEN}", 204), ("wrong-one", 401), (None, 401)):
            answer = await LinePost(session.open, clock, url, token)(b"power value=1 1765108800000000000\n")
            assert answer[0] == status and "wrong-one" not in answer[1]
        home = Home(lines, LinePost(session.open, clock, url, TOKEN), clock)
        async with home.writer:
            home.show(5)
        assert set(home.received().values()) == {1.0, 5.0}
        await server.close()
        with pytest.raises(Unreachable):
            await LinePost(session.open, clock, url, TOKEN)(b"power value=1 1765108800000000000\n")
    await asyncio.sleep(0)
    assert TOKEN not in caplog.text
