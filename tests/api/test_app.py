"""The whole application: routes, diagnostics, and cached bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, cast

import orjson
import pytest
from msgspec.structs import replace

from appliance.api.app import ROUTES
from appliance.api.device_encoder import DeviceEncoder
from appliance.api.roles import Role
from appliance.clock import timestamp
from appliance.home.bus import Bus
from appliance.home.command_specs import CommandSpec
from appliance.home.events import DeviceRemoved
from appliance.home.model import Device, DeviceKind, Info, Metadata, Observation, Report
from appliance.home.values import Value
from appliance.version import VERSION
from tests.api.caller import KEY, call, request
from tests.fakes.app import App
from tests.fakes.clock import VirtualClock
from tests.fakes.registry import PromptRegistry

PUBLIC = {"/health", "/ready"}
MOMENT = datetime(2026, 11, 20, 8, 9, 11, 42_999, tzinfo=UTC)


class TestTheTableOfRoutes:
    def test_no_route_is_listed_twice(self) -> None:
        room_assignments = [(route.method, re.sub(r"<\w+>", "<>", route.path)) for route in ROUTES]
        assert len(room_assignments) == len(set(room_assignments))

    def test_every_row_is_complete(self) -> None:
        for route in ROUTES:
            assert route.method in {"GET", "POST", "PUT", "DELETE"}
            assert re.fullmatch(r"(?:/(?:[a-z_.]+|<[a-z_]+>))+", route.path)
            assert (route.role is None) == (route.path in PUBLIC)
            assert re.fullmatch(r"[A-Z].{6,}\.", route.summary), "a sentence"
            assert any(status < 300 for status in route.statuses)
            assert route.body is None or route.method in ("POST", "PUT")
            assert (route.response_schema is None) == (not {200, 202} & {*route.statuses})
            assert route.handler.__doc__, route.path

    def test_reading_changes_nothing(self) -> None:
        for route in ROUTES:
            if route.role in (None, Role.READ):
                assert route.method == "GET"

    def test_only_the_event_stream_is_a_websocket(self) -> None:
        assert [route.path for route in ROUTES if route.is_websocket] == ["/events"]


class TestHealth:
    async def test_health_is_exactly_this_and_ready_too(self, app: App) -> None:
        for path in ("/health", "/ready"):
            answer = await app.get(path, token=None)
            assert (answer.status, answer.json) == (200, {"status": "ok"})
            assert answer.headers["Content-Type"] == "application/json"


class TestDiagnostics:
    async def test_diagnostics_have_these_figures(self, app: App) -> None:
        await app.post("/rooms", {"id": "hall", "name": "Hall"})
        await app.post("/groups", {"id": "all", "name": "All"})
        async with app.stream():
            received = (await app.get("/diagnostics")).json
        of_lua = {"clock", "scenes", "automations", "scripts", "history"}
        of_hub = {"hub", "counts", "adapters", "devices", "store", "events", "sockets", "log", "loop", "process"}
        assert set(received) == of_hub | of_lua
        counts = {"adapters": 2, "devices": 2, "rooms": 1, "groups": 1, "scenes": 0, "automations": 0, "keys": 0}
        assert received["counts"] == counts
        assert set(received["scripts"]) == {"running", "workers", "kills", "last_kills", "adapters", "last_reload"}
        assert set(received["hub"]) == {"version", "python", "started_at", "now", "uptime_secs", "ready", "safe"}
        assert received["hub"]["version"] == VERSION and received["hub"]["uptime_secs"] >= 0
        assert received["hub"]["started_at"] <= received["hub"]["now"]
        assert received["events"]["readers"] == 1 and received["events"]["dropped"] == 0
        assert received["sockets"]["open"] >= 2 and received["sockets"]["refused"] == 0
        assert received["process"]["resident_bytes"] > 10_000_000 and received["process"]["threads"] >= 1
        for name in ("elgato_lights", "roku_tv"):
            assert received["adapters"][name] == (await app.get(f"/adapters/{name}")).json | {
                "health": received["adapters"][name]["health"],
                "last_success": received["adapters"][name]["last_success"],
                **{key: received["adapters"][name][key] for key in ("answers", "failures", "timed", "timed_secs")},
            }
            assert received["adapters"][name]["runtime_status"] == "running"


def make(number: int, **attributes: Value) -> Device:
    return Device(
        id=f"desk:light:{number}",
        room_id=None,
        kind=DeviceKind.LIGHT,
        attributes=attributes or {"power": "on", "brightness": number, "text": 'ä"\\☃\n'},
        metadata=Metadata(source="desk", accuracy=0.5, vendor_specific={"light_index": number, "nested": {"a": [1]}}),
        updated_at=MOMENT,
        last_seen=MOMENT,
    )


def plain(device: Device) -> dict[str, Any]:
    """Convert a device to JSON with the contract's fields, without the code under test."""
    return {
        "id": device.id,
        "name": device.name,
        "room_id": device.room_id,
        "kind": device.kind.value,
        "info": info(device),
        "attributes": device.attributes,
        "metadata": {
            "source": device.metadata.source,
            "accuracy": device.metadata.accuracy,
            "vendor_specific": device.metadata.vendor_specific,
        },
        "updated_at": timestamp(device.updated_at),
        "last_seen": timestamp(device.last_seen),
    }


def info(device: Device) -> dict[str, str]:
    """Convert a device's info to JSON with the contract's fields, without the code under test."""
    words = ("manufacturer", "model", "firmware", "serial", "parent_id", "area")
    received = {word: getattr(device.info, word) for word in words} | {"class": device.info.device_class}
    return {word: text for word, text in received.items() if text is not None}


