"""The adapter's operations, and servers that answer late, never, or in another version, or that restart."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from appliance.adapters.adapter_runner import AdapterRunner
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.dispatch import Outcome, Status
from appliance.adapters.matter.adapter import MatterAdapter
from appliance.adapters.matter.clusters import READ_CLUSTERS, read
from appliance.adapters.matter.commands import command_specs_of
from appliance.adapters.matter.kind import MATTER, Matter
from appliance.adapters.matter.known_nodes import MAX_BYTES, MAX_DEVICES, MAX_NODE_BYTES, KnownNodes
from appliance.adapters.matter.nodes import Node
from appliance.adapters.matter.simulator import LAMP, LOCK, PLUG, Clusters, MatterSimulator, simulated_node
from appliance.errors import LaresError
from appliance.home import events
from appliance.home.commands import Command
from tests.adapters import test_contract
from tests.adapters.contract import Subject, Trial, trial
from tests.adapters.matter.recordings import RecordedServer, load
from tests.fakes.context import context_of
from tests.fakes.patience import until

SUBJECT = test_contract.TestMatter.subject
IMPATIENT = replace(SUBJECT, speed=20)
"""An adapter that gives up after a quarter of a second."""
LAMP_ID, PLUG_ID = "matter:sim-1:1", "matter:sim-2:1"


async def _send(it: Trial, device_id: str, **command: Any) -> Outcome:
    [outcome] = await it.dispatcher.send([it.registry.get_device(device_id)], Command.parse(command), "device")
    return outcome


def _state(it: Trial, device_id: str) -> Any:
    return it.registry.get_device(device_id).attributes["state"]


def _asked(vendor: MatterSimulator, command: str) -> list[dict[str, Any]]:
    return [each["args"] for each in vendor.asked if each["command"] == command]


def _with_lock() -> MatterSimulator:
    made = MatterSimulator()
    made.nodes[1] = simulated_node(1, "Lock", LOCK)
    return made


async def test_a_command_is_sent_even_if_the_device_shows_its_result() -> None:
    async with trial(SUBJECT) as it:
        assert (await _send(it, LAMP_ID, capability="power", action="off")).status is Status.OK
        assert [each["command_name"] for each in _asked(it.vendor, "device_command")] == ["Off"]
        it.vendor.faults.silent = True
        unanswered = await _send(it, LAMP_ID, capability="power", action="off")
        assert unanswered.error is not None and unanswered.error.code == "device_unreachable"


async def test_a_door_that_was_opened_without_a_report_is_locked() -> None:
    async with trial(_subject(_with_lock)) as it:
        assert it.device.attributes["lock"] == "locked"
        it.vendor.sends_events = False  # a lost subscription
        await it.vendor.set(1, "1/257/0", 2)
        assert (await _send(it, LAMP_ID, capability="lock", action="lock")).status is Status.OK
        assert it.vendor.nodes[1]["attributes"]["1/257/0"] == 1
        it.vendor.faults.stubborn = True
        await it.vendor.set(1, "1/257/0", 2)
        jammed = await _send(it, LAMP_ID, capability="lock", action="lock")
        assert jammed.message == f"{LAMP_ID} was sent lock lock but shows 'unlocked'"


async def test_a_toggle_is_sent_and_judged_by_a_fresh_reading() -> None:
    async with trial(SUBJECT) as it:
        it.vendor.sends_events = False
        await it.vendor.set(1, "1/6/0", value=True)
        assert (await _send(it, LAMP_ID, capability="power", action="toggle")).status is Status.OK
        assert it.vendor.nodes[1]["attributes"]["1/6/0"] is False
        assert [each["command_name"] for each in _asked(it.vendor, "device_command")] == ["Toggle"]


@pytest.mark.parametrize(("mode", "percent", "written"), [(1, 33, [0]), (0, 0, [50]), (0, None, [50])])
async def test_a_fan_gets_the_opposite_instead_of_a_toggle(mode: int, percent: Any, written: list[Any]) -> None:
    fan: Clusters = {29: {0: [{"0": 43, "1": 1}], 3: []}, 514: {0: mode, 1: 2, 2: percent, 3: 0}}
    async with trial(_subject(MatterSimulator)) as it:
        await it.vendor.add(simulated_node(9, "Fan", fan))
        await until(lambda: "matter:sim-9:1" in it.registry.ids_of("matter"))
        await _send(it, "matter:sim-9:1", capability="power", action="toggle")
        assert [each["value"] for each in _asked(it.vendor, "write_attribute")] == written


async def test_a_fan_of_unknown_power_refuses_a_toggle() -> None:
    fan: Clusters = {29: {0: [{"0": 43, "1": 1}], 3: []}, 514: {0: None, 1: 2, 2: None, 3: None}}
    async with trial(_subject(MatterSimulator)) as it:
        await it.vendor.add(simulated_node(9, "Fan", fan))
        await until(lambda: "matter:sim-9:1" in it.registry.ids_of("matter"))
        refused = await _send(it, "matter:sim-9:1", capability="power", action="toggle")
        expected = "matter:sim-9:1 does not report whether it is on; instead of `toggle`, send `on` or `off`"
        assert (refused.message, _asked(it.vendor, "write_attribute")) == (expected, [])


async def test_a_lamp_of_unknown_power_toggles_itself() -> None:
    async with trial(SUBJECT) as it:
        await it.vendor.set(1, "1/6/0", value=None)
        assert (await _send(it, LAMP_ID, capability="power", action="toggle")).status is Status.OK
        assert [each["command_name"] for each in _asked(it.vendor, "device_command")] == ["Toggle"]


async def test_the_values_of_an_unavailable_device_prove_nothing() -> None:
    async with trial(_subject(_with_lock)) as it:
        it.vendor.nodes[1]["available"] = False
        await it.vendor.add(it.vendor.nodes[1])
        await until(lambda: _state(it, LAMP_ID) == "unavailable")
        outcome = await _send(it, LAMP_ID, capability="lock", action="lock")
        assert _asked(it.vendor, "device_command"), "it is sent like any other"
        assert outcome.error is not None and outcome.error.code == "device_unreachable"
        assert outcome.message == f"{LAMP_ID} is unavailable; the result of lock lock is unknown"


async def test_a_suspect_device_stays_unavailable_whatever_the_server_reports_and_over_a_new_connection() -> None:
    async with trial(IMPATIENT) as it:
        it.vendor.faults.silent = True
        await _send(it, LAMP_ID, capability="power", action="on")
        assert _state(it, LAMP_ID) == "unavailable"
        await it.vendor.add(it.vendor.nodes[1])
        await it.vendor.set(2, "1/6/0", value=True)
        await until(lambda: it.registry.get_device(PLUG_ID).attributes["power"] == "on")
        assert _state(it, LAMP_ID) == "unavailable"
        it.vendor.mute.add(1)
        it.vendor.faults.silent = False
        await it.vendor.unplug()
        await until(lambda: _state(it, PLUG_ID) == "offline")
        asked = len(_asked(it.vendor, "read_attribute"))
        await it.vendor.plug_in()
        await until(lambda: _state(it, PLUG_ID) == "online")
        await until(lambda: len(_asked(it.vendor, "read_attribute")) > asked)
        assert _state(it, LAMP_ID) == "unavailable", "the server's list contains it as available"
        it.vendor.mute.clear()
        await until(lambda: _state(it, LAMP_ID) == "online")


@pytest.mark.slow
async def test_devices_beyond_the_limit_are_rejected_and_counted_and_reported_once() -> None:
    full, beyond = range(3, 669), range(669, 672)

    def server() -> MatterSimulator:
        made = MatterSimulator()
        made.nodes |= {number: simulated_node(number, "Lamp", LAMP, PLUG, LOCK) for number in (*full, *beyond)}
        return made

    async with trial(_subject(server)) as it:
        ids = {device.id for device in it.registry.list_devices()}
        assert len(ids) == MAX_DEVICES and {LAMP_ID, PLUG_ID, "matter:sim-668:3"} <= ids
        for number in range(672, 675):
            await it.vendor.add(simulated_node(number, "Lamp", LAMP))
        await it.vendor.set(1, "1/6/0", value=True)
        await until(lambda: it.device.attributes["power"] == "on")
        assert len(it.registry.list_devices()) == MAX_DEVICES
        assert isinstance(it.runner.adapter, MatterAdapter) and it.runner.adapter.live.nodes.rejected > 9
        [limit] = [each for each in it.happened if isinstance(each, events.ObservationDropped)]
        assert (limit.device_id, limit.reason) == (
            "matter",
            "more than 2,000 devices, 64 MiB of attributes, 4 MiB per node, or 512 KiB per text; rejected so far: 9",
        )
        await it.vendor.remove(2)
        await until(lambda: len(it.registry.list_devices()) == MAX_DEVICES - 1)
        await it.vendor.add(simulated_node(672, "Lamp", LAMP))
        await until(lambda: len(it.registry.list_devices()) == MAX_DEVICES)
        assert (await it.command("off")).status is Status.OK


async def test_attributes_that_the_hub_does_not_read_are_not_kept() -> None:
    async with trial(SUBJECT) as it:
        kept = _kept_attributes(it)
        for number in range(100):
            await it.vendor.set(1, f"1/{70_000 + number}/0", number)
            await it.vendor.set(1, f"{number + 2}/70000/0", number)
            await it.vendor.set(1, f"1/6/{65_533 + number}", number)
        await it.vendor.set(1, "1/6/0", value=True)
        await until(lambda: it.device.attributes["power"] == "on")
        assert _kept_attributes(it) == kept


async def test_the_attributes_of_a_node_are_limited() -> None:
    async with trial(SUBJECT) as it:
        large = "x" * 500_000
        for number in range(20):
            await it.vendor.set(1, f"1/6/{number + 10}", large)
        await it.vendor.set(1, "1/6/0", value=True)
        await until(lambda: it.device.attributes["power"] == "on")
        assert _live(it).rejected == 20 - MAX_NODE_BYTES // len(large)
        [limit] = [each for each in it.happened if isinstance(each, events.ObservationDropped)]
        limits = "more than 2,000 devices, 64 MiB of attributes, 4 MiB per node, or 512 KiB per text"
        assert limit.reason == f"{limits}; rejected so far: 1"
        await it.vendor.add(simulated_node(1, "Lamp", LAMP))
        await it.vendor.set(1, "1/6/10", large)
        await it.vendor.set(1, "1/6/0", value=True)
        await until(lambda: it.device.attributes["power"] == "on")
        assert _live(it).rejected == 20 - MAX_NODE_BYTES // len(large)


async def test_a_rejected_update_makes_the_value_unknown() -> None:
    async with trial(SUBJECT) as it:
        for wrong in ("on", {"0": True}, [True], 2):
            await it.vendor.set(1, "1/6/0", value=True)
            await until(lambda: it.device.attributes.get("power") == "on")
            await it.vendor.set(1, "1/6/0", wrong)
            await until(lambda: "power" not in it.device.attributes)


def test_a_value_without_room_is_unknown() -> None:
    nodes, large = KnownNodes("matter"), "x" * MAX_NODE_BYTES
    described = simulated_node(1, "Lamp", LAMP)
    described["attributes"]["1/6/0"] = True
    nodes.take(Node(described, READ_CLUSTERS))
    target = nodes.targets["matter:sim-1:1"]
    specs = command_specs_of(target.endpoint)
    assert not nodes.set(nodes.by_id[1], (1, 6, 10), large)
    assert nodes.set(nodes.by_id[1], (1, 6, 0), large)
    assert "power" not in read(target.endpoint, None)[0] and "brightness" in read(target.endpoint, None)[0]
    described["attributes"]["1/6/10"] = large
    nodes.take(Node(described, READ_CLUSTERS))
    assert (read(target.endpoint, None), nodes.rejected) == (({}, {}), 3)
    assert command_specs_of(target.endpoint) == specs


def test_the_attributes_of_all_nodes_are_limited() -> None:
    nodes, large = KnownNodes("matter"), "x" * (MAX_NODE_BYTES // 2)

    def node(number: int) -> Node:
        described = simulated_node(number, "Lamp", LAMP)
        described["attributes"]["1/6/10"] = large
        return Node(described, READ_CLUSTERS)

    room = MAX_BYTES // node(1).size
    for number in range(1, room + 4):
        nodes.take(node(number))
    assert (len(nodes.by_id), nodes.rejected) == (room, 3)
    assert not nodes.set(nodes.by_id[1], (1, 6, 11), large)
    nodes.by_id[1].node.remove(1)
    nodes.take(nodes.by_id[1].node)
    nodes.forget(2)
    nodes.take(node(1))
    nodes.take(node(2))
    nodes.take(node(room + 1))
    assert (len(nodes.by_id), nodes.rejected) == (room, 5)


def _live(it: Trial) -> KnownNodes:
    assert isinstance(it.runner.adapter, MatterAdapter)
    return it.runner.adapter.live.nodes


def _kept_attributes(it: Trial) -> int:
    nodes = [known.node for known in _live(it).by_id.values()]
    clusters = [values for node in nodes for each in node.endpoints.values() for values in each.clusters.values()]
    return sum(map(len, clusters))


async def test_a_brightness_switches_on() -> None:
    async with trial(SUBJECT) as it:
        dimmed = await _send(it, LAMP_ID, capability="brightness", action="set", value=30)
        assert dimmed.status is Status.OK
        assert it.registry.get_device(LAMP_ID).attributes == {"power": "on", "brightness": 30, "state": "online"}


async def test_a_silent_device_is_read_and_then_unavailable() -> None:
    async with trial(IMPATIENT) as it:
        it.vendor.faults.silent = True
        outcome = await _send(it, LAMP_ID, capability="power", action="on")
        assert outcome.error is not None and outcome.error.code == "device_unreachable"
        assert outcome.message == f"{LAMP_ID} does not answer: there was no answer within 5 s"
        assert (_state(it, LAMP_ID), _state(it, PLUG_ID)) == ("unavailable", "online")
        await until(lambda: _asked(it.vendor, "read_attribute"))
        it.vendor.faults.silent = False
        await it.vendor.set(1, "1/8/0", 254)
        await until(lambda: _state(it, LAMP_ID) == "online")
        assert it.registry.get_device(LAMP_ID).attributes["brightness"] == 100


async def test_a_late_answer_is_dropped_and_a_reading_settles_the_state() -> None:
    async with trial(IMPATIENT) as it:
        before = it.registry.get_device(LAMP_ID).attributes
        it.vendor.faults.delay = 0.6  # twelve seconds of the adapter's clock
        outcome = await _send(it, LAMP_ID, capability="power", action="on")
        assert outcome.status is Status.ERROR and _state(it, LAMP_ID) == "unavailable"
        await until(lambda: it.registry.get_device(LAMP_ID).attributes == {**before, "power": "on"})


async def test_a_device_without_a_report_after_a_command_is_read() -> None:
    async with trial(SUBJECT) as it:
        it.vendor.sends_events = False
        assert (await it.command("on")).status is Status.OK
        assert it.device.attributes["power"] == "on"
        assert _asked(it.vendor, "read_attribute") == [{"node_id": 1, "attribute_path": "1/6/*"}]


async def test_a_device_that_the_server_cannot_reach_keeps_its_values() -> None:
    async with trial(SUBJECT) as it:
        await it.vendor.set(1, "1/6/0", value=True)
        await until(lambda: it.registry.get_device(LAMP_ID).attributes["power"] == "on")
        await it.vendor.unplug()
        await until(lambda: _state(it, LAMP_ID) == "offline")
        as_it_is = await _send(it, LAMP_ID, capability="power", action="on")
        assert as_it_is.error is not None and as_it_is.error.code == "device_unreachable"
        it.vendor.nodes[1] = {**simulated_node(1, "Simulated lamp", LAMP), "available": False}
        await it.vendor.plug_in()
        await until(lambda: _state(it, LAMP_ID) == "unavailable")
        await until(lambda: _state(it, PLUG_ID) == "online")
        assert it.registry.get_device(LAMP_ID).attributes["power"] == "on"
        await it.vendor.add({**it.vendor.nodes[1], "available": True})
        await until(lambda: _state(it, LAMP_ID) == "online")
        assert it.registry.get_device(LAMP_ID).attributes["power"] == "off"


async def test_an_unknown_device_of_an_unreachable_node_has_no_values() -> None:
    def server() -> MatterSimulator:
        made = MatterSimulator()
        made.nodes[1]["available"] = False
        return made

    async with trial(_subject(server)) as it:
        device = it.registry.get_device(LAMP_ID)
        assert device.attributes == {"state": "unavailable"} and device.commands


@pytest.mark.parametrize(
    ("info", "sentence"),
    [
        ({"schema_version": 8, "min_supported_schema_version": 5}, "speaks schema 8, but Lares needs 9 or later"),
        ({"schema_version": 14, "min_supported_schema_version": 12}, "needs schema 12, but Lares supports only 11"),
        ({"schema_version": "x"}, "reported an invalid protocol version: 'x'"),
        ({}, "is not a Matter server, or sent a malformed answer"),
    ],
)
async def test_a_server_with_another_protocol_is_reported_with_a_remedy(info: dict[str, Any], sentence: str) -> None:
    lines = [{"t": 0, "dir": "in", "msg": info}, {"t": 0, "dir": "note", "msg": "closed"}] * 9
    async with _failing(lines) as it:
        await until(lambda: sentence in (it.health.get_adapter("matter").last_error or ""))


@pytest.mark.parametrize("output", [["x"], 7, None, {"schema_version": 11}, {"message_id": "listen", "result": 7}])
async def test_nonsense_of_the_server_does_not_crash_the_adapter(output: Any) -> None:
    lines = [
        *load("commands")[:2],
        {"t": 0, "dir": "in", "msg": {"message_id": "1", "result": [{"node_id": 1}]}},
        {"t": 0, "dir": "in", "msg": output},
        {"t": 0, "dir": "note", "msg": "closed"},
    ] * 3
    async with _failing(lines) as it:
        await until(lambda: it.health.get_adapter("matter").last_error)
        assert "failed (" not in str(it.health.get_adapter("matter").last_error)


async def test_a_recording_is_replayed_over_the_connection() -> None:
    async with trial(_subject(lambda: RecordedServer(load("events")[:6]), device="uid-onoff:1")) as it:
        assert len(it.registry.list_devices()) == 21
        await until(lambda: it.registry.get_device("matter:uid-sensors:1").attributes["contact"] == "open")


async def test_a_device_is_paired_shared_identified_and_unpaired() -> None:
    async with trial(SUBJECT) as it:
        invoke = it.dispatcher.invoke
        paired = await invoke("matter:pair", {"code": "3497-011-2332"})
        assert paired == {"node_id": 3, "devices": ["matter:sim-3:1"]}
        assert _asked(it.vendor, "commission_with_code") == [{"code": "34970112332", "network_only": True}]
        shared = await invoke("matter:share", {"device_id": "matter:sim-3:1"})
        assert shared == {"code": "32675421138", "qr": "MT:00000-O913KIOL6UR00", "secs": 300}
        await invoke("matter:identify", {"device_id": "matter:sim-3:1"})
        [identified] = _asked(it.vendor, "device_command")
        assert (identified["command_name"], identified["payload"]) == ("Identify", {"identifyTime": 10})
        assert await invoke("matter:unpair", {"device_id": "matter:sim-3:1"}) == {"removed": ["matter:sim-3:1"]}
        assert len(it.registry.list_devices()) == 2


@pytest.mark.parametrize(
    ("operation", "payload", "sentence"),
    [
        (
            "pair",
            {},
            "the operation pair needs the field code (the digits below the QR code, or the text",
        ),
        ("pair", {"code": 34970112332}, "code must be a string"),
        ("pair", {"code": "123"}, "code must be 11 or 21 digits, or the text of a QR code, which begins with MT:"),
        ("pair", {"code": "MT:short"}, "code must be 11 or 21 digits"),
        ("pair", {"code": "34970112332", "wifi": "x"}, "the operation pair accepts only the field code, not 'wifi'"),
        ("share", {"device_id": "matter:none:1"}, "device 'matter:none:1' not found"),
        ("unpair", {}, 'the operation unpair needs the field device_id (like "matter:…:1")'),
        ("identify", {"device_id": 7}, "device_id must be a string"),
    ],
)
async def test_invalid_payloads_are_refused(operation: str, payload: dict[str, Any], sentence: str) -> None:
    async with trial(SUBJECT) as it:
        with pytest.raises(LaresError) as refusal:
            await it.dispatcher.invoke(f"matter:{operation}", payload)
        assert sentence in str(refusal.value)


async def test_a_failed_pairing_is_reported_with_a_remedy() -> None:
    lines = [
        *load("commands")[:2],
        {"t": 0, "dir": "in", "msg": {"message_id": "1", "result": []}},
        *load("errors")[-3:],
    ]
    async with trial(_subject(lambda: RecordedServer(lines))) as it:
        with pytest.raises(LaresError, match=r"could not be paired .* must have power"):
            await it.dispatcher.invoke("matter:pair", {"code": "34970112332"})


@pytest.mark.slow
async def test_the_outage_as_it_was_recorded() -> None:
    """Replay the recording ten times as fast. One device does not respond, although the server reports otherwise."""
    lines = load("outage")[:-1]
    async with trial(_subject(lambda: RecordedServer(lines, pace=0.1), device="uid-plug:1")) as it:
        changed = _changed_values(it)
        await until(lambda: it.device.attributes["state"] == "unavailable")
        ended = await it.command("on")
        assert ended.message == "matter:uid-plug:1 does not answer: the server does not reach the device (error 3)"
        await until(lambda: it.device.attributes["state"] == "online")
        killed = await it.command("on")
        assert killed.message == "matter:uid-plug:1 does not answer: there was no answer within 5 s"
        assert it.device.attributes["state"] == "unavailable", (
            "the server reports the device as online for 159 s more"
        )
        await until(lambda: it.vendor.script[0]["dir"] == "out")
        assert (await it.command("on")).status is Status.ERROR
        await until(lambda: it.device.attributes["state"] == "online")
        assert changed == []
        assert (await it.command("on")).status is Status.OK
        assert changed == ["matter:uid-plug:1"]


@pytest.mark.slow
async def test_the_restart_of_the_server_as_it_was_recorded() -> None:
    lines = [
        each for each in load("restart")[:-1] if not _is_about_one_node(each["msg"])
    ]  # the last line ends the session
    async with trial(_subject(lambda: RecordedServer(lines, pace=0.1), device="uid-plug:1")) as it:
        changed = _changed_values(it)
        await until(lambda: not it.vendor.script, within=60)
        await until(lambda: it.registry.get_device("matter:uid-dimmer:1").attributes["state"] == "online")
        # The thermometer was colder when the server came back. No other value had changed.
        assert changed == ["matter:uid-sensors:2"]
        assert not [each for each in it.happened if isinstance(each, events.DeviceEvent | events.DeviceRemoved)]


def _is_about_one_node(message: Any) -> bool:
    return isinstance(message, dict) and message.get("message_id") == "2"


def _changed_values(it: Trial) -> list[str]:
    """Return an empty list. Each later change of a device appends the device's id to the list."""
    changed: list[str] = []

    def note(event: events.Event) -> None:
        if isinstance(event, events.DeviceStateChanged):
            before = event.previous.attributes if event.previous is not None else {}
            if {**before, "state": ""} != {**event.device.attributes, "state": ""}:
                changed.append(event.device.id)

    it.bus.listen(note)
    return changed


def _subject(server: Callable[[], MatterSimulator], device: str = "sim-1:1") -> Subject:
    return replace(SUBJECT, simulate=server, device=device, speed=10)


@asynccontextmanager
async def _failing(lines: list[dict[str, Any]]) -> AsyncIterator[Trial]:
    """Run an adapter with an unusable server."""
    async with RecordedServer(lines) as server, DeviceSession() as session:
        it = Trial(SUBJECT, server)
        settings = Matter(url=f"ws://127.0.0.1:{server.port}/ws")
        context = context_of("matter", session, it.clock, registry=it.registry, bus=it.bus)
        it.runner = AdapterRunner(partial(MATTER.build, settings), context)
        async with it.runner:
            yield it


async def test_a_text_that_is_too_large_is_unknown() -> None:
    async with trial(SUBJECT) as it:
        lamp = simulated_node(1, "Lamp", LAMP)
        lamp["attributes"] |= {"1/6/10": "x" * 600_000, "1/6/0": True}
        await it.vendor.add(lamp)
        await until(lambda: it.device.attributes["power"] == "on")
        assert _live(it).rejected
