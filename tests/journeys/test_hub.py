"""Over HTTP: the hub's health, its diagnostics, and connections to the event stream."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from msgspec.structs import asdict

from appliance import config
from appliance.adapters.network_search.search import Found
from appliance.api.limits import ApiLimits
from appliance.api.responses import MAX_ENTRIES_BYTES
from appliance.home.capabilities import CAPABILITIES, OWNERSHIP, UNITS
from appliance.home.events import DeviceRemoved
from appliance.home.model import Room
from appliance.hub import STORE_PACKS
from tests.api.caller import call, request
from tests.fakes.app import App, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.process import running


async def test_the_capabilities_of_every_attribute_are_in_the_catalog(app: App) -> None:
    answer = await app.get("/capabilities")
    assert (answer.status, len(answer.json["capabilities"]), answer.json["ownership"]) == (200, 60, OWNERSHIP)
    listed = {entry["key"] for entry in answer.json["capabilities"]}
    units = {entry["key"]: entry["unit"] for entry in answer.json["capabilities"] if "unit" in entry}
    assert units == UNITS == (await app.get("/overview")).json["units"]
    periods = {entry["key"]: entry["period"] for entry in answer.json["capabilities"] if "period" in entry}
    assert periods["energy_today"] == "today"
    for device in (await app.get("/devices")).json:
        assert set(device["attributes"]) <= listed
        for key, value in device["attributes"].items():
            assert CAPABILITIES[key].check(value) == value


async def test_results_of_a_search_are_listed_and_its_seconds_are_limited() -> None:
    section = '[adapters.wled]\nbase_url = "http://10.0.0.2"\n'
    lamp = Found(kind="wled", name="Desk", address="10.0.0.2:80", serial=None, section=section)
    async with open_app(adapters={}, found=[lamp]) as app:
        for query in ("", "?seconds=1", "?seconds=30"):
            answer = await app.get(f"/discovery{query}")
            assert (answer.status, answer.json) == (200, {"found": [asdict(lamp)]})


async def test_the_log_has_its_latest_lines_first(app: App) -> None:
    logging.getLogger("hub").warning("one %s", "thing", extra={"room": "attic"})
    logging.getLogger("store").error("another")
    answer = await app.get("/diagnostics/log?level=warning&limit=2")
    entries = answer.json["entries"]
    assert [(entry["level"], entry["part"], entry["message"]) for entry in entries] == [
        ("error", "store", "another"),
        ("warning", "hub", "one thing"),
    ]
    assert entries[1]["fields"] == {"room": "attic"} and entries[1]["at"].endswith("Z")
    for query in ("part=hub&contains=thing", "contains=ROOM%3Dattic"):
        [entry] = (await app.get(f"/diagnostics/log?{query}")).json["entries"]
        assert entry["message"] == "one thing"
    assert (await app.get("/diagnostics/log?part=nobody")).json["entries"] == []


async def test_log_lines_with_many_escapes_are_cut_at_a_size(app: App) -> None:
    for number in range(200):
        logging.getLogger(f"part_{number}").warning("%03d%s", number, "\1" * 8000)
    answer = (await app.get("/diagnostics/log?level=warning&limit=2000")).json
    numbers = [int(entry["message"][:3]) for entry in answer["entries"]]
    assert numbers == [*range(199, 199 - len(numbers), -1)] and answer["last"] > 0
    assert MAX_ENTRIES_BYTES - 50_000 < len(orjson.dumps(answer["entries"])) <= MAX_ENTRIES_BYTES


PANEL = "http://panel.local"


def configure(folder: Path, text: str) -> None:
    """Create a configuration whose section `[api]` begins with this text."""
    (folder / "config").mkdir()
    (folder / "config" / "default.toml").write_text(f'[api]\nbind_address = "127.0.0.1:0"\n{text}')


def test_limits_and_origins_apply_only_if_they_are_enabled() -> None:
    text = f'[api.rate_limit]\nburst_size = 1\n[api.cors]\nallowed_origins = ["{PANEL}"]\n'
    assert ApiLimits.of(config.parse(text, "x", {}).api) == ApiLimits.of(config.parse("", "x", {}).api) == ApiLimits()
    assert ApiLimits().rate is None and ApiLimits().origins is None
    enabled = ApiLimits.of(config.parse(text.replace("]\n", "]\nenabled = true\n", 2), "x", {}).api)
    assert enabled.rate is not None and (enabled.rate.burst_size, enabled.origins) == (1, frozenset({PANEL}))


@pytest.mark.parametrize("key", ["max_connections", "max_connections_per_peer"])
async def test_connections_beyond_the_configured_number_are_closed_at_once(tmp_path: Path, key: str) -> None:
    configure(tmp_path, f"{key} = 4\n")
    async with running(tmp_path) as hub, AsyncExitStack() as stack:
        callers = [await stack.enter_async_context(call(hub.url)) for _ in range(4)]
        for caller in callers:
            assert (await caller.ask(request("GET", "/health"))).status == 200
        async with call(hub.url) as refused:
            assert await refused.rest() == b""
        assert (await callers[0].ask(request("GET", "/health"))).status == 200


class Leaving:
    """A part of a section that reads the data directory when the section stops."""

    def __init__(self, app: App, folder: Path) -> None:
        self._app = app
        self._folder = folder
        self.found: tuple[object, ...] = ()

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None:
        hub = self._app.hub
        self.found = hub.store.document.get("probe"), (self._folder / "lock").read_text()[:8], hub.store.is_stored


async def test_a_stopping_hub_stores_its_state_before_the_adapters_leave(tmp_path: Path) -> None:
    async with open_app(adapters={}, data_dir=tmp_path) as app:
        part = Leaving(app, tmp_path)
        await app.hub.adapters.enter("slow", part)
        app.hub.store.document.put_later("probe", {"at": 1})
    assert part.found == (b'{"at":1}', "stopped ", True)


async def test_a_response_that_is_sent_in_parts_is_complete(app: App) -> None:
    rooms = [Room(id=f"r{number:03}", name="n" * 1000) for number in range(600)]

    async def put(room: Room) -> None:
        await app.hub.store.layout_changes.make(lambda layout, _: layout.put_room(room))

    await asyncio.gather(*map(put, rooms))
    answer = await app.get("/rooms")
    assert [each["id"] for each in answer.json] == [room.id for room in rooms]


async def test_stored_values_are_packed_after_the_last_removals() -> None:
    async with open_app(adapters={}) as app:
        document, removed = app.hub.store.document, DeviceRemoved(device_id="x:1", name="X")
        await document.put_many({"variable/a": {"value": "x" * 100}})
        found = [document.get("variable/a")]
        continues = list[bool]()
        for is_removed in (False, True, True, *[False] * (STORE_PACKS + 1)):
            if is_removed:
                app.hub.bus.publish(removed)
            continues.append(await app.hub.pack())
            found.append(document.get("variable/a"))
        assert len({*found}) == 1 and found[0] is not None
        assert [one is other for one, other in pairwise(found)] == [True] * 3 + [False] * STORE_PACKS + [True]
        assert continues == [False] + [True] * (1 + STORE_PACKS) + [False, False]


async def test_packing_removes_expired_records_of_the_brake() -> None:
    clock = VirtualClock()
    async with open_app(clock=clock, adapters={}) as app:
        brake = app.hub.environment.brake
        brake.note_effect("automation:a", "variable", "x")
        clock.suspend(11)
        await app.hub.pack()
        assert not brake._effects
