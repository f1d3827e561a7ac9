"""The card does not accept writes. Changes are refused and have no effect, the home continues to work, and the hub
recovers."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.errors import NotFound, StoreFailed
from appliance.home.layout import Change, Layout
from tests.cli.commands import LOOPBACK
from tests.fakes.app import LIGHT, App, open_app
from tests.fakes.card import Card
from tests.fakes.lua import write
from tests.fakes.moody_disk import MoodyDisk
from tests.fakes.patience import until
from tests.fakes.process import Process, configure, light_section, running

PLACE = f"/devices/{LIGHT}/room"

CHANGES: list[tuple[str, str, Any]] = [
    ("POST", "/rooms", {"id": "attic", "name": "Attic"}),
    ("POST", "/rooms", {"id": "den", "name": "Renamed"}),
    ("POST", "/groups", {"id": "all", "name": "All", "members": [LIGHT]}),
    ("POST", "/groups", {"id": "all-of-downstairs", "name": "Renamed"}),
    ("POST", "/groups/all-of-downstairs/members", {"members": []}),
    ("DELETE", "/groups/all-of-downstairs", None),
    ("POST", PLACE, {"room_id": None}),
    ("POST", PLACE, {"room_id": "bath"}),
    ("DELETE", "/rooms/den", None),
    ("POST", f"/devices/{LIGHT}/name", {"name": "Lamp"}),
]
"""All kinds of durable changes. Each change has a visible effect in a home that was `furnished`, even if all previous
changes in the list were made before."""

FURNISHING: list[tuple[str, str, Any]] = [
    ("POST", "/rooms", {"id": "den", "name": "Den"}),
    ("POST", "/rooms", {"id": "bath", "name": "Bath"}),
    ("POST", "/groups", {"id": "all-of-downstairs", "name": "Downstairs", "members": [LIGHT]}),
    ("POST", PLACE, {"room_id": "den"}),
]

SENTENCES = {
    "EIO": "input/output error",
    "ENOSPC": "no space left on device",
    "brim": "no space left on device",
    "EROFS": "read-only file system",
}


class TestEveryRoute:
    @pytest.fixture
    def disk(self, tmp_path: Path) -> MoodyDisk:
        return MoodyDisk(tmp_path)

    @pytest.fixture
    async def home(self, disk: MoodyDisk) -> AsyncIterator[App]:
        """Provide a furnished home on the faulty card."""
        async with open_app(disk=disk) as home:
            for method, path, body in FURNISHING:
                assert (await home.ask(method, path, json=body)).status == 200
            yield home

    async def test_each_route_returns_503_until_the_card_works_again(self, home: App, disk: MoodyDisk) -> None:
        before = await _seen_in(home)
        async with home.stream() as frames:
            disk.mood = errno.ENOSPC
            reply = "the change cannot be stored now: no space left on device"
            for method, path, body in CHANGES * 2:
                answer = await home.ask(method, path, json=body)
                assert (answer.status, answer.json) == (503, {"error": reply, "code": "store_unavailable"}), path
            assert await home.received(frames) == []
            assert await _seen_in(home) == before
            store = (await home.get("/diagnostics")).json["store"]
            assert store["failure"] == "no space left on device"

            disk.mood = None
            for method, path, body in CHANGES:
                before = await _seen_in(home)
                assert (await home.ask(method, path, json=body)).status in (200, 204), path
                assert await home.received(frames) != []
                assert await _seen_in(home) != before, path
                assert (await home.get("/diagnostics")).json["store"]["failure"] is None

    async def test_publishing_sections_start_on_a_failing_card(self, disk: MoodyDisk, tmp_path: Path) -> None:
        file = tmp_path / "config" / "default.toml"
        broker = '[adapters.mqtt]\nhost = "127.0.0.1"\nport = 9\npublish = true\n'
        virtual = '[adapters.virtual]\ndevices = [{ id = "a", attributes = { power = "off" } }]\n'
        write(tmp_path, {"default.toml": LOOPBACK})
        async with open_app(disk=disk, root=tmp_path, file=file, wait_until_ready=False) as home:
            disk.mood = errno.EROFS
            file.write_text(LOOPBACK + broker + virtual)
            answer = await home.post("/adapters/reload")
            assert (answer.status, answer.json["status"]) == (200, "ok"), answer.json
            assert {each["name"] for each in (await home.get("/adapters")).json} == {"mqtt", "virtual"}
        async with open_app(disk=disk, root=tmp_path, file=file, wait_until_ready=False) as home:
            assert {each["name"] for each in (await home.get("/adapters")).json} == {"mqtt", "virtual"}

    async def test_errors_of_a_request_come_before_errors_of_the_card(self, home: App, disk: MoodyDisk) -> None:
        disk.mood = errno.EIO
        assert (await home.delete("/rooms/nowhere")).status == 404
        assert (await home.post("/groups/none/members", {"members": []})).status == 404
        assert (await home.post("/groups", {"id": "x", "name": "X", "members": ["ghost"]})).status == 400
        assert (await home.post("/rooms", {"id": "x"})).status == 400

    async def test_failed_changes_do_not_block_others(self, home: App, disk: MoodyDisk) -> None:
        group, changes = "all-of-downstairs", home.hub.store.layout_changes
        asked: tuple[Change, ...] = (
            lambda layout, _: layout.remove_group(group),
            lambda layout, devices: layout.set_members(group, (), devices),
            lambda layout, _: layout.remove_room("nowhere"),
        )
        disk.mood = errno.EIO
        answers = await asyncio.gather(*map(changes.make, asked), return_exceptions=True)
        assert [type(each) for each in answers] == [StoreFailed, StoreFailed, NotFound]
        disk.mood = None
        answers = await asyncio.gather(*map(changes.make, asked), return_exceptions=True)
        assert [type(each) for each in answers] == [Layout, NotFound, NotFound]

    async def test_an_unchanged_value_needs_no_card(self, home: App, disk: MoodyDisk) -> None:
        disk.mood = errno.EIO
        assert (await home.post("/rooms", {"id": "den", "name": "Den"})).status == 200


class TestKeys:
    """If the card does not accept a key, the key is refused, because a restart would lose it."""

    async def test_a_key_is_neither_created_nor_revoked_until_the_card_accepts_it(self, tmp_path: Path) -> None:
        disk, expected = MoodyDisk(tmp_path), {"label": "tablet", "role": "read"}
        async with open_app(disk=disk) as home:
            made = (await home.post("/auth/keys", expected)).json
            async with home.stream(made["key"]) as frames:
                disk.mood = errno.ENOSPC
                for _ in range(2):
                    refused = await home.post("/auth/keys", expected)
                    assert refused.status == 503 and list(refused.json) == ["error", "code"]
                    assert (await home.delete(f"/auth/keys/{made['id']}")).status == 503
                assert [each["id"] for each in (await home.get("/auth/keys")).json] == [made["id"]]
                assert (await home.get("/devices", token=made["key"])).status == 200
                assert await home.received(frames) == []
                disk.mood = None
                assert (await home.delete(f"/auth/keys/{made['id']}")).status == 204
            assert (await home.post("/auth/keys", expected)).status == 200


async def _seen_in(home: App) -> list[Any]:
    device = await home.device(LIGHT)
    return [(await home.get("/rooms")).json, (await home.get("/groups")).json, device["room_id"], device["name"]]


class ReceivedFrames:
    """The frames of a process's event stream, recorded in the background."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self.frames: list[Any] = []

    def changes(self) -> list[Any]:
        """Return the events of rooms, groups, and places."""
        return [each for each in self.frames if each["type"] not in ("device.state_changed", "adapter.started")]

    def has_shown(self, **attributes: Any) -> bool:
        states = [each["state"] for each in self.frames if each["type"] == "device.state_changed"]
        return any(attributes.items() <= state.items() for state in states)

    async def note(self) -> None:
        """Record the frames until the stream ends."""
        async for message in self._socket:
            self.frames.append(message.json())


