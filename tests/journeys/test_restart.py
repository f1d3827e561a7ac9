"""Restarts: which data survives, how much is written, and which reports the hub gives about damaged files at the
start."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from appliance.adapters.roku_tv.kind import RokuTv
from appliance.adapters.roku_tv.simulator import TvSimulator
from appliance.api.figures import started_at
from appliance.api.why.device import state_since
from appliance.clock import timestamp
from appliance.home.events import SystemErrorReported
from appliance.store.disk import Disk
from appliance.store.lock import LOCK, LOST, DirectoryLock
from appliance.store.month_files import HISTORY_FOLDER
from appliance.version import MADE_AT
from tests.fakes.app import LIGHT, TV, App, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.patience import until
from tests.fakes.process import configure, refused, running

pytestmark = pytest.mark.slow

SECOND = "elgato_lights:light:1"
FLUSH_SECS = 300
SLEEPERS = 3
"""Number of tasks that sleep in an idle hub: the polls of both adapters, and the recorder."""

Lamps = Sequence[SimulatedLight]
ONE: Lamps = (SimulatedLight(on=True, temperature=200),)
TWO: Lamps = (*ONE, SimulatedLight(brightness=30, temperature=300))


@asynccontextmanager
async def living(
    folder: Path, clock: VirtualClock, lamps: Lamps = TWO, *, interval: int = 30, late: float = 0.0
) -> AsyncIterator[App]:
    """Run a hub on the data directory. The hub's devices answer only after `late` seconds."""
    light, tv = LightSimulator(lights=lamps, clock=clock), TvSimulator(clock=clock)
    light.faults.delay = tv.faults.delay = late
    async with open_app(
        clock=clock, light=light, tv=tv, data_dir=folder, poll_interval_secs=interval, wait_until_ready=not late
    ) as app:
        if late:
            await until(lambda: light.requests and tv.requests and clock.sleepers >= SLEEPERS)
            light.faults.delay = tv.faults.delay = 0.0
        yield app


class NotingDisk(Disk):
    """Notes the path and the data of each write."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.written: list[tuple[str, bytes]] = []

    def write(self, descriptor: int, data: bytes, offset: int) -> None:
        self.written.append((str(Path(f"/proc/self/fd/{descriptor}").readlink()), bytes(data)))
        super().write(descriptor, data, offset)


async def furnish(app: App) -> None:
    """Create two rooms with a lamp each, and a group of both lamps and the TV."""
    for path, body in (
        ("/rooms", {"id": "den", "name": "Den"}),
        ("/rooms", {"id": "bath", "name": "Bath"}),
        ("/groups", {"id": "all", "name": "All", "members": [SECOND, TV, LIGHT]}),
        ("/groups", {"id": "none", "name": "None"}),
        (f"/devices/{LIGHT}/room", {"room_id": "den"}),
        (f"/devices/{SECOND}/room", {"room_id": "bath"}),
    ):
        assert (await app.post(path, body)).status == 200


async def order_of(app: App) -> list[Any]:
    return [(await app.get(path)).json for path in ("/rooms", "/groups")]


async def devices_of(app: App) -> dict[str, Any]:
    """Return the devices by id, without `last_seen`."""
    return {each["id"]: each | {"last_seen": None} for each in (await app.get("/devices")).json}


async def store_of(app: App) -> dict[str, Any]:
    """Return the store's figures in the diagnostics."""
    figures: dict[str, Any] = (await app.get("/diagnostics")).json["store"]
    return figures


async def cost_of(app: App) -> tuple[int, int]:
    """Return the numbers of written bytes and of syncs until now."""
    figures = await store_of(app)
    return figures["bytes_written"], figures["syncs"]


def offline(device: dict[str, Any]) -> dict[str, Any]:
    """Return the device in the state that it has right after a restore."""
    return device | {"attributes": device["attributes"] | {"state": "offline"}}