class TestEncodedDevices:
    def test_the_encoded_device_is_removed_with_the_device(self) -> None:
        encoder = DeviceEncoder()
        devices = [make(number) for number in range(3)]
        encoder.encode_list(devices)
        for device in devices:
            encoder.forget_removed(DeviceRemoved(device_id=device.id))
        assert not encoder._kept and encoder.encode_list([]) == b"[]"

    @pytest.mark.parametrize("with_commands", [False, True])
    async def test_thousands_of_devices_do_not_block_the_loop(self, *, with_commands: bool) -> None:
        encoder, devices = DeviceEncoder(), {number: make(number) for number in range(5)}
        encode = encoder.encode_with_commands if with_commands else encoder.encode
        turns, calls = list[float](), count()

        class Slow(VirtualClock):
            """A device whose encoding takes a long step."""

            def monotonic(self) -> float:
                return next(calls)

            async def sleep(self, secs: float) -> None:
                turns.append(secs)
                if gone := devices.pop(3, None):
                    encoder.forget_removed(DeviceRemoved(device_id=gone.id))

        received = await encoder.encode_found(lambda: [*devices.values()], Slow(), with_commands=with_commands)
        assert orjson.loads(received) == [orjson.loads(encode(each)) for each in devices.values()]
        assert len(turns) >= 4 and len(encoder._kept) == 4

    def test_an_unchanged_device_encodes_only_its_time(self) -> None:
        encoder, device = DeviceEncoder(), make(1)
        encoder.encode(device)
        kept = dict(device.attributes)
        cast("dict[str, Value]", device.attributes)["power"] = object()
        seen = replace(device, last_seen=MOMENT + timedelta(seconds=5))
        received = orjson.loads(encoder.encode(seen))
        assert received["attributes"] == kept and received["last_seen"] == "2026-11-20T08:09:16.042Z"
        assert received["updated_at"] == "2026-11-20T08:09:11.042Z"

    @pytest.mark.parametrize(
        "change",
        [
            {"attributes": {"power": "off"}},
            {"room_id": "hall"},
            {"metadata": Metadata(source="desk", vendor_specific={})},
            {"updated_at": MOMENT + timedelta(seconds=1)},
            {"person_name": "Desk"},
            {"vendor_name": "Desk"},
            {"kind": DeviceKind.SWITCH},
            {"info": Info(manufacturer="Elgato")},
            {"attributes": {"power": "off"}, "last_seen": MOMENT + timedelta(days=1)},
        ],
        ids="+".join,
    )
    def test_any_other_change_encodes_the_device_again(self, change: dict[str, Any]) -> None:
        encoder, device = DeviceEncoder(), make(1)
        encoder.encode(device)
        changed = replace(device, **change)
        assert encoder.encode(changed) == orjson.dumps(plain(changed))
        assert encoder.encode(device) == orjson.dumps(plain(device)), "and back again"

    def test_its_commands_are_the_present_ones(self) -> None:
        encoder, device = DeviceEncoder(), make(1)
        spec = CommandSpec(capability="power", actions=("on", "off"))
        shown = {"capability": "power", "actions": ["on", "off"], "schema": {"type": "enum", "values": ["on", "off"]}}
        seen = replace(device, commands=(spec,))
        dimmed = replace(seen, attributes={})
        for each, received in ((device, []), (seen, [shown]), (seen, [shown]), (dimmed, [shown]), (device, [])):
            assert orjson.loads(encoder.encode_with_commands(each)) == {**plain(each), "commands": received}

    def test_the_same_list_again_is_the_same_bytes_until_one_of_them_changes(self) -> None:
        encoder = DeviceEncoder()
        devices = [make(number) for number in range(5)]
        first = encoder.encode_list(devices)
        assert encoder.encode_list(list(devices)) is first
        devices[3] = replace(devices[3], last_seen=MOMENT + timedelta(seconds=1))
        assert encoder.encode_list(devices) == orjson.dumps([plain(device) for device in devices])

    def test_devices_that_are_equal_in_python_but_not_in_json_are_distinct(self) -> None:
        encoder = DeviceEncoder()
        for value in (1, 1.0, True):
            device = make(1, brightness=value)
            assert encoder.encode_list([device]) == orjson.dumps([plain(device)])

    def test_reports_are_encoded_as_the_registry_stores_them(self) -> None:
        clock = VirtualClock()
        registry, encoder = PromptRegistry(Bus(), clock), DeviceEncoder()
        registry.put_room("hall", "Hall")
        for step in range(40):
            if step % 3 == 1:
                registry.assign_room("desk:light:1", None if step % 2 else "hall")
            registry.apply(report(range(step % 3, 6), step // 2))
            devices = registry.list_devices()
            assert encoder.encode_list(devices) == orjson.dumps([plain(device) for device in devices])
            for device in devices:
                assert encoder.encode(device) == orjson.dumps(plain(device))


async def test_an_assignment_returns_the_present_device(app: App) -> None:
    await app.post("/rooms", {"id": "hall", "name": "Hall"})
    async with call(app.url) as caller:
        await caller.send(request("POST", "/devices/elgato_lights:light:0/room", KEY, "Content-Length: 19"))
        await app.command("elgato_lights:light:0", "brightness", "set", 77)
        received = (await caller.ask(b'{"room_id": "hall"}')).json
    assert (received["room_id"], received["attributes"]["brightness"]) == ("hall", 77)


def report(numbers: Iterable[int], step: int) -> Report:
    """Return a report with observations of these devices."""
    seen = tuple(
        Observation(
            device_id=f"desk:light:{number}",
            kind=DeviceKind.LIGHT,
            attributes={"power": "on", "brightness": (step * number) % 4},
            vendor_specific={"light_index": number, "round": step // 5},
        )
        for number in numbers
    )
    return Report(adapter="desk", present=frozenset(each.device_id for each in seen), observations=seen)