@asynccontextmanager
async def listening(hub: Process) -> AsyncIterator[ReceivedFrames]:
    async with hub.session.ws_connect(f"{hub.url}/events") as socket:
        received = ReceivedFrames(socket)
        noting = asyncio.ensure_future(received.note())
        yield received
        noting.cancel()


@pytest.fixture
def card(tmp_path: Path) -> Card:
    """Provide the card that the hub in `home` uses."""
    return Card(tmp_path)


@pytest.fixture
async def light(tmp_path: Path) -> AsyncIterator[LightSimulator]:
    """Run the light for the hub whose configuration is in the folder."""
    async with LightSimulator() as light:
        configure(tmp_path, light_section(light.url))
        yield light


async def _seen(hub: Process) -> list[Any]:
    device = await hub.get(f"/devices/{LIGHT}")
    return [await hub.get("/rooms"), await hub.get("/groups"), device["room_id"]]


async def _furnish(hub: Process) -> None:
    await hub.ready()
    for method, path, body in FURNISHING:
        assert (await hub.ask(method, path, body))[0] == 200


async def _refuse_all(hub: Process, reason: str) -> None:
    """Check that all changes get status 503 and this reason, both one by one and all at once."""
    refusal = (503, {"error": f"the change cannot be stored now: {reason}", "code": "store_unavailable"})
    for change in CHANGES:
        assert await hub.ask(*change) == refusal
    assert await asyncio.gather(*(hub.ask(*change) for change in CHANGES)) == [refusal] * len(CHANGES)