class TestWhatIsThereAgain:
    async def test_rooms_groups_memberships_and_places_survive(self, tmp_path: Path, clock: VirtualClock) -> None:
        async with living(tmp_path, clock) as app:
            await furnish(app)
            await app.post("/rooms", {"id": "gone", "name": "Gone"})
            await app.delete("/rooms/gone")
            await app.post("/rooms", {"id": "den", "name": "Study"})
            before = await order_of(app), await devices_of(app)
        async with living(tmp_path, clock) as app:
            assert (await order_of(app), await devices_of(app)) == before
            [bath, den], [everything, _] = await order_of(app)
            assert (bath["name"], den["name"]) == ("Bath", "Study")
            assert everything["members"] == [SECOND, TV, LIGHT]
            members = (await app.get("/groups/all/devices")).json
            assert [each["id"] for each in members] == [SECOND, TV, LIGHT]
            assert (await app.delete("/rooms/den")).status == 204
        async with living(tmp_path, clock) as app:
            assert (await app.device(LIGHT))["room_id"] is None, "a room took its places along"

    async def test_restored_devices_are_offline_until_seen(self, tmp_path: Path, clock: VirtualClock) -> None:
        async with living(tmp_path, clock) as app:
            await furnish(app)
            before = await devices_of(app)
        async with living(tmp_path, clock, late=1.0) as app:
            assert (await app.get("/ready", token=None)).status == 503
            assert await devices_of(app) == {id_: offline(device) for id_, device in before.items()}
            assert [each["id"] for each in (await app.get("/groups/all/devices")).json] == [SECOND, TV, LIGHT]
            assert app.events == [], "nothing has happened yet"
            async with app.stream() as frames:
                await clock.advance(1.0, sleepers=SLEEPERS)
                await app.ready()
                received = [frame for frame in await app.received(frames) if frame["type"] != "adapter.started"]
            assert sorted(received, key=lambda frame: str(frame["id"])) == [
                {"type": "device.state_changed", "id": id_, "state": device["attributes"]}
                for id_, device in sorted(before.items())
            ]
            after = await devices_of(app)
            assert {id_: each["room_id"] for id_, each in after.items()} == {LIGHT: "den", SECOND: "bath", TV: None}

    async def test_a_device_missing_in_the_first_good_poll_is_removed_and_keeps_its_room(
        self, tmp_path: Path, clock: VirtualClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO", "adapters")
        async with living(tmp_path, clock) as app:
            await furnish(app)
        for _ in range(2):
            async with living(tmp_path, clock, ONE, late=1.0) as app:
                was_restored = SECOND in await devices_of(app)
                async with app.stream() as frames:
                    await clock.advance(1.0, sleepers=SLEEPERS)
                    await app.ready()
                    received = [frame for frame in await app.received(frames) if frame["type"] == "device.removed"]
                assert received == [{"type": "device.removed", "id": SECOND}] * was_restored
                assert set(await devices_of(app)) == {LIGHT, TV}
                assert (await app.get("/groups/all")).json["members"] == [SECOND, TV, LIGHT]
                gone, *_ = (await app.get(f"/why?id={SECOND}")).json["summary"]
                assert (
                    gone
                    == "elgato_lights does not report the device now; the device's room, name, and groups are kept"
                )
        assert caplog.text.count(f"elgato_lights: device '{SECOND}' no longer exists; ") == 1
        assert not was_restored, "what was removed is not restored again"
        async with living(tmp_path, clock) as app:
            assert (await app.device(SECOND))["room_id"] == "bath"
            members = (await app.get("/groups/all/devices")).json
            assert [each["id"] for each in members] == [SECOND, TV, LIGHT]

    async def test_devices_of_a_disabled_adapter_are_not_restored(self, tmp_path: Path, clock: VirtualClock) -> None:
        async with living(tmp_path, clock) as app:
            await furnish(app)
        async with TvSimulator(clock=clock) as tv:
            alone = {"roku_tv": RokuTv(ip_address=tv.host, port=tv.port, poll_interval_secs=30)}
            async with open_app(clock=clock, adapters=alone, data_dir=tmp_path) as app:
                assert set(await devices_of(app)) == {TV}
                assert (await app.get("/groups/all")).json["members"] == [SECOND, TV, LIGHT]
                assert (await app.post("/rooms", {"id": "hall", "name": "Hall"})).status == 200
        async with living(tmp_path, clock) as app:
            rooms = {id_: each["room_id"] for id_, each in (await devices_of(app)).items()}
            assert rooms == {LIGHT: "den", SECOND: "bath", TV: None}


class TestWhatIsWritten:
    """Values of devices are written rarely, and only if they have changed."""

    async def test_values_are_written_once_after_flush_secs(self, tmp_path: Path, clock: VirtualClock) -> None:
        async with living(tmp_path, clock) as app:
            await clock.advance(FLUSH_SECS, sleepers=SLEEPERS)
            bytes_before, syncs_before = await cost_of(app)
            for value in (10, 20, 35):
                assert (await app.command(LIGHT, "brightness", "set", value)).status == 200
            assert (await app.command(TV, "power", "off")).status == 200
            await clock.advance(FLUSH_SECS - 1, sleepers=SLEEPERS)
            assert await cost_of(app) == (bytes_before, syncs_before)
            await clock.advance(1, sleepers=SLEEPERS)
            bytes_after, syncs_after = await cost_of(app)
            assert syncs_after == syncs_before + 1
            assert 0 < bytes_after - bytes_before < 2048
            assert (await store_of(app))["last_write"] == "2026-01-01T12:10:00.000Z"

    async def test_values_are_written_at_the_stop_before_the_slower_history(
        self, tmp_path: Path, clock: VirtualClock
    ) -> None:
        clock.set(MADE_AT)
        clock.synchronised = True  # otherwise, the hub writes no history
        disk = NotingDisk(tmp_path)
        async with open_app(clock=clock, data_dir=tmp_path, disk=disk) as app:
            assert (await app.command(LIGHT, "brightness", "set", 35)).status == 200
            disk.written.clear()
        history = next(number for number, (file, _) in enumerate(disk.written) if HISTORY_FOLDER in file)
        assert any(b'"brightness":35' in data for _, data in disk.written[:history])

    async def test_an_hour_of_equal_polls_and_a_stop_write_nothing(self, tmp_path: Path, clock: VirtualClock) -> None:
        async with living(tmp_path, clock) as app:
            await furnish(app)
        async with living(tmp_path, clock) as app:
            seen, polls = (await app.device(LIGHT))["last_seen"], len(app.light.requests)
            cost = await cost_of(app)
            await clock.advance(3600, sleepers=SLEEPERS)
            assert len(app.light.requests) >= polls + 120
            assert (await app.device(LIGHT))["last_seen"] > seen
            assert await cost_of(app) == cost
        figures = app.hub.store.document.figures()
        assert (figures["bytes_written"], figures["syncs"]) == cost


async def test_diagnostics_show_the_load_of_the_card(tmp_path: Path, clock: VirtualClock) -> None:
    async with living(tmp_path, clock) as app:
        first = await store_of(app)
        await app.post("/rooms", {"id": "den", "name": "Den"})
        await clock.advance(10, sleepers=SLEEPERS)
        await app.post("/rooms", {"id": "den", "name": "Study"})
        second = await store_of(app)
    assert (first["generation"], first["failure"]) == (1, None)
    assert first["last_write"] == "2026-01-01T12:00:00.000Z", "the key for the versions of files"
    assert first["last_recovery"] == {"records": 0, "torn_bytes": 0, "lost_records": 0, "notes": []}
    assert second["syncs"] == first["syncs"] + 2
    assert second["bytes_written"] > first["bytes_written"]
    assert second["last_write"] == "2026-01-01T12:00:10.000Z"
    async with living(tmp_path, clock) as app:
        third = await store_of(app)
    assert third["last_recovery"] == {"records": 4, "torn_bytes": 0, "lost_records": 0, "notes": []}
    assert third["bytes_written"] < second["bytes_written"], "since the start"


class TestFilesThatCannotBeTrusted:
    """Damaged files are reported, and intact files are used."""

    async def test_damage_is_reported_in_the_log_an_event_and_diagnostics(
        self, tmp_path: Path, clock: VirtualClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with living(tmp_path, clock) as app:
            for number in range(5):
                assert (await app.post("/rooms", {"id": f"room-{number}", "name": "Room"})).status == 200
        journal = tmp_path / "journal.000001.json"
        journal.write_bytes(journal.read_bytes().replace(b"room-2", b"room-X"))
        caplog.clear()
        async with living(tmp_path, clock) as app:
            lost = "3 intact records after the damage are ignored"
            kept = "it is kept as journal.000001.json.corrupt-20260101T120000Z"
            reported = f"journal.000001.json is damaged after record 3; {lost}; {kept}"
            assert [room["id"] for room in (await app.get("/rooms")).json] == ["room-0", "room-1"]
            assert reported in [record.message for record in caplog.records if record.name == "store"]
            errors = [event.message for event in app.events if isinstance(event, SystemErrorReported)]
            assert errors == [f"store: {reported}"]
            recovery = (await store_of(app))["last_recovery"]
            assert (recovery["lost_records"], recovery["notes"]) == (3, [reported])
            assert (await app.post("/rooms", {"id": "new", "name": "New"})).status == 200
        assert "journal.000001.json.corrupt-20260101T120000Z" in Disk(tmp_path).list_names()
        async with living(tmp_path, clock) as app:
            assert [room["id"] for room in (await app.get("/rooms")).json] == ["new", "room-0", "room-1"]
            assert (await store_of(app))["last_recovery"]["notes"] == []


async def test_a_second_hub_on_the_same_data_names_the_first(tmp_path: Path) -> None:
    configure(tmp_path)
    for _ in range(2):
        async with running(tmp_path) as hub:
            assert await hub.post("/rooms", id="den", name="Den") == 200
            code, output = await asyncio.to_thread(refused, tmp_path)
            assert await hub.get("/rooms") == [{"id": "den", "name": "Den"}]
            assert await hub.stop() == 0
        assert code == os.EX_TEMPFAIL
        _check_sentence(output, f"{tmp_path}/data is in use by another hub, process {hub.popen.pid}")


def _make_newer(file: Path) -> None:
    """In the first line, set the format of the state to 2. The checksum of the line is correct."""
    line, _, rest = file.read_bytes().partition(b"\n")
    fields = json.loads(line) | {"format": 2}
    del fields["crc"]
    opened = json.dumps(fields, separators=(",", ":")).encode()[:-1]
    file.write_bytes(b'%b,"crc":"%08x"}\n' % (opened, zlib.crc32(opened)) + rest)


def _make_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


NEWER = "was written by a newer Lares (format 2; this version reads 1)"
SPOILT: list[tuple[str, Callable[[Path], object], int, str]] = [
    ("snapshot", _make_newer, os.EX_CONFIG, NEWER),
    ("journal", _make_newer, os.EX_CONFIG, NEWER),
    (
        "snapshot",
        lambda file: file.write_bytes(b"nonsense\n" + file.read_bytes()[20:]),
        os.EX_DATAERR,
        "has no intact snapshot. Restore a backup",
    ),
    ("journal", _make_a_folder, os.EX_IOERR, "the store cannot be read: "),
]
"""Each row: a damaged file, the exit code of the start, and the error message."""


async def test_a_start_from_unreadable_files_ends_with_a_sentence_and_keeps_them(tmp_path: Path) -> None:
    configure(tmp_path)
    async with running(tmp_path) as hub:
        assert await hub.post("/rooms", id="den", name="Den") == 200
        assert await hub.stop() == 0
    (tmp_path / "data").rename(tmp_path / "whole")
    for name, spoil, code, output in SPOILT:
        shutil.copytree(tmp_path / "whole", tmp_path / "data")
        file = tmp_path / f"data/{name}.000001.json"
        spoil(file)
        before = file.read_bytes() if file.is_file() else b""
        found, sentence = await asyncio.to_thread(refused, tmp_path)
        assert found == code
        _check_sentence(sentence, output)
        assert not before or file.read_bytes() == before
        shutil.rmtree(tmp_path / "data")


def _check_sentence(output: str, expected: str) -> None:
    assert "Traceback" not in output
    assert output.splitlines()[-1].startswith("lares: ")
    assert expected in output.splitlines()[-1]


async def test_values_of_another_kind_under_the_same_name_are_ignored(tmp_path: Path, clock: VirtualClock) -> None:
    async with living(tmp_path, clock) as app:
        await furnish(app)
        tv = {"elgato_lights": RokuTv(ip_address="127.0.0.1", port=9, poll_interval_secs=30)}
    async with open_app(clock=clock, data_dir=tmp_path, adapters=tv, wait_until_ready=False) as app:
        assert (await app.get("/devices")).json == []
        assert (await app.get("/groups/all")).json["members"] == [SECOND, TV, LIGHT]


async def test_each_of_many_simultaneous_moves_of_a_device_gets_its_own_answer(app: App) -> None:
    rooms = [f"r{number}" for number in range(4)]
    for room in rooms:
        await app.post("/rooms", {"id": room, "name": room})
    asked = rooms * 3
    answers = await asyncio.gather(*(app.post(f"/devices/{LIGHT}/room", {"room_id": room}) for room in asked))
    assert [answer.json["room_id"] for answer in answers] == asked
    assert (await app.device(LIGHT))["room_id"] in rooms


async def test_the_begin_of_an_outage_survives_restarts(tmp_path: Path, clock: VirtualClock) -> None:
    async def offline_since() -> datetime:
        clock.suspend(1000)
        async with living(tmp_path, clock, late=60.0) as app:
            summary = (await app.get(f"/why?id={LIGHT}")).json["summary"]
            assert "no message has arrived since the hub started" in summary
            return state_since(app.hub, app.hub.registry.get_device(LIGHT))

    async with living(tmp_path, clock) as app:
        began = clock.now() + timedelta(days=1)
        clock.set(began)
        since = state_since(app.hub, app.hub.registry.get_device(LIGHT))
        assert since == began, "it came online in this run, by whatever clock"
        clock.suspend(0.0006)
        assert started_at(app.hub) == began, "a fraction of a second is no other start"
        clock.suspend(99.9994)
    assert await offline_since() == clock.now(), "it was online at the stop: offline since the start"
    assert await offline_since() == clock.now()
    async with living(tmp_path, clock) as app:
        await app.light.unplug()
        await clock.run(app.command(LIGHT, "power", "on"))
        lost_at = app.hub.registry.get_device(LIGHT).updated_at
        since, last_message, *_ = (await app.get(f"/why?id={LIGHT}")).json["summary"]
        assert since == f"it has been offline since {timestamp(lost_at)}: it does not answer"
        assert last_message.startswith("its last message arrived at 20")
    assert await offline_since() == lost_at
    assert await offline_since() == lost_at


async def test_a_hub_whose_lock_another_hub_took_must_be_restarted_and_reports_this(
    tmp_path: Path, clock: VirtualClock
) -> None:
    async with open_app(clock=clock, data_dir=tmp_path, adapters={}) as app:
        (tmp_path / LOCK).unlink()
        other = DirectoryLock(tmp_path)
        assert (await app.get("/ready", token=None)).status == 200
        answer = await app.post("/rooms", {"id": "hall", "name": "Hall"})
        assert (answer.status, answer.json["error"]) == (503, f"the change cannot be stored now: {LOST}")
        other.release()
        ready = await app.get("/ready", token=None)
        assert (ready.status, ready.json) == (503, {"error": LOST, "code": "not_ready"})
        assert (await app.get("/rooms")).json == []