async def _live_on(hub: Process, light: LightSimulator, received: ReceivedFrames, brightness: int) -> None:
    """Check that lights can be switched, and that their values can be read."""
    power = "off" if light.lights[0].on else "on"
    command = {"capability": "power", "action": power}
    assert await hub.ask("POST", f"/devices/{LIGHT}/command", command) == (200, {"status": "ok"})
    assert light.lights[0].on == (power == "on")
    light.lights[0].brightness = brightness
    await until(lambda: received.has_shown(power=power, brightness=brightness))
    assert (await hub.get(f"/devices/{LIGHT}"))["attributes"]["brightness"] == brightness


@pytest.mark.slow
@pytest.mark.parametrize("mood", SENTENCES)
async def test_a_failing_card_affects_only_changes(
    mood: str, tmp_path: Path, card: Card, light: LightSimulator
) -> None:
    async with running(tmp_path, card.environment) as hub:
        await _furnish(hub)
        before = await _seen(hub)
        async with listening(hub) as received:
            card.switch_on(mood)
            await _refuse_all(hub, SENTENCES[mood])
            await _live_on(hub, light, received, 77)
            assert await _seen(hub) == before
            assert received.changes() == []
            assert (await hub.store())["failure"] == SENTENCES[mood]

            card.switch_off(mood)
            assert await hub.post("/rooms", id="cellar", name="Cellar") == 200
            await until(received.changes)
            room = {"id": "cellar", "name": "Cellar"}
            assert received.changes() == [{"type": "room.added", "room": room}]
        after = await _seen(hub)
        assert after == [[before[0][0], room, before[0][1]], *before[1:]]
        card.switch_on(mood)
        await _refuse_all(hub, SENTENCES[mood])
        await until(lambda: hub.log.read_text().count("changes cannot be stored") == 2)  # a thread writes the log
        await hub.kill()
        log = hub.log.read_text()
    assert log.count("changes can be stored again") == 1
    async with running(tmp_path) as hub:
        await hub.ready()
        assert await _seen(hub) == after, "what was acknowledged is there, what was refused is not"
        assert "damaged" not in hub.log.read_text()
        assert await hub.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "mood", ["ENOSPC", *(pytest.param(each, marks=pytest.mark.release) for each in ("EIO", "EROFS"))]
)
async def test_a_hub_stops_in_order_on_any_card(mood: str, tmp_path: Path, card: Card, light: LightSimulator) -> None:
    async with running(tmp_path, card.environment) as hub:
        await _furnish(hub)
        before = await _seen(hub)
        card.switch_on(mood)
        assert await hub.stop() == 0
        assert "Traceback" not in hub.log.read_text()
    async with running(tmp_path, card.environment) as hub:
        await hub.ready()
        assert await _seen(hub) == before, "and starts on it"
        await _refuse_all(hub, SENTENCES[mood])
        card.switch_off(mood)
        assert await hub.post("/rooms", id="cellar", name="Cellar") == 200
        assert await hub.stop() == 0


@contextmanager
def _tmpfs(folder: Path) -> Iterator[None]:
    """Mount a tmpfs of one mebibyte as the hub's data directory. Skip the test if this user may not mount file
    systems."""
    data = folder / "data"
    data.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(data)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"no filesystem can be mounted here: {made.stderr.strip()[:200]}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(data)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts filesystems")
async def test_one_mebibyte_is_enough_to_start_and_to_work(tmp_path: Path, light: LightSimulator) -> None:
    with _tmpfs(tmp_path):
        async with running(tmp_path) as hub:
            await _furnish(hub)
            for number in range(800):
                assert await hub.post("/rooms", id="den", name=f"{number:04d}" + "x" * 996) == 200
            store = await hub.store()
            assert store["generation"] >= 3, "the journal was compacted"
            before = await _seen(hub)
            assert await hub.stop() == 0
        async with running(tmp_path) as hub:
            await hub.ready()
            assert await _seen(hub) == before
